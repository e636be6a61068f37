//! What goes in and what comes out of each function: plain data, one file a subject.
//!
//! These types are the wire format. Their JSON Schemas are generated from them, and a test compares
//! those with the published API of session-manager 1.0.0.

mod branching;
mod compaction;
mod config;
mod documents;
mod entries;
mod feed;
mod lifecycle;
mod messages;
mod raw;
mod recording;
mod search;
mod stats;
mod store_protocol;
mod streaming;
mod trash;
mod views;

use serde::{Deserialize, Deserializer};

pub use bough_session::JsonMap;

pub use branching::*;
pub use compaction::*;
pub use config::*;
pub use documents::*;
pub use entries::*;
pub use feed::*;
pub use lifecycle::*;
pub use messages::*;
pub use raw::*;
pub use recording::*;
pub use search::*;
pub use stats::*;
pub use store_protocol::*;
pub use streaming::*;
pub use trash::*;
pub use views::*;

/// Reads a member that may be `null`, which is not the same as one that is not there.
fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
