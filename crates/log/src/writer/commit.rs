//! What a commit does to the files of a log, in the order that its promises need.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};

use bough_platform::File;
use bough_record::{Fold, kind};

use super::Writer;
use crate::canary;
use crate::chunk::{Chunk, DeltaChunk};
use crate::error::Result;
use crate::options::Durability;
use crate::state::LogState;
use crate::streams::StreamFile;
use crate::sync::lock;

/// The files that commits write to.
#[derive(Default)]
pub(crate) struct CommitFiles {
    segment: Option<(u64, Arc<dyn File>)>,
    stream: Option<StreamFile>,
    index_ready: bool,
}

impl CommitFiles {
    /// The segment that commits write to.
    pub(crate) fn open_segment(&self) -> Option<Arc<dyn File>> {
        self.segment.as_ref().map(|(_, file)| Arc::clone(file))
    }
}

impl<F: Fold> Writer<F> {
    /// The order of a commit: segment write, sync, offset rows, then the callers are notified. Deltas come after the
    /// frames that they build on.
    pub(super) fn commit(
        &self,
        chunk: Option<&Chunk<F>>,
        deltas: Option<DeltaChunk>,
    ) -> Result<()> {
        let mut files = self.hold_commits();
        // A log that latched meanwhile may be another writer's by now.
        self.check_latch()?;
        self.touch();
        if let Some(chunk) = chunk {
            self.commit_frames(&mut files, chunk)?;
        }
        if let Some(deltas) = deltas {
            self.commit_deltas(&mut files, deltas)?;
        }
        Ok(())
    }

    fn commit_frames(&self, files: &mut CommitFiles, chunk: &Chunk<F>) -> Result<()> {
        // A stream's file must be durable before the record that says there is one, and that record before
        // its deltas, whatever the durability: deltas without it would turn up in a later stream.
        let opens_stream = chunk.records.iter().any(|queued| queued.record.kind == kind::STREAM);
        if opens_stream {
            self.ready_stream(files)?;
        }
        let segment = self.segment_for(files, chunk)?;
        if canary::on(canary::ROW_BEFORE_SYNC) {
            self.write_rows(files, chunk)?;
        }
        segment.write_at(chunk.offset, &chunk.bytes)?;
        let synced = self.options.durability == Durability::Synced || opens_stream;
        if synced && !canary::on(canary::NO_SYNC) {
            sync_once(&*segment)?;
        }
        if !canary::on(canary::ROW_BEFORE_SYNC) {
            self.write_rows(files, chunk)?;
        }
        self.unchecked_bytes.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
        self.empty_stream(files)
    }

    /// The open segment, made if the chunk begins a new one.
    fn segment_for(&self, files: &mut CommitFiles, chunk: &Chunk<F>) -> Result<Arc<dyn File>> {
        if let Some((number, file)) = &files.segment
            && *number == chunk.segment
        {
            return Ok(Arc::clone(file));
        }
        if let Some((_, full)) = &files.segment
            && self.options.durability != Durability::Synced
        {
            // Rounds sync the newest segment only.
            full.sync()?;
            self.queue().note_synced(chunk.first_seq - 1);
        }
        let path = self.files.container.segment(chunk.segment)?;
        let disk = &self.files.disk;
        let file: Arc<dyn File> = if chunk.offset == 0 {
            let dir = self.files.container.segments()?;
            disk.ensure_dir(&dir)?;
            disk.sync_dir(&self.files.container.dir)?;
            let file = disk.create(&path)?;
            disk.sync_dir(&dir)?;
            file.into()
        } else {
            disk.open(&path, bough_platform::Access::ReadWrite)?.into()
        };
        files.segment = Some((chunk.segment, Arc::clone(&file)));
        Ok(file)
    }

    /// Applies what is durable and writes its rows. In the weaker durability rows wait for a sync, because
    /// a row must never know a frame that the disk may lack.
    fn write_rows(&self, files: &mut CommitFiles, chunk: &Chunk<F>) -> Result<()> {
        let mut state = self.write_state();
        for (record, location, fold) in chunk.stored() {
            state.apply(&record, location, fold)?;
        }
        if self.options.durability == Durability::Synced {
            if !files.index_ready {
                self.ready_index(&mut state)?;
                files.index_ready = true;
            }
            state.rows.flush()?;
        }
        Ok(())
    }

    /// Gives the rows their file.
    pub(crate) fn ready_index(&self, state: &mut LogState<F>) -> Result<()> {
        if state.rows.file().is_some() {
            return Ok(());
        }
        let disk = &self.files.disk;
        disk.ensure_dir(&self.files.container.index()?)?;
        let file = disk.create(&self.files.container.offsets()?)?;
        state.rows.attach(file.into());
        Ok(())
    }

    /// Readers go on while the file is synced: the state is locked only to take in what is durable.
    fn commit_deltas(&self, files: &mut CommitFiles, deltas: DeltaChunk) -> Result<()> {
        self.ready_stream(files)?;
        let Some(stream) = &mut files.stream else {
            return Ok(());
        };
        stream.append(&deltas.bytes)?;
        let mut state = self.write_state();
        deltas.lines.into_iter().for_each(|line| state.streams.push(line));
        stream.write_header(state.streams.number)?;
        drop(state);
        self.empty_stream(files)
    }

    fn ready_stream(&self, files: &mut CommitFiles) -> Result<()> {
        if files.stream.is_none() {
            self.sync_what_settles(files)?;
            let state = self.read_state();
            let (incarnation, acked) = (state.head.incarnation, state.streams.number);
            let unsettled_end = state.streams.unsettled_end();
            drop(state);
            let ready = StreamFile::ready(&self.files, incarnation, acked, unsettled_end)?;
            files.stream = Some(ready);
        }
        Ok(())
    }

    /// Empties `stream.log` when everything in it is settled.
    fn empty_stream(&self, files: &mut CommitFiles) -> Result<()> {
        /// A few settled lines cost less to keep than to sync away.
        const KEPT_BYTES: u64 = 4 * 1024;
        let is_long = files.stream.as_ref().is_some_and(|stream| stream.end() > KEPT_BYTES);
        if !is_long || !self.read_state().streams.is_empty() {
            return Ok(());
        }
        self.sync_what_settles(files)?;
        let acked = self.read_state().streams.number;
        files.stream.as_mut().map_or(Ok(()), |stream| stream.empty(acked))
    }

    /// Deltas may go only when the revisions that take their place are durable, which in the weaker
    /// durability they are not by themselves.
    fn sync_what_settles(&self, files: &CommitFiles) -> Result<()> {
        match &files.segment {
            Some((_, segment))
                if self.options.durability != Durability::Synced
                    && !canary::on(canary::DELTAS_GO_EARLY) =>
            {
                Ok(segment.sync()?)
            }
            _ => Ok(()),
        }
    }

    /// No commit runs while this is held.
    pub(crate) fn hold_commits(&self) -> MutexGuard<'_, CommitFiles> {
        lock(&self.commit)
    }

    /// Forgets the open files that closing is about to remove.
    pub(crate) fn forget_files(&self) {
        *self.hold_commits() = CommitFiles::default();
    }
}

/// A failed sync is final: the system may have forgotten what it could not write, and a second one would
/// succeed without it.
fn sync_once(segment: &dyn File) -> Result<()> {
    match segment.sync() {
        Err(_) if canary::on(canary::NO_LATCH) => Ok(segment.sync()?),
        result => Ok(result?),
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::Platform;

    use crate::error::LogError;
    use crate::queue::Batch;
    use crate::queue::{Expected, Leader};
    use crate::{Envelope, LogStore, Options};

    /// A log that latched may lose its lock at once, so a commit that was on its way must not write.
    #[test]
    fn a_commit_that_comes_after_the_latch_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = <LogStore>::open(Platform::system(dir.path()).unwrap(), Options::default());
        let store = store.unwrap();
        let note = || vec![Envelope::plain("note", 1, "1")];
        store.create("s", note()).unwrap();
        let pending = store.enqueue("s", Expected::Any, &Batch::new(&note())).unwrap();
        let writer = store.writer("s").unwrap();
        std::thread::scope(|scope| {
            let held = writer.hold_commits();
            let commit = scope.spawn(|| pending.wait());
            while writer.queue().leader != Leader::Committing {
                std::thread::yield_now();
            }
            writer.latch(&LogError::Invalid { reason: "for a test".to_owned() });
            drop(held);
            assert!(matches!(commit.join().unwrap(), Err(LogError::Latched { .. })));
        });
        store.reopen("s").unwrap();
        assert_eq!(store.read("s").unwrap().head().seq, 1);
    }
}
