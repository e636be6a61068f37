//! The session store for AI agents, as a library.
//!
//! A [`Bough`] is a store of sessions; a [`Session`] is one conversation in it: a tree of entries, with an active path, that survives
//! crashes, can be forked, and can be watched while it grows.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), boughdb::Error> {
//! use boughdb::{Bough, user};
//!
//! let bough = Bough::in_memory()?;
//! let session = bough.create("Weather question").await?;
//! let question = session.append(user("What's the weather?")).await?;
//! session.append(user("In Porto, I mean.")).await?;
//!
//! let texts: Vec<String> = session.messages().await?.iter().map(|message| message.text()).collect();
//! assert_eq!(texts, ["What's the weather?", "In Porto, I mean."]);
//!
//! // Another try from the question on, in a session of its own.
//! let fork = session.fork(&question).await?;
//! assert_eq!(fork.messages().await?.len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! On a disk, an append that was answered is durable:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), boughdb::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! use boughdb::{Bough, user};
//!
//! let bough = Bough::open(path).await?;
//! bough.ensure("chat-42").await?.append(user("Hello")).await?;
//! bough.close().await?;
//!
//! let again = Bough::open(path).await?;
//! let session = again.session("chat-42");
//! assert_eq!(session.messages().await?.len(), 1);
//! # again.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! The calls have the names and arguments of the Python and TypeScript clients; what is optional there is a struct of options here
//! ([`AppendOptions`], [`MessagesOptions`], ...) that a call ending in `_with` takes.
//!
//! | to | use |
//! |---|---|
//! | append in any provider's format, read in any other | [`Session::append_with`], [`Session::messages_with`], [`Format`] |
//! | append several entries at once, also documents | [`Session::append_many`], [`BatchEntry`] |
//! | write a reply while it is made | [`Session::stream`], [`Reply`] |
//! | read by id, custom type or prefix, newest first | [`Session::entries`] |
//! | change something only if it did not change meanwhile | [`Session::append_after`], [`Session::update`], [`Session::switch_if`], [`Session::set_meta`] |
//! | branch, fork, hide | [`Session::append_to`], [`Session::fork_with`], [`Session::hide`] |
//! | put a summary in the place of older messages | [`Session::plan_compaction`], [`Session::compact`], [`Session::undo_compaction`] |
//! | search all sessions | [`Bough::search`] |
//!
//! An agent's events become sessions, too: see [`Recorder`] and [`recording`].
//!
//! Everything here is a thin layer over the service, which has more: [`Bough::service`] gives it, with every function
//! of the API as a typed method and by name.
//!
//! Invariants:
//! - It adds no rule of its own: what a call means is decided by the service.
//! - It knows no HTTP, no bus and no file formats.

mod bough;
mod documents;
mod error;
mod message_input;
mod messages;
mod options;
mod recorder;
mod reply;
mod session;
mod subscription;

pub mod recording;

pub use bough::Bough;
pub use documents::Documents;
pub use error::Error;
pub use message_input::MessageInput;
pub use messages::{assistant, function_result, user};
pub use options::{
    AppendOptions, BatchEntry, BatchOptions, CompactOptions, ContextOptions, EntriesOptions,
    ForkOptions, MessagesOptions, PlanCompactionOptions,
};
pub use recorder::Recorder;
pub use reply::{FinishOptions, Reply, StreamOptions};
pub use session::{PathMessage, Session};
pub use subscription::Subscription;

pub use bough_platform::Platform;
pub use bough_search::SearchError;
/// What goes in and what comes out of each function of the service, for [`Bough::service`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), boughdb::Error> {
/// use boughdb::api::{CompareRequest, StatsRequest};
/// use boughdb::{Bough, Scope, user};
///
/// let bough = Bough::in_memory()?;
/// let session = bough.create("Weather").await?;
/// let question = session.append(user("Will it rain?")).await?;
/// let today = session.append(user("Today?")).await?;
/// let tomorrow = session.append_to(&question, user("Tomorrow?")).await?;
///
/// let (service, scope) = (bough.service(), Scope::owner());
/// let session_id = session.id().clone();
/// let request = CompareRequest { session_id, left: today, right: tomorrow, limit: None };
/// let compared = service.compare(&scope, request).await?;
/// assert_eq!(compared.common_entry_id, Some(question));
/// assert_eq!(service.stats(&scope, StatsRequest::default()).await?.sessions, 1);
/// # Ok(())
/// # }
/// ```
pub use bough_service::api;
pub use bough_service::api::{AppendedEntry, EntryItem, EntryOrder, MetaPatch};
pub use bough_service::{
    Delivery, EventFilter, EventKind, EventPayload, FeedCursor, FeedEvent, FeedItem, GapReason,
    Right, Scope, Service, ServiceError, StartAt,
};
pub use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, CustomPayload, EntryId, Format,
    FunctionCallBlock, FunctionResultMessage, JsonMap, RawJson, Role, SessionId, SessionMeta,
    SessionStatus, StopReason, Usage, UserMessage,
};
pub use bough_store::{FsStore, MemoryStore, NativeOptions, NativeStore, Store, StoreError};

/// The examples of the documents for users, which run as tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/start/rust.md")]
    struct Start;

    #[doc = include_str!("../../../docs/guides/from-phi.md")]
    struct FromPhi;
}
