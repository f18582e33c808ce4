//! Results of tens of megabytes: each is given in part or refused by itself, and nothing else suffers.

mod support;

use std::path::Path;

use pagebridge_testkit::bridge::text_of;
use serde_json::{Value, json};
use support::World;

const MIB: usize = 1 << 20;
const BIG: &str = r#"
offer("big", ({ mib }) => "é" + "x".repeat(mib * 1048576 - 2), { inputSchema: { type: "object", properties: { mib: { type: "integer" } } } });
offer("small", () => "small");
"#;

/// Checks an answer to a call for a text of this many MiB: cut, with the whole in a file, or refused as too large.
fn assert_cut_or_refused(answer: &Value, mib: usize, workspace: &Path) {
    let size = answer.to_string().len();
    assert!(size < 8 * MIB, "{mib} MiB: the answer itself has {size} bytes");
    if answer["isError"] == true {
        let error = &answer["structuredContent"]["error"];
        assert_eq!(error["kind"], "too_large", "{mib} MiB: {error:#}");
        assert!(
            error["message"].as_str().is_some_and(|m| m.contains("bytes") || m.contains("MiB")),
            "{error:#}"
        );
        return;
    }
    let text = text_of(answer);
    assert!(text.len() < 60_000, "{mib} MiB: {} bytes are shown", text.len());
    let note = &text[text.len().saturating_sub(400)..];
    let file = note.split("the whole is in ").nth(1).and_then(|rest| rest.split(']').next());
    let file = Path::new(file.unwrap_or_else(|| panic!("no file is named: {note}")));
    assert!(file.starts_with(workspace), "{}", file.display());
    let kept = std::fs::metadata(file).expect("the file").len();
    assert!(
        kept >= (mib * MIB) as u64 && kept < (mib * MIB + 1000) as u64,
        "{mib} MiB: {kept} bytes are kept"
    );
}

#[tokio::test]
async fn a_tool_result_of_many_megabytes_is_cut_or_refused_and_the_next_call_works() {
    let world = World::with_page(&[], BIG).await;
    for mib in [20, 70] {
        let answer = world.page_call("big", json!({"mib": mib})).await;
        assert_cut_or_refused(&answer, mib, world.workspace.path());
        assert_eq!(world.result("small", json!({})).await, "small", "after {mib} MiB");
        assert_eq!(world.names().await, ["big", "small"]);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_script_result_of_many_megabytes_is_cut_or_refused_and_the_next_call_works() {
    let world = World::with_page(&[], BIG).await;
    for mib in [20, 70] {
        let function = format!("() => 'é' + 'x'.repeat({mib} * 1048576 - 2)");
        let answer = world.bridge.call("evaluate_script", json!({"function": function})).await;
        assert_cut_or_refused(&answer, mib, world.workspace.path());
        assert_eq!(world.evaluate("() => 6 * 7").await, 42, "after {mib} MiB");
        assert_eq!(world.result("small", json!({})).await, "small", "after {mib} MiB");
    }
    let info = world.bridge.call("bridge_info", json!({})).await;
    assert_eq!(
        info["structuredContent"]["browser"]["generation"], 1,
        "it is still the first browser: {info:#}"
    );
    world.finish().await;
}
