//! `take_screenshot`.

use pagebridge_browser::{CallOptions, Picture, PictureFormat, Pictures, Shot};
use pagebridge_core::{ErrorKind, ToolError, text};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, definition, object};
use crate::base64;
use crate::output::ToolOutput;

pub(super) fn definitions() -> Vec<Value> {
    vec![definition(
        "take_screenshot",
        "Take screenshot",
        "Takes a picture of what a page shows, of the whole page, or of one element.",
        object(
            json!({
                "format": {"type": "string", "enum": ["png", "jpeg", "webp"], "description": "png if absent."},
                "quality": {"type": "integer", "minimum": 0, "maximum": 100},
                "uid": {"type": "string", "description": "Only this element."},
                "fullPage": {"type": "boolean"},
                "filePath": {"type": "string", "description": "File in the workspace to write to instead."},
                "pageId": {"type": "integer"},
            }),
            &[],
        ),
        json!({"readOnlyHint": true}),
    )]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TakeScreenshot {
    #[serde(default)]
    format: PictureFormat,
    quality: Option<u8>,
    uid: Option<String>,
    #[serde(default)]
    full_page: bool,
    file_path: Option<String>,
    page_id: Option<u32>,
}

impl TakeScreenshot {
    fn check(&self) -> Result<(), ToolError> {
        let invalid = |message: &str| Err(ToolError::not_run(ErrorKind::InvalidArguments, message));
        if self.uid.is_some() && self.full_page {
            return invalid("A screenshot is either of an element (uid) or of the full page, not both.");
        }
        if self.quality.is_some_and(|quality| quality > 100) {
            return invalid("quality goes from 0 to 100.");
        }
        Ok(())
    }

    fn what(&self) -> String {
        match &self.uid {
            Some(uid) => format!("node with uid {}", text::quoted(uid)),
            None if self.full_page => "the full current page".into(),
            None => "the current page's viewport".into(),
        }
    }
}

pub(super) async fn run(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: TakeScreenshot = call.parse()?;
    wanted.check()?;
    let (browser, page) = call.session.page(wanted.page_id)?;
    let extensions: &[&str] = match wanted.format {
        PictureFormat::Jpeg => &["jpeg", "jpg"],
        other => &[other.name()],
    };
    let file = wanted.file_path.as_deref();
    let file = file.map(|given| call.session.workspace.output(given, extensions)).transpose()?;
    let shot = Shot {
        format: wanted.format,
        quality: wanted.quality,
        full_page: wanted.full_page,
        uid: wanted.uid.clone(),
        most_bytes: if file.is_some() { usize::MAX } else { call.session.options.max_image_bytes },
    };
    let options =
        CallOptions { deadline: call.session.options.page_call_timeout, cancel: call.cancel.clone() };
    let Pictures { shown, larger } = browser.screenshot(page.id, &shot, &options).await?;
    let mut told = format!("Took a screenshot of {}.", wanted.what());
    told.push_str(&reduced(&shown));
    if let Some(file) = file {
        let path = file.write(&base64::decode(&shown.data))?;
        return Ok(ToolOutput::text(format!("{told}\nSaved screenshot to {}.", path.display())));
    }
    if let Some(larger) = larger {
        let saved =
            call.session.workspace.keep("screenshot", wanted.format.name(), base64::decode(&larger.data));
        told.push_str(&match saved {
            Ok(file) => format!(
                "\nThe larger one, with {:.0}% of the page's size, is in {}.",
                larger.scale * 100.0,
                file.display()
            ),
            Err(error) => format!("\nThe larger one could not be written: {error}."),
        });
    }
    let image = json!({"type": "image", "data": shown.data, "mimeType": wanted.format.media_type()});
    Ok(ToolOutput { blocks: vec![image], ..ToolOutput::text(told) })
}

/// That a picture shows less than was asked for, or shows it smaller.
fn reduced(picture: &Picture) -> String {
    let Picture { of, whole, scale, .. } = picture;
    let mut told = String::new();
    if of.0 < whole.0 || of.1 < whole.1 {
        told.push_str(&format!(
            " It shows the first {:.0} x {:.0} of {:.0} x {:.0} pixels.",
            of.0, of.1, whole.0, whole.1
        ));
    }
    if *scale < 1.0 {
        told.push_str(&format!(
            " It is scaled down to {:.1}%: with all {:.0} x {:.0} pixels it would be too large.",
            scale * 100.0,
            of.0,
            of.1
        ));
    }
    told
}
