use jiff::Timestamp;

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
    let nearest = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    let time = Timestamp::from_millisecond(ms).unwrap_or(nearest);
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
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
