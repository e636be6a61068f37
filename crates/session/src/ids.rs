//! Ids of sessions, entries, loops and incarnations.
//!
//! A text from a caller that names something new goes through `parse`, which checks it. A text that is already stored,
//! or that only asks for something, goes through `from_stored`: an old store may hold ids that we would refuse today,
//! and they must stay readable.
//!
//! Ids are copied often, so their text is shared.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::{
    ENTRY_ID_BYTES_MAX, LOOP_ID_BYTES_MAX, LimitError, SESSION_ID_BYTES_MAX, check_at_most,
};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:expr, $limit:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(#[serde(deserialize_with = "shared_text")] Arc<str>);

        impl $name {
            /// Takes text that names something new: not empty and not too long. It may hold any character: names on disk are
            /// escaped, and the code that prints an id neutralises it.
            pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, LimitError> {
                let text = text.into();
                check_id($what, &text, $limit)?;
                Ok(Self(text))
            }

            /// Takes text that is already stored somewhere, as it is.
            pub fn from_stored(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl JsonSchema for $name {
            fn is_referenceable() -> bool {
                false
            }

            fn schema_name() -> String {
                stringify!($name).to_owned()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                String::json_schema(generator)
            }
        }
    };
}

/// Reads a text straight into shared memory, without a copy in between.
fn shared_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(text.into())
        }
    }

    deserializer.deserialize_str(Text)
}

/// The name of a session id in error messages.
const SESSION_ID: &str = "session id";
/// The prefix of ids of sessions that hold documents. No other session's id begins with it.
const DOCUMENTS_PREFIX: &str = "bough.kv:";

text_id!(
    /// Names a session.
    SessionId, SESSION_ID, SESSION_ID_BYTES_MAX
);
text_id!(
    /// Names an entry within its session.
    EntryId, "entry id", ENTRY_ID_BYTES_MAX
);
text_id!(
    /// Names a loop of an agent within its session.
    LoopId, "loop id", LOOP_ID_BYTES_MAX
);

impl SessionId {
    /// A fresh id, `s_` and 32 hex digits, from random bytes.
    #[must_use]
    pub fn generate(random: [u8; 16]) -> Self {
        Self(with_hex("s_", &random).into())
    }

    /// The session that holds the documents of a scope.
    #[must_use]
    pub fn of_documents(scope: &str) -> Self {
        Self(format!("{DOCUMENTS_PREFIX}{scope}").into())
    }

    /// Whether this is the id of a session that holds documents by key. Such a session is in no list, feed or count.
    #[must_use]
    pub fn is_documents(&self) -> bool {
        self.0.starts_with(DOCUMENTS_PREFIX)
    }
}

impl EntryId {
    /// A fresh id, `e_` and 32 hex digits, from random bytes.
    #[must_use]
    pub fn generate(random: [u8; 16]) -> Self {
        Self(with_hex("e_", &random).into())
    }
}

/// A text with bytes as hex digits behind it. Every append makes one.
fn with_hex(text: &str, bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let mut whole = String::with_capacity(text.len() + 2 * bytes.len());
    whole.push_str(text);
    whole.extend(digits.filter_map(|digit| char::from_digit(u32::from(digit), 16)));
    whole
}

fn check_id(what: &'static str, text: &str, limit: usize) -> Result<(), LimitError> {
    if text.is_empty() {
        return Err(LimitError::Empty { what });
    }
    if what == SESSION_ID && text.starts_with(DOCUMENTS_PREFIX) {
        return Err(LimitError::Reserved { what, prefix: DOCUMENTS_PREFIX });
    }
    check_at_most(what, "bytes", text.len(), limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_have_the_usual_form() {
        assert_eq!(SessionId::generate([0xab; 16]).as_str(), "s_abababababababababababababababab");
        assert!(EntryId::generate([0; 16]).as_str().starts_with("e_0000"));
        EntryId::parse(EntryId::generate([7; 16]).to_string()).unwrap();
    }

    #[test]
    fn ids_of_documents_are_given_to_no_other_session() {
        let documents = SessionId::of_documents("app");
        assert!(documents.is_documents());
        let refused = SessionId::parse(documents.as_str()).unwrap_err().to_string();
        assert_eq!(refused, "session id cannot begin with `bough.kv:`");
        assert!(!SessionId::parse("bough.kv").unwrap().is_documents());
        EntryId::parse(documents.as_str()).unwrap();
    }

    #[test]
    fn ids_are_checked_at_their_bounds() {
        let check = |text: String, expected: bool| {
            assert_eq!(EntryId::parse(text.as_str()).is_ok(), expected, "{text:?}");
        };
        check(String::new(), false);
        check("x".into(), true);
        check("x".repeat(ENTRY_ID_BYTES_MAX - 1), true);
        check("x".repeat(ENTRY_ID_BYTES_MAX), true);
        check("x".repeat(ENTRY_ID_BYTES_MAX + 1), false);
        check("a\u{7}b".into(), true);
        check("\0".into(), true);
        check("a\u{85}b\n".into(), true);
        check("../é 世界".into(), true);
    }
}
