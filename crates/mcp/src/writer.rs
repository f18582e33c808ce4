//! The one task that owns an output stream.
//!
//! Everybody else holds an [`Outbox`]: whole messages go in, lines come out in the same order, so that no two
//! messages ever mix and nobody waits for a slow peer.

use tokio::io::{AsyncWrite, AsyncWriteExt, BufWriter};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const BUFFER: usize = 64 * 1024;

enum Item {
    Line(Vec<u8>),
    Finish(oneshot::Sender<()>),
}

/// A handle that queues lines for the writer task.
#[derive(Clone, Debug)]
pub struct Outbox {
    queue: mpsc::UnboundedSender<Item>,
    gone: CancellationToken,
}

impl Outbox {
    /// Queues one message (without a line end). Does nothing when the peer is gone.
    pub fn send(&self, mut message: Vec<u8>) {
        debug_assert!(!message.contains(&b'\n'), "a message is one line");
        message.push(b'\n');
        // An error means that the writer has ended: the peer cannot be told anything any more.
        let _ = self.queue.send(Item::Line(message));
    }

    /// Cancelled when the peer closed the stream: a write failed.
    #[must_use]
    pub fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// Whether the writer has ended; nothing more can be sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Waits until everything queued so far was written, then closes the output; what is sent later is dropped.
    /// Tells whether all of it could be written.
    ///
    /// A peer that neither reads nor closes makes this wait for ever: give it a time-out.
    pub async fn finish(&self) -> bool {
        let (done, written) = oneshot::channel();
        self.queue.send(Item::Finish(done)).is_ok() && written.await.is_ok()
    }
}

/// Starts the writer task. It ends on a write error, after [`Outbox::finish`], or when every [`Outbox`] is
/// dropped; in the last two cases after having written all that was queued.
pub fn spawn<W>(output: W) -> (Outbox, JoinHandle<()>)
where
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (queue, items) = mpsc::unbounded_channel();
    let outbox = Outbox { queue, gone: CancellationToken::new() };
    let gone = outbox.gone.clone();
    let task = tokio::spawn(async move {
        if let Err(error) = write_all(output, items).await {
            tracing::debug!(%error, "the peer closed the stream");
            gone.cancel();
        }
    });
    (outbox, task)
}

async fn write_all<W>(output: W, mut items: mpsc::UnboundedReceiver<Item>) -> std::io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    let mut output = BufWriter::with_capacity(BUFFER, output);
    let mut finish = None;
    while finish.is_none() {
        let Some(first) = items.recv().await else { break };
        let mut next = Some(first);
        while let Some(item) = next {
            match item {
                Item::Line(line) => output.write_all(&line).await?,
                Item::Finish(done) => {
                    finish = Some(done);
                    break;
                }
            }
            next = items.try_recv().ok();
        }
        output.flush().await?;
    }
    output.shutdown().await?;
    if let Some(done) = finish {
        // The one who asked may have stopped waiting.
        let _ = done.send(());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn lines_come_out_in_order_and_finish_waits_for_them() {
        let (near, mut far) = tokio::io::duplex(16);
        let (outbox, _task) = spawn(near);
        let mut expected = String::new();
        for number in 0..1000 {
            outbox.clone().send(number.to_string().into_bytes());
            expected.push_str(&format!("{number}\n"));
        }
        let reader = tokio::spawn(async move {
            let mut text = String::new();
            far.read_to_string(&mut text).await.unwrap();
            text
        });
        assert!(outbox.finish().await);
        assert_eq!(reader.await.unwrap(), expected);
        assert!(outbox.is_closed() && !outbox.gone().is_cancelled());
        outbox.send(b"late".to_vec());
        assert!(!outbox.finish().await);
    }

    #[tokio::test]
    async fn dropping_every_handle_writes_the_rest_and_closes() {
        let (near, mut far) = tokio::io::duplex(4);
        let (outbox, _task) = spawn(near);
        outbox.send(b"the last words".to_vec());
        drop(outbox);
        let mut text = String::new();
        far.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "the last words\n");
    }

    #[tokio::test]
    async fn a_closed_peer_ends_the_writer() {
        let (near, far) = tokio::io::duplex(16);
        let (outbox, task) = spawn(near);
        drop(far);
        outbox.send(vec![b'x'; 1 << 20]);
        outbox.gone().cancelled().await;
        assert!(!outbox.finish().await);
        outbox.send(b"nobody listens".to_vec());
        task.await.unwrap();
    }
}
