//! The feed: what happened, in order, after it is durable, from any position on.
//!
//! A subscriber is a cursor and a wake-up. When it is woken it reads: from a ring of the newest events that all
//! subscribers of a session share, or, when it is further behind, from the log. Nothing waits for a subscriber and nothing
//! is queued for one, so a thousand stalled ones cost their cursors.

mod cold_read;
mod cursor;
mod deletions;
mod event;
mod events;
mod filter;
mod global_reader;
mod global_source;
mod global_tail;
mod message_change;
mod point_in_time;
mod projector;
mod reader;
mod replay;
mod retry_read;
mod ring;
mod session_source;
mod session_tail;
mod snapshot;
mod subscription;

pub use cursor::{FeedCursor, GlobalCursor, SessionCursor};
pub use event::{EventPayload, FeedEvent};
pub use events::{
    ArchivedEvent, CreatedEvent, DeletedEvent, LabelChangedEvent, LeafMovedEvent, LoopChangedEvent,
    MessageAddedEvent, MessageRemovedEvent, MessageUpdatedEvent, MetaUpdatedEvent,
    StatusChangedEvent, TaskChangedEvent,
};
pub use filter::{EventFacts, EventFilter, EventKind, FilterError, UnknownEventKind};
pub use message_change::{CallName, ChangeKind, MessageChange, TextDelta};
pub use snapshot::SessionSnapshot;
pub use subscription::{Delivery, FeedItem, GapReason, StartAt, Subscription};

pub(crate) use deletions::Deletions;
pub(crate) use event::content_bytes;
pub(crate) use global_tail::GlobalFeedTail;
pub(crate) use session_tail::SessionTail;
