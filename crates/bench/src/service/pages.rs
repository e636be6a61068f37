//! Pages of messages: the same cost, however long the session is.

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::sides::{Cost, Safety, Side, entry_id, fill};
use crate::report::Row;
use crate::{Options, Outcome};

/// The lengths of session that are compared.
const SHORT: usize = 10_000;
const LONG: usize = 1_000_000;
/// Messages on a page.
const PAGE: usize = 50;

/// A page of each kind.
struct Pages {
    first: Cost,
    late: Cost,
    newest: Cost,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let short = pages_of(options, Side::Native, SHORT)?;
    let long = pages_of(options, Side::Native, LONG)?;
    let fs = pages_of(options, Side::Fs, SHORT)?;
    let mut rows = Vec::new();
    rows.extend(rows_of("messages, first page", long.first, short.first, fs.first));
    rows.extend(rows_of("messages, a page in the middle", long.late, short.late, fs.late));
    rows.extend(rows_of("messages, newest page", long.newest, short.newest, fs.newest));
    Ok(rows)
}

fn rows_of(what: &str, long: Cost, short: Cost, fs: Cost) -> Vec<Row> {
    let row = |kind: &str, unit: &str, read: fn(&Cost) -> f64| {
        Row::new(format!("{what} of {LONG}: {kind}"), unit, read(&long))
            .beside(&format!("of_{SHORT}"), read(&short))
            .beside(&format!("fs_of_{SHORT}"), read(&fs))
    };
    vec![
        row("bytes read", "bytes", |cost| cost.bytes_read),
        row("allocations", "allocations", |cost| cost.allocations),
        row("memory allocated", "bytes", |cost| cost.bytes_allocated),
        row("time", "ms", |cost| cost.milliseconds),
    ]
}

fn pages_of(options: &Options, side: Side, length: usize) -> Outcome<Pages> {
    eprintln!("pages: building a session of {length} entries, {}", side.name());
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let building = side.serve(folder.path(), Safety::Unsynced).await?;
        fill(&building, "s", length).await?;
        building.close().await?;
        side.serve(folder.path(), Safety::Synced).await
    })?;
    let whole = |answer: &Value| answer["messages"].as_array().map(Vec::len) == Some(PAGE);
    let cost = |function: &str, request: Value| served.cost_of(&runtime, function, &request, whole);
    let middle = cursor_after(entry_id(length / 2).as_ref());
    let pages = Pages {
        first: cost("session::messages", json!({"session_id": "s", "limit": PAGE}))?,
        late: cost(
            "session::messages",
            json!({"session_id": "s", "limit": PAGE, "cursor": middle}),
        )?,
        newest: cost("session::messages-tail", json!({"session_id": "s", "limit": PAGE}))?,
    };
    runtime.block_on(served.close())?;
    Ok(pages)
}

/// The cursor of a page that ended with an entry.
fn cursor_after(entry: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(json!({"id": entry}).to_string())
}
