use bough_session::SessionId;
use bough_store::origin::Origin;
use serde::Serialize;

use super::Migrator;
use super::run::{Progress, Step};
use crate::error::{MigrateError, Result};
use crate::v1::{
    FindingKind, Mapper, Snapshot, V1File, V1Format, V1Header, V1Report, Want, fallback_id,
};

/// What a migration of one file would do. Nothing is written to make one.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The file.
    pub address: String,
    /// Its form.
    pub format: V1Format,
    /// The session that it becomes.
    pub session_id: SessionId,
    /// Identifies its bytes.
    pub snapshot_id: String,
    /// Its header, where it has one.
    pub header: Option<V1Header>,
    /// Bytes of it.
    pub bytes: u64,
    /// What was found in it.
    pub report: V1Report,
    /// What stands in the data directory under that id.
    pub standing: Standing,
    #[serde(skip)]
    pub(crate) snapshot: Snapshot,
    /// The digest of everything that is kept.
    #[serde(skip)]
    pub(crate) content: String,
}

/// What stands in the data directory under the id of a V1 file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Nothing: the file is not migrated.
    New,
    /// This very file, migrated: nothing is left to do.
    Migrated,
    /// The file was migrated, and another program has written to it since.
    MigratedThenChanged,
    /// The file answers for the session: it was rolled back, or its migration did not finish.
    ServedFromFile,
    /// A session that has nothing to do with the file.
    Taken,
}

impl Migrator {
    /// Reads a file and says what migrating it would do. The data directory and the file stay as they
    /// are: this is all that a dry run does.
    pub fn plan(&self, address: &str, progress: &mut dyn FnMut(Progress)) -> Result<Plan> {
        let file = self.files.locate(address)?;
        let mut mapper = Mapper::new(file.name(), Want::Facts);
        let snapshot = file.feed(&mut mapper, &mut |mapper, done, total| {
            let entries = mapper.report().entries;
            progress(Progress { step: Step::Plan, done_bytes: done, total_bytes: total, entries });
            Ok(())
        })?;
        let (mapped, _) = mapper.finish(&fallback_id(file.address()));
        if !mapped.looks_like_pi {
            return Err(MigrateError::NotASession {
                address: file.address().to_owned(),
                reason: "it has neither a session header nor an entry that pi writes".to_owned(),
            });
        }
        let standing = self.standing(&mapped.session_id, &file, &snapshot)?;
        debug_assert_eq!(mapped.report.count(FindingKind::TooLong), 0, "refused while reading");
        Ok(Plan {
            address: file.address().to_owned(),
            format: file.format(),
            session_id: mapped.session_id,
            snapshot_id: snapshot.to_string(),
            header: mapped.header,
            bytes: snapshot.len,
            report: mapped.report,
            standing,
            snapshot,
            content: mapped.content.hex(),
        })
    }

    /// Whether a file that was migrated has another length than it had then.
    pub(crate) fn has_changed_since_migration(&self, address: &str) -> Result<bool> {
        let (file, session) = self.session_of(address)?;
        let origin = self.sessions.origin(&session)?.filter(Origin::is_log);
        let previous = origin.and_then(|origin| origin.previous);
        let Some((known, id)) = previous.as_ref().and_then(V1File::of_pointer) else {
            return Ok(false);
        };
        let then = Snapshot::parse(id).map(|snapshot| snapshot.len);
        Ok(known == file.address() && then != file.len()?)
    }

    /// What stands under an id, seen from a file.
    pub(crate) fn standing(
        &self,
        session: &SessionId,
        file: &V1File,
        snapshot: &Snapshot,
    ) -> Result<Standing> {
        let Some(origin) = self.sessions.origin(session)? else {
            return Ok(Standing::New);
        };
        Ok(standing_of(&origin, file.address(), &snapshot.to_string()))
    }
}

fn standing_of(origin: &Origin, address: &str, snapshot_id: &str) -> Standing {
    if !origin.is_log() {
        return match V1File::of_pointer(&origin.pointer) {
            Some((known, _)) if known == address => Standing::ServedFromFile,
            _ => Standing::Taken,
        };
    }
    match origin.previous.as_ref().and_then(V1File::of_pointer) {
        Some((known, id)) if known == address && id == snapshot_id => Standing::Migrated,
        Some((known, _)) if known == address => Standing::MigratedThenChanged,
        _ => Standing::Taken,
    }
}
