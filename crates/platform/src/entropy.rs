use std::fmt::Debug;
use std::io;

/// Unpredictable bytes.
pub trait Entropy: Send + Sync + Debug {
    /// Fills `out`.
    fn fill(&self, out: &mut [u8]) -> io::Result<()>;
}

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, out: &mut [u8]) -> io::Result<()> {
        getrandom::fill(out).map_err(|error| io::Error::other(error.to_string()))
    }
}
