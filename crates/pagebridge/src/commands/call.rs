//! `pagebridge call URL TOOL key=value …`.

use std::io::Write;
use std::path::PathBuf;

use pagebridge_core::{ErrorKind, ToolError};
use pagebridge_server::output::ToolOutput;
use pagebridge_server::{Consequential, SessionOptions};
use serde_json::{Map, Value, json};

use super::open::Opened;
use super::tools::structured;
use super::{DONE, FAILED, USAGE, failed};
use crate::cli::CallArgs;
use crate::{App, printer};

/// Calls a tool of a page and prints its result.
pub async fn run(args: &CallArgs, app: &App) -> u8 {
    let arguments = match arguments(args) {
        Ok(arguments) => arguments,
        Err(mistake) => {
            printer::problem(&mistake);
            return USAGE;
        }
    };
    match call(args, app, arguments).await {
        Ok(output) => {
            print(args, &output);
            if output.is_error { FAILED } else { DONE }
        }
        Err(error) => failed(&error),
    }
}

async fn call(args: &CallArgs, app: &App, arguments: Map<String, Value>) -> Result<ToolOutput, ToolError> {
    let options = SessionOptions {
        browser: args.browser.options(),
        allow_file_urls: args.browser.allow_file_urls,
        // The user, who typed the command, is asked here rather than by the session.
        consequential: Consequential::Allow,
        page_tools_debugging: true,
        ..SessionOptions::new(PathBuf::from("."))
    };
    let opened = Opened::page(app, options, &args.url, args.wait).await?;
    let called = match consent(args, &opened).await {
        Ok(()) => {
            let timeout = u64::try_from(args.timeout.as_millis()).unwrap_or(u64::MAX).max(1);
            let call = json!({"tool": args.tool, "arguments": arguments, "timeoutMs": timeout});
            opened.run("page_call", call).await
        }
        Err(error) => Err(error),
    };
    opened.close().await;
    called
}

/// A tool that has consequences runs after a yes: on the command line, or at the terminal.
async fn consent(args: &CallArgs, opened: &Opened) -> Result<(), ToolError> {
    let listed = opened.run("page_tools", json!({"includeDebugging": true})).await?;
    let listed = structured(&listed);
    let tools = listed["pages"][0]["tools"].as_array().cloned().unwrap_or_default();
    let has_consequences =
        |tool: &Value| tool["name"] == args.tool.as_str() && tool["annotations"]["consequentialHint"] == true;
    if args.yes || !tools.iter().any(has_consequences) {
        return Ok(());
    }
    if !printer::stdin_is_terminal() {
        return Err(ToolError::not_run(
            ErrorKind::ConfirmationUnavailable,
            format!(
                "{:?} says that it has consequences (it may buy, send or delete); --yes runs it.",
                args.tool
            ),
        ));
    }
    let question = format!("{:?} says that it has consequences. Run it? [y/N] ", args.tool);
    match tokio::task::spawn_blocking(move || ask(&question)).await {
        Ok(true) => Ok(()),
        _ => Err(ToolError::not_run(ErrorKind::Declined, "Not run.")),
    }
}

fn ask(question: &str) -> bool {
    let _ = write!(std::io::stderr(), "{question}");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn print(args: &CallArgs, output: &ToolOutput) {
    if args.json {
        printer::result(&format!("{:#}", structured(output)));
        return;
    }
    for block in &output.blocks {
        match block["text"].as_str() {
            Some(text) => printer::result(text),
            None => printer::result(&block.to_string()),
        }
    }
    if !output.text.is_empty() {
        printer::note(&output.text);
    }
}

fn arguments(args: &CallArgs) -> Result<Map<String, Value>, String> {
    let Some(all) = &args.args else { return pairs(&args.pairs) };
    let text = match all.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| format!("{file} cannot be read: {error}"))?
        }
        None => all.clone(),
    };
    serde_json::from_str(&text).map_err(|error| format!("--args must be a JSON object: {error}"))
}

fn pairs(pairs: &[String]) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    for pair in pairs {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} is not key=value"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        arguments.insert(key.to_owned(), value);
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json_where_they_can_be() {
        let given: Vec<String> =
            ["a=1", "b=text", "c=\"1\"", "d={\"e\":[true]}", "größe=ü=ö"].map(Into::into).into();
        let expected = json!({"a": 1, "b": "text", "c": "1", "d": {"e": [true]}, "größe": "ü=ö"});
        assert_eq!(Value::Object(pairs(&given).unwrap()), expected);
        assert!(pairs(&["nothing".into()]).is_err());
    }
}
