//! The operations of a store, each one call of the main.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bough_platform::Entropy;
use bough_session::{BranchHead, Delta, EntryId, Incarnation, SessionId, codec};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::BridgeOptions;
use super::asking::{self, Asked, understood};
use super::client::{CallError, Client, Link};
use super::follow::follow;
use super::kind::Kind;
use super::original::Original;
use super::protocol::{Accepted, CommitRequest, ReadRequest, StoreAnswer};
use crate::changes::{ChangeHub, ChangeWatch, SessionWatch};
use crate::memory::{check_batch, check_first, draw};
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, Durable, ListPage, ListQuery,
    PathPage, PathQuery, RecordPage, Snapshot, StoredEntry, Trashed,
};
use crate::{Store, StoreError};
use bough_record::{Head, Position};

pub(super) const COMMIT: &str = "session::store::commit";
pub(super) const READ: &str = "session::store::read";

/// Sessions of a main instance elsewhere. Cheap to clone; clones share the connection.
#[derive(Clone, Debug)]
pub struct BridgeStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    hub: ChangeHub,
    kind: Kind,
    following: tokio::task::JoinHandle<()>,
    /// Set once the main turns out to be this very process.
    is_self: Arc<AtomicBool>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.following.abort();
    }
}

impl BridgeStore {
    /// Begins to connect to the main. A main that does not answer yet is no error: calls fail until it does.
    pub async fn open(
        options: BridgeOptions,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let hub = ChangeHub::going_on(draw(entropy.as_ref())?);
        let own_name = format!("session::instance::{}", options.instance);
        let client = Client::start(options, entropy.as_ref())?;
        let is_self = Arc::new(AtomicBool::new(answers_to(&client, &own_name).await));
        let kind = Kind::new(client.clone(), hub.clone(), entropy);
        let following =
            follow(client.clone(), hub.clone(), kind.clone(), own_name, is_self.clone());
        let following = tokio::spawn(following);
        Ok(Self { shared: Arc::new(Shared { client, hub, kind, following, is_self }) })
    }

    /// Whether the main is this very process.
    #[must_use]
    pub fn is_self(&self) -> bool {
        self.shared.is_self.load(Ordering::Relaxed)
    }

    fn refuse_self(&self) -> Result<(), StoreError> {
        if !self.is_self() {
            return Ok(());
        }
        let reason = "the bridge's url leads back to this instance; name the main instance";
        Err(StoreError::Refused { reason: reason.to_owned() })
    }

    /// The main, where it is an original one.
    async fn original(&self) -> Result<Option<&Original>, StoreError> {
        self.refuse_self()?;
        self.shared.kind.original().await
    }

    /// Whether the main answers.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        *self.shared.client.link().borrow() == Link::Up
    }

    async fn commit<T: DeserializeOwned>(&self, request: &CommitRequest) -> Result<T, StoreError> {
        self.refuse_self()?;
        let data = say(request)?;
        answer_of(self.shared.client.call(COMMIT, data).await)
    }

    async fn read<T: DeserializeOwned>(&self, request: &ReadRequest) -> Result<T, StoreError> {
        understood(self.ask(request).await?)
    }

    async fn appended(&self, request: &CommitRequest) -> Result<Appended, StoreError> {
        let Accepted { head, position } = self.commit(request).await?;
        // The main has answered, so it is durable there.
        Ok(Appended { head, position, durable: Durable::ready() })
    }
}

/// Whoever answers to our own name is ourselves, however the address is spelt.
pub(super) async fn answers_to(client: &Client, own_name: &str) -> bool {
    client.call(own_name, json!({})).await.is_ok()
}

fn say<T: serde::Serialize>(request: &T) -> Result<Value, StoreError> {
    serde_json::to_value(request).map_err(|error| StoreError::invalid(error.to_string()))
}

/// What the main said, as the type that was asked for.
pub(super) fn answer_of<T: DeserializeOwned>(
    answer: Result<Value, CallError>,
) -> Result<T, StoreError> {
    understood(store_answer(answer)?)
}

fn store_answer(answer: Result<Value, CallError>) -> Result<StoreAnswer, StoreError> {
    serde_json::from_value(answer?).map_err(|error| StoreError::Unavailable {
        reason: format!("the main's answer cannot be read: {error}"),
    })
}

#[async_trait]
impl Asked for BridgeStore {
    async fn ask(&self, request: &ReadRequest) -> Result<StoreAnswer, StoreError> {
        self.refuse_self()?;
        store_answer(self.shared.client.call(READ, say(request)?).await)
    }
}

#[async_trait]
impl Store for BridgeStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "bridge",
            survives_restart: true,
            other_processes: true,
            keeps_change_cursor: true,
            keeps_unknown_records: true,
        }
    }

    async fn create(&self, session: &SessionId, batch: Batch) -> Result<Appended, StoreError> {
        if let Some(main) = self.original().await? {
            return main.create(session, batch.records).await;
        }
        let records = batch.records;
        check_first(&records)?;
        let session_id = session.clone();
        self.appended(&CommitRequest::Create { session_id, records }).await
    }

    async fn append(
        &self,
        session: &SessionId,
        expected: &Head,
        batch: Batch,
    ) -> Result<Appended, StoreError> {
        if let Some(main) = self.original().await? {
            return main.append(session, expected, batch.records).await;
        }
        let records = batch.records;
        check_batch(&records)?;
        let (session_id, expected) = (session.clone(), *expected);
        self.appended(&CommitRequest::Append { session_id, expected, records }).await
    }

    async fn append_delta(
        &self,
        session: &SessionId,
        delta: Delta,
    ) -> Result<Appended, StoreError> {
        if let Some(main) = self.original().await? {
            return main.append_delta(session, delta).await;
        }
        let (session_id, delta) = (session.clone(), codec::encode_delta(&delta));
        self.appended(&CommitRequest::Delta { session_id, delta }).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<Snapshot>, StoreError> {
        if let Some(main) = self.original().await? {
            return main.state(session).await;
        }
        asking::state(self, session).await
    }

    async fn entry(
        &self,
        session: &SessionId,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        if let Some(main) = self.original().await? {
            return main.entry(session, entry).await;
        }
        asking::entry(self, session, entry).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        if let Some(main) = self.original().await? {
            return main.path(session, query).await;
        }
        asking::path(self, session, query).await
    }

    async fn records(
        &self,
        session: &SessionId,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        if let Some(main) = self.original().await? {
            return main.records(session, after, limit).await;
        }
        asking::records(self, session, after, limit).await
    }

    async fn trashed_records(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        after: Position,
        limit: usize,
    ) -> Result<RecordPage, StoreError> {
        if self.original().await?.is_some() {
            // The original keeps nothing of what it deletes.
            return Err(StoreError::NotFound { session: session.clone() });
        }
        asking::trashed_records(self, session, incarnation, after, limit).await
    }

    async fn trashed_entry(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        entry: &EntryId,
    ) -> Result<Option<StoredEntry>, StoreError> {
        if self.original().await?.is_some() {
            // The original keeps nothing of what it deletes.
            return Ok(None);
        }
        asking::trashed_entry(self, session, incarnation, entry).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        if let Some(main) = self.original().await? {
            return main.branch_heads(session, before, limit).await;
        }
        asking::branch_heads(self, session, before, limit).await
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError> {
        if let Some(main) = self.original().await? {
            return main.delete(session, at_ms).await;
        }
        let session_id = session.clone();
        self.commit(&CommitRequest::Delete { session_id, at_ms }).await
    }

    async fn undelete(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        at_ms: i64,
    ) -> Result<Snapshot, StoreError> {
        if self.original().await?.is_some() {
            // The original keeps nothing of what it deletes.
            return Err(StoreError::NotFound { session: session.clone() });
        }
        let session_id = session.clone();
        let request = CommitRequest::Undelete { session_id, incarnation, at_ms };
        self.commit(&request).await
    }

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
    ) -> Result<bool, StoreError> {
        if self.original().await?.is_some() {
            return Ok(false);
        }
        let session_id = session.clone();
        self.commit(&CommitRequest::Purge { session_id, incarnation }).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        if self.original().await?.is_some() {
            return Ok(Vec::new());
        }
        let session_id = session.cloned();
        self.read(&ReadRequest::Trash { session_id }).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        if let Some(main) = self.original().await? {
            return main.list(query).await;
        }
        self.read(&ReadRequest::List { query: query.clone() }).await
    }

    async fn count(&self, query: &ListQuery) -> Result<u64, StoreError> {
        if let Some(main) = self.original().await? {
            return main.count(query).await;
        }
        self.read(&ReadRequest::Count { query: query.clone() }).await
    }

    fn watch(&self) -> ChangeWatch {
        self.shared.hub.watch()
    }

    fn watch_session(&self, session: &SessionId) -> SessionWatch {
        self.shared.hub.watch_session(session)
    }

    async fn change_cursor(&self) -> Result<ChangeCursor, StoreError> {
        if self.original().await?.is_some() {
            return Ok(self.shared.hub.cursor());
        }
        self.read(&ReadRequest::ChangeCursor).await
    }

    async fn changes_after(
        &self,
        cursor: &ChangeCursor,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        if self.original().await?.is_some() {
            return Ok(self.shared.hub.changes_after(cursor, limit));
        }
        let request = ReadRequest::Changes { after: cursor.clone(), limit, wait_ms: None };
        self.read(&request).await
    }

    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        if self.original().await?.is_some() {
            return Ok(());
        }
        self.read(&ReadRequest::Reopen { session_id: session.clone() }).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
