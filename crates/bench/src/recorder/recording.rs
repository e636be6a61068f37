//! How fast events become sessions.

use std::time::Instant;

use super::events::{EVENTS_OF_A_LOOP, Script, Shape, streamed};
use super::{ORIGINAL, SLOW_ROUNDS, in_turns, original, original_recorder, ours, read};
use crate::measure::{ROUNDS, as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome};

const LOOPS: usize = 10_000;

/// The chains that show how the cost grows: so many loops, and so many times as many.
const SHORT: usize = 2_500;
const LONGER: usize = 4;

const UPDATES: usize = 200_000;

/// Giving the memory of our events back, with no recorder in sight: what is not kept cannot cost less.
const LETTING_GO: &str = "letting_go_of_ours_alone";

pub(super) fn rows(_: &Options) -> Outcome<Vec<Row>> {
    let flat = Script::new("flat", "agent", Shape::Flat).lines(LOOPS);
    let chained = Script::new("chained", "agent", Shape::Chained);
    let long = chained.lines(LOOPS);
    let name =
        |shape: &str| format!("recording {LOOPS} loops of {EVENTS_OF_A_LOOP} events, {shape}");
    let growth_name = format!(
        "chained recording: {LONGER} times the loops ({SHORT} to {}) cost so many times as much",
        SHORT * LONGER
    );
    Ok(vec![
        row(&name("flat"), &flat, ROUNDS)?,
        row(&name("chained"), &long, SLOW_ROUNDS)?,
        growth(&growth_name, &chained.lines(SHORT), &chained.lines(SHORT * LONGER))?,
    ])
}

pub(super) fn streaming_rows(_: &Options) -> Outcome<Vec<Row>> {
    let lines = streamed(UPDATES);
    let dropped = row(&format!("{UPDATES} streaming updates, not kept"), &lines, ROUNDS)?
        .beside(LETTING_GO, as_f64(lines.len()) / letting_go_seconds(&lines)?);
    // The original keeps none of them since 0.14, so there is nobody to stand beside this one.
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(as_f64(lines.len()) / our_seconds(&lines, true)?);
    }
    let kept = Row::new(format!("{UPDATES} streaming updates, kept"), "events/s", median(rates));
    Ok(vec![dropped, kept])
}

fn row(name: &str, lines: &[String], original_rounds: usize) -> Outcome<Row> {
    let events = as_f64(lines.len());
    let (bough, original) = in_turns(
        name,
        original_rounds,
        || Ok(events / our_seconds(lines, false)?),
        || Ok(events / original_seconds(lines)?),
    )?;
    Ok(Row::new(name, "events/s", bough).beside(ORIGINAL, original))
}

/// How many times as long the longer stream takes.
fn growth(name: &str, short: &[String], long: &[String]) -> Outcome<Row> {
    let (bough, original) = in_turns(
        name,
        SLOW_ROUNDS,
        || Ok(our_seconds(long, false)? / our_seconds(short, false)?),
        || Ok(original_seconds(long)? / original_seconds(short)?),
    )?;
    Ok(Row::new(name, "times", bough).beside(ORIGINAL, original))
}

/// How long recording takes; reading the events and letting go of the sessions does not count.
fn our_seconds(lines: &[String], include_streaming_events: bool) -> Outcome<f64> {
    let events: Vec<ours::AgentEvent> = read(lines)?;
    let mut recorder = ours::SessionRecorder::new(ours::SessionRecorderConfig {
        include_streaming_events,
        ..ours::SessionRecorderConfig::default()
    });
    let began = Instant::now();
    let mut reported = 0;
    for event in events {
        reported += recorder.on_event(event).notices.len();
    }
    recorder.flush();
    let seconds = began.elapsed().as_secs_f64();
    if reported > 0 {
        return Err("the events of a bench must be in order".into());
    }
    Ok(seconds)
}

fn letting_go_seconds(lines: &[String]) -> Outcome<f64> {
    let events: Vec<ours::AgentEvent> = read(lines)?;
    let began = Instant::now();
    events.into_iter().for_each(drop);
    Ok(began.elapsed().as_secs_f64())
}

fn original_seconds(lines: &[String]) -> Outcome<f64> {
    let events: Vec<original::AgentEvent> = read(lines)?;
    let mut recorder = original_recorder();
    let began = Instant::now();
    for event in events {
        recorder.on_event(event);
    }
    recorder.flush();
    Ok(began.elapsed().as_secs_f64())
}
