//! A V1 file as the live store of its session: read as pi reads it, appended to as pi appends, but with a
//! lock among our own processes and a sync before the answer.

use std::collections::{HashMap, HashSet};

use bough_platform::{Access, File};
use bough_record::Envelope;
use bough_session::codec;
use bough_session::{Bookkeeping, Entry, EntryId, NewRecord, SessionId, SessionState};

use super::file::{V1File, V1Format};
use super::glance::{Seen, look};
use super::header::V1Header;
use super::lines::{Content, Line, Lines, Snapshot};
use super::map::{Mapper, Want};
use super::report::V1Report;
use crate::error::{MigrateError, Result};
use crate::pi_line;

/// How much of the beginning of a file is kept to see whether another program wrote it anew.
const BEGINNING_BYTES: usize = 4096;

/// A session that is served from its V1 file.
#[derive(Debug)]
pub struct LiveV1 {
    file: V1File,
    session_id: SessionId,
    mapper: Mapper,
    state: SessionState,
    seq: u64,
    /// Entries in the order of the file: the newest is the leaf.
    entries: HashSet<EntryId>,
    last: Option<EntryId>,
    read_to: u64,
    /// The last line that was taken had no line break yet.
    unended: bool,
    beginning: Vec<u8>,
    database: Option<Snapshot>,
}

impl LiveV1 {
    /// Reads the file.
    pub fn open(file: V1File) -> Result<Self> {
        let unknown = SessionId::from_stored(fallback_id(file.address()));
        let mut live = Self {
            mapper: Mapper::new(file.name(), Want::Records),
            state: SessionState::new(unknown.clone()),
            session_id: unknown,
            file,
            seq: 0,
            entries: HashSet::new(),
            last: None,
            read_to: 0,
            unended: false,
            beginning: Vec::new(),
            database: None,
        };
        live.catch_up(&mut |_| {})?;
        if live.seq == 0 {
            return Err(MigrateError::NotASession {
                address: live.file.address().to_owned(),
                reason: "no line of it is JSON".to_owned(),
            });
        }
        Ok(live)
    }

    /// The session's id.
    #[must_use]
    pub fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &V1File {
        &self.file
    }

    /// What the header says, where there is one.
    #[must_use]
    pub fn header(&self) -> Option<&V1Header> {
        self.mapper.header()
    }

    /// What is not as it should be, as of the last reading. Why entries lost their parents is known only
    /// to a plan of the whole file.
    #[must_use]
    pub fn report(&self) -> &V1Report {
        self.mapper.report()
    }

    /// The fold over what the file says.
    #[must_use]
    pub fn state(&self) -> &SessionState {
        &self.state
    }

    /// The entry that the conversation goes on from: the last of the file, since V1 stores no other.
    #[must_use]
    pub fn leaf(&self) -> Option<&EntryId> {
        self.last.as_ref()
    }

    /// Whether an entry is in the file.
    #[must_use]
    pub fn contains(&self, entry: &EntryId) -> bool {
        self.entries.contains(entry)
    }

    /// Every record of the file from its beginning, as the mapping makes them.
    pub fn records(&self, visit: &mut dyn FnMut(NewRecord)) -> Result<()> {
        let mut mapper = Mapper::new(self.file.name(), Want::Records);
        self.file.feed(&mut mapper, &mut |mapper, _, _| {
            mapper.take().into_iter().for_each(|record| visit(decoded(record)));
            Ok(())
        })?;
        Ok(())
    }

    /// Takes what other programs appended since; `visit` gets the new records. A file that was written
    /// anew is read from its beginning, and the answer says so.
    pub fn refresh(&mut self, visit: &mut dyn FnMut(NewRecord)) -> Result<bool> {
        let anew = self.was_rewritten()?;
        if anew {
            *self = Self::open(self.file.clone())?;
            self.records(visit)?;
        } else {
            self.catch_up(visit)?;
        }
        Ok(anew)
    }

    /// Appends an entry as a line; durable when it returns. The answer is the id under which it is found:
    /// the entry's own, except in a version-1 file, whose lines have none. An entry that is there already
    /// changes nothing.
    pub fn append(&mut self, entry: &Entry) -> Result<EntryId> {
        self.append_all(std::slice::from_ref(entry))?;
        let known = self.contains(&entry.id);
        let id = if known { Some(&entry.id) } else { self.last.as_ref() };
        Ok(id.unwrap_or(&entry.id).clone())
    }

    /// Appends entries in one write; durable when it returns.
    pub fn append_all(&mut self, entries: &[Entry]) -> Result<()> {
        let lock = self.file.lock()?;
        let appended = self.append_locked(entries);
        if let Some(lock) = lock {
            lock.remove()?;
        }
        appended
    }

    fn append_locked(&mut self, entries: &[Entry]) -> Result<()> {
        self.refresh(&mut |_| {})?;
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
        if lines.is_empty() {
            return Ok(());
        }
        match self.file.format() {
            V1Format::JsonlV3 => self.append_lines(&lines)?,
            V1Format::SqliteV1 => self.append_rows(&lines)?,
        }
        self.catch_up(&mut |_| {})
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
                "{} is of version 1 and can only go on from its last entry; migrate it first",
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
        let placer = self.mapper.placer();
        pi_line::version_1_line_of(entry, &|id| {
            let pending = || before.get(id).map(|order| placer.next_index() + order);
            placer.index_of(id).or_else(pending)
        })
    }

    fn append_lines(&mut self, lines: &[String]) -> Result<()> {
        let file = self.file.open(Access::ReadWrite)?;
        let len = file.len()?;
        let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        if len > 0 && !ends_with_break(&*file, len)? {
            // A torn tail must not swallow the new line.
            bytes.push(b'\n');
        }
        for line in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
        }
        file.write_at(len, &bytes)?;
        Ok(file.sync()?)
    }

    fn append_rows(&mut self, lines: &[String]) -> Result<()> {
        let (session, _) = self.file.open_database()?;
        lines.iter().try_for_each(|line| session.push(line))?;
        session.count_messages()?;
        let bytes = session.bytes()?;
        self.file.replace(&mut |file| Ok(file.write_at(0, &bytes)?))
    }

    fn was_rewritten(&self) -> Result<bool> {
        if let Some(known) = &self.database {
            return Ok(self.file.snapshot()? != *known && self.file.len()? < Some(known.len));
        }
        let file = self.file.open(Access::Read)?;
        Ok(file.len()? < self.read_to || beginning(&*file, self.beginning.len())? != self.beginning)
    }

    fn catch_up(&mut self, visit: &mut dyn FnMut(NewRecord)) -> Result<()> {
        match self.file.format() {
            V1Format::JsonlV3 => self.read_lines()?,
            V1Format::SqliteV1 => self.read_rows()?,
        }
        for record in self.mapper.take() {
            visit(self.take(record));
        }
        Ok(())
    }

    fn take(&mut self, record: Envelope<'static>) -> NewRecord {
        let new = decoded(record);
        if self.seq == 0 {
            self.session_id = self.mapper.session_id(&fallback_id(self.file.address()));
            self.state = SessionState::new(self.session_id.clone());
        }
        self.seq += 1;
        self.state.apply(&new.record, self.seq, new.at_ms);
        if let Some(entry) = new.record.as_entry() {
            self.entries.insert(entry.id.clone());
            self.last = Some(entry.id.clone());
        }
        new
    }

    fn read_lines(&mut self) -> Result<()> {
        let file = self.file.open(Access::Read)?;
        if self.unended && self.read_to < file.len()? {
            let mut next = [0];
            file.read_at(self.read_to, &mut next)?;
            self.read_to += u64::from(next == *b"\n");
            self.unended = false;
        }
        let mut lines = Lines::resume(&*file, self.read_to, self.mapper.report().lines)?;
        while let Some(line) = lines.next_line()? {
            // A last line that is not whole may still be on its way: not yet.
            if !line.ended && !is_whole(&line) {
                break;
            }
            self.mapper.line(&line);
            self.unended = !line.ended;
            self.read_to = lines.position();
        }
        if self.beginning.is_empty() {
            let wanted = usize::try_from(self.read_to).unwrap_or(usize::MAX).min(BEGINNING_BYTES);
            self.beginning = beginning(&*file, wanted)?;
        }
        Ok(())
    }

    fn read_rows(&mut self) -> Result<()> {
        let (session, snapshot) = self.file.open_database()?;
        if self.database.as_ref() == Some(&snapshot) {
            return Ok(());
        }
        let known = self.mapper.report().lines;
        session.rows(&mut |number, text| {
            if number > known {
                let content = Content::Bytes(text.as_bytes());
                self.mapper.line(&Line { number, content, ended: true });
            }
            Ok(())
        })?;
        self.database = Some(snapshot);
        Ok(())
    }
}

/// The id of a session that nothing names: always the same for the same file.
pub(crate) fn fallback_id(address: &str) -> String {
    let snapshot = Snapshot::of(address.as_bytes());
    format!("pi-{}", bough_session::hex(snapshot.digest.get(..8).unwrap_or_default()))
}

fn decoded(record: Envelope<'static>) -> NewRecord {
    let at_ms = record.at_ms;
    codec::decode(record).at(at_ms)
}

fn is_whole(line: &Line<'_>) -> bool {
    match line.content {
        Content::TooLong(_) => false,
        Content::Bytes(bytes) => {
            std::str::from_utf8(bytes).is_ok_and(|text| !matches!(look(text.trim()), Seen::NotJson))
        }
    }
}

fn ends_with_break(file: &dyn File, len: u64) -> Result<bool> {
    let mut last = [0];
    file.read_at(len - 1, &mut last)?;
    Ok(last == *b"\n")
}

fn beginning(file: &dyn File, wanted: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; wanted];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
