//! How fast events become sessions.

use std::time::Instant;

use super::events::{EVENTS_OF_A_LOOP, Script, Shape, streamed};
use super::{ORIGINAL, original, original_recorder, ours, read};
use crate::measure::{self, ROUNDS, Side, as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome};

const LOOPS: usize = 10_000;

/// How much longer the chain is that shows how the cost grows.
const LONGER: usize = 2;

const UPDATES: usize = 200_000;

pub(super) fn rows(_: &Options) -> Outcome<Vec<Row>> {
    let flat = Script::new("flat", "agent", Shape::Flat).lines(LOOPS);
    let chained = Script::new("chained", "agent", Shape::Chained);
    let short = chained.lines(LOOPS);
    let mut rows = vec![
        row(&format!("recording {LOOPS} loops of {EVENTS_OF_A_LOOP} events, flat"), &flat)?,
        row(&format!("recording {LOOPS} loops of {EVENTS_OF_A_LOOP} events, chained"), &short)?,
    ];
    drop(flat);
    let name = format!("chained recording: {LONGER} times the loops cost so many times as much");
    rows.push(growth(&name, &short, &chained.lines(LONGER * LOOPS))?);
    Ok(rows)
}

pub(super) fn streaming_rows(_: &Options) -> Outcome<Vec<Row>> {
    let lines = streamed(UPDATES);
    let dropped = row(&format!("{UPDATES} streaming updates, not kept"), &lines)?;
    // The original keeps none of them since 0.14, so there is nobody to stand beside this one.
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(as_f64(lines.len()) / our_seconds(&lines, true)?);
    }
    let kept = Row::new(format!("{UPDATES} streaming updates, kept"), "events/s", median(rates));
    Ok(vec![dropped, kept])
}

fn row(name: &str, lines: &[String]) -> Outcome<Row> {
    let events = as_f64(lines.len());
    let sides = vec![
        Side { name: "bough", measure: Box::new(|| Ok(events / our_seconds(lines, false)?)) },
        Side { name: ORIGINAL, measure: Box::new(|| Ok(events / original_seconds(lines)?)) },
    ];
    let measured = measure::in_turns(name, sides)?;
    let [(_, bough), (_, peer)] = measured.as_slice() else {
        return Err("two sides were measured".into());
    };
    Ok(Row::new(name, "events/s", *bough).beside(ORIGINAL, *peer))
}

/// How many times as long the longer stream takes.
fn growth(name: &str, short: &[String], long: &[String]) -> Outcome<Row> {
    let mut ratios = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        eprintln!("{name}: round {round} of {ROUNDS}");
        ratios.0.push(our_seconds(long, false)? / our_seconds(short, false)?);
        ratios.1.push(original_seconds(long)? / original_seconds(short)?);
    }
    Ok(Row::new(name, "times", median(ratios.0)).beside(ORIGINAL, median(ratios.1)))
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
