//! The session's own record at its migration and now. What writes it says all of its fields each time, so
//! only the two ends show what changed.

use bough_session::{MetaChange, Record, SessionId, SessionState};

/// The session's own record, as far as a V1 file has no place for it. What a session is doing at the moment is not of it: a
/// V1 file does not keep that either.
#[derive(Debug)]
pub(crate) struct OwnRecord {
    migrated: SessionState,
    now: SessionState,
}

impl Default for OwnRecord {
    fn default() -> Self {
        let nothing = SessionState::new(SessionId::from_stored("(migrated)"));
        Self { migrated: nothing.clone(), now: nothing }
    }
}

impl OwnRecord {
    /// Takes what the migration wrote.
    pub(crate) fn migrated(&mut self, change: &MetaChange) {
        take(&mut self.migrated, change);
        self.now = self.migrated.clone();
    }

    /// Takes what was written since.
    pub(crate) fn change(&mut self, change: &MetaChange) {
        take(&mut self.now, change);
    }

    /// The title, where it is another than it was. A V1 file can say it.
    pub(crate) fn new_title(&self) -> Option<String> {
        Some(&self.now.meta.title).filter(|title| **title != self.migrated.meta.title).cloned()
    }

    /// How many of the other fields are not what they were.
    pub(crate) fn lost(&self) -> u64 {
        let (old, new) = (&self.migrated, &self.now);
        u64::from(old.meta.description != new.meta.description)
            + u64::from(old.meta.metadata != new.meta.metadata)
            + u64::from(old.archived != new.archived)
            + u64::from(old.task_name != new.task_name)
    }
}

fn take(state: &mut SessionState, change: &MetaChange) {
    state.apply(&Record::Meta(change.clone()), state.seq + 1, 0);
}
