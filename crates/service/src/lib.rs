//! The rules of sessions, on any store, with a live feed.
//!
//! A [`Service`] stands over a [`Store`](bough_store::Store). Each function is declared once, in the function table
//! ([`functions`]): from its row come the typed method, the dispatch by name, the JSON Schemas and the HTTP route. Writes of one
//! session are decided one after the other and wait for the disk together; the feed delivers them once they are
//! durable, from any position on.
//!
//! Invariants:
//! - It knows no HTTP and no bus: routes and event names are data here, for others to serve.
//! - It opens no file and reads no clock but the one that it is given.
//! - No call is answered and no event is delivered before the write is durable.
//! - Every call carries a [`Scope`]; a session outside the scope does not exist for the caller.
//! - Nothing is queued per subscriber, and every collection has a bound in [`limits`].
//! - The events of a binding are delivered at least once: its position is kept over disconnects and restarts.

pub mod api;
pub mod compaction;
pub mod limits;

mod answer;
mod bindings;
mod cursor;
mod error;
mod exact_numbers;
mod feed;
mod function;
mod lock;
mod open_session;
mod open_streams;
mod recent_map;
mod recording;
mod reload;
mod request;
mod ring;
mod rules;
mod runtime;
mod scope;
mod search;
mod service;
mod settings;
mod table;
mod terms;
mod used_keys;
mod writing;

pub use answer::{Answer, Precondition, Repeat, Tag, TagKind};
pub use bindings::{
    BindingId, BindingRequest, BindingSpec, Bindings, Called, EventSink, Registered, TriggerType,
    WORKER_DESCRIPTION, WORKER_NAME, WORKER_VERSION,
};
pub use bough_session::{percent_decode, percent_encode};
pub use bough_store::{ListOrder, Position};
pub use error::ServiceError;
pub use feed::{
    ArchivedEvent, CallName, ChangeKind, CreatedEvent, DeletedEvent, Delivery, EventFacts,
    EventFilter, EventKind, EventPayload, FeedCursor, FeedEvent, FeedItem, FilterError, GapReason,
    GlobalCursor, LabelChangedEvent, LeafMovedEvent, LoopChangedEvent, MessageAddedEvent,
    MessageChange, MessageRemovedEvent, MessageUpdatedEvent, MetaUpdatedEvent, SessionCursor,
    SessionSnapshot, StartAt, StatusChangedEvent, Subscription, TaskChangedEvent, TextDelta,
    UnknownEventKind,
};
pub use function::{Function, Method, Route};
pub use open_streams::HeldStream;
pub use recording::{RecordingClaim, RecordingSink};
pub use reload::{Reload, ReloadError};
pub use request::Request;
pub use rules::meta::SessionVersion;
pub use scope::{Right, Scope};
pub use service::Service;
pub use settings::Settings;
pub use table::{function, functions, schema_of};
pub use terms::CallTerms;
