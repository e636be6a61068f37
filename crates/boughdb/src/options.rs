//! What calls take beside what they are about. Each has a default, so that only what matters is written down:
//!
//! ```
//! use boughdb::{AppendOptions, Format};
//!
//! let options = AppendOptions { format: Some(Format::Anthropic), create: true, ..AppendOptions::default() };
//! # drop(options);
//! ```

use bough_service::api::{EntryOrder, MetaPatch, NewEntry};
use bough_session::{AgentMessage, EntryId, Format, JsonMap, OpaqueBody, RawJson, Role, SessionId};

use crate::MessageInput;

/// Where and how [`Session::append_with`](crate::Session::append_with) appends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppendOptions {
    /// The format of the message. Default: what the session's metadata has as `message_format`, or else Bough's own.
    pub format: Option<Format>,
    /// An id of your own: appending it again with the same content changes nothing, with another content it is refused.
    pub entry_id: Option<EntryId>,
    /// The parent, when it is not the active leaf.
    pub parent_id: Option<EntryId>,
    /// Append only if the active leaf still is this entry (`""` for a session without entries); otherwise `session/leaf_conflict`.
    pub expected_leaf: Option<String>,
    /// Your own correlation, kept with the entry and shown on its events.
    pub origin: Option<JsonMap>,
    /// Whether to make the session when there is none.
    pub create: bool,
}

/// What [`Session::append_many_with`](crate::Session::append_many_with) does in the same write.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchOptions {
    /// Append only if the active leaf still is this entry (`""` for a session without entries); otherwise `session/leaf_conflict`.
    pub expected_leaf: Option<String>,
    /// Changes of title, description and metadata.
    pub meta: Option<MetaPatch>,
    /// Whether to make the session when there is none.
    pub create: bool,
}

/// One entry of a batch, for [`Session::append_many`](crate::Session::append_many).
///
/// ```
/// use boughdb::{BatchEntry, user};
/// use serde_json::json;
///
/// let question = BatchEntry::from(user("Book a train")).with_id("q1");
/// let budget = BatchEntry::custom("budget", json!(120)).below("q1");
/// # drop((question, budget));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchEntry(NewEntry);

impl BatchEntry {
    /// A message.
    #[must_use]
    pub fn message(message: impl Into<MessageInput>) -> Self {
        Self(NewEntry { message: Some(message.into().into_raw()), ..NewEntry::default() })
    }

    /// Any JSON under a word of the application.
    #[must_use]
    pub fn custom(custom_type: &str, data: impl Into<RawJson>) -> Self {
        let custom = OpaqueBody { custom_type: custom_type.to_owned(), data: data.into() };
        Self(NewEntry { custom: Some(custom), ..NewEntry::default() })
    }

    /// The same in a format.
    #[must_use]
    pub fn in_format(mut self, format: Format) -> Self {
        self.0.format = Some(format);
        self
    }

    /// The same with an id of your own.
    #[must_use]
    pub fn with_id(mut self, entry_id: &str) -> Self {
        self.0.entry_id = Some(EntryId::from_stored(entry_id));
        self
    }

    /// The same below an entry of the session, or an earlier one of the batch, instead of below the one before it.
    #[must_use]
    pub fn below(mut self, parent_id: &str) -> Self {
        self.0.parent_id = Some(Some(EntryId::from_stored(parent_id)));
        self
    }

    pub(crate) fn into_new(self) -> NewEntry {
        self.0
    }
}

impl From<&str> for BatchEntry {
    fn from(text: &str) -> Self {
        Self::message(text)
    }
}

impl From<AgentMessage> for BatchEntry {
    fn from(message: AgentMessage) -> Self {
        Self::message(message)
    }
}

impl From<MessageInput> for BatchEntry {
    fn from(message: MessageInput) -> Self {
        Self::message(message)
    }
}

/// Which messages [`Session::messages_with`](crate::Session::messages_with) reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessagesOptions {
    /// The format that they are given in. Default: Bough's own.
    pub format: Option<Format>,
    /// The end of the path. Default: the active leaf.
    pub from_entry_id: Option<EntryId>,
    /// Only messages with these roles.
    pub roles: Option<Vec<Role>>,
    /// Whether documents are shown at their place on the path.
    pub include_custom: bool,
    /// Oldest first, or newest first.
    pub order: EntryOrder,
    /// At most so many. Default: all.
    pub limit: Option<usize>,
}

/// Which entries [`Session::entries`](crate::Session::entries) reads, of every branch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EntriesOptions {
    /// These entries, in this order; those that do not exist are left out.
    pub ids: Option<Vec<EntryId>>,
    /// Only documents of this type.
    pub custom_type: Option<String>,
    /// Only entries whose id begins so.
    pub id_prefix: Option<String>,
    /// Oldest first, or newest first.
    pub order: EntryOrder,
    /// At most so many on a page.
    pub limit: Option<usize>,
    /// At most so many bytes of entries on a page; it has one entry at least.
    pub max_bytes: Option<usize>,
    /// Where the previous page ended: its `next_cursor`.
    pub cursor: Option<String>,
    /// The format that messages are given in. Default: Bough's own.
    pub format: Option<Format>,
}

/// What [`Session::context_with`](crate::Session::context_with) reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextOptions {
    /// Give the messages in this format too, as its API takes them: `conversation`.
    pub format: Option<Format>,
    /// Leave out the oldest messages until the rest fits into this many tokens.
    pub max_tokens: Option<u64>,
    /// The end of the path. Default: the active leaf.
    pub from_entry_id: Option<EntryId>,
}

/// How [`Session::plan_compaction`](crate::Session::plan_compaction) plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanCompactionOptions {
    /// How much of the newest conversation stays as it is, in tokens. Default: 20,000.
    pub keep_recent_tokens: Option<u64>,
    /// Whether to plan only if the context exceeds the window of its model, less the reserve.
    pub only_if_due: bool,
    /// Whether to add the conversation that would be summarised, as text for a model.
    pub include_conversation: bool,
}

/// How [`Session::compact`](crate::Session::compact) compacts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactOptions {
    /// The summary; `None` is one that is written by fixed rules, without a model.
    pub summary: Option<String>,
    /// How much of the newest conversation stays as it is, in tokens. Default: 20,000.
    pub keep_recent_tokens: Option<u64>,
    /// Whether to compact only if the context exceeds the window of its model, less the reserve.
    pub only_if_due: bool,
    /// Compact only if the active leaf still is this entry (`""` for a session without entries); otherwise `session/leaf_conflict`.
    pub expected_leaf: Option<String>,
}

/// What [`Session::fork_with`](crate::Session::fork_with) copies, and what it calls the copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkOptions {
    /// Where the path ends that is copied; `None` is the active leaf.
    pub entry_id: Option<EntryId>,
    /// The title of the new session; `None` is that of this one.
    pub title: Option<String>,
    /// The id of the new session; `None` is a fresh one.
    pub new_session_id: Option<SessionId>,
    /// Whether every branch is copied; `entry_id` then says only where the active path ends.
    pub whole: bool,
    /// Whether the copies have the ids of their originals.
    pub keep_ids: bool,
}
