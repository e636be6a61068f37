//! Durable appends through the service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;

use super::sides::{Safety, Served, Side, message};
use crate::measure::{self, as_f64, in_turns};
use crate::report::Row;
use crate::{Options, Outcome};

/// How long one round lasts.
const ROUND: Duration = Duration::from_millis(700);
/// Writers at once.
const WRITERS: usize = 64;

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
    LOADS.into_iter().map(|load| row(options, load)).collect()
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
