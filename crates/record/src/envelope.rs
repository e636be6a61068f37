use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::kind;

/// A record as it is stored: the columns that a store needs to walk the tree, and the payload that only the session
/// crate reads.
///
/// It borrows where it can: a frame that was just read lends its texts, and a record that is about to be written owns
/// them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope<'a> {
    /// What kind of record: one to sixteen lower-case letters, digits or `_`.
    pub kind: Cow<'a, str>,
    /// The entry that the record adds; for the kind `entry` and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// The parent of that entry; `None` makes a root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Cow<'a, str>>,
    /// The entry that the record is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Cow<'a, str>>,
    /// The revision that the target has with this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// When, milliseconds since the epoch. For showing, never for order.
    pub at_ms: i64,
    /// One line of JSON, stored byte for byte.
    pub payload: Cow<'a, str>,
}

impl<'a> Envelope<'a> {
    /// A record that is about no entry.
    pub fn plain(
        kind: impl Into<Cow<'a, str>>,
        at_ms: i64,
        payload: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            kind: kind.into(),
            id: None,
            parent: None,
            target: None,
            revision: None,
            at_ms,
            payload: payload.into(),
        }
    }

    /// The same record, lent.
    #[must_use]
    pub fn borrowed(&self) -> Envelope<'_> {
        fn lend<'b>(text: &'b Option<Cow<'_, str>>) -> Option<Cow<'b, str>> {
            text.as_deref().map(Cow::Borrowed)
        }
        Envelope {
            kind: Cow::Borrowed(&self.kind),
            id: lend(&self.id),
            parent: lend(&self.parent),
            target: lend(&self.target),
            revision: self.revision,
            at_ms: self.at_ms,
            payload: Cow::Borrowed(&self.payload),
        }
    }

    /// The same record, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Envelope<'static> {
        let own = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        Envelope {
            kind: kind::into_owned(self.kind),
            id: own(self.id),
            parent: own(self.parent),
            target: own(self.target),
            revision: self.revision,
            at_ms: self.at_ms,
            payload: Cow::Owned(self.payload.into_owned()),
        }
    }
}

/// Records that own their texts.
impl Envelope<'static> {
    /// A record that adds an entry.
    pub fn entry(
        id: &str,
        parent: Option<&str>,
        at_ms: i64,
        payload: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            id: Some(Cow::Owned(id.to_owned())),
            parent: parent.map(|parent| Cow::Owned(parent.to_owned())),
            ..Self::plain(kind::ENTRY, at_ms, payload)
        }
    }

    /// A record that gives an entry a new revision.
    pub fn revision(
        target: &str,
        revision: u64,
        at_ms: i64,
        payload: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            target: Some(Cow::Owned(target.to_owned())),
            revision: Some(revision),
            ..Self::plain(kind::REVISION, at_ms, payload)
        }
    }

    /// A record that moves the active leaf.
    #[must_use]
    pub fn leaf(target: Option<&str>, at_ms: i64) -> Self {
        Self {
            target: target.map(|target| Cow::Owned(target.to_owned())),
            ..Self::plain(kind::LEAF, at_ms, "null")
        }
    }
}

/// A record with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredEnvelope<'a> {
    /// Its number, from 1.
    pub seq: u64,
    /// Set if the record replaced steps of a stream: the number of the last of those steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_step: Option<u64>,
    /// The record.
    #[serde(borrow)]
    pub envelope: Envelope<'a>,
}

impl StoredEnvelope<'_> {
    /// The same record, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> StoredEnvelope<'static> {
        let Self { seq, last_step, envelope } = self;
        StoredEnvelope { seq, last_step, envelope: envelope.into_owned() }
    }
}
