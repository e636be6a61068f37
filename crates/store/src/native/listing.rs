//! Keeping the catalogue in step with the logs, and noticing what other processes write.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bough_platform::{Lock, LockError, Platform, RelPath, host_facts};
use bough_session::{SessionId, SessionState, hex};

use super::Shared;
use super::convert::StoreResult;
use crate::StoreError;
use crate::catalogue::{CatalogueRow, Found};
use crate::changes::FeedEnd;
use crate::memory::new_incarnation;
use crate::types::{ChangeCursor, IncarnationPosition, ListPage, ListQuery, Listed, Snapshot};
use bough_record::Position;

#[cfg(test)]
mod tests;

/// How often the catalogue is written and looked at; other processes are at most this far behind.
const BEAT: Duration = Duration::from_millis(100);
/// How many beats lie between two checks for idle sessions.
const BEATS_BETWEEN_IDLE_CHECKS: u32 = 20;
/// How many changes of other processes are read at a time.
const CHANGES_AT_A_TIME: usize = 1_000;

/// How many marks a process tries to leave.
const MARK_TRIES: u32 = 5;

/// The folder of marks, one for each process that uses the directory.
const PROCESSES: &str = "processes";

/// Leaves a mark that this process uses the directory. It is locked as long as the process runs, however it
/// ends, and removed when the store is closed.
pub(super) fn leave_mark(platform: &Platform, address: &str) -> Result<Box<dyn Lock>, StoreError> {
    let dir = RelPath::parse(PROCESSES).map_err(std::io::Error::from)?;
    platform.disk.ensure_dir(&dir)?;
    let mut last = String::new();
    for _ in 0..MARK_TRIES {
        let mut random = [0; 8];
        platform.entropy.fill(&mut random)?;
        let path = dir.join(&hex(&random)).map_err(std::io::Error::from)?;
        match platform.disk.lock(&path, address) {
            Ok(mark) => return Ok(mark),
            // Another process that looks for marks of ended processes holds it for a moment.
            Err(LockError::Held { holder }) => last = holder,
            Err(LockError::Io(error)) => return Err(error.into()),
        }
    }
    Err(StoreError::Locked { holder: last })
}

/// Whether a process that used this directory ended without closing it: its mark is there and not
/// locked. Such marks are removed.
fn others_ended_uncleanly(platform: &Platform, address: &str) -> bool {
    let Ok(dir) = RelPath::parse(PROCESSES) else { return false };
    let mut unclean = false;
    for mark in platform.disk.list(&dir).unwrap_or_default() {
        let Ok(path) = dir.join(&mark.name) else { continue };
        let disk = &platform.disk;
        let (Ok(None), Ok(Some(_))) = (disk.lock_holder(&path), disk.stat(&path)) else {
            continue;
        };
        // Removed with the lock in hand: a process that has made the mark and is about to lock it must not lose it.
        if let Ok(left) = disk.lock(&path, address) {
            unclean = true;
            drop(left.remove());
        }
    }
    unclean
}

/// Starts the background work. It ends when the store is dropped. `seen` is where the catalogue was before the first read
/// through this store: everything after it is new.
pub(super) fn start(shared: &Arc<Shared>, found: Found, seen: ChangeCursor) {
    let weak = Arc::downgrade(shared);
    let compare = Weak::clone(&weak);
    shared.runtime.spawn_blocking(move || {
        if let Some(shared) = compare.upgrade() {
            // What fails here is tried again at the next start; lists lack the session until then.
            drop(shared.catch_up_with_logs(found));
            shared.filled.send_replace(true);
        }
    });
    shared.runtime.spawn(beat(weak, seen));
}

async fn beat(shared: Weak<Shared>, mut seen: ChangeCursor) {
    for count in 1_u32.. {
        tokio::time::sleep(BEAT).await;
        let Some(shared) = shared.upgrade() else { return };
        let before = seen.clone();
        let worked = tokio::task::spawn_blocking(move || {
            shared.settle_idle();
            // Before idle sessions are closed.
            shared.make_rows();
            if count % BEATS_BETWEEN_IDLE_CHECKS == 0 {
                shared.release_idle();
                shared.recover_ended_processes();
            }
            shared.notice_others(before)
        });
        // What could not be read now is still news at the next beat.
        if let Ok(Some(newer)) = worked.await {
            seen = newer;
        }
    }
}

impl Shared {
    /// Notes that the session's row is old and wakes its subscribers; called when something became durable.
    pub(super) fn announce(&self, session: &SessionId, end: IncarnationPosition) {
        self.announce_row(session, end, None);
    }

    /// The same for a session whose row is known.
    pub(super) fn announce_row(
        &self,
        session: &SessionId,
        end: IncarnationPosition,
        row: Option<Box<CatalogueRow>>,
    ) {
        self.mark_dirty(session, end, row);
        let IncarnationPosition { incarnation, position } = end;
        self.hub.wake(session, Some(FeedEnd { incarnation, position, deleted: false }));
    }

    pub(super) fn row(&self, session: &SessionId, snapshot: &Snapshot) -> CatalogueRow {
        let end = IncarnationPosition::new(snapshot.head.incarnation, snapshot.position);
        self.row_at(session, end, &snapshot.state)
    }

    pub(super) fn row_at(
        &self,
        session: &SessionId,
        end: IncarnationPosition,
        state: &SessionState,
    ) -> CatalogueRow {
        CatalogueRow {
            incarnation: end.incarnation,
            position: end.position,
            listed: Listed::of(state),
            size: self.log.extent(session.as_str()).unwrap_or(0),
        }
    }

    /// Writes what is queued, and wakes the subscribers of sessions that another process changed.
    fn notice_others(&self, mut seen: ChangeCursor) -> Option<ChangeCursor> {
        let catalogue = self.catalogue();
        drop(catalogue.flush());
        let newest = catalogue.newest().ok()?;
        while seen != newest {
            let page = catalogue.changes_after(&seen, CHANGES_AT_A_TIME).ok()?;
            for change in &page.changes {
                self.hub.wake(&change.session_id, Some(change.end()));
            }
            if page.changes.is_empty() {
                return Some(page.next);
            }
            seen = page.next;
        }
        Some(seen)
    }

    /// A page of a list. Rows that cannot be read are made again from their logs first; where the log cannot be read either,
    /// the page says what it can.
    pub(super) fn list(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        self.list_sessions_in_files();
        let (page, unreadable) = self.catalogue().list(query)?;
        if unreadable.is_empty() {
            return Ok(page);
        }
        for session in &unreadable {
            drop(self.refresh(std::slice::from_ref(session)));
        }
        Ok(self.catalogue().list(query)?.0)
    }

    /// A process that was killed has not written all its rows: this one does.
    fn recover_ended_processes(&self) {
        if *self.filled.borrow() && others_ended_uncleanly(&self.platform, &self.options.address) {
            // What fails here is tried again at the next start.
            drop(self.compare_with_logs(Found::Known));
        }
    }

    /// Makes the catalogue hold what the logs hold, where it may not.
    fn catch_up_with_logs(&self, found: Found) -> Result<(), StoreError> {
        let unclean = others_ended_uncleanly(&self.platform, &self.options.address);
        let boot = host_facts().boot_id;
        if found == Found::Known && unclean && !self.catalogue().is_of_boot(&boot)? {
            // The machine went down with it, and the catalogue is not synced: it may have lost numbers that
            // are in use. They must not be given out again for something else.
            self.catalogue().begin_epoch(new_incarnation(&*self.platform.entropy)?)?;
        }
        self.catalogue().note_boot(&boot)?;
        if found == Found::Empty || unclean {
            self.compare_with_logs(found)?;
        }
        if found == Found::Empty {
            self.catalogue().forget_changes()?;
        }
        Ok(())
    }

    /// Every log whose extent is not what the catalogue knows is folded again, and what has no log any
    /// more is taken out.
    fn compare_with_logs(&self, found: Found) -> Result<(), StoreError> {
        self.finish_restores()?;
        let mut ids = Vec::new();
        self.log
            .visit(&mut |log| ids.extend(log.ok().map(|log| SessionId::from_stored(log.id))))
            .of_all()?;
        if found == Found::Known {
            // The deleted ones come first: a new incarnation may have the same id.
            self.drop_trashed_rows()?;
        }
        for session in &ids {
            self.compare_one(session, found)?;
        }
        if found == Found::Known {
            self.drop_rows_without_logs()?;
        }
        self.catalogue().flush().map(drop)
    }

    fn compare_one(&self, session: &SessionId, found: Found) -> Result<(), StoreError> {
        let known = match found {
            Found::Known => self.catalogue().fingerprint(session)?,
            Found::Empty => None,
        };
        let size = self.log.extent(session.as_str()).unwrap_or(0);
        if known.is_some_and(|known| known.size == size) {
            return Ok(());
        }
        match self.readable_state(session) {
            Ok(Some(snapshot)) => self.catalogue().put(self.row(session, &snapshot)),
            Ok(None) if self.finish_deletion(session).unwrap_or(false) => {}
            Ok(None) | Err(StoreError::Invalid { .. }) => self.in_files.add(session),
            // One damaged log must not keep the others out of the catalogue.
            Err(_) => {}
        }
        Ok(())
    }

    /// Removes the rows of incarnations that are in the trash, and that the catalogue does not know to be gone.
    fn drop_trashed_rows(&self) -> Result<(), StoreError> {
        if self.catalogue().has_forgotten_incarnations()? {
            return Ok(());
        }
        for trashed in self.trash(None)?.into_iter().filter(|found| found.deleted_at.is_some()) {
            let end = Position::at(trashed.state.seq);
            self.catalogue().remove(&trashed.session_id, trashed.incarnation, end);
        }
        self.catalogue().flush().map(drop)
    }

    fn drop_rows_without_logs(&self) -> Result<(), StoreError> {
        let mut after: Option<SessionId> = None;
        loop {
            let rows = self.catalogue().fingerprints(after.as_ref(), CHANGES_AT_A_TIME)?;
            for row in &rows {
                if let Ok(false) = self.log.contains(row.session_id.as_str()) {
                    self.catalogue().remove(&row.session_id, row.incarnation, row.position);
                }
            }
            match rows.last() {
                Some(last) => after = Some(last.session_id.clone()),
                None => return Ok(()),
            }
        }
    }
}
