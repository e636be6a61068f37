use bough_session::{EntryId, SessionId, SessionState};
use bough_store::{Store, StoreExt};

use crate::error::ServiceError;
use crate::open_session::{OpenSession, StreamingMessage, UncommittedEntry, WriteState};
use crate::rules::reading::visible_entry;
use crate::runtime::is_visible;
use crate::scope::Scope;

/// A session as a command sees it: as of the last accepted write.
pub(crate) struct WriteContext<'a> {
    pub(super) open: &'a OpenSession,
    pub(super) write_state: &'a mut WriteState,
    /// When the command runs.
    pub(crate) now_ms: i64,
}

impl WriteContext<'_> {
    pub(crate) const fn session(&self) -> &SessionId {
        self.open.id()
    }

    /// The session's state, if the session exists.
    pub(crate) fn state(&self) -> Option<&SessionState> {
        self.write_state.accepted().map(|accepted| &*accepted.state)
    }

    /// The session's state, if the session exists for the caller.
    pub(crate) fn visible(&self, scope: &Scope) -> Result<&SessionState, ServiceError> {
        self.state()
            .filter(|state| is_visible(scope, state))
            .ok_or_else(|| ServiceError::not_found(self.session()))
    }

    /// Where an entry is, if the session has it. Entries that are accepted and not durable yet count.
    pub(crate) async fn find(
        &self,
        id: &EntryId,
    ) -> Result<Option<UncommittedEntry>, ServiceError> {
        if let Some(uncommitted) = self.open.uncommitted(id) {
            return Ok(Some(uncommitted));
        }
        let stored = self.open.store().entry(self.session(), id).await?;
        Ok(stored.as_ref().map(|stored| UncommittedEntry::from(&stored.entry)))
    }

    /// The same, of an entry that was not hidden.
    pub(crate) async fn find_visible(
        &self,
        id: &EntryId,
    ) -> Result<Option<UncommittedEntry>, ServiceError> {
        Ok(self.find(id).await?.filter(|found| !found.is_hidden))
    }

    /// Waits until everything that was accepted is durable, so that reading the store shows it.
    pub(crate) async fn flush(&self) -> Result<(), ServiceError> {
        match self.write_state.newest.clone() {
            Some(newest) => Ok(newest.wait().await?),
            None => Ok(()),
        }
    }

    /// Where to read what is durable.
    pub(crate) fn store(&self) -> &dyn Store {
        self.open.store()
    }

    /// A message as of the last accepted step. It is kept in memory for the next step.
    pub(crate) async fn streaming_message(
        &mut self,
        id: &EntryId,
    ) -> Result<Option<&StreamingMessage>, ServiceError> {
        if self.write_state.streams.get(id).is_none() {
            if self.open.uncommitted(id).is_some() {
                self.flush().await?;
            }
            let Some(stored) = visible_entry(self.store(), self.session(), id).await? else {
                return Ok(None);
            };
            self.write_state.streams.put(StreamingMessage::of(stored.entry));
        }
        Ok(self.write_state.streams.get(id))
    }
}
