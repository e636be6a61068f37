//! Texts that are usually short.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// The longest text, in bytes, that is kept without an allocation. With it, a text is as large as a `String`.
const INLINE_BYTES: usize = 22;

/// A text that is usually short: the name of a model, a piece of a streamed message. There are very many of these, and
/// an allocation is most of the cost of a text of a few letters.
#[derive(Clone)]
pub struct ShortText(Form);

#[derive(Clone)]
enum Form {
    Inline { len: u8, bytes: [u8; INLINE_BYTES] },
    Long(Box<str>),
}

impl ShortText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Form::Inline { len, bytes } => {
                let bytes = bytes.get(..usize::from(*len)).unwrap_or_default();
                std::str::from_utf8(bytes).unwrap_or_default()
            }
            Form::Long(text) => text,
        }
    }

    fn inline(text: &str) -> Option<Self> {
        let mut bytes = [0; INLINE_BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        let len = u8::try_from(text.len()).ok()?;
        Some(Self(Form::Inline { len, bytes }))
    }
}

impl From<&str> for ShortText {
    fn from(text: &str) -> Self {
        Self::inline(text).unwrap_or_else(|| Self(Form::Long(text.into())))
    }
}

impl From<String> for ShortText {
    fn from(text: String) -> Self {
        Self::inline(&text).unwrap_or_else(|| Self(Form::Long(text.into())))
    }
}

impl Default for ShortText {
    fn default() -> Self {
        Self::from("")
    }
}

impl Deref for ShortText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for ShortText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ShortText {}

impl Hash for ShortText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl Serialize for ShortText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ShortText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = ShortText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ShortText, E> {
                Ok(text.into())
            }
        }
        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_length_are_kept_as_they_are() {
        for text in
            ["", "opus", "an even longer text", &"x".repeat(22), &"x".repeat(23), "\u{e9}\"\n"]
        {
            let short = ShortText::from(text);
            assert_eq!(short.as_str(), text);
            assert_eq!(ShortText::from(text.to_owned()), short);
            assert_eq!(short.to_string(), text);
            assert_eq!(format!("{short:?}"), format!("{text:?}"));
            let json = serde_json::to_string(&short).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<ShortText>(&json).unwrap(), short);
        }
    }

    #[test]
    fn a_short_text_is_no_larger_than_a_string() {
        assert_eq!(size_of::<ShortText>(), size_of::<String>());
    }
}
