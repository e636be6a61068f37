//! A session's own fields: title, status, metadata.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::usage::UsageByModel;
use crate::{JsonMap, MetaChange, SessionId};

/// A session's own record, as the API shows it and the files hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionMeta {
    /// Names the session.
    pub session_id: SessionId,
    /// A short title.
    pub title: String,
    /// A longer description.
    pub description: String,
    /// What it is doing.
    pub status: SessionStatus,
    /// Why it failed, while its status is `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// The application's data; lists, feeds and scopes filter on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonMap>,
    /// The session that this one was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// Milliseconds since the epoch.
    pub updated_at: i64,
    /// How many entries are messages.
    pub message_count: u64,
}

impl SessionMeta {
    /// A session before its first record.
    #[must_use]
    pub const fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            title: String::new(),
            description: String::new(),
            status: SessionStatus::Idle,
            status_reason: None,
            metadata: None,
            forked_from: None,
            created_at: 0,
            updated_at: 0,
            message_count: 0,
        }
    }

    /// Applies a change that was recorded at `at_ms`. Whoever shows a session at some record folds its changes with this.
    pub fn apply(&mut self, change: &MetaChange, at_ms: i64) {
        if let Some(title) = &change.title {
            self.title.clone_from(title);
        }
        if let Some(description) = &change.description {
            self.description.clone_from(description);
        }
        if change.metadata.is_some() {
            self.metadata.clone_from(&change.metadata);
        }
        if let Some(status) = &change.status {
            self.status = status.status;
            self.status_reason = status.kept_reason().cloned();
        }
        if change.forked_from.is_some() {
            self.forked_from.clone_from(&change.forked_from);
        }
        if let Some(created_at) = change.created_at {
            self.created_at = created_at;
        }
        if let Some(updated_at) = change.updated_at {
            self.updated_at = updated_at;
        } else if change.is_activity() {
            self.touch(at_ms);
        }
    }

    /// Notes activity, such as a record or a step of a stream.
    pub fn touch(&mut self, at_ms: i64) {
        self.updated_at = self.updated_at.max(at_ms);
    }
}

/// What a session is doing.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Nothing.
    #[default]
    Idle,
    /// Something.
    Working,
    /// It finished.
    Done,
    /// It failed.
    Error,
}

impl SessionStatus {
    /// The status's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Done => "done",
            Self::Error => "error",
        }
    }
}

/// Where the task of a session stands, by its loops.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// A loop is announced and none has started.
    Pending,
    /// A loop is running.
    Running,
    /// The last loop ended well.
    Completed,
    /// The last loop was rejected or aborted.
    Failed,
}

impl TaskStatus {
    /// The status's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// What we know of a session beyond its meta; kept apart, because the shape of the meta is published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionDetails {
    /// Whether it was put away.
    pub archived: bool,
    /// What its task is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_name: Option<String>,
    /// Where its task stands; absent while it has no loops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_status: Option<TaskStatus>,
    /// The name that a session-info entry gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of the first user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// The model that spoke or was chosen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// How many tokens that model reads at most, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How many entries of any kind there are.
    pub entry_count: u64,
    /// Tokens and money.
    pub usage: UsageByModel,
    /// The part of it that was copied from the session that this one was forked from. A sum over sessions leaves it out,
    /// because it is counted there.
    #[serde(skip_serializing_if = "UsageByModel::is_empty")]
    pub copied_usage: UsageByModel,
}

/// A model and who serves it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ModelName {
    /// Who serves it.
    pub provider: String,
    /// What it is called.
    pub model: String,
}

/// The directory that a session works in, according to its metadata.
#[must_use]
pub fn project_of(metadata: Option<&JsonMap>) -> Option<&str> {
    let metadata = metadata?;
    ["cwd", "project"].iter().find_map(|key| metadata.get(*key)?.as_str())
}

/// The agent that a session's metadata or an entry's origin names.
#[must_use]
pub fn agent_of(fields: &JsonMap) -> Option<String> {
    let names = ["agent", "agent_name", "agent_id"].iter();
    names.filter_map(|key| fields.get(*key)?.as_str()).map(str::to_owned).next()
}

/// The tenant that a session's metadata names.
#[must_use]
pub fn tenant_of(metadata: Option<&JsonMap>) -> Option<&str> {
    metadata?.get("tenant")?.as_str()
}
