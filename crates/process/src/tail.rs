//! The bounded end of what a child wrote to stderr.

use std::collections::VecDeque;

const MAX_LINES: usize = 20;
const MAX_BYTES: usize = 16 * 1024;
const MAX_LINE: usize = 2 * 1024;

/// One line: its first bytes and how many more there were.
#[derive(Default)]
struct Line {
    head: Vec<u8>,
    more: usize,
}

impl Line {
    fn push(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.more += bytes.len() - room;
    }

    fn text(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.head);
        if self.more == 0 {
            let text = text.trim_end();
            return (!text.is_empty()).then(|| text.to_owned());
        }
        // The cut may have gone through a character.
        Some(format!("{}… [{} bytes more]", text.trim_end_matches('\u{FFFD}'), self.more))
    }
}

/// Keeps the last lines. Memory is bounded whatever comes in; a last line without its newline counts as well.
#[derive(Default)]
pub(crate) struct Tail {
    lines: VecDeque<Line>,
    open: Line,
    bytes: usize,
}

impl Tail {
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.open.push(&bytes[..end]);
            self.close_line();
            bytes = &bytes[end + 1..];
        }
        self.open.push(bytes);
    }

    fn close_line(&mut self) {
        let line = std::mem::take(&mut self.open);
        if line.text().is_none() {
            return;
        }
        self.bytes += line.head.len();
        self.lines.push_back(line);
        // The open line may add MAX_LINE bytes and one line.
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES - MAX_LINE {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.head.len());
        }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.lines.iter().chain([&self.open]).filter_map(Line::text).collect();
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chunks: &[&[u8]], expected: &[&str]) {
        let mut tail = Tail::default();
        chunks.iter().for_each(|chunk| tail.push(chunk));
        assert_eq!(tail.lines(), expected);
    }

    #[test]
    fn lines_are_joined_across_chunks() {
        check(&[b"on", b"e\r\n\n  two", b"\nthree"], &["one", "  two", "three"]);
        check(&[b"caf\xc3", b"\xa9\n"], &["café"]);
        check(&[b"bad \xff byte\n"], &["bad \u{FFFD} byte"]);
        check(&[], &[]);
    }

    #[test]
    fn the_last_twenty_lines_stay() {
        let mut tail = Tail::default();
        (0..100).for_each(|n| tail.push(format!("line {n}\n").as_bytes()));
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[19].as_str()), (20, "line 80", "line 99"));
        tail.push(b"open");
        assert_eq!(tail.lines().first().map(String::as_str), Some("line 81"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut tail = Tail::default();
        (0..64).for_each(|_| tail.push(&[b'x'; 16 * 1024]));
        let lines = tail.lines();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with(&format!("… [{} bytes more]", 1024 * 1024 - MAX_LINE)), "{}", lines[0]);
        (0..100).for_each(|_| tail.push(&[b'y'; 3000].iter().chain(b"\n").copied().collect::<Vec<_>>()));
        assert!(tail.lines().iter().map(String::len).sum::<usize>() < MAX_BYTES + 1024);
    }

    #[test]
    fn a_cut_character_leaves_no_trace() {
        let mut tail = Tail::default();
        tail.push(&[b"x".repeat(MAX_LINE - 1), "é!".into()].concat());
        let lines = tail.lines();
        assert!(lines[0].ends_with("x… [2 bytes more]"), "{}", lines[0]);
    }
}
