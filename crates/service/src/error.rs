use bough_session::{EntryId, LimitError, Role, SessionId};
use bough_store::{StoreError, describe_holder};
use serde_json::{Value, json};

/// What is done about damage.
const DAMAGE_HINT: &str = "Run `bough verify` to see what is damaged, and `bough salvage` to copy everything that is intact to a new store.";

/// Who holds a session that another recorder of this process records.
pub(crate) const ANOTHER_RECORDER: &str = "another recorder";

const RECORDER_HINT: &str = "Continue that recording by its recording_id and end its loop; it is dropped when nothing came for 15 minutes.";

/// A row for each error: its code, its status, and the next step.
macro_rules! facts {
    ($error:expr; $($($pattern:pat_param)|+ => $code:literal $status:literal $hint:literal;)*) => {
        match $error {
            $($($pattern)|+ => ($code, $status, $hint),)*
        }
    };
}

/// Why a call failed, by what the caller can do about it.
///
/// [`ServiceError::code`] is stable and meant for programs; [`ServiceError::hint`] says the next step to a
/// person. Texts never contain paths, other callers' data or stack traces.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ServiceError {
    /// No such session, or not the caller's.
    #[error("session {session} does not exist")]
    NotFound {
        /// The session that was asked for.
        session: String,
    },
    /// The session has no such entry.
    #[error("entry {entry} does not exist in session {session}")]
    EntryNotFound {
        /// The session.
        session: String,
        /// The entry that was asked for.
        entry: String,
    },
    /// The parent that an entry should get is not in the session.
    #[error("parent entry {parent} does not exist in session {session}")]
    ParentNotFound {
        /// The session.
        session: String,
        /// The parent that was asked for.
        parent: String,
    },
    /// A message was expected and the entry is a custom one.
    #[error("entry {entry} is a custom entry; session::update-message only applies to messages")]
    InvalidEntryKind {
        /// The entry.
        entry: String,
    },
    /// `details` were given for a message that has none.
    #[error(
        "entry {entry} has role {role:?}; `details` applies to function_result and custom messages"
    )]
    DetailsNotSupported {
        /// The entry.
        entry: String,
        /// What it is.
        role: Role,
    },
    /// The batch has no messages.
    #[error("messages must contain at least one message")]
    EmptyBatch,
    /// A cursor that was not made here, or for another question.
    #[error("{reason}")]
    InvalidCursor {
        /// What is wrong with it.
        reason: String,
    },
    /// The request has the right shape, but its values do not fit together.
    #[error("{reason}")]
    InvalidRequest {
        /// What is wrong with it.
        reason: String,
    },
    /// The request does not have the shape that the function's schema describes.
    #[error("{detail}")]
    Malformed {
        /// The message of the decoder.
        detail: String,
        /// Where in the request, as a JSON pointer; empty where that is the whole of it.
        path: String,
    },
    /// Something is larger than its bound, or empty.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// A context that is too large for one answer.
    #[error("the context has more than {} MiB, which is too much for one answer", limit / (1024 * 1024))]
    ContextTooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
    /// Events are missing between what a recording has and what was sent.
    #[error(
        "the recording has {position} events, but the events that were sent follow event {after}"
    )]
    RecordingGap {
        /// How many events the caller says come before.
        after: u64,
        /// How many there are.
        position: u64,
    },
    /// Events of a loop that began before the first event that the server has in memory.
    #[error(
        "event {event} belongs to loop {loop_id}, which began before the events that this server has"
    )]
    RecordingNotBegun {
        /// The number of the event in its recording, from 1.
        event: u64,
        /// The loop.
        loop_id: String,
    },
    /// No recording of this name is open.
    #[error(
        "recording {recording_id} is not open: it has ended, or the server was restarted since"
    )]
    RecordingNotOpen {
        /// The recording.
        recording_id: String,
    },
    /// The recorded session has no such loop.
    #[error("loop {loop_id} does not exist in session {session}")]
    LoopNotFound {
        /// The session.
        session: String,
        /// The loop that was asked for.
        loop_id: String,
    },
    /// The active leaf is not the one that the caller expected.
    #[error(
        "the active leaf of session {session} is {}, not {}",
        name_leaf(actual),
        name_leaf(expected)
    )]
    LeafConflict {
        /// The session.
        session: String,
        /// What the caller expected; empty for a session without entries.
        expected: String,
        /// What it is; empty for a session without entries.
        actual: String,
    },
    /// The session's metadata is not at the version that the caller expected.
    #[error("session {session} has changed: its version is now {version}")]
    VersionConflict {
        /// The session.
        session: String,
        /// Its version now.
        version: String,
    },
    /// The document is at another version than the caller expected.
    #[error("document {key} {}", at_version(*version))]
    DocumentConflict {
        /// The key.
        key: String,
        /// Its version now; 0 when there is no such document.
        version: u64,
    },
    /// The scope has no such document.
    #[error("document {key} does not exist in scope {scope}")]
    DocumentNotFound {
        /// The scope.
        scope: String,
        /// The key.
        key: String,
    },
    /// What the request would make was made before, by a request with another content.
    #[error("{what} was already created by a request with different content")]
    OtherContent {
        /// What was made: `entry e` or `session s`.
        what: String,
    },
    /// The key of the call was used before, for another one.
    #[error("the Idempotency-Key was used before, for another request")]
    KeyReused,
    /// The entry is at another revision than the caller expected.
    #[error("the entry is at revision {revision}, not at the expected one")]
    RevisionConflict {
        /// What it is at.
        revision: u64,
    },
    /// The message is not a stream that can grow or be finished.
    #[error("entry {entry} does not stream; it is at revision {revision}")]
    NotStreaming {
        /// The entry.
        entry: String,
        /// Its revision.
        revision: u64,
    },
    /// The session was deleted and created again since the caller read it.
    #[error("session {session} was deleted and created again in the meantime")]
    OtherIncarnation {
        /// The session.
        session: String,
    },
    /// The caller's scope does not allow this.
    #[error("{reason}")]
    Forbidden {
        /// What is not allowed.
        reason: String,
    },
    /// The function table has no such function.
    #[error("Function {function} not found")]
    UnknownFunction {
        /// What was asked for.
        function: String,
    },
    /// No such session in the trash.
    #[error("session {session} is not in the trash")]
    NotInTrash {
        /// The session that was asked for.
        session: String,
    },
    /// A session with this id exists, so a deleted one cannot come back under it.
    #[error("session {session} already exists, so no other session can have its id")]
    AlreadyExists {
        /// The session.
        session: String,
    },
    /// Another process writes this session, or another recorder of this one.
    #[error("{}", describe_lock(holder))]
    Locked {
        /// What the other process wrote into the lock.
        holder: String,
    },
    /// Other writers kept changing the session while this call tried to.
    #[error("session {session} changed under this call {attempts} times in a row")]
    Busy {
        /// The session.
        session: String,
        /// How often the call tried.
        attempts: u32,
    },
    /// The store that has the session cannot do this, for example because the session is in another program's file.
    #[error("this session is stored in another program's file or store, and cannot {what} there")]
    Unsupported {
        /// What was asked for, as words that follow "cannot".
        what: &'static str,
    },
    /// This instance stores through another one, which has the search index.
    #[error("this instance has no search index")]
    NoSearchIndex,
    /// The active adapter stores elsewhere and may not answer for that store.
    #[error(
        "session::store::* is served only by an authoritative (fs-mode) instance; this instance is \
         currently in bridge mode"
    )]
    NotAuthoritative,
    /// The store failed.
    #[error("{reason}")]
    Storage {
        /// What happened, without paths on the disk.
        reason: String,
        /// The whole error, for the log of the operator.
        #[source]
        source: Option<Box<StoreError>>,
    },
}

fn at_version(version: u64) -> String {
    if version == 0 { "does not exist".to_owned() } else { format!("is at version {version}") }
}

fn name_leaf(entry: &str) -> &str {
    if entry.is_empty() { "empty" } else { entry }
}

impl ServiceError {
    pub(crate) fn not_found(session: &SessionId) -> Self {
        Self::NotFound { session: session.to_string() }
    }

    pub(crate) fn entry_not_found(session: &SessionId, entry: &EntryId) -> Self {
        Self::EntryNotFound { session: session.to_string(), entry: entry.to_string() }
    }

    pub(crate) fn not_streaming(entry: &EntryId, revision: u64) -> Self {
        Self::NotStreaming { entry: entry.to_string(), revision }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::InvalidRequest { reason: reason.into() }
    }

    pub(crate) fn storage(reason: impl Into<String>) -> Self {
        Self::Storage { reason: reason.into(), source: None }
    }

    /// A stable name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.facts().0
    }

    /// The HTTP status that says the same.
    #[must_use]
    pub fn http_status(&self) -> u16 {
        self.facts().1
    }

    /// The next step, for a person.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Locked { holder } if holder == ANOTHER_RECORDER => RECORDER_HINT,
            _ if self.is_damage() => DAMAGE_HINT,
            _ => self.facts().2,
        }
    }

    /// The message of a failed call on a bus, with the texts that clients of session-manager match on.
    #[must_use]
    pub fn bus_message(&self) -> String {
        match self {
            Self::Malformed { detail, .. } => format!("serialization error: {detail}"),
            _ => format!("handler error: {}: {self}", self.code()),
        }
    }

    /// Code, status and next step of each error.
    fn facts(&self) -> (&'static str, u16, &'static str) {
        use LimitError::{Empty, Reserved, TooLarge};
        facts! { self;
            Self::NotFound { .. } => "session/not_found" 404
                "Create it with PUT /v1/sessions/{session_id}, or look for it in GET /v1/trash.";
            Self::EntryNotFound { .. } => "session/entry_not_found" 404
                "List the entries with GET /v1/sessions/{session_id}/messages.";
            Self::ParentNotFound { .. } => "session/parent_not_found" 422 "Leave parent_id out to append at the active leaf.";
            Self::InvalidEntryKind { .. } => "session/invalid_entry_kind" 422 "Append a new custom entry instead.";
            Self::DetailsNotSupported { .. } => "session/details_not_supported" 422
                "Leave details out for user and assistant messages.";
            Self::EmptyBatch => "session/empty_batch" 422 "Send one message or more.";
            Self::InvalidCursor { .. } => "session/invalid_cursor" 400
                "Start again without a cursor, with the same filters on every page.";
            Self::InvalidRequest { .. } => "session/invalid_request" 400 "See /docs for the fields.";
            Self::Malformed { .. } => "session/malformed_request" 400 "See /docs for the fields.";
            Self::Limit(TooLarge { .. }) => "session/too_large" 413
                "Send less at once, or keep large content elsewhere and refer to it.";
            Self::Limit(Empty { .. }) => "session/invalid_request" 400 "Use one character or more.";
            Self::Limit(Reserved { .. }) => "session/invalid_request" 400 "Choose another name.";
            Self::ContextTooLarge { .. } => "session/context_too_large" 413
                "Pass max_tokens, compact the session, or read it in pages with GET /v1/sessions/{session_id}/messages.";
            Self::RecordingGap { .. } => "session/recording_gap" 409 "Send the events after that one.";
            Self::RecordingNotBegun { .. } => "session/recording_gap" 409
                "Send the events after the `resume_after` of the last answer again, or all of them with `after` 0; none is stored twice.";
            Self::RecordingNotOpen { .. } => "session/recording_not_open" 404
                "Send the events after the `resume_after` of the last answer again, or all of them with `after` 0; none is stored twice.";
            Self::LoopNotFound { .. } => "session/loop_not_found" 404
                "List the loops with GET /v1/sessions/{session_id}/loops.";
            Self::LeafConflict { .. } => "session/leaf_conflict" 409
                "Read what was appended in the meantime, then append after the new leaf.";
            Self::VersionConflict { .. } => "session/version_conflict" 409
                "Read the session again, then repeat the change on its present version.";
            Self::DocumentConflict { .. } => "session/document_conflict" 409
                "Read the document again, then repeat the change on its present version.";
            Self::DocumentNotFound { .. } => "session/document_not_found" 404 "List the documents with GET /v1/kv/{scope}.";
            Self::OtherContent { .. } | Self::KeyReused => "session/other_content" 422
                "Repeat the request unchanged, or use a new Idempotency-Key or entry_id for different content.";
            Self::RevisionConflict { .. } => "session/revision_conflict" 409
                "Read the entry again, then repeat the change on its present revision.";
            Self::NotStreaming { .. } => "session/not_streaming" 409
                "Read the message: it was finished or aborted, or it was not begun with `stream`.";
            Self::OtherIncarnation { .. } => "session/other_incarnation" 409
                "Read the session again: what you have is from before it was deleted.";
            Self::Forbidden { .. } => "session/forbidden" 403 "Use a token whose scope and rights allow this.";
            Self::UnknownFunction { .. } => "session/function_not_found" 404 "See /docs for the list of functions.";
            Self::NotInTrash { .. } => "session/not_in_trash" 404 "It was never deleted, or its retention has ended.";
            Self::AlreadyExists { .. } => "session/already_exists" 409
                "Delete the session that has the id now; fork it first to keep its content.";
            Self::Locked { .. } => "session/locked" 423
                "Send the call to the process that holds the session, or close it there.";
            Self::Busy { .. } => "session/busy" 503 "Try again.";
            Self::Unsupported { .. } => "session/unsupported" 501
                "Store the sessions with the native adapter; `bough migrate FILE` brings in a file of another program.";
            Self::NoSearchIndex => "session/unsupported" 501 "Ask the main instance, which has the index.";
            Self::NotAuthoritative => "session/not_authoritative" 503 "Send it to the main instance.";
            Self::Storage { .. } => "session/storage" 500
                "See the server's log and /healthz; the call may be repeated with the same entry_id.";
        }
    }

    /// Whether the same call may succeed when it is repeated without change.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let is_passing =
            matches!(self, Self::Locked { .. } | Self::Busy { .. } | Self::Storage { .. });
        is_passing && !self.is_damage()
    }

    /// Whether the stored data is damaged, so that repeating the call does not help.
    fn is_damage(&self) -> bool {
        let Self::Storage { source: Some(source), .. } = self else { return false };
        matches!(**source, StoreError::Corrupt { .. })
    }

    /// Values for programs beside the text, such as the present leaf or the bound that was exceeded.
    #[must_use]
    pub fn data(&self) -> Option<Value> {
        match self {
            Self::LeafConflict { expected, actual, .. } => {
                Some(json!({ "expected_leaf": expected, "active_leaf": actual }))
            }
            Self::VersionConflict { version, .. } => Some(json!({ "version": version })),
            Self::DocumentConflict { key, version } => {
                Some(json!({ "key": key, "version": version }))
            }
            Self::RevisionConflict { revision } => Some(json!({ "revision": revision })),
            Self::RecordingGap { position, .. } => Some(json!({ "position": position })),
            // The place from which it goes on in any case: what is stored is recognised.
            Self::RecordingNotBegun { .. } => Some(json!({ "position": 0 })),
            Self::NotStreaming { revision, .. } => Some(json!({ "revision": revision })),
            Self::ContextTooLarge { limit } => Some(json!({ "limit": limit })),
            Self::Limit(LimitError::TooLarge { what, limit, actual, .. }) => {
                Some(json!({ "what": what, "limit": limit, "actual": actual }))
            }
            _ => None,
        }
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound { session } => Self::not_found(&session),
            StoreError::Exists { session } => Self::AlreadyExists { session: session.to_string() },
            StoreError::NotOnPath { .. } | StoreError::InvalidCursor => {
                Self::InvalidCursor { reason: error.to_string() }
            }
            StoreError::Locked { holder } => Self::Locked { holder },
            StoreError::TooLarge(limit) => Self::Limit(limit),
            StoreError::Unsupported { capability } => Self::Unsupported { what: capability },
            other => Self::Storage { reason: without_paths(&other), source: Some(Box::new(other)) },
        }
    }
}

fn describe_lock(holder: &str) -> String {
    if holder == ANOTHER_RECORDER {
        return "another recording has an open loop in this session".to_owned();
    }
    format!("another process is writing this session ({})", describe_holder(holder))
}

/// What a caller may know of a failure of the store: its meaning, but no paths on the disk.
fn without_paths(error: &StoreError) -> String {
    match error {
        StoreError::Io(error) => format!("disk error: {}", error.kind()),
        StoreError::Corrupt { what, .. } => format!("stored data is damaged: {what}"),
        StoreError::Latched { .. } => "an earlier write of this session failed".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_for_what_went_wrong() {
        let hint = |id: &str| ServiceError::from(SessionId::parse(id).unwrap_err()).hint();
        assert!(hint("").contains("one character or more"));
        assert!(hint(&"x".repeat(100_000)).contains("Send less"));
    }

    #[test]
    fn the_message_of_damage_says_that_it_is_damage() {
        let damage = StoreError::corrupt("the file is missing".to_owned(), "/home/me".to_owned());
        let message = ServiceError::from(damage).to_string();
        assert!(message.contains("stored data is damaged: the file is missing"), "{message}");
        assert!(!message.contains("/home"), "{message}");
    }

    #[test]
    fn the_message_names_the_holder_of_a_lock() {
        let recorder = ServiceError::Locked { holder: ANOTHER_RECORDER.to_owned() };
        assert!(!recorder.to_string().contains("process"), "it is this one: {recorder}");
        assert!(recorder.hint().contains("recording_id"));
        let check = |holder: &str, words: &str| {
            let error = ServiceError::Locked { holder: holder.to_owned() };
            let expected = format!("another process is writing this session ({words})");
            assert_eq!(error.to_string(), expected);
        };
        let served = r#"{"pid":7,"boot_id":"b","address":"http://127.0.0.1:7717","since_ms":1}"#;
        check(served, "process 7, which serves http://127.0.0.1:7717");
        check(r#"{"pid":7,"address":""}"#, "process 7");
        check("process 7", "process 7");
        check("another host", "another host");
    }
}
