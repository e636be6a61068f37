//! How fast events become sessions.

use std::time::Instant;

use super::events::{EVENTS_OF_A_LOOP, Script, Shape, streamed};
use super::{PHI_CORE, SLOW_ROUNDS, in_turns, ours, phi_recorder, read};
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
    let events = as_f64(lines.len());
    let dropped = row(&format!("{UPDATES} streaming updates, not kept"), &lines, ROUNDS)?
        .beside(LETTING_GO, events / letting_go_seconds(&lines)?);
    // phi-core keeps none of them since 0.14, so there is nobody to stand beside this one.
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(events / our_seconds(&lines, true)?);
    }
    let kept = Row::new(format!("{UPDATES} streaming updates, kept"), "events/s", median(rates));
    Ok(vec![dropped, from_text(&lines)?, kept])
}

/// As they come through a pipe: each is read, recorded and let go before the next.
fn from_text(lines: &[String]) -> Outcome<Row> {
    let events = as_f64(lines.len());
    let name = format!("{UPDATES} streaming updates, read from text one by one and not kept");
    let (bough, phi) = in_turns(
        &name,
        ROUNDS,
        || {
            let read = lines.iter().map(|line| ours::AgentEvent::from_json(line));
            let hear = |to: &mut Ours, event: serde_json::Result<_>| hear(to, event?);
            Ok(events / seconds_of(read, &mut our_recorder(false), hear, flush)?)
        },
        || {
            let read = lines.iter().map(|line| serde_json::from_str(line));
            let hear = |to: &mut Peer, event: serde_json::Result<_>| phi_hear(to, event?);
            Ok(events / seconds_of(read, &mut phi_recorder(), hear, Peer::flush)?)
        },
    )?;
    Ok(Row::new(name, "events/s", bough).beside(PHI_CORE, phi))
}

fn row(name: &str, lines: &[String], phi_rounds: usize) -> Outcome<Row> {
    let events = as_f64(lines.len());
    let (bough, phi) = in_turns(
        name,
        phi_rounds,
        || Ok(events / our_seconds(lines, false)?),
        || Ok(events / phi_seconds(lines)?),
    )?;
    Ok(Row::new(name, "events/s", bough).beside(PHI_CORE, phi))
}

/// How many times as long the longer stream takes.
fn growth(name: &str, short: &[String], long: &[String]) -> Outcome<Row> {
    let (bough, phi) = in_turns(
        name,
        SLOW_ROUNDS,
        || Ok(our_seconds(long, false)? / our_seconds(short, false)?),
        || Ok(phi_seconds(long)? / phi_seconds(short)?),
    )?;
    Ok(Row::new(name, "times", bough).beside(PHI_CORE, phi))
}

/// How long recording takes; reading the events and letting go of the sessions does not count.
fn our_seconds(lines: &[String], include_streaming_events: bool) -> Outcome<f64> {
    let events: Vec<ours::AgentEvent> = read(lines)?;
    seconds_of(events, &mut our_recorder(include_streaming_events), hear, flush)
}

fn phi_seconds(lines: &[String]) -> Outcome<f64> {
    let events: Vec<phi_core::AgentEvent> = read(lines)?;
    seconds_of(events, &mut phi_recorder(), phi_hear, Peer::flush)
}

fn letting_go_seconds(lines: &[String]) -> Outcome<f64> {
    let events: Vec<ours::AgentEvent> = read(lines)?;
    let let_go = |(): &mut (), event| {
        drop(event);
        Ok(())
    };
    seconds_of(events, &mut (), let_go, |()| ())
}

/// How long it takes to take in all events and to flush. The list that held them is let go of after the clock has
/// stopped: it is the bench's own, no agent has one, and what giving it back costs depends on its size alone. (The C
/// library gives one of phi-core's size to the kernel at once, and takes one of our size for a reason to tidy the
/// whole heap.)
fn seconds_of<E, R>(
    events: impl IntoIterator<Item = E>,
    recorder: &mut R,
    mut take_in: impl FnMut(&mut R, E) -> Outcome<()>,
    flush: impl FnOnce(&mut R),
) -> Outcome<f64> {
    let mut events = events.into_iter();
    let began = Instant::now();
    for event in events.by_ref() {
        take_in(recorder, event)?;
    }
    flush(recorder);
    let seconds = began.elapsed().as_secs_f64();
    drop(events);
    Ok(seconds)
}

type Ours = ours::SessionRecorder;
type Peer = phi_core::session::SessionRecorder;

fn flush(recorder: &mut Ours) {
    recorder.flush();
}

fn hear(recorder: &mut Ours, event: ours::AgentEvent) -> Outcome<()> {
    if recorder.on_event(event).is_clean() {
        return Ok(());
    }
    Err("the events of a bench must be in order".into())
}

fn phi_hear(recorder: &mut Peer, event: phi_core::AgentEvent) -> Outcome<()> {
    recorder.on_event(event);
    Ok(())
}

fn our_recorder(include_streaming_events: bool) -> Ours {
    Ours::new(ours::SessionRecorderConfig {
        include_streaming_events,
        ..ours::SessionRecorderConfig::default()
    })
}
