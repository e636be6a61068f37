//! Whether a JSON value is a message of a format, and if not, where. Only what the mapping needs is checked.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use thiserror::Error;

use super::Format;
use super::read::{Members, list, typed};

/// JSON that is not a message of the format that its caller named.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not a message of the format `{format}`: `{pointer}` must be {expected}")]
pub struct FormatError {
    /// The format.
    pub format: Format,
    /// The JSON pointer into the message; empty for the message itself.
    pub pointer: String,
    /// What is expected there.
    pub expected: String,
}

/// An object that is being checked.
pub(super) struct Check<'a> {
    format: Format,
    at: String,
    text: &'a str,
    members: Members<'a>,
}

impl<'a> Check<'a> {
    /// The whole message.
    pub(super) fn message(format: Format, text: &'a str) -> Result<Self, FormatError> {
        let members = Members::parse(text).ok_or_else(|| FormatError {
            format,
            pointer: String::new(),
            expected: "an object".to_owned(),
        })?;
        Ok(Self { format, at: String::new(), text, members })
    }

    fn inner(&self, at: String, raw: &'a RawValue) -> Result<Self, FormatError> {
        match Members::of(raw) {
            Some(members) => Ok(Self { format: self.format, at, text: raw.get(), members }),
            None => Err(self.fault(at, "an object")),
        }
    }

    fn fault(&self, pointer: String, expected: &str) -> FormatError {
        FormatError { format: self.format, pointer, expected: expected.to_owned() }
    }

    /// The error for a member.
    pub(super) fn wrong(&self, key: &str, expected: &str) -> FormatError {
        self.fault(format!("{}/{key}", self.at), expected)
    }

    /// Whether there is such a member.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.has(key)
    }

    /// A text.
    pub(super) fn text(&self, key: &str) -> Result<String, FormatError> {
        self.members.text(key).ok_or_else(|| self.wrong(key, "a string"))
    }

    /// A text that is one of these words.
    pub(super) fn one_of(&self, key: &str, words: &[&str]) -> Result<String, FormatError> {
        let word = self.members.text(key).filter(|word| words.contains(&word.as_str()));
        word.ok_or_else(|| self.wrong(key, &format!("one of {}", words.join(", "))))
    }

    /// An object.
    pub(super) fn object(&self, key: &str) -> Result<Self, FormatError> {
        let raw = self.members.get(key).ok_or_else(|| self.wrong(key, "an object"))?;
        self.inner(format!("{}/{key}", self.at), raw)
    }

    /// A list of objects.
    pub(super) fn list(
        &self,
        key: &str,
        each: impl Fn(&Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let items = self.members.get(key).and_then(list);
        let items = items.ok_or_else(|| self.wrong(key, "a list"))?;
        for (index, item) in items.into_iter().enumerate() {
            each(&self.inner(format!("{}/{key}/{index}", self.at), item)?)?;
        }
        Ok(())
    }

    /// The answers of a whole response: a list of at least one.
    pub(super) fn answers(
        &self,
        key: &str,
        each: impl Fn(&Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        if self.members.get(key).and_then(list).is_some_and(|items| items.is_empty()) {
            return Err(self.wrong(key, "a list of at least one"));
        }
        self.list(key, each)
    }

    /// A text, or a list of objects.
    pub(super) fn text_or_list(
        &self,
        key: &str,
        each: impl Fn(&Self) -> Result<(), FormatError>,
    ) -> Result<(), FormatError> {
        let raw = self.members.get(key).ok_or_else(|| self.wrong(key, "a string or a list"))?;
        if typed::<String>(raw).is_some() {
            return Ok(());
        }
        if list(raw).is_none() {
            return Err(self.wrong(key, "a string or a list"));
        }
        self.list(key, each)
    }

    /// Whether the whole object is read as a type.
    pub(super) fn reads_as<T: DeserializeOwned>(&self) -> Result<(), FormatError> {
        match serde_json::from_str::<T>(self.text) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.fault(self.at.clone(), &format!("a whole message ({error})"))),
        }
    }

    /// Whether a member is null or absent.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.members.get(key).is_none_or(|raw| raw.get() == "null")
    }
}
