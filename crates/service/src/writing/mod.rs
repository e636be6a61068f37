//! Writing: one writer a session at a time decides, many wait for one disk write together.
//!
//! A [`Change`] looks at a session through a [`Bench`] and says what to write. Deciding and handing the batch to the
//! store happen under the session's lock; waiting for the disk does not. So the next writer decides on top of what was
//! accepted and is not yet durable, and nobody is answered before it is.

mod bench;
mod building;
mod change;
mod desk;
mod lives;
mod streams;
mod to_the_end;

pub(crate) use bench::Bench;
pub(crate) use building::Building;
pub(crate) use change::{Change, Plan, create, run};
pub(crate) use desk::Desks;
pub(crate) use lives::{delete, undelete};
pub(crate) use streams::{Stream, text_bytes};
