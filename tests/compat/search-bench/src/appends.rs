//! Durable appends while the index runs behind them, beside the same without an index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bough_store::Durability;
use serde_json::json;

use crate::bough::Served;
use crate::measure::{as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome, corpus};

const WRITERS: usize = 64;
const ROUND: Duration = Duration::from_secs(6);
/// Each side is measured this often, in turn: the disk has slower and faster minutes.
const ROUNDS: usize = 7;

pub(crate) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let mut figures = [const { (Vec::new(), Vec::new()) }; 2];
    for round in 0..ROUNDS {
        // Each is first as often as the other is.
        for side in [round % 2, 1 - round % 2] {
            let (rate, high) = measured(options, side == 0)?;
            eprintln!("round {round}: index {}: {rate:.0}/s, {high:.2} ms", side == 0);
            if let Some((rates, highs)) = figures.get_mut(side) {
                rates.push(rate);
                highs.push(high);
            }
        }
    }
    let [(rates, highs), (rates_off, highs_off)] = figures;
    let name = |what: &str| format!("{WRITERS} writers, {what}");
    Ok(vec![
        Row::new(name("append rate with the index behind"), "entries/s", median(rates))
            .beside("without_index", median(rates_off)),
        Row::new(name("99 of 100 appends with the index behind"), "ms", median(highs))
            .beside("without_index", median(highs_off)),
    ])
}

fn measured(options: &Options, is_indexed: bool) -> Outcome<(f64, f64)> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let served = Arc::new(Served::open(folder.path(), Durability::Synced, is_indexed).await?);
        let indexing = is_indexed.then(|| {
            let service = served.service.clone();
            tokio::spawn(async move { service.keep_indexing().await })
        });
        for writer in 0..WRITERS {
            served.call("session::ensure", json!({"session_id": format!("w{writer}")})).await?;
        }
        let began = Instant::now();
        let writers: Vec<_> =
            (0..WRITERS).map(|w| tokio::spawn(write(served.clone(), w, began))).collect();
        let mut times = Vec::new();
        for writer in writers {
            times.extend(writer.await??);
        }
        let rate = as_f64(times.len()) / began.elapsed().as_secs_f64();
        if let Some(indexing) = indexing {
            indexing.abort();
        }
        served.close().await?;
        times.sort_by(f64::total_cmp);
        Ok((rate, times.get(times.len() * 99 / 100).copied().unwrap_or(0.0)))
    })
}

async fn write(served: Arc<Served>, writer: usize, began: Instant) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    let messages: Vec<_> =
        (0..64).map(|n| corpus::entry(writer * 64 + n, 100_000).message).collect();
    for message in messages.iter().cycle() {
        if began.elapsed() >= ROUND {
            break;
        }
        let request = json!({"session_id": format!("w{writer}"), "message": message});
        let asked = Instant::now();
        served.call("session::append", request).await?;
        times.push(asked.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}
