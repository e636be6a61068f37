//! The newest records that this process has written, decoded, so that a feed need not read them from the disk.
//!
//! A run holds the newest durable records of one incarnation of a session, without a hole. It is used only while the log
//! ends where the run says. Whatever else is written, by this process or another, moves that end, and the log is read
//! instead. That holds for the steps of streams too: a record comes before the first of them, and another after the last.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_session::{NewRecord, SessionId};

use crate::limits::{TAIL_CACHE_BATCH_BYTES_MAX, TAIL_CACHE_BATCHES_MAX, TAIL_CACHE_BYTES_MAX};
use bough_record::{Head, Position};

use crate::types::{RecordPage, Steps, StoredRecord};

/// What a batch takes beside its payload, about.
const BATCH_BYTES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct TailCache {
    held: Mutex<Runs>,
}

#[derive(Debug, Default)]
struct Runs {
    runs: HashMap<SessionId, Run>,
    /// Of the records in all runs.
    bytes: usize,
}

#[derive(Debug)]
struct Run {
    /// Where the log ends with all that was accepted.
    accepted: Head,
    /// The number of the last record that is durable.
    end: u64,
    batches: VecDeque<Arc<CachedBatch>>,
}

/// Records that were accepted, and are kept when they are durable.
#[derive(Debug)]
pub(super) struct CachedBatch {
    /// The number of the record before the first.
    after: u64,
    records: Vec<NewRecord>,
    bytes: usize,
}

impl TailCache {
    /// Notes that a batch of so many bytes was accepted, and where the log ended before and ends now. Returns what to pass to
    /// [`keep`](Self::keep) when it is durable.
    pub(super) fn accepted(
        &self,
        session: &SessionId,
        (before, now): (&Head, &Head),
        (records, bytes): (Vec<NewRecord>, usize),
    ) -> Option<CachedBatch> {
        let mut held = self.lock();
        if bytes > TAIL_CACHE_BATCH_BYTES_MAX {
            held.forget(session);
            return None;
        }
        match held.runs.get_mut(session) {
            Some(run) if run.accepted == *before => run.accepted = *now,
            _ => {
                held.forget(session);
                let (accepted, end) = (*now, before.seq);
                let run = Run { accepted, end, batches: VecDeque::new() };
                held.runs.insert(session.clone(), run);
            }
        }
        Some(CachedBatch { after: before.seq, records, bytes: bytes + BATCH_BYTES })
    }

    /// Keeps a batch that is durable, if nothing is missing before it.
    pub(super) fn keep(&self, session: &SessionId, kept: CachedBatch) {
        // Whatever is let go of here is taken apart after the lock is.
        let _excess = self.lock().keep(session, kept);
    }

    /// The records after a position, of a log that ends there with all that was accepted; `None` when the log has to be
    /// read.
    pub(super) fn read(
        &self,
        session: &SessionId,
        accepted: &Head,
        after: Position,
        limit: usize,
    ) -> Option<RecordPage> {
        let (batches, end) = self.lock().after(session, accepted, after)?;
        let records = batches.iter().flat_map(|batch| batch.stored_after(after.seq));
        Some(RecordPage {
            incarnation: accepted.incarnation,
            records: records.take(limit.max(1)).collect(),
            end: Position::at(end),
            more: end.saturating_sub(after.seq) > limit.max(1) as u64,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        // What is guarded is whole between any two statements that can panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runs {
    fn keep(&mut self, session: &SessionId, kept: CachedBatch) -> Vec<Arc<CachedBatch>> {
        let Some(run) = self.runs.get_mut(session) else { return Vec::new() };
        if run.end != kept.after {
            return self.forget(session);
        }
        self.bytes += kept.bytes;
        run.end += kept.records.len() as u64;
        run.batches.push_back(Arc::new(kept));
        if self.bytes > TAIL_CACHE_BYTES_MAX {
            // Feeds read the log for a moment.
            let held = std::mem::take(self);
            return held.runs.into_values().flat_map(|run| run.batches).collect();
        }
        let excess = run.batches.len().saturating_sub(TAIL_CACHE_BATCHES_MAX);
        let excess: Vec<Arc<CachedBatch>> = run.batches.drain(..excess).collect();
        self.bytes -= excess.iter().map(|batch| batch.bytes).sum::<usize>();
        excess
    }

    /// The batches with the records after a position, and the number of the last record.
    fn after(
        &self,
        session: &SessionId,
        accepted: &Head,
        after: Position,
    ) -> Option<(Vec<Arc<CachedBatch>>, u64)> {
        let run = self.runs.get(session).filter(|run| run.accepted == *accepted)?;
        let start = run.batches.front()?.after;
        let reaches = start <= after.seq && after.seq < run.end;
        let later = run.batches.iter().filter(|batch| batch.end() > after.seq);
        reaches.then(|| (later.cloned().collect(), run.end))
    }

    fn forget(&mut self, session: &SessionId) -> Vec<Arc<CachedBatch>> {
        let run = self.runs.remove(session);
        let batches: Vec<Arc<CachedBatch>> = run.into_iter().flat_map(|run| run.batches).collect();
        self.bytes -= batches.iter().map(|batch| batch.bytes).sum::<usize>();
        batches
    }
}

impl CachedBatch {
    /// The number of the last record.
    fn end(&self) -> u64 {
        self.after + self.records.len() as u64
    }

    fn stored_after(&self, after: u64) -> impl Iterator<Item = StoredRecord> {
        let numbered = (self.after + 1..).zip(&self.records);
        numbered.skip_while(move |(seq, _)| *seq <= after).map(|(seq, new)| StoredRecord {
            seq,
            steps: Steps::None,
            at_ms: new.at_ms,
            record: new.record.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
