//! A session as it was: what the records up to a place say, for stores that have no quicker way to it.
//!
//! Both read in pages and keep one at a time.

use bough_session::{Entry, EntryId, Incarnation, Record, SessionId, SessionState};

use crate::limits::AS_OF_RECORDS_PER_READ;
use crate::types::{RecordPage, StoredEntry, StoredRecord};
use crate::{Store, StoreError};
use bough_record::Position;

/// Records of one life of a session, which may be over; `None` when they are no longer kept.
pub async fn records_of<S: Store + ?Sized>(
    store: &S,
    session: &SessionId,
    life: Incarnation,
    after: Position,
    limit: usize,
) -> Result<Option<RecordPage>, StoreError> {
    match store.records(session, after, limit).await {
        Ok(page) if page.incarnation == life => return Ok(Some(page)),
        Ok(_) | Err(StoreError::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    match store.trashed_records(session, life, after, limit).await {
        Ok(page) => Ok(Some(page)),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An entry at a revision, from the record that added it and those that changed it up to there.
pub(crate) async fn entry_at<S: Store + ?Sized>(
    store: &S,
    (session, life): (&SessionId, Incarnation),
    id: &EntryId,
    revision: u64,
) -> Result<Option<StoredEntry>, StoreError> {
    let newest = match store.trashed_entry(session, life, id).await? {
        Some(stored) => Some(stored),
        None => store.entry(session, id).await?,
    };
    let newest = newest.filter(|newest| newest.entry.revision >= revision);
    let Some(seq) = newest.map(|newest| newest.seq) else { return Ok(None) };
    let mut entry: Option<Entry> = None;
    let mut position = Position::at(seq.saturating_sub(1));
    loop {
        let page = records_of(store, session, life, position, AS_OF_RECORDS_PER_READ).await?;
        let Some(page) = page else { return Ok(None) };
        for stored in &page.records {
            take(&mut entry, id, stored);
            match &entry {
                Some(now) if now.revision < revision => {}
                Some(now) if now.revision == revision => {
                    return Ok(entry.map(|entry| StoredEntry { seq, entry }));
                }
                // Passed over, or of another incarnation, where this is another record.
                _ => return Ok(None),
            }
        }
        if !page.more {
            return Ok(None);
        }
        position = page.position_after(position);
    }
}

/// Takes a record into account that adds or changes an entry. One that does not fit changes nothing.
fn take(entry: &mut Option<Entry>, id: &EntryId, stored: &StoredRecord) {
    match (stored.record.known(), entry) {
        (Record::Entry(added), entry @ None) if added.id == *id => *entry = Some(added.clone()),
        (Record::Revision(change), Some(entry)) if change.entry_id == *id => {
            drop(change.apply(entry));
        }
        _ => {}
    }
}

/// The fold over the records up to one.
pub(crate) async fn state_at<S: Store + ?Sized>(
    store: &S,
    (session, life): (&SessionId, Incarnation),
    seq: u64,
) -> Result<Option<SessionState>, StoreError> {
    let mut state = SessionState::new(session.clone());
    let mut position = Position::default();
    while state.seq < seq {
        let page = records_of(store, session, life, position, AS_OF_RECORDS_PER_READ).await?;
        let Some(page) = page else { return Ok(None) };
        let records = page.records.iter().filter(|stored| !stored.is_step());
        for stored in records.take_while(|stored| stored.seq <= seq) {
            state.apply(&stored.record, stored.seq, stored.at_ms);
        }
        if !page.more {
            break;
        }
        position = page.position_after(position);
    }
    Ok(Some(state))
}
