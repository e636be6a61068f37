use std::io;
use std::sync::{Mutex, PoisonError};

use bough_platform::Entropy;

use crate::Seeded;

/// Entropy that is the same in every run with the same seed.
#[derive(Debug)]
pub struct SimEntropy {
    seeded: Mutex<Seeded>,
}

impl SimEntropy {
    /// Starts from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seeded: Mutex::new(Seeded::new(seed)) }
    }
}

impl Entropy for SimEntropy {
    fn fill(&self, out: &mut [u8]) -> io::Result<()> {
        self.seeded.lock().unwrap_or_else(PoisonError::into_inner).fill(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_draws_differ_and_the_run_repeats() {
        let run = || {
            let entropy = SimEntropy::new(3);
            let mut bytes = [[0; 16]; 2];
            for out in &mut bytes {
                entropy.fill(out).unwrap();
            }
            bytes
        };
        assert_ne!(run()[0], run()[1]);
        assert_eq!(run(), run());
    }
}
