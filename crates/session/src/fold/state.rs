use std::sync::Arc;

use bough_record::{Envelope, Fold, StoredEnvelope};
use serde::{Deserialize, Serialize};

use super::{CustomTypes, Forks, Labels, LoopTally, StreamTally, UsageByDay};
use crate::codec;
use crate::formats::usage_of;
use crate::limits::{STATE_NAME_BYTES_MAX, STATE_PREVIEW_CHARS_MAX, TITLE_BYTES_MAX};
use crate::record::{LoopEvent, MetaChange, Record, Removal};
use crate::revision::Revision;
use crate::text::{cut_bytes, preview};
use crate::usage::UsageByModel;
use crate::{
    AgentMessage, Bookkeeping, Canonical, CustomPayload, Entry, EntryBody, EntryId, JsonMap,
    LoopPhase, ModelName, Role, SessionDetails, SessionId, SessionMeta, SessionStatus, TaskStatus,
    Usage,
};

/// What is known of a session after its first `seq` records.
///
/// It is small whatever the length of the session: every collection in it has a bound in
/// [`crate::limits`]. It serialises, so that a checkpoint can carry it and a fold can go on from there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionState {
    /// The session.
    pub session_id: SessionId,
    /// The last record that this state has seen.
    pub seq: u64,
    /// A short title.
    #[serde(default)]
    pub title: String,
    /// A longer description.
    #[serde(default)]
    pub description: String,
    /// What it is doing.
    #[serde(default)]
    pub status: SessionStatus,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// The application's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonMap>,
    /// The session that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// When it was made.
    #[serde(default)]
    pub created_at: i64,
    /// When it last changed; never goes back.
    #[serde(default)]
    pub updated_at: i64,
    /// How many entries are messages.
    #[serde(default)]
    pub message_count: u64,
    /// How many entries there are.
    #[serde(default)]
    pub entry_count: u64,
    /// The entry that the next one follows; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<EntryId>,
    /// Whether it was put away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub archived: bool,
    /// Whether it was deleted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deleted: bool,
    /// What its task is called.
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
    /// The part of it that was copied from the session that this one was forked from; `None` in a session that is no
    /// fork, and in a snapshot from before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_usage: Option<UsageByModel>,
    /// What it used day by day, without what was copied. `None` in a snapshot from before this was counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_day: Option<Arc<UsageByDay>>,
    /// Whether every entry so far is a copy: a fork begins with them, and a leaf record ends them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub copying: bool,
    /// The model that spoke or was chosen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// How many tokens the model reads at most, where a loop said so.
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
    /// The entry that the leaf was before entries were labelled there; `None` when the leaf is no label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf_before_labels: Option<EntryId>,
    /// The newest entry of each custom type. `None` in a snapshot from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_types: Option<CustomTypes>,
    /// Where its branches begin. `None` in a snapshot from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forks: Option<Arc<Forks>>,
    /// How many entries were hidden. Where there are none, a read need not look for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden_count: u64,
    /// What it is, where it is no conversation; see [`KIND_DOCUMENTS`](crate::KIND_DOCUMENTS).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How many compactions its log has, on any branch: entries, and blocks over recorded loops. `None` in a snapshot from
    /// before this was counted. Where there are none, a context need not be searched for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compactions: Option<u64>,
}

impl SessionState {
    /// A session of which nothing is known yet.
    #[must_use]
    pub fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            seq: 0,
            title: String::new(),
            description: String::new(),
            status: SessionStatus::Idle,
            status_reason: None,
            metadata: None,
            forked_from: None,
            created_at: 0,
            updated_at: 0,
            message_count: 0,
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

    /// Takes one more record into account. Records come in order; one that was already seen changes
    /// nothing, so that a fold may go on from a checkpoint with some overlap.
    pub fn apply(&mut self, record: &Record, seq: u64, at_ms: i64) {
        if seq <= self.seq {
            return;
        }
        if self.seq == 0 {
            self.created_at = at_ms;
            self.updated_at = at_ms;
        }
        self.seq = seq;
        self.follow_copies(record.known());
        match record.known() {
            Record::Meta(change) => self.apply_meta(change, at_ms),
            Record::Entry(entry) => self.apply_entry(entry, at_ms),
            Record::Streaming(entry) => self.streams.open(entry),
            Record::Revision(revision) => self.apply_revision(revision, at_ms),
            Record::Removed(removal) => self.apply_removal(removal, at_ms),
            Record::Leaf(leaf) => {
                self.leaf.clone_from(leaf);
                self.leaf_before_labels = None;
            }
            Record::Loop(event) => self.apply_loop(event),
            Record::Document(_) => self.touch(at_ms),
            Record::Tombstone => self.deleted = true,
            Record::Restored => self.deleted = false,
            Record::Unknown(_) | Record::Newer { .. } => {}
        }
    }

    /// A fork is its first record, copies and a record of the leaf, with nothing else between. A session that came from a
    /// file of another program has no such mark; there, what is older than the session was copied.
    fn follow_copies(&mut self, record: &Record) {
        match record {
            Record::Meta(first) if self.seq == 1 => self.copying = first.forked_from.is_some(),
            Record::Leaf(_) if self.copying => {
                self.copied_usage = Some(self.usage.clone());
                self.copying = false;
            }
            Record::Entry(_) if self.copying => {}
            Record::Entry(entry) if self.is_older(entry) => {
                self.copied_usage.get_or_insert_default().add_entry(entry);
            }
            Record::Entry(_) => {}
            _ => self.copying = false,
        }
    }

    fn is_older(&self, entry: &Entry) -> bool {
        self.forked_from.is_some() && entry.timestamp < self.created_at
    }

    /// Whether a snapshot says all that a fold of the records would say. One that does not is made anew from them.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.forked_from.is_none() || self.copied_usage.is_some()
    }

    /// Notes activity that is no record of its own, such as a step of a stream.
    pub fn touch(&mut self, at_ms: i64) {
        self.updated_at = self.updated_at.max(at_ms);
    }

    /// The session's own record, as the API shows it.
    #[must_use]
    pub fn meta(&self) -> SessionMeta {
        SessionMeta {
            session_id: self.session_id.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            status: self.status,
            status_reason: self.status_reason.clone(),
            metadata: self.metadata.clone(),
            forked_from: self.forked_from.clone(),
            created_at: self.created_at,
            updated_at: self.updated_at,
            message_count: self.message_count,
        }
    }

    /// What is known beyond that.
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

    /// Where the task stands, by the session's loops.
    #[must_use]
    pub fn task_status(&self) -> Option<TaskStatus> {
        self.loops.task_status()
    }

    fn apply_meta(&mut self, change: &MetaChange, at_ms: i64) {
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
            let keep = status.status == SessionStatus::Error;
            self.status_reason = status.reason.clone().filter(|_| keep);
        }
        if change.forked_from.is_some() {
            self.forked_from.clone_from(&change.forked_from);
            self.copied_usage.get_or_insert_default();
        }
        if let Some(archived) = change.archived {
            self.archived = archived;
        }
        if change.task_name.is_some() {
            self.task_name.clone_from(&change.task_name);
        }
        if change.kind.is_some() {
            self.kind.clone_from(&change.kind);
        }
        self.apply_times(change, at_ms);
    }

    fn apply_times(&mut self, change: &MetaChange, at_ms: i64) {
        if let Some(created_at) = change.created_at {
            self.created_at = created_at;
        }
        if let Some(updated_at) = change.updated_at {
            self.updated_at = updated_at;
        } else if change.is_activity() {
            self.touch(at_ms);
        }
    }

    fn apply_entry(&mut self, entry: &Entry, at_ms: i64) {
        let before = self.leaf.replace(entry.id.clone());
        if let Some(forks) = &mut self.forks {
            Arc::make_mut(forks).note(entry);
        }
        if entry.is_hidden() {
            // The copy of a hidden entry: it holds its place in the tree of a fork.
            self.hidden_count += 1;
            return;
        }
        self.entry_count += 1;
        let before_labels = self.leaf_before_labels.take().or(before);
        self.touch(at_ms);
        match &entry.body {
            EntryBody::Message(message) => self.apply_message(entry, message),
            EntryBody::Custom(custom) => self.apply_custom(entry, custom, before_labels),
            EntryBody::Opaque(body) => self.note_custom_type(&body.custom_type, entry),
            EntryBody::Foreign(_) => match entry.canonical() {
                Canonical::Message(message) => self.apply_message(entry, &message),
                Canonical::Custom(custom) => self.apply_custom(entry, &custom, before_labels),
            },
        }
    }

    fn apply_custom(
        &mut self,
        entry: &Entry,
        custom: &CustomPayload,
        before_labels: Option<EntryId>,
    ) {
        self.add_usage(entry, usage_of(custom));
        match Bookkeeping::from_payload(custom) {
            Some(kind) => {
                if matches!(kind, Bookkeeping::Label(_)) {
                    self.leaf_before_labels = before_labels;
                }
                self.apply_bookkeeping(&kind);
            }
            None => self.note_custom_type(&custom.custom_type, entry),
        }
    }

    fn note_custom_type(&mut self, custom_type: &str, entry: &Entry) {
        if let Some(types) = &mut self.custom_types {
            types.note(custom_type, &entry.id, entry.marks.previous.as_ref());
        }
    }

    /// Whether the preview is the beginning of what an entry says.
    #[must_use]
    pub fn is_preview_of(&self, entry: &Entry) -> bool {
        let message = entry.message().filter(|message| message.role() == Role::User);
        let line = message.map(|message| preview(&message.text(), STATE_PREVIEW_CHARS_MAX));
        line.is_some_and(|line| self.preview.as_ref() == Some(&line))
    }

    /// Whether a caller who saw this leaf has seen all that was said: labels do not count. The empty text is a session
    /// without a leaf.
    #[must_use]
    pub fn is_leaf(&self, expected: &str) -> bool {
        let is = |leaf: Option<&EntryId>| leaf.map_or("", EntryId::as_str) == expected;
        is(self.leaf.as_ref())
            || self.leaf_before_labels.as_ref().is_some_and(|leaf| is(Some(leaf)))
    }

    /// Counts a message. What one that streams cost, and which model it is of, is known when it is finished.
    fn apply_message(&mut self, entry: &Entry, message: &AgentMessage) {
        self.message_count += 1;
        let streams = self.streams.is_open(&entry.id);
        let is_copy = self.is_copy(entry);
        if let Some(by_day) = &mut self.by_day {
            let by_day = Arc::make_mut(by_day);
            if is_copy {
                by_day.pass(entry.timestamp);
            } else {
                by_day.add_message(message, streams, entry.timestamp);
            }
        }
        if !streams {
            self.add_usage(entry, message.reported_usage());
        }
        match message {
            AgentMessage::Assistant(said) if streams && said.model.is_empty() => {}
            AgentMessage::Assistant(said) => self.note_model(&said.provider, &said.model),
            AgentMessage::User(_) if self.preview.is_none() => {
                let line = preview(&message.text(), STATE_PREVIEW_CHARS_MAX);
                self.preview = Some(line).filter(|line| !line.is_empty());
            }
            _ => {}
        }
    }

    /// Adds what an entry reports, if it reports anything.
    fn add_usage(&mut self, entry: &Entry, report: Option<(String, Usage)>) {
        let Some((model, usage)) = report else { return };
        self.usage.add(&model, &usage);
        if !self.is_copy(entry)
            && let Some(by_day) = &mut self.by_day
        {
            Arc::make_mut(by_day).add(&model, &usage, entry.timestamp);
        }
    }

    /// Whether an entry was copied from the session that this one was forked from: that session counts it.
    fn is_copy(&self, entry: &Entry) -> bool {
        self.copying || self.is_older(entry)
    }

    /// What it used day by day, without what was copied. Where that was not counted from the beginning, all of it counts for
    /// the day of the last change.
    #[must_use]
    pub fn usage_by_day(&self) -> Arc<UsageByDay> {
        self.by_day.clone().unwrap_or_else(|| {
            let mut own = self.usage.clone();
            self.copied_usage.iter().for_each(|copied| own.remove_sum(copied));
            Arc::new(UsageByDay::on_one_day(self.updated_at, &own.models))
        })
    }

    fn apply_bookkeeping(&mut self, kind: &Bookkeeping) {
        match kind {
            Bookkeeping::ModelChange(change) => self.note_model(&change.provider, &change.model_id),
            Bookkeeping::SessionInfo(info) => {
                let name = cut_bytes(&info.name, TITLE_BYTES_MAX).to_owned();
                self.name = Some(name).filter(|name| !name.is_empty());
            }
            Bookkeeping::Label(label) => {
                self.labels.set(&label.target_id, label.label.as_deref());
            }
            Bookkeeping::Compaction(_) => self.count_compaction(),
            Bookkeeping::ThinkingLevelChange(_) | Bookkeeping::BranchSummary(_) => {}
        }
    }

    fn apply_revision(&mut self, revision: &Revision, at_ms: i64) {
        self.touch(at_ms);
        let Some(finish) = &revision.finish else { return };
        self.streams.close(&revision.entry_id);
        if let Some(model) = &finish.model {
            self.note_model(&model.provider, &model.model);
        }
        let spoke = finish.model.as_ref().map(|model| model.model.as_str());
        let model = spoke.or(finish.usage.as_ref().map(|usage| usage.model.as_str()));
        let mut by_day = self.by_day.as_mut().map(Arc::make_mut);
        if let Some(by_day) = &mut by_day {
            by_day.finish(model, at_ms);
        }
        let Some(usage) = &finish.usage else { return };
        if let Some(before) = &usage.before {
            self.usage.remove(&usage.model, before);
        }
        self.usage.add(&usage.model, &usage.after);
        if let Some(by_day) = by_day {
            usage.before.iter().for_each(|before| by_day.remove(&usage.model, before));
            by_day.add(&usage.model, &usage.after, at_ms);
        }
    }

    /// What it cost stays counted: it was spent.
    fn apply_removal(&mut self, removal: &Removal, at_ms: i64) {
        self.touch(at_ms);
        self.hidden_count += 1;
        self.entry_count = self.entry_count.saturating_sub(1);
        if removal.is_message {
            self.message_count = self.message_count.saturating_sub(1);
        }
        if removal.is_preview {
            self.preview = None;
        }
        self.streams.close(&removal.entry_id);
        self.labels.set(&removal.entry_id, None);
    }

    fn count_compaction(&mut self) {
        self.compactions = self.compactions.map(|count| count.saturating_add(1));
    }

    fn apply_loop(&mut self, event: &LoopEvent) {
        // One too many costs a search; an event is not parsed for it.
        if event.event.get().contains(COMPACTION_EVENT) {
            self.count_compaction();
        }
        let Some(phase) = event.phase else { return };
        self.loops.note(&event.loop_id, phase);
        if phase == LoopPhase::Running
            && let Some(window) = context_window_of(event)
        {
            self.context_window = Some(window);
        }
    }

    fn note_model(&mut self, provider: &str, model: &str) {
        let cut = |name: &str| cut_bytes(name, STATE_NAME_BYTES_MAX).to_owned();
        self.model = Some(ModelName { provider: cut(provider), model: cut(model) });
    }
}

impl Fold for SessionState {
    fn start(id: &str) -> Self {
        Self::new(SessionId::from_stored(id))
    }

    fn restore(snapshot: &str) -> Option<Self> {
        let state: Self = serde_json::from_str(snapshot).ok()?;
        state.is_complete().then_some(state)
    }

    /// A fold needs no more than the beginning of each text: a record of many megabytes is not copied to be added up.
    fn apply(&mut self, stored: &StoredEnvelope<'_>) {
        let payload = codec::shortened(&stored.envelope.payload);
        let envelope = Envelope { payload, ..stored.envelope.borrowed() };
        let at_ms = envelope.at_ms;
        self.apply(&codec::decode(envelope), stored.seq, at_ms);
    }

    fn snapshot(&self) -> String {
        // A state is plain data: it has no key that is not a string and no number that JSON lacks.
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }
}

/// The type of the recorder's event that lays a compaction over a loop.
const COMPACTION_EVENT: &str = "\"bough:compaction\"";

/// The context window that the start of a loop speaks of, in the recorder's words.
fn context_window_of(event: &LoopEvent) -> Option<u64> {
    #[derive(Deserialize)]
    struct Start {
        config_snapshot: Option<Config>,
    }
    #[derive(Deserialize)]
    struct Config {
        context_window: Option<u64>,
    }
    let start: Start = serde_json::from_str(event.event.get()).ok()?;
    start.config_snapshot?.context_window
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
