//! Disks that wrap another disk: they count calls, delay syncs, break promises, lose unsynced writes, or let a test run
//! something before a call.

mod counting;
mod faulty;
mod lossy;
mod meanwhile;
mod pass_on;
mod slow;

pub use counting::{CountingDisk, Counts};
pub use faulty::{BrokenPromise, FaultyDisk};
pub use lossy::LossyDisk;
pub use meanwhile::MeanwhileDisk;
pub use slow::{SlowSync, SyncDelay};
