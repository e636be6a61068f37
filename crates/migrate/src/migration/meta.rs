//! The session's own record at its migration and now. What writes it says all of its fields each time, so
//! only the two ends tell what changed.

use bough_session::{JsonMap, MetaChange};

/// The session's own record, as far as a V1 file has no place for it.
#[derive(Debug, Default)]
pub(crate) struct OwnRecord {
    migrated: Fields,
    now: Fields,
}

/// What a session is doing at the moment is not among them: a V1 file does not keep it either.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fields {
    title: String,
    description: String,
    metadata: Option<JsonMap>,
    archived: bool,
    task_name: Option<String>,
}

impl OwnRecord {
    /// Takes what the migration wrote.
    pub(crate) fn migrated(&mut self, change: &MetaChange) {
        self.migrated.take(change);
        self.now = self.migrated.clone();
    }

    /// Takes what was written since.
    pub(crate) fn change(&mut self, change: &MetaChange) {
        self.now.take(change);
    }

    /// The title, where it is another than it was. A V1 file can say it.
    pub(crate) fn new_title(&self) -> Option<String> {
        Some(&self.now.title).filter(|title| **title != self.migrated.title).cloned()
    }

    /// How many of the other fields are not what they were.
    pub(crate) fn lost(&self) -> u64 {
        let (old, new) = (&self.migrated, &self.now);
        u64::from(old.description != new.description)
            + u64::from(old.metadata != new.metadata)
            + u64::from(old.archived != new.archived)
            + u64::from(old.task_name != new.task_name)
    }
}

impl Fields {
    fn take(&mut self, change: &MetaChange) {
        if let Some(title) = &change.title {
            self.title.clone_from(title);
        }
        if let Some(description) = &change.description {
            self.description.clone_from(description);
        }
        if change.metadata.is_some() {
            self.metadata.clone_from(&change.metadata);
        }
        if let Some(archived) = change.archived {
            self.archived = archived;
        }
        if change.task_name.is_some() {
            self.task_name.clone_from(&change.task_name);
        }
    }
}
