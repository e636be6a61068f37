//! The feed: what happened, told in order, after it is durable, from any place on.
//!
//! A subscriber is a cursor and a wake-up. When it is woken it reads: from a ring of the newest events that all
//! subscribers of a session share, or, when it is further behind, from the log. Nothing waits for a subscriber and nothing
//! is queued for one, so a thousand stalled ones cost their cursors.

mod all;
mod all_reader;
mod all_source;
mod as_of;
mod cursor;
mod event;
mod events;
mod filter;
mod hub;
mod lens;
mod replay;
mod ring;
mod session;
mod session_source;
mod short_read;
mod snapshot;
mod subscription;
mod told;

pub use cursor::{AllCursor, FeedCursor, SessionCursor};
pub use event::{EventPayload, FeedEvent};
pub use events::{
    ArchivedEvent, CreatedEvent, DeletedEvent, LabelChangedEvent, LeafMovedEvent, LoopChangedEvent,
    MessageAddedEvent, MessageUpdatedEvent, MetaUpdatedEvent, StatusChangedEvent, TaskChangedEvent,
};
pub use filter::{EventFacts, EventFilter, EventKind, FilterError, UnknownEventKind};
pub use snapshot::SessionSnapshot;
pub use subscription::{Delivery, FeedItem, GapReason, StartAt, Subscription};

pub(crate) use hub::FeedHub;
