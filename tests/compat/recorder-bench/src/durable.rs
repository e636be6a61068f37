//! Making a session durable after each of its loops.

use std::sync::Arc;
use std::time::Instant;

use bough_platform::Platform;
use bough_service::{RecordingSink, Scope, Service};
use bough_store::{NativeOptions, NativeStore, Store};

use super::events::{Script, Shape};
use super::{PHI_CORE, SLOW_ROUNDS, ours, phi_recorder, read};
use crate::measure::{ROUNDS, as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome};
use phi_core::session::SessionStore as _;

const LOOPS: usize = 200;

/// The first and the last loops whose cost is compared.
const PART: usize = 50;

const ID: &str = "durable";

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    let script = Script::new(ID, "agent", Shape::Chained);
    let loops: Vec<Vec<String>> = (0..LOOPS).map(|number| script.lines_of(number)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut figures = [const { Vec::new() }; 4];
    for round in 1..=ROUNDS {
        eprintln!("durable after each of {LOOPS} loops: round {round} of {ROUNDS}");
        let ours = runtime.block_on(ours_times(options, &loops))?;
        let [mean, growth, peer_mean, peer_growth] = &mut figures;
        mean.push(mean_of(&ours));
        growth.push(growth_of(&ours));
        if round <= SLOW_ROUNDS {
            let phi = runtime.block_on(phi_times(options, &loops))?;
            peer_mean.push(mean_of(&phi));
            peer_growth.push(growth_of(&phi));
        }
    }
    let [mean, growth, peer_mean, peer_growth] = figures.map(median);
    Ok(vec![
        Row::new(format!("a loop made durable, mean of {LOOPS}"), "ms", mean)
            .beside(PHI_CORE, peer_mean),
        Row::new(
            format!("the last {PART} of {LOOPS} loops cost as the first {PART}"),
            "times",
            growth,
        )
        .beside(PHI_CORE, peer_growth),
    ])
}

/// Ours writes what is new to the session's log, and waits for the disk.
async fn ours_times(options: &Options, loops: &[Vec<String>]) -> Outcome<Vec<f64>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let platform = Platform::system(folder.path())?;
    let (clock, entropy) = (platform.clock.clone(), platform.entropy.clone());
    let opened =
        NativeStore::open(platform, folder.path().to_owned(), NativeOptions::default()).await?;
    let store: Arc<dyn Store> = Arc::new(opened);
    let service = Service::new(Arc::clone(&store), clock, entropy);
    let sink = Arc::new(RecordingSink::new(&service, &Scope::owner()));
    let recorder = ours::DurableRecorder::start(sink, ours::DurableOptions::default());
    let mut times = Vec::new();
    for lines in loops {
        let events: Vec<ours::AgentEvent> = read(lines)?;
        let began = Instant::now();
        for event in events {
            recorder.record(event).await?;
        }
        recorder.sync().await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    let recording = recorder.finish().await?;
    store.close().await?;
    let recorded: usize = recording.sessions.iter().map(|session| session.loops.len()).sum();
    if recorded != loops.len() || !recording.failures.is_empty() {
        return Err("not all loops were recorded".into());
    }
    Ok(times)
}

/// phi-core writes the session's file anew and syncs it.
async fn phi_times(options: &Options, loops: &[Vec<String>]) -> Outcome<Vec<f64>> {
    let folder = tempfile::tempdir_in(&options.folder)?;
    let store = phi_core::session::FileSystemSessionStore::new(folder.path());
    let mut recorder = phi_recorder();
    let mut times = Vec::new();
    for lines in loops {
        let events: Vec<phi_core::AgentEvent> = read(lines)?;
        let began = Instant::now();
        for event in events {
            recorder.on_event(event);
        }
        let session = recorder.get_session(ID).ok_or("the session is not there")?;
        store.save(session).await?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}

fn mean_of(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / as_f64(times.len().max(1))
}

fn growth_of(times: &[f64]) -> f64 {
    let first = times.get(..PART).unwrap_or(times);
    let last = times.get(times.len().saturating_sub(PART)..).unwrap_or(times);
    mean_of(last) / mean_of(first)
}
