//! A projector for a reader that begins in the middle: the session as it was there.

use bough_session::{Incarnation, MetaChange, Record, SessionId, SessionState, StreamTally};
use bough_store::{Position, Store, StoreError, StoreExt, StoredRecord};

use super::projector::EventProjector;
use crate::limits::{FEED_LOOK_BACK_READS_MAX, FEED_LOOK_BACK_RECORDS, FEED_RECORDS_PER_READ};

/// A projector for reading after a position; `None` when nothing is known of that incarnation any more.
///
/// What is known now serves, with what changed since as it was said last before. That is most often a few records away. Where
/// it is not, or too much happened since, the store looks through the records from the first.
pub(super) async fn projector_at(
    store: &dyn Store,
    session: &SessionId,
    incarnation: Incarnation,
    from: Position,
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

/// A store may leave out the records that end streams. Messages of which it is not known that they stream are told as others.
fn without_streams(state: SessionState) -> SessionState {
    SessionState { streams: StreamTally::default(), ..state }
}

/// What is asked of a session as it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Asked {
    title: bool,
    description: bool,
    metadata: bool,
    status: bool,
    /// What only the first record of a session says.
    origin: bool,
}

/// The state of a session at a position, if little happened since and what that changed was said shortly before.
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
    let mut asked = Asked::default();
    since.iter().for_each(|stored| asked.add(stored.record.known()));
    if since.len() as u64 != more || asked.origin {
        return Ok(None);
    }
    let mut state = now.state;
    since.iter().rev().for_each(|stored| state.streams.revert(&stored.record));
    // The projector goes on from there: what comes after is yet to be folded in.
    state.seq = from.seq;
    look_back(store, (session, incarnation), state, asked).await
}

/// Puts what is asked for in a state as it was last said up to there; `None` when that is too far away.
async fn look_back(
    store: &dyn Store,
    (session, incarnation): (&SessionId, Incarnation),
    mut state: SessionState,
    mut asked: Asked,
) -> Result<Option<SessionState>, StoreError> {
    asked.forget(&mut state);
    let mut last = state.seq;
    for _ in 0..FEED_LOOK_BACK_READS_MAX {
        if asked == Asked::default() || last == 0 {
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
            if let Record::Meta(change) = stored.record.known() {
                asked.answer(change, &mut state);
            }
        }
        last = after;
    }
    Ok((asked == Asked::default() || last == 0).then_some(state))
}

impl Asked {
    /// Asks for what a record changes.
    const fn add(&mut self, record: &Record) {
        if let Record::Meta(change) = record {
            self.title |= change.title.is_some();
            self.description |= change.description.is_some();
            self.metadata |= change.metadata.is_some();
            self.status |= change.status.is_some();
            self.origin |= change.forked_from.is_some() || change.created_at.is_some();
        }
    }

    /// What is asked for is as in a session of which nothing was said yet.
    fn forget(self, state: &mut SessionState) {
        let fresh = SessionState::new(state.session_id.clone());
        if self.title {
            state.title = fresh.title;
        }
        if self.description {
            state.description = fresh.description;
        }
        if self.metadata {
            state.metadata = fresh.metadata;
        }
        if self.status {
            (state.status, state.status_reason) = (fresh.status, fresh.status_reason);
        }
    }

    /// Takes what a change says of what is asked for.
    fn answer(&mut self, change: &MetaChange, state: &mut SessionState) {
        if let Some(title) = change.title.as_ref().filter(|_| self.title) {
            state.title.clone_from(title);
            self.title = false;
        }
        if let Some(description) = change.description.as_ref().filter(|_| self.description) {
            state.description.clone_from(description);
            self.description = false;
        }
        if let Some(metadata) = change.metadata.as_ref().filter(|_| self.metadata) {
            state.metadata = Some(metadata.clone());
            self.metadata = false;
        }
        if let Some(status) = change.status.as_ref().filter(|_| self.status) {
            state.status = status.status;
            self.status = false;
        }
    }
}
