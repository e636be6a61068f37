//! Writing another format's JSON, and noting what it has no place for.

use serde::Serialize;

use super::{Format, Loss, LossReason};
use crate::json::RawJson;
use crate::members::UnknownMembers;

/// The member under which a block keeps a format's whole block that the canonical message cannot express.
pub(super) const ORIGINAL: &str = "original";

/// An object being written: members in the order they are put.
#[derive(Default)]
pub(super) struct Object(UnknownMembers);

impl Object {
    /// An object with one member.
    pub(super) fn with(key: &str, value: impl Serialize) -> Self {
        let mut object = Self::default();
        object.put(key, value);
        object
    }

    /// Sets a member.
    pub(super) fn put(&mut self, key: &str, value: impl Serialize) {
        // None of our types holds a value that JSON cannot represent.
        self.0.set(key, RawJson::of(&value).unwrap_or_default());
    }

    /// Sets a member if there is a value.
    pub(super) fn put_some(&mut self, key: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Puts back members that were kept: in their places where there are such, at the end otherwise.
    pub(super) fn put_back(&mut self, kept: UnknownMembers) {
        for (key, value) in kept {
            self.0.set(key, value);
        }
    }

    /// Whether a member is null or absent.
    pub(super) fn is_null(&self, key: &str) -> bool {
        self.0.get(key).is_none_or(RawJson::is_null)
    }

    /// The members.
    pub(super) fn into_members(self) -> UnknownMembers {
        self.0
    }

    /// The object as JSON.
    pub(super) fn into_raw(self) -> RawJson {
        RawJson::of(&self.0).unwrap_or_default()
    }
}

/// A mapping into one format in progress. It collects what the format cannot express, with its place in the canonical
/// message.
pub(super) struct Mapping {
    /// The format that is written.
    pub(super) format: Format,
    /// What could not be expressed.
    pub(super) losses: Vec<Loss>,
    /// Whether the message still streams: then it does not say yet why the model stopped.
    pub(super) is_unfinished: bool,
}

impl Mapping {
    pub(super) const fn into(format: Format) -> Self {
        Self { format, losses: Vec::new(), is_unfinished: false }
    }

    /// Notes something that the format has no place for.
    pub(super) fn lose(&mut self, pointer: String) {
        self.note(pointer, LossReason::NoPlace);
    }

    /// Notes something.
    pub(super) fn note(&mut self, pointer: String, reason: LossReason) {
        self.losses.push(Loss { entry_id: None, pointer, reason });
    }

    /// Notes a member that may say nothing.
    pub(super) fn lose_some<T>(&mut self, at: &str, key: &str, value: Option<&T>) {
        if value.is_some() {
            self.lose(format!("{at}/{key}"));
        }
    }

    /// The members that a place keeps for this format. All other unknown members of the place are noted, except
    /// `carried` ones.
    pub(super) fn kept(
        &mut self,
        at: &str,
        unknown: &UnknownMembers,
        carried: &[&str],
    ) -> UnknownMembers {
        let mut kept = UnknownMembers::NONE;
        for (key, value) in unknown.iter() {
            if key == self.format.name() {
                kept = members_of(value);
            } else if key == ORIGINAL || Format::named(key).is_some() {
                for (inner, value) in members_of(value) {
                    if inner == self.format.name() {
                        continue;
                    }
                    self.lose_value(&format!("{at}/{}", escaped(key)), &inner, &value);
                }
            } else if !carried.contains(&key) {
                self.lose_value(at, key, value);
            }
        }
        kept
    }

    fn lose_value(&mut self, at: &str, key: &str, value: &RawJson) {
        // An empty value carries no information.
        if !matches!(value.get(), "null" | "[]" | "{}" | "\"\"" | "false") {
            self.lose(format!("{at}/{}", escaped(key)));
        }
    }

    /// The whole block that a place keeps for this format.
    pub(super) fn original(&self, unknown: &UnknownMembers) -> Option<RawJson> {
        members_of(unknown.get(ORIGINAL)?).remove(self.format.name())
    }
}

/// The members of a value; none where it is no object.
pub(super) fn members_of(value: &RawJson) -> UnknownMembers {
    super::read::Members::parse(value.get()).unwrap_or_default().into_unknown()
}

/// A key as a JSON pointer names it.
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
