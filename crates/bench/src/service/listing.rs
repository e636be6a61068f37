//! Lists: the same cost, however many sessions there are.

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

fn lists_of(options: &Options, side: Side, sessions: usize) -> Outcome<Lists> {
    eprintln!("listing: building {sessions} sessions, {}", side.name());
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    let served = runtime.block_on(async {
        let building = side.serve(folder.path(), Safety::Unsynced).await?;
        for number in 0..sessions {
            let project = if number < PAGE { "rare" } else { "common" };
            let request = json!({
                "session_id": format!("s{number:06}"), "title": format!("Session {number}"),
                "metadata": {"project": project},
            });
            building.call("session::ensure", request).await?;
        }
        building.close().await?;
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
