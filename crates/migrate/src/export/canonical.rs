//! Canonical entries: one per line, or in one document.

use std::io::{self, Write};

use bough_session::{Entry, SessionId};
use bough_store::ReadStore;
use serde::Serialize;

use super::walk::{Path, Records, changed, newest};
use super::{ExportOptions, Exported, snapshot};
use crate::error::Result;

/// What a document says that it is.
const DOCUMENT: &str = "bough.session/1";

pub(super) async fn lines(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    snapshot(store, session).await?;
    let mut written = Exported::default();
    each_entry(store, session, options, &mut |entry| {
        written.entries += 1;
        put(out, &entry.to_wire())?;
        out.write_all(b"\n")
    })
    .await?;
    Ok(written)
}

pub(super) async fn document(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
    let state = snapshot(store, session).await?.state;
    write!(out, "{{\"format\":\"{DOCUMENT}\",\"session\":")?;
    put(out, &state.meta)?;
    out.write_all(b",\"details\":")?;
    put(out, &state.details())?;
    out.write_all(b",\"leaf\":")?;
    put(out, &options.leaf.clone().or_else(|| state.leaf.clone()))?;
    out.write_all(b",\"entries\":[")?;
    let mut written = Exported::default();
    each_entry(store, session, options, &mut |entry| {
        out.write_all(if written.entries == 0 { b"\n" } else { b",\n" })?;
        written.entries += 1;
        put(out, &entry.to_wire())
    })
    .await?;
    out.write_all(b"\n]}\n")?;
    Ok(written)
}

fn put<T: Serialize>(out: &mut dyn Write, value: &T) -> io::Result<()> {
    serde_json::to_writer(out, value).map_err(Into::into)
}

/// Visits the entries of a branch, or of the whole session in the order in which they were added.
async fn each_entry(
    store: &dyn ReadStore,
    session: &SessionId,
    options: &ExportOptions,
    visit: &mut (dyn FnMut(&Entry) -> io::Result<()> + Send),
) -> Result<()> {
    if let Some(leaf) = &options.leaf {
        let mut path = Path::new(store, session, leaf.clone());
        while let Some(page) = path.next().await? {
            page.iter().try_for_each(&mut *visit)?;
        }
        return Ok(());
    }
    let (revised, hidden) = changed(store, session).await?;
    let mut records = Records::new(store, session);
    while let Some(page) = records.next().await? {
        for stored in page {
            let entry = stored.record.as_entry().filter(|entry| !entry.is_hidden());
            if let Some(entry) = entry {
                let mut entry = newest(store, session, entry, &revised).await?;
                entry.parent_id = hidden.visible_parent(&entry);
                visit(&entry)?;
            }
        }
    }
    Ok(())
}
