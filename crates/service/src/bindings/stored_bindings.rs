//! Bindings in the shared documents: one small document for each, with the position from which it resumes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bough_store::shared_state::{Change, Expected, Persistence, SharedState, SharedStateError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use super::progress::ResumePosition;
use super::spec::{BindingSpec, digest};
use crate::limits::{BINDINGS_DROPPED_MAX, BINDINGS_KEPT_MAX};
use crate::lock::lock;

/// Documents that are read at a time.
const PAGE: usize = 1000;

/// Writes the bindings of one bus.
#[derive(Debug)]
pub(super) struct StoredBindings {
    shared: Arc<dyn SharedState>,
    prefix: String,
    waiting: Mutex<Waiting>,
    urgent: Notify,
}

/// Documents that are to be written; `None` removes one.
#[derive(Debug, Default)]
struct Waiting {
    documents: BTreeMap<String, Option<Value>>,
    /// Whether one of them is the first position of a binding: without it, the binding would start at the present after a
    /// power cut.
    has_first: bool,
}

/// A binding as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredBinding {
    pub(super) spec: BindingSpec,
    pub(super) ordinal: u32,
    pub(super) trigger_id: String,
    /// The position from which it resumes; absent if its session has never existed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    cursor: Option<String>,
    /// Whether a new store was being replayed to it: the replay is repeated, then it goes on after the cursor.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    replays: bool,
    /// Whether its position was dropped, because it was free for too long or because there were too many.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    dropped: bool,
    /// Since when it is free; absent while it is held.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) left_ms: Option<i64>,
}

impl StoredBinding {
    pub(super) fn new(
        spec: &BindingSpec,
        (ordinal, trigger_id): (u32, &str),
        position: &ResumePosition,
        left_ms: Option<i64>,
    ) -> Self {
        let (cursor, replays) = match position {
            ResumePosition::Start => (None, false),
            ResumePosition::After(cursor) => (Some(cursor), false),
            ResumePosition::Replaying { after } => (after.as_ref(), true),
            ResumePosition::Dropped => (None, false),
        };
        let dropped = *position == ResumePosition::Dropped;
        let cursor = cursor.map(ToString::to_string);
        let (spec, trigger_id) = (spec.clone(), trigger_id.to_owned());
        Self { spec, ordinal, trigger_id, cursor, replays, dropped, left_ms }
    }

    /// The position. One that this version cannot read counts as dropped.
    pub(super) fn position(&self) -> ResumePosition {
        let cursor = self.cursor.as_ref().map(|text| text.parse());
        if self.dropped {
            return ResumePosition::Dropped;
        }
        if self.replays {
            let after = cursor.and_then(Result::ok);
            return ResumePosition::Replaying { after };
        }
        match cursor {
            None => ResumePosition::Start,
            Some(cursor) => cursor.map_or(ResumePosition::Dropped, ResumePosition::After),
        }
    }
}

impl StoredBindings {
    pub(super) fn new(shared: Arc<dyn SharedState>, bus: &str) -> Self {
        let prefix = format!("bindings/{}/", digest(&[bus]));
        Self { shared, prefix, waiting: Mutex::default(), urgent: Notify::new() }
    }

    /// Reads every binding that was written.
    pub(super) async fn read(&self) -> Result<Vec<StoredBinding>, SharedStateError> {
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        while found.len() < BINDINGS_KEPT_MAX + BINDINGS_DROPPED_MAX {
            let page = self.shared.list(&self.prefix, after.as_deref(), PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            // A document that this version cannot read is of a later version, and stays.
            let documents = page.into_iter().map(|(_, document)| document.value);
            found.extend(documents.filter_map(|value| serde_json::from_value(value).ok()));
        }
        Ok(found)
    }

    fn key(&self, spec: &BindingSpec, ordinal: u32) -> String {
        format!("{}{}/{ordinal:06}", self.prefix, spec.digest())
    }

    /// Schedules a write of a binding; immediately if it is its first position.
    pub(super) fn put(&self, written: &StoredBinding, is_first: bool) {
        let Ok(value) = serde_json::to_value(written) else { return };
        let mut waiting = lock(&self.waiting);
        waiting.documents.insert(self.key(&written.spec, written.ordinal), Some(value));
        waiting.has_first |= is_first;
        drop(waiting);
        if is_first {
            self.urgent.notify_one();
        }
    }

    pub(super) fn remove(&self, spec: &BindingSpec, ordinal: u32) {
        lock(&self.waiting).documents.insert(self.key(spec, ordinal), None);
    }

    /// Waits until something should be written at once.
    pub(super) async fn urgent(&self) {
        self.urgent.notified().await;
    }

    /// Writes what waits. If it fails, everything keeps waiting.
    pub(super) async fn write(&self) -> Result<(), SharedStateError> {
        let Waiting { documents, has_first } = std::mem::take(&mut *lock(&self.waiting));
        if documents.is_empty() {
            return Ok(());
        }
        let changes = documents.iter().map(|(key, value)| Change {
            key: key.clone(),
            // Only this process serves this bus.
            expected: Expected::Any,
            value: value.clone(),
        });
        let persistence = if has_first { Persistence::Synced } else { Persistence::ProcessExit };
        let written = self.shared.apply(changes.collect(), persistence).await;
        if written.is_err() {
            let mut waiting = lock(&self.waiting);
            waiting.has_first |= has_first;
            for (key, value) in documents {
                waiting.documents.entry(key).or_insert(value);
            }
        }
        written.map(|_| ())
    }
}
