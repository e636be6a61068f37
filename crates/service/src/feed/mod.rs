//! The feed: the events of sessions in order, once they are durable, from any position on.
//!
//! One machine serves the feed of one session and the feed of all sessions:
//!
//! - [`projector`] turns the records of a session into events.
//! - [`incarnation_reader`] reads the records of one incarnation of a session; [`session_reader`] and [`global_reader`] read a feed with it,
//!   page by page. [`reader`] chooses between the two.
//! - [`tail`] reads on at the end of a feed, once for all subscribers, and keeps the newest events in a ring.
//! - [`subscriber`] reads from the tail where it reaches, and from the store where the subscriber is further behind.
//! - [`subscription`] is what a caller holds: it adds filters, snapshots and stores that take the place of others.
//!
//! A subscriber is a cursor and a wake-up. Nothing waits for a subscriber and nothing is queued for one, so a thousand stalled
//! ones cost their cursors.

mod cursor;
mod deletions;
mod event;
mod event_table;
mod events;
mod filter;
mod global_reader;
mod incarnation_reader;
mod message_change;
mod point_in_time;
mod projector;
mod reader;
mod replay;
mod replayed_entries;
mod retry_read;
mod session_reader;
mod snapshot;
mod subscriber;
mod subscription;
mod tail;

pub use cursor::{FeedCursor, GlobalCursor, SessionCursor};
pub use event::FeedEvent;
pub use event_table::{EventKind, EventPayload, UnknownEventKind};
pub use events::{
    ArchivedEvent, CreatedEvent, DeletedEvent, LabelChangedEvent, LeafMovedEvent, LoopChangedEvent,
    MessageAddedEvent, MessageRemovedEvent, MessageUpdatedEvent, MetaUpdatedEvent,
    StatusChangedEvent, TaskChangedEvent,
};
pub use filter::{EventFacts, EventFilter, FilterError};
pub use message_change::{CallName, ChangeKind, MessageChange, TextDelta};
pub use snapshot::SessionSnapshot;
pub use subscription::{Delivery, FeedItem, GapReason, StartAt, Subscription};

pub(crate) use deletions::Deletions;
pub(crate) use event::content_bytes;
pub(crate) use reader::Feed;
pub(crate) use tail::{FeedTail, SharedTail};
