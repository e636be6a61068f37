//! Times as pi writes them: ISO 8601 with milliseconds and `Z`.

const DAY_MS: i64 = 86_400_000;

/// `2024-12-03T14:00:00.000Z`.
#[must_use]
pub fn format_iso(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil_of_days(days);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Milliseconds since the epoch of an ISO 8601 time with a zone; `None` when it is not one. Fractions are
/// cut to milliseconds.
#[must_use]
pub fn parse_iso(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let (time, offset_minutes) = split_zone(time)?;
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, month, day) = (digits(year, 4)?, digits(month, 2)?, digits(day, 2)?);
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let (second, milli) = seconds(parts.next().unwrap_or("00"))?;
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 61;
    in_range.then(|| {
        let minutes = (days_of_civil(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
        (minutes * 60 + second) * 1_000 + milli
    })
}

fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(utc) = time.strip_suffix(['Z', 'z']) {
        return Some((utc, 0));
    }
    let at = time.rfind(['+', '-'])?;
    let (time, zone) = time.split_at_checked(at)?;
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let zone: String = zone.chars().filter(char::is_ascii_digit).collect();
    let (hours, minutes) = (digits(zone.get(..2)?, 2)?, digits(zone.get(2..)?, 2)?);
    Some((time, sign * (hours * 60 + minutes)))
}

fn seconds(text: &str) -> Option<(i64, i64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let plain = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let milli: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((digits(whole, 2)?, milli.parse().ok().filter(|_| plain)?))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let plain = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar, by eras of 400 years that begin on 1 March.
fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_pi_writes_are_read() {
        let check = |text: &str, ms: i64| assert_eq!(parse_iso(text), Some(ms), "{text}");
        check("1970-01-01T00:00:00.000Z", 0);
        check("2024-12-03T14:00:00.000Z", 1_733_234_400_000);
        check("2024-12-03T14:00:00Z", 1_733_234_400_000);
        check("2024-12-03T16:00:00.0009+02:00", 1_733_234_400_000);
        check("2000-02-29T23:59:59.999Z", 951_868_799_999);
        check("1969-12-31T23:59:59.999Z", -1);
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        for text in [
            "",
            "now",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-12-03",
            "2024-12-03T14:00:00",
            "2024-12-03T14:00:00.Z",
            "2024-12-03T24:00:00Z",
            "+024-12-03T14:00:00Z",
        ] {
            assert_eq!(parse_iso(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_time_survives_its_text(ms in -62_135_596_800_000_i64..253_402_300_800_000) {
            proptest::prop_assert_eq!(parse_iso(&format_iso(ms)), Some(ms));
        }
    }
}
