//! Appending batches and steps of streams, and announcing what became durable.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bough_log as log;
use bough_session::{Delta, EntryId, NewRecord, Record, SessionId, SessionState, codec};
use tokio::sync::oneshot;

use super::convert::StoreResult;
use super::streams::Streams;
use super::{Shared, convert};
use crate::StoreError;
use crate::sync::lock;
use crate::types::{Appended, Batch, Durable, IncarnationPosition, check_stored};
use bough_record::{Head, Position};

#[cfg(test)]
mod tests;

/// The steps of streams that have had none for this long become records.
const STREAM_IDLE: Duration = Duration::from_secs(2);

/// What this process knows of a session beyond its log. Locked while something is accepted.
#[derive(Debug, Default)]
pub(super) struct WriteState {
    streams: Streams,
    /// The opening of the log that the streams were tracked in.
    opening: Option<u64>,
}

/// The write state of one session, shared by the threads that write to it.
pub(super) type WriteSlot = Arc<Mutex<WriteState>>;

impl Shared {
    pub(super) fn write_slot(&self, session: &SessionId) -> WriteSlot {
        Arc::clone(lock(&self.write_slots).entry(session.clone()).or_default())
    }

    /// Appends a batch. Open streams become records in front of it, so that no record puts together steps that lie before
    /// an earlier record.
    pub(super) fn append(
        self: &Arc<Self>,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> Result<Appended, StoreError> {
        let Batch { records, state } = batch;
        let mut batch = convert::envelopes(&records);
        check_stored(&records, &batch)?;
        let slot = self.write_slot(session);
        let mut writes = lock(&slot);
        self.compare(session, expected)?;
        self.of_this_opening(session, &mut writes);
        self.track_streams(session, &mut writes)?;
        let last_step = writes.streams.last_step();
        let settled = writes.streams.joined();
        self.check_revisions(session, &settled, &records)?;
        for new in &records {
            if let Record::Revision(revision) = new.record.known() {
                writes.streams.forget(&revision.entry_id);
            }
        }
        let fold = state.map(|state| after_settled(state, &settled));
        batch.splice(0..0, convert::envelopes(&settled));
        // The log may have been closed since it was compared, and written by another process.
        let unmoved = log::Expected::Head(*expected);
        let batch = log::Batch { records: &batch, fold };
        let pending = self.enqueue(session, &mut writes, unmoved, &batch)?;
        Ok(self.announce_when_durable(session, &pending, last_step))
    }

    /// Forgets sessions that this process does not write any more.
    pub(super) fn forget_closed(&self) {
        lock(&self.write_slots).retain(|session, slot| {
            Arc::strong_count(slot) > 1 || self.log.is_open(session.as_str())
        });
    }

    /// Forgets what was known of sessions whose logs were all closed: others may write them from now on.
    pub(super) fn forget_unused(&self) {
        lock(&self.write_slots).retain(|_, slot| Arc::strong_count(slot) > 1);
    }

    /// Forgets streams that were tracked before the log was closed: others may have written more of them. What is on its
    /// way is made durable first, so that reading shows it.
    fn of_this_opening(&self, session: &SessionId, writes: &mut WriteState) {
        let opening = self.log.opening(session.as_str());
        if writes.opening != opening {
            // In a log that failed nothing is accepted before it is opened again.
            drop(self.log.flush(session.as_str()));
            *writes = WriteState { opening, ..WriteState::default() };
        }
    }

    /// The log compares too; here it is done before anything of the session's own is changed.
    fn compare(&self, session: &SessionId, expected: &Head) -> Result<(), StoreError> {
        let current = self.accepted(session)?;
        if current == *expected { Ok(()) } else { Err(StoreError::Conflict { current }) }
    }

    pub(super) fn accepted(&self, session: &SessionId) -> Result<Head, StoreError> {
        self.log.accepted_head(session.as_str()).of(session)
    }

    /// Refuses a revision that does not start where its entry is. Rare enough to wait for what is on its
    /// way, so that reading shows all of it.
    fn check_revisions(
        &self,
        session: &SessionId,
        settled: &[NewRecord],
        records: &[NewRecord],
    ) -> Result<(), StoreError> {
        let revises = |new: &NewRecord| matches!(new.record.known(), Record::Revision(_));
        if !records.iter().any(revises) {
            return Ok(());
        }
        self.log.flush(session.as_str()).of(session)?;
        let mut entries = std::collections::HashMap::new();
        for new in settled.iter().chain(records) {
            match new.record.known() {
                Record::Entry(entry) => drop(entries.insert(entry.id.clone(), entry.clone())),
                Record::Revision(revision) => {
                    let id = &revision.entry_id;
                    let mut entry = match entries.remove(id) {
                        Some(entry) => entry,
                        None => self.settled_entry(session, id)?.0,
                    };
                    let applied = revision.apply(&mut entry);
                    applied.map_err(|error| StoreError::invalid(error.to_string()))?;
                    entries.insert(id.clone(), entry);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// An entry as the records say, the steps after it, and the number of the last of them.
    fn settled_entry(
        &self,
        session: &SessionId,
        id: &EntryId,
    ) -> Result<(bough_session::Entry, Vec<Delta>, u64), StoreError> {
        let missing = || StoreError::EntryNotFound { entry: id.clone() };
        let reader = self.reader(session)?;
        let found = reader.entry(id.as_str(), convert::stored_record).of(session)?;
        let mut found = found.ok_or_else(missing)?;
        let steps = std::mem::take(&mut found.deltas);
        let last_number = steps.last().map_or(0, |line| line.number);
        let steps = steps.iter().filter_map(|line| codec::decode_delta(line.payload.get()));
        let (stored, _) = convert::entry(found)?;
        let steps = steps.filter(|step| step.revision > stored.entry.revision).collect();
        Ok((stored.entry, steps, last_number))
    }

    /// Tracks every message that streams in the log and is not tracked yet: an earlier process began them.
    fn track_streams(
        &self,
        session: &SessionId,
        writes: &mut WriteState,
    ) -> Result<(), StoreError> {
        for target in self.reader(session)?.streaming() {
            let entry = EntryId::from_stored(target);
            if !writes.streams.contains(&entry) {
                self.track(session, writes, &entry)?;
            }
        }
        Ok(())
    }

    /// Tracks one message. Waits for what is on its way first: only then reading shows where it is.
    fn track(
        &self,
        session: &SessionId,
        writes: &mut WriteState,
        entry: &EntryId,
    ) -> Result<(), StoreError> {
        self.log.flush(session.as_str()).of(session)?;
        let (base, steps, last_number) = self.settled_entry(session, entry)?;
        writes.streams.begin(base, (&steps, last_number))
    }

    /// Adds one step of a stream.
    pub(super) fn append_delta(
        self: &Arc<Self>,
        session: &SessionId,
        delta: &Delta,
    ) -> Result<Appended, StoreError> {
        let slot = self.write_slot(session);
        let mut writes = lock(&slot);
        // Opens the log, so that no other process writes it from here on.
        self.accepted(session)?;
        self.of_this_opening(session, &mut writes);
        if !writes.streams.contains(&delta.entry_id) {
            self.track(session, &mut writes, &delta.entry_id)?;
        }
        let current = writes.streams.revision(&delta.entry_id).unwrap_or(0);
        if delta.revision != current + 1 {
            let entry = delta.entry_id.clone();
            return Err(StoreError::RevisionConflict { entry, current });
        }
        let payload = codec::encode_delta(delta);
        let size = payload.len();
        if size > log::limits::DELTA_BYTES_MAX {
            return self.append_large_step(session, &mut writes, delta);
        }
        let now = self.platform.clock.monotonic();
        writes.streams.take(delta, now)?;
        let new = log::NewDelta {
            target: delta.entry_id.to_string(),
            revision: delta.revision,
            at_ms: delta.at_ms,
            payload,
        };
        let pending = self.log.enqueue_delta(session.as_str(), &new).map_err(|error| {
            writes.streams.forget(&delta.entry_id);
            convert::store_error(error, session)
        })?;
        let appended = self.announce_when_durable(session, &pending, pending.delta());
        if writes.streams.grew(&delta.entry_id, pending.delta(), size) {
            self.settle_streams(session, &mut writes)?;
        }
        Ok(appended)
    }

    /// Adds a step that is too large to wait for others: it is a record of its own, and the steps before it are one before.
    fn append_large_step(
        self: &Arc<Self>,
        session: &SessionId,
        writes: &mut WriteState,
        delta: &Delta,
    ) -> Result<Appended, StoreError> {
        self.track_streams(session, writes)?;
        let settled = writes.streams.joined();
        // It is refused here if it does not fit what the message says.
        writes.streams.take(delta, self.platform.clock.monotonic())?;
        writes.streams.forget(&delta.entry_id);
        let step = Record::Revision(delta.clone().into_revision()).at(delta.at_ms);
        self.accept(session, writes, settled.iter().chain([&step]))
    }

    /// Puts together the streams of sessions where none grows; called now and then.
    pub(super) fn settle_idle(self: &Arc<Self>) {
        let now = self.platform.clock.monotonic();
        let Some(before) = now.checked_sub(STREAM_IDLE) else { return };
        let slots: Vec<(SessionId, WriteSlot)> = lock(&self.write_slots)
            .iter()
            .map(|(id, slot)| (id.clone(), Arc::clone(slot)))
            .collect();
        for (session, slot) in slots {
            let mut writes = lock(&slot);
            self.of_this_opening(&session, &mut writes);
            if writes.streams.are_idle(before) {
                // What fails here is not lost: the steps are durable, and the next append finds them.
                drop(self.settle_streams(&session, &mut writes));
            } else if !writes.streams.is_empty() && self.is_all_durable(&session) {
                writes.streams.forget_settled(before);
            }
        }
    }

    /// Whether all that was accepted for a session is durable; closing one waits for that.
    fn is_all_durable(&self, session: &SessionId) -> bool {
        if !self.log.is_open(session.as_str()) {
            return true;
        }
        let durable = self.reader(session).map(|reader| reader.head());
        matches!((durable, self.accepted(session)), (Ok(durable), Ok(accepted)) if durable == accepted)
    }

    /// Puts together every stream of a session and waits until that is durable.
    pub(super) fn settle_now(self: &Arc<Self>, session: &SessionId) -> Result<(), StoreError> {
        let slot = self.write_slot(session);
        self.settle_locked(session, &mut lock(&slot))
    }

    /// The same for a caller that has locked the session.
    pub(super) fn settle_locked(
        self: &Arc<Self>,
        session: &SessionId,
        writes: &mut WriteState,
    ) -> Result<(), StoreError> {
        self.of_this_opening(session, writes);
        self.settle_streams(session, writes)?;
        self.log.flush(session.as_str()).of(session)
    }

    /// Puts together every stream of a session, also those that an earlier process began.
    fn settle_streams(
        self: &Arc<Self>,
        session: &SessionId,
        writes: &mut WriteState,
    ) -> Result<(), StoreError> {
        self.track_streams(session, writes)?;
        let settled = writes.streams.joined();
        if !settled.is_empty() {
            drop(self.accept(session, writes, &settled)?);
        }
        Ok(())
    }

    fn accept<'a>(
        self: &Arc<Self>,
        session: &SessionId,
        writes: &mut WriteState,
        batch: impl IntoIterator<Item = &'a NewRecord>,
    ) -> Result<Appended, StoreError> {
        let batch = convert::envelopes(batch);
        let batch = log::Batch::new(&batch);
        let pending = self.enqueue(session, writes, log::Expected::Any, &batch)?;
        Ok(self.announce_when_durable(session, &pending, 0))
    }

    /// Passes a batch to the log. It begins with the records that put together the open streams; these change only once the log
    /// took it.
    fn enqueue(
        &self,
        session: &SessionId,
        writes: &mut WriteState,
        expected: log::Expected,
        batch: &log::Batch<'_, SessionState>,
    ) -> Result<log::Pending<SessionState>, StoreError> {
        let pending = self.log.enqueue(session.as_str(), expected, batch);
        match &pending {
            Ok(_) => writes.streams.note_joined(),
            Err(_) => writes.streams = Streams::default(),
        }
        pending.of(session)
    }

    /// Announces a write when it is durable, in order. `step` is the last step that it adds or puts together, or 0.
    fn announce_when_durable(
        self: &Arc<Self>,
        session: &SessionId,
        pending: &log::Pending<SessionState>,
        step: u64,
    ) -> Appended {
        let head = pending.head();
        let position = Position { seq: head.seq, step };
        let end = IncarnationPosition::new(head.incarnation, position);
        let (sender, receiver) = oneshot::channel();
        let (shared, id) = (Arc::downgrade(self), session.clone());
        pending.on_durable(move |result| {
            let result = result.map(drop).of(&id);
            if let (Ok(()), Some(shared)) = (&result, shared.upgrade()) {
                shared.announce(&id, end);
            }
            drop(sender.send(result));
        });
        if let Some(task) = pending.claim() {
            self.commit_pool.commit(move || task.run());
        }
        let gone = || StoreError::Unavailable { reason: "the store was closed".to_owned() };
        let durable = Durable::new(async move { receiver.await.unwrap_or_else(|_| Err(gone())) });
        Appended { head, position, durable }
    }

    /// Begins a session.
    pub(super) fn create(
        self: &Arc<Self>,
        session: &SessionId,
        batch: &Batch,
    ) -> Result<Appended, StoreError> {
        let records = convert::envelopes(&batch.records);
        let slot = self.write_slot(session);
        let mut writes = lock(&slot);
        let head = self.log.create(session.as_str(), records).of(session)?;
        *writes = WriteState::default();
        let position = Position::at(head.seq);
        let end = IncarnationPosition::new(head.incarnation, position);
        let row = batch.state.as_ref().map(|state| Box::new(self.row_at(session, end, state)));
        // Before anything is appended, so that a later row is announced later.
        self.announce_row(session, end, row);
        drop(writes);
        self.show();
        Ok(Appended { head, position, durable: Durable::ready() })
    }
}

/// The state after a batch, with the records that put streams together in front of it. They change neither figures nor names.
fn after_settled(mut state: Arc<SessionState>, settled: &[NewRecord]) -> Arc<SessionState> {
    if !settled.is_empty() {
        Arc::make_mut(&mut state).seq += settled.len() as u64;
    }
    state
}
