//! The names of elements: `3_17` is the 17th node that was told of in document 3.
//!
//! A node is a document and Chromium's number of the node in it. It keeps its name for as long as its document lives,
//! whether it is seen or not, so that a name never comes to mean another node.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::targets::{DocumentId, PageId};

/// All names that one browser's nodes have been given.
#[derive(Debug, Default)]
pub(crate) struct Uids {
    documents: Mutex<HashMap<DocumentId, Known>>,
}

#[derive(Debug)]
struct Known {
    page: PageId,
    /// By Chromium's number of the node.
    places: HashMap<i64, usize>,
    /// Chromium's numbers, in the order in which they were named.
    nodes: Vec<i64>,
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
            page,
            places: HashMap::new(),
            nodes: Vec::new(),
        });
        let place = *known.places.entry(backend).or_insert_with(|| {
            known.nodes.push(backend);
            known.nodes.len()
        });
        format!("{}_{place}", document.0)
    }

    /// The node of a name.
    pub fn meaning(&self, uid: &str) -> Meaning {
        let Some((document, place)) = parse(uid) else { return Meaning::Nothing };
        let documents = self.documents();
        let Some(known) = documents.get(&document) else { return Meaning::Nothing };
        match place.checked_sub(1).and_then(|at| known.nodes.get(at)) {
            Some(&backend) => Meaning::Node { page: known.page, document, backend },
            None => Meaning::Nothing,
        }
    }

    /// Frees what only a live document needs. That its names were given stays known.
    pub fn shrink(&self, is_alive: impl Fn(DocumentId) -> bool) {
        for (document, known) in self.documents().iter_mut() {
            if !known.places.is_empty() && !is_alive(*document) {
                known.places = HashMap::new();
            }
        }
    }

    fn documents(&self) -> MutexGuard<'_, HashMap<DocumentId, Known>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse(uid: &str) -> Option<(DocumentId, usize)> {
    let (document, place) = uid.split_once('_')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(document) || !digits(place) {
        return None;
    }
    Some((DocumentId(document.parse().ok()?), place.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_name_and_a_name_its_node() {
        let uids = Uids::default();
        let (page, document) = (PageId(1), DocumentId(3));
        assert_eq!(uids.of(page, document, 70), "3_1");
        assert_eq!(uids.of(page, document, 9), "3_2");
        assert_eq!(uids.of(page, document, 70), "3_1");
        assert_eq!(uids.of(page, DocumentId(4), 70), "4_1");
        uids.shrink(|document| document == DocumentId(3));
        assert_eq!(uids.of(page, document, 9), "3_2");
        assert_eq!(uids.meaning("3_2"), Meaning::Node { page, document, backend: 9 });
        let gone = Meaning::Node { page, document: DocumentId(4), backend: 70 };
        assert_eq!(uids.meaning("4_1"), gone, "a gone document's names stay known");
    }

    #[test]
    fn what_was_never_named_means_nothing() {
        let uids = Uids::default();
        uids.of(PageId(1), DocumentId(3), 70);
        for uid in ["", "_", "3", "3_", "3_0", "3_2", "4_1", "+3_1", "3_1x", "3_99999999999999999999", "x_1"]
        {
            assert_eq!(uids.meaning(uid), Meaning::Nothing, "{uid}");
        }
    }
}
