//! Page text made safe to show: bounded, and free of characters that hide or reorder what a reader sees.

/// Removes control, bidi, zero-width, tag and escape characters. Line feeds and tabs stay.
///
/// Zero-width joiners stay between two non-ASCII characters, where scripts and emoji need them.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && out.chars().next_back().is_some_and(|before| !before.is_ascii())
            && rest.peek().is_some_and(|after| !after.is_ascii());
        if joins || !is_hidden(c) {
            out.push(c);
        }
    }
    out
}

/// Whether a character hides or reorders what a reader sees.
pub(crate) fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{feff}' => true,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// Cleans a text and keeps its first `max_chars` characters, with a mark that tells how much is missing.
pub fn bounded(text: &str, max_chars: usize) -> String {
    // Cleaning only ever shortens, so a little more than the limit is all that must be looked at.
    let looked_at: String = text.chars().take(max_chars.saturating_mul(2)).collect();
    let cleaned = clean(&looked_at);
    let total = text.chars().count();
    if total <= max_chars {
        return cleaned;
    }
    let head: String = cleaned.chars().take(max_chars).collect();
    format!("{head}… [cut: {total} characters in all]")
}

/// Like [`bounded`], on one line: for titles, addresses and whatever stands inside a line of ours.
pub fn one_line(text: &str, max_chars: usize) -> String {
    let flat: String =
        bounded(text, max_chars).chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
    flat.trim().to_owned()
}

/// A text in quotes, so that nothing in it can pose as what stands around it. Unlike Rust's own form it leaves letters,
/// accents and joined emoji as they are.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A text that was cut to its first lines and bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The part that is shown, ending on a character border.
    pub head: &'a str,
    /// Whether something is missing.
    pub is_cut: bool,
}

/// The first `max_lines` lines of a text, `max_bytes` bytes at most.
pub fn head(text: &str, max_lines: usize, max_bytes: usize) -> Cut<'_> {
    let by_lines = text.match_indices('\n').nth(max_lines.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
    let mut end = by_lines.min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cut { head: &text[..end], is_cut: end < text.trim_end_matches('\n').len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_what_hides_and_keeps_what_is_written() {
        assert_eq!(clean("a\u{1b}[31mb\0\u{202e}c\u{200b}d\u{e0041}"), "a[31mbcd");
        assert_eq!(clean("Größe, año, 日本語\n\tmañana"), "Größe, año, 日本語\n\tmañana");
        assert_eq!(clean("👩‍👩‍👧 می‌خواهم"), "👩‍👩‍👧 می‌خواهم");
        assert_eq!(clean("pass\u{200d}word"), "password");
    }

    #[test]
    fn bounds_say_what_is_missing() {
        assert_eq!(bounded("äöü", 3), "äöü");
        assert_eq!(bounded("äöüß", 3), "äöü… [cut: 4 characters in all]");
        assert_eq!(one_line(" a\nb\tc ", 10), "a b c");
    }

    #[test]
    fn quotes_keep_what_can_be_read() {
        assert_eq!(quoted("日本👩‍👩‍👧 \u{301}é"), "\"日本👩‍👩‍👧 \u{301}é\"");
        assert_eq!(quoted("a\" [selected]\n2: b"), r#""a\" [selected]\n2: b""#);
    }

    #[test]
    fn head_cuts_on_lines_and_characters() {
        assert_eq!(head("a\nb\nc", 2, 100), Cut { head: "a\nb", is_cut: true });
        assert_eq!(head("a\nb\n", 2, 100), Cut { head: "a\nb", is_cut: false });
        assert_eq!(head("éé", 9, 3), Cut { head: "é", is_cut: true });
        assert_eq!(head("ab", 9, 2), Cut { head: "ab", is_cut: false });
    }
}
