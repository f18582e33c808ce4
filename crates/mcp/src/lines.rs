//! Lines from a byte stream, bounded (spec: Transports, "stdio": messages are delimited by newlines).
//!
//! Lines are bytes, not text: a line that is not UTF-8 is a bad message, never the end of the stream, and no
//! character is cut by a chunk border, because only whole lines are decoded.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is accepted unless told otherwise: 64 MiB.
pub const DEFAULT_LIMIT: usize = 64 * 1024 * 1024;

const CHUNK: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a [`LineReader`] yields.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// One line without its line end, never blank.
    Line(Vec<u8>),
    /// A line over the limit, thrown away as it came.
    TooLong {
        /// How long the line was, without its newline.
        bytes: u64,
    },
}

/// Splits a stream at `\n`. Memory stays bounded by the limit, whatever the peer sends.
#[derive(Debug)]
pub struct LineReader<R> {
    input: BufReader<R>,
    limit: usize,
    line: Vec<u8>,
    /// Length of the over-long line being thrown away.
    discarded: Option<u64>,
    at_start: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// A reader with the default limit.
    pub fn new(input: R) -> Self {
        Self::with_limit(input, DEFAULT_LIMIT)
    }

    /// A reader that throws away lines of more than `limit` bytes.
    pub fn with_limit(input: R, limit: usize) -> Self {
        let input = BufReader::with_capacity(CHUNK, input);
        Self { input, limit, line: Vec::new(), discarded: None, at_start: true }
    }

    /// The limit in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The next frame, or `None` at the end of input. A last line without a newline counts.
    ///
    /// Skips blank lines, drops a `\r` before the newline and a byte order mark at the very start. Safe to cancel:
    /// what was read so far is kept in the reader.
    ///
    /// # Errors
    ///
    /// What the stream reports, except for interruptions, which are retried.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let chunk = match self.input.fill_buf().await {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                return Ok(self.take_frame());
            }
            let newline = memchr::memchr(b'\n', chunk);
            let part = &chunk[..newline.unwrap_or(chunk.len())];
            let used = part.len() + usize::from(newline.is_some());
            append(&mut self.line, &mut self.discarded, self.limit, part);
            self.input.consume(used);
            if newline.is_some() {
                if let Some(frame) = self.take_frame() {
                    return Ok(Some(frame));
                }
            }
        }
    }

    /// Ends the current line; `None` when there is nothing but white space in it.
    fn take_frame(&mut self) -> Option<Frame> {
        let at_start = std::mem::replace(&mut self.at_start, false);
        if let Some(bytes) = self.discarded.take() {
            return Some(Frame::TooLong { bytes });
        }
        let mut line = std::mem::take(&mut self.line);
        if at_start && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (!line.trim_ascii().is_empty()).then_some(Frame::Line(line))
    }
}

fn append(line: &mut Vec<u8>, discarded: &mut Option<u64>, limit: usize, part: &[u8]) {
    if let Some(bytes) = discarded {
        *bytes += part.len() as u64;
    } else if line.len() + part.len() > limit {
        *discarded = Some((line.len() + part.len()) as u64);
        // Gives the memory back, not only the contents.
        *line = Vec::new();
    } else {
        line.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn frames(input: &[u8], limit: usize) -> Vec<Frame> {
        let mut reader = LineReader::with_limit(input, limit);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await.unwrap() {
            frames.push(frame);
        }
        frames
    }

    fn line(text: &str) -> Frame {
        Frame::Line(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn line_ends_blank_lines_and_the_last_line() {
        let got = frames(b"a\r\n\n \t\r\nb\n\r\nc", 10).await;
        assert_eq!(got, [line("a"), line("b"), line("c")]);
        assert!(frames(b"", 10).await.is_empty());
        assert!(frames(b"\n\r\n  ", 10).await.is_empty());
    }

    #[tokio::test]
    async fn a_byte_order_mark_is_dropped_only_at_the_very_start() {
        assert_eq!(frames(b"\xEF\xBB\xBFa\n\xEF\xBB\xBFb", 10).await, [line("a"), line("\u{feff}b")]);
        assert_eq!(frames(b"\xEF\xBB\xBF\r\na", 10).await, [line("a")]);
    }

    #[tokio::test]
    async fn bytes_that_are_not_utf8_are_a_line_too() {
        assert_eq!(frames(b"\xFF\xFE\na", 10).await, [Frame::Line(vec![0xFF, 0xFE]), line("a")]);
    }

    #[tokio::test]
    async fn long_lines_are_thrown_away_and_counted() {
        let got = frames(b"1234\n12345\n123456789\nab\n12345", 4).await;
        let long = |bytes| Frame::TooLong { bytes };
        assert_eq!(got, [line("1234"), long(5), long(9), line("ab"), long(5)]);
    }

    #[tokio::test]
    async fn a_long_line_takes_no_more_memory_than_the_limit() {
        let endless = tokio::io::repeat(b'x').take(8 << 20).chain(&b"\nok\n"[..]);
        let mut reader = LineReader::with_limit(endless, 1 << 20);
        assert_eq!(reader.next().await.unwrap(), Some(Frame::TooLong { bytes: 8 << 20 }));
        assert_eq!(reader.line.capacity(), 0);
        assert_eq!(reader.next().await.unwrap(), Some(line("ok")));
    }

    /// A small linear congruential generator: the borders are random, the test is repeatable.
    fn random(state: &mut u64, below: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(*state >> 33).unwrap() % below
    }

    #[tokio::test]
    async fn text_survives_any_chunk_border() {
        let texts = ["{\"t\":\"日本語👩‍👩‍👧‍👦\"}", "한국어 🏴‍☠️", "é\u{feff}\u{2028}𝄞"];
        let stream = format!("\u{feff}{}\r\n\n{}\n{}", texts[0], texts[1], texts[2]);
        for seed in 0..300 {
            let (mut near, far) = tokio::io::duplex(7);
            let bytes = stream.clone().into_bytes();
            let sender = tokio::spawn(async move {
                let (mut state, mut at) = (seed, 0);
                while at < bytes.len() {
                    let end = (at + 1 + random(&mut state, 5)).min(bytes.len());
                    near.write_all(&bytes[at..end]).await.unwrap();
                    tokio::task::yield_now().await;
                    at = end;
                }
            });
            let mut reader = LineReader::new(far);
            for text in texts {
                assert_eq!(reader.next().await.unwrap(), Some(line(text)));
            }
            assert_eq!(reader.next().await.unwrap(), None);
            sender.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_cancelled_read_loses_nothing() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = LineReader::new(far);
        near.write_all(b"half").await.unwrap();
        let brief = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(brief, reader.next()).await.is_err());
        near.write_all(b" and half\n").await.unwrap();
        assert_eq!(reader.next().await.unwrap(), Some(line("half and half")));
    }
}
