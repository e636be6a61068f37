//! Shared documents in memory, for tests and for stores that keep nothing.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard};

use async_trait::async_trait;

use super::{Change, Document, Persistence, SharedState, SharedStateError, check};
use crate::sync::lock;

/// Shared documents that end with the process.
#[derive(Debug, Default)]
pub struct MemorySharedState {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    documents: BTreeMap<String, Document>,
    /// The last version that was given out.
    version: u64,
}

impl MemorySharedState {
    /// No documents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The documents change in one step that cannot fail, so a poisoned lock can be used.
        lock(&self.state)
    }
}

#[async_trait]
impl SharedState for MemorySharedState {
    async fn get(&self, key: &str) -> Result<Option<Document>, SharedStateError> {
        Ok(self.lock().documents.get(key).cloned())
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Document)>, SharedStateError> {
        let start = match after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let state = self.lock();
        let found = state.documents.range::<str, _>((start, Bound::Unbounded));
        let found = found.take_while(|(key, _)| key.starts_with(prefix)).take(limit);
        Ok(found.map(|(key, document)| (key.clone(), document.clone())).collect())
    }

    async fn apply(
        &self,
        changes: Vec<Change>,
        _: Persistence,
    ) -> Result<Vec<u64>, SharedStateError> {
        check(&changes)?;
        let mut state = self.lock();
        for Change { key, expected, .. } in &changes {
            let current = state.documents.get(key).map(|document| document.version);
            if !expected.holds(current) {
                return Err(SharedStateError::Conflict { key: key.clone(), current });
            }
        }
        let mut versions = Vec::with_capacity(changes.len());
        for Change { key, value, .. } in changes {
            let Some(value) = value else {
                state.documents.remove(&key);
                versions.push(0);
                continue;
            };
            state.version += 1;
            let version = state.version;
            state.documents.insert(key, Document { version, value });
            versions.push(version);
        }
        Ok(versions)
    }
}
