//! Moments as the event streams and session files write them: RFC 3339, in UTC, to the nanosecond.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bough_platform::{Clock as _, SystemClock};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// A moment in UTC. Other offsets are accepted on reading; a moment is always written with `Z` and with none, three,
/// six or nine digits of a second, whichever are needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(jiff::Timestamp);

/// Text that is not a moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time; write it like 2026-01-31T12:00:00Z")]
pub struct TimestampError(String);

impl Timestamp {
    /// A moment from milliseconds since the epoch, moved to the nearest one that can be written.
    #[must_use]
    pub fn from_unix_ms(ms: i64) -> Self {
        let nearest = if ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(ms).unwrap_or(nearest))
    }

    /// The present moment, to the millisecond, for programs that make events. A recorder itself reads no clock.
    #[must_use]
    pub fn now() -> Self {
        Self::from_unix_ms(SystemClock::new().now_ms())
    }

    /// Milliseconds since the epoch, rounded down.
    #[must_use]
    pub fn unix_ms(self) -> i64 {
        i64::try_from(self.0.as_nanosecond().div_euclid(1_000_000)).unwrap_or(i64::MAX)
    }

    /// The time since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.duration_since(earlier.0).try_into().unwrap_or(Duration::ZERO)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        text.parse().map(Self).map_err(|_| TimestampError(text.to_owned()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0.subsec_nanosecond() {
            0 => 0,
            nanos if nanos % 1_000_000 == 0 => 3,
            nanos if nanos % 1_000 == 0 => 6,
            _ => 9,
        };
        write!(f, "{:.digits$}", self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time like 2026-01-31T12:00:00Z")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Timestamp, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_written_as_short_as_they_can_be() {
        let check = |text: &str, written: &str| {
            let moment: Timestamp = text.parse().unwrap();
            assert_eq!(moment.to_string(), written, "{text}");
            assert_eq!(serde_json::to_string(&moment).unwrap(), format!("{written:?}"));
        };
        check("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z");
        check("2026-11-15T07:26:21.875635331Z", "2026-11-15T07:26:21.875635331Z");
        check("2026-11-15T07:26:21.870Z", "2026-11-15T07:26:21.870Z");
        check("2026-11-15 07:26:21.870100z", "2026-11-15T07:26:21.870100Z");
        check("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z");
        check("2024-02-29T23:59:60Z", "2024-02-29T23:59:59Z");
        check("1969-12-31T23:59:59.5-0000", "1969-12-31T23:59:59.500Z");
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for text in [
            "",
            "2026-01-01",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1",
            "2026-01-01T00:00:0éZ",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn time_does_not_run_backwards() {
        let early: Timestamp = "2026-01-01T00:00:00.9Z".parse().unwrap();
        let late: Timestamp = "2026-01-01T00:00:02.1Z".parse().unwrap();
        assert_eq!(late.since(early), Duration::from_millis(1200));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn every_moment_survives_its_text(seconds in -62_135_596_800_i64..253_402_207_200, nanos in 0..1_000_000_000_i32) {
            let moment = Timestamp(jiff::Timestamp::new(seconds, nanos).unwrap());
            prop_assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
            prop_assert_eq!(moment.unix_ms().div_euclid(1000), seconds);
            prop_assert_eq!(Timestamp::from_unix_ms(moment.unix_ms()).unix_ms(), moment.unix_ms());
        }
    }
}
