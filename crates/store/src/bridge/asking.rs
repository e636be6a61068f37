//! Reading the sessions of a store elsewhere, however the questions travel.

use async_trait::async_trait;
use bough_session::{BranchHead, Delta, EntryId, Incarnation, SessionId};
use serde::de::DeserializeOwned;

use super::protocol::{ReadRequest, StoreAnswer};
use crate::changes::{ChangeHub, ChangeWatch, SessionWatch};
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, ListPage, ListQuery, PathPage,
    PathQuery, RecordPage, Snapshot, StoredEntry, Trashed,
};
use crate::{Store, StoreError};
use bough_record::{Head, Position};

/// Somebody who answers the reads of the store protocol.
#[async_trait]
pub trait Asked: std::fmt::Debug + Send + Sync {
    /// What comes of one read.
    async fn ask(&self, request: &ReadRequest) -> Result<StoreAnswer, StoreError>;
}

/// What was said, as the type that was asked for.
pub(super) fn understood<T: DeserializeOwned>(answer: StoreAnswer) -> Result<T, StoreError> {
    let misread = |error: serde_json::Error| StoreError::Unavailable {
        reason: format!("the other side's answer cannot be read: {error}"),
    };
    match answer.error {
        Some(error) => Err(error.into()),
        None => serde_json::from_value(answer.ok.unwrap_or_default()).map_err(misread),
    }
}

async fn ask<T: DeserializeOwned>(
    asked: &dyn Asked,
    request: &ReadRequest,
) -> Result<T, StoreError> {
    understood(asked.ask(request).await?)
}

pub(super) async fn state(
    asked: &dyn Asked,
    session: &SessionId,
) -> Result<Option<Snapshot>, StoreError> {
    let request = ReadRequest::State { session_id: session.clone() };
    ask(asked, &request).await
}

pub(super) async fn entry(
    asked: &dyn Asked,
    session: &SessionId,
    entry: &EntryId,
) -> Result<Option<StoredEntry>, StoreError> {
    let request = ReadRequest::Entry { session_id: session.clone(), entry_id: entry.clone() };
    ask(asked, &request).await
}

pub(super) async fn path(
    asked: &dyn Asked,
    session: &SessionId,
    query: &PathQuery,
) -> Result<PathPage, StoreError> {
    ask(asked, &ReadRequest::Path { session_id: session.clone(), query: query.clone() }).await
}

pub(super) async fn records(
    asked: &dyn Asked,
    session: &SessionId,
    after: Position,
    limit: usize,
) -> Result<RecordPage, StoreError> {
    let request = ReadRequest::Records { session_id: session.clone(), after, limit };
    ask(asked, &request).await
}

/// The records of a deleted session. One who was made before this question knows only lives that go on, which is the same as
/// a store that cannot look into its trash.
pub(super) async fn trashed_records(
    asked: &dyn Asked,
    session: &SessionId,
    incarnation: Incarnation,
    after: Position,
    limit: usize,
) -> Result<RecordPage, StoreError> {
    let session_id = session.clone();
    let request = ReadRequest::TrashedRecords { session_id, incarnation, after, limit };
    match ask(asked, &request).await {
        Err(error) if is_unknown(&error, "trashed_records") => {
            Err(StoreError::NotFound { session: session.clone() })
        }
        page => page,
    }
}

/// An entry of a deleted session; `None` also from one who does not know the question.
pub(super) async fn trashed_entry(
    asked: &dyn Asked,
    session: &SessionId,
    incarnation: Incarnation,
    entry: &EntryId,
) -> Result<Option<StoredEntry>, StoreError> {
    let (session_id, entry_id) = (session.clone(), entry.clone());
    let request = ReadRequest::TrashedEntry { session_id, incarnation, entry_id };
    match ask(asked, &request).await {
        Err(error) if is_unknown(&error, "trashed_entry") => Ok(None),
        found => found,
    }
}

/// Whether the other side could not read the question, because it does not know this operation.
fn is_unknown(error: &StoreError, operation: &str) -> bool {
    let unknown = format!("unknown variant `{operation}`");
    matches!(error, StoreError::Unavailable { reason } if reason.contains(&unknown))
}

pub(super) async fn branch_heads(
    asked: &dyn Asked,
    session: &SessionId,
    before: Option<&EntryId>,
    limit: usize,
) -> Result<Vec<BranchHead>, StoreError> {
    let (session_id, before) = (session.clone(), before.cloned());
    let request = ReadRequest::BranchHeads { session_id, before, limit };
    ask(asked, &request).await
}

/// The sessions of a store elsewhere, one at a time and for reading only: lists and writes are refused.
#[derive(Debug)]
pub struct ReadOnlyStore<A> {
    asked: A,
    hub: ChangeHub,
}

impl<A: Asked> ReadOnlyStore<A> {
    /// Reads through somebody who answers.
    pub fn through(asked: A) -> Self {
        // Nothing is ever announced, so its cursors need no epoch of their own.
        Self { asked, hub: ChangeHub::new(Incarnation::new([0; 16])) }
    }
}

fn refused<T>() -> Result<T, StoreError> {
    Err(StoreError::invalid("sessions elsewhere are only read here, one at a time"))
}

#[async_trait]
impl<A: Asked> Store for ReadOnlyStore<A> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "read-only",
            survives_restart: true,
            other_processes: true,
            keeps_change_cursor: false,
            keeps_unknown_records: true,
        }
    }

    async fn create(&self, _: &SessionId, _: Batch) -> Result<Appended, StoreError> {
        refused()
    }

    async fn append(&self, _: &SessionId, _: &Head, _: Batch) -> Result<Appended, StoreError> {
        refused()
    }

    async fn append_delta(&self, _: &SessionId, _: Delta) -> Result<Appended, StoreError> {
        refused()
    }

    async fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError> {
        state(&self.asked, session).await
    }

    async fn entry(
        &self,
        session: &SessionId,
        wanted: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        entry(&self.asked, session, wanted).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        path(&self.asked, session, query).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        records(&self.asked, session, after, limit).await
    }

    async fn trashed_records(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        trashed_records(&self.asked, session, incarnation, after, limit).await
    }

    async fn trashed_entry(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        trashed_entry(&self.asked, session, incarnation, entry).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        branch_heads(&self.asked, session, before, limit).await
    }

    async fn delete(&self, _: &SessionId, _: i64) -> Result<Option<Trashed>, StoreError> {
        refused()
    }

    async fn undelete(
        &self,
        _: &SessionId,
        _: Incarnation,
        _: i64,
    ) -> Result<Snapshot, StoreError> {
        refused()
    }

    async fn purge(&self, _: &SessionId, _: Incarnation) -> Result<bool, StoreError> {
        refused()
    }

    async fn trash(&self, _: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        refused()
    }

    async fn list(&self, _: &ListQuery) -> Result<ListPage, StoreError> {
        refused()
    }

    async fn count(&self, _: &ListQuery) -> Result<u64, StoreError> {
        refused()
    }

    fn watch(&self) -> ChangeWatch {
        self.hub.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.hub.watch_session(session)
    }

    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError> {
        refused()
    }

    async fn changes_after(&self, _: &ChangeCursor, _: usize) -> Result<ChangePage, StoreError> {
        refused()
    }

    async fn reopen(&self, _: &SessionId) -> Result<(), StoreError> {
        refused()
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses everything with the same words.
    #[derive(Debug)]
    struct Refusing(&'static str);

    #[async_trait]
    impl Asked for Refusing {
        async fn ask(&self, _: &ReadRequest) -> Result<StoreAnswer, StoreError> {
            Err(StoreError::Unavailable { reason: self.0.to_owned() })
        }
    }

    async fn in_trash(words: &'static str) -> [Result<bool, StoreError>; 2] {
        let (session, life) = (SessionId::from_stored("s"), Incarnation::new([1; 16]));
        let entry = EntryId::from_stored("e");
        let asked = Refusing(words);
        let records = trashed_records(&asked, &session, life, Position::default(), 9).await;
        let entry = trashed_entry(&asked, &session, life, &entry).await;
        [records.map(|_| true), entry.map(|found| found.is_some())]
    }

    #[tokio::test]
    async fn one_who_does_not_know_the_question_has_nothing_in_the_trash() {
        for (at, operation) in ["trashed_records", "trashed_entry"].into_iter().enumerate() {
            let words =
                format!("serialization error: unknown variant `{operation}`, expected `state`");
            let answers = in_trash(words.leak()).await;
            let known =
                answers.map(|answer| !matches!(answer, Err(StoreError::Unavailable { .. })));
            assert!(known[at], "{operation}");
        }
        for answer in in_trash("the connection broke").await {
            assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        }
    }
}
