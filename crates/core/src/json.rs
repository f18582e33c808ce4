//! Care for JSON that a browser or a page wrote.

use std::borrow::Cow;

use crate::text::is_hidden;

/// Replaces `\uD800`-like escapes without a partner by `\uFFFD`.
///
/// JavaScript strings may hold lone surrogates and `JSON.stringify` and Chromium write them as escapes,
/// which are valid JSON text but no Unicode, so that strict parsers refuse the whole document.
pub fn mend_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut mended: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|b| *b == b'\\') {
        at += offset;
        let Some(unit) = escape_at(bytes, at) else {
            at = (at + 2).min(bytes.len());
            continue;
        };
        let paired = is_high(unit) && escape_at(bytes, at + 6).is_some_and(is_low);
        if !paired && (is_high(unit) || is_low(unit)) {
            let out = mended.get_or_insert_with(|| String::with_capacity(text.len()));
            out.push_str(&text[copied..at]);
            out.push_str("\\ufffd");
            copied = at + 6;
        }
        at += if paired { 12 } else { 6 };
    }
    match mended {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        }
    }
}

/// Writes characters beyond ASCII as themselves where a browser wrote escapes for them: shorter, and readable. Characters
/// that hide or reorder what a reader sees stay escapes, and so do lone surrogates; the value is the same.
pub fn readable(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = bytes[at..].iter().position(|b| *b == b'\\') {
        at += offset;
        let Some((character, length)) = character_at(bytes, at) else {
            at = (at + 2).min(bytes.len());
            continue;
        };
        let joins = matches!(character, '\u{200c}' | '\u{200d}');
        if joins || (character > '\u{9f}' && !is_hidden(character)) {
            let out = out.get_or_insert_with(|| String::with_capacity(text.len()));
            out.push_str(&text[copied..at]);
            out.push(character);
            copied = at + length;
        }
        at += length;
    }
    match out {
        None => Cow::Borrowed(text),
        Some(mut out) => {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        }
    }
}

/// The character of the escape, or pair of escapes, that starts at `at`, and its length.
fn character_at(bytes: &[u8], at: usize) -> Option<(char, usize)> {
    let unit = escape_at(bytes, at)?;
    if !is_high(unit) {
        return char::from_u32(u32::from(unit)).map(|character| (character, 6));
    }
    let low = escape_at(bytes, at + 6).filter(|low| is_low(*low))?;
    let pair = char::decode_utf16([unit, low]).next()?;
    pair.ok().map(|character| (character, 12))
}

fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

/// The code unit of a `\uXXXX` escape that starts at `at`.
fn escape_at(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    if &escape[..2] != b"\\u" || !escape[2..].iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
}

/// How deep objects and arrays are nested in a JSON text (0 for a scalar). Never recurses.
pub fn depth(text: &str) -> usize {
    let (mut depth, mut most) = (0usize, 0usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mends_only_lone_surrogates() {
        for (from, to) in [
            (r#""plain""#, r#""plain""#),
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""\udc00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud800""#, r#""\\ud800""#),
            (r#""\\\ud800""#, r#""\\\ufffd""#),
            (r#""\ud8""#, r#""\ud8""#),
            (r#""\uD83Dé""#, r#""\ufffdé""#),
        ] {
            assert_eq!(mend_surrogates(from), to, "{from}");
        }
    }

    #[test]
    fn escapes_of_readable_characters_are_undone() {
        for (from, to) in [
            (r#""plain \n \u0041""#, r#""plain \n \u0041""#),
            (r#"{"\u65e5\u672c":"\u00e9"}"#, r#"{"日本":"é"}"#),
            (r#""\ud83d\udc69\u200d\ud83d\udc67""#, r#""👩\u{200d}👧""#),
            (r#""\u202e \u0007 \u2028 \ud800 \ud800\u00e9""#, r#""\u202e \u0007 \u2028 \ud800 \ud800é""#),
            (r#""\\u00e9 \\\u00e9 \"""#, r#""\\u00e9 \\é \"""#),
        ] {
            assert_eq!(readable(from), to.replace("\\u{200d}", "\u{200d}"), "{from}");
        }
    }

    #[test]
    fn depth_ignores_brackets_in_strings() {
        assert_eq!(depth(r#"{"a":[1,{"b":"[[[\"{"}]}"#), 3);
        assert_eq!(depth("7"), 0);
        assert_eq!(depth(&"[".repeat(100_000)), 100_000);
    }
}
