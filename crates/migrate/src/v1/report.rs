//! What was found in a V1 file that is not as it should be, and what was made of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::FINDINGS_MAX;

/// One thing that is not as it should be. Nothing is left out because of it: the line is kept, as an entry
/// where it can be linked and as it is where it cannot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The line, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub kind: FindingKind,
    /// The id that it speaks of, where that helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The kinds of finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The first line is not a session header; id and time come from the file's name.
    HeaderMissing,
    /// A second header: kept as it is.
    HeaderAgain,
    /// A newer version than this build knows: read as the newest that it knows.
    NewerVersion,
    /// Not JSON: kept as it is.
    NotJson,
    /// JSON, and not an object: kept as it is.
    NotAnObject,
    /// Not UTF-8: kept as it is.
    NotUtf8,
    /// Longer than a record may be.
    TooLong,
    /// The last line has no line break and is not whole: kept as it is.
    TornTail,
    /// The entry has no id, or none that can be used: it got one.
    IdAssigned,
    /// An earlier entry has this id: this one is kept under another name.
    DuplicateId,
    /// The parent is not in the file: the entry is a root now.
    ParentMissing,
    /// The parent comes later in the file: the entry is a root now.
    ParentLater,
    /// The entry is its own ancestor: it is a root now.
    ParentCycle,
    /// The entry is its own parent: it is a root now.
    ParentSelf,
    /// The entry has no time that can be read: it got the one before it.
    TimeMissing,
    /// The compaction keeps from a line that is not an entry before it.
    KeptLineUnknown,
    /// A text has half of a surrogate pair: kept as it is, seen as a replacement character.
    HalfCharacter,
    /// Nested too deeply, or a number that no float holds: kept as it is, and a text says so in its place.
    NotShownWhole,
}

/// What was found in a V1 file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct V1Report {
    /// Lines of the file, blank ones included.
    pub lines: u64,
    /// Lines that became entries.
    pub entries: u64,
    /// Lines that are kept as they are, the header included.
    pub kept: u64,
    /// Lines with nothing in them.
    pub blank: u64,
    /// Lines that end in CR LF.
    pub crlf: u64,
    /// The header's version; 1 when it has none, 0 when there is no header.
    pub version: u64,
    /// Entries by their type.
    pub types: BTreeMap<String, u64>,
    /// How often each kind of finding was made.
    pub counts: BTreeMap<FindingKind, u64>,
    /// The first findings, by line.
    pub findings: Vec<Finding>,
}

impl V1Report {
    /// Whether everything is as it should be.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often a kind of finding was made.
    #[must_use]
    pub fn count(&self, kind: FindingKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    pub(crate) fn find(&mut self, line: u64, kind: FindingKind, id: Option<&str>) {
        *self.counts.entry(kind).or_default() += 1;
        if self.findings.len() < FINDINGS_MAX {
            let id = id.map(|id| bough_session::text::cut_bytes(id, 256).to_owned());
            self.findings.push(Finding { line, kind, id });
        }
    }

    pub(crate) fn note_type(&mut self, kind: Option<&str>) {
        /// Types that are counted by name; a hostile file must not fill the report.
        const TYPES_MAX: usize = 64;
        let name = bough_session::text::cut_bytes(kind.unwrap_or("(none)"), 64);
        if let Some(count) = self.types.get_mut(name) {
            *count += 1;
        } else {
            let full = self.types.len() >= TYPES_MAX;
            let name = if full { "(others)" } else { name };
            *self.types.entry(name.to_owned()).or_default() += 1;
        }
    }
}
