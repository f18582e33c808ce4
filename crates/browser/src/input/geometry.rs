//! Where an element is on the screen.

/// A point in a page's viewport, in CSS pixels.
pub(crate) type Point = (f64, f64);

/// A rectangle in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    /// The smallest one around a quad of four points, as the protocol gives it.
    pub fn around(quad: &[f64]) -> Option<Self> {
        let xs = || quad.iter().copied().step_by(2);
        let ys = || quad.iter().copied().skip(1).step_by(2);
        let (left, right) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        let (top, bottom) = (ys().fold(f64::INFINITY, f64::min), ys().fold(f64::NEG_INFINITY, f64::max));
        (right >= left && bottom >= top).then_some(Self {
            x: left,
            y: top,
            width: right - left,
            height: bottom - top,
        })
    }

    /// The smallest one around both.
    pub fn joined(self, other: Self) -> Self {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let right = (self.x + self.width).max(other.x + other.width);
        let bottom = (self.y + self.height).max(other.y + other.height);
        Self { x, y, width: right - x, height: bottom - y }
    }

    /// The part that both share.
    pub fn shared(self, other: Self) -> Option<Self> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let right = (self.x + self.width).min(other.x + other.width);
        let bottom = (self.y + self.height).min(other.y + other.height);
        (right > x && bottom > y).then_some(Self { x, y, width: right - x, height: bottom - y })
    }

    /// Its middle.
    pub fn centre(self) -> Point {
        (self.x + self.width / 2.0, self.y + self.height / 2.0)
    }

    /// Its area.
    pub fn area(self) -> f64 {
        self.width * self.height
    }
}

/// The middle of the largest part of an element that the viewport shows.
pub(crate) fn visible_centre(quads: &[Vec<f64>], viewport: Rect) -> Option<Point> {
    let parts = quads.iter().filter_map(|quad| Rect::around(quad)?.shared(viewport));
    let largest = parts.max_by(|a, b| a.area().total_cmp(&b.area()))?;
    Some(largest.centre())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_largest_visible_part() {
        let viewport = Rect { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };
        let quad = |x: f64, y: f64, width: f64, height: f64| {
            vec![x, y, x + width, y, x + width, y + height, x, y + height]
        };
        // The second line of a link is longer; of the third only a corner is seen.
        let quads =
            [quad(80.0, 0.0, 20.0, 10.0), quad(0.0, 10.0, 60.0, 10.0), quad(-90.0, 20.0, 100.0, 10.0)];
        assert_eq!(visible_centre(&quads, viewport), Some((30.0, 15.0)));
        assert_eq!(visible_centre(&quads[2..], viewport), Some((5.0, 25.0)));
        assert_eq!(visible_centre(&[quad(0.0, 200.0, 10.0, 10.0)], viewport), None);
        assert_eq!(visible_centre(&[quad(5.0, 5.0, 0.0, 10.0)], viewport), None);
        assert_eq!(visible_centre(&[], viewport), None);
    }
}
