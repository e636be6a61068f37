//! Lists: the same cost, however many sessions there are.

use std::path::Path;
use std::sync::Arc;

use bough_platform::{OsDisk, RelPath, SystemClock};
use bough_session::{Incarnation, MetaChange, Record, SessionId, SessionState};
use bough_store::{Catalogue, CatalogueFile, CatalogueRow, Listed, Position};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::sides::{Cost, Safety, Side};
use crate::report::Row;
use crate::{Options, Outcome};

/// The numbers of sessions that are compared.
const FEW: usize = 1000;
const MANY: usize = 100_000;
/// Sessions on a page, and sessions that the filter finds.
const PAGE: usize = 50;

struct Lists {
    first: Cost,
    filtered: Cost,
    by_id: Cost,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let few = lists_of(options, Side::Native, FEW)?;
    let many = lists_of(options, Side::Native, MANY)?;
    let fs = lists_of(options, Side::Fs, FEW)?;
    let mut rows = Vec::new();
    rows.extend(rows_of("list, first page", many.first, few.first, fs.first));
    rows.extend(rows_of("list, metadata that 50 have", many.filtered, few.filtered, fs.filtered));
    rows.extend(rows_of("list, ids that begin so", many.by_id, few.by_id, fs.by_id));
    Ok(rows)
}

fn rows_of(what: &str, many: Cost, few: Cost, fs: Cost) -> Vec<Row> {
    let row = |kind: &str, unit: &str, read: fn(&Cost) -> f64| {
        Row::new(format!("{what}, {MANY} sessions: {kind}"), unit, read(&many))
            .beside(&format!("with_{FEW}"), read(&few))
            .beside(&format!("fs_with_{FEW}"), read(&fs))
    };
    vec![
        row("allocations", "allocations", |cost| cost.allocations),
        row("time", "ms", |cost| cost.milliseconds),
    ]
}

fn project(number: usize) -> &'static str {
    if number < PAGE { "rare" } else { "common" }
}

async fn fill_folder(folder: &Path, sessions: usize) -> Outcome<()> {
    let building = Side::Fs.serve(folder, Safety::Unsynced).await?;
    for number in 0..sessions {
        let request = json!({
            "session_id": format!("s{number:06}"), "title": format!("Session {number}"),
            "metadata": {"project": project(number)},
        });
        building.call("session::ensure", request).await?;
    }
    building.close().await
}

/// Lists read the catalogue and nothing else, so the sessions themselves need not be there; `bench log` lists with them.
async fn fill_catalogue(folder: &Path, sessions: usize) -> Outcome<()> {
    /// Rows that are written at a time.
    const BATCH: usize = 5000;
    let empty = Side::Native.serve(folder, Safety::Unsynced).await?;
    // A list waits until the catalogue is known to hold what the logs hold; before that it would be made anew.
    empty.call("session::list", json!({})).await?;
    empty.close().await?;
    let name = "catalogue.sqlite";
    let file = CatalogueFile {
        disk: Arc::new(OsDisk::create(folder)?),
        name: RelPath::parse(name)?,
        path: folder.join(name),
        clock: Arc::new(SystemClock::new()),
    };
    let (catalogue, _) = Catalogue::open(&file, Incarnation::new([0; 16]))?;
    for number in 0..sessions {
        catalogue.put(row(number));
        if number.is_multiple_of(BATCH) {
            catalogue.flush()?;
        }
    }
    catalogue.flush()?;
    Ok(())
}

fn row(number: usize) -> CatalogueRow {
    let id = SessionId::from_stored(format!("s{number:06}"));
    let mut state = SessionState::new(id);
    let change = MetaChange {
        title: Some(format!("Session {number}")),
        metadata: json!({"project": project(number)}).as_object().cloned(),
        ..MetaChange::default()
    };
    let at_ms = 1_795_000_000_000 + i64::try_from(number).unwrap_or(0);
    state.apply(&Record::Meta(change), 1, at_ms);
    CatalogueRow {
        incarnation: Incarnation::new([1; 16]),
        position: Position::at(1),
        listed: Listed::of(&state),
        size: 0,
    }
}

fn lists_of(options: &Options, side: Side, sessions: usize) -> Outcome<Lists> {
    eprintln!("listing: building {sessions} sessions, {}", side.name());
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        match side {
            Side::Native => fill_catalogue(folder.path(), sessions).await?,
            Side::Fs => fill_folder(folder.path(), sessions).await?,
        }
        side.serve(folder.path(), Safety::Synced).await
    })?;
    let whole = |answer: &Value| answer["sessions"].as_array().map(Vec::len) == Some(PAGE);
    let cost = |request: Value| served.cost_of(&runtime, "session::list", &request, whole);
    let lists = Lists {
        first: cost(json!({"limit": PAGE}))?,
        filtered: cost(json!({"limit": PAGE, "metadata": {"project": "rare"}}))?,
        by_id: cost(json!({"limit": PAGE, "id_prefix": "s0005"}))?,
    };
    runtime.block_on(served.close())?;
    Ok(lists)
}
