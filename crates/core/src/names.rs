//! Names that page tools get as MCP tools of their own.

use std::collections::{HashMap, HashSet};

use crate::limits::DYNAMIC_NAME_CHARS;

/// What every dynamic tool's name begins with. Nothing else may begin so.
pub const PAGE_PREFIX: &str = "page_";

/// What a name is made from. Equal input gives an equal name, also after a reload.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NameSource {
    /// The origin of the document that offers the tool.
    pub origin: String,
    /// The frame's place in the page: `0` for the top one, `0.2` for its third child.
    pub frame_path: String,
    /// The name that the page gave.
    pub original: String,
}

/// Names for all tools of one page, in the same order. Each is unique, `page_` and `[A-Za-z0-9_]` only, and
/// at most [`DYNAMIC_NAME_CHARS`] long; a collision or an overflow ends in a hash of the source.
/// `reserved` are names that are taken by others.
pub fn dynamic_names(sources: &[NameSource], reserved: &[&str]) -> Vec<String> {
    let plain: Vec<String> = sources.iter().map(|s| plain_name(&s.original)).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    for name in &plain {
        *count.entry(name).or_default() += 1;
    }
    let mut taken: HashSet<String> = reserved.iter().map(|&name| name.to_owned()).collect();
    let mut names = Vec::with_capacity(plain.len());
    for (source, name) in sources.iter().zip(&plain) {
        // Every member of a collision gets its hash, so that a name does not depend on who came first.
        let fits = name.len() <= DYNAMIC_NAME_CHARS && count.get(name.as_str()) == Some(&1);
        let chosen = if fits && !taken.contains(name) {
            name.clone()
        } else {
            let hashed = |round| hashed_name(name, source, round);
            (0u32..).map(hashed).find(|wanted| !taken.contains(wanted)).unwrap_or_default()
        };
        taken.insert(chosen.clone());
        names.push(chosen);
    }
    names
}

fn plain_name(original: &str) -> String {
    let tail: String = original.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{PAGE_PREFIX}{tail}")
}

fn hashed_name(name: &str, source: &NameSource, round: u32) -> String {
    let mut hash = fnv1a(&source.origin, 0x811c_9dc5);
    hash = fnv1a(&source.frame_path, hash ^ 0x1f);
    hash = fnv1a(&source.original, hash ^ 0x1f).wrapping_add(round);
    let head: String = name.chars().take(DYNAMIC_NAME_CHARS - 5).collect();
    format!("{head}_{:04x}", (hash ^ (hash >> 16)) & 0xffff)
}

/// FNV-1a: a hash whose value never changes between releases, which `std`'s does not promise.
fn fnv1a(text: &str, seed: u32) -> u32 {
    text.bytes().fold(seed, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(frame_path: &str, original: &str) -> NameSource {
        NameSource {
            origin: "http://127.0.0.1:80".into(),
            frame_path: frame_path.into(),
            original: original.into(),
        }
    }

    #[test]
    fn simple_names_stay_simple() {
        let names = dynamic_names(&[source("0", "add"), source("0", "a.b-c")], &[]);
        assert_eq!(names, ["page_add", "page_a_b_c"]);
    }

    #[test]
    fn collisions_overflow_and_reserved_names_get_a_stable_hash() {
        let sources = [
            source("0", "a.b"),
            source("0", "a-b"),
            source("0.1", "a-b"),
            source("0", &"x".repeat(128)),
            source("0", "tools"),
        ];
        let names = dynamic_names(&sources, &["page_tools"]);
        let again = dynamic_names(&[sources[1].clone(), sources[0].clone(), sources[2].clone()], &[]);
        assert_eq!((&names[1], &names[0]), (&again[0], &again[1]), "the order of listing does not matter");
        for name in &names {
            assert!(name.len() <= DYNAMIC_NAME_CHARS && name.starts_with("page_"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{name}");
            assert_eq!(names.iter().filter(|n| *n == name).count(), 1, "{name}");
        }
        assert_ne!(names[4], "page_tools");
        assert_eq!(names, dynamic_names(&sources, &["page_tools"]));
    }
}
