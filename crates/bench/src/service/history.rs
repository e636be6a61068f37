//! What is read of a long history: a context with a budget, which must cost the same however long the session is; and every
//! entry once, page by page, as `bough tree --json` does, which must need no more memory.

use std::time::Instant;

use bough_session::SessionId;
use bough_store::{Position, StoreExt};
use serde_json::json;
use tokio::runtime::Runtime;

use super::sides::{Cost, Safety, Served, Side, fill};
use crate::memory::{peak_megabytes, reset_peak};
use crate::report::Row;
use crate::{Options, Outcome};

/// The lengths of session that are compared.
const SHORT: usize = 100_000;
const LONG: usize = 1_000_000;
/// The budget of the context.
const TOKENS: usize = 1_000;
/// Records that are read at a time.
const PAGE: usize = 500;

/// What was measured of one session.
struct History {
    context: Cost,
    context_peak: f64,
    walk: f64,
    walk_peak: f64,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let short = history_of(options, SHORT)?;
    let long = history_of(options, LONG)?;
    let row = |what: &str, unit: &str, read: fn(&History) -> f64| {
        Row::new(format!("{what} of {LONG}"), unit, read(&long))
            .beside(&format!("of_{SHORT}"), read(&short))
    };
    Ok(vec![
        row("context of 1000 tokens: bytes read", "bytes", |one| one.context.bytes_read),
        row("context of 1000 tokens: time", "ms", |one| one.context.milliseconds),
        row("context of 1000 tokens: memory", "MB", |one| one.context_peak),
        row("every entry, page by page: time", "ms", |one| one.walk),
        row("every entry, page by page: memory", "MB", |one| one.walk_peak),
    ])
}

fn history_of(options: &Options, length: usize) -> Outcome<History> {
    eprintln!("history: building a session of {length} entries");
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let building = Side::Native.serve(folder.path(), Safety::Unsynced).await?;
        fill(&building, "s", length).await?;
        building.close().await?;
        Side::Native.serve(folder.path(), Safety::Synced).await
    })?;
    let before = peak_from_now()?;
    let request = json!({"session_id": "s", "max_tokens": TOKENS});
    let context = served.cost_of(&runtime, "session::context", &request, |answer| {
        answer["messages"].as_array().is_some_and(|messages| !messages.is_empty())
    })?;
    let context_peak = peak_megabytes()? - before;
    let before = peak_from_now()?;
    let began = Instant::now();
    if runtime.block_on(count_entries(&served))? != length {
        return Err("the session was not read whole".into());
    }
    let walk = began.elapsed().as_secs_f64() * 1000.0;
    let walk_peak = peak_megabytes()? - before;
    runtime.block_on(served.close())?;
    Ok(History { context, context_peak, walk, walk_peak })
}

fn peak_from_now() -> Outcome<f64> {
    reset_peak()?;
    peak_megabytes()
}

async fn count_entries(served: &Served) -> Outcome<usize> {
    let (store, session) = (served.service.store(), SessionId::from_stored("s"));
    let (mut after, mut count) = (Position::default(), 0);
    loop {
        let page = store.records(&session, after, PAGE).await?;
        count += page.records.iter().filter(|stored| stored.record.as_entry().is_some()).count();
        if !page.more {
            return Ok(count);
        }
        after = page.position_after(after);
    }
}
