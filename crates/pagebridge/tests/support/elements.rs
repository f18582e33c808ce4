//! What tests need that act on elements.
#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::json;

use crate::support::World;

/// A world with this HTML open.
pub async fn showing(args: &[&str], html: &str) -> World {
    let world = World::new(args).await;
    world.site.page("/", format!("<!doctype html><meta charset=utf-8><title>T</title>{html}"));
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    world
}

/// The selected page as text.
pub async fn snapshot(world: &World) -> String {
    world.bridge.text("take_snapshot", json!({})).await
}

/// The uid in the one line that holds this text.
pub fn uid(snapshot: &str, text: &str) -> String {
    let lines: Vec<&str> = snapshot.lines().filter(|line| line.contains(text)).collect();
    let [line] = lines.as_slice() else { panic!("{text} is in {} lines of {snapshot}", lines.len()) };
    let uid = line.split_whitespace().next().and_then(|word| word.strip_prefix("uid="));
    uid.unwrap_or_else(|| panic!("no uid: {line}")).to_owned()
}

/// Runs JavaScript in the selected page.
pub async fn run(world: &World, function: &str) {
    world.bridge.text("evaluate_script", json!({"function": function})).await;
}
