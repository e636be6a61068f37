//! Reading events from the log itself, for a reader that is further back than what is kept in memory.

use bough_session::{Incarnation, SessionId};
use bough_store::{Store, StoreError, StoreExt};

use super::cursor::SessionCursor;
use super::event::FeedEvent;
use super::point_in_time::projector_at;
use super::reader::FeedReader;
use crate::limits::{FEED_COLD_PAGE_BYTES_MAX, FEED_RECORDS_PER_READ};

/// A page of events read from the log itself, for a reader that the ring does not reach back to.
pub(super) struct ColdPage {
    /// The events, in order.
    pub(super) events: Vec<FeedEvent>,
    /// Where the reader is after them.
    pub(super) cursor: SessionCursor,
    /// Whether there is more to read in the log.
    pub(super) more: bool,
}

/// Why a place cannot be read from.
pub(super) enum Cold {
    /// It can.
    Page(ColdPage),
    /// The session does not exist.
    Gone,
    /// The session is in another incarnation.
    OtherIncarnation(Incarnation),
}

/// Reads a page of events after a place from the log.
pub(super) async fn read_cold(
    store: &dyn Store,
    session: &SessionId,
    cursor: SessionCursor,
) -> Result<Cold, StoreError> {
    let from = cursor.read_after();
    let page = match store.records(session, from, FEED_RECORDS_PER_READ).await {
        Ok(page) => page,
        Err(StoreError::NotFound { .. }) => return Ok(Cold::Gone),
        Err(error) => return Err(error),
    };
    if page.incarnation != cursor.incarnation {
        return Ok(Cold::OtherIncarnation(page.incarnation));
    }
    let Some(projector) = projector_at(store, session, cursor.incarnation, from).await? else {
        return Ok(Cold::Gone);
    };
    // A record that was delivered in part is read again, and the part is dropped.
    let mut reader = FeedReader::at(from, projector);
    let mut events = Vec::new();
    let mut page = page;
    let mut weight = 0;
    let more = 'pages: loop {
        let mut is_whole = true;
        for stored in page.records {
            let Some(found) = reader.take(store, stored).await? else {
                is_whole = false;
                break;
            };
            weight += found.iter().map(FeedEvent::weight).sum::<usize>();
            events.extend(found);
            // Who resumes among the copies of a fork would not know that they are copies.
            if weight >= FEED_COLD_PAGE_BYTES_MAX && !reader.projector.is_copying() {
                break 'pages true;
            }
        }
        if is_whole && !page.more {
            reader.position = reader.position.join(page.end);
            events.extend(reader.projector.at_end(reader.position.seq));
            break false;
        }
        if is_whole && !reader.projector.is_copying() {
            break true;
        }
        page = store.records(session, reader.position, FEED_RECORDS_PER_READ).await?;
    };
    events.retain(|event| cursor.is_before(event));
    Ok(Cold::Page(ColdPage {
        events,
        cursor: SessionCursor::at(cursor.incarnation, reader.position),
        more,
    }))
}
