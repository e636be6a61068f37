//! How long the first results take, through the service: found, compared with the store, with snippets.

use std::time::Instant;

use bough_store::Durability;
use serde_json::json;

use crate::bough::Served;
use crate::corpus::{Questions, questions};
use crate::measure::median;
use crate::peers::{FTS5, RIPGREP, TANTIVY};
use crate::report::Row;
use crate::tantivy_index::Searcher;
use crate::{Options, Outcome, entries, fts5, place, ripgrep};

/// Results that are waited for.
const LIMIT: usize = 20;
/// Questions that the slow peers are asked; reading everything takes seconds.
const SLOW_ASKED: usize = 5;

pub(crate) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let folder = place(options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let store = folder.join("bough");
    let served = runtime.block_on(Served::open(&store, Durability::Synced, true))?;
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for asked in questions(entries()?) {
        eprintln!("asking for {}", asked.kind);
        let times = runtime.block_on(ours(&served, &asked))?;
        let mut middle = Row::new(format!("{}, median", asked.kind), "ms", median(times.clone()));
        let mut slowest = Row::new(format!("{}, 95 of 100", asked.kind), "ms", high(times.clone()));
        all.extend(times);
        if let Some(patterns) = &asked.patterns {
            for (name, times) in peers(&folder, &asked, patterns)? {
                middle = middle.beside(name, median(times.clone()));
                slowest = slowest.beside(name, high(times));
            }
        }
        rows.extend([middle, slowest]);
    }
    rows.push(Row::new("all of these, median", "ms", median(all.clone())));
    rows.push(Row::new("all of these, 95 of 100", "ms", high(all)));
    runtime.block_on(served.close())?;
    Ok(rows)
}

async fn ours(served: &Served, asked: &Questions) -> Outcome<Vec<f64>> {
    let mut times = Vec::new();
    // What is opened once is open, and the text is as warm as for the peers.
    for round in 0..2 {
        for query in &asked.queries {
            let began = Instant::now();
            let found =
                served.call("session::search", json!({"query": query, "limit": LIMIT})).await?;
            let took = began.elapsed().as_secs_f64() * 1000.0;
            let hits = found["hits"].as_array().map_or(0, Vec::len);
            let is_sure = !asked.kind.contains("tool") && !asked.kind.contains("date");
            if is_sure && hits == 0 {
                return Err(format!("{} {query:?} finds nothing", asked.kind).into());
            }
            if round > 0 {
                times.push(took);
            }
        }
    }
    Ok(times)
}

fn peers(
    folder: &std::path::Path,
    asked: &Questions,
    patterns: &[String],
) -> Outcome<Vec<(&'static str, Vec<f64>)>> {
    let plain = fts5::open(folder)?;
    let tantivy = Searcher::open(folder)?;
    let few = patterns.iter().take(SLOW_ASKED);
    let mut measured = Vec::new();
    // Plain FTS5 takes a run of Chinese for one word, and tantivy would have to look for a prefix.
    if !asked.kind.contains("Chinese") {
        let plain = few.clone().map(|pattern| fts5::first_rows(&plain, pattern, LIMIT));
        measured.push((FTS5, plain.collect::<Outcome<_>>()?));
        let tantivy = patterns.iter().map(|pattern| tantivy.first_documents(pattern, LIMIT));
        measured.push((TANTIVY, tantivy.collect::<Outcome<_>>()?));
    }
    let lines = few.map(|pattern| ripgrep::first_lines(folder, pattern, LIMIT));
    measured.push((RIPGREP, lines.collect::<Outcome<_>>()?));
    Ok(measured)
}

/// The time that 95 of 100 stay below.
fn high(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len().saturating_mul(95) / 100).copied().unwrap_or(0.0)
}
