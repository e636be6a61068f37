//! What opening a data directory and listing its sessions costs as the sessions become many.

use std::path::Path;
use std::time::{Duration, Instant};

use bough_session::{JsonMap, MetaChange, Record, SessionId};
use bough_store::{ListQuery, NativeOptions, NativeStore, Store, StoreExt};
use tokio::runtime::Runtime;

use super::bough::platform;
use crate::entries::session_name;
use crate::measure;
use crate::peers::Syncing;
use crate::report::Row;
use crate::{Options, Outcome};

/// The numbers of sessions that are compared.
const FEW: usize = 1000;
const MANY: usize = 100_000;

/// Sessions on a page.
const PAGE: usize = 50;

/// Sessions that the filter finds, however many there are.
const MATCHING: usize = 50;

/// What listing cost, in milliseconds.
struct Cost {
    open_and_list: f64,
    list: f64,
    list_filtered: f64,
}

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let few = measure_with(&options.folder, FEW)?;
    let many = measure_with(&options.folder, MANY)?;
    let row = |what: &str, many: f64, few: f64| {
        let name = format!("{what}, {MANY} sessions");
        Row::new(name, "ms", many).beside(&format!("with_{FEW}"), few)
    };
    Ok(vec![
        row("open and list the first page", many.open_and_list, few.open_and_list),
        row("list the first page", many.list, few.list),
        row("list by metadata that 50 have", many.list_filtered, few.list_filtered),
    ])
}

fn measure_with(folder: &Path, sessions: usize) -> Outcome<Cost> {
    let folder = tempfile::tempdir_in(folder)?;
    let folder = folder.path();
    eprintln!("listing: building {sessions} sessions");
    let runtime = Runtime::new()?;
    runtime.block_on(build(folder, sessions))?;
    // Dropped with its threads, so that nothing of the building goes on while we measure.
    drop(runtime);
    let runtime = Runtime::new()?;
    let mut times = Vec::new();
    for _ in 0..measure::ROUNDS {
        times.push(runtime.block_on(time_to_first_page(folder))?);
    }
    let open_and_list = measure::median(times);
    let store = runtime.block_on(open(folder, Syncing::Real))?;
    let list = measure::milliseconds(|| runtime.block_on(page(&store, JsonMap::new())))?;
    let filter = project("rare");
    let list_filtered = measure::milliseconds(|| runtime.block_on(page(&store, filter.clone())))?;
    runtime.block_on(store.close())?;
    Ok(Cost { open_and_list, list, list_filtered })
}

/// Milliseconds from nothing open to the first page; closing again is not part of it.
async fn time_to_first_page(folder: &Path) -> Outcome<f64> {
    let began = Instant::now();
    let store = open(folder, Syncing::Real).await?;
    page(&store, JsonMap::new()).await?;
    let time = began.elapsed();
    store.close().await?;
    Ok(time.as_secs_f64() * 1000.0)
}

/// Without syncs: how the sessions came to be there is not what is measured.
async fn build(folder: &Path, sessions: usize) -> Outcome<()> {
    let store = open(folder, Syncing::Wait(Duration::ZERO)).await?;
    for n in 0..sessions {
        let change = MetaChange {
            title: Some(format!("Session {n}")),
            metadata: Some(project(if n < MATCHING { "rare" } else { "common" })),
            ..MetaChange::default()
        };
        let records = vec![Record::Meta(change).at(1_795_000_000_000)];
        let session = SessionId::from_stored(session_name(n));
        store.create(&session, records.into()).await?.durable.await?;
    }
    Ok(store.close().await?)
}

async fn open(folder: &Path, sync: Syncing) -> Outcome<NativeStore> {
    let platform = platform(folder, sync)?;
    Ok(NativeStore::open(platform, folder.to_owned(), NativeOptions::default()).await?)
}

async fn page(store: &NativeStore, metadata: JsonMap) -> Outcome<()> {
    let query = ListQuery { metadata, limit: PAGE, ..ListQuery::default() };
    let found = store.list(&query).await?.sessions.len();
    if found == PAGE {
        return Ok(());
    }
    Err(format!("a page had {found} sessions instead of {PAGE}").into())
}

fn project(name: &str) -> JsonMap {
    std::iter::once(("project".to_owned(), name.into())).collect()
}
