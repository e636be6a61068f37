//! Disk, clock and entropy: the only crate that accesses them.
//!
//! Invariants:
//! - Nothing else in the workspace opens a file, reads a clock or draws randomness; clippy refuses it.
//! - A [`RelPath`] cannot leave the directory that a [`Disk`] is rooted at.
//! - Every trait here is small enough to be replaced whole by a simulation.

mod clock;
mod disk;
mod entropy;
mod host;
mod named;
mod os;
mod path;
#[cfg(target_os = "linux")]
mod writers;

pub use clock::{Clock, SystemClock};
pub use disk::{
    Access, Disk, File, FileId, Listed, Lock, LockError, Stat, if_there, takes_no_writing,
};
pub use entropy::{Entropy, OsEntropy};
pub use host::{HostFacts, host_facts};
pub use named::{Named, NamedKind, follow};
pub use os::{OsDisk, user_data_dir};
pub use path::{PathError, RelPath};

use std::sync::Arc;

/// Disk, clock and entropy together. Every crate that needs the machine takes one of these.
#[derive(Clone, Debug)]
pub struct Platform {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl Platform {
    /// The real machine, for reading what is in `root`. A missing `root` is not created.
    pub fn system_to_look(root: impl AsRef<std::path::Path>) -> std::io::Result<Self> {
        Ok(Self::with_disk(OsDisk::open_to_look(root)?))
    }

    /// The real machine, with the disk rooted at `root` (created if it is missing).
    pub fn system(root: impl AsRef<std::path::Path>) -> std::io::Result<Self> {
        Ok(Self::with_disk(OsDisk::create(root)?))
    }

    fn with_disk(disk: OsDisk) -> Self {
        Self {
            disk: Arc::new(disk),
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(OsEntropy),
        }
    }
}
