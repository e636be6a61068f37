//! What a function answers, before it is printed, and what HTTP says beside it.

use bough_session::{EntryId, RawJson, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::error::ServiceError;
use crate::scope::Right;

/// The answer of a function. It is printed once, in the form that its surface needs.
pub struct Answer {
    body: Box<dyn Printed>,
    /// What an `ETag` would name.
    pub tag: Option<Tag>,
    /// The session that the call made, where the function makes one.
    pub made: Option<SessionId>,
    /// Whether the call was carried out before, and changed nothing now.
    pub is_replay: bool,
    /// The revision that is there, when it is not the one that the caller expected and nothing was changed.
    pub stale: Option<u64>,
}

/// What an `ETag` names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tag {
    /// A session as it was before the call.
    Session,
    /// A session whose own fields have this version since the call.
    Change(String),
    /// An entry at a revision.
    Entry(u64),
    /// The entry that a session's entries end with.
    Leaf(EntryId),
    /// A document at a version.
    Document(u64),
}

/// What the `ETag` of a function's answers names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// The session.
    Session,
    /// The session after a change of its own fields.
    Change,
    /// An entry.
    Entry,
    /// An entry, in answers for which the session is not read: only a caller that named the session's incarnation gets the
    /// tag.
    Step,
    /// The active leaf.
    Leaf,
    /// A document.
    Document,
}

/// What `If-Match` asks of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// That the active leaf is still the one of the tag.
    Leaf,
    /// That the entry is still at the revision of the tag.
    Revision,
    /// That the session's metadata is unchanged since the tag.
    Version,
    /// That the document still has the version of the tag.
    Document,
}

/// What repeating a request with the same `Idempotency-Key` means to a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing: it only reads.
    Harmless,
    /// Ids that the function draws are made from the key, so that the repeated request finds what the first one made.
    ByKey,
    /// A key is not enough; the request must name the revision that it expects.
    ByRevision,
    /// The answer is kept with the key, and the repeated request gets it.
    Kept,
    /// The function is between instances of a store, and takes no key.
    Refused,
}

impl Repeat {
    /// What repeating means to functions of a right that do not say it themselves.
    pub(crate) const fn usual(right: Right) -> Self {
        match right {
            Right::Read | Right::Metrics => Self::Harmless,
            Right::Write | Right::Admin => Self::Kept,
            Right::Bridge => Self::Refused,
        }
    }

    /// Whether a function takes a key, and the same key means the same request.
    #[must_use]
    pub const fn is_by_key(self) -> bool {
        matches!(self, Self::ByKey | Self::Kept)
    }
}

/// How the facts that HTTP needs are found in an answer of one type.
pub(crate) struct Facts<R> {
    pub(crate) tag: Option<fn(&R) -> Option<Tag>>,
    pub(crate) made: Option<fn(&R) -> SessionId>,
    pub(crate) stale: Option<fn(&R) -> Option<u64>>,
}

impl Answer {
    pub(crate) fn new<R: Serialize + Send + 'static>(
        answer: R,
        facts: &Facts<R>,
        is_replay: bool,
    ) -> Self {
        Self {
            is_replay,
            tag: facts.tag.and_then(|tag| tag(&answer)),
            made: facts.made.map(|made| made(&answer)),
            stale: facts.stale.and_then(|stale| stale(&answer)),
            body: Box::new(answer),
        }
    }

    /// The answer of an earlier call with the same key.
    pub(crate) fn of_earlier_call(body: Box<RawValue>, tag: Option<Tag>) -> Self {
        Self { body: Box::new(body), tag, made: None, is_replay: true, stale: None }
    }

    /// The answer as JSON text.
    pub fn to_json(&self) -> Result<Vec<u8>, ServiceError> {
        self.body.to_json().map_err(|error| unprintable(&error))
    }

    /// The answer as JSON that can stand inside another text.
    pub fn to_raw(&self) -> Result<RawJson, ServiceError> {
        self.body.to_raw().map_err(|error| unprintable(&error))
    }

    /// The answer as a value.
    pub fn to_value(&self) -> Result<Value, ServiceError> {
        self.body.to_value().map_err(|error| unprintable(&error))
    }
}

fn unprintable(error: &serde_json::Error) -> ServiceError {
    ServiceError::storage(format!("the answer cannot be written as JSON: {error}"))
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("tag", &self.tag).finish_non_exhaustive()
    }
}

/// Something that can be printed in each form.
trait Printed: Send {
    fn to_json(&self) -> serde_json::Result<Vec<u8>>;
    fn to_raw(&self) -> serde_json::Result<RawJson>;
    fn to_value(&self) -> serde_json::Result<Value>;
}

impl<T: Serialize + Send> Printed for T {
    fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    fn to_raw(&self) -> serde_json::Result<RawJson> {
        RawJson::of(self)
    }

    fn to_value(&self) -> serde_json::Result<Value> {
        serde_json::to_value(self)
    }
}
