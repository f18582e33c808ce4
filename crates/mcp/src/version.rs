//! Protocol revisions of the legacy era (spec: Lifecycle, "Version Negotiation").

/// The one revision whose receivers must accept JSON-RPC batches.
pub const BATCHING: &str = "2025-03-26";

/// The newest revision that this crate speaks.
pub const NEWEST: &str = "2025-11-25";

/// Every revision that this crate speaks, oldest first.
pub const KNOWN: [&str; 4] = ["2024-11-05", BATCHING, "2025-06-18", NEWEST];

/// The version to answer an `initialize` with: the requested one when it is known, else the newest.
///
/// An unknown or missing version is no error: the client decides whether it can live with the answer.
#[must_use]
pub fn negotiate(requested: Option<&str>) -> &'static str {
    KNOWN.into_iter().find(|known| requested == Some(known)).unwrap_or(NEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_what_it_knows_and_offers_the_newest_otherwise() {
        for known in KNOWN {
            assert_eq!(negotiate(Some(known)), known);
        }
        for other in [None, Some(""), Some("2026-07-28"), Some("2099-01-01"), Some("2025-03-26 ")] {
            assert_eq!(negotiate(other), NEWEST);
        }
    }
}
