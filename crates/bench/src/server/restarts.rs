//! Kills the server again and again while clients append, and counts what was acknowledged.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::http::HttpClient;
use super::load::make_sessions;
use super::place::Place;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

/// Clients, each on a session of its own.
const WRITERS: usize = 16;
/// How long it goes on.
const SPAN: Duration = Duration::from_secs(180);
/// How long the server lives between two ends.
const LIFE: Duration = Duration::from_millis(1500);
/// How long a client waits for the server to be back.
const PATIENCE: Duration = Duration::from_secs(60);
/// Messages of one page when everything is read at the end.
const PAGE: usize = 500;

pub(crate) fn kills(options: &Options) -> Outcome<Vec<Row>> {
    eprintln!("kill -9 for {} s", SPAN.as_secs());
    let mut place = Place::start(&options.folder)?;
    let address = place.http;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let sessions = runtime.block_on(make_sessions(address, WRITERS))?;
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = sessions
        .iter()
        .map(|session| runtime.spawn(write(address, session.clone(), stop.clone())))
        .collect();
    let (began, mut restarts, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while began.elapsed() < SPAN {
        std::thread::sleep(LIFE);
        let killed = Instant::now();
        place.kill_and_restart()?;
        slowest = slowest.max(killed.elapsed());
        restarts += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let (mut acknowledged, mut lost) = (0, 0);
    for (session, writer) in sessions.iter().zip(writers) {
        let count = runtime.block_on(writer)??;
        let present = runtime.block_on(count_in_order(address, session))?;
        acknowledged += count;
        lost += count.saturating_sub(present);
    }
    let rows = vec![
        Row::new("restarts (kill -9)", "restarts", as_f64(restarts)),
        Row::new("restarts: appends acknowledged", "appends", as_f64(acknowledged)),
        Row::new("restarts: acknowledged and not there", "appends", as_f64(lost)),
        Row::new("restarts: slowest restart", "ms", slowest.as_secs_f64() * 1000.0),
    ];
    if lost > 0 {
        return Err(format!("{lost} acknowledged appends are not there").into());
    }
    Ok(rows)
}

/// Appends numbered messages, each again until it is acknowledged; how many were.
async fn write(address: SocketAddr, session: String, stop: Arc<AtomicBool>) -> Outcome<usize> {
    let (mut client, mut done, mut waited) = (None, 0, Instant::now());
    loop {
        let body = format!(
            r#"{{"entry_id":"n-{done}","message":{{"role":"user","content":[{{"type":"text","text":"{done}"}}],"timestamp":1}}}}"#
        );
        match try_append(&mut client, address, &session, &body).await {
            Ok(()) => (done, waited) = (done + 1, Instant::now()),
            Err(error) if waited.elapsed() > PATIENCE => return Err(error),
            Err(_) => {
                client = None;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        if stop.load(Ordering::Relaxed) && client.is_some() {
            return Ok(done);
        }
    }
}

async fn try_append(
    client: &mut Option<HttpClient>,
    address: SocketAddr,
    session: &str,
    body: &str,
) -> Outcome<()> {
    let connected = match client.take() {
        Some(client) => client,
        None => HttpClient::connect(address).await?,
    };
    client.insert(connected).append(session, body).await
}

/// How many messages there are. They must be `0..`, each once and in order: the one that was being written at the end may be there too.
async fn count_in_order(address: SocketAddr, session: &str) -> Outcome<usize> {
    let mut client = HttpClient::connect(address).await?;
    let (mut present, mut cursor) = (0, None::<String>);
    loop {
        let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let path = format!("/v1/sessions/{session}/messages?limit={PAGE}{after}");
        let page: serde_json::Value = serde_json::from_str(&client.ask("GET", &path, "").await?)?;
        let messages = page.get("messages").and_then(|messages| messages.as_array());
        for message in messages.into_iter().flatten() {
            let id = message.get("entry_id").and_then(|id| id.as_str()).unwrap_or_default();
            if id != format!("n-{present}") {
                return Err(format!("{session}: {id} is where n-{present} should be").into());
            }
            present += 1;
        }
        cursor = page.get("next_cursor").and_then(|next| next.as_str()).map(str::to_owned);
        if cursor.is_none() {
            return Ok(present);
        }
    }
}
