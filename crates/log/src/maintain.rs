//! Rounds: seal, index, checkpoint. They run beside appends and hold no lock that an append needs for
//! longer than it takes to copy a snapshot.

use std::sync::atomic::Ordering;
use std::sync::{Weak, mpsc};

use bough_platform::{Access, File};
use serde_json::value::RawValue;

use bough_record::Fold;

use crate::canary;
use crate::container::parse_checkpoint_name;
use crate::error::Result;
use crate::format::{Checkpoint, Manifest, StoreState, schema};
use crate::id_tables;
use crate::limits;
use crate::options::Durability;
use crate::state::LogState;
use crate::sync::lock;
use crate::writer::Writer;

/// What rounds remember from one to the next.
#[derive(Debug)]
pub(crate) struct Maintainer {
    pub(crate) manifest: Manifest,
    /// Rounds have looked at so many rows of the index for damage, from the first on.
    checked_rows: u64,
}

impl Maintainer {
    pub(crate) fn new(manifest: Manifest) -> Self {
        Self { manifest, checked_rows: 0 }
    }
}

/// What is left when a log is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Index and checkpoint files.
    Full,
    /// Manifest and segment only.
    Tiny,
}

impl<F: Fold> Writer<F> {
    /// One round, up to the head that is durable now. Appends go on meanwhile.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.round(Shape::Full)
    }

    /// Commits what is accepted, makes the last checkpoint and gives the lock up.
    pub(crate) fn close(&self) -> Result<()> {
        self.drive();
        self.queue().check_latch()?;
        let shape = self.closing_shape();
        let manifest = self.manifest();
        let done = manifest.head == self.head()
            && manifest.state == StoreState::Checkpointed
            && (shape == Shape::Full) == (manifest.checkpoint_seq > 0);
        if !done {
            self.round(shape)?;
        }
        if shape == Shape::Tiny {
            self.drop_derived()?;
        }
        self.release()
    }

    /// Whether the next round has something derived to make again.
    pub(crate) fn has_damaged_index(&self) -> bool {
        let state = self.read_state();
        state.rows.is_damaged() || state.ids.is_damaged()
    }

    fn closing_shape(&self) -> Shape {
        let state = self.read_state();
        let small = state.position.segment == 1 && state.position.bytes <= self.options.tiny_bytes;
        if small && state.streams.is_empty() { Shape::Tiny } else { Shape::Full }
    }

    /// DIRTY -> SEGMENT_SEALED -> INDEXED -> CHECKPOINTED.
    fn round(&self, shape: Shape) -> Result<()> {
        let mut maintainer = lock(&self.maintainer);
        if !self.is_ours() {
            // It was asked for before the log was closed; what it would write over may be another process's by now.
            return Ok(());
        }
        self.unchecked_bytes.store(0, Ordering::Relaxed);
        self.check_index(&mut maintainer)?;
        let mut state = dirty(maintainer.manifest.state)?;
        let number = maintainer.manifest.checkpoint_seq.max(self.newest_checkpoint()?) + 1;
        // Everything below speaks of this one head; appends that come after it wait for the next round.
        let mut checkpoint = self.capture(number, shape)?;
        state = state.go(StoreState::SegmentSealed)?;
        let mut tables = None;
        if shape == Shape::Full {
            self.sync_index()?;
            let renewed = id_tables::renew(self, checkpoint.head.seq)?;
            checkpoint.id_tables.clone_from(&renewed.refs);
            checkpoint.id_tables_end = renewed.end;
            tables = Some(renewed);
        }
        state = state.go(StoreState::Indexed)?;
        if shape == Shape::Full {
            self.write_checkpoint(&checkpoint)?;
        }
        state = state.go(StoreState::Checkpointed)?;
        let manifest = Manifest {
            state,
            head: checkpoint.head,
            position: checkpoint.position,
            deleted_at_ms: checkpoint.deleted_at_ms,
            index_rows: if shape == Shape::Full { checkpoint.head.seq } else { 0 },
            checkpoint_seq: if shape == Shape::Full { number } else { 0 },
            checkpoint: (shape == Shape::Tiny).then(|| Box::new(checkpoint)),
            ..maintainer.manifest.clone()
        };
        self.files.write_manifest(&manifest)?;
        maintainer.manifest = manifest;
        if let Some(tables) = tables {
            tables.install(self)?;
            self.drop_old_checkpoints(number)?;
        }
        Ok(())
    }

    /// The checkpoint of the durable head as it is now, still without its id tables. In the weaker
    /// durability the frames up to it are synced before their rows are written; appends go on meanwhile.
    fn capture(&self, number: u64, shape: Shape) -> Result<Checkpoint> {
        let committing = self.hold_commits();
        let unsynced = match self.options.durability {
            Durability::Synced => None,
            Durability::MayLoseNewestOnPowerCut => committing.open_segment(),
        };
        let mut state = self.write_state();
        let mut prepared = None;
        if shape == Shape::Full {
            self.ready_index(&mut state)?;
            match unsynced {
                _ if state.rows.is_damaged() => {
                    self.replace_index(&mut state, unsynced.as_deref())?
                }
                Some(_) => prepared = state.rows.file().cloned().zip(Some(state.rows.prepare()?)),
                None => state.rows.flush()?,
            }
        }
        drop(committing);
        let captured = self.describe(&state, number, shape);
        drop(state);
        if let Some(segment) = unsynced {
            segment.sync()?;
            self.queue().note_synced(captured.head.seq);
        }
        if let Some((file, rows)) = prepared {
            rows.write(&*file)?;
            self.write_state().rows.written(&rows);
        }
        Ok(captured)
    }

    /// Checks the next rows of the index for damage that no reader has met yet.
    fn check_index(&self, maintainer: &mut Maintainer) -> Result<()> {
        let state = self.read_state();
        let end = maintainer.checked_rows + limits::INDEX_CHECK_ROWS;
        state.rows.check(end, limits::INDEX_CHECK_ROWS)?;
        maintainer.checked_rows = if end < state.rows.on_disk() { end } else { 0 };
        Ok(())
    }

    /// Puts a new file of rows in the place of a damaged one, in one step: rows that a checkpoint relies on are never
    /// written over in place.
    fn replace_index(&self, state: &mut LogState<F>, unsynced: Option<&dyn File>) -> Result<()> {
        if let Some(segment) = unsynced {
            // A row must never know a frame that the disk may lack.
            segment.sync()?;
        }
        let (disk, container) = (&self.files.disk, &self.files.container);
        let (path, temp) = (container.offsets()?, container.temp("offsets.jsonl")?);
        state.rows.replace(|bytes| {
            disk.replace(&path, &temp, bytes)?;
            // The temporary name was in another folder than the final one.
            disk.sync_dir(&container.dir)?;
            Ok(disk.open(&path, Access::ReadWrite)?.into())
        })
    }

    fn describe(&self, state: &LogState<F>, number: u64, shape: Shape) -> Checkpoint {
        let fold = match shape {
            Shape::Full => RawValue::from_string(state.fold.snapshot()).ok(),
            Shape::Tiny => None,
        };
        Checkpoint {
            schema: schema::CHECKPOINT.to_owned(),
            checkpoint_seq: number,
            created_at_ms: self.platform.clock.now_ms(),
            head: state.head,
            position: state.position,
            last_entry_id: state.last_entry_id().map(ToOwned::to_owned),
            active_leaf: state.active_leaf.clone(),
            branch_heads: state.branch_heads(),
            id_tables: Vec::new(),
            id_tables_end: 0,
            open_streams: state.streams.refs(),
            last_step: state.streams.number,
            deleted_at_ms: state.deleted_at_ms,
            fold,
        }
    }

    /// Syncs the rows, and the names of the files that hold them.
    fn sync_index(&self) -> Result<()> {
        let file = self.read_state().rows.file().cloned();
        if let Some(file) = file {
            file.sync()?;
        }
        self.files.disk.sync_dir(&self.files.container.index()?)?;
        Ok(self.files.disk.sync_dir(&self.files.container.dir)?)
    }

    fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<()> {
        let disk = &self.files.disk;
        disk.ensure_dir(&self.files.container.checkpoints()?)?;
        disk.sync_dir(&self.files.container.dir)?;
        let path = self.files.container.checkpoint(checkpoint.checkpoint_seq)?;
        let bytes = checkpoint.encode()?;
        if canary::on(canary::CHECKPOINT_UNSYNCED) {
            disk.create(&path)?.write_at(0, &bytes)?;
            return Ok(());
        }
        let temp = self.files.container.temp("checkpoint")?;
        disk.replace(&path, &temp, &bytes)?;
        // The temporary name was in another folder than the final one.
        Ok(disk.sync_dir(&self.files.container.dir)?)
    }

    fn checkpoint_numbers(&self) -> Result<Vec<u64>> {
        let listed = self.files.disk.list_if_there(&self.files.container.checkpoints()?)?;
        Ok(listed.iter().filter_map(|listed| parse_checkpoint_name(&listed.name)).collect())
    }

    /// A crash may have left a checkpoint that no manifest names; its number is not used again.
    fn newest_checkpoint(&self) -> Result<u64> {
        Ok(self.checkpoint_numbers()?.into_iter().max().unwrap_or(0))
    }

    fn drop_old_checkpoints(&self, newest: u64) -> Result<()> {
        for number in self.checkpoint_numbers()? {
            if number + limits::CHECKPOINTS_KEPT <= newest {
                self.files.disk.remove_file(&self.files.container.checkpoint(number)?)?;
            }
        }
        Ok(())
    }

    /// A tiny log keeps nothing that can be derived. The manifest that says so is durable by now.
    fn drop_derived(&self) -> Result<()> {
        self.forget_files();
        let container = &self.files.container;
        for dir in [container.index()?, container.checkpoints()?] {
            if self.files.disk.stat(&dir)?.is_some() {
                self.files.disk.remove_tree(&dir)?;
            }
        }
        if self.files.disk.stat(&container.stream()?)?.is_some() {
            self.files.disk.remove_file(&container.stream()?)?;
        }
        Ok(())
    }
}

/// The state from which a round starts: frames make any resting state DIRTY.
fn dirty(state: StoreState) -> Result<StoreState> {
    if state == StoreState::Dirty { Ok(state) } else { state.go(StoreState::Dirty) }
}

/// A failing round latches its log: the disk is in doubt.
pub(crate) fn run_round<F: Fold>(writer: &Writer<F>) {
    if let Err(error) = writer.checkpoint() {
        writer.latch(&error);
    }
}

/// A thread that runs the rounds that it is sent.
pub(crate) fn start_rounds<F: Fold>() -> mpsc::Sender<Weak<Writer<F>>> {
    let (sender, due) = mpsc::channel::<Weak<Writer<F>>>();
    let run = move || {
        while let Ok(writer) = due.recv() {
            if let Some(writer) = writer.upgrade() {
                run_round(&writer);
            }
        }
    };
    // Without the thread, rounds wait until the log is closed: slower to open, nothing is lost.
    drop(std::thread::Builder::new().name("bough-rounds".to_owned()).spawn(run));
    sender
}

#[cfg(test)]
mod tests {
    use bough_platform::{Platform, RelPath};

    use crate::Envelope;
    use crate::{LogStore, Options};

    /// A round that is due is run by another thread, which may come to it after the log was closed.
    #[test]
    fn a_round_that_comes_after_the_log_was_closed_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let platform = Platform::system(dir.path()).unwrap();
        let store = <LogStore>::open(platform.clone(), Options::default()).unwrap();
        store.create("s", vec![Envelope::plain("note", 1, "1")]).unwrap();
        let writer = store.writer("s").unwrap();
        store.close("s").unwrap();
        let container = &writer.files.container.dir;
        let names = |dir: &RelPath| platform.disk.list(dir).unwrap();
        let before = names(container);
        writer.checkpoint().unwrap();
        assert_eq!(names(container), before, "a tiny log has no checkpoint of its own");
    }
}
