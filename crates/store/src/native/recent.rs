//! Records that this process has just written, for those who follow: what was made here need not be read from the disk
//! and made out again.
//!
//! A run holds the newest durable records of one life of a session, without a hole. It is of use while the log ends where
//! the run says: whatever else is written, by this process or by another, moves that end, and the log is read instead. That
//! goes for the steps of streams too: a record comes before the first of them, and another after the last.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_session::{NewRecord, SessionId};

use crate::limits::{RECENT_BATCH_BYTES_MAX, RECENT_BATCHES_MAX, RECENT_BYTES_MAX};
use crate::types::{Head, Position, RecordPage, StoredRecord};

/// What a batch takes beside its payload, about.
const BATCH_BYTES: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Recent {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
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
    batches: VecDeque<Arc<Kept>>,
}

/// Records that were accepted, and are kept when they are durable.
#[derive(Debug)]
pub(super) struct Kept {
    /// The number of the record before the first.
    after: u64,
    records: Vec<NewRecord>,
    bytes: usize,
}

impl Recent {
    /// Notes that a batch of so many bytes was accepted, and what the log's end was before and is now. Says what to hand in
    /// when it is durable.
    pub(super) fn accepted(
        &self,
        session: &SessionId,
        (before, now): (&Head, &Head),
        (records, bytes): (Vec<NewRecord>, usize),
    ) -> Option<Kept> {
        let mut held = self.lock();
        if bytes > RECENT_BATCH_BYTES_MAX {
            held.forget(session);
            return None;
        }
        match held.runs.get_mut(session) {
            Some(run) if run.accepted == *before => run.accepted = now.clone(),
            _ => {
                held.forget(session);
                let (accepted, end) = (now.clone(), before.seq);
                let run = Run { accepted, end, batches: VecDeque::new() };
                held.runs.insert(session.clone(), run);
            }
        }
        Some(Kept { after: before.seq, records, bytes: bytes + BATCH_BYTES })
    }

    /// Keeps a batch that is durable, if nothing is missing before it.
    pub(super) fn keep(&self, session: &SessionId, kept: Kept) {
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
        })
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // What is guarded is whole between any two statements that can panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn keep(&mut self, session: &SessionId, kept: Kept) -> Vec<Arc<Kept>> {
        let Some(run) = self.runs.get_mut(session) else { return Vec::new() };
        if run.end != kept.after {
            return self.forget(session);
        }
        self.bytes += kept.bytes;
        run.end += kept.records.len() as u64;
        run.batches.push_back(Arc::new(kept));
        if self.bytes > RECENT_BYTES_MAX {
            // Who follows reads the log for a moment.
            let held = std::mem::take(self);
            return held.runs.into_values().flat_map(|run| run.batches).collect();
        }
        let excess = run.batches.len().saturating_sub(RECENT_BATCHES_MAX);
        let excess: Vec<Arc<Kept>> = run.batches.drain(..excess).collect();
        self.bytes -= excess.iter().map(|batch| batch.bytes).sum::<usize>();
        excess
    }

    /// The batches with the records after a position, and the number of the last record.
    fn after(
        &self,
        session: &SessionId,
        accepted: &Head,
        after: Position,
    ) -> Option<(Vec<Arc<Kept>>, u64)> {
        let run = self.runs.get(session).filter(|run| run.accepted == *accepted)?;
        let start = run.batches.front()?.after;
        let reaches = start <= after.seq && after.seq < run.end && after.revision == 0;
        let later = run.batches.iter().filter(|batch| batch.end() > after.seq);
        reaches.then(|| (later.cloned().collect(), run.end))
    }

    fn forget(&mut self, session: &SessionId) -> Vec<Arc<Kept>> {
        let run = self.runs.remove(session);
        let batches: Vec<Arc<Kept>> = run.into_iter().flat_map(|run| run.batches).collect();
        self.bytes -= batches.iter().map(|batch| batch.bytes).sum::<usize>();
        batches
    }
}

impl Kept {
    /// The number of the last record.
    fn end(&self) -> u64 {
        self.after + self.records.len() as u64
    }

    fn stored_after(&self, after: u64) -> impl Iterator<Item = StoredRecord> {
        let numbered = (self.after + 1..).zip(&self.records);
        numbered.skip_while(move |(seq, _)| *seq <= after).map(|(seq, new)| StoredRecord {
            position: Position::at(seq),
            at_ms: new.at_ms,
            record: new.record.clone(),
            settles: None,
        })
    }
}

#[cfg(test)]
mod tests;
