use std::collections::BTreeMap;
use std::sync::Arc;

use crate::chunk::FoldStep;
use crate::error::{Damage, DamageKind, Result};
use crate::format::{BranchHead, BranchHeads, Checkpoint, OffsetRow, Position, RowId};
use crate::ids::{Ids, Known};
use crate::limits;
use crate::rows::Rows;
use crate::streams::Streams;
use bough_record::{ChainHash, Envelope, Fold, Head, StoredEnvelope, kind};

/// Where the frame of a record is on the disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameLocation {
    pub(crate) segment: u64,
    pub(crate) frame: u64,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) crc: u32,
    pub(crate) chain: ChainHash,
}

/// The entry that was added last: usually the parent of the next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LastEntry {
    id: String,
    known: Known,
}

/// Everything that is known of the durable part of a log. Changed only by [`LogState::apply`].
#[derive(Debug)]
pub(crate) struct LogState<F: Fold> {
    pub(crate) head: Head,
    pub(crate) position: Position,
    pub(crate) rows: Rows,
    pub(crate) ids: Ids,
    pub(crate) fold: Arc<F>,
    pub(crate) streams: Streams,
    pub(crate) active_leaf: Option<String>,
    /// When the log was deleted, if it is.
    pub(crate) deleted_at_ms: Option<i64>,
    last_entry: Option<LastEntry>,
    /// Entries without children, by record; `None` when they are too many to keep.
    heads: Option<BTreeMap<u64, String>>,
}

impl<F: Fold> LogState<F> {
    /// A log without records.
    pub(crate) fn empty(head: Head, fold: Arc<F>, rows: Rows, ids: Ids) -> Self {
        Self {
            head,
            position: Position::START,
            rows,
            ids,
            fold,
            streams: Streams::default(),
            active_leaf: None,
            deleted_at_ms: None,
            last_entry: None,
            heads: Some(BTreeMap::new()),
        }
    }

    /// Restores what a checkpoint keeps of the tree.
    pub(crate) fn restore_tree(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        self.active_leaf.clone_from(&checkpoint.active_leaf);
        self.deleted_at_ms = checkpoint.deleted_at_ms;
        self.heads = match &checkpoint.branch_heads {
            BranchHeads::All { heads } => {
                Some(heads.iter().map(|head| (head.seq, head.entry_id.clone())).collect())
            }
            BranchHeads::TooMany => None,
        };
        self.streams = Streams::opened(&checkpoint.open_streams, checkpoint.last_step);
        if let Some(id) = checkpoint.last_entry_id.as_deref() {
            let seq = self.find(id)?.ok_or_else(|| {
                let text = format!("the checkpoint's newest entry {id:?} is not in the index");
                Damage::new(DamageKind::IndexRow, "index/offsets.jsonl", 0, text)
            })?;
            let row = self.rows.get(seq)?;
            let known = Known { seq, run: row.run, depth: row.depth };
            self.last_entry = Some(LastEntry { id: id.to_owned(), known });
        }
        Ok(())
    }

    /// The record that added an entry.
    pub(crate) fn find(&self, id: &str) -> Result<Option<u64>> {
        match &self.last_entry {
            Some(last) if last.id == id => Ok(Some(last.known.seq)),
            _ => self.ids.find(id, &self.rows),
        }
    }

    pub(crate) fn last_entry_id(&self) -> Option<&str> {
        self.last_entry.as_ref().map(|last| last.id.as_str())
    }

    /// The branch heads as a checkpoint names them.
    pub(crate) fn branch_heads(&self) -> BranchHeads {
        match &self.heads {
            Some(heads) if heads.len() <= limits::BRANCH_HEADS_MAX => BranchHeads::All {
                heads: heads
                    .iter()
                    .map(|(seq, id)| BranchHead { entry_id: id.clone(), seq: *seq })
                    .collect(),
            },
            _ => BranchHeads::TooMany,
        }
    }

    /// Takes one more durable record into account.
    pub(crate) fn apply(
        &mut self,
        stored: &StoredEnvelope<'_>,
        location: FrameLocation,
        fold: &FoldStep<F>,
    ) -> Result<()> {
        let record = &stored.envelope;
        assert_eq!(stored.seq, self.head.seq + 1, "records are applied in order");
        let mut row = OffsetRow {
            seq: stored.seq,
            segment: location.segment,
            frame: location.frame,
            offset: location.offset,
            len: location.len,
            crc: location.crc,
            parent: 0,
            run: 0,
            depth: 0,
            revised: 0,
            id: RowId::NONE,
        };
        if let Some(id) = record.id.as_deref() {
            self.add_entry(id, record.parent.as_deref(), &mut row)?;
        }
        let revised = self.revised_entry(record)?;
        if let Some(entry) = revised {
            self.link_revision(entry, &mut row)?;
        }
        self.rows.push(row);
        if let Some(entry) = revised {
            self.rows.revise(entry, stored.seq);
        }
        self.note_target(stored);
        match fold {
            FoldStep::Apply => Arc::make_mut(&mut self.fold).apply(stored),
            FoldStep::Later => {}
            FoldStep::Value(value) => self.fold = Arc::clone(value),
        }
        self.head.seq = stored.seq;
        self.head.chain = location.chain;
        self.position = Position {
            segment: location.segment,
            bytes: location.offset + location.len,
            frames: location.frame,
            closed: false,
        };
        Ok(())
    }

    fn add_entry(&mut self, id: &str, parent: Option<&str>, row: &mut OffsetRow) -> Result<()> {
        row.id = RowId::of(id);
        row.run = row.seq;
        row.depth = 1;
        // Before its parent's is dropped: a tree that never gets empty keeps its memory.
        if let Some(heads) = &mut self.heads {
            heads.insert(row.seq, id.to_owned());
        }
        if let Some(parent) = parent {
            let above = self.parent_of(parent)?;
            row.parent = above.seq;
            row.depth = above.depth + 1;
            // A run goes on only while nothing else was added in between, so that it is one stretch.
            if self.last_entry.as_ref().is_some_and(|last| last.known.seq == above.seq) {
                row.run = above.run;
            }
            if let Some(heads) = &mut self.heads {
                heads.remove(&above.seq);
            }
        }
        if self.heads.as_ref().is_some_and(|heads| heads.len() > limits::BRANCH_HEADS_MAX) {
            self.heads = None;
        }
        let known = Known { seq: row.seq, run: row.run, depth: row.depth };
        self.ids.insert(row.id, known);
        put(self.active_leaf.get_or_insert_default(), id);
        match &mut self.last_entry {
            Some(last) => {
                put(&mut last.id, id);
                last.known = known;
            }
            None => self.last_entry = Some(LastEntry { id: id.to_owned(), known }),
        }
        Ok(())
    }

    fn parent_of(&self, id: &str) -> Result<Known> {
        if let Some(last) = self.last_entry.as_ref().filter(|last| last.id == id) {
            return Ok(last.known);
        }
        if let Some(known) = self.ids.recent(id) {
            return Ok(known);
        }
        let seq = self.find(id)?.ok_or_else(|| {
            let text = format!("the parent {id:?} of an entry is not in the log");
            Damage::new(DamageKind::ParentUnknown, "segments", 0, text).of(self.head.seq + 1)
        })?;
        let row = self.rows.get(seq)?;
        Ok(Known { seq, run: row.run, depth: row.depth })
    }

    /// The record of the entry that a revision changes or a removal hides: reading the entry reads both records.
    fn revised_entry(&self, record: &Envelope<'_>) -> Result<Option<u64>> {
        let changes_entry = record.kind == kind::REVISION || kind::hides_target(&record.kind);
        match record.target.as_deref().filter(|_| changes_entry) {
            Some(target) => self.find(target),
            None => Ok(None),
        }
    }

    /// Revisions of one entry hang together: each row names the one before it, so that an entry is read by
    /// walking back from the newest.
    fn link_revision(&self, entry: u64, row: &mut OffsetRow) -> Result<()> {
        row.parent = self.rows.get(entry)?.revised;
        row.depth = match row.parent {
            0 => 1,
            previous => self.rows.get(previous)?.depth + 1,
        };
        Ok(())
    }

    fn note_target(&mut self, stored: &StoredEnvelope<'_>) {
        let record = &stored.envelope;
        let revision = record.revision.unwrap_or(0);
        if let Some(step) = stored.last_step {
            self.streams.number = self.streams.number.max(step);
        }
        match (&*record.kind, record.target.as_deref()) {
            (kind::TOMBSTONE, _) => self.deleted_at_ms = Some(record.at_ms),
            (kind::RESTORED, _) => self.deleted_at_ms = None,
            (kind::LEAF, target) => self.active_leaf = target.map(ToOwned::to_owned),
            (kind::REVISION, Some(target)) => self.streams.settle(target, revision),
            (kind::STREAM, Some(target)) => self.streams.open(target, stored.seq, revision),
            _ => {}
        }
    }
}

/// Replaces a text, in the same memory.
fn put(target: &mut String, text: &str) {
    target.clear();
    target.push_str(text);
}
