//! `bridge_info`: what this bridge is and does now.

use pagebridge_browser::{Browser, Support};
use pagebridge_core::ToolError;
use serde_json::{Value, json};

use super::{Call, Nothing, definition as define, names, object};
use crate::output::ToolOutput;
use crate::session::Session;

pub(super) fn definition() -> Value {
    define(
        "bridge_info",
        "Bridge info",
        "Tells the bridge's version, engine, browser state and workspace. Starts nothing.",
        object(json!({}), &[]),
        json!({"readOnlyHint": true, "openWorldHint": false}),
    )
}

pub(super) fn run(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    call.parse::<Nothing>()?;
    Ok(info(call.session))
}

/// Whether pages get WebMCP. One of ours is started with it; one of somebody else shows it by its pages.
fn webmcp(session: &Session, browser: &Browser) -> Option<bool> {
    let shows = || {
        let mut pages = browser.pages().into_iter();
        pages.any(|page| browser.page_tools(page.id).support == Support::Native)
    };
    (session.slot.endpoint().is_none() || shows()).then_some(true)
}

fn info(session: &Session) -> ToolOutput {
    let browser = session.slot.peek();
    let data = json!({
        "name": crate::NAME,
        "version": crate::VERSION,
        "protocolEras": ["legacy"],
        "engine": if session.slot.endpoint().is_some() { "attach" } else { "native" },
        "browser": {
            "state": session.slot.state(),
            "generation": session.slot.generation(),
            "product": browser.as_ref().map(|browser| browser.product()),
            "headless": session.slot.is_headless(),
            "webmcp": browser.as_deref().map_or(Some(false), |browser| webmcp(session, browser)),
            "endpoint": session.slot.endpoint().map(ToString::to_string),
        },
        "session": {"workspace": session.workspace.root()},
        "upstreams": [],
        "localTools": {"count": names().len(), "names": names()},
        "cdp": {"enabled": false},
    });
    ToolOutput::with_data(format!("{data:#}"), &data)
}
