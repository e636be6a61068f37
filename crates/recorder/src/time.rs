//! Moments as the event streams and session files write them: RFC 3339, in UTC, to the nanosecond.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bough_platform::{Clock as _, SystemClock};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

const SECONDS_PER_DAY: i64 = 86_400;

/// A moment in UTC. Other offsets are understood when read; a moment is always written with `Z` and with
/// none, three, six or nine digits of a second, whichever are needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
}

/// Text that is not a moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time; write it like 2026-01-31T12:00:00Z")]
pub struct TimestampError(String);

impl Timestamp {
    /// A moment from milliseconds since the epoch.
    #[must_use]
    pub fn from_unix_ms(ms: i64) -> Self {
        let nanos = u32::try_from(ms.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
        Self { seconds: ms.div_euclid(1000), nanos }
    }

    /// The present moment, to the millisecond, for whoever makes events. A recorder itself reads no clock.
    #[must_use]
    pub fn now() -> Self {
        Self::from_unix_ms(SystemClock::new().now_ms())
    }

    /// Milliseconds since the epoch, rounded down.
    #[must_use]
    pub fn unix_ms(self) -> i64 {
        self.seconds.saturating_mul(1000).saturating_add(i64::from(self.nanos / 1_000_000))
    }

    /// The time since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        if self <= earlier {
            return Duration::ZERO;
        }
        let seconds = self.seconds.saturating_sub(earlier.seconds);
        let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        (whole + Duration::from_nanos(u64::from(self.nanos)))
            .saturating_sub(Duration::from_nanos(u64::from(earlier.nanos)))
    }

    fn from_parts(day: i64, second_of_day: i64, nanos: u32) -> Self {
        Self { seconds: day * SECONDS_PER_DAY + second_of_day, nanos }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text.as_bytes()).ok_or_else(|| TimestampError(text.to_owned()))
    }
}

fn parse(text: &[u8]) -> Option<Timestamp> {
    let (date, rest) = text.split_at_checked(10)?;
    let (separator, rest) = rest.split_first()?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let punctuation = date.get(4) == Some(&b'-')
        && date.get(7) == Some(&b'-')
        && matches!(separator, b'T' | b't' | b' ')
        && clock.get(2) == Some(&b':')
        && clock.get(5) == Some(&b':');
    if !punctuation {
        return None;
    }
    let (year, month, day) = (number(date, 0, 4)?, number(date, 5, 2)?, number(date, 8, 2)?);
    let (hour, minute, second) = (number(clock, 0, 2)?, number(clock, 3, 2)?, number(clock, 6, 2)?);
    // A leap second is the last second of its minute plus one, which the next minute begins with.
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60;
    if !in_range {
        return None;
    }
    let (nanos, rest) = fraction(rest)?;
    let offset = offset_seconds(rest)?;
    let second_of_day = hour * 3600 + minute * 60 + second - offset;
    Some(Timestamp::from_parts(days_from_civil(year, month, day), second_of_day, nanos))
}

fn number(text: &[u8], at: usize, digits: usize) -> Option<i64> {
    text.get(at..at + digits)?.iter().try_fold(0_i64, |value, byte| {
        byte.is_ascii_digit().then(|| value * 10 + i64::from(byte - b'0'))
    })
}

/// Digits after the seconds; more than nine are cut off.
fn fraction(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some((b'.', digits)) = text.split_first() else {
        return Some((0, text));
    };
    let count = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return None;
    }
    let (digits, rest) = digits.split_at_checked(count)?;
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0'));
    let nanos = padded.take(9).fold(0_u32, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some((nanos, rest))
}

fn offset_seconds(text: &[u8]) -> Option<i64> {
    let (sign, clock) = match text.split_first()? {
        (b'Z' | b'z', []) => return Some(0),
        (b'+', clock) => (1, clock),
        (b'-', clock) => (-1, clock),
        _ => return None,
    };
    let (hours, minutes) = match clock {
        [_, _, b':', _, _] => (number(clock, 0, 2)?, number(clock, 3, 2)?),
        [_, _, _, _] => (number(clock, 0, 2)?, number(clock, 2, 2)?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        _ => 31,
    }
}

/// Days since the epoch, by Howard Hinnant's algorithm: years begin in March, so that the leap day is
/// the last of its year.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

impl Timestamp {
    /// The moment in text. Session files are full of these, so they are written digit by digit.
    fn text(self) -> String {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(SECONDS_PER_DAY));
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY);
        let mut text = String::with_capacity(30);
        push_digits(&mut text, year, 4);
        for (mark, value) in [('-', month), ('-', day), ('T', second / 3600)] {
            text.push(mark);
            push_digits(&mut text, value, 2);
        }
        for value in [second / 60 % 60, second % 60] {
            text.push(':');
            push_digits(&mut text, value, 2);
        }
        let (fraction, digits) = match self.nanos {
            0 => (0, 0),
            nanos if nanos.is_multiple_of(1_000_000) => (nanos / 1_000_000, 3),
            nanos if nanos.is_multiple_of(1_000) => (nanos / 1_000, 6),
            nanos => (nanos, 9),
        };
        if digits > 0 {
            text.push('.');
            push_digits(&mut text, i64::from(fraction), digits);
        }
        text.push('Z');
        text
    }
}

/// The last digits of a number, at least so many.
fn push_digits(text: &mut String, value: i64, digits: u32) {
    let mut place = 10_i64.pow(digits - 1);
    while value / place >= 10 {
        place *= 10;
    }
    while place > 0 {
        let digit = u8::try_from(value / place % 10).unwrap_or(0);
        text.push(char::from(b'0' + digit));
        place /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
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
        check("2024-02-29T23:59:60Z", "2024-03-01T00:00:00Z");
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
        fn every_moment_survives_its_text(seconds in -62_135_596_800_i64..253_402_300_799, nanos in 0..1_000_000_000_u32) {
            let moment = Timestamp { seconds, nanos };
            prop_assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment);
            prop_assert_eq!(Timestamp::from_unix_ms(moment.unix_ms()).seconds, seconds);
        }
    }
}
