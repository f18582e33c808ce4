//! Key combinations as text, like `Control+Shift+R`, and what a US keyboard says for each key.

use pagebridge_core::text;

/// One key as a keyboard event tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// What it means: `a`, `Enter`, `!`.
    pub key: String,
    /// Where it is: `KeyA`; empty for characters that a US keyboard has not.
    pub code: String,
    /// The old number of it.
    pub number: u32,
    /// What it types.
    pub text: String,
    /// 1 left, 2 right, 3 number block.
    pub location: u32,
}

/// A combination: modifiers held down, and the key pressed with them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Combination {
    pub modifiers: Vec<Modifier>,
    pub key: Key,
}

/// A modifier key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modifier {
    Alt,
    Control,
    Meta,
    Shift,
}

impl Modifier {
    fn of(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "alt" | "option" => Self::Alt,
            "control" | "ctrl" => Self::Control,
            "meta" | "command" | "cmd" => Self::Meta,
            "controlormeta" if cfg!(target_os = "macos") => Self::Meta,
            "controlormeta" => Self::Control,
            "shift" => Self::Shift,
            _ => return None,
        })
    }

    /// Its bit in the protocol.
    pub fn bit(self) -> u32 {
        match self {
            Self::Alt => 1,
            Self::Control => 2,
            Self::Meta => 4,
            Self::Shift => 8,
        }
    }

    /// Its own key, the left one.
    pub fn key(self) -> Key {
        let (key, code, number) = match self {
            Self::Alt => ("Alt", "AltLeft", 18),
            Self::Control => ("Control", "ControlLeft", 17),
            Self::Meta => ("Meta", "MetaLeft", 91),
            Self::Shift => ("Shift", "ShiftLeft", 16),
        };
        Key { location: 1, ..named(key, code, number, "") }
    }
}

/// Keys with names. Name, code, number, what it types.
const NAMED: [(&str, &str, u32, &str); 26] = [
    ("Enter", "Enter", 13, "\r"),
    ("Tab", "Tab", 9, ""),
    ("Escape", "Escape", 27, ""),
    ("Backspace", "Backspace", 8, ""),
    ("Delete", "Delete", 46, ""),
    ("Insert", "Insert", 45, ""),
    ("Home", "Home", 36, ""),
    ("End", "End", 35, ""),
    ("PageUp", "PageUp", 33, ""),
    ("PageDown", "PageDown", 34, ""),
    ("ArrowLeft", "ArrowLeft", 37, ""),
    ("ArrowUp", "ArrowUp", 38, ""),
    ("ArrowRight", "ArrowRight", 39, ""),
    ("ArrowDown", "ArrowDown", 40, ""),
    ("CapsLock", "CapsLock", 20, ""),
    ("NumLock", "NumLock", 144, ""),
    ("ScrollLock", "ScrollLock", 145, ""),
    ("Pause", "Pause", 19, ""),
    ("PrintScreen", "PrintScreen", 44, ""),
    ("ContextMenu", "ContextMenu", 93, ""),
    ("BrowserBack", "BrowserBack", 166, ""),
    ("BrowserForward", "BrowserForward", 167, ""),
    ("BrowserRefresh", "BrowserRefresh", 168, ""),
    ("AudioVolumeMute", "AudioVolumeMute", 173, ""),
    ("MediaPlayPause", "MediaPlayPause", 179, ""),
    ("AltGraph", "AltGraph", 225, ""),
];

/// Other names for keys.
const ALIASES: [(&str, &str); 12] = [
    ("esc", "Escape"),
    ("return", "Enter"),
    ("del", "Delete"),
    ("ins", "Insert"),
    ("up", "ArrowUp"),
    ("down", "ArrowDown"),
    ("left", "ArrowLeft"),
    ("right", "ArrowRight"),
    ("pgup", "PageUp"),
    ("pgdn", "PageDown"),
    ("space", " "),
    ("spacebar", " "),
];

/// Printable keys of a US keyboard other than letters and digits: plain, with shift, code, number.
const SIGNS: [(char, char, &str, u32); 12] = [
    ('`', '~', "Backquote", 192),
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
    (' ', ' ', "Space", 32),
];

/// What shift makes of the digits 0 to 9.
const SHIFTED_DIGITS: [char; 10] = [')', '!', '@', '#', '$', '%', '^', '&', '*', '('];

/// Reads a combination. The error tells what would be right.
pub(crate) fn parse(given: &str) -> Result<Combination, String> {
    let (before, last) = split(given);
    let mut modifiers = Vec::new();
    for name in before {
        let modifier = Modifier::of(name).ok_or_else(|| unknown_modifier(name))?;
        if !modifiers.contains(&modifier) {
            modifiers.push(modifier);
        }
    }
    let has_shift = modifiers.contains(&Modifier::Shift);
    let key = match Modifier::of(last) {
        Some(modifier) => modifier.key(),
        None => key(last, has_shift).ok_or_else(|| unknown_key(last))?,
    };
    // Whatever is held besides shift makes a command of the key, and no text.
    let is_command = modifiers.iter().any(|modifier| *modifier != Modifier::Shift);
    let text = if is_command && key.key != "Enter" { String::new() } else { key.text.clone() };
    Ok(Combination { modifiers, key: Key { text, ..key } })
}

/// The modifiers and the key of `A+B+C`; the key may be `+` itself.
fn split(given: &str) -> (Vec<&str>, &str) {
    let given = if given.trim().is_empty() { given } else { given.trim() };
    if given == "+" {
        return (Vec::new(), "+");
    }
    let (before, last) = match given.strip_suffix("++") {
        Some(before) => (before, "+"),
        None => given.rsplit_once('+').unwrap_or(("", given)),
    };
    let last = if last.trim().is_empty() { last } else { last.trim() };
    (before.split('+').map(str::trim).filter(|name| !name.is_empty()).collect(), last)
}

fn named(key: &str, code: &str, number: u32, text: &str) -> Key {
    Key { key: key.into(), code: code.into(), number, text: text.into(), location: 0 }
}

fn key(name: &str, has_shift: bool) -> Option<Key> {
    let mut characters = name.chars();
    if let (Some(one), None) = (characters.next(), characters.next()) {
        return (!one.is_control()).then(|| character(one, has_shift));
    }
    let lower = name.to_ascii_lowercase();
    if let Some((_, alias)) = ALIASES.iter().find(|(alias, _)| *alias == lower) {
        return key(alias, has_shift);
    }
    if let Some((key, code, number, text)) = NAMED.iter().find(|(key, ..)| key.eq_ignore_ascii_case(name)) {
        return Some(named(key, code, *number, text));
    }
    let number: u32 = lower.strip_prefix('f')?.parse().ok()?;
    let function = format!("F{number}");
    (1..=24).contains(&number).then(|| named(&function, &function, 111 + number, ""))
}

fn character(given: char, has_shift: bool) -> Key {
    let shown = if has_shift { shifted(given) } else { given };
    let text = shown.to_string();
    let (code, number) = match given {
        'a'..='z' | 'A'..='Z' => {
            (format!("Key{}", given.to_ascii_uppercase()), given.to_ascii_uppercase() as u32)
        }
        '0'..='9' => (format!("Digit{given}"), given as u32),
        other => match digit_below(other) {
            Some(digit) => (format!("Digit{digit}"), digit as u32),
            None => SIGNS
                .iter()
                .find(|(plain, shifted, ..)| *plain == other || *shifted == other)
                .map(|(_, _, code, number)| ((*code).to_owned(), *number))
                .unwrap_or_default(),
        },
    };
    Key { key: text.clone(), code, number, text, location: 0 }
}

fn shifted(given: char) -> char {
    match given {
        '0'..='9' => SHIFTED_DIGITS[given as usize - '0' as usize],
        other if other.is_ascii_lowercase() => other.to_ascii_uppercase(),
        other => SIGNS.iter().find(|(plain, ..)| *plain == other).map_or(other, |(_, shifted, ..)| *shifted),
    }
}

/// The digit whose key gives this sign with shift.
fn digit_below(sign: char) -> Option<char> {
    let at = SHIFTED_DIGITS.iter().position(|shifted| *shifted == sign)?;
    char::from_digit(u32::try_from(at).ok()?, 10)
}

fn unknown_modifier(name: &str) -> String {
    format!(
        "{} is no modifier: write Control, Shift, Alt or Meta before the key, like Control+Shift+R.",
        text::quoted(&text::one_line(name, 40))
    )
}

fn unknown_key(name: &str) -> String {
    format!(
        "{} is no key: write one character, or a name like Enter, Tab, Escape, Backspace, Delete, ArrowDown, PageDown, Home, Space, F5. fill enters longer texts.",
        text::quoted(&text::one_line(name, 40))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(given: &str) -> (Vec<Modifier>, String, String, u32, String) {
        let Combination { modifiers, key } = parse(given).unwrap_or_else(|error| panic!("{given}: {error}"));
        (modifiers, key.key, key.code, key.number, key.text)
    }

    #[test]
    fn combinations_say_what_a_keyboard_would() {
        use Modifier::{Alt, Control, Meta, Shift};
        for (given, modifiers, key, code, number, text) in [
            ("a", vec![], "a", "KeyA", 65, "a"),
            ("A", vec![], "A", "KeyA", 65, "A"),
            ("Shift+a", vec![Shift], "A", "KeyA", 65, "A"),
            ("Shift+1", vec![Shift], "!", "Digit1", 49, "!"),
            ("!", vec![], "!", "Digit1", 49, "!"),
            ("Control+Shift+R", vec![Control, Shift], "R", "KeyR", 82, ""),
            ("ctrl + c", vec![Control], "c", "KeyC", 67, ""),
            ("Cmd+Option+/", vec![Meta, Alt], "/", "Slash", 191, ""),
            ("Control++", vec![Control], "+", "Equal", 187, ""),
            ("+", vec![], "+", "Equal", 187, "+"),
            ("Enter", vec![], "Enter", "Enter", 13, "\r"),
            ("Control+Enter", vec![Control], "Enter", "Enter", 13, "\r"),
            ("esc", vec![], "Escape", "Escape", 27, ""),
            ("arrowdown", vec![], "ArrowDown", "ArrowDown", 40, ""),
            ("Space", vec![], " ", "Space", 32, " "),
            (" ", vec![], " ", "Space", 32, " "),
            ("F12", vec![], "F12", "F12", 123, ""),
            ("Shift", vec![], "Shift", "ShiftLeft", 16, ""),
            ("ß", vec![], "ß", "", 0, "ß"),
            ("Shift+Tab", vec![Shift], "Tab", "Tab", 9, ""),
        ] {
            let expected = (modifiers, key.to_owned(), code.to_owned(), number, text.to_owned());
            assert_eq!(told(given), expected, "{given}");
        }
    }

    #[test]
    fn what_is_no_key_is_told() {
        for given in ["", "Foo", "Hyper+a", "F25", "hello", "a+b", "\u{7}", "Control+"] {
            assert!(parse(given).is_err(), "{given:?}");
        }
    }
}
