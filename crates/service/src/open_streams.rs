//! Streams that are never finished: the process that serves the store finds them, also after a kill, and closes them as aborted.
//!
//! Before a stream begins, a document in the [`SharedState`] names it; when it is finished the document goes. A sweep looks
//! at the streams that are named: one whose message did not change for [`Settings::stream_abandoned_after`] is aborted.
//! A document may be left over, or name a stream that never began; it is removed by the same rule.
//!
//! [`Settings::stream_abandoned_after`]: crate::Settings::stream_abandoned_after

use bough_store::StoreExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bough_session::{EntryId, SessionId, hex};
use bough_store::shared_state::{
    Change, Document, Expected, Persistence, SharedState, SharedStateError,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::ServiceError;
use crate::limits::OPEN_STREAMS_PER_READ;
use crate::lock::lock;
use crate::rules::finish;
use crate::scope::Scope;
use crate::service::Service;

/// The streams that are open, by documents that processes share.
#[derive(Debug)]
pub(crate) struct OpenStreams {
    shared: Arc<dyn SharedState>,
    /// What the sweeps of this process saw, by the keys of the documents.
    seen: Mutex<HashMap<String, Seen>>,
    /// Streams that a request of this process is feeding, and how many such requests there are.
    held: Mutex<HashMap<StreamName, usize>>,
}

/// Which message streams.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct StreamName {
    session_id: SessionId,
    entry_id: EntryId,
}

/// A stream as a sweep saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    version: u64,
    /// The message's revision, while it is open.
    open_at: Option<u64>,
    since_ms: i64,
}

/// A stream that a request feeds: no sweep takes it for abandoned until this is dropped.
pub struct HeldStream {
    streams: Arc<OpenStreams>,
    name: StreamName,
}

impl OpenStreams {
    pub(crate) fn new(shared: Arc<dyn SharedState>) -> Self {
        Self { shared, seen: Mutex::default(), held: Mutex::default() }
    }

    /// Notes a stream that is about to begin; durable when it returns.
    pub(crate) async fn begin(
        &self,
        session_id: &SessionId,
        entry_id: &EntryId,
    ) -> Result<(), ServiceError> {
        let name = StreamName { session_id: session_id.clone(), entry_id: entry_id.clone() };
        let value = serde_json::to_value(&name).ok();
        let change = Change { key: name.key(), expected: Expected::Any, value };
        self.shared.apply(vec![change], Persistence::Synced).await.map_err(not_noted)?;
        Ok(())
    }

    /// Notes that a stream has ended. If that fails, a sweep finds out.
    pub(crate) async fn end(&self, session_id: &SessionId, entry_id: &EntryId) {
        let name = StreamName { session_id: session_id.clone(), entry_id: entry_id.clone() };
        drop(self.remove(name.key(), Expected::Any).await);
    }

    async fn remove(&self, key: String, expected: Expected) -> Result<(), SharedStateError> {
        let change = Change { key, expected, value: None };
        self.shared.apply(vec![change], Persistence::ProcessExit).await.map(drop)
    }

    fn hold(self: Arc<Self>, session_id: &SessionId, entry_id: &EntryId) -> HeldStream {
        let name = StreamName { session_id: session_id.clone(), entry_id: entry_id.clone() };
        *lock(&self.held).entry(name.clone()).or_default() += 1;
        HeldStream { streams: self, name }
    }

    /// Notes the version of a stream; returns since when it has that version.
    fn note(&self, key: &str, version: u64, open_at: Option<u64>, now_ms: i64) -> i64 {
        let mut seen = lock(&self.seen);
        let now = Seen { version, open_at, since_ms: now_ms };
        let known = seen.entry(key.to_owned()).or_insert_with(|| now.clone());
        if (known.version, known.open_at) != (version, open_at) {
            *known = now;
        }
        known.since_ms
    }

    fn is_held(&self, name: &StreamName) -> bool {
        lock(&self.held).contains_key(name)
    }
}

impl Service {
    /// Says where the open streams are noted; once. Without it they are noted nowhere, and none is taken for abandoned.
    pub fn set_open_streams(&self, shared: Arc<dyn SharedState>) -> bool {
        self.open_streams_slot().set(Arc::new(OpenStreams::new(shared))).is_ok()
    }

    /// Keeps a stream from being taken for abandoned while a request feeds it.
    #[must_use]
    pub fn hold_stream(&self, session_id: &SessionId, entry_id: &EntryId) -> Option<HeldStream> {
        let streams = self.open_streams_slot().get()?.clone();
        Some(streams.hold(session_id, entry_id))
    }

    /// Whether a request of this process feeds a stream.
    pub(crate) fn is_stream_held(&self, session_id: &SessionId, entry_id: &EntryId) -> bool {
        let name = StreamName { session_id: session_id.clone(), entry_id: entry_id.clone() };
        self.open_streams_slot().get().is_some_and(|streams| streams.is_held(&name))
    }

    /// Closes streams that did not grow for the configured time as aborted; how many it closed.
    pub async fn abort_abandoned_streams(&self) -> Result<usize, ServiceError> {
        let Some(streams) = self.open_streams_slot().get().cloned() else { return Ok(0) };
        let Some(rest) = self.settings().stream_abandoned_after else { return Ok(0) };
        let rest_ms = i64::try_from(rest.as_millis()).unwrap_or(i64::MAX);
        let (mut aborted, mut after, mut keys) = (0, None::<String>, Vec::new());
        loop {
            let page = streams.shared.list(PREFIX, after.as_deref(), OPEN_STREAMS_PER_READ).await;
            let page = page.map_err(not_noted)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            for (key, document) in page {
                aborted += usize::from(self.read_stream(&streams, &key, document, rest_ms).await?);
                keys.push(key);
            }
        }
        lock(&streams.seen).retain(|key, _| keys.contains(key));
        Ok(aborted)
    }

    /// Reads one stream that is noted as open; returns whether it was aborted.
    async fn read_stream(
        &self,
        streams: &OpenStreams,
        key: &str,
        document: Document,
        rest_ms: i64,
    ) -> Result<bool, ServiceError> {
        let Ok(name) = serde_json::from_value::<StreamName>(document.value) else {
            return Ok(false);
        };
        let (open_at, now_ms) = (self.open_at(&name).await?, self.now_ms());
        let since_ms = streams.note(key, document.version, open_at, now_ms);
        if now_ms.saturating_sub(since_ms) < rest_ms || streams.is_held(&name) {
            return Ok(false);
        }
        let Some(revision) = open_at else {
            // The stream that wrote the document since then needs it.
            drop(streams.remove(key.to_owned(), Expected::Version(document.version)).await);
            return Ok(false);
        };
        let (session, entry) = (&name.session_id, &name.entry_id);
        finish::abort(self, &Scope::owner(), (session, entry), revision).await
    }

    /// The revision of a stream that is open.
    async fn open_at(&self, name: &StreamName) -> Result<Option<u64>, ServiceError> {
        let store = self.store();
        let state = store.state(&name.session_id).await?;
        if !state.is_some_and(|now| now.state.streams.is_open(&name.entry_id)) {
            return Ok(None);
        }
        let entry = store.entry(&name.session_id, &name.entry_id).await?;
        Ok(entry.map(|stored| stored.entry.revision))
    }
}

/// What the keys of the documents begin with.
const PREFIX: &str = "stream.";

impl StreamName {
    /// Ids may have any characters, and keys may not.
    fn key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.session_id.as_str().len().to_be_bytes());
        hash.update(self.session_id.as_str().as_bytes());
        hash.update(self.entry_id.as_str().as_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        format!("{PREFIX}{}", hex(&digest))
    }
}

impl Drop for HeldStream {
    fn drop(&mut self) {
        let mut held = lock(&self.streams.held);
        if let Some(count) = held.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.name);
            }
        }
    }
}

fn not_noted(error: SharedStateError) -> ServiceError {
    ServiceError::storage(format!("the open streams cannot be noted: {error}"))
}
