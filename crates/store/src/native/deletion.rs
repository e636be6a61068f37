//! Deleting, bringing back, closing.

use std::sync::Arc;

use bough_log::Expected;
use bough_session::{Incarnation, Record, SessionId, SessionState};

use super::Shared;
use super::convert::StoreResult;
use super::delete_race::retry_missing;
use super::writes::WriteState;
use crate::StoreError;
use crate::changes::FeedEnd;
use crate::sync::lock;
use crate::types::{Snapshot, Trashed};
use bough_record::Position;

#[cfg(test)]
mod tests;

/// What the records of a deletion and of its undoing hold beside their time.
const NOTHING_MORE: &str = "{}";

impl Shared {
    pub(super) fn delete(
        self: &Arc<Self>,
        session: &SessionId,
        at_ms: i64,
    ) -> Result<Option<Trashed>, StoreError> {
        if self.state(session)?.is_none() {
            return Ok(None);
        }
        // Locked until the session is gone: one of several deletions finds it, and nothing is accepted after its last record.
        let slot = self.write_slot(session);
        let mut writes = lock(&slot);
        let gone = self.delete_locked(session, &mut writes, at_ms);
        *writes = WriteState::default();
        drop(writes);
        let (incarnation, state) = match gone.map_err(|error| self.explain(session, error)) {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            gone => gone?,
        };
        let position = Position::at(state.seq);
        self.catalogue().remove(session, incarnation, position);
        self.show();
        self.hub.wake(session, Some(FeedEnd { incarnation, position, deleted: true }));
        let (session_id, deleted_at) = (session.clone(), Some(at_ms));
        Ok(Some(Trashed { session_id, incarnation, deleted_at, state }))
    }

    /// Moves a session to the trash. Returns its incarnation and its last state.
    fn delete_locked(
        self: &Arc<Self>,
        session: &SessionId,
        writes: &mut WriteState,
        at_ms: i64,
    ) -> Result<(Incarnation, SessionState), StoreError> {
        self.settle_locked(session, writes)?;
        let missing = || StoreError::not_found(session);
        let before = self.state(session)?.ok_or_else(missing)?;
        let incarnation = before.head.incarnation;
        let expected = Expected::Incarnation(incarnation);
        match self.log.delete_where(session.as_str(), expected, at_ms, NOTHING_MORE).of(session) {
            // Another incarnation has the id by now: another process deleted this one.
            Err(StoreError::Conflict { .. }) => return Err(missing()),
            // Another process found the last record before the move, and finished the deletion.
            Err(StoreError::NotFound { .. })
                if self.is_in_trash(session, incarnation, at_ms)? => {}
            deleted => deleted?,
        }
        match self.trashed(session, incarnation) {
            // Another process removed it for good, or brought it back, at the same moment.
            Err(StoreError::NotFound { .. }) => Ok((incarnation, ended(before, at_ms))),
            trashed => Ok((incarnation, trashed?.0)),
        }
    }

    /// Whether an incarnation was deleted at this time.
    fn is_in_trash(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        let is_it = |log: &bough_log::ListedLog| {
            log.id == session.as_str()
                && log.incarnation == incarnation
                && log.deleted_at_ms == Some(at_ms)
        };
        Ok(self.listed_trash()?.iter().any(is_it))
    }

    pub(super) fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError> {
        let slot = self.write_slot(session);
        let mut writes = lock(&slot);
        retry_missing(|| {
            let id = session.as_str();
            self.log.undelete(id, Some(incarnation), at_ms, NOTHING_MORE).of(session)
        })?;
        *writes = WriteState::default();
        drop(writes);
        let snapshot = self.state(session)?.ok_or_else(|| StoreError::not_found(session))?;
        self.catalogue().revive(self.row(session, &snapshot));
        self.show();
        self.hub.wake(session, None);
        Ok(snapshot)
    }

    pub(super) fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        retry_missing(|| self.log.purge_one(session.as_str(), incarnation, deleted_at).of(session))
    }

    /// Deleted sessions, the first deleted first. One that cannot be read is still named.
    pub(super) fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        if let Some(session) = session {
            // A deletion that cannot be finished now is found by the next call.
            drop(self.finish_deletion(session));
        }
        let mut found = Vec::new();
        for log in self.listed_trash()? {
            let session_id = SessionId::from_stored(log.id);
            if session.is_some_and(|asked| *asked != session_id) {
                continue;
            }
            let incarnation = log.incarnation;
            let (state, deleted_at) = self
                .trashed(&session_id, incarnation)
                .unwrap_or_else(|_| (SessionState::new(session_id.clone()), log.deleted_at_ms));
            found.push(Trashed { session_id, incarnation, deleted_at, state });
        }
        found.sort_by_key(|trashed| trashed.deleted_at);
        Ok(found)
    }

    /// Finishes a deletion that was cut short, so that the session can be brought back or made anew; says whether it
    /// found one.
    pub(super) fn finish_deletion(&self, session: &SessionId) -> Result<bool, StoreError> {
        if !self.log.finish_deletion(session.as_str()).of(session)? {
            return Ok(false);
        }
        if let Some(row) = self.catalogue().fingerprint(session)? {
            self.catalogue().remove(session, row.incarnation, row.position);
        }
        Ok(true)
    }

    /// Finishes restores that were cut short: they wait in the trash and are not deleted.
    pub(super) fn finish_restores(&self) -> Result<(), StoreError> {
        let listed = self.log.trash().of_all()?;
        let now = self.platform.clock.now_ms();
        for log in listed.into_iter().filter(|log| log.deleted_at_ms.is_none()) {
            let session = SessionId::from_stored(log.id);
            // Of one that a new incarnation stands in the way of, or a V1 file, nothing is lost: it is never purged.
            drop(self.undelete(&session, log.incarnation, now));
        }
        Ok(())
    }

    pub(super) fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        // What this process knows of the session beyond its log is read again.
        lock(&self.write_slots).remove(session);
        self.log.reopen(session.as_str()).of(session)
    }

    /// Closes idle sessions.
    pub(super) fn release_idle(&self) {
        // One that fails to close keeps its lock and is tried again later.
        drop(self.log.release_idle(self.options.idle));
        self.forget_closed();
    }

    pub(super) fn close(self: &Arc<Self>) -> Result<(), StoreError> {
        let sessions: Vec<SessionId> = lock(&self.write_slots).keys().cloned().collect();
        for session in sessions {
            match self.settle_now(&session) {
                // Gone, or in doubt: nothing of it can be finished here.
                Ok(()) | Err(StoreError::NotFound { .. } | StoreError::Latched { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Asked once: the catalogue may become whole while the rest is closed, and what was found last is then not listed.
        let is_filled = *self.filled.borrow();
        // Before the logs are closed.
        self.make_rows();
        if is_filled {
            self.list_sessions_in_files();
        }
        self.log.close_all().of_all()?;
        self.forget_unused();
        self.catalogue().settle()?;
        let mark = lock(&self.mark).take();
        match mark {
            Some(mark) if is_filled => Ok(mark.remove()?),
            // The catalogue lacks sessions: a mark that is left makes the next process read every log.
            Some(_) | None => Ok(()),
        }
    }
}

/// A session with its last record.
fn ended(before: Snapshot, at_ms: i64) -> SessionState {
    let mut state = Arc::unwrap_or_clone(before.state);
    state.apply(&Record::Tombstone, before.head.seq.saturating_add(1), at_ms);
    state
}
