//! From lines to a session: what each line changes, given the lines before it.
//!
//! The records of a file are a function of its lines, one batch after the other and without looking ahead, so reading
//! on after an append gives the same as reading from the start.

use bough_session::{
    AgentMessage, AssistantMessage, Entry, EntryId, Finish, Incarnation, MetaChange, ModelName,
    NewRecord, Record, Revision, SessionId, SessionMeta, StatusChange, UsageChange,
};
use sha2::{Digest, Sha256};

use super::line::Item;
use crate::memory_session::MemorySession;

/// A session as far as its file has been read.
#[derive(Clone, Debug)]
pub(crate) struct Replay {
    session: SessionId,
    /// `None` until a line says something.
    image: Option<MemorySession>,
    /// Whether a meta was read; a file without one is not a session.
    has_meta: bool,
    /// The id in the file itself; the name of the file may be cut.
    pub(super) own_id: Option<SessionId>,
}

impl Replay {
    pub(crate) const fn new(session: SessionId) -> Self {
        Self { session, image: None, has_meta: false, own_id: None }
    }

    /// The session, if the file holds one.
    pub(crate) fn image(&self) -> Option<&MemorySession> {
        self.image.as_ref().filter(|_| self.has_meta)
    }

    /// Continues from a session that is completely known.
    pub(crate) fn of(image: MemorySession) -> Self {
        let session = image.state.meta.session_id.clone();
        Self { session, image: Some(image), has_meta: true, own_id: None }
    }

    /// Applies the lines of one batch. `first_line` are the bytes of its first line, from which the incarnation of a
    /// session that another program made is derived.
    pub(crate) fn apply(&mut self, items: Vec<Item>, first_line: &[u8]) {
        if self.image.is_none() {
            let Some(first) = items.first() else { return };
            let incarnation = match first {
                Item::Incarnation(incarnation) => *incarnation,
                _ => adopted_incarnation(&self.session, first_line),
            };
            self.image = Some(MemorySession::new(&self.session, incarnation));
        }
        let Some(image) = &mut self.image else { return };
        for item in items {
            match item {
                Item::Incarnation(_) => {}
                Item::Record(new, last_step) => {
                    self.has_meta |= matches!(new.record.known(), Record::Meta(_));
                    push_if_fitting(image, *new, last_step);
                }
                Item::Entry(entry) => apply_entry(image, *entry),
                Item::Leaf(leaf) => apply_leaf(image, leaf),
                Item::Meta(meta) => {
                    self.has_meta = true;
                    apply_meta(image, &meta);
                    self.own_id = Some(meta.session_id);
                }
            }
        }
    }
}

/// Adds a carried record; one that does not fit is ignored.
fn push_if_fitting(image: &mut MemorySession, new: NewRecord, last_step: Option<u64>) {
    if image.check(std::slice::from_ref(&new)).is_ok() {
        image.push(new);
        if let Some(step) = last_step {
            image.took_steps(step);
        }
    }
}

fn apply_entry(image: &mut MemorySession, entry: Entry) {
    match image.entry_ref(&entry.id) {
        None => {
            let at_ms = entry.timestamp;
            image.push(Record::Entry(entry).at(at_ms));
        }
        Some(old) => {
            if let Some(revision) = revision_between(old, &entry) {
                let at_ms = image.state.meta.updated_at;
                push_if_fitting(image, Record::Revision(revision).at(at_ms), None);
            }
        }
    }
}

fn apply_leaf(image: &mut MemorySession, leaf: Option<EntryId>) {
    if image.state.leaf != leaf {
        let at_ms = image.state.meta.updated_at;
        image.push(Record::Leaf(leaf).at(at_ms));
    }
}

fn apply_meta(image: &mut MemorySession, meta: &SessionMeta) {
    let first = image.seq() == 0;
    let change = meta_between(&image.state.meta, meta, first);
    if first || !change.is_empty() {
        image.push(Record::Meta(change).at(meta.updated_at));
    }
}

/// The change in a line that repeats an entry; `None` if it changes nothing.
fn revision_between(old: &Entry, new: &Entry) -> Option<Revision> {
    let (before, after) = (old.message()?, new.message()?);
    if before == after && new.revision <= old.revision {
        return None;
    }
    let details = after.details().filter(|_| before.details() != after.details());
    let revision = Revision::replace(old, after.content(), details.cloned());
    Some(Revision {
        to: new.revision.max(revision.to),
        finish: finish_between(&before, &after).map(Box::new),
        ..revision
    })
}

fn finish_between(before: &AgentMessage, after: &AgentMessage) -> Option<Finish> {
    let (AgentMessage::Assistant(before), AgentMessage::Assistant(after)) = (before, after) else {
        return None;
    };
    let finish = Finish {
        stop_reason: (before.stop_reason != after.stop_reason).then_some(after.stop_reason),
        native_stop_reason: changed(&before.native_stop_reason, &after.native_stop_reason),
        error_message: changed(&before.error_message, &after.error_message),
        error_kind: changed(&before.error_kind, &after.error_kind),
        warnings: changed(&before.warnings, &after.warnings),
        usage: usage_between(before, after),
        model: model_between(before, after),
        aborted: false,
    };
    (finish != Finish::default()).then_some(finish)
}

fn model_between(before: &AssistantMessage, after: &AssistantMessage) -> Option<ModelName> {
    let name = |message: &AssistantMessage| ModelName {
        provider: message.provider.clone(),
        model: message.model.clone(),
    };
    Some(name(after)).filter(|now| *now != name(before))
}

fn usage_between(before: &AssistantMessage, after: &AssistantMessage) -> Option<UsageChange> {
    Some(UsageChange {
        model: after.model.clone(),
        before: before.usage.clone(),
        after: changed(&before.usage, &after.usage)?,
    })
}

fn changed<T: Clone + PartialEq>(before: &Option<T>, after: &Option<T>) -> Option<T> {
    if before == after { None } else { after.clone() }
}

/// The change in a meta line, relative to the lines before it. Counts are our own.
fn meta_between(old: &SessionMeta, new: &SessionMeta, first: bool) -> MetaChange {
    let text = |old: &String, new: &String| (first || old != new).then(|| new.clone());
    let status = (old.status, &old.status_reason) != (new.status, &new.status_reason);
    MetaChange {
        title: text(&old.title, &new.title),
        description: text(&old.description, &new.description),
        metadata: changed(&old.metadata, &new.metadata),
        status: status
            .then(|| StatusChange { status: new.status, reason: new.status_reason.clone() }),
        forked_from: changed(&old.forked_from, &new.forked_from),
        created_at: (old.created_at != new.created_at).then_some(new.created_at),
        updated_at: (old.updated_at != new.updated_at).then_some(new.updated_at),
        archived: None,
        task_name: None,
        digest: None,
        kind: None,
    }
}

/// The incarnation of a session whose file has none: it is derived from the beginning of the file,
/// so every reader gets the same.
fn adopted_incarnation(session: &SessionId, first_line: &[u8]) -> Incarnation {
    let mut hash = Sha256::new();
    hash.update(b"adopted\n");
    hash.update(session.as_str().as_bytes());
    hash.update(b"\n");
    hash.update(first_line);
    let digest: [u8; 32] = hash.finalize().into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(digest.split_at(16).0);
    Incarnation::new(bytes)
}
