//! The records of a migrated log: what they say of the file that they came from, and the mark at their end.

use bough_record::{Envelope, StoredEnvelope};
use bough_session::{Record, codec};
use bough_store::LogReader;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::limits::PAGE_RECORDS;
use crate::v1::{ContentDigest, V1_KIND, V1Report, source_line_of};

/// What the mark's `what` says.
const END: &str = "end";

/// The last record of a migration: what it was made from, and what it came to. Whatever follows was
/// written since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndMark {
    what: String,
    pub(crate) migration_id: String,
    pub(crate) correlation_id: String,
    pub(crate) snapshot_id: String,
    pub(crate) source_format: String,
    pub(crate) entries: u64,
    pub(crate) lines: u64,
    /// The digest of everything that was kept.
    pub(crate) content: String,
    pub(crate) report: V1Report,
}

impl EndMark {
    pub(crate) fn new(
        evidence: &super::events::Evidence,
        content: &ContentDigest,
        report: V1Report,
    ) -> Self {
        Self {
            what: END.to_owned(),
            migration_id: evidence.migration_id.clone(),
            correlation_id: evidence.correlation_id.clone(),
            snapshot_id: evidence.snapshot_id.clone(),
            source_format: evidence.source.clone(),
            entries: content.entries,
            lines: content.lines,
            content: content.hex(),
            report,
        }
    }

    pub(crate) fn to_record(&self, at_ms: i64) -> Envelope<'static> {
        // Plain data: it has nothing that JSON cannot say.
        let payload = serde_json::to_string(self).unwrap_or_default();
        crate::v1::v1_record(at_ms, payload)
    }

    pub(crate) fn of(record: &Envelope<'_>) -> Option<Self> {
        if record.kind != V1_KIND {
            return None;
        }
        serde_json::from_str::<Self>(&record.payload).ok().filter(|mark| mark.what == END)
    }
}

/// What a stored record says.
pub(crate) fn decoded(stored: &Envelope<'_>) -> Record {
    codec::decode(stored.borrowed())
}

/// Visits every record of a log in order.
pub(crate) fn each_record(
    reader: &LogReader,
    visit: &mut dyn FnMut(StoredEnvelope<'static>) -> Result<()>,
) -> Result<()> {
    each_record_after(reader, 0, visit)
}

/// Visits every record of a log behind one of them, in order.
pub(crate) fn each_record_after(
    reader: &LogReader,
    mut after: u64,
    visit: &mut dyn FnMut(StoredEnvelope<'static>) -> Result<()>,
) -> Result<()> {
    loop {
        let page = reader.records_after(after, PAGE_RECORDS)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.seq;
        page.into_iter().try_for_each(&mut *visit)?;
    }
}

/// What the records of a migrated log say of the file that they came from.
#[derive(Debug, Default)]
pub(crate) struct Migrated {
    pub(crate) content: ContentDigest,
    pub(crate) mark: Option<EndMark>,
    pub(crate) mark_seq: u64,
}

impl Migrated {
    /// Takes the next record, up to the mark; says whether it was of the file.
    pub(crate) fn take(&mut self, stored: &StoredEnvelope<'_>) -> bool {
        if self.mark.is_some() {
            return false;
        }
        if let Some(mark) = EndMark::of(&stored.envelope) {
            self.mark = Some(mark);
            self.mark_seq = stored.seq;
        } else {
            if let Some(line) = source_line_of(&stored.envelope.kind, &stored.envelope.payload) {
                self.content.add(&line.bytes, line.what.is_empty());
            }
        }
        true
    }
}
