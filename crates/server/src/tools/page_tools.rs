//! `page_tools` and `page_call`: the fixed pair that serves every client, also those that read the list once.

use std::time::Duration;

use pagebridge_browser::{Annotations, Browser, PageInfo, PageTool, Skipped, Support};
use pagebridge_core::{ErrorKind, ToolError, limits, schema, text};
use serde::Deserialize;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Call, definition, object};
use crate::listing::{Entry, Listing, named};
use crate::output::ToolOutput;
use crate::page_call::{self, Wanted};

pub(super) fn definitions() -> Vec<Value> {
    let page = json!({"type": "integer", "description": "Number of the page; the selected page if absent."});
    let mut list = definition(
        "page_tools",
        "Page tools",
        "Lists the tools that the open page offers of its own (WebMCP), with their schemas. Look here first: a page's own tools are surer and faster than clicking.",
        object(
            json!({
                "query": {"type": "string", "description": "Only tools whose name, title or description has these words."},
                "pageId": page,
                "allPages": {"type": "boolean", "description": "The tools of all pages."},
                "includeDebugging": {"type": "boolean", "description": "Also the page's developer tools."},
            }),
            &[],
        ),
        json!({"readOnlyHint": true, "openWorldHint": true}),
    );
    let mut call = definition(
        "page_call",
        "Call page tool",
        "Calls a tool that the open page offers. Arguments are checked against its schema. Tells what the page answered, where it went and which tools came and went.",
        object(
            json!({
                "tool": {"type": "string", "description": "Name of the tool, as page_tools lists it."},
                "arguments": {"type": "object", "description": "Arguments by the tool's schema."},
                "pageId": page,
                "frameId": {"type": "string", "description": "Frame, where several offer the tool."},
                "timeoutMs": {"type": "integer", "minimum": 1, "description": "Most milliseconds to wait."},
            }),
            &["tool"],
        ),
        json!({"destructiveHint": true, "openWorldHint": true}),
    );
    for tool in [&mut list, &mut call] {
        // Clients that load tools on demand are to have these at once.
        tool["_meta"] = json!({"anthropic/alwaysLoad": true});
    }
    vec![list, call]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct List {
    query: Option<String>,
    page_id: Option<u32>,
    #[serde(default)]
    all_pages: bool,
    #[serde(default)]
    include_debugging: bool,
}

#[derive(Serialize)]
struct Listed {
    pages: Vec<ListedPage>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedPage {
    page_id: u32,
    url: String,
    support: Support,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    tools: Vec<ListedTool>,
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool {
    name: String,
    exposed_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    description: String,
    source: &'static str,
    origin: String,
    frame_id: String,
    input_schema: Value,
    annotations: Annotations,
    #[serde(skip_serializing_if = "Option::is_none")]
    registered_at: Option<String>,
}

pub(super) async fn list(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: List = call.parse()?;
    let (browser, pages) = pages(call, &wanted)?;
    let mut listed = Listed { pages: Vec::new() };
    for page in pages {
        if browser.dialog(page.id).is_none() {
            // A page that has just loaded may be telling its tools this moment.
            browser.settle(page.id).await;
        }
        listed.pages.push(listed_page(call, &browser, &page, &wanted));
    }
    Ok(ToolOutput::with_data(as_text(&listed), &listed))
}

fn pages(call: &Call<'_>, wanted: &List) -> Result<(std::sync::Arc<Browser>, Vec<PageInfo>), ToolError> {
    let (browser, page) = call.session.page(wanted.page_id)?;
    match (wanted.all_pages, wanted.page_id) {
        (true, Some(_)) => {
            Err(ToolError::not_run(ErrorKind::InvalidArguments, "Give either pageId or allPages, not both."))
        }
        (true, None) => Ok((browser.clone(), browser.pages())),
        (false, _) => Ok((browser, vec![page])),
    }
}

fn listed_page(call: &Call<'_>, browser: &Browser, page: &PageInfo, wanted: &List) -> ListedPage {
    let list = browser.page_tools(page.id);
    let mut skipped = list.skipped;
    let with_debugging = wanted.include_debugging || call.session.options.page_tools_debugging;
    let own = Listing::of(browser, page.id, &call.session.options);
    let (mut tools, mut schema_bytes, mut left_out) = (Vec::new(), 0, 0);
    for entry in &named(list.tools) {
        let name = &entry.tool.definition.name;
        if entry.tool.definition.annotations.debugging && !with_debugging {
            skipped.push(Skipped {
                name: name.clone(),
                reason: "a developer tool of the page (includeDebugging shows it)".into(),
            });
        } else if matches(&entry.tool, wanted.query.as_deref()) {
            let has_own = call.session.options.dynamic_tools
                && own.dynamic().iter().any(|own| own.exposed == entry.exposed);
            let tool = listed_tool(entry, has_own);
            schema_bytes += tool.input_schema.to_string().len();
            if tools.len() < limits::LISTED_TOOLS.0 && schema_bytes <= limits::LISTED_TOOLS.1 {
                tools.push(tool);
            } else {
                left_out += 1;
            }
        }
    }
    let more = format!("{left_out} further tools are not shown: query narrows the list.");
    let crashed = "The page's renderer process crashed; navigate_page loads it again.".to_owned();
    let reasons = [
        list.reason.filter(|_| !page.crashed),
        page.crashed.then_some(crashed),
        (left_out > 0).then_some(more),
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    skipped.truncate(limits::LISTED_TOOLS.0);
    ListedPage {
        page_id: page.id.0,
        url: text::one_line(&page.url, limits::SHORT_TEXT_CHARS),
        support: list.support,
        reason: (!reasons.is_empty()).then(|| reasons.join(" ")),
        tools,
        skipped,
    }
}

fn matches(tool: &PageTool, query: Option<&str>) -> bool {
    let Some(query) = query else { return true };
    let definition = &tool.definition;
    let title = definition.title.as_deref().unwrap_or_default();
    let text = format!("{} {title} {}", definition.name, definition.description).to_lowercase();
    query.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

fn listed_tool(entry: &Entry, has_own: bool) -> ListedTool {
    let definition = &entry.tool.definition;
    let shown = schema::exposed(definition.schema.as_ref());
    let description = [Some(definition.description.clone()), shown.note].into_iter().flatten();
    ListedTool {
        name: definition.name.clone(),
        exposed_name: has_own.then(|| entry.exposed.clone()),
        title: definition.title.clone(),
        description: description.collect::<Vec<_>>().join("\n"),
        source: "webmcp",
        origin: entry.tool.origin.clone(),
        frame_id: entry.tool.frame.to_string(),
        input_schema: shown.schema,
        annotations: definition.annotations,
        registered_at: definition.registered_at.clone(),
    }
}

/// The list for clients that show only text. Page words are quoted, so that they cannot pose as ours.
fn as_text(listed: &Listed) -> String {
    let mut lines = Vec::new();
    for page in &listed.pages {
        lines.push(format!("Page {} at {}: {} tools.", page.page_id, page.url, page.tools.len()));
        lines.extend(page.reason.clone());
        for tool in &page.tools {
            let description = text::one_line(&tool.description, limits::DESCRIPTION_CHARS);
            lines.push(format!("- {}: {} {}", tool.name, text::quoted(&description), tool.input_schema));
        }
        let skipped: Vec<String> =
            page.skipped.iter().map(|s| format!("{} ({})", s.name, s.reason)).collect();
        if !skipped.is_empty() {
            lines.push(format!("Left out: {}.", skipped.join("; ")));
        }
    }
    lines.join("\n")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PageCall {
    tool: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
    page_id: Option<u32>,
    frame_id: Option<String>,
    timeout_ms: Option<u64>,
}

pub(super) async fn call(call: &Call<'_>) -> Result<ToolOutput, ToolError> {
    let wanted: PageCall = call.parse()?;
    let meant = Wanted { tool: &wanted.tool, page: wanted.page_id, frame: wanted.frame_id.as_deref() };
    page_call::until_arrived(call.session, wanted.page_id, &call.cancel).await?;
    let (browser, entry) = page_call::find(call.session, &meant)?;
    let deadline = wanted.timeout_ms.map(Duration::from_millis);
    let arguments = wanted.arguments.unwrap_or_default();
    page_call::call(call.session, &browser, &entry.tool, &arguments, deadline, call.cancel.clone()).await
}
