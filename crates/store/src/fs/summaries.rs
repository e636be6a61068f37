//! The source of lists: one short summary a file, cached while the file stays the same.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use bough_platform::{Listed as Name, RelPath};
use bough_session::SessionId;

use super::Shared;
use super::names::{Named, SUFFIX, named};
use super::slot::Slot;
use crate::StoreError;
use crate::listing::ListItem;
use crate::sync::lock;
use crate::types::{IncarnationPosition, Listed};

/// Summaries by file name.
#[derive(Debug, Default)]
pub(super) struct Summaries {
    by_name: HashMap<String, Summary>,
    /// Whether the whole directory was read once; a later file is a change.
    scanned: bool,
    /// Skipped files that the log has already named.
    skipped: HashSet<String>,
}

#[derive(Clone, Debug)]
struct Summary {
    mark: Mark,
    /// `None` when the file holds no session, or a deleted one.
    shown: Option<Shown>,
    change: u64,
}

#[derive(Clone, Debug)]
struct Shown {
    listed: Listed,
    end: IncarnationPosition,
}

/// By what a changed file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    bytes: u64,
    stream_bytes: u64,
    modified_ms: i64,
}

impl Summaries {
    /// Files without a session for lists.
    pub(super) fn hidden(&self) -> Vec<String> {
        let hidden = self.by_name.iter().filter(|(_, summary)| summary.shown.is_none());
        hidden.map(|(name, _)| name.clone()).collect()
    }
}

/// Logs the path of a file with lines that cannot be read, or without a session. They are skipped, and stay as they are.
fn warn_of_unreadable(root: &Path, slot: &Slot, bytes: u64) {
    let lines = slot.file.unreadable_lines();
    let path = root.join(slot.path.file_name());
    if lines > 0 {
        tracing::warn!(
            path = %path.display(),
            lines,
            "a session file holds lines that cannot be read; they are skipped"
        );
    } else if bytes > 0 && slot.any_image().is_none() {
        tracing::warn!(path = %path.display(), "a file is skipped: it has no `meta` record");
    }
}

impl Shared {
    /// Every session, from the files that changed since the last call and the summaries of the others.
    pub(super) fn items(&self) -> Result<Vec<ListItem>, StoreError> {
        let names = self.platform.disk.list(&RelPath::root())?;
        let mut summaries = lock(&self.summaries);
        let mut seen = HashSet::new();
        for name in &names {
            if name.is_dir {
                let reason = "a directory is skipped: a session is a file";
                self.warn_of_skipped(&mut summaries, name, reason);
                continue;
            }
            // A file that cannot be read hides no other.
            match self.look_at(&mut summaries, name) {
                Ok(()) => {
                    seen.insert(name.name.as_str());
                }
                Err(error) if summaries.skipped.insert(name.name.clone()) => {
                    let path = self.root.join(&name.name);
                    tracing::warn!(path = %path.display(), %error, "a session file is skipped");
                }
                Err(_) => {}
            }
        }
        summaries.scanned = true;
        self.drop_missing(&mut summaries, &seen);
        let items = summaries.by_name.values().filter_map(|summary| {
            let shown = summary.shown.as_ref()?;
            Some(ListItem { listed: shown.listed.clone(), change: summary.change })
        });
        Ok(items.collect())
    }

    /// Announces a change of a session, and keeps its summary. `before` is the previous position.
    pub(super) fn announce(&self, slot: &Slot, before: Option<IncarnationPosition>) {
        let Some(summary) = self.summary_of(slot) else { return };
        let mut summaries = lock(&self.summaries);
        self.put(&mut summaries, slot.path.file_name(), summary, Some(before));
    }

    /// Announces that a session is gone.
    pub(super) fn announce_gone(
        &self,
        session: &SessionId,
        before: Option<IncarnationPosition>,
        end: IncarnationPosition,
        name: &str,
    ) {
        let known = lock(&self.summaries).by_name.remove(name);
        self.hub.publish_since(
            session,
            published(known.as_ref()).into_iter().chain(before),
            end,
            true,
        );
    }

    /// Logs once that something is skipped which looks like the file of a session.
    fn warn_of_skipped(&self, summaries: &mut Summaries, name: &Name, reason: &'static str) {
        if name.name.ends_with(SUFFIX) && summaries.skipped.insert(name.name.clone()) {
            tracing::warn!(path = %self.root.join(&name.name).display(), "{reason}");
        }
    }

    fn look_at(&self, summaries: &mut Summaries, name: &Name) -> Result<(), StoreError> {
        let session = match named(&name.name) {
            Named::Session(session) => session,
            Named::Long => SessionId::from_stored(""),
            Named::Unknown => {
                let reason = "a file is skipped: its name is not the name of a session";
                self.warn_of_skipped(summaries, name, reason);
                return Ok(());
            }
        };
        let path = RelPath::root().join(&name.name).map_err(std::io::Error::from)?;
        let slot = Slot::at(&session, path)?;
        let mark = self.mark_of(&slot)?;
        if summaries.by_name.get(&name.name).is_some_and(|known| known.mark == mark) {
            return Ok(());
        }
        let slot = self.read(slot, named(&name.name) == Named::Long)?;
        warn_of_unreadable(&self.root, &slot, mark.bytes);
        let summary = Summary { mark, shown: shown_of(&slot), change: 0 };
        let announce = summaries.scanned.then_some(None);
        self.put(summaries, &name.name, summary, announce);
        Ok(())
    }

    /// Reads a file; one with a long id twice, the first time to learn the id.
    fn read(&self, mut slot: Slot, long: bool) -> Result<Slot, StoreError> {
        slot.read_unsynced(self.platform.disk.as_ref())?;
        if !long {
            return Ok(slot);
        }
        let Some(session) = slot.own_id().cloned() else {
            return Ok(slot);
        };
        let mut slot = Slot::at(&session, slot.path)?;
        slot.read_unsynced(self.platform.disk.as_ref())?;
        Ok(slot)
    }

    fn summary_of(&self, slot: &Slot) -> Option<Summary> {
        Some(Summary { mark: self.mark_of(slot).ok()?, shown: Some(shown_of(slot)?), change: 0 })
    }

    /// Keeps a summary, and announces it if it is new, with the previous position if that is known.
    fn put(
        &self,
        summaries: &mut Summaries,
        name: &str,
        mut summary: Summary,
        announce: Option<Option<IncarnationPosition>>,
    ) {
        if let (Some(shown), Some(before)) = (&summary.shown, announce) {
            let session = &shown.listed.meta.session_id;
            let known = published(summaries.by_name.get(name)).into_iter().chain(before);
            summary.change = self.hub.publish_since(session, known, shown.end, false);
        }
        summaries.by_name.insert(name.to_owned(), summary);
    }

    fn drop_missing(&self, summaries: &mut Summaries, seen: &HashSet<&str>) {
        let gone: Vec<String> = summaries
            .by_name
            .keys()
            .filter(|name| !seen.contains(name.as_str()))
            .cloned()
            .collect();
        for name in gone {
            let summary = summaries.by_name.remove(&name);
            if let Some(shown) = summary.and_then(|summary| summary.shown) {
                let session = &shown.listed.meta.session_id;
                // Another program removed the file; only that is announced.
                self.hub.publish_since(session, [shown.end], shown.end, true);
            }
        }
    }

    fn mark_of(&self, slot: &Slot) -> Result<Mark, StoreError> {
        let disk = self.platform.disk.as_ref();
        let stat = disk.stat(&slot.path)?;
        Ok(Mark {
            bytes: stat.map_or(0, |stat| stat.len),
            stream_bytes: slot.stream_len(disk)?,
            modified_ms: stat.map_or(0, |stat| stat.modified_ms),
        })
    }
}

/// The position up to which the session of a summary was published.
fn published(summary: Option<&Summary>) -> Option<IncarnationPosition> {
    Some(summary?.shown.as_ref()?.end)
}

fn shown_of(slot: &Slot) -> Option<Shown> {
    let snapshot = slot.snapshot()?;
    Some(Shown {
        end: IncarnationPosition::new(snapshot.head.incarnation, snapshot.position),
        listed: Listed::of(&snapshot.state),
    })
}
