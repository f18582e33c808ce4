//! The bridge on standard input and output: one client, one session.

use std::sync::Arc;
use std::time::Duration;

use pagebridge_mcp::server::{Ended, serve};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::handler::SessionHandler;
use crate::session::Session;

/// At the end calls under way get this long to finish. With the teardown it stays below four seconds, after which
/// common clients send SIGKILL.
const DRAIN: Duration = Duration::from_millis(1_200);
/// For ending the browser and whatever else was started.
const TEARDOWN: Duration = Duration::from_millis(2_000);

/// Serves one client until it goes or `shutdown` fires, then ends everything that the session started.
pub async fn serve_stdio(
    session: Arc<Session>,
    input: impl AsyncRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    shutdown: CancellationToken,
) -> Ended {
    let handler = Arc::new(SessionHandler::new(session.clone()));
    let ended = serve(handler, input, output, shutdown, DRAIN).await;
    session.shutdown(TEARDOWN).await;
    ended
}
