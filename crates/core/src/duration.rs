//! Durations as options write them: `30s`, `5m`, `1h`, `250ms`, or a plain number of milliseconds.

use std::time::Duration;

/// Reads a duration. The error says what would be right.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let wrong = || format!("{text:?} is no duration: write 30s, 5m, 1h, or a number of milliseconds");
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let millis = match unit.trim() {
        "" | "ms" => Some(number),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        _ => return Err(wrong()),
    };
    millis.map(Duration::from_millis).ok_or_else(|| format!("{text:?} is too long a time"))
}

/// Writes a duration for a person: `1.5 s`, `80 ms`.
pub fn show(duration: Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1_000 { format!("{millis} ms") } else { format!("{:.1} s", duration.as_secs_f64()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_unit_and_refuses_the_rest() {
        for (text, millis) in [("30s", 30_000), ("5m", 300_000), ("1h", 3_600_000), ("250", 250), ("7ms", 7)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "-1s", "1.5s", "3 days", "99999999999999999999", "9999999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
