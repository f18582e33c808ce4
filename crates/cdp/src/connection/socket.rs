//! The transport of a browser that somebody else runs: JSON texts as WebSocket messages.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::{CdpSession, Event, Events, Shared};
use crate::pipe::{Frame, HEAD, MESSAGE_LIMIT};

/// A WebSocket over which nothing was said yet.
pub(crate) type Socket = WebSocketStream<TcpStream>;

/// A message is read up to this many times the limit, so that one beyond the limit can fail its own call. One
/// beyond this ends the connection: there is no way to pass it over.
const READ_BEYOND: usize = 2;
const READ_BUFFER: usize = 256 * 1024;
/// For the other side to take our good-bye.
const GOOD_BYE: Duration = Duration::from_millis(250);

/// Makes a stream a WebSocket. `host` goes into the header as it is.
pub(crate) async fn open(
    stream: TcpStream,
    host: &str,
    path: &str,
    authorization: Option<&str>,
) -> Result<Socket, Error> {
    let mut request = format!("ws://{host}{path}").into_client_request()?;
    if let Some(authorization) = authorization {
        let mut value = HeaderValue::from_str(authorization)?;
        value.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, value);
    }
    let (socket, _) = client_async_with_config(request, stream, Some(config(MESSAGE_LIMIT))).await?;
    Ok(socket)
}

fn config(limit: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_message_size(Some(limit * READ_BEYOND))
        .max_frame_size(Some(limit * READ_BEYOND))
}

/// Starts the client on a WebSocket. Closing it from our side detaches and never ends the browser.
pub(crate) fn connect(socket: Socket, limit: usize) -> (CdpSession, Events) {
    let (shared, queue) = Shared::new();
    let (events, receiver) = mpsc::unbounded_channel();
    let (sink, stream) = socket.split();
    tokio::spawn(write(sink, queue, shared.clone()));
    tokio::spawn(read(stream, events, shared.clone(), limit));
    (CdpSession { shared, id: None }, receiver)
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
    shared: Arc<Shared>,
) {
    let writing = async {
        while let Some(message) = queue.recv().await {
            // What we encode is UTF-8.
            let Ok(text) = String::from_utf8(message) else { continue };
            if sink.send(Message::text(text)).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = writing => {}
        () = shared.closed.cancelled() => {}
    }
    let _ = tokio::time::timeout(GOOD_BYE, sink.close()).await;
}

async fn read(
    mut stream: SplitStream<Socket>,
    events: mpsc::UnboundedSender<Event>,
    shared: Arc<Shared>,
    limit: usize,
) {
    while let Some(Some(message)) = shared.closed.run_until_cancelled(stream.next()).await {
        let bytes = match message {
            Ok(Message::Text(text)) => text.as_bytes().to_vec(),
            Ok(Message::Binary(bytes)) => bytes.to_vec(),
            // Pings are answered by the library.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
            Ok(Message::Close(_)) => break,
            Err(error) => {
                tracing::debug!(%error, "the connection to the browser broke");
                break;
            }
        };
        shared.dispatch(frame(bytes, limit), &events);
    }
    shared.close();
}

fn frame(mut bytes: Vec<u8>, limit: usize) -> Frame {
    if bytes.len() <= limit {
        return Frame::Message(bytes);
    }
    let size = bytes.len();
    bytes.truncate(HEAD);
    Frame::Oversized { head: bytes, bytes: size }
}

#[cfg(test)]
mod tests;
