//! Between the log's words and the store's.

use bough_log as log;
use bough_session::codec::LogView;
use bough_session::{Entry, EntryId, Incarnation, NewRecord, Record, SessionId, codec};

use crate::StoreError;
use crate::types::{ChainHash, Head, Position, StoredEntry, StoredRecord};

pub(super) fn head(head: log::Head) -> Head {
    Head {
        incarnation: incarnation(head.incarnation),
        seq: head.seq,
        chain: ChainHash(head.chain.bytes()),
    }
}

pub(super) fn log_head(head: &Head) -> log::Head {
    log::Head {
        incarnation: log_incarnation(head.incarnation),
        seq: head.seq,
        chain: log::ChainHash::from_bytes(head.chain.0),
    }
}

pub(super) fn incarnation(incarnation: log::Incarnation) -> Incarnation {
    Incarnation::new(incarnation.0)
}

pub(super) fn log_incarnation(incarnation: Incarnation) -> log::Incarnation {
    log::Incarnation(incarnation.bytes())
}

/// A record as the log takes it.
pub(super) fn to_log(new: &NewRecord) -> log::NewRecord {
    let stored = codec::encode(&new.record, new.at_ms);
    log::NewRecord {
        kind: stored.kind,
        id: stored.id,
        parent: stored.parent,
        target: stored.target,
        revision: stored.revision,
        at_ms: stored.at_ms,
        payload: stored.payload,
    }
}

/// A record of the log as the session room reads it.
pub(super) fn record(view: &log::RecordView<'_>) -> Record {
    codec::decode_view(&log_view(view, view.payload))
}

/// The same for a fold, which needs no more than the beginning of each text: a record of many megabytes is not
/// copied to be added up.
pub(super) fn record_for_fold(view: &log::RecordView<'_>) -> Record {
    codec::decode_view(&log_view(view, &codec::shortened(view.payload)))
}

fn log_view<'a>(view: &log::RecordView<'a>, payload: &'a str) -> LogView<'a> {
    LogView {
        kind: view.kind,
        id: view.id,
        parent: view.parent,
        target: view.target,
        revision: view.revision,
        at_ms: view.at_ms,
        payload,
    }
}

pub(super) fn stored_record(stored: &log::StoredRecord) -> StoredRecord {
    // The log's own mark that steps may follow: it stands for none, and those before it are not over.
    let begins_stream = stored.record.kind == log::kind::STREAM;
    StoredRecord {
        position: Position::at(stored.seq),
        at_ms: stored.record.at_ms,
        record: record(&stored.view()),
        settles: if begins_stream { Some(0) } else { stored.settles },
    }
}

/// A step of a stream, at its place in the feed.
pub(super) fn stored_delta(line: &log::format::StreamLine) -> Option<StoredRecord> {
    let delta = codec::decode_delta(line.payload.get())?;
    Some(StoredRecord {
        position: Position { seq: line.after, revision: line.number },
        at_ms: line.at_ms,
        record: Record::Revision(delta.into_revision()),
        settles: None,
    })
}

/// An entry at its newest revision, and when it last changed.
pub(super) fn entry(found: &log::EntryRecord) -> Result<(StoredEntry, i64), StoreError> {
    entry_up_to(found, u64::MAX)
}

/// An entry at the newest of its revisions up to one, and when it came there.
pub(super) fn entry_up_to(
    found: &log::EntryRecord,
    most: u64,
) -> Result<(StoredEntry, i64), StoreError> {
    let seq = found.added.seq;
    let damaged = |what: String| StoreError::corrupt(what, format!("record {seq}"));
    let Record::Entry(mut entry) = record(&found.added.view()).known().clone() else {
        return Err(damaged("the record does not hold an entry".to_owned()));
    };
    let mut last_at = found.added.record.at_ms;
    let is_later = |revision: Option<u64>| revision.is_some_and(|revision| revision > most);
    let known = found.revisions.iter().take_while(|stored| !is_later(stored.record.revision));
    for revision in known {
        last_at = revision.record.at_ms;
        apply(&record(&revision.view()), &mut entry).map_err(damaged)?;
    }
    for line in found.deltas.iter().take_while(|line| line.revision <= most) {
        last_at = line.at_ms;
        let delta = codec::decode_delta(line.payload.get())
            .ok_or_else(|| damaged("a step of its stream cannot be read".to_owned()))?;
        // A revision may already contain a step that its file still has.
        if delta.revision <= entry.revision {
            continue;
        }
        delta.apply(&mut entry).map_err(|error| damaged(error.to_string()))?;
    }
    Ok((StoredEntry { seq, entry }, last_at))
}

fn apply(record: &Record, entry: &mut Entry) -> Result<(), String> {
    match record.known() {
        Record::Revision(revision) => revision.apply(entry).map_err(|error| error.to_string()),
        _ => Err("a revision of it cannot be read".to_owned()),
    }
}

/// The log's refusals in the store's words.
pub(super) fn error(error: log::LogError, session: &SessionId) -> StoreError {
    use log::LogError as E;
    match error {
        E::NotFound { .. } => StoreError::NotFound { session: session.clone() },
        E::Exists { .. } => StoreError::Exists { session: session.clone() },
        E::Conflict { current } => StoreError::Conflict { current: head(current) },
        E::Duplicate { entry, .. } => StoreError::invalid(format!("entry {entry} exists already")),
        E::UnknownEntry { entry } => {
            StoreError::EntryNotFound { entry: EntryId::from_stored(entry) }
        }
        E::Locked { holder } => StoreError::Locked { holder },
        E::TooLarge { .. } | E::Invalid { .. } | E::NewerFormat { .. } | E::Transition { .. } => {
            StoreError::invalid(error.to_string())
        }
        E::Corrupt(damage) => StoreError::corrupt(
            damage.detail.clone(),
            format!("{} at byte {}", damage.file, damage.at),
        ),
        E::Latched { cause } => StoreError::Latched { reason: cause },
        E::Full(_) => StoreError::Full,
        E::Io(error) => StoreError::from(error),
    }
}
