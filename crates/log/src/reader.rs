use std::sync::Arc;

use crate::error::{Damage, DamageKind, LogError, Result};
use crate::fold::Fold;
use crate::format::{BranchHead, StreamLine};
use crate::head::Head;
use crate::load::{Loaded, OpenReport};
use crate::record::StoredRecord;
use crate::view::{EntryRecord, Others, PathPage, PathStart, View};
use crate::writer::Writer;

/// Reads one log. What it shows is durable.
///
/// A reader of a log that this process writes sees each append as soon as it is durable; any other
/// reader shows the log as it was when the reader was made.
#[derive(Clone, Debug)]
pub struct Reader {
    source: Source,
}

/// A log as of one moment, in short.
#[derive(Debug)]
pub struct Moment {
    /// Where it is.
    pub head: Head,
    /// What the store's fold made of it.
    pub fold: Box<dyn Fold>,
    /// The newest delta that is not settled yet.
    pub last_delta: Option<StreamLine>,
}

/// A part of a log as of one moment.
#[derive(Debug)]
pub struct Page {
    /// The records.
    pub records: Vec<StoredRecord>,
    /// The deltas that are not settled yet.
    pub deltas: Vec<StreamLine>,
    /// Where the log is.
    pub head: Head,
    /// The newest delta that is not settled yet.
    pub last_delta: Option<StreamLine>,
}

#[derive(Clone, Debug)]
enum Source {
    Live(Arc<Writer>),
    ReadOnly(Arc<Loaded>),
}

impl Reader {
    pub(crate) fn live(writer: Arc<Writer>) -> Self {
        Self { source: Source::Live(writer) }
    }

    pub(crate) fn read_only(loaded: Loaded) -> Self {
        Self { source: Source::ReadOnly(Arc::new(loaded)) }
    }

    fn with<T>(&self, read: impl FnOnce(View<'_>) -> T) -> T {
        match &self.source {
            Source::Live(writer) => {
                let state = writer.read_state();
                read(View { state: &state, files: &writer.files })
            }
            Source::ReadOnly(loaded) => read(View { state: &loaded.state, files: &loaded.files }),
        }
    }

    /// Reads something that the index leads to. A row may be readable and wrong: then it leads to no frame, or to another
    /// one. The rows that the segments give decide whether it is the row or the segment that is damaged.
    fn look_up<T>(&self, read: impl Fn(View<'_>) -> Result<T>) -> Result<T> {
        self.with(|view| match read(view) {
            Err(LogError::Corrupt(damage))
                if damage.kind.is_derived() || damage.kind == DamageKind::Frame =>
            {
                if view.state.rows.rebuild()? { read(view) } else { Err(damage.into()) }
            }
            other => other,
        })
    }

    /// Where the log is.
    #[must_use]
    pub fn head(&self) -> Head {
        self.with(|view| view.head())
    }

    /// What opening found.
    #[must_use]
    pub fn report(&self) -> OpenReport {
        match &self.source {
            Source::Live(writer) => writer.report.clone(),
            Source::ReadOnly(loaded) => loaded.report.clone(),
        }
    }

    /// When the log was deleted, for one that is in the trash. `None` there: the undoing of its deletion was cut short.
    #[must_use]
    pub fn deleted_at_ms(&self) -> Option<i64> {
        match &self.source {
            Source::Live(writer) => writer.read_state().deleted_at_ms,
            Source::ReadOnly(loaded) => loaded.deleted_at_ms(),
        }
    }

    /// Damage after the newest record that can be read, if there is any.
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        match &self.source {
            Source::Live(_) => None,
            Source::ReadOnly(loaded) => loaded.damage.clone(),
        }
    }

    /// A copy of what the store's fold made of the log.
    #[must_use]
    pub fn fold(&self) -> Box<dyn Fold> {
        self.with(|view| view.fold())
    }

    /// Where the log is and what the store's fold made of it, as of one moment: between two calls a log may grow.
    #[must_use]
    pub fn moment(&self) -> Moment {
        self.with(|view| Moment {
            head: view.head(),
            fold: view.fold(),
            last_delta: view.last_delta(),
        })
    }

    /// Up to `limit` records after number `seq`, the deltas after that place (see [`Self::deltas_after`]), and where the
    /// log ends, as of one moment.
    pub fn page(&self, seq: u64, number: u64, limit: u64) -> Result<Page> {
        self.look_up(|view| {
            Ok(Page {
                records: view.records(seq, limit)?,
                deltas: view.deltas_after(seq, number),
                head: view.head(),
                last_delta: view.last_delta(),
            })
        })
    }

    /// The entry that the conversation goes on from.
    #[must_use]
    pub fn active_leaf(&self) -> Option<String> {
        self.with(|view| view.active_leaf())
    }

    /// Entries whose deltas are not settled yet.
    #[must_use]
    pub fn streaming(&self) -> Vec<String> {
        self.with(|view| view.streaming())
    }

    /// Every delta that is not settled yet, in order.
    #[must_use]
    pub fn deltas(&self) -> Vec<StreamLine> {
        self.deltas_after(0, 0)
    }

    /// The deltas that are not settled yet and come after a place: after delta `number`, which followed
    /// record `seq`; with number 0, after that record.
    #[must_use]
    pub fn deltas_after(&self, seq: u64, number: u64) -> Vec<StreamLine> {
        self.with(|view| view.deltas_after(seq, number))
    }

    /// The newest delta that is not settled yet.
    #[must_use]
    pub fn last_delta(&self) -> Option<StreamLine> {
        self.with(|view| view.last_delta())
    }

    /// The record that added an entry.
    pub fn find(&self, entry: &str) -> Result<Option<u64>> {
        self.look_up(|view| view.find(entry))
    }

    /// Up to `limit` records after number `after`, in order; fewer when they are large.
    pub fn records(&self, after: u64, limit: u64) -> Result<Vec<StoredRecord>> {
        self.look_up(|view| view.records(after, limit))
    }

    /// The next records after number `after` and up to number `last` that neither add nor change an entry, without reading
    /// the others. Asked again from where it looked, it comes to `last`, or to the end.
    pub fn others(&self, after: u64, last: u64) -> Result<Others> {
        self.look_up(|view| view.others(after, last))
    }

    /// One record.
    pub fn record(&self, seq: u64) -> Result<Option<StoredRecord>> {
        Ok(self.records(seq.saturating_sub(1), 1)?.pop().filter(|record| record.seq == seq))
    }

    /// The newest records, oldest first.
    pub fn tail(&self, limit: u64) -> Result<Vec<StoredRecord>> {
        self.look_up(|view| view.records(view.head().seq.saturating_sub(limit), limit))
    }

    /// An entry with its newest revision.
    pub fn entry(&self, entry: &str) -> Result<Option<EntryRecord>> {
        self.look_up(|view| view.entry(entry))
    }

    /// A page of the path from the root to `leaf`. `None` when the leaf, or the entry where the page
    /// begins, is not there or not on that path.
    pub fn path(&self, leaf: &str, start: PathStart<'_>, limit: usize) -> Result<Option<PathPage>> {
        self.look_up(|view| view.path(leaf, start, limit))
    }

    /// Entries without children, by record.
    pub fn branch_heads(&self) -> Result<Vec<BranchHead>> {
        self.look_up(|view| view.branch_heads())
    }
}
