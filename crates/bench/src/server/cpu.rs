//! The server's processor time for one append, alone and with somebody who follows.

use std::time::{Duration, Instant};

use super::load::{Door, client_runtime, drive, make_sessions};
use super::place::Place;
use super::subscriber::Subscribers;
use crate::measure::{ROUNDS, as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome};

/// As many as the target speaks of.
const CONNECTIONS: usize = 64;
const SPAN: Duration = Duration::from_secs(2);
/// How long the subscriber may take to hear of the last appends.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn per_append(options: &Options) -> Outcome<Vec<Row>> {
    let (mut alone, mut followed, mut followed_all) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        eprintln!("processor time: round {round} of {ROUNDS}");
        alone.push(measure(options, None)?);
        followed.push(measure(options, Some("/v1/sessions/bench-0/events"))?);
        followed_all.push(measure(options, Some("/v1/events"))?);
    }
    let alone = median(alone);
    let unit = "us of processor time/append";
    let row = |name: &str, value: f64| Row::new(name, unit, value).beside("nobody follows", alone);
    Ok(vec![
        row("64 connections, a subscriber of one session", median(followed)),
        row("64 connections, a subscriber of all sessions", median(followed_all)),
    ])
}

/// Microseconds of the server for each append.
fn measure(options: &Options, follow: Option<&str>) -> Outcome<f64> {
    let place = Place::start(&options.folder)?;
    client_runtime()?.block_on(async {
        let sessions = make_sessions(place.http, CONNECTIONS).await?;
        let paths = follow.map(str::to_owned).into_iter();
        let listening = Subscribers::open(place.http, paths, None).await?;
        // Once before the clock starts, so that what is made once is made.
        drive(Door::Http, &place, &sessions, SPAN / 4).await?;
        let (before, heard) = (place.processor_time()?, listening.events());
        let done = drive(Door::Http, &place, &sessions, SPAN).await?;
        let used = place.processor_time()? - before;
        let last_look = Instant::now() + PATIENCE;
        while follow.is_some() && listening.events() == heard {
            if Instant::now() > last_look {
                return Err(format!("the subscriber heard {heard} events and then none").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The warm-up of the drive is in the time and not in the count; the rate says how many it was.
        let span = SPAN.as_secs_f64();
        let appends = as_f64(done.appends()) * (span + 0.3) / span;
        Ok(used * 1e6 / appends)
    })
}
