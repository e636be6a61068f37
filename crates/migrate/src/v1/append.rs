//! Appending to a V1 file that pi may be writing too.
//!
//! No version of pi takes a lock on a session file, so nothing keeps it from writing between any two of our system
//! calls. Three rules lose nothing of either side:
//!
//! - We write with `O_APPEND`, a batch in one call: the operating system puts it behind whatever is there by then.
//! - We look where it landed. Lines of pi before that position are taken in before ours, lines behind it after ours, so
//!   that a reader of this process sees the same order as a reader of the file.
//! - We read it back through the file's name. Where another program replaced the file meanwhile, the batch is
//!   appended to the new one.
//!
//! One thing cannot be kept: a program that writes the whole file from its own memory drops what others appended since
//! it read the file. pi does that once, when it opens a file of version 1 or 2.

use std::collections::HashMap;
use std::ops::Range;

use bough_platform::{Access, File};
use bough_session::{Bookkeeping, Entry, EntryId};

use super::file::V1Format;
use super::live::{LiveV1, Taken};
use crate::error::{MigrateError, Result};
use crate::limits::APPEND_ATTEMPTS_MAX;
use crate::pi_line;

/// What an append found in the file beside its own lines.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    /// Records of lines that others wrote before ours.
    pub(crate) before: Vec<Taken>,
    /// Records of our lines, as the file has them.
    pub(crate) own: Vec<Taken>,
    /// Records of lines that others wrote behind ours.
    pub(crate) after: Vec<Taken>,
    /// Another program wrote the file anew; everything was read again.
    pub(crate) rewritten: bool,
}

/// Where a batch was written: bytes of a file of lines, rows of a database.
struct Written {
    range: Range<u64>,
    /// What must be found there, in a file of lines.
    bytes: Vec<u8>,
}

impl LiveV1 {
    /// Appends an entry as a line; durable when it returns. The answer is the id under which it is found:
    /// the entry's own, except in a version-1 file, whose lines have none. An entry that is there already
    /// changes nothing.
    pub fn append(&mut self, entry: &Entry) -> Result<EntryId> {
        let landed = self.append_entries(std::slice::from_ref(entry))?;
        let found = landed.own.last().filter(|_| !self.contains(&entry.id));
        let found = found.and_then(|taken| taken.new.record.as_entry());
        Ok(found.unwrap_or(entry).id.clone())
    }

    /// Appends entries in one write; durable when it returns.
    pub fn append_all(&mut self, entries: &[Entry]) -> Result<()> {
        self.append_entries(entries).map(drop)
    }

    fn append_entries(&mut self, entries: &[Entry]) -> Result<Landed> {
        let file = self.file.clone();
        file.locked(|| {
            self.refresh(&mut |_| {})?;
            self.append_locked(entries)
        })
    }

    /// Appends entries for a caller that holds the lock and has just refreshed.
    pub(crate) fn append_locked(&mut self, entries: &[Entry]) -> Result<Landed> {
        let mut landed = Landed::default();
        for _ in 0..APPEND_ATTEMPTS_MAX {
            let lines = self.new_lines(entries)?;
            if lines.is_empty() {
                return Ok(landed);
            }
            let written = match self.file.format() {
                V1Format::JsonlV3 => Some(self.write_lines(&lines)?),
                V1Format::SqliteV1 => self.write_rows(&lines)?,
            };
            let Some(written) = written else { continue };
            match self.take_in(&written, &mut landed)? {
                own if own == lines.len() => return Ok(landed),
                0 => {}
                _ => break,
            }
        }
        Err(MigrateError::Contended { address: self.file.address().to_owned() })
    }

    /// The lines of the entries that the file does not have.
    fn new_lines(&self, entries: &[Entry]) -> Result<Vec<String>> {
        let mut last = self.last.clone();
        // With their order in this write.
        let mut added: HashMap<&str, usize> = HashMap::new();
        let mut lines = Vec::new();
        for entry in entries {
            if self.contains(&entry.id) || added.contains_key(entry.id.as_str()) {
                continue;
            }
            let known = |id: &EntryId| self.contains(id) || added.contains_key(id.as_str());
            self.check_parent(entry, last.as_ref(), &known)?;
            lines.push(self.line_of(entry, &added)?);
            added.insert(entry.id.as_str(), added.len());
            last = Some(entry.id.clone());
        }
        Ok(lines)
    }

    fn check_parent(
        &self,
        entry: &Entry,
        last: Option<&EntryId>,
        known: &dyn Fn(&EntryId) -> bool,
    ) -> Result<()> {
        let missing = entry.parent_id.as_ref().filter(|parent| !known(parent));
        let reason = match missing {
            Some(parent) => format!("entry {parent} is not in {}", self.file.address()),
            None if self.mapper.version() < 2 && entry.parent_id.as_ref() != last => format!(
                "{0} is of version 1 and can only go on from its last entry; run bough migrate {0} first",
                self.file.address()
            ),
            None => return Ok(()),
        };
        Err(MigrateError::NotRepresentable { reason })
    }

    /// `before`: what is added in the same write.
    fn line_of(&self, entry: &Entry, before: &HashMap<&str, usize>) -> Result<String> {
        if self.mapper.version() >= 2 {
            let parent = entry.parent_id.as_ref().map(EntryId::as_str);
            return Ok(pi_line::line_of(entry, entry.id.as_str(), parent));
        }
        if let Some(Bookkeeping::Label(_)) = entry.bookkeeping() {
            let reason = format!(
                "{0} is of version 1, whose entries have no ids to label; run bough migrate {0} first",
                self.file.address()
            );
            return Err(MigrateError::NotRepresentable { reason });
        }
        let linker = self.mapper.linker();
        pi_line::version_1_line_of(entry, &|id| {
            let pending = || before.get(id).map(|order| linker.next_index() + order);
            linker.index_of(id).or_else(pending)
        })
    }

    fn write_lines(&self, lines: &[String]) -> Result<Written> {
        let file = self.file.open(Access::Append)?;
        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        // A torn tail must not swallow the first line.
        let torn = !ends_with_break(&*file)?;
        if torn {
            bytes.push(b'\n');
        }
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        let at = file.append(&bytes)?;
        file.sync()?;
        let end = at + bytes.len() as u64;
        if torn {
            bytes.remove(0);
        }
        Ok(Written { range: at + u64::from(torn)..end, bytes })
    }

    /// `None` when another program wrote the database meanwhile: nothing was changed.
    fn write_rows(&self, lines: &[String]) -> Result<Option<Written>> {
        let (session, snapshot) = self.file.open_database()?;
        let mut rows = 0;
        session.rows(&mut |number, _| {
            rows = number;
            Ok(())
        })?;
        lines.iter().try_for_each(|line| session.push(line))?;
        session.count_messages()?;
        let bytes = session.bytes()?;
        let replaced = self.file.replace_if_unchanged(&snapshot, &bytes)?;
        let range = rows + 1..rows + 1 + lines.len() as u64;
        Ok(replaced.then_some(Written { range, bytes: Vec::new() }))
    }

    /// Reads what was written and what others wrote around it; says how many lines of ours are there.
    fn take_in(&mut self, written: &Written, landed: &mut Landed) -> Result<usize> {
        if self.was_rewritten()? || !self.is_there(written)? {
            // A line of version 1 cannot be recognised in another file: it has no id.
            let recognised = self.mapper.version() >= 2;
            *self = Self::open(self.file.clone())?;
            *landed = Landed { rewritten: true, ..Landed::default() };
            return Ok(if recognised { 0 } else { usize::MAX });
        }
        self.catch_up(&mut |taken| {
            if taken.place.at < written.range.start {
                landed.before.push(taken);
            } else if taken.place.at < written.range.end {
                landed.own.push(taken);
            } else {
                landed.after.push(taken);
            }
        })?;
        Ok(landed.own.len())
    }

    fn is_there(&self, written: &Written) -> Result<bool> {
        if written.bytes.is_empty() {
            return Ok(true);
        }
        let file = self.file.open(Access::Read)?;
        let mut found = vec![0; written.bytes.len()];
        let read = file.read_at(written.range.start, &mut found)?;
        Ok(read == found.len() && found == written.bytes)
    }
}

fn ends_with_break(file: &dyn File) -> Result<bool> {
    let len = file.len()?;
    let mut last = *b"\n";
    if len > 0 {
        file.read_at(len - 1, &mut last)?;
    }
    Ok(last == *b"\n")
}
