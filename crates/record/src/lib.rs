//! The shape of a record, and the types that say where it is: head, position, incarnation, path.
//!
//! The log, the stores, the bridge between two instances and the feed all work with records, heads and positions. This
//! crate defines these types once, so a record passes from one to the other without being converted.
//!
//! Invariants:
//! - It knows no disk, no network, no clock, no async, and not what a payload means.
//! - A type here has one textual form, and that form is used in files and on the wire.

pub mod kind;

mod borrowed_text;
mod envelope;
mod fold;
mod head;
mod hex;
mod incarnation;
mod path;
mod position;

pub use borrowed_text::BorrowedText;
pub use envelope::{Envelope, StoredEnvelope};
pub use fold::Fold;
pub use head::{ChainHash, Head, payload_digest};
pub use hex::{hex, unhex};
pub use incarnation::{Incarnation, IncarnationError};
pub use path::PathStart;
pub use position::Position;
