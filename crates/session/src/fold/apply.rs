//! How each record changes a state.

use std::sync::Arc;

use bough_record::{Envelope, Fold, StoredEnvelope};
use serde::Deserialize;

use super::SessionState;
use crate::codec;
use crate::formats::usage_of;
use crate::limits::{STATE_NAME_BYTES_MAX, STATE_PREVIEW_CHARS_MAX, TITLE_BYTES_MAX};
use crate::record::{LoopEvent, MetaChange, Record, Removal};
use crate::revision::Revision;
use crate::text::{cut_bytes, preview};
use crate::{
    AgentMessage, Bookkeeping, Canonical, CustomPayload, Entry, EntryBody, EntryId, LoopPhase,
    ModelName, SessionId, Usage,
};

impl SessionState {
    /// Applies one more record. Records come in order. A record that was already applied changes
    /// nothing, so a fold may continue from a checkpoint with some overlap.
    pub fn apply(&mut self, record: &Record, seq: u64, at_ms: i64) {
        if seq <= self.seq {
            return;
        }
        if self.seq == 0 {
            self.meta.created_at = at_ms;
            self.meta.updated_at = at_ms;
        }
        self.seq = seq;
        self.follow_copies(record.known());
        self.streams.apply(record);
        match record.known() {
            Record::Meta(change) => self.apply_meta(change, at_ms),
            Record::Entry(entry) => self.apply_entry(entry, at_ms),
            Record::Revision(revision) => self.apply_revision(revision, at_ms),
            Record::Removed(removal) => self.apply_removal(removal, at_ms),
            Record::Leaf(leaf) => {
                self.leaf.clone_from(leaf);
                self.leaf_before_labels = None;
            }
            Record::Loop(event) => self.apply_loop(event),
            Record::Document(_) => self.meta.touch(at_ms),
            Record::Tombstone => self.deleted = true,
            Record::Restored => self.deleted = false,
            Record::Streaming(_) | Record::Unknown(_) | Record::Newer { .. } => {}
        }
    }

    /// Follows the copied entries of a fork: its first record, the copies and a record of the leaf, with nothing else
    /// between. A session from a file of another program has no such record; there, entries older than the session are
    /// copies.
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
        self.meta.forked_from.is_some() && entry.timestamp < self.meta.created_at
    }

    fn apply_meta(&mut self, change: &MetaChange, at_ms: i64) {
        self.meta.apply(change, at_ms);
        if change.forked_from.is_some() {
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
    }

    fn apply_entry(&mut self, entry: &Entry, at_ms: i64) {
        let before = self.leaf.replace(entry.id.clone());
        if let Some(forks) = &mut self.forks {
            Arc::make_mut(forks).note(entry);
        }
        if entry.is_hidden() && !entry.is_emptied() {
            // The copy of a hidden entry keeps its place in the tree of a fork.
            self.hidden_count += 1;
            return;
        }
        // One without content is counted too: the record that redacts it takes it out of the count.
        self.entry_count += 1;
        let before_labels = self.leaf_before_labels.take().or(before);
        self.meta.touch(at_ms);
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
            None if entry.is_emptied() => {}
            None => self.note_custom_type(&custom.custom_type, entry),
        }
    }

    fn note_custom_type(&mut self, custom_type: &str, entry: &Entry) {
        if let Some(types) = &mut self.custom_types {
            types.note(custom_type, &entry.id, entry.marks.previous.as_ref());
        }
    }

    /// Counts a message. The usage and the model of a streaming message are known when it is finished.
    fn apply_message(&mut self, entry: &Entry, message: &AgentMessage) {
        self.meta.message_count += 1;
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
            AgentMessage::Assistant(reply) if streams && reply.model.is_empty() => {}
            AgentMessage::Assistant(reply) => self.note_model(&reply.provider, &reply.model),
            AgentMessage::User(_) if self.preview.is_none() => {
                let line = preview(&message.text(), STATE_PREVIEW_CHARS_MAX);
                self.preview = Some(line).filter(|line| !line.is_empty());
            }
            _ => {}
        }
    }

    /// Adds the usage that an entry reports, if any.
    fn add_usage(&mut self, entry: &Entry, report: Option<(String, Usage)>) {
        let Some((model, usage)) = report else { return };
        self.usage.add(&model, &usage);
        if !self.is_copy(entry)
            && let Some(by_day) = &mut self.by_day
        {
            Arc::make_mut(by_day).add(&model, &usage, entry.timestamp);
        }
    }

    /// Whether an entry was copied from the session that this one was forked from. The usage counts there.
    fn is_copy(&self, entry: &Entry) -> bool {
        self.copying || self.is_older(entry)
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
        self.meta.touch(at_ms);
        let Some(finish) = &revision.finish else { return };
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

    /// The usage of a hidden message stays counted, because it was spent.
    fn apply_removal(&mut self, removal: &Removal, at_ms: i64) {
        self.meta.touch(at_ms);
        self.hidden_count += 1;
        self.entry_count = self.entry_count.saturating_sub(1);
        if removal.is_message {
            self.meta.message_count = self.meta.message_count.saturating_sub(1);
        }
        if removal.is_preview {
            self.preview = None;
        }
        self.labels.set(&removal.entry_id, None);
    }

    fn count_compaction(&mut self) {
        self.compactions = self.compactions.map(|count| count.saturating_add(1));
    }

    fn apply_loop(&mut self, event: &LoopEvent) {
        // A count that is too high costs a search, so the event is not parsed for it.
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

    /// A fold needs only the beginning of each text, so a record of many megabytes is not copied to be applied.
    fn apply(&mut self, stored: &StoredEnvelope<'_>) {
        let payload = codec::shortened(&stored.envelope.payload);
        let envelope = Envelope { payload, ..stored.envelope.borrowed() };
        let at_ms = envelope.at_ms;
        self.apply(&codec::decode(envelope), stored.seq, at_ms);
    }

    fn snapshot(&self) -> String {
        // A state is plain data, without keys that are not strings and numbers that JSON lacks.
        serde_json::to_string(self).unwrap_or_else(|_| "null".to_owned())
    }

    /// An agent with an open loop is at work even when it says nothing for long. If the log were closed meanwhile, the
    /// next recorder would take the loop for abandoned.
    fn keeps_lock(&self) -> bool {
        self.loops.any_open()
    }
}

/// The type of the recorder's event that adds a compaction to a loop.
const COMPACTION_EVENT: &str = "\"bough:compaction\"";

/// The context window that the start of a loop reports.
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
