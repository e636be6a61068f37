//! Times as pi writes them: ISO 8601 with milliseconds and `Z`.

use jiff::Timestamp;

/// `2024-12-03T14:00:00.000Z`. A time outside the years that can be written so is moved to the nearest one.
#[must_use]
pub fn format_iso(ms: i64) -> String {
    let nearest = if ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    format!("{:.3}", Timestamp::from_millisecond(ms).unwrap_or(nearest))
}

/// Milliseconds since the epoch of an ISO 8601 time with a zone; `None` when it is not one. Fractions are
/// cut to milliseconds.
#[must_use]
pub fn parse_iso(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
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

    #[test]
    fn a_time_that_cannot_be_written_is_moved_to_the_nearest() {
        assert_eq!(format_iso(i64::MAX), "9999-12-30T22:00:00.999Z");
        assert!(parse_iso(&format_iso(i64::MIN)).is_some());
    }

    proptest::proptest! {
        #[test]
        fn every_time_survives_its_text(ms in -62_135_596_800_000_i64..253_402_207_200_000) {
            proptest::prop_assert_eq!(parse_iso(&format_iso(ms)), Some(ms));
        }
    }
}
