//! Appends as fast as the server takes them, from more and more connections, with more and more subscribers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::bus::BusClient;
use super::http::{HttpClient, message};
use super::place::Place;
use super::subscriber::Subscribers;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

const CONNECTIONS: [usize; 4] = [1, 16, 64, 256];
const SUBSCRIBERS: [usize; 4] = [0, 1, 100, 1000];
/// How long each case is measured.
const SPAN: Duration = Duration::from_millis(1500);
/// How long a case runs before it is measured.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long the slowest subscriber may take to hear of something.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a case is driven through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    Http,
    Bus,
}

impl Door {
    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Bus => "bus",
        }
    }
}

pub(crate) fn over_http(options: &Options) -> Outcome<Vec<Row>> {
    cases(options, Door::Http)
}

pub(crate) fn over_bus(options: &Options) -> Outcome<Vec<Row>> {
    cases(options, Door::Bus)
}

/// Every number of connections with every number of subscribers.
fn cases(options: &Options, door: Door) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        for subscribers in SUBSCRIBERS {
            rows.extend(case(options, door, connections, subscribers)?);
        }
    }
    Ok(rows)
}

fn case(
    options: &Options,
    door: Door,
    connections: usize,
    subscribers: usize,
) -> Outcome<Vec<Row>> {
    let name = format!("{}, {connections} connections, {subscribers} subscribers", door.name());
    eprintln!("{name}");
    let place = Place::start(&options.folder)?;
    let (done, events) = client_runtime()?.block_on(async {
        let sessions = make_sessions(place.http, connections).await?;
        // Each subscriber follows one of the sessions, so that each append is heard by its share of them.
        let followed = sessions.iter().cycle().take(subscribers);
        let listening = subscribe(door, &place, followed).await?;
        let done = drive(door, &place, &sessions, SPAN).await?;
        check_heard(&listening, connections, subscribers).await?;
        Outcome::Ok((done, listening.events()))
    })?;
    let mut rows = vec![
        Row::new(format!("{name}: durable appends"), "appends/s", done.rate()),
        Row::new(format!("{name}: latency, median"), "ms", done.percentile(50)),
        Row::new(format!("{name}: latency, 99 %"), "ms", done.percentile(99)),
        Row::new(format!("{name}: memory"), "MiB", place.memory()?),
    ];
    if subscribers > 0 {
        let rate = as_f64(events) / (SPAN + WARM_UP).as_secs_f64();
        rows.push(Row::new(format!("{name}: deliveries"), "events/s", rate));
    }
    Ok(rows)
}

/// Subscribers come through the door that the appends come through.
async fn subscribe<'a>(
    door: Door,
    place: &Place,
    followed: impl Iterator<Item = &'a String>,
) -> Outcome<Subscribers> {
    match door {
        Door::Http => {
            let paths = followed.map(|session| format!("/v1/sessions/{session}/events"));
            Subscribers::open(place.http, paths, None).await
        }
        Door::Bus => Subscribers::bind(place.bus, followed).await,
    }
}

/// A figure beside subscribers that hear nothing would say nothing: each must have heard something.
async fn check_heard(
    listening: &Subscribers,
    connections: usize,
    subscribers: usize,
) -> Outcome<()> {
    let last_look = Instant::now() + PATIENCE;
    while listening.who_heard() < subscribers {
        if Instant::now() > last_look {
            let heard = listening.who_heard();
            return Err(format!(
                "only {heard} of {subscribers} subscribers heard of {connections} writers"
            )
            .into());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The clients share one thread, so that they leave the rest of the machine to the server.
pub(crate) fn client_runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

pub(crate) async fn make_sessions(address: SocketAddr, count: usize) -> Outcome<Vec<String>> {
    let mut client = HttpClient::connect(address).await?;
    let names: Vec<String> = (0..count).map(|number| format!("bench-{number}")).collect();
    for name in &names {
        client.make_session(name).await?;
    }
    Ok(names)
}

/// What came of a case.
pub(crate) struct Done {
    /// How long each append took, in milliseconds, sorted.
    latencies: Vec<f64>,
    span: Duration,
}

impl Done {
    pub(crate) fn appends(&self) -> usize {
        self.latencies.len()
    }

    pub(crate) fn rate(&self) -> f64 {
        as_f64(self.appends()) / self.span.as_secs_f64()
    }

    fn percentile(&self, percent: usize) -> f64 {
        percentile(&self.latencies, percent)
    }
}

/// The value that this many percent do not exceed, of sorted values; 0 for none.
pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0.0)
}

/// Appends from one connection for each session, one after the other on each.
pub(crate) async fn drive(
    door: Door,
    place: &Place,
    sessions: &[String],
    span: Duration,
) -> Outcome<Done> {
    let mut working = JoinSet::new();
    let begin = Instant::now() + WARM_UP;
    let end = begin + span;
    for session in sessions {
        let (session, http, bus) = (session.clone(), place.http, place.bus);
        working.spawn(async move {
            let mut client = match door {
                Door::Http => Client::Http(HttpClient::connect(http).await?),
                Door::Bus => Client::Bus(Box::new(BusClient::connect(bus).await?)),
            };
            client.append_until(&session, begin, end).await
        });
    }
    let mut latencies = Vec::new();
    while let Some(done) = working.join_next().await {
        latencies.extend(done??);
    }
    latencies.sort_by(f64::total_cmp);
    Ok(Done { latencies, span })
}

enum Client {
    Http(HttpClient),
    Bus(Box<BusClient>),
}

impl Client {
    /// Appends until the end; how long each took that was answered between `begin` and `end`.
    async fn append_until(
        &mut self,
        session: &str,
        begin: Instant,
        end: Instant,
    ) -> Outcome<Vec<f64>> {
        let mut latencies = Vec::new();
        let body = message(session);
        loop {
            let sent = Instant::now();
            match self {
                Self::Http(client) => client.append(session, &body).await?,
                Self::Bus(client) => client.append(session, &body).await?,
            }
            let now = Instant::now();
            if now >= end {
                return Ok(latencies);
            }
            if now >= begin {
                latencies.push((now - sent).as_secs_f64() * 1000.0);
            }
        }
    }
}
