//! The store as the harness opens it, and everything that a reader can see in it.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bough_log::format::StreamLine;
use bough_log::{
    Durability, Envelope, Fold, Head, Incarnation, LogError, Maintenance, NewDelta, Options,
    StoredEnvelope,
};
use bough_platform::{Disk, Platform};

use super::report::Verdict;
use super::workload::Scale;
use crate::{SimClock, SimEntropy};

/// A store whose fold notices every difference.
pub(crate) type LogStore = bough_log::LogStore<Trace>;

/// A reader of such a store.
pub(crate) type Reader = bough_log::Reader<Trace>;

/// The sizes of a scale.
pub(crate) fn options(scale: Scale) -> Options {
    let usual = Options { maintenance: Maintenance::Inline, ..Options::default() };
    let full = Options { tiny_bytes: 0, ..usual.clone() };
    match scale {
        Scale::Usual => usual,
        Scale::Full => full,
        Scale::Rolling => Options { segment_bytes: 500, ..full },
        Scale::Rounds => Options { checkpoint_every_bytes: 500, ..full },
        Scale::Tables => tables(full),
        Scale::Weak => weak(full),
        Scale::WeakTables => weak(tables(full)),
    }
}

fn tables(full: Options) -> Options {
    Options { segment_bytes: 900, checkpoint_every_bytes: 700, tail_rows_max: 2, ..full }
}

fn weak(options: Options) -> Options {
    Options { durability: Durability::MayLoseNewestOnPowerCut, ..options }
}

/// The platform of a process of the harness.
pub(crate) fn platform(disk: Arc<dyn Disk>, clock: &Arc<SimClock>, seed: u64) -> Platform {
    Platform {
        disk,
        clock: Arc::clone(clock) as Arc<dyn bough_platform::Clock>,
        entropy: Arc::new(SimEntropy::new(seed)),
    }
}

/// Everything that a reader shows of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) head: Head,
    pub(crate) records: Vec<Envelope<'static>>,
    pub(crate) deltas: Vec<NewDelta>,
    pub(crate) damaged: bool,
    trace: u64,
}

/// Reads a session in every way, and compares the results with each other.
pub(crate) fn show(reader: &Reader) -> Result<Shown, ShowError> {
    let shown = show_records(reader)?;
    check_entries(reader, &shown.records)?;
    check_tree(reader, &shown.records)?;
    Ok(shown)
}

/// Reads all of a session in order.
pub(crate) fn show_records(reader: &Reader) -> Result<Shown, ShowError> {
    let head = reader.head();
    let records = all_records(reader, head.seq)?;
    let deltas = all_deltas(reader)?;
    let shown = Shown {
        head,
        damaged: reader.damage().is_some(),
        trace: reader.fold().digest,
        deltas,
        records,
    };
    shown.check_fold()?;
    Ok(shown)
}

/// Why a session could not be shown.
#[derive(Debug)]
pub(crate) enum ShowError {
    /// The store refused it: an answer that the caller may have to accept.
    Refused(LogError),
    /// The store contradicts itself without reporting it.
    Contradiction(String),
}

impl From<LogError> for ShowError {
    fn from(error: LogError) -> Self {
        Self::Refused(error)
    }
}

impl ShowError {
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Refused(error) => Verdict::broken(format!("refused: {error}")),
            Self::Contradiction(words) => Verdict::broken(words.clone()),
        }
    }
}

fn all_records(reader: &Reader, head: u64) -> Result<Vec<Envelope<'static>>, ShowError> {
    let mut records: Vec<Envelope<'static>> = Vec::new();
    loop {
        let after = records.len() as u64;
        let page = reader.records(after, 1000, |stored| stored.into_owned())?;
        if page.is_empty() {
            break;
        }
        for (stored, expected) in page.into_iter().zip(after + 1..) {
            if stored.seq != expected {
                let words = format!("record {} came as {expected}", stored.seq);
                return Err(ShowError::Contradiction(words));
            }
            records.push(stored.envelope);
        }
    }
    if records.len() as u64 != head {
        let words = format!("the head is {head}, but {} records are read", records.len());
        return Err(ShowError::Contradiction(words));
    }
    Ok(records)
}

fn all_deltas(reader: &Reader) -> Result<Vec<NewDelta>, ShowError> {
    let mut lines = Vec::new();
    for target in reader.streaming() {
        let Some(entry) = reader.entry(&target, |stored| stored.into_owned())? else {
            let words = format!("{target} streams and is not there");
            return Err(ShowError::Contradiction(words));
        };
        lines.extend(entry.deltas);
    }
    lines.sort_by_key(|line| line.number);
    let new = |line: StreamLine| NewDelta {
        target: line.target,
        revision: line.revision,
        at_ms: line.at_ms,
        payload: line.payload.get().to_owned(),
    };
    Ok(lines.into_iter().map(new).collect())
}

/// Every entry is found by its id, with its newest revision.
fn check_entries(reader: &Reader, records: &[Envelope<'static>]) -> Result<(), ShowError> {
    for (record, seq) in records.iter().zip(1_u64..) {
        let Some(id) = &record.id else { continue };
        let is_revision = |record: &Envelope<'static>| {
            record.kind == bough_log::kind::REVISION && record.target.as_ref() == Some(id)
        };
        let numbered = records.iter().zip(1_u64..);
        let revisions = numbered.filter(|(record, _)| is_revision(record));
        let revisions: Vec<u64> = revisions.map(|(_, seq)| seq).collect();
        let entry = reader.entry(id, |stored| stored.into_owned())?;
        let found = entry.as_ref().map(|entry| {
            let revisions = entry.revisions.iter().map(|record| record.seq);
            (entry.added.seq, revisions.collect::<Vec<u64>>())
        });
        if found != Some((seq, revisions.clone())) {
            let words = format!("entry {id} is {seq} revised by {revisions:?}; found {found:?}");
            return Err(ShowError::Contradiction(words));
        }
    }
    Ok(())
}

/// The active leaf and the branch heads are those that the records give.
fn check_tree(reader: &Reader, records: &[Envelope<'static>]) -> Result<(), ShowError> {
    let mut leaf = None;
    let mut heads: Vec<&str> = Vec::new();
    for record in records {
        if let Some(id) = &record.id {
            leaf = Some(id.clone());
            heads.retain(|head| Some(*head) != record.parent.as_deref());
            heads.push(id);
        }
        if record.kind == bough_log::kind::LEAF {
            leaf.clone_from(&record.target);
        }
    }
    if reader.active_leaf().as_deref() != leaf.as_deref() {
        let words = format!("the leaf is {leaf:?}; shown is {:?}", reader.active_leaf());
        return Err(ShowError::Contradiction(words));
    }
    let shown = reader.branch_heads()?;
    let shown: Vec<&str> = shown.iter().map(|head| head.entry_id.as_str()).collect();
    if shown != heads {
        let words = format!("the branch heads are {heads:?}; shown are {shown:?}");
        return Err(ShowError::Contradiction(words));
    }
    Ok(())
}

impl Shown {
    fn check_fold(&self) -> Result<(), ShowError> {
        let mut fold = Trace::default();
        for (record, seq) in self.records.iter().zip(1_u64..) {
            fold.add(seq, &record.kind, &record.payload);
        }
        if fold.digest != self.trace {
            let words = "the fold is not that of the records".to_owned();
            return Err(ShowError::Contradiction(words));
        }
        Ok(())
    }
}

/// A fold that detects every difference in its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trace {
    digest: u64,
}

impl Trace {
    fn add(&mut self, seq: u64, kind: &str, payload: &str) {
        let mut hasher = DefaultHasher::new();
        (self.digest, seq, kind, payload).hash(&mut hasher);
        self.digest = hasher.finish();
    }
}

impl Fold for Trace {
    fn start(_: &str) -> Self {
        Self::default()
    }

    fn restore(snapshot: &str) -> Option<Self> {
        let digest = snapshot.strip_prefix('"')?.strip_suffix('"')?.parse().ok()?;
        Some(Self { digest })
    }

    fn apply(&mut self, record: &StoredEnvelope<'_>) {
        self.add(record.seq, &record.envelope.kind, &record.envelope.payload);
    }

    fn snapshot(&self) -> String {
        format!("\"{}\"", self.digest)
    }
}

/// The incarnations of an id in the trash.
pub(crate) fn trashed(store: &LogStore, id: &str) -> Result<Vec<Incarnation>, LogError> {
    let listed = store.trash()?.into_iter().filter(|log| log.id == id);
    Ok(listed.map(|log| log.incarnation).collect())
}
