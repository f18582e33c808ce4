//! Finds the point where a real click reaches an element, waiting a little for the element to be ready for it.

use std::time::Duration;

use pagebridge_cdp::CdpError;
use pagebridge_core::{ErrorKind, Outcome, ToolError, duration, text};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::geometry::{Point, Rect, visible_centre};
use crate::browser::Browser;
use crate::element::{Element, removed};
use crate::events::FrameId;
use crate::loss;
use crate::targets::Document;

const LOOK: &str = include_str!("look.js");
const HIT: &str = include_str!("hit.js");
/// For an element to be visible, in place, enabled and uncovered.
const TO_BE_READY: Duration = Duration::from_secs(1);
/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(30);

/// What keeps an element from being acted on.
enum Obstacle {
    Hidden,
    OutOfView,
    Moving,
    Disabled,
    Covered { by: String, uid: Option<String> },
}

#[derive(Deserialize)]
struct Seen {
    state: State,
    #[serde(default)]
    hidden: bool,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum State {
    Ready,
    Removed,
    Hidden,
    Disabled,
    Moving,
    Option,
}

impl Browser {
    /// The point at which a click reaches the element. Scrolls it into view.
    pub(crate) async fn point_of(&self, element: &Element) -> Result<Point, ToolError> {
        let until = Instant::now() + TO_BE_READY;
        loop {
            let obstacle = match self.try_point(element).await? {
                Ok(point) => return Ok(point),
                Err(obstacle) => obstacle,
            };
            if Instant::now() >= until {
                return Err(refusal(&element.uid, obstacle));
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    async fn try_point(&self, element: &Element) -> Result<Result<Point, Obstacle>, ToolError> {
        let seen: Seen = self.ask(element, LOOK, json!([])).await?;
        match seen.state {
            State::Removed => return Err(removed(&element.uid)),
            State::Option => return Err(is_option(&element.uid)),
            State::Hidden => return Ok(Err(Obstacle::Hidden)),
            State::Disabled => return Ok(Err(Obstacle::Disabled)),
            State::Moving => return Ok(Err(Obstacle::Moving)),
            State::Ready => {}
        }
        if seen.hidden {
            // A tab in the background takes no mouse.
            drop(element.document.session.call("Page.bringToFront", json!({})));
        }
        let session = &element.document.session;
        let params = json!({"backendNodeId": element.backend});
        match session.call("DOM.scrollIntoViewIfNeeded", params).await {
            Err(CdpError::Refused { message, .. }) if message.contains("layout") => {
                return Ok(Err(Obstacle::Hidden));
            }
            other => other.map_err(|error| self.unreachable(&error, &element.document, &element.uid))?,
        };
        let view = View::of(element).await.map_err(|error| loss::tool_error(&error, Outcome::NotRun))?;
        let quads = match quads(element).await {
            Ok(quads) => quads,
            Err(CdpError::Refused { .. }) => return Ok(Err(Obstacle::Hidden)),
            Err(lost) => return Err(loss::tool_error(&lost, Outcome::NotRun)),
        };
        let Some(point) = visible_centre(&quads, view.rect) else { return Ok(Err(Obstacle::OutOfView)) };
        let covered = self.covered(element, point, view).await;
        Ok(match covered.map_err(|error| self.unreachable(&error, &element.document, &element.uid))? {
            None => Ok(point),
            Some(obstacle) => Err(obstacle),
        })
    }

    /// What lies over the element at a point.
    async fn covered(&self, element: &Element, at: Point, view: View) -> Result<Option<Obstacle>, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Located {
            backend_node_id: i64,
            frame_id: FrameId,
        }
        let session = &element.document.session;
        let (x, y) = ((at.0 + view.scrolled.0).floor(), (at.1 + view.scrolled.1).floor());
        let params = json!({"x": x, "y": y, "includeUserAgentShadowDOM": false});
        let located: Located = match session.call("DOM.getNodeForLocation", params).await {
            Ok(reply) => reply.decode()?,
            Err(CdpError::Refused { .. }) => return Ok(Some(Obstacle::OutOfView)),
            Err(lost) => return Err(lost),
        };
        let hit = located.backend_node_id;
        if hit == element.backend {
            return Ok(None);
        }
        if located.frame_id == element.document.frame {
            let hit_object = element.other(hit).await?;
            let over: Option<Cover> = element.call(HIT, json!([{"objectId": hit_object}])).await?;
            return Ok(over.map(|over| self.obstacle(&over, &element.document, hit)));
        }
        let documents = self.targets.documents_of(element.document.page);
        let Some(other) = documents.into_iter().find(|document| document.frame == located.frame_id) else {
            return Ok(None);
        };
        if other.frame_path.starts_with(&format!("{}.", element.document.frame_path)) {
            // The content of a frame, which either is what is clicked or lies in it.
            let is_frame: bool =
                element.call("function () { return this instanceof HTMLIFrameElement; }", json!([])).await?;
            if is_frame {
                return Ok(None);
            }
        }
        let over = Cover { tag: "element of another frame".into(), id: String::new(), text: String::new() };
        Ok(Some(self.obstacle(&over, &other, hit)))
    }

    fn obstacle(&self, over: &Cover, document: &Document, backend: i64) -> Obstacle {
        let uid = self.uids.of(document.page, document.id, backend);
        Obstacle::Covered { by: over.to_string(), uid: Some(uid) }
    }
}

/// The element in the way.
#[derive(Deserialize)]
struct Cover {
    tag: String,
    id: String,
    text: String,
}

impl std::fmt::Display for Cover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", text::one_line(&self.tag, 40))?;
        if !self.id.is_empty() {
            write!(f, " id={}", text::quoted(&text::one_line(&self.id, 60)))?;
        }
        if !self.text.is_empty() {
            write!(f, " {}", text::quoted(&text::one_line(&self.text, 80)))?;
        }
        Ok(())
    }
}

/// The visible part of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// In the coordinates of the mouse.
    pub rect: Rect,
    /// How far the page is scrolled.
    pub scrolled: Point,
    /// The whole page.
    pub content: Point,
}

impl View {
    /// Of the page that an element is in.
    pub async fn of(element: &Element) -> Result<Self, CdpError> {
        Self::of_session(&element.document.session).await
    }

    /// Of a page.
    pub async fn of_session(session: &pagebridge_cdp::CdpSession) -> Result<Self, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metrics {
            css_visual_viewport: Viewport,
            css_content_size: Size,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Viewport {
            page_x: f64,
            page_y: f64,
            client_width: f64,
            client_height: f64,
        }
        #[derive(Deserialize)]
        struct Size {
            width: f64,
            height: f64,
        }
        let metrics: Metrics = session.call("Page.getLayoutMetrics", json!({})).await?.decode()?;
        let view = metrics.css_visual_viewport;
        Ok(Self {
            rect: Rect { x: 0.0, y: 0.0, width: view.client_width, height: view.client_height },
            scrolled: (view.page_x, view.page_y),
            content: (metrics.css_content_size.width, metrics.css_content_size.height),
        })
    }
}

/// The boxes of an element in the viewport of its page.
pub(crate) async fn quads(element: &Element) -> Result<Vec<Vec<f64>>, CdpError> {
    #[derive(Deserialize)]
    struct Quads {
        quads: Vec<Vec<f64>>,
    }
    let params = json!({"backendNodeId": element.backend});
    let quads: Quads = element.document.session.call("DOM.getContentQuads", params).await?.decode()?;
    Ok(quads.quads)
}

fn is_option(uid: &str) -> ToolError {
    let message = format!(
        "The element uid={uid} is an option of a select, which has no place of its own to click. fill on the select chooses one by its value or label."
    );
    ToolError::not_run(ErrorKind::Unsupported, message)
}

fn refusal(uid: &str, obstacle: Obstacle) -> ToolError {
    let waited = duration::show(TO_BE_READY);
    let (reason, what, by) = match obstacle {
        Obstacle::Hidden => ("hidden", "is not visible".to_owned(), None),
        Obstacle::OutOfView => ("out_of_view", "has no visible area, also after scrolling".into(), None),
        Obstacle::Moving => ("moving", "keeps moving".into(), None),
        Obstacle::Disabled => ("disabled", "is disabled".into(), None),
        Obstacle::Covered { by, uid } => {
            let named = uid.as_ref().map(|uid| format!(" (uid={uid})")).unwrap_or_default();
            ("covered", format!("is covered by {by}{named}"), Some((by, uid)))
        }
    };
    let message =
        format!("Nothing was done: the element uid={uid} {what}, and that did not change within {waited}.");
    let mut details = json!({"reason": reason});
    if let Some((by, uid)) = by {
        details["coveredBy"] = json!({"element": by, "uid": uid});
    }
    ToolError::not_run(ErrorKind::Timeout, message).with_details(details)
}
