//! Opening a data directory: its log, its catalogue, and the mark of this process.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bough_log as log;
use bough_platform::{Platform, RelPath};
use bough_session::SessionState;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::commit_pool::CommitPool;
use super::convert::StoreResult;
use super::dirty::DirtySessions;
use super::file_sessions::SessionsInFiles;
use super::{CATALOGUE_FILE, NativeOptions, Shared, listing};
use crate::StoreError;
use crate::catalogue::{Catalogue, CatalogueFile, Found, cannot_write};
use crate::changes::ChangeHub;
use crate::memory::new_incarnation;

impl Shared {
    pub(super) fn open(
        platform: Platform,
        root: &Path,
        options: NativeOptions,
        runtime: Handle,
    ) -> Result<(Self, Found), StoreError> {
        let log_options = log::Options {
            durability: options.durability,
            address: options.address.clone(),
            ..log::Options::default()
        };
        let log = <log::LogStore<SessionState>>::open(platform.clone(), log_options).of_all()?;
        let file = CatalogueFile {
            disk: Arc::clone(&platform.disk),
            name: RelPath::parse(CATALOGUE_FILE).map_err(std::io::Error::from)?,
            path: root.join(CATALOGUE_FILE),
            clock: Arc::clone(&platform.clock),
        };
        let (catalogue, found) = Catalogue::open(&file, new_incarnation(&*platform.entropy)?)?;
        let hub = ChangeHub::new(catalogue.epoch());
        // A disk that takes no writing takes no mark; what is there can be read.
        let mark = match listing::leave_mark(&platform, &options.address) {
            Err(error) if cannot_write(&error) => None,
            mark => Some(mark?),
        };
        let mark = Mutex::new(mark);
        let filled = watch::Sender::new(false);
        let shared = Self {
            platform,
            log,
            catalogue_behind: catalogue,
            dirty: DirtySessions::default(),
            hub,
            write_slots: Mutex::default(),
            commit_pool: CommitPool::new(runtime.clone()),
            runtime,
            options,
            filled,
            in_files: SessionsInFiles::default(),
            mark,
        };
        Ok((shared, found))
    }
}
