//! Objects that are read member by member, so that unknown members are kept as they came.
//!
//! The derived readers cannot do this: they drop unknown members, or convert them to a value that does not keep the
//! spelling of numbers and the order of keys.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use bough_record::BorrowedText;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::RawJson;

/// Members of an object that its shape does not know: in their order, each as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownMembers(Vec<(String, RawJson)>);

impl UnknownMembers {
    /// No members.
    pub const NONE: Self = Self(Vec::new());

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&RawJson> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Sets a member: in its place where there is one, at the end where there is none.
    pub fn set(&mut self, key: impl Into<String>, value: RawJson) {
        let key = key.into();
        match self.0.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: &str) -> Option<RawJson> {
        let at = self.0.iter().position(|(name, _)| name == key)?;
        Some(self.0.remove(at).1)
    }
}

impl IntoIterator for UnknownMembers {
    type Item = (String, RawJson);
    type IntoIter = std::vec::IntoIter<(String, RawJson)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Sets each member, as [`UnknownMembers::set`] does.
impl Extend<(String, RawJson)> for UnknownMembers {
    fn extend<I: IntoIterator<Item = (String, RawJson)>>(&mut self, members: I) {
        members.into_iter().for_each(|(key, value)| self.set(key, value));
    }
}

impl FromIterator<(String, RawJson)> for UnknownMembers {
    fn from_iter<I: IntoIterator<Item = (String, RawJson)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl Serialize for UnknownMembers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// An object while it is read. Its known members may depend on one of them, its tag.
pub(crate) trait Draft: Default {
    /// The member that names the type of the object; `None` if nothing depends on it.
    const TAG: Option<&'static str>;
    /// What the object is, for error messages.
    const EXPECTED: &'static str;

    /// Whether the tag was read, or there is none.
    fn has_tag(&self) -> bool {
        Self::TAG.is_none()
    }

    /// Notes the tag.
    fn set_tag<E: Error>(&mut self, _word: &str) -> Result<(), E> {
        Ok(())
    }

    /// Reads the value of a known member. Returns `false` and leaves the value if the member is not known.
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error>;

    /// Takes the members that the object does not know.
    fn keep(&mut self, unknown: UnknownMembers);
}

/// Reads an object into its draft.
pub(crate) fn read_draft<'de, T: Draft, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(DraftVisitor(PhantomData))
}

struct DraftVisitor<T>(PhantomData<T>);

impl<'de, T: Draft> Visitor<'de> for DraftVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut draft = T::default();
        let mut waiting = Vec::new();
        while let Some(BorrowedText(key)) = map.next_key::<BorrowedText<'de>>()? {
            if T::TAG == Some(&*key) {
                draft.set_tag(&map.next_value::<BorrowedText<'de>>()?.0)?;
            } else if !draft.has_tag() || !draft.read(&key, &mut map)? {
                waiting.push((key.into_owned(), map.next_value::<RawJson>()?));
            }
        }
        if let (false, Some(tag)) = (draft.has_tag(), T::TAG) {
            return Err(Error::missing_field(tag));
        }
        // Members before the tag may turn out to be known.
        let mut unknown = Vec::new();
        for (key, value) in waiting {
            let known = draft.read(&key, &mut OneValue(value.raw())).map_err(Error::custom)?;
            if !known {
                unknown.push((key, value));
            }
        }
        draft.keep(UnknownMembers(unknown));
        Ok(draft)
    }
}

/// The members of a text that is an object, in their order, each with the text of its value.
#[must_use]
pub fn raw_members(text: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    struct RawVisitor;
    impl<'de> Visitor<'de> for RawVisitor {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::with_capacity(4);
            while let Some((BorrowedText(key), value)) =
                map.next_entry::<BorrowedText<'de>, &'de RawValue>()?
            {
                members.push((key, value));
            }
            Ok(members)
        }
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let members = json.deserialize_map(RawVisitor).ok()?;
    json.end().ok().map(|()| members)
}

/// One value that was put aside, for reading it as a member.
struct OneValue<'a>(&'a RawValue);

impl<'de> MapAccess<'de> for OneValue<'de> {
    type Error = serde_json::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        _seed: K,
    ) -> Result<Option<K::Value>, Self::Error> {
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, Self::Error> {
        seed.deserialize(self.0)
    }
}
