use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CustomTypes, Forks, Labels, LoopTally, StreamTally, UsageByDay};
use crate::json::is_default;
use crate::limits::STATE_PREVIEW_CHARS_MAX;
use crate::text::preview;
use crate::usage::UsageByModel;
use crate::{Entry, EntryId, ModelName, Role, SessionDetails, SessionId, SessionMeta, TaskStatus};

/// The state of a session after its first `seq` records.
///
/// It is small whatever the length of the session: every collection in it has a bound in [`crate::limits`]. It
/// serialises, so a checkpoint can hold it and a fold can continue from there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// Its own record, as the API shows it.
    #[serde(flatten)]
    pub meta: SessionMeta,
    /// The number of the last record that was applied.
    pub seq: u64,
    /// How many entries there are.
    #[serde(default)]
    pub entry_count: u64,
    /// The entry that the next one follows; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<EntryId>,
    /// Whether it is archived.
    #[serde(default, skip_serializing_if = "is_default")]
    pub archived: bool,
    /// Whether it was deleted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deleted: bool,
    /// The name of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_name: Option<String>,
    /// Its loops.
    #[serde(default)]
    pub loops: LoopTally,
    /// Its messages that were begun as streams.
    #[serde(default, skip_serializing_if = "StreamTally::is_empty")]
    pub streams: StreamTally,
    /// Tokens and money by model.
    #[serde(default)]
    pub usage: UsageByModel,
    /// The part of it that was copied from the session that this one was forked from; `None` in a session that is not a
    /// fork, and in a snapshot from before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_usage: Option<UsageByModel>,
    /// What it used day by day, without what was copied. `None` in a snapshot from before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_day: Option<Arc<UsageByDay>>,
    /// Whether every entry so far is a copy: a fork begins with them, and a leaf record ends them.
    #[serde(default, skip_serializing_if = "is_default")]
    pub copying: bool,
    /// The model that spoke or was chosen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// The context window of the model, if a loop reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// The name that a session-info entry gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of the first user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Labels of entries.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// The leaf before entries were labelled there; `None` if the leaf is not a label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_before_labels: Option<EntryId>,
    /// The newest entry of each custom type. `None` in a snapshot from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_types: Option<CustomTypes>,
    /// Where its branches begin. `None` in a snapshot from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks: Option<Arc<Forks>>,
    /// How many entries were hidden. If this is 0, a read need not look for hidden ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hidden_count: u64,
    /// The kind of a session that is not a conversation; see
    /// [`KIND_DOCUMENTS`](crate::KIND_DOCUMENTS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How many compactions its log has, on any branch: entries, and blocks over recorded loops. `None` in a snapshot
    /// from before this was counted. If this is 0, a context need not be searched for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compactions: Option<u64>,
}

impl SessionState {
    /// The state before the first record.
    #[must_use]
    pub fn new(session_id: SessionId) -> Self {
        Self {
            meta: SessionMeta::new(session_id),
            seq: 0,
            entry_count: 0,
            leaf: None,
            archived: false,
            deleted: false,
            task_name: None,
            loops: LoopTally::default(),
            streams: StreamTally::default(),
            usage: UsageByModel::default(),
            copied_usage: None,
            by_day: Some(Arc::default()),
            copying: false,
            model: None,
            context_window: None,
            name: None,
            preview: None,
            labels: Labels::default(),
            leaf_before_labels: None,
            custom_types: Some(CustomTypes::default()),
            forks: Some(Arc::default()),
            hidden_count: 0,
            kind: None,
            compactions: Some(0),
        }
    }

    /// Whether a snapshot has everything that a fold of the records would have. If not, it is made anew from them.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.meta.forked_from.is_none() || self.copied_usage.is_some()
    }

    /// Further details of the session.
    #[must_use]
    pub fn details(&self) -> SessionDetails {
        SessionDetails {
            archived: self.archived,
            task_name: self.task_name.clone(),
            task_status: self.task_status(),
            name: self.name.clone(),
            preview: self.preview.clone(),
            model: self.model.clone(),
            context_window: self.context_window,
            entry_count: self.entry_count,
            usage: self.usage.clone(),
            copied_usage: self.copied_usage.clone().unwrap_or_default(),
        }
    }

    /// The status of the task, derived from the session's loops.
    #[must_use]
    pub fn task_status(&self) -> Option<TaskStatus> {
        self.loops.task_status()
    }

    /// Whether the preview is the beginning of an entry's text.
    #[must_use]
    pub fn is_preview_of(&self, entry: &Entry) -> bool {
        let message = entry.message().filter(|message| message.role() == Role::User);
        let line = message.map(|message| preview(&message.text(), STATE_PREVIEW_CHARS_MAX));
        line.is_some_and(|line| self.preview.as_ref() == Some(&line))
    }

    /// The current leaf, not counting labels: what a caller has seen of the conversation when it has seen this.
    #[must_use]
    pub fn leaf_without_labels(&self) -> Option<&EntryId> {
        self.leaf_before_labels.as_ref().or(self.leaf.as_ref())
    }

    /// Whether `expected` is the current leaf, not counting labels: a caller that saw it has seen the whole
    /// conversation. The empty text means a session without a leaf.
    #[must_use]
    pub fn is_leaf(&self, expected: &str) -> bool {
        let is = |leaf: Option<&EntryId>| leaf.map_or("", EntryId::as_str) == expected;
        is(self.leaf.as_ref())
            || self.leaf_before_labels.as_ref().is_some_and(|leaf| is(Some(leaf)))
    }

    /// The usage day by day, without copied entries. If it was not counted from the beginning, all of it counts for the
    /// day of the last change.
    #[must_use]
    pub fn usage_by_day(&self) -> Arc<UsageByDay> {
        self.by_day.clone().unwrap_or_else(|| {
            let mut own = self.usage.clone();
            self.copied_usage.iter().for_each(|copied| own.remove_sum(copied));
            Arc::new(UsageByDay::on_one_day(self.meta.updated_at, &own.models))
        })
    }
}
