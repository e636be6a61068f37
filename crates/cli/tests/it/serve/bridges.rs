//! Three processes: a main, and two instances that store through it.

use std::net::SocketAddr;
use std::time::Instant;

use serde_json::json;

use super::client::{append_surely, request, user};
use super::process::{Bough, PATIENCE, command};
use super::proxy::Proxy;

/// What each writer writes.
const EACH: usize = 25;

struct Three {
    main: Bough,
    bridges: [Bough; 2],
    session: String,
}

impl Three {
    fn start() -> Self {
        let main = Bough::start("");
        let bus = main.bus.unwrap();
        let bridges = [Bough::bridge_to(bus), Bough::bridge_to(bus)];
        let session = main.new_session();
        Self { main, bridges, session }
    }
}

fn write_all(address: SocketAddr, session: &str, mark: &str) {
    for n in 0..EACH {
        append_surely(address, session, &format!("{mark}{n}"));
    }
}

/// Everything of both writers, each in its own order, once.
#[track_caller]
fn check_whole(texts: &[String]) {
    assert_eq!(texts.len(), 2 * EACH, "{texts:?}");
    for mark in ["left", "right"] {
        let own: Vec<&String> = texts.iter().filter(|text| text.starts_with(mark)).collect();
        let expected: Vec<String> = (0..EACH).map(|n| format!("{mark}{n}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_killed_main_comes_back_and_nothing_is_lost_or_told_twice() {
    let mut three = Three::start();
    let path = format!("/v1/sessions/{}/events", three.session);
    let [left, right] = [three.bridges[0].http, three.bridges[1].http];
    let mut streams = [three.bridges[0].stream(&path), three.bridges[1].stream(&path)];
    let (main, session) = (&mut three.main, &three.session);
    std::thread::scope(|threads| {
        let hearing: Vec<_> =
            streams.iter_mut().map(|stream| threads.spawn(|| stream.added(2 * EACH))).collect();
        threads.spawn(|| write_all(left, session, "left"));
        threads.spawn(|| write_all(right, session, "right"));
        for _ in 0..3 {
            let before = main.texts(session).len();
            super::process::until("progress", || main.texts(session).len() >= before + 5);
            main.kill_and_restart();
        }
        for heard in hearing {
            let heard = heard.join().unwrap();
            check_whole(&heard);
            super::process::until("the last append", || main.texts(session).len() == 2 * EACH);
            assert_eq!(heard, main.texts(session), "in the one order that the main gave");
        }
    });
    for bridge in &three.bridges {
        check_whole(&bridge.texts(&three.session));
    }
}

#[test]
fn a_main_that_stands_still_gives_clear_errors_and_then_goes_on() {
    let three = Three::start();
    let [left, right] = &three.bridges;
    append_surely(left.http, &three.session, "before");
    three.main.stop();
    let path = format!("/v1/sessions/{}/entries", three.session);
    let began = Instant::now();
    let body = json!({"entry_id": "e-during", "message": user("during")});
    let refused = request(left.http, "POST", &path, Some(&body)).unwrap();
    assert!(began.elapsed() < PATIENCE / 2, "an answer comes though the main gives none");
    assert_eq!(refused.body["code"], "session/storage", "{refused:?}");
    assert!(refused.body["detail"].as_str().unwrap().contains("main"), "{refused:?}");
    three.main.signal("CONT");
    append_surely(left.http, &three.session, "during");
    append_surely(right.http, &three.session, "after");
    assert_eq!(three.main.texts(&three.session), ["before", "during", "after"]);
}

#[test]
fn an_instance_that_was_cut_off_hears_what_it_missed_once() {
    let main = Bough::start("");
    let proxy = Proxy::to(main.bus.unwrap());
    let cut_off = Bough::bridge_to(proxy.address);
    let other = Bough::bridge_to(main.bus.unwrap());
    let session = main.new_session();
    let mut stream = cut_off.stream(&format!("/v1/sessions/{session}/events"));
    append_surely(cut_off.http, &session, "1");
    proxy.cut();
    for text in ["2", "3"] {
        append_surely(other.http, &session, text);
    }
    let path = format!("/v1/sessions/{session}/messages");
    assert_eq!(cut_off.send("GET", &path, None).body["code"], "session/storage");
    proxy.mend();
    append_surely(cut_off.http, &session, "4");
    append_surely(main.http, &session, "5");
    assert_eq!(stream.added(5), ["1", "2", "3", "4", "5"]);
    assert_eq!(cut_off.texts(&session), ["1", "2", "3", "4", "5"]);
}

/// A wrong bridge ends the program with an error, and no session is written to files here instead.
#[test]
fn a_bridge_that_cannot_be_is_fatal_at_the_start() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let own = |host: &str, tail: &str| format!("{{url: 'ws://{host}:{port}{tail}'}}");
    let name = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "localhost" } else { name.trim() };
    let mut cases = vec![
        ("{url: 'http://main:1'}".to_owned(), "ws://"),
        ("{url: ''}".to_owned(), "url"),
        ("{url: 'ws://main:1', timeout_ms: 0}".to_owned(), "timeout_ms"),
        ("{uri: 'ws://main:1'}".to_owned(), "uri"),
        ("{}".to_owned(), "url"),
    ];
    for host in ["127.0.0.1", "localhost", "LocalHost", "[::1]", "0.0.0.0", "127.9.9.9", name] {
        cases.push((own(host, ""), "this instance itself"));
    }
    cases.push((own("localhost", "/"), "this instance itself"));
    for (config, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        // Listening everywhere needs tokens, and has the most spellings.
        let text =
            format!("tokens: {{required: true}}\nadapter: {{name: bridge, config: {config}}}");
        std::fs::write(folder.path().join("config.yaml"), text).unwrap();
        let bus = format!("0.0.0.0:{port}");
        let ended = command(folder.path(), "127.0.0.1:0", &bus).status().unwrap();
        let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
        assert!(!ended.success() && log.contains(words), "{config}: {log}");
        assert!(!folder.path().join("sessions").exists(), "no silent fall-back");
    }
}
