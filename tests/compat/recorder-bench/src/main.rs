//! `cargo xtask bench recorder`: the recorder and its session files beside phi-core's.
//!
//! Both sides hear the same events. Since 0.14 phi-core keeps none of them in its sessions and its files, so Bough
//! records and writes more than twice as much.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "measuring needs the real clock and disk, and phi-core uses them as it likes"
)]

mod durable;
mod events;
mod files;
mod listing;
mod navigation;
mod recording;

use std::process::ExitCode;
use std::time::Instant;

use bough_bench::measure::{ROUNDS, median};
use bough_bench::{Bench, Options, Outcome, Part, measure, report};
use bough_recorder as ours;

/// What phi-core is called in the rows.
const PHI_CORE: &str = "phi_core_0.15.2";

const PARTS: [Part; 6] = [
    ("recording", recording::rows),
    ("streaming", recording::streaming_rows),
    ("files", files::rows),
    ("navigation", navigation::rows),
    ("listing", listing::rows),
    ("durable", durable::rows),
];

fn main() -> ExitCode {
    let about = "the recorder beside phi-core: recording, session files, navigation";
    bough_bench::main(&[Bench {
        name: "recorder",
        about,
        run: |options| options.run_parts(&PARTS),
    }])
}

/// How often phi-core is measured where it takes many seconds.
const SLOW_ROUNDS: usize = 1;

/// How often both sides are measured where it takes a moment: a moment is easily disturbed.
const QUICK_ROUNDS: usize = 9;

/// The median figures of both sides, measured in turns; ours as often as phi-core, and at least as often as anything.
fn in_turns(
    what: &str,
    phi_rounds: usize,
    mut ours: impl FnMut() -> Outcome<f64>,
    mut phi: impl FnMut() -> Outcome<f64>,
) -> Outcome<(f64, f64)> {
    let (mut our_figures, mut phi_figures) = (Vec::new(), Vec::new());
    let rounds = phi_rounds.max(ROUNDS);
    for round in 1..=rounds {
        eprintln!("{what}: round {round} of {rounds}");
        our_figures.push(ours()?);
        if round <= phi_rounds {
            phi_figures.push(phi()?);
        }
    }
    let figures = (median(our_figures), median(phi_figures));
    // Some rows take minutes on a busy machine: what is known is said at once.
    eprintln!("{what}: {} beside {}", figures.0, figures.1);
    Ok(figures)
}

/// How long something takes, in milliseconds.
fn milliseconds(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64() * 1000.0)
}

/// The events of a stream as one side reads them.
fn read<T: serde::de::DeserializeOwned>(lines: &[String]) -> Outcome<Vec<T>> {
    Ok(lines.iter().map(|line| serde_json::from_str(line)).collect::<Result<_, _>>()?)
}

/// The session that our recorder makes.
fn our_session(lines: &[String]) -> Outcome<ours::RecordedSession> {
    let mut recorder = ours::SessionRecorder::new(ours::SessionRecorderConfig::default());
    for event in read(lines)? {
        if !recorder.on_event(event).is_clean() {
            return Err("the events of a bench must be in order".into());
        }
    }
    recorder.flush();
    recorder.drain_completed().pop().ok_or_else(|| "nothing was recorded".into())
}

/// The session that phi-core's recorder makes.
fn phi_session(lines: &[String]) -> Outcome<phi_core::session::Session> {
    let mut recorder = phi_recorder();
    for event in read(lines)? {
        recorder.on_event(event);
    }
    recorder.flush();
    recorder.drain_completed().pop().ok_or_else(|| "nothing was recorded".into())
}

fn phi_recorder() -> phi_core::session::SessionRecorder {
    phi_core::session::SessionRecorder::new(phi_core::session::SessionRecorderConfig::default())
}
