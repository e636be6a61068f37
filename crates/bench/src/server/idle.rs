//! What subscribers cost who hear nothing.

use std::time::Duration;

use super::load::{Door, client_runtime, drive, make_sessions};
use super::place::Place;
use super::subscriber::Subscribers;
use crate::report::Row;
use crate::{Options, Outcome};

const IDLE: usize = 1000;
const WRITERS: usize = 16;
/// How long is written between two looks at the memory.
const SPAN: Duration = Duration::from_secs(3);

pub(crate) fn memory(options: &Options) -> Outcome<Vec<Row>> {
    eprintln!("memory with {IDLE} idle subscribers");
    let (alone, alone_later) = measure(options, 0)?;
    let (idle, idle_later) = measure(options, IDLE)?;
    let row = |name: &str, value: f64, alone: f64| {
        Row::new(name, "MiB", value).beside("without subscribers", alone)
    };
    Ok(vec![
        row("1,000 idle subscribers: memory after 3 s of appends", idle, alone),
        row("1,000 idle subscribers: memory after 6 s of appends", idle_later, alone_later),
        Row::new(
            "1,000 idle subscribers: growth that is theirs",
            "MiB",
            (idle_later - idle) - (alone_later - alone),
        ),
    ])
}

/// The server's memory after one span of appends, and after another.
fn measure(options: &Options, subscribers: usize) -> Outcome<(f64, f64)> {
    let place = Place::start(&options.folder)?;
    client_runtime()?.block_on(async {
        let sessions = make_sessions(place.http, WRITERS).await?;
        // They follow a session in which nothing happens.
        make_quiet(&place).await?;
        let paths = (0..subscribers).map(|_| "/v1/sessions/quiet/events".to_owned());
        let listening = Subscribers::open(place.http, paths, None).await?;
        drive(Door::Http, &place, &sessions, SPAN).await?;
        let first = place.memory()?;
        drive(Door::Http, &place, &sessions, SPAN).await?;
        if listening.events() > 0 {
            return Err("an idle subscriber heard something".into());
        }
        Ok((first, place.memory()?))
    })
}

async fn make_quiet(place: &Place) -> Outcome<()> {
    super::http::HttpClient::connect(place.http).await?.make_session("quiet").await
}
