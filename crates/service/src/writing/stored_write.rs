use bough_session::{EntryId, SessionId};
use bough_store::{Appended, Durable, Head, StoreError, Write};

use super::command::WriteJob;
use super::run_to_completion::run_to_completion;
use crate::open_session::{CommitNotifier, WriteEnd, WriteState};
use crate::service::Service;

/// Carries out a write that another instance has decided, which stores through this one. It goes through the open session as
/// every write does, and compares and refuses as a store does.
pub(crate) async fn write_stored(
    service: &Service,
    session: &SessionId,
    write: Write,
) -> Result<WriteEnd, StoreError> {
    let sessions = service.runtime().sessions.clone();
    let open = sessions.open(session);
    let job = WriteJob { sessions, open, now_ms: service.now_ms(), expected: None };
    run_to_completion(job.write_stored(write)).await
}

impl WriteJob {
    async fn write_stored(self, write: Write) -> Result<WriteEnd, StoreError> {
        let mut state = self.open.lock().await;
        let accepted = self.accept_stored(&mut state, write).await;
        if accepted.is_err() {
            self.open.forget(&mut state).await;
        }
        drop(state);
        let (notifier, durable) = accepted?;
        self.commit(notifier, durable).await
    }

    async fn accept_stored(
        &self,
        state: &mut WriteState,
        write: Write,
    ) -> Result<(CommitNotifier, Durable), StoreError> {
        self.load(state).await?;
        match write {
            Write::Create(batch) => self.create(state, batch.records).await,
            Write::Append { expected, batch } => {
                self.check_head(state, &expected).await?;
                self.append(state, batch.records).await
            }
            Write::Step(delta) => {
                self.check_message(state, &delta.entry_id).await?;
                self.append_step(state, delta).await
            }
            write @ Write::Replace { .. } => self.replace(state, write).await,
        }
    }

    /// Refuses a batch for another head than the session's. Another process, or the store itself, which joins the steps of
    /// a stream, may have moved the head since it was read.
    async fn check_head(&self, state: &mut WriteState, expected: &Head) -> Result<(), StoreError> {
        if state.accepted().is_none_or(|accepted| accepted.head != *expected) {
            self.open.forget(state).await;
            self.load(state).await?;
        }
        match state.accepted() {
            Some(accepted) if accepted.head == *expected => Ok(()),
            Some(accepted) => Err(StoreError::Conflict { current: accepted.head }),
            None => Err(StoreError::not_found(self.open.id())),
        }
    }

    /// Refuses a step of a message that the session does not have.
    async fn check_message(
        &self,
        state: &mut WriteState,
        entry: &EntryId,
    ) -> Result<(), StoreError> {
        if state.accepted().is_none() {
            return Err(StoreError::not_found(self.open.id()));
        }
        match self.context(state).streaming_message(entry).await? {
            Some(_) => Ok(()),
            None => Err(StoreError::EntryNotFound { entry: entry.clone() }),
        }
    }

    /// Puts another session in the place of this one. What is known of the old one is forgotten.
    async fn replace(
        &self,
        state: &mut WriteState,
        write: Write,
    ) -> Result<(CommitNotifier, Durable), StoreError> {
        self.open.forget(state).await;
        state.documents = None;
        let Appended { head, position, durable } =
            self.open.store().write(self.open.id(), write).await?;
        Ok((self.open.note_accepted(state, (head, position), Vec::new()), durable))
    }
}
