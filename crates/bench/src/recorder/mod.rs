//! `bench recorder`: the recorder and its session files beside the original's.
//!
//! Both sides hear the same events. The original (since 0.14) keeps none of them in its sessions and its files, so ours
//! record and write more than twice as much.

mod durable;
mod events;
mod files;
mod listing;
mod navigation;
mod recording;

use std::time::Instant;

use bough_recorder as ours;
use phi_core as original;

use crate::measure::{ROUNDS, median};
use crate::report::Row;
use crate::{Options, Outcome, Part};

/// What the original is called in the rows.
const ORIGINAL: &str = "phi_core_0.15.2";

const PARTS: [Part; 6] = [
    ("recording", recording::rows),
    ("streaming", recording::streaming_rows),
    ("files", files::rows),
    ("navigation", navigation::rows),
    ("listing", listing::rows),
    ("durable", durable::rows),
];

pub(crate) fn run(options: &Options) -> Outcome<Vec<Row>> {
    options.run_parts(&PARTS)
}

/// How often the original is measured where it takes many seconds.
const SLOW_ROUNDS: usize = 1;

/// How often both sides are measured where it takes a moment: a moment is easily disturbed.
const QUICK_ROUNDS: usize = 9;

/// The median figures of both sides, measured in turns; ours as often as the original, and at least as often as anything.
fn in_turns(
    what: &str,
    original_rounds: usize,
    mut ours: impl FnMut() -> Outcome<f64>,
    mut original: impl FnMut() -> Outcome<f64>,
) -> Outcome<(f64, f64)> {
    let (mut our_figures, mut original_figures) = (Vec::new(), Vec::new());
    let rounds = original_rounds.max(ROUNDS);
    for round in 1..=rounds {
        eprintln!("{what}: round {round} of {rounds}");
        our_figures.push(ours()?);
        if round <= original_rounds {
            original_figures.push(original()?);
        }
    }
    let figures = (median(our_figures), median(original_figures));
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

/// The session that the original's recorder makes.
fn original_session(lines: &[String]) -> Outcome<original::session::Session> {
    let mut recorder = original_recorder();
    for event in read(lines)? {
        recorder.on_event(event);
    }
    recorder.flush();
    recorder.drain_completed().pop().ok_or_else(|| "nothing was recorded".into())
}

fn original_recorder() -> original::session::SessionRecorder {
    original::session::SessionRecorder::new(original::session::SessionRecorderConfig::default())
}
