//! The V1 file that a rollback returns to: what of it stays, what is added, and whether it is right.

use std::collections::HashSet;

use bough_log::format::Verification;
use bough_platform::{Access, File};

use super::since::{Since, line_key};
use crate::error::{MigrateError, Result};
use crate::limits::CHUNK_BYTES;
use crate::v1::{
    Content, FindingKind, Line, Lines, Mapper, Snapshot, V1File, V1Format, V1Report, Want,
    digest_of_prefix, fallback_id,
};

/// Gives out lines, one after another, to whoever it is called with.
pub(crate) type EachLine<'a> = dyn Fn(&mut dyn FnMut(&str) -> Result<()>) -> Result<()> + 'a;

/// What of the file stays as it is.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Lines, or rows of a database.
    lines: u64,
    /// Bytes, for a file of lines.
    bytes: u64,
    survey: Survey,
    /// Lines of ours that are in what stays, from an attempt before.
    present: HashSet<String>,
    /// Whether the file must be written at all when nothing is added: an attempt before left more.
    trim: bool,
}

/// What the first lines of a file come to.
#[derive(Debug, PartialEq, Eq)]
struct Survey {
    session: String,
    content: String,
    report: V1Report,
}

/// Looks at the file and decides what of it stays. Refuses one that is not a continuation of what was
/// migrated, unless `accept_changed`.
pub(crate) fn inspect(
    file: &V1File,
    snapshot: &Snapshot,
    since: &Since,
    accept_changed: bool,
) -> Result<Kept> {
    let known_lines = since.mark.report.lines;
    let intact = is_intact(file, snapshot, since, known_lines)?;
    let mut rest = Rest::default();
    let all = each_line(file, &mut |line| {
        let added = line.number > known_lines;
        if added || intact.is_err() {
            rest.take(line, &since.keys, added);
        }
        Ok(())
    })?;
    let changed = match &intact {
        Err(detail) => Some(detail.clone()),
        Ok(()) if rest.foreign > 0 && !since.keys.is_empty() => {
            Some(format!("{} lines were added to it", rest.foreign))
        }
        Ok(()) => None,
    };
    if let Some(detail) = changed.filter(|_| !accept_changed) {
        let address = file.address().to_owned();
        return Err(MigrateError::TargetChanged { address, detail });
    }
    if since.numbered && (intact.is_err() || rest.foreign > 0) {
        let reason = format!(
            "{} has other lines than it had, and a compaction would name one of them by its number; \
             export the session instead",
            file.address()
        );
        return Err(MigrateError::NotRepresentable { reason });
    }
    // Lines of ours from an attempt that was cut short are made anew; those of others stay.
    let keep_all = intact.is_err() || rest.foreign > 0;
    let (lines, bytes) = if keep_all { all } else { (known_lines.min(all.0), snapshot.len) };
    let survey = survey(file, lines)?;
    let present = if keep_all { rest.ours } else { HashSet::new() };
    Ok(Kept { lines, bytes, survey, present, trim: lines < all.0 })
}

/// Whether the file still begins with what was migrated; if not, why.
fn is_intact(
    file: &V1File,
    snapshot: &Snapshot,
    since: &Since,
    known_lines: u64,
) -> Result<std::result::Result<(), String>> {
    let changed = |detail: &str| Ok(Err(detail.to_owned()));
    match file.format() {
        V1Format::JsonlV3 => {
            let open = file.open(Access::Read)?;
            if open.len()? < snapshot.len {
                return changed("it is shorter than it was");
            }
            if digest_of_prefix(&*open, snapshot.len)? != *snapshot {
                return changed("it was written anew");
            }
        }
        V1Format::SqliteV1 => {
            if survey(file, known_lines)?.content != since.file_content.hex() {
                return changed("its rows are not those that were migrated");
            }
        }
    }
    Ok(Ok(()))
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

/// Visits the lines of a file, or the rows of a database; says how many lines and bytes there are.
fn each_line(file: &V1File, visit: &mut dyn FnMut(&Line<'_>) -> Result<()>) -> Result<(u64, u64)> {
    let mut count = 0;
    match file.format() {
        V1Format::JsonlV3 => {
            let open = file.open(Access::Read)?;
            let mut lines = Lines::new(&*open)?;
            while let Some(line) = lines.next_line()? {
                count = line.number;
                visit(&line)?;
            }
            Ok((count, lines.end()))
        }
        V1Format::SqliteV1 => {
            let (session, snapshot) = file.open_database()?;
            session.rows(&mut |number, text| {
                count = number;
                visit(&Line { number, content: Content::Bytes(text.as_bytes()), ended: true })
            })?;
            Ok((count, snapshot.len))
        }
    }
}

fn survey(file: &V1File, lines: u64) -> Result<Survey> {
    let mut mapper = Mapper::new(file.name(), Want::Facts);
    each_line(file, &mut |line| {
        if line.number <= lines {
            mapper.line(line);
        }
        Ok(())
    })?;
    let (mapped, _) = mapper.finish(&fallback_id(file.address()));
    Ok(Survey {
        session: mapped.session_id.to_string(),
        content: mapped.content.hex(),
        report: mapped.report,
    })
}

impl Kept {
    /// Puts the file that stays and the lines that are added in the file's place; says how many were
    /// added.
    pub(crate) fn write(&self, file: &V1File, each: &EachLine<'_>) -> Result<u64> {
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
            return Ok(0);
        }
        match file.format() {
            V1Format::JsonlV3 => self.write_lines(file, &each_new)?,
            V1Format::SqliteV1 => self.write_rows(file, &each_new)?,
        }
        Ok(added)
    }

    fn write_lines(&self, file: &V1File, each_new: &EachLine<'_>) -> Result<()> {
        let old = file.open(Access::Read)?;
        file.replace(&mut |new| {
            let mut out = Appender { file: new, at: 0, buffer: Vec::new() };
            out.copy(&*old, self.bytes)?;
            each_new(&mut |line| out.line(line))?;
            out.flush()
        })
    }

    fn write_rows(&self, file: &V1File, each_new: &EachLine<'_>) -> Result<()> {
        let (session, _) = file.open_database()?;
        session.keep_rows(self.lines)?;
        each_new(&mut |line| Ok(session.push(line)?))?;
        session.count_messages()?;
        let bytes = session.bytes()?;
        file.replace(&mut |new| Ok(new.write_at(0, &bytes)?))
    }

    /// Holds the file against what it must be now.
    pub(crate) fn verify(&self, file: &V1File, added: u64) -> Result<(Verification, Snapshot)> {
        let prefix = survey(file, self.lines)?;
        let whole = survey(file, u64::MAX)?;
        let links = |report: &V1Report| {
            [
                FindingKind::DuplicateId,
                FindingKind::ParentMissing,
                FindingKind::ParentLater,
                FindingKind::ParentCycle,
                FindingKind::NotJson,
            ]
            .map(|kind| report.count(kind))
        };
        // A torn tail counts as a line that is not JSON once a line follows it.
        let torn = self.survey.report.count(FindingKind::TornTail);
        let before: u64 = links(&self.survey.report).iter().sum::<u64>() + torn;
        let after: u64 = links(&whole.report).iter().sum();
        let verification = Verification {
            entry_count_match: whole.report.entries == self.survey.report.entries + added,
            hash_chain_match: prefix.content == self.survey.content,
            index_consistent: whole.session == self.survey.session && after <= before,
        };
        Ok((verification, file.snapshot()?))
    }
}

/// Writes a file in large pieces.
struct Appender<'a> {
    file: &'a dyn File,
    at: u64,
    buffer: Vec<u8>,
}

impl Appender<'_> {
    fn copy(&mut self, from: &dyn File, len: u64) -> Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut last = b'\n';
        while self.at < len {
            let wanted = usize::try_from(len - self.at).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let piece = chunk.get_mut(..wanted).unwrap_or_default();
            let read = from.read_at(self.at, piece)?;
            let piece = piece.get(..read).unwrap_or_default();
            let Some(end) = piece.last() else {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            };
            last = *end;
            self.file.write_at(self.at, piece)?;
            self.at += read as u64;
        }
        if last != b'\n' {
            self.buffer.push(b'\n');
        }
        Ok(())
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
