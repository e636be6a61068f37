//! A V1 file as the live store of its session: read as pi reads it, appended to as pi appends, but with a
//! lock among our own processes and a sync before the answer.

use bough_platform::{Access, File};
use bough_record::Envelope;
use bough_session::codec;
use bough_session::{EntryId, NewRecord, SessionId, SessionState};

use super::file::{V1File, V1Format};
use super::header::V1Header;
use super::line_header::{ParsedLine, parse_line};
use super::lines::{Content, Line, Lines, Snapshot};
use super::map::{Mapper, Want};
use super::report::V1Report;
use crate::error::{MigrateError, Result};
use crate::limits::{BATCH_BYTES, BATCH_RECORDS};

/// How much of the beginning, and of the end of what was read, is kept to see whether another program wrote the file
/// anew.
const FINGERPRINT_BYTES: u64 = 4096;

/// Gets each record, and where in the file its line begins; for a database, the number of its row.
pub(super) type Visit<'a> = dyn FnMut(u64, NewRecord) + 'a;

/// A session that is served from its V1 file.
#[derive(Debug)]
pub struct LiveV1 {
    pub(super) file: V1File,
    session_id: SessionId,
    pub(super) mapper: Mapper,
    state: SessionState,
    seq: u64,
    /// The last entry of the file: the leaf.
    pub(super) last: Option<EntryId>,
    read_to: u64,
    /// The last line that was taken had no line break yet.
    unended: bool,
    beginning: Fingerprint,
    ending: Fingerprint,
    database: Option<Snapshot>,
}

/// Bytes of a file as they were when they were read.
#[derive(Debug, Default)]
struct Fingerprint {
    at: u64,
    bytes: Vec<u8>,
}

impl Fingerprint {
    fn take(file: &dyn File, from: u64, to: u64) -> Result<Self> {
        let mut bytes = vec![0; usize::try_from(to - from).unwrap_or_default()];
        let read = file.read_at(from, &mut bytes)?;
        bytes.truncate(read);
        Ok(Self { at: from, bytes })
    }

    fn fits(&self, file: &dyn File) -> Result<bool> {
        let end = self.at + self.bytes.len() as u64;
        Ok(Self::take(file, self.at, end)?.bytes == self.bytes)
    }
}

impl LiveV1 {
    /// Reads the file.
    pub fn open(file: V1File) -> Result<Self> {
        let mut live = Self::unread(file);
        live.catch_up(&mut |_, _| {})?;
        live.require_session()?;
        Ok(live)
    }

    /// A file that nothing was read of yet.
    pub(crate) fn unread(file: V1File) -> Self {
        let unknown = SessionId::from_stored(fallback_id(file.address()));
        Self {
            mapper: Mapper::new(file.name(), Want::Records),
            state: SessionState::new(unknown.clone()),
            session_id: unknown,
            file,
            seq: 0,
            last: None,
            read_to: 0,
            unended: false,
            beginning: Fingerprint::default(),
            ending: Fingerprint::default(),
            database: None,
        }
    }

    /// Refuses a file in which no line was JSON, as far as it was read.
    pub(crate) fn require_session(&self) -> Result<()> {
        if self.seq > 0 {
            return Ok(());
        }
        Err(MigrateError::NotASession {
            address: self.file.address().to_owned(),
            reason: "no line of it is JSON".to_owned(),
        })
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
        self.mapper.placer().contains(entry)
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
        let anew = self.restart_if_rewritten(&mut |_, new| visit(new))?;
        self.catch_up(&mut |_, new| visit(new))?;
        Ok(anew)
    }

    /// Begins again where another program wrote the file anew; `visit` gets the first records of it. While the file has
    /// no session in it, as in the middle of being rewritten, what was read before is kept and the answer is an error.
    pub(crate) fn restart_if_rewritten(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        if !self.was_rewritten()? {
            return Ok(false);
        }
        let mut anew = Self::unread(self.file.clone());
        anew.read_on(visit)?;
        anew.require_session()?;
        *self = anew;
        Ok(true)
    }

    pub(super) fn was_rewritten(&self) -> Result<bool> {
        if let Some(known) = &self.database {
            return Ok(self.file.snapshot()? != *known && self.file.len()? < Some(known.len));
        }
        let file = self.file.open(Access::Read)?;
        Ok(file.len()? < self.read_to
            || !self.beginning.fits(&*file)?
            || !self.ending.fits(&*file)?)
    }

    pub(super) fn catch_up(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        while !self.read_on(visit)? {}
        Ok(())
    }

    /// Reads the next records, as many as a batch may have; says whether that was the end of the file.
    pub(crate) fn read_on(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        match self.file.format() {
            V1Format::JsonlV3 => self.read_lines(visit),
            V1Format::SqliteV1 => self.read_rows(visit).map(|()| true),
        }
    }

    /// The same for a caller that has no place to give them to yet.
    pub(crate) fn read_batch(mut self) -> Result<(Self, Vec<NewRecord>, bool)> {
        let mut news = Vec::new();
        let is_end = self.read_on(&mut |_, new| news.push(new))?;
        Ok((self, news, is_end))
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
            self.last = Some(entry.id.clone());
        }
        new
    }

    fn give_out(&mut self, at: u64, visit: &mut Visit<'_>) -> usize {
        let records = self.mapper.take();
        let count = records.len();
        for record in records {
            visit(at, self.take(record));
        }
        count
    }

    fn read_lines(&mut self, visit: &mut Visit<'_>) -> Result<bool> {
        let file = self.file.open(Access::Read)?;
        if self.unended && self.read_to < file.len()? {
            let mut next = [0];
            file.read_at(self.read_to, &mut next)?;
            self.read_to += u64::from(next == *b"\n");
            self.unended = false;
        }
        let from = self.read_to;
        let mut lines = Lines::resume(&*file, from, self.mapper.report().lines)?;
        let mut records = 0;
        let mut is_end = true;
        while let Some(line) = lines.next_line()? {
            // A last line that is not whole may still be on its way: not yet.
            if !line.ended && !is_whole(&line) {
                break;
            }
            let at = self.read_to;
            self.mapper.line(&line);
            self.unended = !line.ended;
            self.read_to = lines.position();
            records += self.give_out(at, visit);
            if records >= BATCH_RECORDS || self.read_to - from >= BATCH_BYTES as u64 {
                is_end = false;
                break;
            }
        }
        self.remember_edges(&*file)?;
        Ok(is_end)
    }

    fn remember_edges(&mut self, file: &dyn File) -> Result<()> {
        if self.beginning.bytes.is_empty() {
            self.beginning = Fingerprint::take(file, 0, self.read_to.min(FINGERPRINT_BYTES))?;
        }
        let known = self.ending.at + self.ending.bytes.len() as u64;
        if known != self.read_to {
            let from = self.read_to.saturating_sub(FINGERPRINT_BYTES);
            self.ending = Fingerprint::take(file, from, self.read_to)?;
        }
        Ok(())
    }

    fn read_rows(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        let (session, snapshot) = self.file.open_database()?;
        if self.database.as_ref() == Some(&snapshot) {
            return Ok(());
        }
        let known = self.mapper.report().lines;
        session.rows(&mut |number, text| {
            if number > known {
                let content = Content::Bytes(text.as_bytes());
                self.mapper.line(&Line { number, content, ended: true });
                self.give_out(number, visit);
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
        Content::Bytes(bytes) => std::str::from_utf8(bytes)
            .is_ok_and(|text| !matches!(parse_line(text.trim()), ParsedLine::NotJson)),
    }
}
