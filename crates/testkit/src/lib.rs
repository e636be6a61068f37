//! Simulated disk, clock and entropy, disks with faults, counts or delays, and crash images: for tests only.
//!
//! Invariants:
//! - Knows the traits of `platform` and nothing of sessions, records or HTTP; only the crash harness and the
//!   redaction know the log.
//! - All randomness comes from a seed, so a failure can be repeated.
//! - A simulation is never kinder than a disk may be: unsynced data may be lost, torn or reordered; synced data is
//!   there.
//! - Never a dependency of the product, only of its tests and measurements.

mod clock;
#[cfg(feature = "crash")]
pub mod crash;
mod entropy;
mod fault_disks;
mod limits;
#[cfg(feature = "redaction")]
mod redaction;
mod seeded;
mod sim;

pub use clock::SimClock;
pub use entropy::SimEntropy;
pub use fault_disks::{
    BrokenPromise, CountingDisk, Counts, FaultyDisk, LossyDisk, MeanwhileDisk, SlowSync, SyncDelay,
};
pub use limits::*;
#[cfg(feature = "redaction")]
pub use redaction::{RedactedLength, redact_entry};
pub use seeded::Seeded;
pub use sim::{
    Call, CallCounts, Damage, Enumerated, Fault, FaultPlan, Fired, Image, ImageRules, Point,
    Recording, SimDisk, Step,
};
