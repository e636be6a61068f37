//! Durable appends through the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use stats_alloc::Region;
use tokio::runtime::Runtime;

use super::sides::{Safety, Served, Side, message};
use crate::measure::{self, as_f64, in_turns};
use crate::report::Row;
use crate::{ALLOCATOR, Options, Outcome};

/// How long one round lasts.
const ROUND: Duration = Duration::from_millis(700);
/// Writers at once.
const WRITERS: usize = 64;

/// Appends over which the memory of one is counted: enough that what grows now and then is in the figure.
const COUNTED: usize = 1000;

/// Who writes where.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    writers: usize,
    sessions: usize,
}

const LOADS: [Load; 3] = [
    Load { name: "append, one writer", writers: 1, sessions: 1 },
    Load { name: "append, 64 writers of one session", writers: WRITERS, sessions: 1 },
    Load { name: "append, 64 writers of 64 sessions", writers: WRITERS, sessions: WRITERS },
];

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = LOADS.map(|load| row(options, load)).into_iter().collect::<Outcome<Vec<_>>>()?;
    rows.extend(memory_rows(options)?);
    Ok(rows)
}

/// What one append allocates on its whole way, from the parsed request to the answer.
fn memory_rows(options: &Options) -> Outcome<[Row; 2]> {
    let [own, fs] = Side::BOTH.map(|side| memory_of_one(options, side));
    let ((own_count, own_bytes), (fs_count, fs_bytes)) = (own?, fs?);
    Ok([
        Row::new("append: allocations", "allocations", own_count).beside("fs", fs_count),
        Row::new("append: memory allocated", "bytes", own_bytes).beside("fs", fs_bytes),
    ])
}

fn memory_of_one(options: &Options, side: Side) -> Outcome<(f64, f64)> {
    eprintln!("append: counting allocations, {}", side.name());
    let folder = tempfile::tempdir_in(&options.folder)?;
    Runtime::new()?.block_on(async {
        let served = side.serve(folder.path(), Safety::Unsynced).await?;
        served.call("session::ensure", json!({"session_id": "s"})).await?;
        let request = |number| json!({"session_id": "s", "message": message(number)});
        served.call("session::append", request(0)).await?;
        let requests: Vec<_> = (1..=COUNTED).map(request).collect();
        let region = Region::new(ALLOCATOR);
        for request in requests {
            served.call("session::append", request).await?;
        }
        let memory = region.change();
        served.close().await?;
        let each = |count: usize| as_f64(count) / as_f64(COUNTED);
        Ok((each(memory.allocations + memory.reallocations), each(memory.bytes_allocated)))
    })
}

fn row(options: &Options, load: Load) -> Outcome<Row> {
    let sides = Side::BOTH.map(|side| measure::Side {
        name: side.name(),
        measure: Box::new(move || rate(options, side, load)),
    });
    let values = in_turns(load.name, sides.into())?;
    let [(_, own), (peer, theirs)] = values.as_slice() else {
        return Err("two sides were measured".into());
    };
    Ok(Row::new(load.name, "entries/s", *own).beside(peer, *theirs))
}

fn rate(options: &Options, side: Side, load: Load) -> Outcome<f64> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = Runtime::new()?;
    runtime.block_on(async {
        let served = Arc::new(side.serve(folder.path(), Safety::Synced).await?);
        for session in 0..load.sessions {
            served.call("session::ensure", json!({"session_id": session.to_string()})).await?;
        }
        let done = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let writers: Vec<_> = (0..load.writers)
            .map(|writer| {
                let session = (writer % load.sessions).to_string();
                tokio::spawn(write(served.clone(), session, began + ROUND, done.clone()))
            })
            .collect();
        for writer in writers {
            writer.await??;
        }
        let rate = as_f64(done.load(Ordering::Relaxed)) / began.elapsed().as_secs_f64();
        served.close().await?;
        Ok(rate)
    })
}

async fn write(
    served: Arc<Served>,
    session: String,
    until: Instant,
    done: Arc<AtomicUsize>,
) -> Outcome<()> {
    let mut number = 0;
    while Instant::now() < until {
        let request = json!({"session_id": session, "message": message(number)});
        served.call("session::append", request).await?;
        done.fetch_add(1, Ordering::Relaxed);
        number += 1;
    }
    Ok(())
}
