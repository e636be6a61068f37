//! Dates as they are typed.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// When a date begins, milliseconds since the epoch. A date has the time zone UTC unless it names another.
///
/// `2026`, `2026-10`, `2026-10-01`, `2026-10-01T12:30`, `2026-10-01T12:30:00Z`, `today`, `yesterday`, `3d`, `2w`, `12h`.
pub fn begin_of_date(text: &str, now_ms: i64) -> Option<i64> {
    let now = Timestamp::from_millisecond(now_ms).ok()?;
    let today = TimeZone::UTC.to_datetime(now).date();
    match text {
        "today" => return begin(today.at(0, 0, 0, 0)),
        "yesterday" => return begin(today.yesterday().ok()?.at(0, 0, 0, 0)),
        _ => {}
    }
    if let Some(ago) = ago(text) {
        return Some(now_ms.saturating_sub(ago));
    }
    if let Ok(exact) = text.parse::<Timestamp>() {
        return Some(exact.as_millisecond());
    }
    if let Some((_, time)) = text.split_once('T')
        && time.len() >= "12:30".len()
    {
        return begin(text.parse::<DateTime>().ok()?);
    }
    let mut numbers = text.split('-');
    let year = digits(numbers.next()?, 4)?;
    let month = numbers.next().map_or(Some(1), |part| digits(part, 2))?;
    let day = numbers.next().map_or(Some(1), |part| digits(part, 2))?;
    if numbers.next().is_some() {
        return None;
    }
    let (month, day) = (i8::try_from(month).ok()?, i8::try_from(day).ok()?);
    begin(Date::new(year, month, day).ok()?.at(0, 0, 0, 0))
}

fn digits(text: &str, length: usize) -> Option<i16> {
    let is_number = text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn begin(at: DateTime) -> Option<i64> {
    Some(TimeZone::UTC.to_timestamp(at).ok()?.as_millisecond())
}

/// Milliseconds of `3d`, `2w`, `12h`.
fn ago(text: &str) -> Option<i64> {
    const HOUR_MS: i64 = 60 * 60 * 1000;
    let unit = match text.chars().last()? {
        'h' => HOUR_MS,
        'd' => 24 * HOUR_MS,
        'w' => 7 * 24 * HOUR_MS,
        _ => return None,
    };
    let count: i64 = text.get(..text.len() - 1)?.parse().ok()?;
    count.checked_mul(unit).filter(|ago| *ago > 0)
}

/// The month of a time, as the number 202610.
pub(crate) fn month_of(at_ms: i64) -> Option<i64> {
    let at = TimeZone::UTC.to_datetime(Timestamp::from_millisecond(at_ms).ok()?);
    Some(i64::from(at.year()) * 100 + i64::from(at.month()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16T12:00:00Z.
    const NOW: i64 = 1_794_830_400_000;

    #[test]
    fn dates_begin_at_their_first_moment() {
        let day = 24 * 60 * 60 * 1000;
        let midnight = NOW - day / 2;
        for (text, at) in [
            ("today", midnight),
            ("yesterday", midnight - day),
            ("2026-11-16", midnight),
            ("2026-11", midnight - 15 * day),
            ("2026-11-16T12:00", NOW),
            ("2026-11-16T12:00:00Z", NOW),
            ("2026-11-16T13:00:00+01:00", NOW),
            ("3d", NOW - 3 * day),
            ("1w", NOW - 7 * day),
            ("12h", NOW - day / 2),
        ] {
            assert_eq!(begin_of_date(text, NOW), Some(at), "{text}");
        }
        for text in ["", "26-11-16", "2026-13", "2026-11-16-1", "soon", "d", "-3d", "2026-11-1"] {
            assert_eq!(begin_of_date(text, NOW), None, "{text}");
        }
    }

    #[test]
    fn a_time_is_of_a_month() {
        assert_eq!(month_of(NOW), Some(202_611));
        assert_eq!(month_of(i64::MAX), None);
    }
}
