use bough_session::{EntryId, SessionId, SessionState};
use bough_store::Store;

use super::desk::{Desk, Loaded, PendingEntry, Work};
use super::streams::Stream;
use crate::error::ServiceError;
use crate::runtime::is_visible;
use crate::scope::Scope;

/// A session as a change may look at it: as of the last accepted batch.
pub(crate) struct Bench<'a> {
    pub(super) desk: &'a Desk,
    pub(super) work: &'a mut Work,
    pub(super) store: &'a dyn Store,
    /// When the change happens.
    pub(crate) now_ms: i64,
}

impl Bench<'_> {
    pub(crate) fn session(&self) -> &SessionId {
        &self.desk.session
    }

    /// The session's state, if the session exists.
    pub(crate) fn state(&self) -> Option<&SessionState> {
        match &self.work.loaded {
            Some(Loaded::Present(present)) => Some(&present.state),
            Some(Loaded::Absent) | None => None,
        }
    }

    /// The session's state, if the session exists for the caller.
    pub(crate) fn visible(&self, scope: &Scope) -> Result<&SessionState, ServiceError> {
        self.state()
            .filter(|state| is_visible(scope, state))
            .ok_or_else(|| ServiceError::not_found(self.session()))
    }

    /// Where an entry is, if the session has it: accepted ones count.
    pub(crate) async fn find(&self, id: &EntryId) -> Result<Option<PendingEntry>, ServiceError> {
        if let Some(pending) = self.desk.pending(id) {
            return Ok(Some(pending));
        }
        let stored = self.store.entry(self.session(), id).await?;
        Ok(stored.map(|stored| PendingEntry {
            parent_id: stored.entry.parent_id,
            timestamp: stored.entry.timestamp,
        }))
    }

    /// An entry with its content as of the last accepted step, kept at hand for the next step.
    pub(crate) async fn open_entry(
        &mut self,
        id: &EntryId,
    ) -> Result<Option<&Stream>, ServiceError> {
        if self.work.streams.get(id).is_none() {
            if self.desk.pending(id).is_some()
                && let Some(newest) = self.work.newest.clone()
            {
                newest.settled().await?;
            }
            let Some(stored) = self.store.entry(self.session(), id).await? else {
                return Ok(None);
            };
            self.work.streams.put(Stream::of(stored.entry));
        }
        Ok(self.work.streams.get(id))
    }
}
