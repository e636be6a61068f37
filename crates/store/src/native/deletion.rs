//! Deleting, bringing back, closing.

use std::sync::{Arc, PoisonError};

use bough_log::Expected;
use bough_session::{Incarnation, Record, SessionId, SessionState};

use super::delete_race::again;
use super::writes::{Live, hold};
use super::{Shared, convert};
use crate::StoreError;
use crate::changes::FeedEnd;
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
        // Held until the session is gone: of several who delete it one finds it, and nothing is accepted behind its last record.
        let slot = self.slot(session);
        let mut live = hold(&slot);
        let gone = self.delete_held(session, &mut live, at_ms);
        *live = Live::default();
        drop(live);
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

    /// Moves a session to the trash; the life that ended, and what it was in the end.
    fn delete_held(
        self: &Arc<Self>,
        session: &SessionId,
        live: &mut Live,
        at_ms: i64,
    ) -> Result<(Incarnation, SessionState), StoreError> {
        self.settle_held(session, live)?;
        let missing = || StoreError::NotFound { session: session.clone() };
        let before = self.state(session)?.ok_or_else(missing)?;
        let incarnation = before.head.incarnation;
        let life = Expected::Incarnation(incarnation);
        let deleted = self.log.delete_where(session.as_str(), life, at_ms, NOTHING_MORE);
        match deleted.map_err(|error| convert::error(error, session)) {
            // Another life has the id by now: this one was deleted by somebody else.
            Err(StoreError::Conflict { .. }) => return Err(missing()),
            // Who met the last record before the move has finished the deletion.
            Err(StoreError::NotFound { .. })
                if self.is_in_trash(session, incarnation, at_ms)? => {}
            deleted => deleted?,
        }
        match self.trashed_state(session, incarnation) {
            // Removed for good, or brought back, by another process in the same moment.
            Err(StoreError::NotFound { .. }) => Ok((incarnation, ended(before, at_ms))),
            state => Ok((incarnation, state?)),
        }
    }

    /// Whether a life was deleted at this time.
    fn is_in_trash(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<bool, StoreError> {
        let life = incarnation;
        let is_it = |log: &bough_log::ListedLog| {
            log.id == session.as_str()
                && log.incarnation == life
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
        let life = incarnation;
        let slot = self.slot(session);
        let mut live = hold(&slot);
        again(|| {
            let back = self.log.undelete(session.as_str(), Some(life), at_ms, NOTHING_MORE);
            back.map_err(|error| convert::error(error, session))
        })?;
        *live = Live::default();
        drop(live);
        let missing = || StoreError::NotFound { session: session.clone() };
        let snapshot = self.state(session)?.ok_or_else(missing)?;
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
        let life = incarnation;
        again(|| {
            let purged = self.log.purge_one(session.as_str(), life, deleted_at);
            purged.map_err(|error| convert::error(error, session))
        })
    }

    /// Deleted sessions, the first deleted first. One that cannot be read is still named.
    pub(super) fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        if let Some(session) = session {
            // One that cannot be finished now is found by the next who asks.
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
        let finished = self.log.finish_deletion(session.as_str());
        if !finished.map_err(|error| convert::error(error, session))? {
            return Ok(false);
        }
        if let Some(row) = self.catalogue().fingerprint(session)? {
            self.catalogue().remove(session, row.incarnation, row.position);
        }
        Ok(true)
    }

    /// Finishes restores that were cut short: they wait in the trash and are not deleted.
    pub(super) fn finish_restores(&self) -> Result<(), StoreError> {
        let whole = SessionId::from_stored("(trash)");
        let listed = self.log.trash().map_err(|error| convert::error(error, &whole))?;
        let now = self.platform.clock.now_ms();
        for log in listed.into_iter().filter(|log| log.deleted_at_ms.is_none()) {
            let session = SessionId::from_stored(log.id);
            // Of one that a new incarnation stands in the way of, or a V1 file, nothing is lost: it is never purged.
            drop(self.undelete(&session, log.incarnation, now));
        }
        Ok(())
    }

    pub(super) fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        self.forget(session);
        self.log.reopen(session.as_str()).map_err(|error| convert::error(error, session))
    }

    /// Forgets what this process knows of a session beyond its log.
    fn forget(&self, session: &SessionId) {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
    }

    /// Closes sessions that rested.
    pub(super) fn release_idle(&self) {
        // One that fails to close keeps its lock and is tried again later.
        drop(self.log.release_idle(self.options.idle));
        self.forget_closed();
    }

    pub(super) fn close(self: &Arc<Self>) -> Result<(), StoreError> {
        let sessions: Vec<SessionId> = {
            let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            live.keys().cloned().collect()
        };
        for session in sessions {
            match self.settle_now(&session) {
                // Gone, or in doubt: nothing of it can be finished here.
                Ok(()) | Err(StoreError::NotFound { .. } | StoreError::Latched { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // Before the logs are closed.
        self.make_rows();
        if *self.filled.borrow() {
            self.list_sessions_in_files();
        }
        let whole = SessionId::from_stored("(all)");
        self.log.close_all().map_err(|error| convert::error(error, &whole))?;
        self.forget_unused();
        self.catalogue().settle()?;
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner).take();
        match mark {
            Some(mark) if *self.filled.borrow() => Ok(mark.remove()?),
            // The catalogue lacks sessions: a mark that nobody holds makes the next process look at every log.
            Some(_) | None => Ok(()),
        }
    }
}

/// A session with its last record.
fn ended(before: Snapshot, at_ms: i64) -> SessionState {
    let mut state = before.state;
    state.apply(&Record::Tombstone, before.head.seq.saturating_add(1), at_ms);
    state
}
