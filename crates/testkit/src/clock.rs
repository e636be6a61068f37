use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bough_platform::Clock;

/// A clock that stands still until a test moves it. Sleeping moves it on without waiting.
#[derive(Debug)]
pub struct SimClock {
    time: Mutex<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Time {
    wall_ms: i64,
    monotonic: Duration,
}

impl SimClock {
    /// A clock whose wall time is `wall_ms` and whose monotonic time is zero.
    #[must_use]
    pub const fn at(wall_ms: i64) -> Self {
        let monotonic = Duration::ZERO;
        Self { time: Mutex::new(Time { wall_ms, monotonic }) }
    }

    /// Moves both the wall and the monotonic clock on.
    pub fn advance(&self, by: Duration) {
        self.change(|time| {
            let ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
            time.wall_ms = time.wall_ms.saturating_add(ms);
            time.monotonic = time.monotonic.saturating_add(by);
        });
    }

    /// Sets the wall clock, back or forward; monotonic time does not change.
    pub fn jump_to(&self, wall_ms: i64) {
        self.change(|time| time.wall_ms = wall_ms);
    }

    /// Moves the wall clock by this many milliseconds; monotonic time does not change.
    pub fn jump_by(&self, ms: i64) {
        self.change(|time| time.wall_ms = time.wall_ms.saturating_add(ms));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Time) -> T) -> T {
        change(&mut self.time.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Default for SimClock {
    /// A morning in 2026.
    fn default() -> Self {
        Self::at(1_770_000_000_000)
    }
}

impl Clock for SimClock {
    fn now_ms(&self) -> i64 {
        self.change(|time| time.wall_ms)
    }

    fn monotonic(&self) -> Duration {
        self.change(|time| time.monotonic)
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_moves_both_clocks_and_jumping_only_the_wall() {
        let clock = SimClock::at(1_000);
        clock.sleep(Duration::from_millis(5));
        assert_eq!((clock.now_ms(), clock.monotonic().as_millis()), (1_005, 5));
        clock.jump_by(-3_600_000);
        assert_eq!(clock.now_ms(), 1_005 - 3_600_000);
        clock.jump_to(7);
        assert_eq!((clock.now_ms(), clock.monotonic().as_millis()), (7, 5));
    }
}
