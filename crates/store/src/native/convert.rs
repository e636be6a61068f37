//! Conversions between the types of the log and of the store.

use bough_log as log;
use bough_record::{Envelope, StoredEnvelope};
use bough_session::{EntryId, NewRecord, Record, SessionId, codec};

use crate::StoreError;
use crate::types::{Steps, StoredEntry, StoredRecord};

/// Records in their stored form.
pub(super) fn envelopes<'a>(records: impl IntoIterator<Item = &'a NewRecord>) -> Vec<Envelope<'a>> {
    records.into_iter().map(|new| codec::encode(&new.record, new.at_ms)).collect()
}

pub(super) fn stored_record(stored: StoredEnvelope<'_>) -> StoredRecord {
    StoredRecord {
        seq: stored.seq,
        steps: stored.last_step.map_or(Steps::None, Steps::UpTo),
        at_ms: stored.envelope.at_ms,
        record: codec::decode(stored.envelope),
    }
}

/// A step of a stream, at its place in the feed.
pub(super) fn stored_delta(line: &log::format::StreamLine) -> Option<StoredRecord> {
    let delta = codec::decode_delta(line.payload.get())?;
    Some(StoredRecord {
        seq: line.after,
        steps: Steps::One(line.number),
        at_ms: line.at_ms,
        record: Record::Revision(delta.into_revision()),
    })
}

/// An entry as the log keeps it.
pub(super) type EntryRecord = log::EntryRecord<StoredRecord>;

/// An entry at its newest revision, and when it last changed.
pub(super) fn entry(found: EntryRecord) -> Result<(StoredEntry, i64), StoreError> {
    entry_up_to(found, u64::MAX)
}

/// An entry at the newest of its revisions up to one, and when it came there.
pub(super) fn entry_up_to(found: EntryRecord, most: u64) -> Result<(StoredEntry, i64), StoreError> {
    let StoredRecord { seq, at_ms: mut last_at, record, .. } = found.added;
    let damaged = |what: String| StoreError::corrupt(what, format!("record {seq}"));
    let Record::Entry(mut entry) = record.into_known() else {
        return Err(damaged("the record does not hold an entry".to_owned()));
    };
    let is_removal = |stored: &&StoredRecord| matches!(stored.record.known(), Record::Removed(_));
    if let Some(removed) = found.revisions.iter().find(is_removal) {
        // No revision of it is shown.
        entry.hide();
        return Ok((StoredEntry { seq, entry }, removed.at_ms));
    }
    for stored in found.revisions {
        let Record::Revision(revision) = stored.record.known() else {
            return Err(damaged("a revision of it cannot be read".to_owned()));
        };
        if revision.to > most {
            break;
        }
        last_at = stored.at_ms;
        revision.apply(&mut entry).map_err(|error| damaged(error.to_string()))?;
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

/// Errors of the log as errors of the store.
pub(super) trait StoreResult<T> {
    /// The result of a call about one session.
    fn of(self, session: &SessionId) -> Result<T, StoreError>;

    /// The result of a call about no session in particular.
    fn of_all(self) -> Result<T, StoreError>;
}

impl<T> StoreResult<T> for log::Result<T> {
    fn of(self, session: &SessionId) -> Result<T, StoreError> {
        self.map_err(|error| store_error(error, session))
    }

    fn of_all(self) -> Result<T, StoreError> {
        self.map_err(|error| store_error(error, &SessionId::from_stored("(all)")))
    }
}

pub(super) fn store_error(error: log::LogError, session: &SessionId) -> StoreError {
    use log::LogError as E;
    match error {
        E::NotFound { .. } => StoreError::not_found(session),
        E::Exists { .. } => StoreError::exists(session),
        E::Conflict { current } => StoreError::Conflict { current },
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
