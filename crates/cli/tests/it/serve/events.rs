//! Streams of events over the end of the server and of connections.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::client::{Event, Stream, append_surely};
use super::process::{Bough, PATIENCE, until};

/// Messages of each session.
const MESSAGES: usize = 60;
const SESSIONS: usize = 2;
/// How often the server is killed.
const KILLS: usize = 8;

/// Reads a stream over every interruption, and passes each event on. The client also cuts the connection, each time
/// after another number of events.
fn read_on(
    address: SocketAddr,
    path: &str,
    opened: impl Fn(),
    mut take: impl FnMut(Event) -> bool,
) {
    let (mut place, mut connections, mut progress) = (None::<String>, 0_usize, Instant::now());
    loop {
        assert!(progress.elapsed() < PATIENCE, "nothing more is heard on {path}");
        connections += 1;
        let first = if place.is_none() { "?after=start" } else { "" };
        let stream = Stream::open(address, &format!("{path}{first}"), place.as_deref());
        let Ok(mut stream) = stream else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        if stream.find_place().is_err() {
            continue;
        }
        place.clone_from(&stream.last_id);
        opened();
        for _ in 0..1 + connections * 7 % 13 {
            let Ok(event) = stream.next() else { break };
            place.clone_from(&stream.last_id);
            progress = Instant::now();
            if take(event) {
                return;
            }
        }
    }
}

/// Writes to every session, reads every stream, and kills the server at many points in between.
fn live_dangerously(server: &mut Bough, sessions: &[String], heard: &Heard) {
    let address = server.http;
    let (written, is_followed) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|threads| {
        // The stream of all sessions starts at the present, so open it before the first message.
        threads.spawn(|| {
            let opened = || is_followed.store(true, Ordering::SeqCst);
            read_on(address, "/v1/events", opened, |event| heard.of_all(&event));
            heard.all_ended.store(true, Ordering::SeqCst);
        });
        until("somebody who follows all sessions", || is_followed.load(Ordering::SeqCst));
        for session in sessions {
            threads.spawn(|| {
                for n in 0..MESSAGES {
                    append_surely(address, session, &n.to_string());
                    written.fetch_add(1, Ordering::SeqCst);
                }
            });
            threads.spawn(move || {
                let path = format!("/v1/sessions/{session}/events");
                read_on(address, &path, || {}, |event| heard.of_session(session, &event));
            });
        }
        for kill in 1..=KILLS {
            let due = kill * SESSIONS * MESSAGES / (KILLS + 1);
            until("progress", || written.load(Ordering::SeqCst) >= due);
            server.kill_and_restart();
        }
        // A reader that missed the end in a gap gets another one.
        for round in 0.. {
            let is_over = heard.all_ended.load(Ordering::SeqCst);
            if is_over && written.load(Ordering::SeqCst) == SESSIONS * MESSAGES {
                break;
            }
            if written.load(Ordering::SeqCst) == SESSIONS * MESSAGES {
                sessions.iter().for_each(|id| append_surely(address, id, &format!("end{round}")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}

/// What the readers heard.
#[derive(Default)]
struct Heard {
    sessions: Mutex<BTreeMap<String, Vec<String>>>,
    all: Mutex<All>,
    all_ended: AtomicBool,
}

#[derive(Default)]
struct All {
    texts: BTreeMap<String, Vec<String>>,
    gaps: usize,
}

impl Heard {
    /// Whether that was the last event.
    fn of_session(&self, session: &str, event: &Event) -> bool {
        assert_ne!(event.name, "gap", "a session's own stream has none");
        let mut heard = self.sessions.lock().unwrap();
        let texts = heard.entry(session.to_owned()).or_default();
        if event.name == "session::message-added" {
            texts.push(event.text());
        }
        texts.len() >= MESSAGES
    }

    /// Whether every session's last event was heard.
    fn of_all(&self, event: &Event) -> bool {
        let mut all = self.all.lock().unwrap();
        match event.name.as_str() {
            "gap" => all.gaps += 1,
            "session::message-added" => {
                let session = event.session().to_owned();
                all.texts.entry(session).or_default().push(event.text());
            }
            _ => {}
        }
        let is_end = |text: &String| text.starts_with("end");
        all.texts.len() == SESSIONS && all.texts.values().all(|texts| texts.iter().any(is_end))
    }
}

#[test]
fn every_event_is_told_once_and_in_order_though_the_server_is_killed() {
    let mut server = Bough::start("");
    let sessions: Vec<String> = (0..SESSIONS).map(|_| server.new_session()).collect();
    let heard = Heard::default();
    live_dangerously(&mut server, &sessions, &heard);
    let everything: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    let of_sessions = heard.sessions.into_inner().unwrap();
    let all = heard.all.into_inner().unwrap();
    for session in &sessions {
        let there = server.texts(session);
        assert_eq!(there[..MESSAGES], everything, "what was acknowledged is there");
        assert_eq!(of_sessions[session], everything);
        let numbered = all.texts[session].iter().filter(|text| !text.starts_with("end"));
        let told: Vec<&String> = numbered.collect();
        assert_eq!(told, everything.iter().collect::<Vec<_>>());
    }
    assert_eq!(all.gaps, 0, "everything that happened is still kept");
}
