use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{hex, unhex};

/// Identifies one creation of a session id: random, drawn when the session is created. If a session is deleted and its
/// id is created again, the new session has another incarnation, so a cursor of the old session does not match the new
/// one. Shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation([u8; 16]);

/// Text that is not 32 lower-case hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an incarnation (32 hex digits)")]
pub struct IncarnationError(String);

impl Incarnation {
    /// An incarnation from random bytes.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self(random)
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl FromStr for Incarnation {
    type Err = IncarnationError;

    fn from_str(text: &str) -> Result<Self, IncarnationError> {
        unhex(text).map(Self).ok_or_else(|| IncarnationError(text.to_owned()))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Incarnation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Incarnation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_incarnation_is_read_back_and_no_other_is() {
        let incarnation = Incarnation::new(*b"0123456789abcdef");
        assert_eq!(incarnation.to_string().parse::<Incarnation>(), Ok(incarnation));
        for bad in ["", "00", "0123456789ABCDEF0123456789ABCDEF", "é"] {
            assert!(bad.parse::<Incarnation>().is_err(), "{bad}");
        }
    }
}
