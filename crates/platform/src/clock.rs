use std::fmt::Debug;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time, for showing and for waiting. Never for order: order comes from sequence numbers.
pub trait Clock: Send + Sync + Debug {
    /// Wall time in milliseconds since the epoch. It may jump either way.
    fn now_ms(&self) -> i64;
    /// Time since some fixed moment of this process; never goes back.
    fn monotonic(&self) -> Duration;
    /// Waits.
    fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Starts counting monotonic time now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "only this crate may")]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "only this crate may")]
    fn now_ms(&self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "only this crate may")]
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
