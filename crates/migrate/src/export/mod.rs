//! Sessions out of any store: as a pi file, as canonical lines, as one document, as a transcript, as a conversation in a
//! provider's format.

mod canonical;
mod conversation;
mod pi;
mod transcript;
mod walk;

use std::io;

use bough_session::{EntryId, Format, SessionId};
use bough_store::{ReadStore, Snapshot, StoreError, StoreExt};
use serde::Serialize;

pub use pi::write_sqlite;
pub use transcript::neutralise;

use crate::error::Result;

/// What an export looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// A pi file. Entries that came from pi are as they came.
    Pi,
    /// One canonical entry per line.
    Jsonl,
    /// One document: the session's record, its details, its entries.
    Json,
    /// A transcript for people.
    Md,
    /// The messages of one branch as a provider's API takes them, with a list of what its format could not carry. Without a
    /// leaf it is the active branch.
    Conversation(Format),
}

/// How a session is exported.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// What it looks like.
    pub format: ExportFormat,
    /// Only the branch that ends here; `None` is the whole session.
    pub leaf: Option<EntryId>,
    /// The working directory to write into a pi file's header where the session does not know one.
    pub cwd: Option<String>,
}

impl ExportOptions {
    /// The whole session in a format.
    #[must_use]
    pub const fn whole(format: ExportFormat) -> Self {
        Self { format, leaf: None, cwd: None }
    }

    /// One branch in a format.
    #[must_use]
    pub const fn branch(format: ExportFormat, leaf: EntryId) -> Self {
        Self { format, leaf: Some(leaf), cwd: None }
    }
}

/// What an export wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// Entries.
    pub entries: u64,
    /// Lines that are no entries, given back as they came.
    pub kept: u64,
    /// What the format could not carry.
    pub losses: u64,
}

/// Writes a session to `out`. Reads page by page: but for a conversation, memory does not grow with the session.
pub async fn export(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    out: &mut (dyn io::Write + Send),
) -> Result<Exported> {
    let exported = match options.format {
        ExportFormat::Pi => pi::export(store, session, options, out).await?,
        ExportFormat::Jsonl => canonical::lines(store, session, options, out).await?,
        ExportFormat::Json => canonical::document(store, session, options, out).await?,
        ExportFormat::Md => transcript::export(store, session, options, out).await?,
        ExportFormat::Conversation(format) => {
            conversation::export(store, session, options, format, out).await?
        }
    };
    out.flush()?;
    Ok(exported)
}

async fn snapshot(store: &dyn ReadStore, session: &SessionId) -> Result<Snapshot> {
    let missing = || StoreError::NotFound { session: session.clone() };
    Ok(store.state(session).await?.ok_or_else(missing)?)
}
