//! The server's processor time for one append, alone and with a subscriber.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::http::{HttpClient, message};
use super::load::{client_runtime, make_sessions};
use super::place::Place;
use super::subscriber::Subscribers;
use crate::measure::{as_f64, median};
use crate::report::Row;
use crate::{Options, Outcome};

/// As many as the target speaks of.
const CONNECTIONS: usize = 64;
/// One server under one load sees each case this often, in turn and not for long: what changes about the machine from second to
/// second is in all of them.
const TURNS: usize = 60;
const SPAN: Duration = Duration::from_millis(250);
/// How long a case runs before it is measured, so that what is made once is made.
const SETTLE: Duration = Duration::from_millis(100);

pub(crate) fn per_append(options: &Options) -> Outcome<Vec<Row>> {
    let place = Place::start(&options.folder)?;
    let mut cases = [
        Case::new("nobody follows", None),
        Case::new("a subscriber of one session", Some("/v1/sessions/bench-0/events")),
        Case::new("a subscriber of all sessions", Some("/v1/events")),
    ];
    client_runtime()?.block_on(async {
        let load = Load::begin(place.http).await?;
        for turn in 1..=TURNS {
            eprintln!("processor time: turn {turn} of {TURNS}");
            // Each is first as often as the others are.
            let (later, first) = cases.split_at_mut(turn % 3);
            for case in first.iter_mut().chain(later) {
                case.measure(&place, &load).await?;
            }
        }
        Outcome::Ok(())
    })?;
    let [(alone, cost), one, all] = cases.map(|case| (case.name, median(case.per_append)));
    let row = |(name, followed): (&str, f64)| {
        let name = format!("{CONNECTIONS} connections, {name}");
        Row::new(name, "us of processor time/append", followed).beside(alone, cost)
    };
    Ok(vec![row(one), row(all)])
}

/// Appends from all connections, until this is dropped.
struct Load {
    appends: Arc<AtomicUsize>,
    working: JoinSet<()>,
}

impl Load {
    async fn begin(address: SocketAddr) -> Outcome<Self> {
        let (appends, mut working) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        for session in make_sessions(address, CONNECTIONS).await? {
            let (mut client, appends) = (HttpClient::connect(address).await?, appends.clone());
            working.spawn(async move {
                let body = message(&session);
                while client.append(&session, &body).await.is_ok() {
                    appends.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        Ok(Self { appends, working })
    }

    /// How many were answered so far. Fewer connections than it speaks of would be another load.
    fn appends(&self) -> Outcome<usize> {
        if self.working.len() < CONNECTIONS {
            return Err("a connection of the load broke".into());
        }
        Ok(self.appends.load(Ordering::Relaxed))
    }
}

/// What an append costs the server while somebody follows, or nobody does; the median of the turns counts.
struct Case {
    name: &'static str,
    follow: Option<&'static str>,
    per_append: Vec<f64>,
}

impl Case {
    const fn new(name: &'static str, follow: Option<&'static str>) -> Self {
        Self { name, follow, per_append: Vec::new() }
    }

    async fn measure(&mut self, place: &Place, load: &Load) -> Outcome<()> {
        let paths = self.follow.map(str::to_owned).into_iter();
        let listening = Subscribers::open(place.http, paths, None).await?;
        tokio::time::sleep(SETTLE).await;
        let (time, done, heard) = (place.processor_time()?, load.appends()?, listening.events());
        tokio::time::sleep(SPAN).await;
        let seconds = place.processor_time()? - time;
        let appends = load.appends()? - done;
        if self.follow.is_some() && listening.events() == heard {
            return Err(format!("{} heard nothing of {appends} appends", self.name).into());
        }
        self.per_append.push(seconds * 1e6 / as_f64(appends));
        Ok(())
    }
}
