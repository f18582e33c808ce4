//! A page opened for one command, with the session and browser around it.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_core::{ErrorKind, ToolError};
use pagebridge_server::output::ToolOutput;
use pagebridge_server::{Session, SessionOptions, tools};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::App;

const TEARDOWN: Duration = Duration::from_secs(4);

/// A session that ends with the command.
pub struct Opened {
    session: Arc<Session>,
    cancel: CancellationToken,
}

impl Opened {
    /// Opens the address. `wait` milliseconds are waited for a first tool.
    pub async fn page(app: &App, options: SessionOptions, url: &str, wait: u64) -> Result<Self, ToolError> {
        let session = Session::new(app.supervisor.clone(), options);
        let cancel = CancellationToken::new();
        let interrupted = cancel.clone();
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                interrupted.cancel();
            }
        });
        let opened = Self { session, cancel };
        let mut arguments = json!({"url": full_address(url)});
        if wait > 0 {
            arguments["waitForTools"] = json!(wait);
        }
        match opened.run("new_page", arguments).await {
            Ok(_) => Ok(opened),
            Err(error) => {
                opened.close().await;
                Err(error)
            }
        }
    }

    /// Runs a local tool.
    pub async fn run(&self, name: &str, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments = arguments.as_object().cloned().unwrap_or_else(Map::new);
        let call = tools::Call { session: &self.session, arguments, cancel: self.cancel.clone() };
        let unknown = || ToolError::not_run(ErrorKind::NotFound, format!("there is no tool {name}"));
        tools::run(name, call).await.unwrap_or_else(|| Err(unknown()))
    }

    /// Ends the browser.
    pub async fn close(self) {
        self.session.shutdown(TEARDOWN).await;
    }
}

/// People leave the scheme away: local hosts get `http`, all others `https`.
fn full_address(url: &str) -> String {
    let host = url.split(['/', ':']).next().unwrap_or_default();
    let has_scheme = url.split_once(':').is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && (rest.starts_with("//") || ["about", "data", "file", "view-source"].contains(&scheme))
    });
    match host {
        _ if has_scheme => url.to_owned(),
        "localhost" | "127.0.0.1" | "[" => format!("http://{url}"),
        _ => format!("https://{url}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed_the_way_people_mean_them() {
        for (given, meant) in [
            ("http://x/", "http://x/"),
            ("about:blank", "about:blank"),
            ("data:text/html,x", "data:text/html,x"),
            ("localhost:8080/a", "http://localhost:8080/a"),
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("[::1]:80", "http://[::1]:80"),
            ("example.com", "https://example.com"),
            ("example.com:8443/x", "https://example.com:8443/x"),
        ] {
            assert_eq!(full_address(given), meant);
        }
    }
}
