//! Appends at a steady rate, whatever the server does, and how long after its acknowledgement each is heard.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::http::{HttpClient, message};
use super::load::{client_runtime, make_sessions, percentile};
use super::place::Place;
use super::subscriber::Subscribers;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

const RATE: usize = 500;
const SUBSCRIBERS: usize = 100;
const SESSIONS: usize = 50;
const SPAN: Duration = Duration::from_secs(10);
/// How long the last events may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// When each append was acknowledged, and when it was heard.
#[derive(Default)]
struct Times {
    acknowledged: Vec<Option<Instant>>,
    heard: Vec<(usize, Instant)>,
}

pub(crate) fn open_loop(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, all) in [("one session each", false), ("all sessions", true)] {
        eprintln!("{RATE} appends/s, {SUBSCRIBERS} subscribers of {what}");
        let place = Place::start(&options.folder)?;
        let (times, late) = client_runtime()?.block_on(run(&place, all))?;
        let name = format!("{RATE} appends/s, {SUBSCRIBERS} subscribers of {what}");
        rows.push(Row::new(format!("{name}: deliveries"), "events", as_f64(times.heard.len())));
        let delays = delays(&times)?;
        for percent in [50, 99] {
            let label = format!("{name}: from acknowledgement to delivery, {percent} %");
            rows.push(Row::new(label, "ms", percentile(&delays, percent)));
        }
        rows.push(Row::new(format!("{name}: sent late, most"), "ms", late));
        rows.push(Row::new(format!("{name}: memory"), "MiB", place.memory()?));
    }
    Ok(rows)
}

async fn run(place: &Place, all: bool) -> Outcome<(Times, f64)> {
    let total = RATE * usize::try_from(SPAN.as_secs())?;
    let times = Arc::new(Mutex::new(Times { acknowledged: vec![None; total], ..Times::default() }));
    let sessions = make_sessions(place.http, SESSIONS).await?;
    let paths = (0..SUBSCRIBERS).map(|number| match sessions.get(number % SESSIONS) {
        Some(session) if !all => format!("/v1/sessions/{session}/events"),
        _ => "/v1/events?types=session::message-added".to_owned(),
    });
    let ears = times.clone();
    let hear = move |number: usize, at: Instant| lock(&ears).heard.push((number, at));
    let listening = Subscribers::open(place.http, paths, Some(Arc::new(hear))).await?;
    let late = send_all(place, &sessions, &times, total).await?;
    let expected = if all { total * SUBSCRIBERS } else { total * SUBSCRIBERS / SESSIONS };
    let began = Instant::now();
    while lock(&times).heard.len() < expected {
        if began.elapsed() > PATIENCE {
            let heard = lock(&times).heard.len();
            return Err(format!("only {heard} of {expected} events came").into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    drop(listening);
    Ok((std::mem::take(&mut *lock(&times)), late))
}

/// Sends each append when it is due; says how late the latest was, in milliseconds.
async fn send_all(
    place: &Place,
    sessions: &[String],
    times: &Arc<Mutex<Times>>,
    total: usize,
) -> Outcome<f64> {
    let mut writers = JoinSet::new();
    let begin = Instant::now() + Duration::from_millis(100);
    for (first, session) in sessions.iter().cloned().enumerate() {
        let (address, times, step) = (place.http, times.clone(), sessions.len());
        writers.spawn(async move {
            let mut client = HttpClient::connect(address).await?;
            let mut latest = Duration::ZERO;
            for number in (first..total).step_by(step) {
                let due = begin + Duration::from_micros(u64::try_from(number * 1_000_000 / RATE)?);
                tokio::time::sleep_until(due.into()).await;
                latest = latest.max(due.elapsed());
                client.append(&session, &message(&format!("mark-{number}"))).await?;
                let now = Instant::now();
                if let Some(place) = lock(&times).acknowledged.get_mut(number) {
                    *place = Some(now);
                }
            }
            Outcome::Ok(latest)
        });
    }
    let mut latest = Duration::ZERO;
    while let Some(done) = writers.join_next().await {
        latest = latest.max(done??);
    }
    Ok(latest.as_secs_f64() * 1000.0)
}

/// How long after its acknowledgement each event came, sorted. One that came before counts as no delay.
fn delays(times: &Times) -> Outcome<Vec<f64>> {
    let mut delays = Vec::with_capacity(times.heard.len());
    for (number, heard) in &times.heard {
        let acknowledged = times.acknowledged.get(*number).copied().flatten();
        let acknowledged = acknowledged.ok_or("an event of an append that was not acknowledged")?;
        delays.push(heard.saturating_duration_since(acknowledged).as_secs_f64() * 1000.0);
    }
    delays.sort_by(f64::total_cmp);
    Ok(delays)
}

fn lock(times: &Mutex<Times>) -> std::sync::MutexGuard<'_, Times> {
    times.lock().unwrap_or_else(PoisonError::into_inner)
}
