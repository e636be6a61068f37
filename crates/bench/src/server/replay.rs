//! A change of the adapter to a bridge: every session of the main is replayed to a binding, while the main goes on.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bough_platform::{OsEntropy, SystemClock};
use bough_service::{
    BindingRequest, BindingSpec, Bindings, Called, EventFilter, EventKind, EventSink, FeedEvent,
    Scope, Service,
};
use bough_store::MemoryStore;
use bough_store::bridge::{BridgeOptions, BridgeStore};
use bough_store::shared_state::MemorySharedState;
use serde_json::json;
use tokio::runtime::Runtime;

use super::http::{HttpClient, message};
use super::place::Place;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

const SESSIONS: usize = 73;
const MESSAGES: usize = 100;
/// The time between two messages that are written during the replay.
const PAUSE: Duration = Duration::from_millis(20);
/// How many messages are written after the replay.
const MESSAGES_AFTER: usize = 50;
/// How long the whole may take.
const PATIENCE: Duration = Duration::from_secs(180);

pub(super) fn rows(options: &Options) -> Outcome<Vec<Row>> {
    eprintln!("replay: {} messages over a bridge", SESSIONS * MESSAGES);
    let main = Place::start(&options.folder)?;
    Runtime::new()?.block_on(measure(main.http, main.bus))
}

async fn measure(http: SocketAddr, bus: SocketAddr) -> Outcome<Vec<Row>> {
    let mut client = HttpClient::connect(http).await?;
    fill(&mut client).await?;
    let entropy = Arc::new(OsEntropy);
    let clock = Arc::new(SystemClock::new());
    let before = Arc::new(MemoryStore::new(entropy.clone())?);
    let service = Service::new(before, clock.clone(), entropy.clone());
    let shared = Arc::new(MemorySharedState::default());
    let bindings = Bindings::open(service.clone(), shared, clock, "bench").await?;
    let heard = Arc::<Heard>::default();
    bindings.register(request(heard.clone())).begun.await?;
    let bridge = Arc::new(BridgeStore::open(to(bus), entropy).await?);
    let began = Instant::now();
    service.swap_store(bridge);
    let mut written = HashMap::new();
    while heard.replayed.load(Ordering::Relaxed) < SESSIONS * MESSAGES {
        let name = format!("live-{}", written.len());
        client.append("s-0", &message(&name)).await?;
        written.insert(name, Instant::now());
        tokio::time::sleep(PAUSE).await;
        if began.elapsed() > PATIENCE {
            return Err("the replay does not end".into());
        }
    }
    let seconds = heard.ended()?.duration_since(began).as_secs_f64();
    let rate = as_f64(SESSIONS * MESSAGES) / seconds;
    let slowest = heard.slowest_delay(&written)?;
    let after = append_after(&mut client, &heard).await?;
    let quiet = heard.slowest_delay(&after)?;
    let read = read_all(&mut client).await?;
    Ok(vec![
        Row::new("replay over a bridge", "messages/s", rate).beside("reading over HTTP", read),
        Row::new("replay over a bridge: slowest live event", "ms", slowest * 1000.0)
            .beside("without a replay", quiet * 1000.0),
    ])
}

/// Messages that are written when the replay is over, for comparison.
async fn append_after(client: &mut HttpClient, heard: &Heard) -> Outcome<HashMap<String, Instant>> {
    let mut written = HashMap::new();
    for number in 0..MESSAGES_AFTER {
        let name = format!("live-after-{number}");
        client.append("s-0", &message(&name)).await?;
        written.insert(name, Instant::now());
        tokio::time::sleep(PAUSE).await;
    }
    let began = Instant::now();
    while !heard.has_all(&written)? && began.elapsed() < PATIENCE {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(written)
}

/// How many messages a second a client of the main reads that does nothing but read them: no replay is faster.
async fn read_all(client: &mut HttpClient) -> Outcome<f64> {
    let began = Instant::now();
    for session in 0..SESSIONS {
        let path = format!("/v1/sessions/s-{session}/messages?limit={MESSAGES}");
        let page = client.ask("GET", &path, "").await?;
        if session > 0 && page.matches("old-").count() != MESSAGES {
            return Err("a page lacks messages".into());
        }
    }
    Ok(as_f64(SESSIONS * MESSAGES) / began.elapsed().as_secs_f64())
}

async fn fill(client: &mut HttpClient) -> Outcome<()> {
    for session in 0..SESSIONS {
        let id = format!("s-{session}");
        client.make_session(&id).await?;
        let entries: Vec<String> =
            (0..MESSAGES).map(|number| message(&format!("old-{number}"))).collect();
        let body = format!(r#"{{"entries":[{}]}}"#, entries.join(","));
        client.ask("POST", &format!("/v1/sessions/{id}/entries/batch"), &body).await?;
    }
    Ok(())
}

fn to(bus: SocketAddr) -> BridgeOptions {
    BridgeOptions {
        host: bus.ip().to_string(),
        port: bus.port(),
        url: format!("ws://{bus}"),
        timeout: Duration::from_secs(10),
        token: None,
        instance: "bench".to_owned(),
    }
}

fn request(sink: Arc<Heard>) -> BindingRequest {
    BindingRequest {
        spec: BindingSpec::new("session::message-added", "bench::hear", "", &json!({})),
        trigger_id: "bench".to_owned(),
        scope: Scope::owner(),
        filter: EventFilter::of([EventKind::MessageAdded]),
        route: "bench".to_owned(),
        sink,
    }
}

/// A function that answers at once, and notes what it was called with.
#[derive(Default)]
struct Heard {
    replayed: AtomicUsize,
    ended: Mutex<Option<Instant>>,
    /// When each message of during the replay came first.
    live: Mutex<HashMap<String, Instant>>,
}

#[async_trait]
impl EventSink for Heard {
    async fn call(&self, event: &FeedEvent) -> Called {
        let event = event.value().to_string();
        let Some((_, name)) = event.split_once(r#""text":""#) else { return Called::Taken };
        let name = name.split('.').next().unwrap_or_default();
        if name.starts_with("live-") {
            let mut live = self.live.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            live.entry(name.to_owned()).or_insert_with(Instant::now);
        } else if self.replayed.fetch_add(1, Ordering::Relaxed) + 1 == SESSIONS * MESSAGES {
            *self.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                Some(Instant::now());
        }
        Called::Taken
    }

    async fn ready(&self) {}

    fn missed(&self, _: &'static str) {}
}

impl Heard {
    fn ended(&self) -> Outcome<Instant> {
        let ended = *self.ended.lock().map_err(|_| "a call failed")?;
        ended.ok_or_else(|| "the replay has not ended".into())
    }

    fn has_all(&self, written: &HashMap<String, Instant>) -> Outcome<bool> {
        let live = self.live.lock().map_err(|_| "a call failed")?;
        Ok(written.keys().all(|name| live.contains_key(name)))
    }

    /// The longest time from the acknowledgement of a message until it came, in seconds. The newest may still be on its way.
    fn slowest_delay(&self, written: &HashMap<String, Instant>) -> Outcome<f64> {
        let live = self.live.lock().map_err(|_| "a call failed")?;
        let now = Instant::now();
        let delays = written.iter().map(|(name, written)| {
            live.get(name).unwrap_or(&now).saturating_duration_since(*written)
        });
        Ok(delays.max().ok_or("the replay was over before anything was written")?.as_secs_f64())
    }
}
