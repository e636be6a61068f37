//! Many files: finding them in a folder, migrating each.

use serde::Serialize;

use super::events::fresh_id;
use super::{Migrator, Progress, Summary};
use crate::error::{MigrateError, Result};
use crate::limits::WALK_DEPTH_MAX;

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

    /// Migrates every session below a folder, one by one: a file that fails stops no other. All of them
    /// share one correlation id. `visit` is told of each.
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
        for file in found.files {
            let done = self.plan(&file, &mut |at| progress(&file, at)).and_then(|plan| {
                self.migrate(plan, Some(&correlation), &mut |at| progress(&file, at))
            });
            let result = match done {
                Ok(summary) => FileResult::done(file, summary),
                Err(error) => FileResult::failed(file, &error),
            };
            visit(&result);
            results.push(result);
        }
        Ok(results)
    }
}

impl FileResult {
    fn done(address: String, summary: Summary) -> Self {
        Self { address, summary: Some(summary), error: None, skipped: false }
    }

    fn failed(address: String, error: &MigrateError) -> Self {
        let skipped = matches!(error, MigrateError::NotASession { .. });
        Self { address, summary: None, error: Some(error.to_string()), skipped }
    }
}
