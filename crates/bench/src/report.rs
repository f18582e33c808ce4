//! The table, and whether the aims were met.

use std::fmt::Write;

use crate::calls::Calls;
use crate::starts::Starts;
use crate::stats::{Series, Spread, number};

const BARE: &str = "bare Chromium";
const PRODUCT: &str = "pagebridge";
const PEER: &str = "chrome-devtools-mcp";

/// A quantity, who showed it, and what each is told beside.
struct Group<'a> {
    what: &'a str,
    rows: Vec<(&'a str, &'a Series)>,
    beside: Beside,
}

/// What the rows after the first are told beside: the first row.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    /// The differences, round by round, and the quotient of the medians.
    Difference,
    /// The quotient of the medians.
    Quotient,
}

/// The table, in Markdown.
pub fn table(starts: &Starts, calls: &Calls) -> String {
    let mut out = String::from("| | | n | min | median | max | beside it |\n|---|---|--:|--:|--:|--:|---|\n");
    for group in groups(starts, calls) {
        group.write(&mut out);
    }
    out
}

fn groups<'a>(starts: &'a Starts, calls: &'a Calls) -> Vec<Group<'a>> {
    let (product, peer) = (&starts.product, &starts.peer);
    let beside_us = |what, ours, theirs| Group {
        what,
        rows: vec![(PRODUCT, ours), (PEER, theirs)],
        beside: Beside::Quotient,
    };
    vec![
        beside_us("spawn to `initialize` answered, ms", &product.initialize, &peer.initialize),
        Group {
            what: "spawn to first page usable, ms",
            rows: vec![(BARE, &starts.bare), (PRODUCT, &product.first_page), (PEER, &peer.first_page)],
            beside: Beside::Difference,
        },
        Group {
            what: "page-tool call, ms",
            rows: vec![
                ("bare `WebMCP.invokeTool`", &calls.bare),
                ("pagebridge `page_call`", &calls.page_call),
                ("pagebridge `page_*` tool", &calls.dynamic),
                ("chrome-devtools-mcp `execute_webmcp_tool`", &calls.peer),
            ],
            beside: Beside::Difference,
        },
        beside_us("resident after `initialize`, MB", &product.idle, &peer.idle),
        beside_us("resident with the page open, MB", &product.with_page, &peer.with_page),
        beside_us("resident after all calls, MB", &calls.product_resident, &calls.peer_resident),
    ]
}

impl Group<'_> {
    fn write(&self, out: &mut String) {
        let base = self.rows[0].1;
        let known = self.rows.iter().filter_map(|(who, series)| Some((*who, *series, series.spread()?)));
        for (place, (who, series, spread)) in known.enumerate() {
            let what = if place == 0 { self.what } else { "" };
            let beside = if place == 0 { String::new() } else { self.beside(series, base) };
            let Spread { count, min, median, max } = spread;
            let [min, median, max] = [min, median, max].map(number);
            let _ = writeln!(out, "| {what} | {who} | {count} | {min} | {median} | {max} | {beside} |");
        }
    }

    fn beside(&self, series: &Series, base: &Series) -> String {
        let times = match (series.spread(), base.spread()) {
            (Some(mine), Some(other)) => format!("× {}", number(mine.median / other.median)),
            _ => return String::new(),
        };
        match series.over(base).filter(|_| self.beside == Beside::Difference) {
            Some(over) => format!("{} ({times})", signed(&over)),
            None => times,
        }
    }
}

fn signed(over: &Spread) -> String {
    let sign = if over.median < 0.0 { "" } else { "+" };
    format!("{sign}{} [{} … {}]", number(over.median), number(over.min), number(over.max))
}

/// One line for each aim.
pub fn aims(starts: &Starts, calls: &Calls) -> String {
    let median = |series: &Series| series.spread().map(|spread| spread.median);
    let over = |series: &Series, base: &Series| series.over(base).map(|spread| spread.median);
    let product = &starts.product;
    let aims = [
        ("spawn to `initialize` answered", "ms", 30.0, median(&product.initialize)),
        ("first page over the bare start", "ms", 150.0, over(&product.first_page, &starts.bare)),
        ("`page_call` over the bare call", "ms", 2.0, over(&calls.page_call, &calls.bare)),
        ("`page_*` tool over the bare call", "ms", 2.0, over(&calls.dynamic, &calls.bare)),
        ("resident after `initialize`", "MB", 20.0, median(&product.idle)),
        ("resident after all calls", "MB", 20.0, median(&calls.product_resident)),
    ];
    let mut out = String::new();
    for (what, unit, aim, found) in aims {
        let _ = match found {
            Some(found) => {
                let verdict = if found <= aim { "met" } else { "MISSED" };
                writeln!(out, "- {what}: {} {unit}; aim: at most {aim} {unit}: {verdict}", number(found))
            }
            None => writeln!(out, "- {what}: not measured here"),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_samples_are_left_out_and_differences_go_round_by_round() {
        let (mut starts, calls) = (Starts::default(), Calls::default());
        for (bare, ours) in [(200.0, 300.0), (400.0, 450.0), (210.0, 290.0)] {
            starts.bare.push(bare);
            starts.product.first_page.push(ours);
        }
        let table = table(&starts, &calls);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines.len(), 2, "{table}");
        assert!(lines[1].ends_with("| +80.0 [50.0 … 100] (× 1.43) |"), "{table}");
        let aims = aims(&starts, &calls);
        assert!(aims.contains("first page over the bare start: 80.0 ms; aim: at most 150 ms: met"), "{aims}");
        assert!(aims.contains("resident after `initialize`: not measured here"), "{aims}");
    }
}
