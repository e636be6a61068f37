//! A V1 file as the live store of its session: read as pi reads it, appended to as pi appends, but with a
//! lock among our own processes and a sync before the answer.

use bough_platform::{Access, File};
use bough_record::Envelope;
use bough_session::text::preview;
use bough_session::{AgentMessage, Entry, EntryId, NewRecord, SessionId, SessionState, codec};

use super::file::{V1File, V1Format};
use super::header::V1Header;
use super::line_header::{ParsedLine, parse_line};
use super::line_record::{Form, Mapped, MappedRecord, record_again};
use super::lines::{Content, Line, Lines, Snapshot};
use super::links::EntryLinker;
use super::map::{Mapper, Want};
use super::report::V1Report;
use crate::error::{MigrateError, Result};
use crate::limits::{BATCH_BYTES, BATCH_RECORDS, CHUNK_BYTES};

/// How much of the beginning, and of the end of what was read, is kept to see whether another program wrote the file
/// anew.
const FINGERPRINT_BYTES: u64 = 4096;

/// Gets each record, in order.
pub(crate) type Visit<'a> = dyn FnMut(Taken) + 'a;

/// A record for a fold, and where it was found: the usual messages come without their content.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) place: LinePlace,
    pub(crate) form: Form,
    pub(crate) new: NewRecord,
}

/// Where a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LinePlace {
    /// Where it begins; for a database, the number of its row.
    pub(crate) at: u64,
    /// Its bytes, without the line break.
    pub(crate) len: u32,
    /// Its number, from 1.
    pub(crate) number: u32,
    /// What its bytes came to, to see whether they are still the same.
    pub(crate) check: u32,
}

impl LinePlace {
    fn of(at: u64, line: &Line<'_>) -> Self {
        let number = u32::try_from(line.number).unwrap_or(u32::MAX);
        match line.content {
            Content::TooLong(_) => Self { at, number, ..Self::default() },
            Content::Bytes(bytes) => {
                let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                Self { at, len, number, check: check_of(bytes) }
            }
        }
    }
}

/// What the bytes of a line come to.
fn check_of(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// A session that is served from its V1 file.
#[derive(Debug)]
pub struct LiveV1 {
    pub(super) file: V1File,
    session_id: SessionId,
    pub(super) mapper: Mapper,
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
        live.catch_up(&mut |_| {})?;
        live.require_session()?;
        Ok(live)
    }

    /// The session that the file holds; the file is read for it.
    pub fn fold(file: V1File) -> Result<SessionState> {
        let mut live = Self::unread(file);
        let mut state = SessionState::new(live.session_id.clone());
        live.catch_up(&mut |taken| {
            state.apply(&taken.new.record, state.seq + 1, taken.new.at_ms);
        })?;
        live.require_session()?;
        state.meta.session_id = live.session_id;
        Ok(state)
    }

    /// A file that nothing was read of yet.
    pub(crate) fn unread(file: V1File) -> Self {
        let unknown = SessionId::from_stored(fallback_id(file.address()));
        let want = match file.format() {
            V1Format::JsonlV3 => Want::Folds,
            // Its records are kept: a row is not read again.
            V1Format::SqliteV1 => Want::Records,
        };
        Self {
            mapper: Mapper::new(file.name(), want),
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

    /// Whether the file is a database, which has to be read whole to see whether it changed.
    pub(crate) fn is_database(&self) -> bool {
        self.file.format() == V1Format::SqliteV1
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

    /// What is not as it should be, as of the last reading. Why entries lost their parents, and what of their content
    /// cannot be shown, is known only to a plan of the whole file.
    #[must_use]
    pub fn report(&self) -> &V1Report {
        self.mapper.report()
    }

    /// How many records the file came to so far.
    pub(crate) fn record_count(&self) -> u64 {
        self.seq
    }

    pub(crate) fn linker(&self) -> &EntryLinker {
        self.mapper.linker()
    }

    /// The entry that the conversation goes on from: the last of the file, since V1 stores no other.
    #[must_use]
    pub fn leaf(&self) -> Option<&EntryId> {
        self.last.as_ref()
    }

    /// Whether an entry is in the file.
    #[must_use]
    pub fn contains(&self, entry: &EntryId) -> bool {
        self.mapper.linker().node_of(entry.as_str()).is_some()
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

    /// Takes what other programs appended since; `visit` gets the new records, messages without their content. A file that was written
    /// anew is read from its beginning, and the answer says so.
    pub fn refresh(&mut self, visit: &mut dyn FnMut(NewRecord)) -> Result<bool> {
        let anew = self.restart_if_rewritten(&mut |taken| visit(taken.new))?;
        self.catch_up(&mut |taken| visit(taken.new))?;
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

    pub(crate) fn catch_up(&mut self, visit: &mut Visit<'_>) -> Result<()> {
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

    /// The record of a line that was read before, made again from the file. `None` where another program has changed
    /// the line since.
    pub(crate) fn record_again(
        &self,
        lines: &mut LineReader<'_>,
        place: &LinePlace,
        form: Form,
        at_ms: i64,
    ) -> Result<Option<NewRecord>> {
        let Some(bytes) = lines.read(place)? else { return Ok(None) };
        let number = u64::from(place.number);
        let again = record_again(form, number, bytes, at_ms, self.mapper.linker());
        Ok(again.map(decoded))
    }

    fn take(&mut self, record: MappedRecord) -> NewRecord {
        let new = match record {
            MappedRecord::Short(new) => new,
            MappedRecord::Stored(record) => decoded(record),
        };
        if !self.mapper.has_preview() && is_previewed(&new) {
            self.mapper.previewed();
        }
        if self.seq == 0 {
            self.session_id = self.mapper.session_id(&fallback_id(self.file.address()));
        }
        self.seq += 1;
        if let Some(entry) = new.record.as_entry() {
            self.last = Some(entry.id.clone());
        }
        new
    }

    fn give_out(&mut self, place: LinePlace, visit: &mut Visit<'_>) -> usize {
        let records = self.mapper.take_mapped();
        let count = records.len();
        for Mapped { record, form } in records {
            visit(Taken { place, form, new: self.take(record) });
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
            let place = LinePlace::of(self.read_to, &line);
            self.mapper.line(&line);
            self.unended = !line.ended;
            self.read_to = lines.position();
            records += self.give_out(place, visit);
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
                let place = LinePlace { at: number, ..LinePlace::default() };
                self.give_out(place, &mut |taken| {
                    visit(Taken { form: taken.form.kept(), ..taken });
                });
            }
            Ok(())
        })?;
        self.database = Some(snapshot);
        Ok(())
    }
}

/// Reads lines of a file that was read before, by their places. Lines near each other are read from the file once.
pub(crate) struct LineReader<'a> {
    file: Option<&'a dyn File>,
    at: u64,
    chunk: Vec<u8>,
}

impl<'a> LineReader<'a> {
    /// Without a file no line can be read.
    pub(crate) fn new(file: Option<&'a dyn File>) -> Self {
        Self { file, at: 0, chunk: Vec::new() }
    }

    /// The bytes of a line; `None` where they are no longer what they were.
    fn read(&mut self, place: &LinePlace) -> Result<Option<&[u8]>> {
        let len = usize::try_from(place.len).unwrap_or(usize::MAX);
        if self.part(place.at, len).is_none()
            && let Some(file) = self.file
        {
            // A walk to the root goes backwards, one to the leaf forwards: the line is in the middle.
            let around = CHUNK_BYTES.saturating_sub(len) / 2;
            self.at = place.at.saturating_sub(around as u64);
            let before = usize::try_from(place.at - self.at).unwrap_or_default();
            self.chunk.resize(before + len + around, 0);
            let read = file.read_at(self.at, &mut self.chunk)?;
            self.chunk.truncate(read);
        }
        let bytes = self.part(place.at, len);
        Ok(bytes.filter(|bytes| check_of(bytes) == place.check))
    }

    fn part(&self, at: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.at)?).ok()?;
        self.chunk.get(from..from.checked_add(len)?)
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

/// Whether a session shows this record as its preview, if it has none yet.
fn is_previewed(new: &NewRecord) -> bool {
    let message = new.record.as_entry().and_then(Entry::message);
    let from_user = message.filter(|message| matches!(**message, AgentMessage::User(_)));
    from_user.is_some_and(|message| !preview(&message.text(), 1).is_empty())
}

fn is_whole(line: &Line<'_>) -> bool {
    match line.content {
        Content::TooLong(_) => false,
        Content::Bytes(bytes) => std::str::from_utf8(bytes)
            .is_ok_and(|text| !matches!(parse_line(text.trim()), ParsedLine::NotJson)),
    }
}
