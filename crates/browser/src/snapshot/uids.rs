//! The names of elements: `3_17` is the 17th node that was told of in the third document that any was told of.
//!
//! A node is a document and Chromium's number of the node in it. It keeps its name for as long as its document lives,
//! whether it is seen or not, so that a name never comes to mean another node, in this browser or in the next one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::targets::{DocumentId, PageId};

/// Numbers of documents, given once in this process.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// All names that one browser's nodes have been given.
#[derive(Debug, Default)]
pub(crate) struct Uids {
    documents: Mutex<HashMap<DocumentId, Known>>,
}

#[derive(Debug)]
struct Known {
    /// The first part of the names.
    number: u64,
    page: PageId,
    /// By Chromium's number of the node.
    places: HashMap<i64, usize>,
    /// Chromium's numbers, in the order in which they were named; none any more when the document is gone.
    nodes: Vec<i64>,
    /// How many names were given.
    given: usize,
}

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A node of a document of this page; whether either still exists is another matter.
    Node { page: PageId, document: DocumentId, backend: i64 },
    /// Nothing that was ever named.
    Nothing,
}

impl Uids {
    /// The name of a node.
    pub fn of(&self, page: PageId, document: DocumentId, backend: i64) -> String {
        let mut documents = self.documents();
        let known = documents.entry(document).or_insert_with(|| Known {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            page,
            places: HashMap::new(),
            nodes: Vec::new(),
            given: 0,
        });
        let place = *known.places.entry(backend).or_insert_with(|| {
            known.nodes.push(backend);
            known.given += 1;
            known.given
        });
        format!("{}_{place}", known.number)
    }

    /// The node of a name.
    pub fn meaning(&self, uid: &str) -> Meaning {
        let Some((number, place)) = parse(uid) else { return Meaning::Nothing };
        let documents = self.documents();
        let Some((&document, known)) = documents.iter().find(|(_, known)| known.number == number) else {
            return Meaning::Nothing;
        };
        if place == 0 || place > known.given {
            return Meaning::Nothing;
        }
        let backend = known.nodes.get(place - 1).copied().unwrap_or_default();
        Meaning::Node { page: known.page, document, backend }
    }

    /// Frees what only a live document needs. That its names were given stays known.
    pub fn shrink(&self, is_alive: impl Fn(DocumentId) -> bool) {
        for (document, known) in self.documents().iter_mut() {
            if !known.places.is_empty() && !is_alive(*document) {
                known.places = HashMap::new();
                known.nodes = Vec::new();
            }
        }
    }

    fn documents(&self) -> MutexGuard<'_, HashMap<DocumentId, Known>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(uid: &str) -> Option<(u64, usize)> {
    let (document, place) = uid.split_once('_')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(document) || !digits(place) {
        return None;
    }
    Some((document.parse().ok()?, place.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_name_and_a_name_its_node() {
        let uids = Uids::default();
        let (page, document) = (PageId(1), DocumentId(3));
        let first = uids.of(page, document, 70);
        let (number, place) = parse(&first).unwrap();
        assert_eq!(place, 1);
        assert_eq!(uids.of(page, document, 9), format!("{number}_2"));
        assert_eq!(uids.of(page, document, 70), first);
        let other = uids.of(page, DocumentId(4), 70);
        assert_ne!(other, first);
        uids.shrink(|alive| alive == document);
        assert_eq!(uids.of(page, document, 9), format!("{number}_2"));
        assert_eq!(uids.meaning(&first), Meaning::Node { page, document, backend: 70 });
        let gone = Meaning::Node { page, document: DocumentId(4), backend: 0 };
        assert_eq!(uids.meaning(&other), gone, "a gone document's names stay known");
        assert_eq!(Uids::default().meaning(&first), Meaning::Nothing, "another browser's names mean nothing");
    }

    #[test]
    fn what_was_never_named_means_nothing() {
        let uids = Uids::default();
        let name = uids.of(PageId(1), DocumentId(3), 70);
        let (number, _) = parse(&name).unwrap();
        for uid in ["", "_", "3", "3_", "x_1", "1_99999999999999999999"] {
            assert_eq!(uids.meaning(uid), Meaning::Nothing, "{uid}");
        }
        for uid in [format!("{number}_0"), format!("{number}_2"), format!("+{name}"), format!("{name}x")] {
            assert_eq!(uids.meaning(&uid), Meaning::Nothing, "{uid}");
        }
    }
}
