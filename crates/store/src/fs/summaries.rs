//! The source of lists: one short summary a file, cached while the file stays the same.

use std::collections::{HashMap, HashSet};

use bough_platform::{Listed as Name, RelPath};
use bough_session::{Incarnation, SessionId};

use super::names::{Named, SUFFIX, named};
use super::slot::{SessionPlace, Slot};
use super::{Shared, guard};
use crate::StoreError;
use crate::listing::ListItem;
use crate::types::Listed;
use bough_record::Position;

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
    incarnation: Incarnation,
    position: Position,
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

/// Logs the name of a file with lines that cannot be read. They are skipped, and stay as they are.
fn warn_of_unreadable(slot: &Slot) {
    let lines = slot.file.unreadable_lines();
    if lines > 0 {
        let path = slot.path.file_name();
        tracing::warn!(
            path,
            lines,
            "a session file holds lines that cannot be read; they are skipped"
        );
    }
}

impl Shared {
    /// Every session, from the files that changed since the last call and the summaries of the others.
    pub(super) fn items(&self) -> Result<Vec<ListItem>, StoreError> {
        let names = self.platform.disk.list(&RelPath::root())?;
        let mut summaries = guard(&self.summaries);
        let mut seen = HashSet::new();
        for name in names.iter().filter(|name| !name.is_dir) {
            // A file that cannot be read hides no other.
            match self.look_at(&mut summaries, name) {
                Ok(()) => {
                    seen.insert(name.name.as_str());
                }
                Err(error) if summaries.skipped.insert(name.name.clone()) => {
                    tracing::warn!(path = name.name.as_str(), %error, "a session file is skipped");
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
    pub(super) fn announce(&self, slot: &Slot, before: Option<SessionPlace>) {
        let Some(summary) = self.summary_of(slot) else { return };
        let mut summaries = guard(&self.summaries);
        self.put(&mut summaries, slot.path.file_name(), summary, Some(before));
    }

    /// Tells everybody that a session is gone.
    pub(super) fn announce_gone(
        &self,
        session: &SessionId,
        before: Option<SessionPlace>,
        end: SessionPlace,
        name: &str,
    ) {
        let known = guard(&self.summaries).by_name.remove(name);
        let after = told_before(known.as_ref(), before, end.life);
        self.hub.publish(session, end.life, after..end.position, true);
    }

    fn look_at(&self, summaries: &mut Summaries, name: &Name) -> Result<(), StoreError> {
        let session = match named(&name.name) {
            Named::Session(session) => session,
            Named::Long => SessionId::from_stored(""),
            Named::Nobody => {
                let path = name.name.as_str();
                if path.ends_with(SUFFIX) && summaries.skipped.insert(name.name.clone()) {
                    tracing::warn!(
                        path,
                        "a file is skipped: its name is not the name of a session"
                    );
                }
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
        warn_of_unreadable(&slot);
        let summary = Summary { mark, shown: shown_of(&slot), change: 0 };
        let announce = summaries.scanned.then_some(None);
        self.put(summaries, &name.name, summary, announce);
        Ok(())
    }

    /// Reads a file; one with a long id twice, the first time to learn the id.
    fn read(&self, mut slot: Slot, long: bool) -> Result<Slot, StoreError> {
        slot.glance(self.platform.disk.as_ref())?;
        if !long {
            return Ok(slot);
        }
        let Some(session) = slot.own_id().cloned() else {
            return Ok(slot);
        };
        let mut slot = Slot::at(&session, slot.path)?;
        slot.glance(self.platform.disk.as_ref())?;
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
        announce: Option<Option<SessionPlace>>,
    ) {
        if let (Some(shown), Some(before)) = (&summary.shown, announce) {
            let session = &shown.listed.meta.session_id;
            let after = told_before(summaries.by_name.get(name), before, shown.incarnation);
            let range = after..shown.position;
            summary.change = self.hub.publish(session, shown.incarnation, range, false);
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
                let range = shown.position..shown.position;
                self.hub.publish(session, shown.incarnation, range, true);
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

/// The position up to which an incarnation was announced: that of its summary, else the previous
/// one.
fn told_before(
    known: Option<&Summary>,
    before: Option<SessionPlace>,
    life: Incarnation,
) -> Position {
    let known = known.and_then(|known| known.shown.as_ref());
    let known =
        known.map(|shown| SessionPlace { life: shown.incarnation, position: shown.position });
    let place = known.into_iter().chain(before).find(|place| place.life == life);
    place.map_or_else(Position::default, |place| place.position)
}

fn shown_of(slot: &Slot) -> Option<Shown> {
    let snapshot = slot.snapshot()?;
    Some(Shown {
        incarnation: snapshot.head.incarnation,
        position: snapshot.position,
        listed: Listed::of(&snapshot.state),
    })
}
