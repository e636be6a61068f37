//! A projector for a reader that begins in the middle: the session as it was there.

use bough_session::{Incarnation, MetaChange, Record, SessionId, SessionMeta, StreamTally};
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
    let fields = match fields_before(store, session, incarnation, from).await? {
        Some(fields) => Some(fields),
        // A store may leave out the records that end streams, so its state may show messages as streaming that do not.
        None => store
            .state_at(session, incarnation, from.seq)
            .await?
            .map(|state| (state.meta, StreamTally::default())),
    };
    Ok(fields.map(|(meta, streams)| EventProjector::with(incarnation, meta, streams)))
}

/// The fields of a session at a position, and its streams there, if little happened since, and the fields that changed were
/// set shortly before.
async fn fields_before(
    store: &dyn Store,
    session: &SessionId,
    incarnation: Incarnation,
    from: Position,
) -> Result<Option<(SessionMeta, StreamTally)>, StoreError> {
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
    let changes = since.iter().filter_map(|stored| meta_change(stored));
    let changed =
        changes.fold(MetaChange::default(), |before, change| change.clone().after(before));
    let has_first = changed.forked_from.is_some() || changed.created_at.is_some();
    if since.len() as u64 != more || has_first {
        return Ok(None);
    }
    let (mut meta, mut streams) = (now.state.meta.clone(), now.state.streams.clone());
    since.iter().rev().for_each(|stored| streams.revert(&stored.record));
    let earlier = look_back(store, (session, incarnation), from.seq, &changed).await?;
    Ok(earlier.map(|earlier| {
        take_back(&mut meta, &changed, &earlier);
        (meta, streams)
    }))
}

/// The last values, up to number `last`, of the fields that were changed since; `None` when these are too far away.
async fn look_back(
    store: &dyn Store,
    (session, incarnation): (&SessionId, Incarnation),
    mut last: u64,
    changed: &MetaChange,
) -> Result<Option<MetaChange>, StoreError> {
    let mut found = MetaChange::default();
    for _ in 0..FEED_LOOK_BACK_READS_MAX {
        if last == 0 || has_all(&found, changed) {
            return Ok(Some(found));
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
        let changes = records.iter().rev().filter_map(|stored| meta_change(stored));
        found = changes.fold(found, |later, change| later.after(change.clone()));
        last = after;
    }
    Ok((last == 0 || has_all(&found, changed)).then_some(found))
}

/// Whether the values before a change are known.
const fn has_all(earlier: &MetaChange, changed: &MetaChange) -> bool {
    (earlier.title.is_some() || changed.title.is_none())
        && (earlier.description.is_some() || changed.description.is_none())
        && (earlier.metadata.is_some() || changed.metadata.is_none())
        && (earlier.status.is_some() || changed.status.is_none())
}

/// Takes back a change; `earlier` has the values before it. A field that it does not have had not been set.
fn take_back(meta: &mut SessionMeta, changed: &MetaChange, earlier: &MetaChange) {
    if changed.title.is_some() {
        meta.title.clear();
    }
    if changed.description.is_some() {
        meta.description.clear();
    }
    if changed.metadata.is_some() {
        meta.metadata = None;
    }
    if changed.status.is_some() {
        (meta.status, meta.status_reason) = Default::default();
    }
    meta.apply(earlier, meta.updated_at);
}

fn meta_change(stored: &StoredRecord) -> Option<&MetaChange> {
    match stored.record.known() {
        Record::Meta(change) => Some(change),
        _ => None,
    }
}
