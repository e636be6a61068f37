use bough_session::{Bookkeeping, Compaction, EntryId};
use serde_json::{Value, json};

use super::path::PathItem;

/// The field of a compaction's details that names the compaction which it undoes.
const UNDOES: &str = "undoes";

/// How to undo the compaction in force. Nothing is removed either way.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Undo {
    /// It is the last entry: the leaf moves back to the entry before it (`None`: before the first).
    MoveLeaf {
        /// The compaction.
        compaction: EntryId,
        /// Where the leaf goes.
        to: Option<EntryId>,
    },
    /// The conversation went on after it: an entry is appended that restores the compaction in force before.
    Append {
        /// The compaction.
        compaction: EntryId,
        /// What to append.
        entry: Bookkeeping,
    },
}

/// How to undo the compaction in force; `None` if there is none.
pub(super) fn undo(path: &[PathItem]) -> Option<Undo> {
    let mut standing = standing(path);
    let (id, newest) = standing.pop()?;
    if path.last().is_some_and(|last| last.id == id) {
        let before = path.len().checked_sub(2).and_then(|at| path.get(at));
        return Some(Undo::MoveLeaf { compaction: id, to: before.map(|item| item.id.clone()) });
    }
    let restored = match standing.pop() {
        Some((_, earlier)) => earlier,
        None => Compaction {
            summary: String::new(),
            first_kept_entry_id: path.first()?.id.clone(),
            tokens_before: newest.tokens_before,
            details: None,
            from_hook: None,
        },
    };
    let details = with_mark(restored.details.clone(), &id);
    let entry = Bookkeeping::Compaction(Compaction { details: Some(details), ..restored });
    Some(Undo::Append { compaction: id, entry })
}

/// Whether a compaction takes another one back.
pub(super) fn is_undo(compaction: &Compaction) -> bool {
    compaction.details.as_ref().is_some_and(|details| details.get(UNDOES).is_some())
}

/// The compactions that were not undone, the one in force last.
fn standing(path: &[PathItem]) -> Vec<(EntryId, Compaction)> {
    let mut standing = Vec::new();
    for item in path {
        if let Some(Bookkeeping::Compaction(compaction)) = item.bookkeeping() {
            if is_undo(&compaction) {
                standing.pop();
            } else {
                standing.push((item.id.clone(), compaction));
            }
        }
    }
    standing
}

fn with_mark(details: Option<Value>, undone: &EntryId) -> Value {
    let mut map = match details {
        Some(Value::Object(map)) => map,
        _ => serde_json::Map::new(),
    };
    map.insert(UNDOES.to_owned(), json!(undone));
    Value::Object(map)
}
