/// How long ago something was, in few letters: `now`, `5m`, `3h`, `2d`, `1w`, `4mo`, `1y`.
pub(crate) fn age(now_ms: i64, then_ms: i64) -> String {
    let minutes = now_ms.saturating_sub(then_ms) / 60_000;
    let (hours, days) = (minutes / 60, minutes / 60 / 24);
    match () {
        () if minutes < 1 => "now".to_owned(),
        () if hours < 1 => format!("{minutes}m"),
        () if days < 1 => format!("{hours}h"),
        () if days < 7 => format!("{days}d"),
        () if days < 30 => format!("{}w", days / 7),
        () if days < 365 => format!("{}mo", days / 30),
        () => format!("{}y", days / 365),
    }
}

/// A time as `2026-02-07 14:00 UTC`.
pub(crate) fn stamp(ms: i64) -> String {
    let minutes = ms.div_euclid(60_000);
    let (year, month, day) = date_of(minutes.div_euclid(24 * 60));
    let of_day = minutes.rem_euclid(24 * 60);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", of_day / 60, of_day % 60)
}

/// The date of a day counted from the epoch (the usual era arithmetic: years begin in March, so that the leap day is
/// the last of a year).
fn date_of(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        const MINUTE: i64 = 60_000;
        const DAY: i64 = 24 * 60 * MINUTE;
        let check = |ago: i64, words: &str| assert_eq!(age(1_000 * DAY, 1_000 * DAY - ago), words);
        check(-5 * MINUTE, "now");
        check(59_999, "now");
        check(5 * MINUTE, "5m");
        check(3 * 60 * MINUTE, "3h");
        check(2 * DAY, "2d");
        check(8 * DAY, "1w");
        check(125 * DAY, "4mo");
        check(400 * DAY, "1y");
    }

    #[test]
    fn dates_of_known_days() {
        let check = |ms: i64, words: &str| assert_eq!(stamp(ms), words);
        check(0, "1970-01-01 00:00 UTC");
        check(1_770_472_800_000, "2026-02-07 14:00 UTC");
        check(951_782_400_000, "2000-02-29 00:00 UTC");
        check(-1, "1969-12-31 23:59 UTC");
        check(4_107_542_400_000, "2100-03-01 00:00 UTC");
    }
}
