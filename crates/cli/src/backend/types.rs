//! Answers as the commands and screens use them. Fields that an older server does not send are filled in.

use bough_service::api::{MessagesResponse, TrashItem};
use bough_session::{EntryId, ModelName, Role, SessionDetails, SessionId, SessionMeta};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A session as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    /// Its own record.
    #[serde(flatten)]
    pub(crate) meta: SessionMeta,
    /// What is known beyond that.
    pub(crate) details: SessionDetails,
    /// The active leaf, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) active_leaf: Option<EntryId>,
    /// The session file of pi with the session, if it was not migrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
}

impl Summary {
    /// The caption of the session: its title, its name, or its first message.
    pub(crate) fn caption(&self) -> &str {
        let details = &self.details;
        let candidates =
            [Some(self.meta.title.as_str()), details.name.as_deref(), details.preview.as_deref()];
        let named = candidates.into_iter().flatten().find(|text| !text.trim().is_empty());
        named.unwrap_or("(empty)")
    }

    /// Whether it has a name.
    pub(crate) fn is_named(&self) -> bool {
        !self.meta.title.trim().is_empty() || self.details.name.is_some()
    }

    /// The directory that it belongs to.
    pub(crate) fn cwd(&self) -> Option<&str> {
        self.meta.metadata.as_ref()?.get("cwd")?.as_str()
    }

    /// The model that spoke last.
    pub(crate) fn model(&self) -> Option<&str> {
        let named = self.details.model.as_ref().map(|ModelName { model, .. }| model.as_str());
        // Who appends an answer need not say which model gave it.
        named.filter(|model| !model.is_empty())
    }

    /// What it cost.
    pub(crate) fn cost_usd(&self) -> f64 {
        self.details.usage.total.cost_usd
    }

    /// The id, for showing.
    pub(crate) const fn id(&self) -> &SessionId {
        &self.meta.session_id
    }
}

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ListPage {
    pub(crate) sessions: Vec<Summary>,
    pub(crate) next_cursor: Option<String>,
}

/// One entry as a tree shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outline {
    pub(crate) id: EntryId,
    pub(crate) parent_id: Option<EntryId>,
    pub(crate) timestamp: i64,
    /// The role, if it is a message.
    pub(crate) role: Option<Role>,
    /// The custom type, if it is not.
    pub(crate) custom_type: Option<String>,
    /// The beginning of its text, in one line.
    pub(crate) preview: String,
    /// The functions that it calls.
    pub(crate) calls: Vec<String>,
    /// The entry that it labels, if it is a label.
    pub(crate) label_target: Option<EntryId>,
    /// The label that it gives.
    pub(crate) label: Option<String>,
}

/// A part of all entries of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EntriesPage {
    pub(crate) entries: Vec<Outline>,
    pub(crate) active_leaf: Option<EntryId>,
    pub(crate) next_cursor: Option<String>,
}

/// A part of a path.
pub(crate) type PathPage = MessagesResponse;

/// A deleted session that can be brought back.
pub(crate) type TrashedSession = TrashItem;

/// Something that happened in a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SessionEvent {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) seq: u64,
    pub(crate) step: u64,
    pub(crate) payload: Value,
}

/// New events of a session, and the next cursor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct EventPage {
    pub(crate) events: Vec<SessionEvent>,
    pub(crate) next: String,
    #[serde(default)]
    pub(crate) gap: bool,
}
