//! `pagebridge client-config CLIENT`: the snippet that an MCP client needs.

use serde_json::json;

use super::DONE;
use crate::cli::{Client, ClientConfigArgs};
use crate::printer;

/// Prints the snippet to stdout and says on stderr where it goes.
pub fn run(args: &ClientConfigArgs) -> u8 {
    let command = std::env::current_exe()
        .ok()
        .and_then(|path| path.to_str().map(str::to_owned))
        .unwrap_or_else(|| "pagebridge".into());
    let (place, snippet) = snippet(args.client, &command, args.no_sandbox);
    printer::note(place);
    printer::result(&snippet);
    DONE
}

fn snippet(client: Client, command: &str, no_sandbox: bool) -> (&'static str, String) {
    let arguments: &[&str] = if no_sandbox { &["serve", "--no-sandbox"] } else { &["serve"] };
    let server = json!({"command": command, "args": arguments});
    let standard = json!({"mcpServers": {"pagebridge": server}});
    match client {
        Client::ClaudeCode => (
            "# .mcp.json in the project's folder, or: claude mcp add pagebridge -- pagebridge serve",
            format!("{standard:#}"),
        ),
        Client::Cursor => {
            ("# ~/.cursor/mcp.json, or .cursor/mcp.json in the project's folder", format!("{standard:#}"))
        }
        Client::ClaudeDesktop => {
            ("# claude_desktop_config.json (Settings, Developer, Edit Config)", format!("{standard:#}"))
        }
        Client::Vscode => {
            let typed = json!({"type": "stdio", "command": command, "args": arguments});
            ("# .vscode/mcp.json", format!("{:#}", json!({"servers": {"pagebridge": typed}})))
        }
        Client::Codex => {
            // JSON strings without escapes that TOML lacks: TOML's basic strings know all of JSON's escapes but `\/`.
            let toml = format!(
                "[mcp_servers.pagebridge]\ncommand = {}\nargs = {}",
                json!(command),
                json!(arguments)
            );
            ("# ~/.codex/config.toml", toml)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_gets_the_command_and_its_arguments() {
        for client in
            [Client::ClaudeCode, Client::Cursor, Client::ClaudeDesktop, Client::Vscode, Client::Codex]
        {
            let (_, snippet) = snippet(client, "/opt/page \"bridge\"", true);
            assert!(
                snippet.contains(r#""/opt/page \"bridge\"""#) && snippet.contains("--no-sandbox"),
                "{snippet}"
            );
            if client != Client::Codex {
                serde_json::from_str::<serde_json::Value>(&snippet).unwrap();
            }
        }
    }
}
