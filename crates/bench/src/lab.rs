//! What every measurement needs: the page, the three ways to reach it, and the owner of all that is started.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use pagebridge_browser::BrowserOptions;
use pagebridge_process::Supervisor;
use pagebridge_testkit::site::Site;
use serde_json::{Value, json};

use crate::bare::Bare;
use crate::server::{Command, Server, text_of};

/// The page tool that is called.
pub const TOOL: &str = "add";
const PATH: &str = "/bench";
const PAGE: &str = r#"<!doctype html>
<html lang="en"><title>Bench</title><h1>Bench</h1>
<script>
document.modelContext.registerTool({
  name: "add",
  description: "Adds two numbers.",
  inputSchema: {
    type: "object",
    properties: { a: { type: "number" }, b: { type: "number" } },
    required: ["a", "b"],
  },
  execute: ({ a, b }) => ({ sum: a + b }),
});
</script>
"#;

/// The laboratory.
pub struct Lab {
    /// Starts and ends everything.
    pub supervisor: Supervisor,
    /// How pagebridge is started.
    pub product: Command,
    /// How chrome-devtools-mcp is started, when it is there.
    pub peer: Option<Command>,
    browser: PathBuf,
    options: BrowserOptions,
    site: Site,
}

impl Lab {
    /// Sets it up, the page server running.
    pub fn new(
        supervisor: Supervisor,
        product: Command,
        peer: Option<Command>,
        browser: PathBuf,
        no_sandbox: bool,
    ) -> Self {
        let site = Site::start();
        site.page(PATH, PAGE);
        let options = BrowserOptions { no_sandbox, ..BrowserOptions::default() };
        Self { supervisor, product, peer, browser, options, site }
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        self.site.url(PATH)
    }

    /// Starts the bare Chromium with the page.
    pub async fn bare(&self) -> anyhow::Result<(Bare, Duration)> {
        Bare::start(&self.supervisor, &self.browser, &self.options, &self.url(), TOOL).await
    }

    /// Starts a server.
    pub async fn server(&self, command: &Command) -> anyhow::Result<(Server, Duration)> {
        Server::start(&self.supervisor, command).await
    }

    /// Has a server open the page. Gives the page's number there, and the time that it took.
    pub async fn open(&self, server: &Server) -> anyhow::Result<(u64, Duration)> {
        let url = self.url();
        let (result, took) = server.call("new_page", &json!({"url": url})).await?;
        let number = page_number(&text_of(&result), &url).context("new_page tells no number of the page")?;
        Ok((number, took))
    }
}

/// Finds the line `2: http://127.0.0.1:1234/bench …` that both servers write.
fn page_number(text: &str, url: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (number, rest) = line.trim().split_once(": ")?;
        rest.contains(url).then(|| number.parse().ok())?
    })
}

/// The arguments of a call of the tool, different each time, and the sum that it must give.
pub fn arguments(turn: usize) -> (Value, u64) {
    let turn = turn as u64;
    (json!({"a": turn, "b": 1_000}), turn + 1_000)
}

/// Checks what a call gave; each way of calling dresses the sum differently.
pub fn check(answer: &Value, sum: u64) -> anyhow::Result<()> {
    let text = answer.to_string().replace(['\\', ' '], "");
    ensure!(text.contains(&format!("\"sum\":{sum}")), "a call gave {answer} instead of {sum}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_found_in_a_list() {
        let text = "Opened.\n## Pages\n1: about:blank\n2: http://h/bench \"Bench\" [selected]";
        assert_eq!(page_number(text, "http://h/bench"), Some(2));
        assert_eq!(page_number("at http://h/bench.", "http://h/bench"), None);
    }

    #[test]
    fn a_sum_is_recognised_in_any_dress() {
        check(&json!({"sum": 1_001}), 1_001).unwrap();
        check(&json!({"content": [{"text": "{\n  \"output\": {\n    \"sum\": 1001\n  }\n}"}]}), 1_001)
            .unwrap();
        check(&json!({"sum": 2}), 1_001).unwrap_err();
    }
}
