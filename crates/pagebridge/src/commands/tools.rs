//! `pagebridge tools URL`.

use std::path::PathBuf;

use pagebridge_core::ToolError;
use pagebridge_server::SessionOptions;
use pagebridge_server::output::ToolOutput;
use serde_json::{Value, json};

use super::open::Opened;
use super::{DONE, failed};
use crate::cli::ToolsArgs;
use crate::{App, printer};

/// Lists the tools of a page.
pub async fn run(args: &ToolsArgs, app: &App) -> u8 {
    match list(args, app).await {
        Ok(listed) => {
            let page = &listed["pages"][0];
            if args.json {
                printer::result(&format!("{page:#}"));
            } else {
                print_for_people(page);
            }
            DONE
        }
        Err(error) => failed(&error),
    }
}

async fn list(args: &ToolsArgs, app: &App) -> Result<Value, ToolError> {
    let options = SessionOptions {
        browser: args.browser.options(),
        allow_file_urls: args.browser.allow_file_urls,
        ..SessionOptions::new(PathBuf::from("."))
    };
    let opened = Opened::page(app, options, &args.url, args.wait).await?;
    let listed = opened.run("page_tools", json!({"includeDebugging": args.debugging})).await;
    opened.close().await;
    Ok(structured(&listed?))
}

/// The structured part of an output as a value.
pub fn structured(output: &ToolOutput) -> Value {
    let raw = output.structured.as_ref().map_or("null", |raw| raw.get());
    serde_json::from_str(raw).unwrap_or_default()
}

fn print_for_people(page: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let tools = page["tools"].as_array().cloned().unwrap_or_default();
    printer::result(&format!(
        "{} tools at {} (WebMCP: {})",
        tools.len(),
        text(&page["url"]),
        text(&page["support"])
    ));
    if let Some(reason) = page["reason"].as_str() {
        printer::result(reason);
    }
    for tool in &tools {
        printer::result("");
        let title = tool["title"].as_str().map(|title| format!("  ({title})")).unwrap_or_default();
        printer::result(&format!("{}{title}{}", text(&tool["name"]), hints(tool)));
        printer::result(&format!("  {}", text(&tool["description"]).replace('\n', "\n  ")));
        printer::result(&format!("  from {}  frame {}", text(&tool["origin"]), text(&tool["frameId"])));
        if let Some(site) = tool["registeredAt"].as_str() {
            printer::result(&format!("  registered at {site}"));
        }
        printer::result(&format!("  {}", tool["inputSchema"]));
    }
    for skipped in page["skipped"].as_array().into_iter().flatten() {
        printer::result(&format!("\nleft out: {}: {}", text(&skipped["name"]), text(&skipped["reason"])));
    }
}

fn hints(tool: &Value) -> String {
    let names = [
        ("readOnlyHint", "says it is read-only"),
        ("consequentialHint", "has consequences"),
        ("untrustedContentHint", "untrusted content"),
        ("debugging", "for developers"),
    ];
    let given: Vec<&str> =
        names.iter().filter(|(hint, _)| tool["annotations"][hint] == true).map(|(_, words)| *words).collect();
    if given.is_empty() { String::new() } else { format!("  [{}]", given.join(", ")) }
}
