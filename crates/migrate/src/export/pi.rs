//! A session as a pi file.
//!
//! A session that came from a pi file and was not changed gives back that file: the same header, the same
//! lines in the same order, those that are no entries included. What was added since is written in pi's
//! format. A version-1 file that grew branches, or entries of other systems, is written as version 3,
//! since version 1 has no ids.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;

use bough_session::SessionState;
use bough_session::{Bookkeeping, Entry, EntryBody, EntryId, FORMAT_PI, Record, SessionId};
use bough_store::ReadStore;
use serde_json::{Value, json};

use super::walk::{HiddenEntries, Path, Records, newest};
use super::{ExportOptions, Exported, snapshot};
use crate::error::Result;
use crate::pi_line::{self, LEAF_TYPE};
use crate::v1::{
    CURRENT_VERSION, ParsedLine, SourceLine, SqliteSession, V1_KIND, format_iso, id_in, parse_line,
    source_json, source_line,
};

/// Takes the lines of a file, without their line breaks.
type Sink<'a> = dyn FnMut(&[u8]) -> Result<()> + Send + 'a;

pub(super) async fn export(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let mut write = |line: &[u8]| {
        out.write_all(line)?;
        Ok(out.write_all(b"\n")?)
    };
    lines(store, session, options, &mut write).await
}

/// Writes a whole session as a V1 SQLite database.
pub async fn write_sqlite(
    store: &dyn ReadStore,
    session: &SessionId,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let mut texts = Vec::new();
    let options = ExportOptions::whole(super::ExportFormat::Pi);
    let written = lines(store, session, &options, &mut |line| {
        texts.push(String::from_utf8_lossy(line).into_owned());
        Ok(())
    })
    .await?;
    let state = snapshot(store, session).await?.state;
    let database = SqliteSession::new()?;
    let mut texts = texts.iter();
    if let Some(header) = texts.next() {
        database.set_header(session.as_str(), header)?;
    }
    texts.try_for_each(|line| database.push(line))?;
    database.count_messages()?;
    if let Some(name) = &state.name {
        database.set_meta("name", name)?;
    }
    out.write_all(&database.bytes()?)?;
    Ok(written)
}

async fn lines(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    sink: &mut Sink<'_>,
) -> Result<Exported> {
    let state = snapshot(store, session).await?.state;
    let facts = Facts::read(store, session).await?;
    let file = PiFile { store, session, options, state, facts };
    match &options.leaf {
        Some(leaf) => file.write_branch(leaf, sink).await,
        None => file.write_whole(sink).await,
    }
}

/// What a first reading finds out.
#[derive(Default)]
struct Facts {
    header: Option<String>,
    version: u64,
    /// The record that says where a migration ended; entries after it are ours.
    end_seq: Option<u64>,
    revised: HashSet<EntryId>,
    hidden: HiddenEntries,
    /// Entries of the file whose line gives them another id, or none.
    renamed: HashMap<EntryId, Option<String>>,
    /// The file can be given back as it came: nothing in it needs what its version lacks.
    fits_version: bool,
    last: Option<EntryId>,
}

impl Facts {
    async fn read(store: &dyn ReadStore, session: &SessionId) -> Result<Self> {
        let mut facts = Self { version: CURRENT_VERSION, fits_version: true, ..Self::default() };
        let mut records = Records::new(store, session);
        while let Some(page) = records.next().await? {
            for stored in page {
                facts.take(&stored.record, stored.seq);
            }
        }
        facts.fits_version &= facts.revised.is_empty() || facts.version >= 2;
        Ok(facts)
    }

    fn take(&mut self, record: &Record, seq: u64) {
        match record.known() {
            Record::Revision(revision) => drop(self.revised.insert(revision.entry_id.clone())),
            Record::Entry(entry) => self.take_entry(entry, seq),
            Record::Unknown(stored) if stored.kind == V1_KIND => {
                self.take_line(record, stored, seq)
            }
            _ => {}
        }
    }

    fn take_line(&mut self, record: &Record, stored: &bough_record::Envelope<'_>, seq: u64) {
        match source_line(record) {
            Some(line) if line.what == "header" && self.header.is_none() => {
                let text = String::from_utf8_lossy(&line.bytes).into_owned();
                if let ParsedLine::Object(line_header) = parse_line(&text) {
                    self.version = line_header.version.unwrap_or(1);
                }
                self.header = Some(text);
            }
            None if is_end(stored) => self.end_seq = Some(seq),
            _ => {}
        }
    }

    fn take_entry(&mut self, entry: &Entry, seq: u64) {
        if self.hidden.note(entry) {
            self.fits_version &= self.version >= 2;
            return;
        }
        let from_file = self.is_from_file(entry, seq);
        if self.version < 2 {
            self.fits_version &= from_file && entry.parent_id == self.last;
        } else if from_file {
            let named = source_json(entry).and_then(|json| id_in(&json));
            if named.as_deref() != Some(entry.id.as_str()) {
                self.renamed.insert(entry.id.clone(), named);
            }
        }
        self.last = Some(entry.id.clone());
    }

    /// Whether an entry is a line of the file that the session came from.
    fn is_from_file(&self, entry: &Entry, seq: u64) -> bool {
        let ours = self.end_seq.is_some_and(|end| seq > end);
        self.header.is_some() && !ours && is_untouched_pi(entry)
    }
}

fn is_end(stored: &bough_record::Envelope<'_>) -> bool {
    let payload: Option<Value> = serde_json::from_str(&stored.payload).ok();
    payload.is_some_and(|payload| payload.get("what").and_then(Value::as_str) == Some("end"))
}

fn is_untouched_pi(entry: &Entry) -> bool {
    matches!(
        &entry.body,
        EntryBody::Foreign(body) if body.format == FORMAT_PI && body.replaced.is_none()
    )
}

struct PiFile<'a> {
    store: &'a dyn ReadStore,
    session: &'a SessionId,
    options: &'a ExportOptions,
    state: Arc<SessionState>,
    facts: Facts,
}

impl PiFile<'_> {
    async fn write_whole(&self, sink: &mut Sink<'_>) -> Result<Exported> {
        let mut written = Exported::default();
        sink(self.header(self.facts.fits_version).as_bytes())?;
        let mut records = Records::new(self.store, self.session);
        while let Some(page) = records.next().await? {
            for stored in page {
                match stored.record.known() {
                    Record::Entry(entry) if self.facts.hidden.contains(&entry.id) => {}
                    Record::Entry(entry) => {
                        let line = self.entry_line(entry, stored.seq).await?;
                        sink(line.as_bytes())?;
                        written.entries += 1;
                    }
                    _ => {
                        if let Some(line) = kept_line(&stored.record) {
                            sink(&line.bytes)?;
                            written.kept += 1;
                        }
                    }
                }
            }
        }
        if let Some(line) = self.last_line() {
            sink(line.as_bytes())?;
            written.entries += 1;
        }
        Ok(written)
    }

    async fn entry_line(&self, entry: &Entry, seq: u64) -> Result<String> {
        let facts = &self.facts;
        let parent = facts.hidden.visible_parent(entry);
        if facts.fits_version
            && parent == entry.parent_id
            && facts.is_from_file(entry, seq)
            && !facts.revised.contains(&entry.id)
            && let Some(json) = source_json(entry)
        {
            return Ok(json.into_owned());
        }
        let entry = newest(self.store, self.session, entry, &facts.revised).await?;
        let parent = parent.as_ref().map(|parent| self.file_name_of(parent));
        let id = self.file_name_of(&entry.id).to_owned();
        Ok(pi_line::line_of(&entry, &id, parent))
    }

    /// An entry's id in the file.
    fn file_name_of<'n>(&'n self, id: &'n EntryId) -> &'n str {
        match self.facts.renamed.get(id) {
            Some(Some(name)) => name,
            _ => id.as_str(),
        }
    }

    async fn write_branch(&self, leaf: &EntryId, sink: &mut Sink<'_>) -> Result<Exported> {
        let mut path = Path::new(self.store, self.session, leaf.clone());
        let mut labels = LabelsLeft::new(&self.state);
        let mut written = Exported::default();
        let mut next = path.next().await?;
        sink(self.header(self.facts.version >= 2).as_bytes())?;
        while let Some(page) = next {
            for entry in &page {
                let parent = entry.parent_id.as_ref().map(EntryId::as_str);
                sink(pi_line::line_of(entry, entry.id.as_str(), parent).as_bytes())?;
                labels.pass(entry);
                written.entries += 1;
            }
            next = path.next().await?;
        }
        for line in labels.lines(leaf, self.state.meta.updated_at) {
            sink(line.as_bytes())?;
            written.entries += 1;
        }
        Ok(written)
    }

    /// The header as it came, or with the current version, or made from what the session knows.
    fn header(&self, as_it_came: bool) -> String {
        let Some(text) = &self.facts.header else { return self.new_header() };
        if as_it_came {
            return text.clone();
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(mut members)) => {
                members.insert("version".to_owned(), Value::from(CURRENT_VERSION));
                Value::Object(members).to_string()
            }
            _ => self.new_header(),
        }
    }

    fn new_header(&self) -> String {
        let known = self.state.meta.metadata.as_ref().and_then(|metadata| metadata.get("cwd"));
        let cwd = known.and_then(Value::as_str).or(self.options.cwd.as_deref()).unwrap_or("/");
        json!({
            "type": "session",
            "version": CURRENT_VERSION,
            "id": self.session,
            "timestamp": format_iso(self.state.meta.created_at),
            "cwd": cwd,
        })
        .to_string()
    }

    /// pi goes on from the last line and has no title but in a line: where that is not enough, one more
    /// line says it.
    fn last_line(&self) -> Option<String> {
        if self.facts.version < 2 && self.facts.fits_version {
            return None;
        }
        let titled = !self.state.meta.title.is_empty()
            && self.state.name.as_deref() != Some(self.state.meta.title.as_str());
        let (kind, words) = if titled {
            ("session_info", json!({ "name": self.state.meta.title }))
        } else if self.state.leaf != self.facts.last {
            ("custom", json!({ "customType": LEAF_TYPE, "data": {} }))
        } else {
            return None;
        };
        let id = format!("bough-{}", self.state.seq);
        let parent = self.state.leaf.as_ref().map(|leaf| self.file_name_of(leaf).to_owned());
        let identity = Some((id.as_str(), parent.as_deref()));
        Some(pi_line::plain_line(kind, identity, self.state.meta.updated_at, words))
    }
}

/// A line of the file that is no entry and not the header.
fn kept_line(record: &Record) -> Option<SourceLine<'_>> {
    source_line(record).filter(|line| {
        !line.what.is_empty() && !matches!(line.what.as_str(), "header" | "sqlite_meta")
    })
}

/// Labels of a branch's entries that were given elsewhere in the tree: they go to its end.
struct LabelsLeft {
    labels: HashMap<EntryId, String>,
    on_branch: Vec<EntryId>,
}

impl LabelsLeft {
    fn new(state: &SessionState) -> Self {
        let labels = state.labels.iter().map(|(id, label)| (id.clone(), label.to_owned()));
        Self { labels: labels.collect(), on_branch: Vec::new() }
    }

    fn pass(&mut self, entry: &Entry) {
        if self.labels.contains_key(&entry.id) {
            self.on_branch.push(entry.id.clone());
        }
        if let Some(Bookkeeping::Label(label)) = entry.bookkeeping()
            && self.labels.get(&label.target_id) == label.label.as_ref()
        {
            self.labels.remove(&label.target_id);
            self.on_branch.retain(|id| *id != label.target_id);
        }
    }

    fn lines(self, leaf: &EntryId, at_ms: i64) -> Vec<String> {
        let mut parent = leaf.to_string();
        let mut lines = Vec::new();
        for (number, target) in (1..).zip(&self.on_branch) {
            let id = format!("bough-label-{number}");
            let words = json!({ "targetId": target, "label": self.labels.get(target) });
            lines.push(pi_line::plain_line("label", Some((&id, Some(&parent))), at_ms, words));
            parent = id;
        }
        lines
    }
}
