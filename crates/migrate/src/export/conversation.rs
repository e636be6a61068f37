//! The messages of one branch in a provider's format: what its API takes as the messages of a request.

use std::io::Write;

use bough_session::{Format, Loss, RawJson, SessionId, conversation_to_format};
use bough_store::ReadStore;
use serde::Serialize;

use super::walk::Path;
use super::{ExportOptions, Exported, snapshot};
use crate::error::Result;

/// What is written.
#[derive(Serialize)]
struct Document<'a> {
    session_id: &'a SessionId,
    format: Format,
    /// What instructs the model, for the formats that take it beside the messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<RawJson>,
    messages: Vec<RawJson>,
    /// What the format could not carry.
    losses: Vec<Loss>,
}

/// Writes the branch as one document. The whole of it is in memory: where a format puts a message depends on those around it.
pub(super) async fn export(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    format: Format,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let state = snapshot(store, session).await?.state;
    let mut entries = Vec::new();
    if let Some(leaf) = options.leaf.clone().or_else(|| state.leaf.clone()) {
        let mut path = Path::new(store, session, leaf);
        while let Some(page) = path.next().await? {
            entries.extend(page);
        }
    }
    let conversation = conversation_to_format(&entries, format);
    let written = Exported {
        entries: entries.len() as u64,
        losses: conversation.losses.len() as u64,
        ..Exported::default()
    };
    let document = Document {
        session_id: session,
        format,
        system: conversation.system,
        messages: conversation.messages,
        losses: conversation.losses,
    };
    serde_json::to_writer(&mut *out, &document).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(written)
}
