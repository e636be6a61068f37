//! Marks of migrations and rollbacks that are under way. With them, opening a data directory finds what was interrupted
//! without looking at every session.
//!
//! A mark is durable before anything of a migration or a rollback is. The next process that opens the directory removes
//! it, after the ledger has the outcome and the session is listed as it is now. So a session without a mark has nothing
//! to recover, and lists show it.

use bough_platform::{Disk, RelPath};
use bough_session::{SessionId, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::recover::holding;
use super::{Migrator, Recovered};
use crate::error::Result;
use crate::limits::MARK_BYTES_MAX;
use crate::v1::V1File;

/// Where the marks are, one file for each session.
const FOLDER: &str = "migrating";
/// How the name of a mark ends that is still being written.
const UNFINISHED: &str = ".tmp";

/// What is under way.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Mark {
    session: SessionId,
    /// The V1 file. Its lock is held while the move runs.
    address: String,
}

impl Migrator {
    /// Whether a mark of an earlier move is there: its session is not listed yet.
    fn is_marked(&self, session: &SessionId) -> Result<bool> {
        Ok(self.platform.disk.stat(&folder()?.join(&name_of(session))?)?.is_some())
    }

    /// Marks a session that is about to be moved. The caller holds the lock of the V1 file.
    fn mark(&self, session: &SessionId, address: &str) -> Result<()> {
        let disk = &*self.platform.disk;
        if disk.ensure_dir(&folder()?)? {
            disk.sync_dir(&RelPath::root())?;
        }
        let mark = Mark { session: session.clone(), address: address.to_owned() };
        let text = serde_json::to_vec(&mark).map_err(std::io::Error::other)?;
        let name = name_of(session);
        let temp = folder()?.join(&format!("{name}{UNFINISHED}"))?;
        Ok(disk.replace(&folder()?.join(&name)?, &temp, &text)?)
    }

    /// Removes the mark. This is not synced: a mark that comes back asks for a recovery that finds nothing to do.
    pub(crate) fn unmark(&self, session: &SessionId) -> Result<()> {
        match self.platform.disk.remove_file(&folder()?.join(&name_of(session))?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Moves a session while its V1 file is locked and the session is marked. After a success the mark stays until the
    /// session is listed as it is now.
    pub(super) fn move_marked<T>(
        &self,
        session: &SessionId,
        file: &V1File,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        file.locked(|| {
            let was_marked = self.is_marked(session)?;
            let done = self.mark(session, file.address()).and_then(|()| work());
            // A refusal leaves nothing to recover, a failure may.
            if done.is_err() && !was_marked && matches!(self.need(session), Ok(None)) {
                self.unmark(session)?;
            }
            done.map_err(|error| error.of_session(session))
        })
    }

    /// Finishes or undoes what was interrupted and left its mark. `visit` is called for each session where something was
    /// done. Call it when a data directory is opened: if nothing was interrupted it reads one folder.
    pub fn recover_interrupted(
        &self,
        visit: &mut dyn FnMut(&SessionId, &Result<Recovered>),
    ) -> Result<()> {
        for (session, recovered) in self.recover_marked()? {
            if is_settled(&recovered) {
                self.unmark(&session)?;
            }
            if !matches!(recovered, Ok(Recovered::Nothing)) {
                visit(&session, &recovered);
            }
        }
        Ok(())
    }

    /// Finishes or undoes what was interrupted, for each session that has a mark and is not being moved now. The marks
    /// stay: the caller lists the sessions first.
    pub(crate) fn recover_marked(&self) -> Result<Vec<(SessionId, Result<Recovered>)>> {
        let marks = self.marks()?.into_iter().map(|mark| {
            let recovered = self.recover_one(&mark);
            (mark.session, recovered)
        });
        Ok(marks.filter(|(_, done)| !matches!(done, Ok(Recovered::UnderWay))).collect())
    }

    fn marks(&self) -> Result<Vec<Mark>> {
        let disk: &dyn Disk = &*self.platform.disk;
        let listed = match disk.list(&folder()?) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut marks = Vec::new();
        for name in listed.iter().map(|listed| &listed.name) {
            // One that is still being written marks nothing yet, and one that vanishes is done.
            if !name.ends_with(UNFINISHED)
                && let Ok(bytes) = disk.read_all(&folder()?.join(name)?, MARK_BYTES_MAX)
            {
                marks.extend(serde_json::from_slice::<Mark>(&bytes));
            }
        }
        Ok(marks)
    }

    fn recover_one(&self, mark: &Mark) -> Result<Recovered> {
        let lock = self.files.locate(&mark.address).and_then(|file| file.lock());
        holding(lock, || self.recover_holding_lock(&mark.session))
    }
}

/// What waits for a person is tried again at the next opening.
pub(crate) fn is_settled(recovered: &Result<Recovered>) -> bool {
    !matches!(recovered, Err(_) | Ok(Recovered::NeedsOperator { .. }))
}

fn folder() -> Result<RelPath> {
    Ok(RelPath::parse(FOLDER)?)
}

/// Ids are no file names; their digests are.
fn name_of(session: &SessionId) -> String {
    let digest: [u8; 32] = Sha256::digest(session.as_str().as_bytes()).into();
    hex(digest.get(..16).unwrap_or_default())
}
