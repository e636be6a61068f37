//! A projector for a reader that begins in the middle: the session as it was there.

use std::sync::Arc;

use bough_session::{Incarnation, MetaChange, Record, SessionId, SessionState, StreamTally};
use bough_store::{Position, Store, StoreError, StoreExt, StoredRecord};

use super::projector::EventProjector;
use crate::limits::{FEED_LOOK_BACK_READS_MAX, FEED_LOOK_BACK_RECORDS, FEED_RECORDS_PER_READ};

/// A projector for reading after a position; `None` when nothing is known of that incarnation any more.
///
/// It starts from the present state and takes back what changed since the position: the earlier values are most often a few
/// records away. If they are not, or if too much has happened since, it folds the records from the first.
pub(super) async fn projector_at(
    store: &dyn Store,
    session: &SessionId,
    (incarnation, from): (Incarnation, Position),
) -> Result<Option<EventProjector>, StoreError> {
    if from == Position::default() {
        return Ok(Some(EventProjector::at_start(session.clone(), incarnation)));
    }
    let state = match state_before(store, session, incarnation, from).await? {
        Some(state) => Some(state),
        None => store.state_at(session, incarnation, from.seq).await?.map(without_streams),
    };
    Ok(state.map(|state| EventProjector::with(incarnation, state)))
}

/// A store may leave out the records that end streams, so its state may show messages as streaming that do not.
fn without_streams(state: SessionState) -> SessionState {
    SessionState { streams: StreamTally::default(), ..state }
}

/// A field of a session that the projector needs as it was.
#[derive(Clone, Copy)]
struct Field {
    is_in: fn(&MetaChange) -> bool,
    copy: fn(&SessionState, &mut SessionState),
}

const FIELDS: [Field; 4] = [
    Field {
        is_in: |change| change.title.is_some(),
        copy: |from, to| to.title.clone_from(&from.title),
    },
    Field {
        is_in: |change| change.description.is_some(),
        copy: |from, to| to.description.clone_from(&from.description),
    },
    Field {
        is_in: |change| change.metadata.is_some(),
        copy: |from, to| to.metadata.clone_from(&from.metadata),
    },
    Field { is_in: |change| change.status.is_some(), copy: |from, to| to.status = from.status },
];

/// The state of a session at a position, if little happened since, and the fields that changed were set shortly before.
async fn state_before(
    store: &dyn Store,
    session: &SessionId,
    incarnation: Incarnation,
    from: Position,
) -> Result<Option<SessionState>, StoreError> {
    let now = store.state(session).await?.filter(|now| now.head.incarnation == incarnation);
    let Some(now) = now else { return Ok(None) };
    let more = now.head.seq.saturating_sub(from.seq);
    if more > FEED_RECORDS_PER_READ as u64 {
        return Ok(None);
    }
    let Some(page) = store.records_of(session, incarnation, from, FEED_RECORDS_PER_READ).await?
    else {
        return Ok(None);
    };
    let since = page.records.iter().filter(|stored| !stored.is_step());
    let since: Vec<_> = since.take_while(|stored| stored.seq <= now.head.seq).collect();
    let changes: Vec<_> = since.iter().filter_map(|stored| meta_change(stored)).collect();
    let is_first =
        |change: &&MetaChange| change.forked_from.is_some() || change.created_at.is_some();
    if since.len() as u64 != more || changes.iter().any(is_first) {
        return Ok(None);
    }
    let mut state = Arc::unwrap_or_clone(now.state);
    since.iter().rev().for_each(|stored| state.streams.revert(&stored.record));
    // The projector reads on from there: it folds the later records itself.
    state.seq = from.seq;
    let fields =
        FIELDS.into_iter().filter(|field| changes.iter().any(|change| (field.is_in)(change)));
    look_back(store, (session, incarnation), state, fields.collect()).await
}

/// Sets fields of a state to their last values up to its position; `None` when these are too far away.
async fn look_back(
    store: &dyn Store,
    (session, incarnation): (&SessionId, Incarnation),
    mut state: SessionState,
    mut fields: Vec<Field>,
) -> Result<Option<SessionState>, StoreError> {
    let fresh = SessionState::new(session.clone());
    fields.iter().for_each(|field| (field.copy)(&fresh, &mut state));
    let mut last = state.seq;
    for _ in 0..FEED_LOOK_BACK_READS_MAX {
        if fields.is_empty() || last == 0 {
            return Ok(Some(state));
        }
        let after = last.saturating_sub(FEED_LOOK_BACK_RECORDS as u64);
        let limit = FEED_LOOK_BACK_RECORDS;
        let page = store.records_of(session, incarnation, Position::at(after), limit).await?;
        let Some(page) = page else { return Ok(None) };
        let is_before = |stored: &&StoredRecord| !stored.is_step() && stored.seq <= last;
        let records: Vec<&StoredRecord> = page.records.iter().filter(is_before).collect();
        // Large records make a page short.
        if records.last().map(|stored| stored.seq) != Some(last) {
            return Ok(None);
        }
        for stored in records.iter().rev() {
            let Some(change) = meta_change(stored) else { continue };
            let mut changed = fresh.clone();
            changed.apply(&stored.record, stored.seq, stored.at_ms);
            fields.retain(|field| {
                let is_set = (field.is_in)(change);
                if is_set {
                    (field.copy)(&changed, &mut state);
                }
                !is_set
            });
        }
        last = after;
    }
    Ok((fields.is_empty() || last == 0).then_some(state))
}

fn meta_change(stored: &StoredRecord) -> Option<&MetaChange> {
    match stored.record.known() {
        Record::Meta(change) => Some(change),
        _ => None,
    }
}
