use std::sync::Arc;

use crate::error::{Damage, DamageKind, LogError, Result};
use crate::format::{BranchHead, StreamLine};
use crate::load::{Loaded, OpenReport};
use crate::rebuilt_logs::RebuiltLogs;
use crate::view::{EntryRecord, Others, PathPage, View};
use crate::writer::Writer;
use bough_record::{Fold, Head, PathStart, StoredEnvelope};

/// Reads one log. What it shows is durable.
///
/// A reader of a log that this process writes sees each append as soon as it is durable; any other
/// reader shows the log as it was when the reader was made.
#[derive(Clone, Debug)]
pub struct Reader<F: Fold = ()> {
    source: Source<F>,
    /// Where the log is kept once it had to be made again.
    rebuilt: Option<Arc<RebuiltLogs<F>>>,
}

/// A log as of one moment, in short.
#[derive(Debug)]
pub struct Moment<F: Fold = ()> {
    /// Where it is.
    pub head: Head,
    /// What the store's fold made of it.
    pub fold: Arc<F>,
    /// The newest delta that is not settled yet.
    pub last_delta: Option<StreamLine>,
    /// The number of the newest durable step of any stream.
    pub last_step: u64,
}

/// A part of a log as of one moment.
#[derive(Debug)]
pub struct Page<T> {
    /// The records, as the caller decoded them.
    pub records: Vec<T>,
    /// The deltas that are not settled yet.
    pub deltas: Vec<StreamLine>,
    /// Where the log is.
    pub head: Head,
    /// The number of the newest durable step of any stream.
    pub last_step: u64,
}

#[derive(Clone, Debug)]
enum Source<F: Fold> {
    Live(Arc<Writer<F>>),
    ReadOnly(Arc<Loaded<F>>),
}

impl<F: Fold> Reader<F> {
    pub(crate) fn live(writer: Arc<Writer<F>>) -> Self {
        Self { source: Source::Live(writer), rebuilt: None }
    }

    pub(crate) fn read_only(loaded: impl Into<Arc<Loaded<F>>>) -> Self {
        Self { source: Source::ReadOnly(loaded.into()), rebuilt: None }
    }

    /// Spares the next reader of this log what this one has to make again.
    pub(crate) fn keeping(self, rebuilt: &Arc<RebuiltLogs<F>>) -> Self {
        let reader = Self { rebuilt: Some(Arc::clone(rebuilt)), ..self };
        reader.keep_if_rebuilt();
        reader
    }

    fn keep_if_rebuilt(&self) {
        if let (Source::ReadOnly(loaded), Some(rebuilt)) = (&self.source, &self.rebuilt) {
            rebuilt.keep(loaded);
        }
    }

    fn with<T>(&self, read: impl FnOnce(View<'_, F>) -> T) -> T {
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
    fn look_up<T>(&self, read: impl Fn(View<'_, F>) -> Result<T>) -> Result<T> {
        let found = self.with(|view| match read(view) {
            Err(LogError::Corrupt(damage))
                if damage.kind.is_derived() || damage.kind == DamageKind::Frame =>
            {
                if view.state.rows.rebuild()? { read(view) } else { Err(damage.into()) }
            }
            other => other,
        });
        self.keep_if_rebuilt();
        found
    }

    /// Where the log is.
    #[must_use]
    pub fn head(&self) -> Head {
        self.with(|view| view.state.head)
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
    pub fn fold(&self) -> Arc<F> {
        self.with(|view| Arc::clone(&view.state.fold))
    }

    /// Where the log is and what the store's fold made of it, as of one moment: between two calls a log may grow.
    #[must_use]
    pub fn moment(&self) -> Moment<F> {
        self.with(|View { state, .. }| Moment {
            head: state.head,
            fold: Arc::clone(&state.fold),
            last_delta: state.streams.last_delta().cloned(),
            last_step: state.streams.number,
        })
    }

    /// Whether an entry was hidden.
    pub fn is_removed(&self, id: &str) -> Result<bool> {
        self.look_up(|view| view.is_removed(id))
    }

    /// Up to `limit` records after number `seq`, the unsettled steps after number `step`, and where the log ends, as of
    /// one moment.
    pub fn page<T>(
        &self,
        (seq, step): (u64, u64),
        limit: u64,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Page<T>> {
        self.look_up(|view| {
            Ok(Page {
                records: view.records(seq, limit, &decode)?,
                deltas: view.state.streams.after(step),
                head: view.state.head,
                last_step: view.state.streams.number,
            })
        })
    }

    /// The entry that the conversation goes on from.
    #[must_use]
    pub fn active_leaf(&self) -> Option<String> {
        self.with(|view| view.state.active_leaf.clone())
    }

    /// Entries whose deltas are not settled yet.
    #[must_use]
    pub fn streaming(&self) -> Vec<String> {
        self.with(|view| view.state.streams.targets().map(ToOwned::to_owned).collect())
    }

    /// Every delta that is not settled yet, in order.
    #[must_use]
    pub fn deltas(&self) -> Vec<StreamLine> {
        self.with(|view| view.state.streams.after(0))
    }

    /// The record that added an entry.
    pub fn find(&self, entry: &str) -> Result<Option<u64>> {
        self.look_up(|view| view.state.find(entry))
    }

    /// Up to `limit` records after number `after`, in order; fewer when they are large. Each record is lent to `decode`.
    pub fn records<T>(
        &self,
        after: u64,
        limit: u64,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Vec<T>> {
        self.look_up(|view| view.records(after, limit, &decode))
    }

    /// The next records after number `after` and up to number `last` that neither add nor change an entry, without reading
    /// the others. Asked again from where it looked, it comes to `last`, or to the end.
    pub fn others<T>(
        &self,
        after: u64,
        last: u64,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Others<T>> {
        self.look_up(|view| view.others(after, last, &decode))
    }

    /// One record.
    pub fn record<T>(
        &self,
        seq: u64,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Option<T>> {
        let found = self.records(seq.saturating_sub(1), 1, |stored| {
            (stored.seq == seq).then(|| decode(stored))
        })?;
        Ok(found.into_iter().next().flatten())
    }

    /// An entry with its newest revision.
    pub fn entry<T>(
        &self,
        entry: &str,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Option<EntryRecord<T>>> {
        self.look_up(|view| view.entry(entry, &decode))
    }

    /// A page of the path from the root to `leaf`. `None` when the leaf, or the entry where the page
    /// begins, is not there or not on that path.
    pub fn path<T>(
        &self,
        leaf: &str,
        start: PathStart<&str>,
        limit: usize,
        decode: impl Fn(StoredEnvelope<'_>) -> T,
    ) -> Result<Option<PathPage<T>>> {
        self.look_up(|view| view.path(leaf, start, limit, &decode))
    }

    /// Entries without children, by record.
    pub fn branch_heads(&self) -> Result<Vec<BranchHead>> {
        self.look_up(|view| view.branch_heads())
    }
}
