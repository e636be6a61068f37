//! Many files: finding them in a folder, migrating each.

use serde::Serialize;

use super::events::fresh_id;
use super::{Migrator, Progress, Summary};
use crate::error::{MigrateError, Result};
use crate::limits::WALK_DEPTH_MAX;

/// What became of one file of many.
#[derive(Debug, Serialize)]
pub struct FileResult {
    /// The file.
    pub address: String,
    /// What was done.
    pub summary: Option<Summary>,
    /// Why nothing was done.
    pub error: Option<String>,
    /// It is not a session at all, and was passed over.
    pub skipped: bool,
}

impl Migrator {
    /// The files below a folder that may be V1 sessions, in the order of their names; a file is itself.
    pub fn find(&self, address: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        match self.files.list(address) {
            Ok(_) => self.find_below(address, WALK_DEPTH_MAX, &mut found)?,
            Err(_) => found.push(self.files.locate(address)?.address().to_owned()),
        }
        Ok(found)
    }

    fn find_below(&self, folder: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
        for (address, is_folder) in self.files.list(folder)? {
            if is_folder && depth > 0 {
                self.find_below(&address, depth - 1, found)?;
            } else if !is_folder && (address.ends_with(".jsonl") || address.ends_with(".sqlite")) {
                found.push(address);
            }
        }
        Ok(())
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
        let mut results = Vec::new();
        for file in self.find(address)? {
            let done = self.plan(&file, &mut |at| progress(&file, at)).and_then(|plan| {
                self.migrate(plan, Some(&correlation), &mut |at| progress(&file, at))
            });
            let skipped = matches!(done, Err(MigrateError::NotASession { .. }));
            let (summary, error) = match done {
                Ok(summary) => (Some(summary), None),
                Err(error) => (None, Some(error.to_string())),
            };
            let result = FileResult { address: file, summary, error, skipped };
            visit(&result);
            results.push(result);
        }
        Ok(results)
    }
}
