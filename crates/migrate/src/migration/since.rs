//! What was written to a log since it was migrated, and how a V1 file says it.

use std::collections::{BTreeMap, HashMap, HashSet};

use bough_record::{Head, StoredEnvelope, kind};
use bough_session::{Bookkeeping, Entry, EntryId, Record};
use bough_store::LogReader;
use serde_json::json;

use super::log_records::{EndMark, Migrated, decoded, each_record, each_record_after};
use super::lost::{Lost, LostKind};
use super::meta::OwnRecord;
use crate::error::{MigrateError, Result};
use crate::pi_line::{self, FIRST_KEPT_INDEX, LEAF_TYPE};
use crate::v1::{ContentDigest, Snapshot, id_in, source_line_of};

/// What was written since.
#[derive(Debug)]
pub(crate) struct Since {
    pub(crate) mark: EndMark,
    /// The record that the mark is: what follows was written since.
    mark_seq: u64,
    pub(crate) head: Head,
    /// Identifies the lines that a V1 file would get: see [`line_key`].
    pub(crate) keys: HashSet<String>,
    /// The digest of the file's own lines, side tables left out.
    pub(crate) file_content: ContentDigest,
    lost: BTreeMap<LostKind, u64>,
    /// Entries of the file that the log knows under another name than the file does; `None` where the
    /// file has no name for it.
    renamed: HashMap<String, Option<String>>,
    /// Version 1 only: the number of each entry's line.
    indexes: HashMap<String, usize>,
    /// Whether a line to add speaks of another by its number.
    pub(crate) numbered: bool,
    title: Option<String>,
    last_ms: i64,
    /// The last entry of all, which a V1 file would go on from.
    last: Option<String>,
    leaf: Option<String>,
}

impl Since {
    /// Reads a whole log. `None` when it does not say where its migration ended.
    pub(crate) fn read(reader: &LogReader) -> Result<Option<Self>> {
        let mut gather = Gather::default();
        each_record(reader, &mut |stored| {
            gather.take(&stored);
            Ok(())
        })?;
        let Some(mark) = gather.migrated.mark.take() else { return Ok(None) };
        gather.lose_meta();
        let mut since = Self {
            mark,
            mark_seq: gather.migrated.mark_seq,
            head: reader.head(),
            keys: gather.ids,
            file_content: gather.file_content,
            title: gather.own.new_title(),
            lost: gather.lost,
            renamed: gather.renamed,
            indexes: HashMap::new(),
            numbered: false,
            last_ms: gather.last_ms,
            last: gather.last,
            leaf: reader.active_leaf().map(|leaf| leaf.to_string()),
        };
        if since.is_linear() {
            if since.leaf != since.last {
                since.lost.insert(LostKind::Leaf, 1);
            }
            since.indexes = line_numbers(reader)?;
            let (mut keys, mut numbered) = (HashSet::new(), false);
            since.each_line(reader, &mut |line| {
                keys.insert(line_key(line));
                numbered |= line.contains(FIRST_KEPT_INDEX);
                Ok(())
            })?;
            (since.keys, since.numbered) = (keys, numbered);
        } else if let Some(line) = since.last_line() {
            since.keys.insert(line_key(&line));
        }
        Ok(Some(since))
    }

    /// What the file cannot say.
    pub(crate) fn lost(&self) -> Vec<Lost> {
        self.lost.iter().map(|(kind, count)| Lost { kind: *kind, count: *count }).collect()
    }

    fn is_linear(&self) -> bool {
        self.mark.report.version == 1
    }

    /// Every line to add to the file, in order.
    pub(crate) fn each_line(
        &self,
        reader: &LogReader,
        visit: &mut dyn FnMut(&str) -> Result<()>,
    ) -> Result<()> {
        each_record_after(reader, self.mark_seq, &mut |stored| {
            let Some(id) = stored.envelope.id.as_deref() else { return Ok(()) };
            let found = reader.entry(id)?.ok_or_else(|| gone(id))?;
            visit(&self.line_of(&found.entry)?)
        })?;
        match self.last_line() {
            Some(line) => visit(&line),
            None => Ok(()),
        }
    }

    fn line_of(&self, entry: &Entry) -> Result<String> {
        if self.is_linear() {
            return pi_line::version_1_line_of(entry, &|id| self.indexes.get(id).copied());
        }
        let parent = entry.parent_id.as_ref().map(EntryId::as_str);
        Ok(pi_line::line_of(
            entry,
            entry.id.as_str(),
            parent.map(|parent| self.file_name_of(parent)),
        ))
    }

    /// An entry's name in the file.
    fn file_name_of<'a>(&'a self, id: &'a str) -> &'a str {
        match self.renamed.get(id) {
            Some(Some(name)) => name,
            _ => id,
        }
    }

    /// A V1 file goes on from its last line and has no title but in a line: where the log's leaf is not
    /// its last entry, or it got a title, one more line says so.
    fn last_line(&self) -> Option<String> {
        let moved = self.leaf != self.last;
        let (what, id, words) = match &self.title {
            Some(title) => {
                let id = format!("bough-title-{}", self.head.seq);
                ("session_info", id, json!({ "name": title }))
            }
            None if moved && !self.is_linear() => {
                let id = format!("bough-leaf-{}", self.head.seq);
                ("custom", id, json!({ "customType": LEAF_TYPE, "data": {} }))
            }
            None => return None,
        };
        let parent = self.leaf.as_deref().map(|leaf| self.file_name_of(leaf));
        let identity = (!self.is_linear()).then_some((id.as_str(), parent));
        Some(pi_line::plain_line(what, identity, self.last_ms, words))
    }
}

/// The number of each entry's line in a version-1 file, those that were written since included. pi counts the
/// lines that are JSON, the header being 0.
fn line_numbers(reader: &LogReader) -> Result<HashMap<String, usize>> {
    let mut numbers = HashMap::new();
    let mut next = 0;
    let mut migrated = Migrated::default();
    each_record(reader, &mut |stored| {
        let in_file = migrated.take(&stored);
        if let Some(id) = stored.envelope.id.map(std::borrow::Cow::into_owned) {
            numbers.insert(id, next);
            next += 1;
        } else if in_file {
            let line = source_line_of(&stored.envelope.kind, &stored.envelope.payload);
            let is_json = |what: &str| matches!(what, "header" | "header_again" | "not_an_object");
            next += usize::from(line.is_some_and(|line| is_json(&line.what)));
        }
        Ok(())
    })?;
    Ok(numbers)
}

/// The key of a line, which finds it again in the file: its id, or its digest if it has none.
pub(crate) fn line_key(line: &str) -> String {
    id_in(line).unwrap_or_else(|| Snapshot::of(line.as_bytes()).to_string())
}

fn gone(id: &str) -> MigrateError {
    MigrateError::NotRepresentable { reason: format!("entry {id} cannot be read again") }
}

/// The first reading: what there is.
#[derive(Debug, Default)]
struct Gather {
    migrated: Migrated,
    file_content: ContentDigest,
    ids: HashSet<String>,
    lost: BTreeMap<LostKind, u64>,
    renamed: HashMap<String, Option<String>>,
    own: OwnRecord,
    last_ms: i64,
    last: Option<String>,
    linear: bool,
}

impl Gather {
    fn take(&mut self, stored: &StoredEnvelope<'_>) {
        let in_file = self.migrated.take(stored);
        self.linear = self.migrated.mark.as_ref().is_some_and(|mark| mark.report.version == 1);
        if in_file {
            self.take_from_file(stored);
        } else {
            self.last_ms = self.last_ms.max(stored.envelope.at_ms);
            self.take_since(&decoded(&stored.envelope));
        }
        if let Some(id) = &stored.envelope.id {
            self.last = Some(id.to_string());
        }
    }

    fn take_from_file(&mut self, stored: &StoredEnvelope<'_>) {
        let record = &stored.envelope;
        if record.kind == "meta"
            && let Record::Meta(change) = decoded(record).known()
        {
            self.own.migrated(change);
        }
        let Some(line) = source_line_of(&record.kind, &record.payload) else { return };
        if line.what != "sqlite_meta" {
            self.file_content.add(&line.bytes, line.what.is_empty());
        }
        let Some(id) = &stored.envelope.id else { return };
        self.last_ms = self.last_ms.max(stored.envelope.at_ms);
        let text = std::str::from_utf8(&line.bytes).unwrap_or_default();
        let named = id_in(text);
        if named.as_deref() != Some(id) {
            self.renamed.insert(id.to_string(), named);
        }
    }

    fn take_since(&mut self, record: &Record) {
        match record.known() {
            Record::Entry(entry) => self.take_entry(entry),
            Record::Meta(change) => self.own.change(change),
            Record::Revision(revision) if self.ids.contains(revision.entry_id.as_str()) => {}
            Record::Revision(_) => self.lose(LostKind::Revision),
            Record::Removed(_) => self.lose(LostKind::Removal),
            Record::Loop(_) => self.lose(LostKind::LoopEvent),
            Record::Leaf(_) | Record::Streaming(_) | Record::Tombstone | Record::Restored => {}
            Record::Unknown(stored) if stored.kind == kind::STREAM => {}
            Record::Document(_) | Record::Unknown(_) | Record::Newer { .. } => {
                self.lose(LostKind::Unknown);
            }
        }
    }

    fn take_entry(&mut self, entry: &Entry) {
        self.ids.insert(entry.id.to_string());
        let parent = entry.parent_id.as_ref().map(EntryId::as_str);
        if self.linear {
            if parent != self.last.as_deref() {
                self.lose(LostKind::Branch);
            }
            if let Some(Bookkeeping::Label(_)) = entry.bookkeeping() {
                self.lose(LostKind::Label);
            }
        } else if parent.is_some_and(|parent| self.renamed.get(parent) == Some(&None)) {
            self.lose(LostKind::Unreachable);
        }
    }

    fn lose_meta(&mut self) {
        let changed = self.own.lost();
        if changed > 0 {
            self.lost.insert(LostKind::Meta, changed);
        }
    }

    fn lose(&mut self, kind: LostKind) {
        *self.lost.entry(kind).or_default() += 1;
    }
}
