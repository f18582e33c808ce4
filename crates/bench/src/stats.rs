//! Samples, and what is told of them.

/// Samples of one quantity, grouped by the round in which they were taken. Rounds of two series with the same place
/// were taken side by side, one right after the other.
#[derive(Debug, Default, Clone)]
pub struct Series {
    rounds: Vec<Vec<f64>>,
}

/// The spread of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// The smallest.
    pub min: f64,
    /// The middle one, or the mean of the two middle ones.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Series {
    /// Adds a round of one sample.
    pub fn push(&mut self, sample: f64) {
        self.rounds.push(vec![sample]);
    }

    /// Adds a round of several samples.
    pub fn push_round(&mut self, samples: Vec<f64>) {
        self.rounds.push(samples);
    }

    /// The spread of all samples; `None` when there are none.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of(self.rounds.iter().flatten().copied().collect())
    }

    /// The spread of the differences to `base`, round by round: each is the difference of the two rounds' medians.
    pub fn over(&self, base: &Self) -> Option<Spread> {
        let pairs = self.rounds.iter().zip(&base.rounds);
        let difference = |(mine, other): (&Vec<f64>, &Vec<f64>)| {
            Some(Spread::of(mine.clone())?.median - Spread::of(other.clone())?.median)
        };
        Spread::of(pairs.filter_map(difference).collect())
    }
}

impl Spread {
    /// The spread of these numbers; `None` when there are none.
    pub fn of(mut samples: Vec<f64>) -> Option<Self> {
        samples.sort_by(f64::total_cmp);
        let (min, max) = (*samples.first()?, *samples.last()?);
        let middle = samples.len() / 2;
        let median = match samples.len() % 2 {
            0 => f64::midpoint(samples[middle - 1], samples[middle]),
            _ => samples[middle],
        };
        Some(Self { count: samples.len(), min, median, max })
    }
}

/// A number with as many decimals as its size deserves.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        let odd = Spread::of(vec![9.0, 1.0, 2.0]).unwrap();
        assert_eq!(odd, Spread { count: 3, min: 1.0, median: 2.0, max: 9.0 });
        assert!((Spread::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap().median - 2.5).abs() < 1e-9);
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn differences_are_taken_round_by_round() {
        let (mut slow, mut fast) = (Series::default(), Series::default());
        for (mine, other) in [(5.0, 1.0), (50.0, 40.0), (7.0, 1.0)] {
            slow.push(mine);
            fast.push_round(vec![other, other + 100.0, other]);
        }
        let over = slow.over(&fast).unwrap();
        assert_eq!((over.count, over.min, over.median, over.max), (3, 4.0, 6.0, 10.0));
        assert_eq!(slow.over(&Series::default()), None);
    }

    #[test]
    fn numbers_have_fitting_decimals() {
        assert_eq!([0.5, 12.34, 1234.5, -3.0].map(number), ["0.50", "12.3", "1234", "-3.00"]);
    }
}
