//! Facets: what a list can be filtered by, as short digests.

use bough_session::{JsonMap, SessionStatus, TaskStatus};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::types::{ListQuery, Listed};

/// A digest of one thing that is true of a session.
pub(super) type Facet = [u8; 16];

/// Everything that a list can filter this session by.
pub(super) fn of_session(listed: &Listed) -> Vec<Facet> {
    let metadata = listed.meta.metadata.iter().flatten();
    let mut facets: Vec<Facet> = metadata.map(|(key, value)| metadata_facet(key, value)).collect();
    facets.push(status_facet(listed.meta.status));
    facets.extend(listed.details.task_status.map(task_facet));
    facets.extend(listed.details.task_name.as_deref().map(task_name_facet));
    facets
}

/// What a query asks to be true.
pub(super) fn of_query(query: &ListQuery) -> Vec<Facet> {
    let mut facets = of_metadata(&query.metadata, &query.scope);
    facets.extend(query.status.map(status_facet));
    facets.extend(query.task_status.map(task_facet));
    facets.extend(query.task_name.as_deref().map(task_name_facet));
    facets.sort_unstable();
    facets.dedup();
    facets
}

/// What metadata must have.
pub(super) fn of_metadata(metadata: &JsonMap, scope: &JsonMap) -> Vec<Facet> {
    metadata.iter().chain(scope).map(|(key, value)| metadata_facet(key, value)).collect()
}

fn metadata_facet(key: &str, value: &Value) -> Facet {
    // The JSON of a value has its keys in order, so that equal values have equal text.
    digest("metadata", &[key, &value.to_string()])
}

fn status_facet(status: SessionStatus) -> Facet {
    digest("status", &[status.as_str()])
}

fn task_facet(status: TaskStatus) -> Facet {
    digest("task", &[status.as_str()])
}

fn task_name_facet(name: &str) -> Facet {
    digest("task name", &[name])
}

fn digest(kind: &str, parts: &[&str]) -> Facet {
    let mut hash = Sha256::new();
    for part in [&[kind], parts].concat() {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let whole: [u8; 32] = hash.finalize().into();
    let mut facet = [0; 16];
    facet.copy_from_slice(whole.split_at(16).0);
    facet
}
