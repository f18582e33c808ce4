//! Pictures of a page, within bounds that neither the browser nor a client chokes on.

use pagebridge_cdp::{CdpError, CdpSession};
use pagebridge_core::{ErrorKind, Outcome, ToolError};
use serde::Deserialize;
use serde_json::json;

use crate::browser::Browser;
use crate::element::Element;
use crate::input::geometry::Rect;
use crate::input::target::{View, quads};
use crate::loss;
use crate::page_tools::CallOptions;
use crate::targets::PageId;

/// Pixels of one picture: Chromium needs some 8 bytes for each.
const MOST_PIXELS: f64 = 16_000_000.0;
/// Pixels of one side: clients refuse larger pictures, and graphics memory has a limit twice as high.
const MOST_SIDE: f64 = 8_000.0;
/// Pixels of one side of a page that are pictured; of more nothing could be recognised.
const MOST_PICTURED: f64 = 32_000.0;
/// Pictures with more pixels are tried small first, to learn how many bytes a pixel takes.
const LARGE_PIXELS: f64 = 4_000_000.0;
/// Pixels of such a trial.
const TRIAL_PIXELS: f64 = 500_000.0;
/// Bytes of the largest picture that is made, in base64.
const LARGEST_BYTES: f64 = 16_000_000.0;
/// Smaller pictures are tried this often when one has too many bytes.
const ATTEMPTS: usize = 6;

/// A picture's format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureFormat {
    /// Lossless.
    #[default]
    Png,
    /// Small for photographs.
    Jpeg,
    /// Small.
    Webp,
}

impl PictureFormat {
    /// Its name, which is also the usual extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
        }
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }
}

/// What is to be pictured.
#[derive(Debug, Clone, Default)]
pub struct Shot {
    /// The format.
    pub format: PictureFormat,
    /// 0 to 100, for formats that lose something.
    pub quality: Option<u8>,
    /// The whole page, not only what is in view.
    pub full_page: bool,
    /// Only this element.
    pub uid: Option<String>,
    /// Most bytes of the picture's text; larger ones are scaled down.
    pub most_bytes: usize,
}

/// A picture.
#[derive(Debug)]
pub struct Picture {
    /// In base64.
    pub data: String,
    /// 1 for a pixel a CSS pixel.
    pub scale: f64,
    /// Width and height of what it shows, in CSS pixels.
    pub of: (f64, f64),
    /// Width and height of what it should show, in CSS pixels; of a very large page it shows the beginning.
    pub whole: (f64, f64),
}

/// What came of a shot.
#[derive(Debug)]
pub struct Pictures {
    /// The one within bounds.
    pub shown: Picture,
    /// The best one that there is, where it has more bytes than are wanted.
    pub larger: Option<Picture>,
}

/// What is seen of a page.
#[derive(Debug, Clone, Copy)]
struct Area {
    rect: Rect,
    /// Width and height of all of it.
    whole: (f64, f64),
    /// Whether it may lie outside the viewport.
    is_beyond: bool,
}

impl Browser {
    /// Takes a picture.
    pub async fn screenshot(
        &self,
        page: PageId,
        shot: &Shot,
        options: &CallOptions,
    ) -> Result<Pictures, ToolError> {
        let work = async {
            let session = self.session(page)?;
            let area = match &shot.uid {
                None => area_of_page(&session, shot.full_page).await.map_err(failed)?,
                Some(uid) => area_of_element(&self.element(page, uid).await?).await?,
            };
            if area.rect.width < 1.0 || area.rect.height < 1.0 {
                let message = "There is nothing to picture: the element, or the page, has no area.";
                return Err(ToolError::not_run(ErrorKind::Unsupported, message));
            }
            pictures(&session, shot, area).await
        };
        self.observe(page, "The screenshot", options, work).await
    }
}

async fn pictures(session: &CdpSession, shot: &Shot, area: Area) -> Result<Pictures, ToolError> {
    let scale = affordable_scale(session, shot, area).await.map_err(failed)?;
    let mut picture = capture(session, shot, area, scale).await.map_err(failed)?;
    let mut larger = None;
    for _ in 0..ATTEMPTS {
        let size = picture.data.len();
        if size <= shot.most_bytes {
            return Ok(Pictures { shown: picture, larger });
        }
        let scale = picture.scale * shrink(size, shot.most_bytes);
        larger.get_or_insert(picture);
        picture = capture(session, shot, area, scale).await.map_err(failed)?;
    }
    let message = format!("No picture of this fits into {} bytes, however small.", shot.most_bytes);
    Err(ToolError::failed(ErrorKind::TooLarge, message))
}

/// A scale at which the picture has neither too many pixels nor far too many bytes.
async fn affordable_scale(session: &CdpSession, shot: &Shot, area: Area) -> Result<f64, CdpError> {
    let scale = first_scale(area.rect);
    let size = area.rect.area();
    if size * scale * scale <= LARGE_PIXELS {
        return Ok(scale);
    }
    let trial = capture(session, shot, area, (TRIAL_PIXELS / size).sqrt()).await?;
    #[expect(clippy::cast_precision_loss, reason = "no picture has so many bytes")]
    let bytes_a_pixel = trial.data.len() as f64 / TRIAL_PIXELS;
    Ok(scale.min((LARGEST_BYTES / bytes_a_pixel / size).sqrt()))
}

/// 1, or what keeps a huge picture within bounds.
fn first_scale(rect: Rect) -> f64 {
    let by_side = MOST_SIDE / rect.width.max(rect.height);
    let by_pixels = (MOST_PIXELS / rect.area()).sqrt();
    by_side.min(by_pixels).min(1.0)
}

/// By how much to scale down a picture of `size` bytes: bytes grow with the square, and a little room is left.
fn shrink(size: usize, most: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no picture has so many bytes")]
    let ratio = most as f64 / size as f64;
    (ratio.sqrt() * 0.95).clamp(0.05, 0.9)
}

async fn area_of_page(session: &CdpSession, full: bool) -> Result<Area, CdpError> {
    let view = View::of_session(session).await?;
    let rect = if full {
        Rect { x: 0.0, y: 0.0, width: view.content.0, height: view.content.1 }
    } else {
        Rect { x: view.scrolled.0, y: view.scrolled.1, ..view.rect }
    };
    Ok(Area { whole: (rect.width, rect.height), rect: cut(rect), is_beyond: full })
}

/// The part of an area that is pictured.
fn cut(rect: Rect) -> Rect {
    Rect { width: rect.width.min(MOST_PICTURED), height: rect.height.min(MOST_PICTURED), ..rect }
}

async fn area_of_element(element: &Element) -> Result<Area, ToolError> {
    let session = &element.document.session;
    let hidden = || {
        let message =
            format!("The element uid={} is not visible, so there is nothing to picture.", element.uid);
        ToolError::not_run(ErrorKind::Unsupported, message)
    };
    let read = async {
        session.call("DOM.scrollIntoViewIfNeeded", json!({"backendNodeId": element.backend})).await?;
        Ok((quads(element).await?, View::of(element).await?))
    };
    let (quads, view) = match read.await {
        Ok(read) => read,
        Err(CdpError::Refused { .. }) => return Err(hidden()),
        Err(error) => return Err(failed(error)),
    };
    let boxes = quads.iter().filter_map(|quad| Rect::around(quad));
    let rect = boxes.reduce(Rect::joined).ok_or_else(hidden)?;
    let is_beyond = rect.shared(view.rect) != Some(rect);
    let rect = Rect { x: rect.x + view.scrolled.0, y: rect.y + view.scrolled.1, ..rect };
    Ok(Area { whole: (rect.width, rect.height), rect: cut(rect), is_beyond })
}

async fn capture(session: &CdpSession, shot: &Shot, area: Area, scale: f64) -> Result<Picture, CdpError> {
    #[derive(Deserialize)]
    struct Captured {
        data: String,
    }
    let rect = area.rect;
    let mut params = json!({
        "format": shot.format.name(),
        "captureBeyondViewport": area.is_beyond,
        "clip": {"x": rect.x, "y": rect.y, "width": rect.width, "height": rect.height, "scale": scale},
    });
    if let Some(quality) = shot.quality.filter(|_| shot.format != PictureFormat::Png) {
        params["quality"] = json!(quality);
    }
    let captured: Captured = session.call("Page.captureScreenshot", params).await?.decode()?;
    Ok(Picture { data: captured.data, scale, of: (rect.width, rect.height), whole: area.whole })
}

fn failed(error: CdpError) -> ToolError {
    loss::tool_error(&error, Outcome::NotRun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_areas_are_scaled_from_the_start() {
        let scale = |width, height| first_scale(Rect { x: 0.0, y: 0.0, width, height });
        assert!((scale(800.0, 600.0) - 1.0).abs() < 1e-9);
        assert!((scale(100.0, 16_000.0) - 0.5).abs() < 1e-9);
        let huge = scale(8_000.0, 20_000.0);
        assert!(8_000.0 * 20_000.0 * huge * huge <= MOST_PIXELS * 1.001 && huge * 20_000.0 <= MOST_SIDE);
    }

    #[test]
    fn each_attempt_is_smaller() {
        assert!((shrink(4_000_000, 1_000_000) - 0.475).abs() < 1e-9);
        assert!((shrink(1_000_001, 1_000_000) - 0.9).abs() < 1e-9);
        assert!((shrink(usize::MAX, 1) - 0.05).abs() < 1e-9);
    }
}
