//! A tree as text: one line a node, every string of the page in JSON's quotes, so that no page can write a line.

use pagebridge_core::text;

use super::ax::Node;
use super::interest;

/// Levels that are indented; deeper ones are told by number.
const LEVELS: usize = 40;

/// Properties that are told by their name when they are true.
const FLAGS: [&str; 11] = [
    "atomic",
    "busy",
    "disabled",
    "expanded",
    "focused",
    "modal",
    "multiline",
    "multiselectable",
    "readonly",
    "required",
    "selected",
];
/// Properties that are told with their value, and the name that they have here.
const VALUES: [(&str, &str); 16] = [
    ("autocomplete", "autocomplete"),
    ("checked", "checked"),
    ("details", "details"),
    ("errormessage", "errormessage"),
    ("hasPopup", "haspopup"),
    ("invalid", "invalid"),
    ("keyshortcuts", "keyshortcuts"),
    ("level", "level"),
    ("live", "live"),
    ("orientation", "orientation"),
    ("pressed", "pressed"),
    ("relevant", "relevant"),
    ("roledescription", "roledescription"),
    ("url", "url"),
    ("valuemax", "valuemax"),
    ("valuemin", "valuemin"),
];

/// How much is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub lines: usize,
    pub bytes: usize,
}

/// What was written.
#[derive(Debug)]
pub(super) struct Rendered {
    pub text: String,
    pub lines: usize,
    /// Lines that there would be without limits.
    pub of: usize,
}

/// Writes the nodes that matter, or with `verbose` all. `uid` names a node.
pub(super) fn render(
    nodes: &[Node],
    verbose: bool,
    limits: Limits,
    mut uid: impl FnMut(&Node) -> Option<String>,
) -> Rendered {
    let shown = interest::shown(nodes, verbose);
    let of = shown.iter().filter(|shown| **shown).count();
    let mut rendered = Rendered { text: String::new(), lines: 0, of };
    // The shown nodes around the current one.
    let mut around: Vec<usize> = Vec::new();
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| shown[*at]) {
        while around.last().is_some_and(|outer| nodes[*outer].end <= at) {
            around.pop();
        }
        if rendered.lines == limits.lines {
            break;
        }
        let line = line(node, around.len(), uid(node));
        if rendered.text.len() + line.len() > limits.bytes {
            break;
        }
        rendered.text.push_str(&line);
        rendered.lines += 1;
        around.push(at);
    }
    rendered
}

fn line(node: &Node, depth: usize, uid: Option<String>) -> String {
    let mut words: Vec<String> = Vec::new();
    words.extend(uid.map(|uid| format!("uid={uid}")));
    match &*node.role {
        "StaticText" => {}
        "" | "none" => words.push("ignored".into()),
        role => words.push(word(role)),
    }
    if !node.name.is_empty() {
        words.push(text::quoted(&node.name));
    }
    let mut attributes = attributes(node);
    attributes.sort();
    words.append(&mut attributes);
    words.extend(node.remark.as_ref().map(|remark| format!("[{remark}]")));
    let indent = "  ".repeat(depth.min(LEVELS));
    let level = if depth > LEVELS { format!("(level {depth}) ") } else { String::new() };
    format!("{indent}{level}{}\n", words.join(" "))
}

fn attributes(node: &Node) -> Vec<String> {
    let mut attributes = Vec::new();
    if !node.description.is_empty() {
        attributes.push(format!("description={}", text::quoted(&node.description)));
    }
    let value = shown_value(node);
    if !value.is_empty() {
        attributes.push(format!("value={}", text::quoted(value)));
    }
    if node.property("expanded").is_some() {
        attributes.push("expandable".into());
    }
    if node.property("selected").is_some() && &*node.role != "option" {
        attributes.push("selectable".into());
    }
    for flag in FLAGS {
        if !node.is(flag) || (flag == "focused" && &*node.role == "RootWebArea") {
            continue;
        }
        match flag {
            "disabled" => attributes.push("disableable".into()),
            "focused" => attributes.push("focusable".into()),
            _ => {}
        }
        attributes.push(flag.into());
    }
    for (property, name) in VALUES {
        match node.property(property) {
            None | Some("false" | "off") => {}
            Some("true") => attributes.push(name.into()),
            Some(value) => attributes.push(format!("{name}={}", text::quoted(value))),
        }
    }
    attributes
}

/// The value, without the length of a password and without what the name says already.
fn shown_value(node: &Node) -> &str {
    let is_password = !node.value.is_empty() && node.value.chars().all(|c| c == '•');
    match &*node.value {
        _ if is_password => "••••••",
        value if value == node.name && &*node.role == "option" => "",
        value => value,
    }
}

/// A role is one of Chromium's; should a page ever choose one, it stays one word.
fn word(role: &str) -> String {
    role.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).take(64).collect()
}

#[cfg(test)]
mod tests;
