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
//! let texts: Vec<String> = session.messages().await?.iter().map(|said| said.text()).collect();
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
//! let session = again.session("chat-42").await?.expect("it is there");
//! assert_eq!(session.messages().await?.len(), 1);
//! # again.close().await?;
//! # Ok(())
//! # }
//! ```
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
mod messages;
mod recorder;
mod session;
mod subscription;

pub mod recording;

pub use bough::Bough;
pub use documents::Documents;
pub use error::Error;
pub use messages::{assistant, user};
pub use recorder::Recorder;
pub use session::{ForkOptions, PathMessage, Session};
pub use subscription::Subscription;

pub use bough_platform::Platform;
pub use bough_search::SearchError;
pub use bough_service::api;
pub use bough_service::{
    Delivery, EventFilter, EventKind, EventPayload, FeedCursor, FeedEvent, FeedItem, GapReason,
    Right, Scope, Service, ServiceError, StartAt,
};
pub use bough_session::{
    AgentMessage, AssistantMessage, ContentBlock, CustomPayload, EntryId, JsonMap, Role, SessionId,
    SessionMeta, SessionStatus, StopReason, Usage, UserMessage,
};
pub use bough_store::{FsStore, MemoryStore, NativeOptions, NativeStore, Store, StoreError};

/// The examples of the documents for users, which run as tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/start/rust.md")]
    struct Start;

    #[doc = include_str!("../../../docs/guides/from-phi.md")]
    struct FromPhi;
}
