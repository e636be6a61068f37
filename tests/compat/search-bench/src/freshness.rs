//! How soon an entry is found after its acknowledgement, while others write at a steady rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bough_store::Durability;
use serde_json::{Value, json};

use crate::bough::Served;
use crate::measure::{as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome, corpus};

const WRITERS: usize = 40;
/// Entries a second, by all writers together.
const RATES: [usize; 2] = [500, 2_000];
const SPAN: Duration = Duration::from_secs(20);
/// Nobody searches for so long before the first entry is looked for: the index must have kept up by itself.
const UNSEARCHED: Duration = Duration::from_secs(15);
/// Between two entries that are looked for.
const PAUSE: Duration = Duration::from_millis(150);

pub(crate) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for rate in RATES {
        let (written, mut times) = measured(options, rate)?;
        let first = times.first().copied().unwrap_or(0.0);
        times.sort_by(f64::total_cmp);
        eprintln!("{} entries were looked for, {written:.0} a second were written", times.len());
        let name =
            |what: &str| format!("found after its acknowledgement at {rate} entries/s, {what}");
        let most = times.last().copied().unwrap_or(0.0);
        rows.push(Row::new(format!("written at {rate} entries/s"), "entries/s", written));
        rows.push(Row::new(name("after a while without searches"), "ms", first));
        rows.push(Row::new(name("median"), "ms", median(times)));
        rows.push(Row::new(name("slowest"), "ms", most));
    }
    Ok(rows)
}

fn measured(options: &Options, rate: usize) -> Outcome<(f64, Vec<f64>)> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let served = Arc::new(Served::open(folder.path(), Durability::Synced, true).await?);
        let service = served.service.clone();
        let indexing = tokio::spawn(async move { service.keep_indexing().await });
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let writers: Vec<_> = (0..WRITERS)
            .map(|w| tokio::spawn(write(served.clone(), w, rate, stop.clone(), written.clone())))
            .collect();
        served.call("session::ensure", json!({"session_id": "mine"})).await?;
        tokio::time::sleep(UNSEARCHED).await;
        let (began, before) = (Instant::now(), written.load(Ordering::Relaxed));
        let mut times = Vec::new();
        while began.elapsed() < SPAN {
            times.push(found_after(&served, times.len()).await?);
            tokio::time::sleep(PAUSE).await;
        }
        let count = written.load(Ordering::Relaxed) - before;
        let reached = as_f64(count) / began.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await??;
        }
        indexing.abort();
        served.close().await?;
        Ok((reached, times))
    })
}

async fn found_after(served: &Served, number: usize) -> Outcome<f64> {
    let planted = format!("planted{number}");
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": planted}], "timestamp": 1});
    served.call("session::append", json!({"session_id": "mine", "message": message})).await?;
    let acknowledged = Instant::now();
    loop {
        let found = served.call("session::search", json!({"query": planted, "limit": 1})).await?;
        if found["hits"].as_array().is_some_and(|hits| !hits.is_empty()) {
            return Ok(acknowledged.elapsed().as_secs_f64() * 1000.0);
        }
    }
}

async fn write(
    served: Arc<Served>,
    writer: usize,
    rate: usize,
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
) -> Outcome<()> {
    let session = format!("w{writer}");
    served.call("session::ensure", json!({"session_id": session})).await?;
    let messages: Vec<Value> =
        (0..256).map(|n| corpus::entry(writer * 256 + n, 100_000).message).collect();
    let mut beat = tokio::time::interval(
        Duration::from_secs(1) * u32::try_from(WRITERS)? / u32::try_from(rate)?,
    );
    for message in messages.iter().cycle() {
        beat.tick().await;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        served.call("session::append", json!({"session_id": session, "message": message})).await?;
        written.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
