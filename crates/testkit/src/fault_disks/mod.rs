//! Disks that stand before another disk: they count, lag, lie, forget, or let others do something first.

mod counting;
mod lie;
mod lossy;
mod meanwhile;
mod pass_on;
mod slow;

pub use counting::{CountingDisk, Counts};
pub use lie::{Lie, LieDisk};
pub use lossy::LossyDisk;
pub use meanwhile::MeanwhileDisk;
pub use slow::{SlowSync, SyncDelay};
