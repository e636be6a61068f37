use std::borrow::Cow;

use crate::error::{LogError, Result};
use crate::format::Frame;
use crate::limits;

/// The kinds of record that the log itself understands; all others are carried without looking.
pub mod kind {
    /// Adds an entry to the tree and makes it the active leaf.
    pub const ENTRY: &str = "entry";
    /// Changes what an entry says, given what it said before.
    pub const REVISION: &str = "rev";
    /// Moves the active leaf to `target`, or to nothing.
    pub const LEAF: &str = "leaf";
    /// Says that deltas for `target` may stand in `stream.log`.
    pub const STREAM: &str = "stream";
    /// The log was deleted.
    pub const TOMBSTONE: &str = "tomb";
    /// The deletion was undone.
    pub const RESTORED: &str = "restored";

    /// A kind that was read: the most common ones need no memory.
    pub(crate) fn owned(kind: &str) -> std::borrow::Cow<'static, str> {
        match kind {
            ENTRY => ENTRY.into(),
            REVISION => REVISION.into(),
            other => other.to_owned().into(),
        }
    }
}

/// A record to append. Nothing in it says where it will stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// What kind of record: one to sixteen lower-case letters, digits or `_`.
    pub kind: Cow<'static, str>,
    /// The id of the entry that it adds; for [`kind::ENTRY`] and no other kind.
    pub id: Option<String>,
    /// The parent of that entry; `None` makes a root.
    pub parent: Option<String>,
    /// The entry that it speaks of.
    pub target: Option<String>,
    /// For a revision: the revision that the target has with it.
    pub revision: Option<u64>,
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
    /// A JSON value in one line, stored byte for byte.
    pub payload: String,
}

impl NewRecord {
    /// A record that speaks of no entry.
    pub fn plain(
        kind: impl Into<Cow<'static, str>>,
        at_ms: i64,
        payload: impl Into<String>,
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

    /// A record that adds an entry.
    pub fn entry(id: &str, parent: Option<&str>, at_ms: i64, payload: impl Into<String>) -> Self {
        Self {
            id: Some(id.to_owned()),
            parent: parent.map(ToOwned::to_owned),
            ..Self::plain(kind::ENTRY, at_ms, payload)
        }
    }

    /// A record that gives an entry a new revision.
    pub fn revision(target: &str, revision: u64, at_ms: i64, payload: impl Into<String>) -> Self {
        Self {
            target: Some(target.to_owned()),
            revision: Some(revision),
            ..Self::plain(kind::REVISION, at_ms, payload)
        }
    }

    /// A record that moves the active leaf.
    pub fn leaf(target: Option<&str>, at_ms: i64) -> Self {
        Self { target: target.map(ToOwned::to_owned), ..Self::plain(kind::LEAF, at_ms, "null") }
    }

    /// The entries that must be there for this record to make sense. What a kind that the log does not
    /// know speaks of is its owner's business.
    pub(crate) fn links(&self) -> impl Iterator<Item = &String> {
        let known = matches!(&*self.kind, kind::REVISION | kind::LEAF | kind::STREAM);
        self.parent.iter().chain(self.target.iter().filter(move |_| known))
    }

    /// Refuses what could not be read back.
    pub(crate) fn check(&self) -> Result<()> {
        check_size("a record's payload", self.payload.len(), limits::RECORD_BYTES_MAX)?;
        let plain_kind = (1..=limits::KIND_BYTES_MAX).contains(&self.kind.len())
            && self.kind.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
        if !plain_kind {
            return Err(invalid(format!("{:?} is not a kind of record", self.kind)));
        }
        if self.id.is_some() != (self.kind == kind::ENTRY) {
            return Err(invalid(format!("a record of kind {} and its id do not fit", self.kind)));
        }
        if self.parent.is_some() && self.id.is_none() {
            return Err(invalid("only an entry has a parent".to_owned()));
        }
        for id in [&self.id, &self.parent, &self.target].into_iter().flatten() {
            check_entry_id(id)?;
        }
        if self.kind == kind::REVISION && (self.target.is_none() || self.revision.is_none()) {
            return Err(invalid("a revision names its entry and its number".to_owned()));
        }
        let json = self.payload.trim_ascii();
        if json.len() != self.payload.len()
            || memchr::memchr2(b'\n', b'\r', self.payload.as_bytes()).is_some()
        {
            return Err(invalid("a payload is one line without space around it".to_owned()));
        }
        serde_json::from_str::<&serde_json::value::RawValue>(json)
            .map(drop)
            .map_err(|error| invalid(format!("the payload is not JSON: {error}")))
    }
}

pub(crate) fn check_entry_id(id: &str) -> Result<()> {
    check_size("an entry id", id.len(), limits::ENTRY_ID_BYTES_MAX)?;
    if id.is_empty() {
        return Err(invalid("an entry id is empty".to_owned()));
    }
    Ok(())
}

pub(crate) fn check_size(what: &'static str, size: usize, limit: usize) -> Result<()> {
    if size <= limit {
        return Ok(());
    }
    Err(LogError::TooLarge { what, size: size as u64, limit: limit as u64 })
}

pub(crate) fn invalid(reason: String) -> LogError {
    LogError::Invalid { reason }
}

/// A record as a fold sees it.
#[derive(Clone, Copy, Debug)]
pub struct RecordView<'a> {
    /// Its number in the log, from 1.
    pub seq: u64,
    /// What kind of record.
    pub kind: &'a str,
    /// The entry that it adds.
    pub id: Option<&'a str>,
    /// That entry's parent.
    pub parent: Option<&'a str>,
    /// The entry that it speaks of.
    pub target: Option<&'a str>,
    /// The revision that its target has with it.
    pub revision: Option<u64>,
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
    /// The payload as it was given.
    pub payload: &'a str,
}

impl<'a> RecordView<'a> {
    pub(crate) fn of_frame(frame: &'a Frame<'_>) -> Self {
        let header = &frame.header;
        Self {
            seq: header.seq,
            kind: &header.kind,
            id: header.id.as_deref(),
            parent: header.parent.as_deref(),
            target: header.target.as_deref(),
            revision: header.revision,
            at_ms: header.at_ms,
            payload: frame.payload,
        }
    }
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Its number in the log, from 1.
    pub seq: u64,
    /// For a revision that took the place of deltas: the number of the newest of them.
    pub settles: Option<u64>,
    /// The record.
    pub record: NewRecord,
}

impl StoredRecord {
    pub(crate) fn of_frame(frame: &Frame<'_>) -> Self {
        let view = RecordView::of_frame(frame);
        Self {
            seq: view.seq,
            settles: frame.header.settles,
            record: NewRecord {
                kind: kind::owned(view.kind),
                id: view.id.map(ToOwned::to_owned),
                parent: view.parent.map(ToOwned::to_owned),
                target: view.target.map(ToOwned::to_owned),
                revision: view.revision,
                at_ms: view.at_ms,
                payload: view.payload.to_owned(),
            },
        }
    }

    /// The record as a fold sees it.
    #[must_use]
    pub fn view(&self) -> RecordView<'_> {
        let record = &self.record;
        RecordView {
            seq: self.seq,
            kind: &record.kind,
            id: record.id.as_deref(),
            parent: record.parent.as_deref(),
            target: record.target.as_deref(),
            revision: record.revision,
            at_ms: record.at_ms,
            payload: &record.payload,
        }
    }
}
