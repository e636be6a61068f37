//! The V1 file that a rollback returns to: what of it stays, what is added, and whether it is right.

use std::collections::HashSet;

use bough_platform::{Access, Clock, File};
use bough_store::origin::Verification;

use super::since::{Since, line_key};
use crate::error::{MigrateError, Result};
use crate::limits::{CHUNK_BYTES, LATE_WRITERS_POLL, LATE_WRITERS_WAIT};
use crate::v1::{Content, Line, Lines, Mapper, Snapshot, Tally, V1File, V1Format, Want};

/// Passes lines, one after another, to its argument.
pub(crate) type EachLine<'a> = dyn Fn(&mut dyn FnMut(&str) -> Result<()>) -> Result<()> + 'a;

/// What of the file stays as it is.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Lines, or rows of a database.
    lines: u64,
    /// Bytes, for a file of lines.
    bytes: u64,
    /// Bytes of the file when it was inspected.
    inspected: u64,
    tally: Tally,
    /// Lines of ours that are in what stays, from an attempt before.
    present: HashSet<String>,
    /// Whether the file must be written at all when nothing is added: an attempt before left more.
    trim: bool,
    accept_changed: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Lines that the file got.
    pub(crate) added: u64,
    /// The file that was replaced, as long as another program may still be writing to it.
    replaced: Option<Replaced>,
}

/// A file that another one took the place of. A program that opened it before may append to it after.
#[derive(Debug)]
struct Replaced {
    old: Box<dyn File>,
    /// How much of it is in the new file.
    copied: u64,
}

/// Looks at the file and decides what of it stays. Refuses one that is not a continuation of what was
/// migrated, unless `accept_changed`.
pub(crate) fn inspect(
    file: &V1File,
    snapshot: &Snapshot,
    since: &Since,
    accept_changed: bool,
) -> Result<Kept> {
    let looked = look_through(file, snapshot, since)?;
    let Looked { intact, rest, .. } = &looked;
    let changed = match intact {
        Err(detail) => Some(detail.clone()),
        Ok(()) if rest.foreign > 0 && !since.keys.is_empty() => {
            let (count, lines) =
                (rest.foreign, if rest.foreign == 1 { "line was" } else { "lines were" });
            Some(format!("{count} {lines} added to it"))
        }
        Ok(()) => None,
    };
    if let Some(detail) = changed.filter(|_| !accept_changed) {
        return Err(target_changed(file, detail));
    }
    if since.numbered && (intact.is_err() || rest.foreign > 0) {
        let reason = format!(
            "{} has other lines than it had, and a compaction would name one of them by its number; \
             export the session instead",
            file.address()
        );
        return Err(MigrateError::NotRepresentable { reason });
    }
    Ok(looked.kept(snapshot, since.mark.report.lines, accept_changed))
}

fn target_changed(file: &V1File, detail: String) -> MigrateError {
    MigrateError::TargetChanged { address: file.address().to_owned(), detail }
}

/// What one reading of the file gave.
struct Looked {
    /// Whether the file still begins with what was migrated; if not, why.
    intact: std::result::Result<(), String>,
    rest: Rest,
    /// The lines that were migrated.
    migrated: Tally,
    all: Tally,
    lines: u64,
    bytes: u64,
}

impl Looked {
    fn kept(self, snapshot: &Snapshot, known_lines: u64, accept_changed: bool) -> Kept {
        // Lines of ours from an attempt that was cut short are made anew; those of others stay.
        let keep_all = self.intact.is_err() || self.rest.foreign > 0;
        let kept = if keep_all {
            (self.lines, self.bytes, self.all, self.rest.ours)
        } else {
            (known_lines.min(self.lines), snapshot.len, self.migrated, HashSet::new())
        };
        let (lines, bytes, tally, present) = kept;
        let trim = lines < self.lines;
        Kept { lines, bytes, inspected: self.bytes, tally, present, trim, accept_changed }
    }
}

fn look_through(file: &V1File, snapshot: &Snapshot, since: &Since) -> Result<Looked> {
    let known_lines = since.mark.report.lines;
    let mut mapper = Mapper::new(file.name(), Want::Facts);
    let mut rest = Rest::default();
    let mut migrated = None;
    let read = each_line(file, snapshot.len, &mut |line| {
        if line.number == known_lines + 1 {
            migrated = Some(mapper.tally());
        }
        mapper.line(line);
        if line.number > known_lines {
            rest.take(line, &since.keys, true);
        }
        Ok(())
    })?;
    let all = mapper.tally();
    let migrated = migrated.unwrap_or_else(|| all.clone());
    let intact = match file.format() {
        V1Format::JsonlV3 if read.bytes < snapshot.len => Err("it is shorter than it was"),
        V1Format::JsonlV3 if read.beginning.as_ref() != Some(snapshot) => {
            Err("it was written anew")
        }
        V1Format::SqliteV1 if migrated.content != since.file_content.hex() => {
            Err("its rows are not those that were migrated")
        }
        _ => Ok(()),
    };
    let intact = intact.map_err(ToOwned::to_owned);
    if intact.is_err() {
        // Another program wrote it: our lines may be anywhere.
        rest.ours.extend(our_lines(file, since, known_lines)?);
    }
    Ok(Looked { intact, rest, migrated, all, lines: read.lines, bytes: read.bytes })
}

/// Lines of ours among those that were there at the migration.
fn our_lines(file: &V1File, since: &Since, known_lines: u64) -> Result<HashSet<String>> {
    let mut rest = Rest::default();
    each_line(file, 0, &mut |line| {
        if line.number <= known_lines {
            rest.take(line, &since.keys, false);
        }
        Ok(())
    })?;
    Ok(rest.ours)
}

/// The lines after what was migrated.
#[derive(Debug, Default)]
struct Rest {
    ours: HashSet<String>,
    foreign: u64,
}

impl Rest {
    fn take(&mut self, line: &Line<'_>, keys: &HashSet<String>, added: bool) {
        let Content::Bytes(bytes) = line.content else { return };
        let text = std::str::from_utf8(bytes).unwrap_or("?").trim();
        if text.is_empty() {
            return;
        }
        let key = line_key(text);
        if keys.contains(&key) {
            self.ours.insert(key);
        } else {
            self.foreign += u64::from(added);
        }
    }
}

/// How much was read.
struct Read {
    lines: u64,
    bytes: u64,
    /// The first bytes of a file of lines, as many as were asked for.
    beginning: Option<Snapshot>,
    snapshot: Snapshot,
}

/// Visits the lines of a file, or the rows of a database. A line of the file ends after the first `beginning` bytes.
fn each_line(
    file: &V1File,
    beginning: u64,
    visit: &mut dyn FnMut(&Line<'_>) -> Result<()>,
) -> Result<Read> {
    let mut count = 0;
    match file.format() {
        V1Format::JsonlV3 => {
            let open = file.open(Access::Read)?;
            let mut lines = Lines::stopping_at(&*open, beginning)?;
            while let Some(line) = lines.next_line()? {
                count = line.number;
                visit(&line)?;
            }
            let (bytes, snapshot) = (lines.end(), lines.snapshot());
            Ok(Read { lines: count, bytes, beginning: lines.beginning().cloned(), snapshot })
        }
        V1Format::SqliteV1 => {
            let (session, snapshot) = file.open_database()?;
            session.rows(&mut |number, text| {
                count = number;
                visit(&Line { number, content: Content::Bytes(text.as_bytes()), ended: true })
            })?;
            Ok(Read { lines: count, bytes: snapshot.len, beginning: None, snapshot })
        }
    }
}

impl Kept {
    /// Puts the file that stays and the lines that are added in the file's place.
    pub(crate) fn write(&self, file: &V1File, each: &EachLine<'_>) -> Result<Written> {
        let mut added = 0;
        let each_new = |visit: &mut dyn FnMut(&str) -> Result<()>| {
            each(&mut |line| {
                if self.present.contains(&line_key(line)) { Ok(()) } else { visit(line) }
            })
        };
        each_new(&mut |_| {
            added += 1;
            Ok(())
        })?;
        if added == 0 && !self.trim {
            return Ok(Written::default());
        }
        let replaced = match file.format() {
            V1Format::JsonlV3 => Some(self.write_lines(file, &each_new)?),
            V1Format::SqliteV1 => {
                self.write_rows(file, &each_new)?;
                None
            }
        };
        Ok(Written { added, replaced })
    }

    fn write_lines(&self, file: &V1File, each_new: &EachLine<'_>) -> Result<Replaced> {
        let old = file.open(Access::Read)?;
        let mut copied = self.inspected;
        file.replace(&mut |new| {
            let mut out = Appender { file: new, at: 0, buffer: Vec::new() };
            out.copy(&*old, 0, self.bytes)?;
            out.end_line();
            each_new(&mut |line| out.line(line))?;
            out.flush()?;
            new.sync()?;
            // pi may have appended since the inspection.
            self.check_same(file, &*old)?;
            if old.len()? > copied && !self.accept_changed {
                return Err(target_changed(file, "lines were added to it just now".to_owned()));
            }
            let late = whole_lines(late_bytes(&*old, copied)?);
            if !late.is_empty() {
                copied += late.len() as u64;
                out.buffer.extend(late);
                out.flush()?;
                new.sync()?;
            }
            Ok(true)
        })?;
        let mut replaced = Replaced { old, copied };
        replaced.bring_over_whole_lines(file)?;
        Ok(replaced)
    }

    /// Refuses a file that another program replaced or cut since it was inspected.
    fn check_same(&self, file: &V1File, old: &dyn File) -> Result<()> {
        let named = file.open(Access::Read)?;
        if named.len()? >= self.inspected && old.len()? >= self.inspected {
            let from = self.inspected.saturating_sub(CHUNK_BYTES as u64);
            let piece = |file: &dyn File| -> Result<Vec<u8>> {
                let len = usize::try_from(self.inspected - from).unwrap_or_default();
                let mut bytes = vec![0; len];
                file.read_at(from, &mut bytes)?;
                Ok(bytes)
            };
            if piece(&*named)? == piece(old)? {
                return Ok(());
            }
        }
        Err(target_changed(file, "it was written anew just now".to_owned()))
    }

    fn write_rows(&self, file: &V1File, each_new: &EachLine<'_>) -> Result<()> {
        let (session, snapshot) = file.open_database()?;
        session.keep_rows(self.lines)?;
        each_new(&mut |line| Ok(session.push(line)?))?;
        session.count_messages()?;
        if file.replace_if_unchanged(&snapshot, &session.bytes()?)? {
            return Ok(());
        }
        Err(target_changed(file, "rows were added to it just now".to_owned()))
    }

    /// Holds the file against what it must be now. Lines that pi appended behind ours are not looked at.
    pub(crate) fn verify(&self, file: &V1File, added: u64) -> Result<(Verification, Snapshot)> {
        let mut mapper = Mapper::new(file.name(), Want::Facts);
        let mut kept = None;
        let read = each_line(file, 0, &mut |line| {
            if line.number == self.lines + 1 {
                kept = Some(mapper.tally());
            }
            if line.number <= self.lines + added {
                mapper.line(line);
            }
            Ok(())
        })?;
        let whole = mapper.tally();
        let content = kept.as_ref().map_or(&whole.content, |kept| &kept.content);
        // A torn tail counts as a line that is not JSON once a line follows it.
        let broken_links = self.tally.broken_links + self.tally.torn;
        let session = |tally: &Tally| tally.session.clone();
        let verification = Verification {
            entry_count_match: whole.entries == self.tally.entries + added,
            hash_chain_match: *content == self.tally.content,
            index_consistent: session(&whole) == session(&self.tally)
                && whole.broken_links <= broken_links,
        };
        Ok((verification, read.snapshot))
    }
}

impl Written {
    /// Brings over what another program appends to the file that was replaced, until none has that file open any more.
    /// The answer is whether one still has it open after a long wait.
    pub(crate) fn bring_over_late_lines(
        &mut self,
        file: &V1File,
        clock: &dyn Clock,
    ) -> Result<bool> {
        let Some(replaced) = &mut self.replaced else { return Ok(false) };
        let began = clock.monotonic();
        // The program opens the file by its name, so it cannot come to the old one any more.
        while replaced.old.has_other_writers()? {
            replaced.bring_over_whole_lines(file)?;
            if clock.monotonic().saturating_sub(began) >= LATE_WRITERS_WAIT {
                return Ok(true);
            }
            clock.sleep(LATE_WRITERS_POLL);
        }
        let rest = late_bytes(&*replaced.old, replaced.copied)?;
        replaced.bring_over(file, &rest)?;
        Ok(false)
    }
}

impl Replaced {
    /// What has no line break yet may still be growing.
    fn bring_over_whole_lines(&mut self, file: &V1File) -> Result<()> {
        let lines = whole_lines(late_bytes(&*self.old, self.copied)?);
        self.bring_over(file, &lines)
    }

    fn bring_over(&mut self, file: &V1File, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let new = file.open(Access::Append)?;
        new.append(bytes)?;
        new.sync()?;
        self.copied += bytes.len() as u64;
        Ok(())
    }
}

/// What is in a file behind its first bytes.
fn late_bytes(file: &dyn File, from: u64) -> Result<Vec<u8>> {
    let len = file.len()?.saturating_sub(from);
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    let read = file.read_at(from, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}

fn whole_lines(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    bytes.truncate(end);
    bytes
}

/// Writes a file in large pieces.
struct Appender<'a> {
    file: &'a dyn File,
    at: u64,
    buffer: Vec<u8>,
}

impl Appender<'_> {
    fn copy(&mut self, from: &dyn File, start: u64, end: u64) -> Result<()> {
        let mut at = start;
        while at < end {
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            self.buffer.resize(wanted, 0);
            let read = from.read_at(at, &mut self.buffer)?;
            self.buffer.truncate(read);
            if read == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
            at += read as u64;
            if at < end {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// A last line without a line break must not swallow the next one.
    fn end_line(&mut self) {
        if self.buffer.last().is_some_and(|last| *last != b'\n') {
            self.buffer.push(b'\n');
        }
    }

    fn line(&mut self, line: &str) -> Result<()> {
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
        if self.buffer.len() >= CHUNK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(self.at, &self.buffer)?;
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}
