//! The sessions of a data directory without a catalogue and without waiting tasks: for work that is done beside a running
//! store, such as migration and rollback. Every call may block.

use bough_log as log;
use bough_platform::Platform;
use bough_record::{Head, StoredEnvelope};
use bough_session::{EntryId, SessionId, SessionState};

use super::convert::{self, StoreResult};
use super::staged::StagedSession;
use crate::StoreError;
use crate::types::StoredEntry;

/// The sessions of a data directory, by their logs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionDirectory {
    pub(super) log: log::LogStore<SessionState>,
}

impl SessionDirectory {
    /// Opens a data directory, making the folders that are missing.
    pub fn open(platform: Platform, options: log::Options) -> Result<Self, StoreError> {
        log::LogStore::open(platform, options).map(Self::over).of_all()
    }

    /// Looks at a data directory, which may be missing. Opening it writes nothing.
    #[must_use]
    pub fn open_to_look(platform: Platform) -> Self {
        Self::over(log::LogStore::open_to_look(platform, log::Options::default()))
    }

    pub(super) fn over(log: log::LogStore<SessionState>) -> Self {
        Self { log }
    }

    /// Calls the log about a session.
    pub(super) fn of_session<T>(
        &self,
        session: &SessionId,
        ask: impl FnOnce(&log::LogStore<SessionState>, &str) -> log::Result<T>,
    ) -> Result<T, StoreError> {
        ask(&self.log, session.as_str()).of(session)
    }

    /// The sessions, whether their logs or V1 files answer for them.
    pub fn sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        let mut found = Vec::new();
        let add = &mut |listed: log::Result<log::ListedLog>| {
            found.extend(listed.ok().map(|listed| SessionId::from_stored(listed.id)));
        };
        self.log.visit(add).of_all()?;
        Ok(found)
    }

    /// The sessions in the trash.
    pub fn trashed(&self) -> Result<Vec<SessionId>, StoreError> {
        let trash = self.log.trash().of_all()?;
        Ok(trash.into_iter().map(|listed| SessionId::from_stored(listed.id)).collect())
    }

    /// Reads a session that its log answers for.
    pub fn read(&self, session: &SessionId) -> Result<LogReader, StoreError> {
        let reader = self.of_session(session, |log, id| log.read(id))?;
        Ok(LogReader { session: session.clone(), reader })
    }

    /// Reads the log of a session, also while a V1 file answers for it.
    pub fn read_log(&self, session: &SessionId) -> Result<LogReader, StoreError> {
        let reader = self.of_session(session, |log, id| log.read_segments(id))?;
        Ok(LogReader { session: session.clone(), reader })
    }

    /// Reads a session while no process can append to it: the writer's lock is held until `work` ends.
    pub fn read_locked<T, E: From<StoreError>>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&LogReader) -> Result<T, E>,
    ) -> Result<T, E> {
        self.of_session(session, |log, id| log.open_for_writing(id))?;
        let done = self.read(session).map_err(E::from).and_then(|reader| work(&reader));
        let closed = self.of_session(session, |log, id| log.close(id));
        let done = done?;
        closed?;
        Ok(done)
    }

    /// Checks every byte of a session's log.
    pub fn verify(&self, session: &SessionId) -> Result<log::VerifyReport, StoreError> {
        self.of_session(session, |log, id| log.verify(id))
    }

    /// Begins a session out of sight, in a folder of `staging/`. What an earlier attempt of the same folder's name left
    /// is removed.
    pub fn stage(&self, session: &SessionId, name: &str) -> Result<StagedSession, StoreError> {
        StagedSession::begin(&self.log, session, name)
    }
}

/// Reads the log of one session, record by record.
#[derive(Debug)]
pub struct LogReader {
    session: SessionId,
    reader: log::Reader<SessionState>,
}

impl LogReader {
    /// Where the log ends.
    #[must_use]
    pub fn head(&self) -> Head {
        self.reader.head()
    }

    /// The entry that the next one hangs below.
    #[must_use]
    pub fn active_leaf(&self) -> Option<EntryId> {
        self.reader.active_leaf().map(EntryId::from_stored)
    }

    /// Whether the log is damaged behind what can be read of it.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.reader.damage().is_some()
    }

    /// Records after one of them in their stored form, at most so many, in order.
    pub fn records_after(
        &self,
        seq: u64,
        limit: u64,
    ) -> Result<Vec<StoredEnvelope<'static>>, StoreError> {
        self.reader.records(seq, limit, |stored| stored.into_owned()).of(&self.session)
    }

    /// An entry at its newest revision.
    pub fn entry(&self, id: &str) -> Result<Option<StoredEntry>, StoreError> {
        let found = self.reader.entry(id, convert::stored_record).of(&self.session)?;
        found.map(|found| Ok(convert::entry(found)?.0)).transpose()
    }
}
