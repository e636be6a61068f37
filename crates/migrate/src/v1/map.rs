//! From the lines of a V1 file to the records of a log, and back.
//!
//! | line | record |
//! |---|---|
//! | (before all) | `meta`: created, working directory, fork |
//! | blank | counted |
//! | any other | one record: see [`super::line_record`] |

use bough_record::Envelope;
use bough_session::codec;
use bough_session::{
    AgentMessage, FORMAT_PI, JsonMap, MetaChange, Record, SessionId, Unseen, hex,
    pi_message_in_short,
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::header::{CURRENT_VERSION, V1Header};
use super::line_header::{LineHeader, ParsedLine, parse_line};
use super::line_record::{
    Form, Kept, Mapped, MappedRecord, What, entry_record, json_of, short_record, text_of, v1_record,
};
use super::lines::{Content, Line};
use super::links::{EntryLinker, EntryLinks};
use super::report::{FindingKind, V1Report};
use crate::limits::CWD_BYTES_MAX;

/// What is made of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Only the report.
    Facts,
    /// The records too.
    Records,
    /// Records for a fold: the usual messages come without their content. Of the report, only the counts.
    Folds,
}

/// Makes records of lines, in order.
#[derive(Debug)]
pub(crate) struct Mapper {
    want: Want,
    file_name: String,
    header: Option<V1Header>,
    linker: EntryLinker,
    report: V1Report,
    content: ContentDigest,
    last_ms: i64,
    looks_like_pi: bool,
    /// The message came that the session shows as its preview.
    has_preview: bool,
    /// Lines before the first one that is JSON; they wait for the `meta` record.
    waiting: Vec<Envelope<'static>>,
    ready: Vec<Mapped>,
}

/// The digest of everything that is kept of a file, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentDigest {
    hasher: Sha256,
    pub(crate) lines: u64,
    pub(crate) entries: u64,
}

impl ContentDigest {
    pub(crate) fn add(&mut self, text: &[u8], is_entry: bool) {
        self.hasher.update((text.len() as u64).to_le_bytes());
        self.hasher.update(text);
        self.lines += 1;
        self.entries += u64::from(is_entry);
    }

    pub(crate) fn hex(&self) -> String {
        hex(&self.hasher.clone().finalize())
    }
}

/// What a whole file came to.
#[derive(Debug)]
pub(crate) struct MappedFile {
    pub(crate) header: Option<V1Header>,
    pub(crate) session_id: SessionId,
    pub(crate) report: V1Report,
    pub(crate) content: ContentDigest,
    /// It has a header, or entries of types that pi writes.
    pub(crate) looks_like_pi: bool,
}

/// What the lines so far came to, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Who the session is, where a line says so.
    pub(crate) session: Option<String>,
    pub(crate) entries: u64,
    /// The digest of everything that is kept.
    pub(crate) content: String,
    /// Ids that stand twice, parents that did not come before, lines that are not JSON.
    pub(crate) broken_links: u64,
    /// Last lines that a crash cut.
    pub(crate) torn: u64,
}

impl Mapper {
    /// What the lines so far came to.
    pub(crate) fn tally(&self) -> Tally {
        let counted = [FindingKind::DuplicateId, FindingKind::ParentMissing, FindingKind::NotJson];
        let counted: u64 = counted.into_iter().map(|kind| self.report.count(kind)).sum();
        Tally {
            session: self.header.as_ref().map(|header| header.id.clone()),
            entries: self.report.entries,
            content: self.content.hex(),
            broken_links: counted + self.linker.orphans(),
            torn: self.report.count(FindingKind::TornTail),
        }
    }

    pub(crate) fn new(file_name: &str, want: Want) -> Self {
        Self {
            want,
            file_name: file_name.to_owned(),
            header: None,
            linker: EntryLinker::default(),
            report: V1Report::default(),
            content: ContentDigest::default(),
            last_ms: 0,
            looks_like_pi: false,
            has_preview: false,
            waiting: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// The records made since the last call.
    pub(crate) fn take(&mut self) -> Vec<Envelope<'static>> {
        stored_of(self.take_mapped())
    }

    /// The same, with what each was made from.
    pub(crate) fn take_mapped(&mut self) -> Vec<Mapped> {
        std::mem::take(&mut self.ready)
    }

    pub(crate) fn report(&self) -> &V1Report {
        &self.report
    }

    /// The header, where the file has one.
    pub(crate) fn header(&self) -> Option<&V1Header> {
        self.header.as_ref().filter(|_| self.report.count(FindingKind::HeaderMissing) == 0)
    }

    pub(crate) fn last_ms(&self) -> i64 {
        self.last_ms
    }

    pub(crate) fn linker(&self) -> &EntryLinker {
        &self.linker
    }

    pub(crate) fn version(&self) -> u64 {
        self.header.as_ref().map_or(CURRENT_VERSION, |header| header.version)
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: &Line<'_>) {
        self.report.lines += 1;
        match line.content {
            Content::TooLong(_) => self.report.find(line.number, FindingKind::TooLong, None),
            Content::Bytes(bytes) => self.bytes(line.number, bytes, line.ended),
        }
    }

    fn bytes(&mut self, number: u64, bytes: &[u8], ended: bool) {
        self.report.crlf += u64::from(ended && bytes.ends_with(b"\r"));
        let Some(text) = text_of(number, bytes) else {
            return self.opaque(number, What::NotUtf8, Kept::Bytes(bytes));
        };
        let json = json_of(text);
        if json.is_empty() {
            self.report.blank += 1;
            return;
        }
        match parse_line(&json) {
            ParsedLine::Object(line_header) => self.object(number, &json, &line_header),
            ParsedLine::OtherJson => {
                self.begin(None);
                self.linker.pass();
                self.opaque(number, What::NotAnObject, Kept::Json(&json));
            }
            ParsedLine::NotJson => {
                let what = if ended { What::NotJson } else { What::Torn };
                self.opaque(number, what, Kept::Text(text));
            }
        }
    }

    fn object(&mut self, number: u64, json: &str, line_header: &LineHeader<'_>) {
        let first = self.header.is_none();
        let header = V1Header::of(line_header);
        if first {
            self.begin(header.clone());
        }
        if line_header.kind.as_deref() != Some("session") {
            return self.entry(number, json, line_header);
        }
        self.linker.pass();
        let what = if first && header.is_some() { What::Header } else { What::HeaderAgain };
        self.opaque(number, what, Kept::Json(json));
    }

    /// The first line that is JSON decides who the session is.
    fn begin(&mut self, header: Option<V1Header>) {
        if self.header.is_some() {
            return;
        }
        let line = self.report.lines;
        let header = match header {
            Some(header) => {
                self.looks_like_pi = true;
                self.report.version = header.version;
                if header.version > CURRENT_VERSION {
                    self.report.find(line, FindingKind::NewerVersion, None);
                }
                header
            }
            None => {
                self.report.find(line, FindingKind::HeaderMissing, None);
                V1Header::guessed(&self.file_name, "")
            }
        };
        self.last_ms = header.timestamp_ms;
        self.linker = EntryLinker::new(&header.id, header.version < 2);
        let kept = |record| Mapped { record: MappedRecord::Stored(record), form: Form::Kept };
        if self.want != Want::Facts {
            self.ready.push(kept(meta_record(&header)));
        }
        self.header = Some(header);
        self.ready.extend(self.waiting.drain(..).map(kept));
    }

    fn entry(&mut self, number: u64, json: &str, line_header: &LineHeader<'_>) {
        self.looks_like_pi |= line_header.kind.as_deref().is_some_and(is_pi_type);
        match line_header.timestamp_ms {
            Some(ms) => self.last_ms = ms,
            None => self.report.find(number, FindingKind::TimeMissing, line_header.id.text()),
        }
        let links = self.linker.link(number, line_header, &mut self.report);
        self.report.entries += 1;
        self.report.note_type(line_header.kind.as_deref());
        if self.want != Want::Folds {
            self.note_unseen(number, json, &links);
            self.content.add(json.as_bytes(), true);
        }
        if self.want == Want::Facts {
            return;
        }
        let is_as_it_came = links.first_kept.is_none();
        let form = Form::Entry(links.node);
        let form = if is_as_it_came { form } else { form.kept() };
        let short = Some(line_header).filter(|_| self.want == Want::Folds && is_as_it_came);
        let record = match short.and_then(|line_header| self.message_in_short(line_header)) {
            Some(message) => MappedRecord::Short(short_record(message, links, self.last_ms)),
            None => MappedRecord::Stored(entry_record(json, links, self.last_ms)),
        };
        self.ready.push(Mapped { record, form });
    }

    /// The message of a line without its content, if a fold needs no more of it.
    fn message_in_short(&self, line_header: &LineHeader<'_>) -> Option<AgentMessage> {
        let is_message = line_header.kind.as_deref() == Some("message");
        let text = line_header.message.filter(|_| is_message)?;
        let message = pi_message_in_short(text)?;
        let needs_text = !self.has_preview && matches!(message, AgentMessage::User(_));
        (!needs_text).then_some(message)
    }

    /// Says that the session has its preview: the text of no later message is needed for it.
    pub(crate) fn previewed(&mut self) {
        self.has_preview = true;
    }

    pub(crate) fn has_preview(&self) -> bool {
        self.has_preview
    }

    /// Says of an entry what of it cannot be seen as it is written.
    fn note_unseen(&mut self, number: u64, json: &str, links: &EntryLinks) {
        let unseen = Unseen::of(json);
        if unseen.halves > 0 {
            self.report.find(number, FindingKind::HalfCharacter, Some(&links.id));
        }
        if unseen.values > 0 {
            self.report.find(number, FindingKind::NotShownWhole, Some(&links.id));
        }
    }

    /// Keeps a line that is not an entry.
    fn opaque(&mut self, line: u64, what: What, kept: Kept<'_>) {
        if let Some(kind) = what.finding() {
            self.report.find(line, kind, None);
        }
        self.report.kept += 1;
        if self.want != Want::Folds {
            self.content.add(kept.bytes(), false);
        }
        if self.want == Want::Facts {
            return;
        }
        let record = v1_record(self.last_ms, kept.payload(line, what));
        match self.header {
            None => self.waiting.push(record),
            Some(_) => {
                let record = MappedRecord::Stored(record);
                self.ready.push(Mapped { record, form: Form::Opaque(what) });
            }
        }
    }

    /// Keeps the side table of a database, which is no line.
    pub(crate) fn aside(&mut self, json: &Value) {
        self.begin(None);
        let text = json.to_string();
        self.opaque(0, What::SqliteMeta, Kept::Json(&text));
    }

    /// Says why entries lost their parents, as far as the file has been read.
    pub(crate) fn settle(&mut self) {
        self.linker.finish(&mut self.report);
    }

    /// Who the session is: what the header or the file's name says, else `fallback`.
    pub(crate) fn session_id(&self, fallback: &str) -> SessionId {
        let named = self.header.as_ref().map_or("", |header| header.id.as_str());
        SessionId::parse(named).unwrap_or_else(|_| SessionId::from_stored(fallback))
    }

    /// The end of the file. `fallback_id` names a session that nothing else names.
    pub(crate) fn finish(mut self, fallback_id: &str) -> (MappedFile, Vec<Envelope<'static>>) {
        self.settle();
        let session_id = self.session_id(fallback_id);
        let header = self.header.filter(|_| self.report.count(FindingKind::HeaderMissing) == 0);
        let file = MappedFile {
            header,
            session_id,
            report: self.report,
            content: self.content,
            looks_like_pi: self.looks_like_pi,
        };
        (file, stored_of(self.ready))
    }
}

fn stored_of(mapped: Vec<Mapped>) -> Vec<Envelope<'static>> {
    let stored = mapped.into_iter().filter_map(|mapped| match mapped.record {
        MappedRecord::Stored(record) => Some(record),
        MappedRecord::Short(_) => None,
    });
    stored.collect()
}

/// Types of entries that pi has written at some time.
fn is_pi_type(kind: &str) -> bool {
    matches!(
        kind,
        "message"
            | "model_change"
            | "thinking_level_change"
            | "compaction"
            | "branch_summary"
            | "session_info"
            | "label"
            | "custom"
            | "custom_message"
            | "usage"
            | "context_edit"
    )
}

fn meta_record(header: &V1Header) -> Envelope<'static> {
    let mut metadata = JsonMap::new();
    if let Some(cwd) = header.cwd.as_ref().filter(|cwd| cwd.len() <= CWD_BYTES_MAX) {
        metadata.insert("cwd".to_owned(), Value::from(cwd.as_str()));
    }
    metadata.insert("imported_from".to_owned(), Value::from(FORMAT_PI));
    let change = MetaChange {
        metadata: Some(metadata),
        created_at: Some(header.timestamp_ms),
        forked_from: header.forked_from().and_then(|id| SessionId::parse(id).ok()),
        ..MetaChange::default()
    };
    codec::encode(&Record::Meta(change), header.timestamp_ms).into_owned()
}
