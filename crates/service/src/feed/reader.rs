//! The two feeds, and how each is read from the store. The subscribers' side ([`tail`](super::tail),
//! [`subscriber`](super::subscriber)) is the same for both.

use std::sync::Arc;
use std::time::Duration;

use bough_session::SessionId;
use bough_store::{ChangeWatch, SessionWatch, StoreError, StoreExt, Wake};

use super::cursor::{FeedPosition, SessionCursor};
use super::event::FeedEvent;
use super::global_reader::GlobalFeedReader;
use super::session_reader::SessionFeedReader;
use super::subscription::GapReason;
use super::tail::FeedTail;
use crate::limits::{
    FEED_COLD_RECORDS_PER_READ, GLOBAL_PAUSE_MAX, GLOBAL_PAUSE_PER_EVENT, GLOBAL_RING_BYTES_MAX,
    GLOBAL_RING_EVENTS_MAX, SESSION_RING_BYTES_MAX, SESSION_RING_EVENTS_MAX,
};
use crate::open_session::{OpenSession, OpenSessions};
use crate::ring::Ring;
use crate::runtime::is_visible;
use crate::scope::Scope;

/// Which feed it is.
pub(crate) enum Feed {
    /// Of one session.
    Session(Arc<OpenSession>),
    /// Of all sessions.
    All(Arc<OpenSessions>),
}

/// Something in a feed, and where a reader is after it.
#[derive(Clone, Debug)]
pub(super) struct ReadItem {
    /// What happened, or why something before this may be missing.
    pub(super) event: Result<Arc<FeedEvent>, GapReason>,
    pub(super) position: FeedPosition,
}

/// What one read of a feed found.
pub(super) struct ReadPage {
    pub(super) items: Vec<ReadItem>,
    /// Whether there was more to read when it was read.
    pub(super) more: bool,
}

/// Reads a feed from the store, page by page. A read that fails or is dropped in the middle loses nothing: the next one
/// returns what it would have returned.
pub(super) enum FeedReader {
    Session(SessionFeedReader),
    All(GlobalFeedReader),
}

/// Wakes the subscribers of a feed.
pub(super) enum Watch {
    Session(SessionWatch),
    All(ChangeWatch),
}

impl Feed {
    /// The feed of a session, or of all.
    pub(super) fn of(sessions: &Arc<OpenSessions>, session: Option<&SessionId>) -> Self {
        match session {
            Some(session) => Self::Session(sessions.open(session)),
            None => Self::All(sessions.clone()),
        }
    }

    pub(super) fn watch(&self) -> Watch {
        match self {
            Self::Session(open) => Watch::Session(open.store().watch_session(open.id())),
            Self::All(sessions) => Watch::All(sessions.store().watch()),
        }
    }

    /// The end of the feed, which its subscribers share.
    pub(super) async fn tail(&self) -> Result<Arc<FeedTail>, StoreError> {
        match self {
            Self::Session(open) => open.tail().await,
            Self::All(sessions) => sessions.tail().await,
        }
    }

    /// A reader that begins now, for the tail.
    pub(super) async fn reader_now(&self) -> Result<FeedReader, StoreError> {
        Ok(match self {
            Self::Session(open) => FeedReader::Session(SessionFeedReader::now(open.clone()).await?),
            Self::All(sessions) => FeedReader::All(GlobalFeedReader::now(sessions.clone()).await?),
        })
    }

    /// A reader for one subscriber, who is at a position. Without one, a session is read from its beginning once it exists.
    pub(super) fn reader_at(&self, position: Option<FeedPosition>) -> Option<FeedReader> {
        match (self, position) {
            (Self::All(sessions), Some(FeedPosition::All(position))) => {
                let (sessions, limit) = (sessions.clone(), FEED_COLD_RECORDS_PER_READ);
                Some(FeedReader::All(GlobalFeedReader::at(position, sessions, limit)))
            }
            (Self::Session(open), None) => {
                Some(FeedReader::Session(SessionFeedReader::at(open.clone(), None)))
            }
            (Self::Session(open), Some(FeedPosition::Session(cursor))) => {
                Some(FeedReader::Session(SessionFeedReader::at(open.clone(), Some(cursor))))
            }
            _ => None,
        }
    }

    /// A buffer for the newest items.
    pub(super) const fn ring(&self) -> Ring<ReadItem> {
        match self {
            Self::Session(_) => Ring::new(SESSION_RING_EVENTS_MAX, SESSION_RING_BYTES_MAX),
            Self::All(_) => Ring::new(GLOBAL_RING_EVENTS_MAX, GLOBAL_RING_BYTES_MAX),
        }
    }

    /// How long the tail pauses after a round that found so many items.
    pub(super) fn pause_after(&self, found: usize) -> Duration {
        let items = u32::try_from(found).unwrap_or(u32::MAX);
        match self {
            Self::Session(_) => Duration::ZERO,
            Self::All(_) => GLOBAL_PAUSE_PER_EVENT.saturating_mul(items).min(GLOBAL_PAUSE_MAX),
        }
    }

    /// Whether it is of a session that exists, but not for the caller.
    pub(super) async fn is_hidden_from(&self, scope: &Scope) -> Result<bool, StoreError> {
        let Self::Session(open) = self else { return Ok(false) };
        let state = open.store().state(open.id()).await?;
        Ok(state.is_some_and(|snapshot| !is_visible(scope, &snapshot.state)))
    }
}

impl FeedReader {
    /// Where it is; `None` while there is no such session.
    pub(super) fn position(&self) -> Option<FeedPosition> {
        match self {
            Self::Session(reader) => reader.cursor().map(FeedPosition::Session),
            Self::All(reader) => Some(FeedPosition::All(reader.position().clone())),
        }
    }

    /// Reads on. What the store has announced of a session, up to `announced`, is durable.
    pub(super) async fn read(
        &mut self,
        announced: Option<SessionCursor>,
    ) -> Result<ReadPage, StoreError> {
        match self {
            Self::Session(reader) => reader.read(announced).await,
            Self::All(reader) => reader.read().await,
        }
    }

    /// Forgets the messages that it keeps of a session, for a subscriber that may not come back for long.
    pub(super) fn forget_messages(&mut self) {
        if let Self::Session(reader) = self {
            reader.forget_messages();
        }
    }
}

impl Watch {
    /// Waits until something happened since the last call.
    pub(super) async fn changed(&mut self) -> Wake {
        let wake = match self {
            Self::Session(watch) => watch.changed().await,
            Self::All(watch) => {
                let is_there = watch.changed().await;
                is_there.then(|| Wake { end: None, count: watch.newest() })
            }
        };
        match wake {
            Some(wake) => wake,
            // The store is gone; so is whatever could happen.
            None => std::future::pending().await,
        }
    }

    /// Counts what happened so far, where that is known without waiting.
    pub(super) fn newest(&self) -> u64 {
        match self {
            Self::Session(_) => 0,
            Self::All(watch) => watch.newest(),
        }
    }
}

impl ReadItem {
    pub(super) fn event(event: FeedEvent, position: FeedPosition) -> Self {
        Self { event: Ok(Arc::new(event)), position }
    }

    /// Roughly how many bytes it takes.
    pub(super) fn weight(&self) -> usize {
        self.event.as_ref().map_or(1, |event| event.weight())
    }
}
