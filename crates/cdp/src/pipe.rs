//! The transport: JSON texts, each ended by a NUL byte, on two byte streams.

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// Largest message that is read, in bytes. A larger one fails its own call and nothing else.
pub const MESSAGE_LIMIT: usize = 256 * 1024 * 1024;
/// How much of an oversized message is kept, to find the call that it answers.
pub(crate) const HEAD: usize = 256;
const CHUNK: usize = 256 * 1024;
/// A read buffer that grew for one large message is given back when it exceeds this.
const KEEP_CAPACITY: usize = 4 * 1024 * 1024;

/// What the reader found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Message(Vec<u8>),
    Oversized { head: Vec<u8>, bytes: usize },
}

/// Splits a byte stream into messages.
pub(crate) struct FrameReader<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that are known to hold no NUL.
    scanned: usize,
    /// Set while an oversized message is being thrown away.
    oversized: Option<(Vec<u8>, usize)>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(input: R, limit: usize) -> Self {
        Self { input, limit, buffer: Vec::new(), scanned: 0, oversized: None }
    }

    /// The next message; `None` when the stream has ended (an unfinished message is dropped).
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(frame);
            }
            self.discard_if_oversized();
            self.buffer.reserve(CHUNK);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn take_frame(&mut self) -> Option<Frame> {
        let Some(offset) = memchr(0, &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + offset;
        let rest = self.buffer.split_off(end + 1);
        let mut message = std::mem::replace(&mut self.buffer, rest);
        message.pop();
        self.scanned = 0;
        match self.oversized.take() {
            Some((head, bytes)) => Some(Frame::Oversized { head, bytes: bytes + message.len() }),
            None if message.len() > self.limit => {
                let bytes = message.len();
                message.truncate(HEAD);
                Some(Frame::Oversized { head: message, bytes })
            }
            None => {
                if message.capacity() > KEEP_CAPACITY {
                    message.shrink_to_fit();
                }
                Some(Frame::Message(message))
            }
        }
    }

    fn discard_if_oversized(&mut self) {
        match &mut self.oversized {
            Some((_, bytes)) => {
                *bytes += self.buffer.len();
                self.buffer.clear();
            }
            None if self.buffer.len() > self.limit => {
                let head = self.buffer[..HEAD.min(self.buffer.len())].to_vec();
                self.oversized = Some((head, self.buffer.len()));
                self.buffer = Vec::new();
            }
            None => {}
        }
        self.scanned = self.buffer.len();
    }
}

/// Writes queued messages until the queue or the pipe closes.
pub(crate) async fn write_all(
    mut output: impl AsyncWrite + Unpin,
    mut queue: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(mut message) = queue.recv().await {
        message.push(0);
        if output.write_all(&message).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn frames(input: &[u8], limit: usize) -> Vec<Frame> {
        let mut reader = FrameReader::new(input, limit);
        let mut found = Vec::new();
        while let Some(frame) = reader.next().await {
            found.push(frame);
        }
        found
    }

    #[tokio::test]
    async fn messages_are_split_at_nul_and_an_unfinished_one_is_dropped() {
        let found = frames(b"{}\0{\"a\":1}\0\0half", 100).await;
        let texts: Vec<_> = found.iter().map(|f| matches!(f, Frame::Message(_))).collect();
        assert_eq!(texts, [true, true, true]);
        assert_eq!(found[1], Frame::Message(b"{\"a\":1}".to_vec()));
    }

    #[tokio::test]
    async fn an_oversized_message_costs_only_itself() {
        let mut input = br#"{"id":9,"#.to_vec();
        input.extend(vec![b'x'; 3 * CHUNK]);
        input.extend(b"\0{}\0");
        let bytes = input.len() - 4;
        let found = frames(&input, 1_000).await;
        let Frame::Oversized { head, bytes: seen } = &found[0] else { panic!("{:?}", found[0]) };
        assert!(head.starts_with(br#"{"id":9"#) && head.len() <= HEAD);
        assert_eq!(*seen, bytes);
        assert_eq!(found[1], Frame::Message(b"{}".to_vec()));
    }
}
