//! Which nodes a snapshot shows: what a user can see, read or act upon, without the boxes around it.

use super::ax::Node;

/// Roles of what can be operated.
const CONTROLS: [&str; 19] = [
    "button",
    "checkbox",
    "ColorWell",
    "combobox",
    "DisclosureTriangle",
    "listbox",
    "menu",
    "menubar",
    "menuitem",
    "menuitemcheckbox",
    "menuitemradio",
    "radio",
    "scrollbar",
    "searchbox",
    "slider",
    "spinbutton",
    "switch",
    "tab",
    "textbox",
];
/// Roles that tell where on a page something is.
const LANDMARKS: [&str; 8] =
    ["banner", "complementary", "contentinfo", "form", "main", "navigation", "region", "search"];
/// Roles whose inside is presentation only.
const LEAVES: [&str; 9] = [
    "doc-cover",
    "graphics-symbol",
    "img",
    "image",
    "Meter",
    "scrollbar",
    "slider",
    "separator",
    "progressbar",
];

/// For each node of a tree, whether it is shown.
pub(super) fn shown(nodes: &[Node], verbose: bool) -> Vec<bool> {
    if verbose {
        return vec![true; nodes.len()];
    }
    let focusable_below = focusable_below(nodes);
    let mut shown = vec![false; nodes.len()];
    // Where the innermost control around the current node ends.
    let mut control_ends: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < nodes.len() {
        let node = &nodes[at];
        control_ends.retain(|end| *end > at);
        let is_leaf = is_leaf(node, at, focusable_below[at]);
        shown[at] = at == 0 || is_interesting(node, is_leaf, !control_ends.is_empty());
        if is_leaf && node.remark.is_none() && at > 0 {
            at = node.end;
            continue;
        }
        if is_control(node) {
            control_ends.push(node.end);
        }
        at += 1;
    }
    drop_repeated_texts(nodes, &mut shown);
    shown
}

/// For each node, whether something below it can take the focus.
fn focusable_below(nodes: &[Node]) -> Vec<bool> {
    let mut below = vec![false; nodes.len()];
    // Parents come before their children, so the way back sees children first.
    let mut parents: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut around: Vec<usize> = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        while around.last().is_some_and(|parent| nodes[*parent].end <= at) {
            around.pop();
        }
        parents[at] = around.last().copied();
        if node.end > at + 1 {
            around.push(at);
        }
    }
    for at in (0..nodes.len()).rev() {
        let is_focusable = below[at] || nodes[at].is("focusable");
        if let Some(parent) = parents[at].filter(|_| is_focusable) {
            below[parent] = true;
        }
    }
    below
}

fn is_control(node: &Node) -> bool {
    CONTROLS.contains(&&*node.role) || matches!(&*node.role, "tree" | "treeitem")
}

pub(super) fn is_text(node: &Node) -> bool {
    matches!(&*node.role, "StaticText" | "LineBreak" | "text")
}

fn is_leaf(node: &Node, at: usize, focusable_below: bool) -> bool {
    let is_text_field = node.property("editable") == Some("plaintext")
        && matches!(&*node.role, "textbox" | "searchbox" | "ComboBox" | "spinbutton");
    if node.end == at + 1 || is_text_field || is_text(node) || LEAVES.contains(&&*node.role) {
        return true;
    }
    let is_named = !node.name.is_empty() && &*node.role != "RootWebArea" && &*node.role != "Iframe";
    !focusable_below && is_named && (node.is("focusable") || &*node.role == "heading")
}

fn is_interesting(node: &Node, is_leaf: bool, in_control: bool) -> bool {
    if node.remark.is_some() || &*node.role == "Iframe" {
        return true;
    }
    if node.ignored || node.is("hidden") {
        return false;
    }
    let special =
        ["errormessage", "details", "roledescription"].iter().any(|name| node.property(name).is_some());
    let is_live = node.property("live").is_some_and(|live| live != "off");
    if LANDMARKS.contains(&&*node.role)
        || ["focusable", "busy", "modal"].iter().any(|name| node.is(name))
        || (node.property("editable") == Some("richtext") && !is_text(node))
        || is_live
        || special
        || is_control(node)
    {
        return true;
    }
    let says_something = !node.name.trim().is_empty() || !node.description.is_empty();
    !in_control && is_leaf && says_something
}

/// Hides texts that only repeat the name of the node around them.
fn drop_repeated_texts(nodes: &[Node], shown: &mut [bool]) {
    for at in 0..nodes.len() {
        let node = &nodes[at];
        if !shown[at] || node.name.is_empty() || is_text(node) {
            continue;
        }
        let inside = at + 1..node.end;
        if !inside.clone().any(|child| shown[child])
            || inside.clone().any(|child| shown[child] && !is_text(&nodes[child]))
        {
            continue;
        }
        let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let texts: String =
            inside.clone().filter(|child| shown[*child]).map(|child| visible(&nodes[child].name)).collect();
        if texts == visible(&node.name) {
            shown[inside].fill(false);
        }
    }
}
