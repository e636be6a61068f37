//! Turns records into events.

use std::sync::Arc;

use bough_session::{
    Bookkeeping, ContentBlock, Entry, EntryId, Incarnation, JsonMap, LoopEvent, MetaChange, Record,
    Removal, Revision, SessionId, SessionMeta, SessionStatus, StreamTally,
};
use bough_store::{Steps, StoredEntry, StoredRecord};

use super::deletions::Deletion;
use super::event::{FeedEvent, number_parts};
use super::event_table::EventPayload;
use super::events::{
    ArchivedEvent, CreatedEvent, DeletedEvent, LabelChangedEvent, LeafMovedEvent, LoopChangedEvent,
    MessageAddedEvent, MessageRemovedEvent, MessageUpdatedEvent, MetaUpdatedEvent,
    StatusChangedEvent, TaskChangedEvent,
};
use super::message_change::{ChangeKind, MessageChange, TextDelta};
use crate::limits::PROJECTOR_STREAMS_MAX;
use crate::recent_map::RecentMap;

/// Turns the records of one incarnation of a session, in order, into events. It reads nothing itself.
///
/// It knows the fields of the session as of the last record, and a message as of the revision before the present one:
/// an event shows the session as it was at the event's position.
pub(super) struct EventProjector {
    incarnation: Incarnation,
    /// The session's own fields, without its number of messages, which no event shows.
    meta: SessionMeta,
    /// Which messages stream.
    streams: StreamTally,
    /// The metadata once more, to be shared by the events.
    metadata: Option<Arc<JsonMap>>,
    /// Messages as of the last projected revision, so that each step can be shown whole, and the records that added
    /// them.
    messages: RecentMap<EntryId, StoredEntry, PROJECTOR_STREAMS_MAX>,
    /// Whether the record that creates the session has been read. In files of session-manager it may come after the
    /// entries of a fork.
    has_begun: bool,
    /// While the copies of a fork are read: the one event that they have, which comes at their end.
    copying: Option<CreatedEvent>,
}

/// A record without its payload.
#[derive(Clone, Copy)]
struct RecordHeader {
    seq: u64,
    steps: Steps,
    at_ms: i64,
}

impl EventProjector {
    /// A projector for an incarnation from its first record on.
    pub(super) fn at_start(session: SessionId, incarnation: Incarnation) -> Self {
        let start = Self::with(incarnation, SessionMeta::new(session), StreamTally::default());
        Self { has_begun: false, ..start }
    }

    /// A projector that begins in the middle, with the session's own fields and its streams there.
    pub(super) fn with(incarnation: Incarnation, meta: SessionMeta, streams: StreamTally) -> Self {
        Self {
            incarnation,
            metadata: meta.metadata.clone().map(Arc::new),
            meta,
            streams,
            messages: RecentMap::default(),
            has_begun: true,
            copying: None,
        }
    }

    pub(super) const fn session(&self) -> &SessionId {
        &self.meta.session_id
    }

    pub(super) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Whether the records that come next are the copies of a fork.
    pub(super) const fn is_copying(&self) -> bool {
        self.copying.is_some()
    }

    /// What is known of the session, for a deletion of which nothing else is known.
    pub(super) fn last_known(&self) -> Deletion {
        let (deleted_at, metadata) = (self.meta.updated_at, self.metadata.clone());
        Deletion { deleted_at, seq: None, metadata }
    }

    /// The change of a message that is not kept as it was before: [`project`](Self::project) has to be given that.
    pub(super) fn message_to_look_up<'a>(&self, record: &'a Record) -> Option<&'a Revision> {
        let Record::Revision(change) = record.known() else { return None };
        let is_kept =
            self.messages.get(&change.entry_id).is_some_and(|StoredEntry { entry, .. }| {
                change.to <= entry.revision || change.from == entry.revision
            });
        (!is_kept).then_some(change)
    }

    /// The events of one record. `before` is the message that the record changes, as it was, where that had to be looked up and
    /// was found.
    pub(super) fn project(
        &mut self,
        stored: &StoredRecord,
        before: Option<StoredEntry>,
    ) -> Vec<FeedEvent> {
        let header = RecordHeader { seq: stored.seq, steps: stored.steps, at_ms: stored.at_ms };
        let previous_status = self.meta.status;
        let is_streaming = self.is_streaming(&stored.record);
        self.fold(stored);
        let mut payloads = self.end_of_copies(&stored.record);
        let mut message_change = None;
        match stored.record.known() {
            Record::Meta(change) => payloads.extend(self.meta(header, change, previous_status)),
            Record::Entry(entry)
                if self.has_begun && self.copying.is_none() && !entry.is_hidden() =>
            {
                payloads.extend(self.entry(header, entry));
                message_change = Some(added(header, entry, is_streaming));
            }
            Record::Removed(removal) => payloads.push(self.removed(header, removal)),
            Record::Leaf(leaf) if self.has_begun && payloads.is_empty() => {
                payloads.push(self.leaf(header, leaf));
            }
            Record::Revision(change) => {
                if let Some((event, how)) = self.revision(header, change, before) {
                    payloads.push(EventPayload::MessageUpdated(Box::new(event)));
                    message_change = Some(MessageChange { is_streaming, ..how });
                }
            }
            Record::Loop(event) => payloads.push(self.loop_event(header, event)),
            Record::Tombstone => payloads.push(self.deleted(header.at_ms)),
            Record::Restored => payloads.push(EventPayload::Created(CreatedEvent::of(&self.meta))),
            Record::Entry(_)
            | Record::Leaf(_)
            | Record::Streaming(_)
            | Record::Document(_)
            | Record::Unknown(_)
            | Record::Newer { .. } => {}
        }
        self.make_events(header, payloads, message_change)
    }

    /// The events that remain at the end of the feed: a fork whose copies were not closed by a record.
    pub(super) fn at_end(&mut self, seq: u64) -> Vec<FeedEvent> {
        let payloads: Vec<_> = self.copying.take().map(EventPayload::Created).into_iter().collect();
        let header = RecordHeader { seq, steps: Steps::None, at_ms: 0 };
        self.make_events(header, payloads, None)
    }

    fn make_events(
        &self,
        header: RecordHeader,
        payloads: Vec<EventPayload>,
        mut change: Option<MessageChange>,
    ) -> Vec<FeedEvent> {
        let mut events: Vec<FeedEvent> = payloads
            .into_iter()
            .map(|payload| {
                let whose = (self.session().clone(), self.incarnation);
                let is_message = payload.kind().is_message();
                let at = (header.seq, header.steps);
                let event = FeedEvent::new(whose, at, self.metadata.clone(), payload);
                if is_message { event.with_change(change.take()) } else { event }
            })
            .collect();
        number_parts(&mut events);
        events
    }

    fn fold(&mut self, stored: &StoredRecord) {
        self.streams.apply(&stored.record);
        if let Record::Meta(change) = stored.record.known() {
            self.meta.apply(change, stored.at_ms);
            if change.metadata.is_some() {
                self.metadata = change.metadata.clone().map(Arc::new);
            }
        }
        self.meta.touch(stored.at_ms);
    }

    /// The fork itself, when the record that closes its copies, or follows them, comes.
    fn end_of_copies(&mut self, record: &Record) -> Vec<EventPayload> {
        if matches!(record.known(), Record::Entry(_)) {
            return Vec::new();
        }
        let created = self.copying.take();
        created.map(EventPayload::Created).into_iter().collect()
    }

    fn meta(
        &mut self,
        header: RecordHeader,
        change: &MetaChange,
        previous_status: SessionStatus,
    ) -> Vec<EventPayload> {
        if header.seq == 1 || !self.has_begun {
            return self.first(header, change);
        }
        let (session_id, timestamp) = (self.session().clone(), header.at_ms);
        let mut payloads = Vec::new();
        if change.title.is_some() || change.description.is_some() || change.metadata.is_some() {
            payloads.push(EventPayload::MetaUpdated(self.meta_updated(header)));
        }
        if let Some(status) = &change.status {
            payloads.push(EventPayload::StatusChanged(StatusChangedEvent {
                session_id: session_id.clone(),
                status: status.status,
                previous_status,
                status_reason: status.kept_reason().cloned(),
                timestamp,
            }));
        }
        if let Some(archived) = change.archived {
            payloads.push(EventPayload::Archived(ArchivedEvent {
                session_id: session_id.clone(),
                archived,
                timestamp,
            }));
        }
        if let Some(task) = &change.task_name {
            payloads.push(EventPayload::TaskChanged(TaskChangedEvent {
                session_id,
                task: Some(task.clone()).filter(|task| !task.is_empty()),
                timestamp,
            }));
        }
        payloads
    }

    fn meta_updated(&self, header: RecordHeader) -> MetaUpdatedEvent {
        MetaUpdatedEvent {
            session_id: self.session().clone(),
            title: self.meta.title.clone(),
            description: self.meta.description.clone(),
            metadata: self.meta.metadata.clone(),
            timestamp: header.at_ms,
        }
    }

    /// The record that creates the session.
    fn first(&mut self, header: RecordHeader, change: &MetaChange) -> Vec<EventPayload> {
        if change.created_at.is_none() {
            self.meta.created_at = header.at_ms;
        }
        self.has_begun = true;
        let created = CreatedEvent::of(&self.meta);
        if created.forked_from.is_some() && header.seq == 1 {
            self.copying = Some(created);
            return Vec::new();
        }
        vec![EventPayload::Created(created)]
    }

    fn entry(&mut self, header: RecordHeader, entry: &Entry) -> Vec<EventPayload> {
        let added = MessageAddedEvent::of(self.session().clone(), entry, header.at_ms);
        let label = match added.custom.as_ref().and_then(Bookkeeping::from_payload) {
            Some(Bookkeeping::Label(label)) => {
                Some(EventPayload::LabelChanged(LabelChangedEvent {
                    session_id: self.session().clone(),
                    entry_id: label.target_id,
                    label: label.label,
                    timestamp: header.at_ms,
                }))
            }
            _ => None,
        };
        if added.message.is_some() {
            self.remember(StoredEntry { seq: header.seq, entry: entry.clone() });
        }
        let added = EventPayload::MessageAdded(Box::new(added));
        std::iter::once(added).chain(label).collect()
    }

    /// A change of a message: the message as it was before, and the change. `None` if there is no event.
    fn revision(
        &mut self,
        header: RecordHeader,
        change: &Revision,
        before: Option<StoredEntry>,
    ) -> Option<(MessageUpdatedEvent, MessageChange)> {
        let mut kept = self.messages.take(&change.entry_id);
        if let Some(stored) = kept.take_if(|stored| change.to <= stored.entry.revision) {
            self.remember(stored);
            return None;
        }
        let kept = kept.filter(|stored| stored.entry.revision == change.from);
        let StoredEntry { seq, mut entry } = before.or(kept)?;
        change.apply(&mut entry).ok()?;
        let event = MessageUpdatedEvent {
            session_id: self.session().clone(),
            entry_id: entry.id.clone(),
            message: entry.message()?,
            revision: entry.revision,
            origin: change.origin.clone(),
            timestamp: header.at_ms,
        };
        let how = MessageChange {
            entry_seq: seq,
            parent_id: entry.parent_id.clone(),
            is_streaming: false,
            kind: kind_of_change(header, change, event.message.content()),
        };
        self.remember(StoredEntry { seq, entry });
        Some((event, how))
    }

    fn leaf(&self, header: RecordHeader, leaf: &Option<EntryId>) -> EventPayload {
        EventPayload::LeafMoved(LeafMovedEvent {
            session_id: self.session().clone(),
            entry_id: leaf.clone(),
            timestamp: header.at_ms,
        })
    }

    fn removed(&mut self, header: RecordHeader, removal: &Removal) -> EventPayload {
        drop(self.messages.take(&removal.entry_id));
        EventPayload::MessageRemoved(MessageRemovedEvent {
            session_id: self.session().clone(),
            entry_id: removal.entry_id.clone(),
            timestamp: header.at_ms,
        })
    }

    fn loop_event(&self, header: RecordHeader, event: &LoopEvent) -> EventPayload {
        EventPayload::LoopChanged(LoopChangedEvent {
            session_id: self.session().clone(),
            loop_id: event.loop_id.to_string(),
            entry_id: event.entry_id.clone(),
            event: event.event.value(),
            timestamp: header.at_ms,
        })
    }

    fn deleted(&self, timestamp: i64) -> EventPayload {
        EventPayload::Deleted(DeletedEvent { session_id: self.session().clone(), timestamp })
    }

    /// Whether a record is about a message that streams.
    fn is_streaming(&self, record: &Record) -> bool {
        match record.known() {
            Record::Entry(entry) => self.streams.is_open(&entry.id),
            Record::Revision(change) => self.streams.is_open(&change.entry_id),
            _ => false,
        }
    }

    /// Forgets the messages that it keeps; they are looked up when they change.
    pub(super) fn forget_messages(&mut self) {
        self.messages.clear();
    }

    fn remember(&mut self, stored: StoredEntry) {
        self.messages.put(stored.entry.id.clone(), stored);
    }
}

fn added(header: RecordHeader, entry: &Entry, is_streaming: bool) -> MessageChange {
    let parent_id = entry.parent_id.clone();
    MessageChange { entry_seq: header.seq, parent_id, is_streaming, kind: ChangeKind::Added }
}

/// What a revision does to a message whose content is now this.
///
/// A record that took the place of steps replaces the message: its reader may know some of those steps.
fn kind_of_change(header: RecordHeader, change: &Revision, content: &[ContentBlock]) -> ChangeKind {
    if let Some(finish) = &change.finish {
        let has_new_content = !change.change.is_empty();
        return ChangeKind::Finished { finish: finish.clone(), has_new_content };
    }
    let is_plain = change.details.is_none() && !matches!(header.steps, Steps::UpTo(_));
    let delta = TextDelta::of(&change.change, content).filter(|_| is_plain);
    delta.map_or(ChangeKind::Replaced, ChangeKind::Text)
}
