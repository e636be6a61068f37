//! The operations of a store, each one call of the main.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bough_platform::Entropy;
use bough_session::{BranchHead, EntryId, Incarnation, SessionId, codec};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::BridgeOptions;
use super::asking::{ReadTransport, RemoteReads, ask, parse_answer};
use super::client::{CallError, Client, Link};
use super::follow::follow;
use super::kind::Kind;
use super::protocol::{Accepted, CommitRequest, ReadRequest, StoreAnswer, to_json};
use super::session_manager::SessionManager;
use crate::buffered_draft::BufferedDraft;
use crate::changes::ChangeHub;
use crate::memory::new_incarnation;
use crate::store::Draft;
use crate::types::{
    Appended, Batch, Capabilities, ChangeCursor, ChangePage, Durable, EntryQuery, ListPage,
    ListQuery, Loaded, PathPage, PathQuery, RecordPage, RecordQuery, Snapshot, StoredEntry,
    Trashed, UsageQuery, UsageReport, Write,
};
use crate::{ReadStore, Store, StoreError};
use bough_record::Head;

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
    /// Begins to connect to the main. A main that does not answer yet is not an error: calls fail until it does.
    pub async fn open(
        options: BridgeOptions,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, StoreError> {
        let hub = ChangeHub::going_on(new_incarnation(entropy.as_ref())?);
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

    /// The main, if it is session-manager.
    async fn session_manager(&self) -> Result<Option<&SessionManager>, StoreError> {
        self.refuse_self()?;
        self.shared.kind.session_manager().await
    }

    /// How sessions of this main are read.
    async fn reads(&self) -> Result<Box<dyn ReadStore>, StoreError> {
        Ok(match self.session_manager().await? {
            Some(main) => Box::new(main.clone()),
            None => Box::new(RemoteReads::through(self.clone())),
        })
    }

    /// Whether the main answers.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        *self.shared.client.link().borrow() == Link::Up
    }

    async fn commit<T: DeserializeOwned>(&self, request: &CommitRequest) -> Result<T, StoreError> {
        self.refuse_self()?;
        let data = to_json(request)?;
        answer_of(self.shared.client.call(COMMIT, data).await)
    }
}

/// Whether the main answers to our own name: then it is this process, however the address is spelt.
pub(super) async fn answers_to(client: &Client, own_name: &str) -> bool {
    client.call(own_name, json!({})).await.is_ok()
}

/// The main's answer, as the requested type.
pub(super) fn answer_of<T: DeserializeOwned>(
    answer: Result<Value, CallError>,
) -> Result<T, StoreError> {
    parse_answer(store_answer(answer)?)
}

fn store_answer(answer: Result<Value, CallError>) -> Result<StoreAnswer, StoreError> {
    serde_json::from_value(answer?).map_err(|error| StoreError::Unavailable {
        reason: format!("the main's answer cannot be read: {error}"),
    })
}

#[async_trait]
impl ReadTransport for BridgeStore {
    async fn ask(&self, request: &ReadRequest) -> Result<StoreAnswer, StoreError> {
        self.refuse_self()?;
        store_answer(self.shared.client.call(READ, to_json(request)?).await)
    }
}

#[async_trait]
impl ReadStore for BridgeStore {
    async fn load(&self, session: &SessionId, known: Option<&Head>) -> Result<Loaded, StoreError> {
        self.reads().await?.load(session, known).await
    }

    async fn read_entry(
        &self,
        session: &SessionId,
        query: &EntryQuery,
    ) -> Result<Option<StoredEntry>, StoreError> {
        self.reads().await?.read_entry(session, query).await
    }

    async fn read_records(
        &self,
        session: &SessionId,
        query: &RecordQuery,
    ) -> Result<RecordPage, StoreError> {
        self.reads().await?.read_records(session, query).await
    }

    async fn path(&self, session: &SessionId, query: &PathQuery) -> Result<PathPage, StoreError> {
        self.reads().await?.path(session, query).await
    }

    async fn branch_heads(
        &self,
        session: &SessionId,
        before: Option<&EntryId>,
        limit: usize,
    ) -> Result<Vec<BranchHead>, StoreError> {
        self.reads().await?.branch_heads(session, before, limit).await
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

    async fn write(&self, session: &SessionId, write: Write) -> Result<Appended, StoreError> {
        if let Some(main) = self.session_manager().await? {
            return main.write(session, write).await;
        }
        write.check()?;
        let session_id = session.clone();
        let request = match write {
            Write::Create(Batch { records, .. }) => CommitRequest::Create { session_id, records },
            Write::Append { expected, batch: Batch { records, .. } } => {
                CommitRequest::Append { session_id, expected, records }
            }
            Write::Replace { expected, batch: Batch { records, .. } } => {
                CommitRequest::Replace { session_id, expected, records }
            }
            Write::Step(delta) => {
                CommitRequest::Delta { session_id, delta: codec::encode_delta(&delta) }
            }
        };
        let Accepted { head, position } = self.commit(&request).await?;
        // The main has answered, so it is durable there.
        Ok(Appended { head, position, durable: Durable::ready() })
    }

    async fn draft(&self, session: &SessionId) -> Result<Box<dyn Draft>, StoreError> {
        Ok(BufferedDraft::begin(self.clone(), session))
    }

    async fn delete(&self, session: &SessionId, at_ms: i64) -> Result<Option<Trashed>, StoreError> {
        if let Some(main) = self.session_manager().await? {
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
        if self.session_manager().await?.is_some() {
            // session-manager keeps nothing of what it deletes.
            return Err(StoreError::not_found(session));
        }
        let session_id = session.clone();
        let request = CommitRequest::Undelete { session_id, incarnation, at_ms };
        self.commit(&request).await
    }

    async fn purge(
        &self,
        session: &SessionId,
        incarnation: Incarnation,
        deleted_at: Option<i64>,
    ) -> Result<bool, StoreError> {
        if self.session_manager().await?.is_some() {
            return Ok(false);
        }
        let session_id = session.clone();
        self.commit(&CommitRequest::Purge { session_id, incarnation, deleted_at }).await
    }

    async fn trash(&self, session: Option<&SessionId>) -> Result<Vec<Trashed>, StoreError> {
        if self.session_manager().await?.is_some() {
            return Ok(Vec::new());
        }
        let session_id = session.cloned();
        ask(self, &ReadRequest::Trash { session_id }).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        if let Some(main) = self.session_manager().await? {
            return main.list(query).await;
        }
        ask(self, &ReadRequest::List { query: query.clone() }).await
    }

    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StoreError> {
        if let Some(main) = self.session_manager().await? {
            return main.usage(query).await;
        }
        ask(self, &ReadRequest::Usage { query: query.clone() }).await
    }

    fn hub(&self) -> &ChangeHub {
        &self.shared.hub
    }

    async fn changes(
        &self,
        after: Option<&ChangeCursor>,
        limit: usize,
    ) -> Result<ChangePage, StoreError> {
        if self.session_manager().await?.is_some() {
            return Ok(self.shared.hub.changes(after, limit));
        }
        ask(self, &ReadRequest::Changes { after: after.cloned(), limit, wait_ms: None }).await
    }

    async fn reopen(&self, session: &SessionId) -> Result<(), StoreError> {
        if self.session_manager().await?.is_some() {
            return Ok(());
        }
        ask(self, &ReadRequest::Reopen { session_id: session.clone() }).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
