//! Disks that stand before another disk: they count, lag, lie, or forget.

mod counting;
mod lie;
mod lossy;
mod pass_on;
mod slow;

pub use counting::{CountingDisk, Counts};
pub use lie::{Lie, LieDisk};
pub use lossy::LossyDisk;
pub use slow::{SlowSync, SyncDelay};
