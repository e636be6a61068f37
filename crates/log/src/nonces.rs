//! The random part of a frame's header, which keeps a payload from being guessed by its digest.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bough_platform::Entropy;

use crate::error::Result;

/// Random nonces, drawn from the system many at a time.
#[derive(Default)]
pub(crate) struct Nonces {
    pool: Vec<u8>,
}

/// A nonce as a frame has it: 16 bytes in base64.
pub(crate) struct Nonce([u8; Nonces::TEXT_BYTES]);

impl Nonces {
    const POOL_BYTES: usize = 4096;
    const NONCE_BYTES: usize = 16;
    const TEXT_BYTES: usize = 22;

    /// Makes sure that there are as many as will be taken.
    pub(crate) fn draw(&mut self, count: usize, entropy: &dyn Entropy) -> Result<()> {
        let wanted = count.saturating_mul(Self::NONCE_BYTES);
        if self.pool.len() < wanted {
            self.pool.resize(wanted.max(Self::POOL_BYTES), 0);
            // What could not be filled is not random.
            if let Err(error) = entropy.fill(&mut self.pool) {
                self.pool.clear();
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// One of those that were drawn.
    pub(crate) fn take(&mut self) -> Nonce {
        let rest = self.pool.len().saturating_sub(Self::NONCE_BYTES);
        let mut text = [b'A'; Self::TEXT_BYTES];
        let drawn = self.pool.get(rest..).unwrap_or_default();
        debug_assert_eq!(drawn.len(), Self::NONCE_BYTES, "nonces are drawn before they are taken");
        // 16 bytes are 22 characters, so they fit.
        drop(URL_SAFE_NO_PAD.encode_slice(drawn, &mut text));
        self.pool.truncate(rest);
        Nonce(text)
    }
}

impl Nonce {
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Debug, Default)]
    struct FlakyEntropy {
        fails: AtomicBool,
    }

    impl Entropy for FlakyEntropy {
        fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
            if self.fails.load(Ordering::Relaxed) {
                return Err(io::Error::other("no randomness"));
            }
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = u8::try_from(at % 251).unwrap() + 1;
            }
            Ok(())
        }
    }

    #[test]
    fn nonces_differ_and_are_as_many_as_were_drawn() {
        let (mut nonces, entropy) = (Nonces::default(), FlakyEntropy::default());
        nonces.draw(1000, &entropy).unwrap();
        let taken: Vec<String> = (0..1000).map(|_| nonces.take().as_str().to_owned()).collect();
        assert!(taken.iter().all(|text| text.len() == 22 && text != &"A".repeat(22)));
        assert_ne!(taken[0], taken[1]);
    }

    #[test]
    fn what_could_not_be_drawn_is_not_taken_for_random_later() {
        let (mut nonces, entropy) = (Nonces::default(), FlakyEntropy::default());
        entropy.fails.store(true, Ordering::Relaxed);
        nonces.draw(1, &entropy).unwrap_err();
        entropy.fails.store(false, Ordering::Relaxed);
        nonces.draw(1, &entropy).unwrap();
        assert_ne!(nonces.take().as_str(), "A".repeat(22));
    }
}
