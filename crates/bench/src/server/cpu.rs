//! The server's processor time for one append, alone and with somebody who follows.

use std::time::{Duration, Instant};

use super::load::{Door, client_runtime, drive, make_sessions};
use super::place::Place;
use super::subscriber::Subscribers;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

/// As many as the target speaks of.
const CONNECTIONS: usize = 64;
const SPAN: Duration = Duration::from_secs(1);
/// One server sees each case this often, in turn: what changes about the machine from second to second is in all of them.
const TURNS: usize = 15;
/// How long the subscriber may take to hear of the last appends.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn per_append(options: &Options) -> Outcome<Vec<Row>> {
    let place = Place::start(&options.folder)?;
    let (mut alone, mut one, mut all) = (Spent::default(), Spent::default(), Spent::default());
    client_runtime()?.block_on(async {
        let sessions = make_sessions(place.http, CONNECTIONS).await?;
        for turn in 1..=TURNS {
            eprintln!("processor time: turn {turn} of {TURNS}");
            alone.add(&place, &sessions, None).await?;
            one.add(&place, &sessions, Some("/v1/sessions/bench-0/events")).await?;
            all.add(&place, &sessions, Some("/v1/events")).await?;
        }
        Outcome::Ok(())
    })?;
    let unit = "us of processor time/append";
    let row = |name: &str, spent: &Spent| {
        Row::new(name, unit, spent.per_append()).beside("nobody follows", alone.per_append())
    };
    Ok(vec![
        row("64 connections, a subscriber of one session", &one),
        row("64 connections, a subscriber of all sessions", &all),
    ])
}

/// What the server spent on how many appends.
#[derive(Default)]
struct Spent {
    seconds: f64,
    appends: f64,
}

impl Spent {
    async fn add(
        &mut self,
        place: &Place,
        sessions: &[String],
        follow: Option<&str>,
    ) -> Outcome<()> {
        let paths = follow.map(str::to_owned).into_iter();
        let listening = Subscribers::open(place.http, paths, None).await?;
        // Once before the clock starts, so that what is made once is made.
        drive(Door::Http, place, sessions, SPAN / 4).await?;
        let (before, heard) = (place.processor_time()?, listening.events());
        let done = drive(Door::Http, place, sessions, SPAN).await?;
        self.seconds += place.processor_time()? - before;
        let last_look = Instant::now() + PATIENCE;
        while follow.is_some() && listening.events() == heard {
            if Instant::now() > last_look {
                return Err(format!("the subscriber heard {heard} events and then none").into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The warm-up of the drive is in the time and not in the count; the rate says how many it was.
        let span = SPAN.as_secs_f64();
        self.appends += as_f64(done.appends()) * (span + 0.3) / span;
        Ok(())
    }

    fn per_append(&self) -> f64 {
        self.seconds * 1e6 / self.appends
    }
}
