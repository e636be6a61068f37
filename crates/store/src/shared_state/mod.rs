//! Small JSON documents that processes share: positions of bindings, tokens, settings, owners.
//!
//! A document is not part of a session and cannot be derived from one, so it is neither in a session's log nor in the
//! catalogue. There is one write, [`SharedState::apply`]: a few changes, each with a condition, all of them or none.

pub mod limits;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;

mod memory;
mod native;

use async_trait::async_trait;
use serde_json::Value;
use thiserror::Error;

pub use memory::MemorySharedState;
pub use native::{NativeSharedState, SHARED_FILE};

use limits::{CHANGES_PER_CALL_MAX, DOCUMENT_BYTES_MAX, KEY_BYTES_MAX};

/// Where processes share small documents.
#[async_trait]
pub trait SharedState: std::fmt::Debug + Send + Sync {
    /// The document with a key.
    async fn get(&self, key: &str) -> Result<Option<Document>, SharedStateError>;

    /// The documents whose key begins with `prefix`, in the order of their keys, after the key `after`; at most `limit`.
    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Document)>, SharedStateError>;

    /// Makes all changes or none, and returns the version of each changed document, in the order of the changes; 0 for one that
    /// was removed. Two changes of one call must not name the same key.
    async fn apply(
        &self,
        changes: Vec<Change>,
        persistence: Persistence,
    ) -> Result<Vec<u64>, SharedStateError>;
}

/// A document and its version.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// Changes with every write. A key that is removed and written again never gets an old version back.
    pub version: u64,
    /// What it says.
    pub value: Value,
}

/// One change of one document.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Which document.
    pub key: String,
    /// The condition of the change.
    pub expected: Expected,
    /// The new value; `None` removes the document.
    pub value: Option<Value>,
}

/// What a change expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever is there.
    Any,
    /// No document.
    Absent,
    /// The document at this version.
    Version(u64),
}

impl Expected {
    fn holds(self, current: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => current.is_none(),
            Self::Version(version) => current == Some(version),
        }
    }
}

/// Which failures an acknowledged change survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// A power cut.
    Synced,
    /// The end of the process, however it ends. A power cut may undo the newest of these changes, never partially.
    ProcessExit,
}

/// Why documents were not read or changed.
#[derive(Clone, Debug, Error)]
pub enum SharedStateError {
    /// Another caller changed a document since this one read it. Read it again and decide again.
    #[error("the document {key} has changed; read it again and retry")]
    Conflict {
        /// Which one.
        key: String,
        /// Its present version; `None` if it does not exist.
        current: Option<u64>,
    },
    /// The request is invalid.
    #[error("{what}")]
    Invalid {
        /// What is wrong with it.
        what: String,
    },
    /// The documents cannot be reached now. Try again.
    #[error("the shared documents are not available: {reason}")]
    Unavailable {
        /// Why.
        reason: String,
    },
    /// The file is damaged.
    #[error(
        "{path} is damaged: {reason}; move it away to begin without it: bindings then start at the present"
    )]
    Corrupt {
        /// Which file.
        path: String,
        /// What is wrong.
        reason: String,
    },
}

fn check_key(key: &str) -> Result<(), SharedStateError> {
    let is_plain = key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain && (1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Ok(());
    }
    let what = format!("a key has 1 to {KEY_BYTES_MAX} printable ASCII characters without spaces");
    Err(SharedStateError::Invalid { what })
}

/// Checks changes, and renders their values.
fn check(changes: &[Change]) -> Result<Vec<Option<String>>, SharedStateError> {
    if changes.len() > CHANGES_PER_CALL_MAX {
        let what = format!("one call makes at most {CHANGES_PER_CALL_MAX} changes");
        return Err(SharedStateError::Invalid { what });
    }
    let mut keys = std::collections::HashSet::new();
    let mut texts = Vec::with_capacity(changes.len());
    for change in changes {
        check_key(&change.key)?;
        if !keys.insert(&change.key) {
            let what = format!("one call changes {} twice", change.key);
            return Err(SharedStateError::Invalid { what });
        }
        let text = change.value.as_ref().map(ToString::to_string);
        if text.as_ref().is_some_and(|text| text.len() > DOCUMENT_BYTES_MAX) {
            let what = format!("a document has at most {DOCUMENT_BYTES_MAX} bytes");
            return Err(SharedStateError::Invalid { what });
        }
        texts.push(text);
    }
    Ok(texts)
}
