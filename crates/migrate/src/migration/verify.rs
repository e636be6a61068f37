//! Holding a migrated log against the file that it was made from.

use bough_session::SessionId;
use bough_store::origin::Verification;
use bough_store::{DamageKind, Head, SessionDirectory, VerifyReport};

use super::log_records::{Migrated, each_record};
use crate::error::{MigrateError, Result};

/// What a source came to: the figures that its copy must reproduce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    pub(crate) entries: u64,
    pub(crate) content: String,
}

/// What holding a copy against its source gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Checked {
    pub(crate) verification: Verification,
    pub(crate) detail: String,
    pub(crate) head: Option<Head>,
}

impl Checked {
    pub(crate) fn is_well(&self) -> bool {
        let Verification { entry_count_match, hash_chain_match, index_consistent } =
            self.verification;
        entry_count_match && hash_chain_match && index_consistent
    }

    fn failed(detail: String) -> Self {
        Self { verification: Verification::default(), detail, head: None }
    }
}

/// Reads every byte of a log and compares. `expected` is what the source says; without it the log's own
/// mark, which the chain covers, is believed.
pub(crate) fn check(
    sessions: &SessionDirectory,
    session: &SessionId,
    expected: Option<&Expectation>,
) -> Result<Checked> {
    let report = sessions.verify(session)?;
    let mut migrated = Migrated::default();
    let read = sessions.read_log(session).map_err(Into::into).and_then(|reader| {
        each_record(&reader, &mut |stored| {
            migrated.take(&stored);
            Ok(())
        })?;
        Ok(reader.head())
    });
    let head = match read {
        Ok(head) => head,
        Err(MigrateError::Store(error)) => return Ok(Checked::failed(error.to_string())),
        Err(error) => return Err(error),
    };
    let Some(mark) = &migrated.mark else {
        return Ok(Checked::failed("the log does not say where the migration ended".to_owned()));
    };
    let own = Expectation { entries: mark.entries, content: mark.content.clone() };
    let expected = expected.unwrap_or(&own);
    let content_fits =
        migrated.content.hex() == expected.content && mark.content == expected.content;
    let verification = Verification {
        entry_count_match: migrated.content.entries == expected.entries,
        hash_chain_match: content_fits && !report.damage.iter().any(|d| !is_index(d.kind)),
        index_consistent: !report.damage.iter().any(|d| is_index(d.kind)),
    };
    let detail = detail_of(&report, content_fits, migrated.content.entries, expected.entries);
    Ok(Checked { verification, detail, head: Some(head) })
}

/// Damage of what leads to the frames, as against damage of the frames themselves.
fn is_index(kind: DamageKind) -> bool {
    kind.is_derived() || matches!(kind, DamageKind::BranchHead | DamageKind::ParentUnknown)
}

fn detail_of(report: &VerifyReport, content_fits: bool, found: u64, expected: u64) -> String {
    let mut parts: Vec<String> = report.damage.iter().take(3).map(ToString::to_string).collect();
    if !content_fits {
        parts.push("the kept lines are not those of the source".to_owned());
    }
    if found != expected {
        parts.push(format!("{found} entries in place of {expected}"));
    }
    if parts.is_empty() { "everything matches".to_owned() } else { parts.join("; ") }
}
