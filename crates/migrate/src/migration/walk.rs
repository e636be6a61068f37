//! Many files: finding them in a folder, migrating each.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use bough_session::SessionId;
use serde::Serialize;

use super::events::fresh_id;
use super::{Migrator, Plan, Progress, Summary};
use crate::error::{MigrateError, Result};
use crate::limits::{GROUP_FILES_MAX, MIGRATION_WORKERS, SMALL_FILE_BYTES, WALK_DEPTH_MAX};

/// What became of one file of many.
#[derive(Debug, Serialize)]
pub struct FileResult {
    /// The file, or a folder that cannot be looked into.
    pub address: String,
    /// What was done.
    pub summary: Option<Summary>,
    /// Why nothing was done.
    pub error: Option<String>,
    /// It is not a session at all, and was passed over.
    pub skipped: bool,
}

/// What may be migrated below a folder.
#[derive(Debug, Default)]
pub struct Found {
    /// Files that may be V1 sessions, in the order of their names.
    pub files: Vec<String>,
    /// Folders that cannot be looked into.
    pub unreadable: Vec<FileResult>,
}

impl Migrator {
    /// The files below a folder that may be V1 sessions; a file is itself.
    pub fn find(&self, address: &str) -> Result<Found> {
        let mut found = Found::default();
        match self.files.list(address) {
            Ok(listed) => self.find_below(listed, WALK_DEPTH_MAX, &mut found),
            Err(_) => found.files.push(self.files.locate(address)?.address().to_owned()),
        }
        Ok(found)
    }

    fn find_below(&self, listed: Vec<(String, bool)>, depth: usize, found: &mut Found) {
        for (address, is_folder) in listed {
            if is_folder && depth > 0 {
                match self.files.list(&address) {
                    Ok(listed) => self.find_below(listed, depth - 1, found),
                    // One folder that is closed to us is no reason to leave the others alone.
                    Err(error) => found.unreadable.push(FileResult::failed(address, &error)),
                }
            } else if !is_folder && (address.ends_with(".jsonl") || address.ends_with(".sqlite")) {
                found.files.push(address);
            }
        }
    }

    /// Migrates every session below a folder: a file that fails stops no other. All of them share one correlation id.
    /// `visit` gets each result, in the order of the files' names. Small files are migrated several at a time, because
    /// nearly all of their time is waiting for the disk.
    pub fn migrate_all(
        &self,
        address: &str,
        progress: &mut dyn FnMut(&str, Progress),
        visit: &mut dyn FnMut(&FileResult),
    ) -> Result<Vec<FileResult>> {
        let correlation = fresh_id(&self.platform, "run")?;
        let found = self.find(address)?;
        let mut results = found.unreadable;
        results.iter().for_each(&mut *visit);
        let mut group = Group::default();
        let mut done = |result: FileResult| {
            visit(&result);
            results.push(result);
        };
        for file in found.files {
            let plan = match self.plan(&file, &mut |at| progress(&file, at)) {
                Ok(plan) => plan,
                Err(error) => {
                    self.migrate_group(&mut group, &correlation, &mut done);
                    done(FileResult::failed(file, &error));
                    continue;
                }
            };
            if !group.takes(&plan) {
                self.migrate_group(&mut group, &correlation, &mut done);
            }
            if plan.bytes > SMALL_FILE_BYTES {
                let migrated =
                    self.migrate(plan, Some(&correlation), &mut |at| progress(&file, at));
                done(FileResult::of(file, migrated));
            } else {
                group.add(file, plan);
            }
        }
        self.migrate_group(&mut group, &correlation, &mut done);
        Ok(results)
    }

    /// Migrates the files of a group at the same time.
    fn migrate_group(
        &self,
        group: &mut Group,
        correlation: &str,
        done: &mut dyn FnMut(FileResult),
    ) {
        let files = std::mem::take(group).files;
        let workers = files.len().min(MIGRATION_WORKERS);
        let queue = Mutex::new(files.into_iter().enumerate());
        let results = Mutex::new(BTreeMap::new());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            while let Some((order, (file, plan))) = next() {
                let result = self.migrate(plan, Some(correlation), &mut |_| {});
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.insert(order, FileResult::of(file, result));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(work);
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.into_values().for_each(done);
    }
}

/// Small files of different sessions, which can be migrated at the same time.
#[derive(Default)]
struct Group {
    files: Vec<(String, Plan)>,
    sessions: HashSet<SessionId>,
}

impl Group {
    fn takes(&self, plan: &Plan) -> bool {
        let fits = plan.bytes <= SMALL_FILE_BYTES && self.files.len() < GROUP_FILES_MAX;
        fits && !self.sessions.contains(&plan.session_id)
    }

    fn add(&mut self, file: String, plan: Plan) {
        self.sessions.insert(plan.session_id.clone());
        self.files.push((file, plan));
    }
}

impl FileResult {
    fn of(address: String, migrated: Result<Summary>) -> Self {
        match migrated {
            Ok(summary) => Self { address, summary: Some(summary), error: None, skipped: false },
            Err(error) => Self::failed(address, &error),
        }
    }

    fn failed(address: String, error: &MigrateError) -> Self {
        let skipped = matches!(error, MigrateError::NotASession { .. });
        Self { address, summary: None, error: Some(error.to_string()), skipped }
    }
}
