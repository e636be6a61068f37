//! Lengths of time as people write them: `45s`, `15m`, `12h`, `30d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A length of time: a whole number and one of `ms`, `s`, `m`, `h`, `d`, or `forever`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// It ends.
    For(Duration),
    /// It does not end.
    Forever,
}

/// Text that is not a length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a length of time; write a whole number and ms, s, m, h or d, such as 30d, or forever"
)]
pub struct SpanError {
    text: String,
}

impl Span {
    /// The length; `None` for `forever`.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        match self {
            Self::For(duration) => Some(duration),
            Self::Forever => None,
        }
    }

    /// The end of a span that starts at `now_ms`, in milliseconds since the epoch.
    #[must_use]
    pub fn end_after(self, now_ms: i64) -> Option<i64> {
        let millis = i64::try_from(self.duration()?.as_millis()).unwrap_or(i64::MAX);
        Some(now_ms.saturating_add(millis))
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self::For(duration)
    }
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        if text == "forever" {
            return Ok(Self::Forever);
        }
        parse(text).map(Self::For).ok_or_else(|| SpanError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::For(duration) = self else {
            return f.write_str("forever");
        };
        let seconds = duration.as_secs();
        match seconds {
            _ if duration.subsec_nanos() != 0 => write!(f, "{}ms", duration.as_millis()),
            0 => f.write_str("0s"),
            _ if seconds.is_multiple_of(86_400) => write!(f, "{}d", seconds / 86_400),
            _ if seconds.is_multiple_of(3600) => write!(f, "{}h", seconds / 3600),
            _ if seconds.is_multiple_of(60) => write!(f, "{}m", seconds / 60),
            _ => write!(f, "{seconds}s"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Span {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "Span".to_owned()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Span, shown: &str) {
        let span: Span = text.parse().unwrap();
        assert_eq!(span, expected, "{text}");
        assert_eq!(span.to_string(), shown);
        assert_eq!(shown.parse::<Span>().unwrap(), span);
    }

    #[test]
    fn spans_are_read_and_shown() {
        check("0s", Span::For(Duration::ZERO), "0s");
        check("250ms", Span::For(Duration::from_millis(250)), "250ms");
        check("90s", Span::For(Duration::from_secs(90)), "90s");
        check("120s", Span::For(Duration::from_secs(120)), "2m");
        check("48h", Span::For(Duration::from_secs(172_800)), "2d");
        check("forever", Span::Forever, "forever");
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["", "30", "d", "-1s", "1.5h", "1w", " 1s", "99999999999999999999d", "1d2h"] {
            assert!(bad.parse::<Span>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_end_never_overflows() {
        let long = Span::For(Duration::from_secs(u64::MAX));
        assert_eq!(long.end_after(5), Some(i64::MAX));
        assert_eq!(Span::Forever.end_after(5), None);
        assert_eq!("1s".parse::<Span>().unwrap().end_after(5), Some(1005));
    }
}
