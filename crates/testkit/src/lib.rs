//! Simulated disk, clock and entropy, disks with faults, counts or delays, and crash images: for tests only.
//!
//! Invariants:
//! - Knows the traits of `platform` and nothing of sessions, records or HTTP; only the crash harness
//!   knows the log.
//! - Everything that is drawn is drawn from a seed, so that a failure can be repeated.
//! - A simulation is never kinder than a disk may be: what was not synced may be lost, torn or
//!   reordered; what was synced is there.
//! - Never a dependency of the product, only of its tests and measurements.

mod clock;
#[cfg(feature = "crash")]
pub mod crash;
mod entropy;
mod fault_disks;
mod limits;
mod seeded;
mod sim;

pub use clock::SimClock;
pub use entropy::SimEntropy;
pub use fault_disks::{
    BrokenPromise, CountingDisk, Counts, FaultyDisk, LossyDisk, MeanwhileDisk, SlowSync, SyncDelay,
};
pub use limits::*;
pub use seeded::Seeded;
pub use sim::{
    Call, CallCounts, Damage, Enumerated, Fault, FaultPlan, Fired, Image, ImageRules, Point,
    Recording, SimDisk, Step,
};
