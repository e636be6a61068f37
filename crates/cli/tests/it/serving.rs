//! The real program beside a server: it reaches the server's sessions through the server, which also works in the
//! background.
#![expect(clippy::disallowed_methods, reason = "tests make files of their own")]

use crate::common::{Place, Server, until};
use serde_json::{Value, json};

/// A conversation that a server has locked for writing.
fn held() -> (Place, Server, String, Vec<String>) {
    let place = Place::new();
    let (session, entries) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let server = Server::start(&place);
    let session = session.to_string();
    place.ok(&["rename", &session, "Held by the server", "--server", &server.address]);
    (place, server, session, entries.into_iter().map(|id| id.to_string()).collect())
}

/// Whether only the server's process can write the session now.
fn is_held(place: &Place, session: &str) -> bool {
    let id = bough_session::SessionId::from_stored(session);
    place.with(async |sessions| {
        let request = serde_json::from_value(json!({"session_id": id, "title": "x"})).unwrap();
        let changed = sessions.service.set_meta(&bough_service::Scope::owner(), request).await;
        matches!(changed, Err(bough_service::ServiceError::Locked { .. }))
    })
}

#[test]
fn a_session_that_a_server_holds_is_written_through_it_without_being_told() {
    let (place, _server, session, entries) = held();
    assert!(is_held(&place, &session), "otherwise this proves nothing");
    let title =
        |place: &Place| place.json(&["show", &session, "-n", "0"])["session"]["title"].clone();
    assert_eq!(title(&place), "Held by the server", "reading needs nobody");
    place.ok(&["rename", &session, "Renamed beside it"]);
    assert_eq!(title(&place), "Renamed beside it");
    place.ok(&["label", &session, &entries[3], "fixed"]);
    assert!(place.ok(&["tree", &session, "--print"]).contains("[fixed]"));
    place.ok(&["archive", &session]);
    assert_eq!(place.json(&["ls", "--archived"])["sessions"][0]["title"], "Renamed beside it");
    place.ok(&["unarchive", &session]);
    let fork = place.json(&["fork", &session, &entries[3], "--title", "Plan B"]);
    assert_eq!(fork["meta"]["forked_from"], json!(session));
    place.ok(&["compact", &session, "--keep-recent", "5", "--yes"]);
    assert!(place.ok(&["context", &session]).contains("compacted into the following summary"));
    place.ok(&["compact", &session, "--undo"]);
    assert!(!place.ok(&["context", &session]).contains("compacted"));
    assert!(is_held(&place, &session), "the server had it all the time");
    place.ok(&["rm", &session, "--yes"]);
    assert_eq!(place.run(&["show", &session]).code, 3);
    place.ok(&["restore", &session]);
    assert_eq!(title(&place), "Renamed beside it");
}

#[test]
fn every_command_of_a_session_works_on_a_server_elsewhere() {
    let (place, server, session, entries) = held();
    let empty = place.file("nothing-here").display().to_string();
    let there = |args: &[&str]| {
        place.json(&[args, &["--server", &server.address, "--data-dir", &empty]].concat())
    };
    assert_eq!(there(&["ls"])["sessions"][0]["session_id"], json!(session));
    for name in ["last", "Held by", &session[..8]] {
        let shown = there(&["show", name]);
        assert_eq!(shown["messages"].as_array().unwrap().len(), 6, "{name}");
    }
    there(&["label", "last", &entries[3], "fixed"]);
    let tree = there(&["tree", "last"]);
    assert!(tree["entries"].as_array().unwrap().iter().any(|entry| entry["label"] == "fixed"));
    assert_eq!(there(&["usage", "last"])["session"]["total"]["output"], 150);
    assert_eq!(there(&["context", "last"])["context"]["messages"].as_array().unwrap().len(), 6);
    let compacted = there(&["compact", "last", "--keep-recent", "5", "--yes"]);
    assert!(compacted["entry_id"].is_string());
    assert!(there(&["compact", "last", "--undo"])["undone"].is_string());
    there(&["fork", "last", &entries[1], "--title", "Plan B"]);
    there(&["archive", "Plan B"]);
    there(&["rm", "Plan B", "--yes"]);
    assert_eq!(there(&["restore", "--list"])["sessions"].as_array().unwrap().len(), 1);
    there(&["restore", "Plan B"]);
    let here_only = place.run(&["verify", "--server", &server.address]);
    assert_eq!(here_only.code, 2);
    assert!(here_only.err.contains("hint: "), "{}", here_only.err);
    let address = server.address.clone();
    drop(server);
    let gone = place.run(&["ls", "--server", &address]);
    assert_eq!(gone.code, 7, "{gone:?}");
    assert!(gone.err.contains("hint: "), "{}", gone.err);
}

#[test]
fn an_export_is_the_same_here_beside_a_server_and_through_one() {
    let place = Place::new();
    let file = place.file("pi/2026-02-07T14-00-00.000Z_0f0e0d0c.jsonl");
    let user_line = |id: &str, parent: Value, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-02-07T14:00:01.000Z",
            "message": {"role": "user", "content": text, "timestamp": 1}, "kept": 1.50})
    };
    let lines = [
        json!({"type": "session", "version": 3, "id": "from-pi", "timestamp": "2026-02-07T14:00:00.000Z", "cwd": "/p"}),
        user_line("a1", Value::Null, "Hello"),
        user_line("a2", json!("a1"), "One way"),
        json!({"type": "of_the_future", "id": "a3", "parentId": "a1", "timestamp": "2026-02-07T14:00:01.000Z"}),
        user_line("a4", json!("a3"), "Another way"),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, format!("{text}not JSON\n")).unwrap();
    place.ok(&["migrate", &file.display().to_string()]);
    place.with(async |sessions| sessions.conversation("Date parser").await);
    let exports = |extra: &[&str]| -> Vec<String> {
        let mut made = Vec::new();
        for session in ["from-pi", "Date parser"] {
            for format in ["pi", "jsonl", "json", "md"] {
                let whole = ["export", session, "--format", format];
                made.push(place.ok(&[whole.as_slice(), extra].concat()));
                let leaf = if session == "from-pi" { "a2" } else { "leaf" };
                let branch = [whole.as_slice(), &["--leaf", leaf], extra].concat();
                made.push(place.ok(&branch));
            }
        }
        made
    };
    assert_eq!(exports(&[])[0], format!("{text}not JSON\n"), "as it came");
    let server = Server::start(&place);
    for session in ["from-pi", "Date parser"] {
        // Writing something through the server makes it hold the session.
        place.ok(&["archive", session, "--server", &server.address]);
        place.ok(&["unarchive", session, "--server", &server.address]);
    }
    assert!(is_held(&place, "from-pi"), "otherwise this proves nothing");
    let here = exports(&[]);
    assert_eq!(here[0], format!("{text}not JSON\n"), "beside the server");
    let empty = place.file("nothing-here").display().to_string();
    let there = exports(&["--server", &server.address, "--data-dir", &empty]);
    for (there, here) in there.iter().zip(&here) {
        assert_eq!(there, here, "through the server");
    }
    let out = place.file("out.md").display().to_string();
    place.ok(&["export", "from-pi", "-f", "md", "-o", &out, "--server", &server.address]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), here[6]);
    let absent = place.run(&["export", "nothing", "--server", &server.address]);
    assert_eq!(absent.code, 3, "{absent:?}");
    let replayed = place.run(&["replay", "from-pi", "--server", &server.address]);
    assert!(replayed.err.contains("was not recorded from events"), "{}", replayed.err);
}

#[test]
fn lists_and_trees_of_a_server_say_as_much_as_those_of_a_directory() {
    let (place, server, session, entries) = held();
    recorded(&place, "full", 1_800);
    place.with(async |sessions| {
        let session = bough_session::SessionId::from_stored("full");
        sessions.append(&session, crate::common::user("more")).await
    });
    let empty = place.file("nothing-here").display().to_string();
    let there = |args: &[&str]| {
        place.json(&[args, &["--server", &server.address, "--data-dir", &empty]].concat())
    };
    place.ok(&["label", &session, &entries[3], "fixed"]);
    for args in
        [&["ls"][..], &["tree", &session], &["show", &session], &["show", "full"], &["usage"]]
    {
        assert_eq!(there(args), place.json(args), "{args:?}");
    }
    let listed = there(&["ls"]);
    let found =
        listed["sessions"].as_array().unwrap().iter().find(|row| row["session_id"] == session);
    let details = &found.unwrap()["details"];
    assert_eq!(details["preview"], "Fix the date parser");
    assert_eq!(details["model"]["model"], "sonnet-4");
    assert_eq!(details["usage"]["total"]["messages"], 3);
    let table = place.ok(&["ls", "--server", &server.address]);
    assert!(table.contains("sonnet-4") && table.contains("$0.03"), "{table}");
}

/// A loop of an agent whose model has a window of 2,000 tokens, with answers that report how full it is.
fn recorded(place: &Place, session: &str, tokens: u64) {
    let usage = json!({"input": tokens, "output": 10, "reasoning": 0, "cache_read": 0, "cache_write": 0, "total_tokens": tokens + 10});
    let loop_id = format!("{session}.loop");
    let mut events = vec![json!({"type": "AgentStart", "agent_id": "agent", "session_id": session,
        "loop_id": loop_id, "parent_loop_id": null, "continuation_kind": "Initial",
        "timestamp": "2026-02-07T14:00:00Z", "metadata": null,
        "config_snapshot": config_snapshot(2_000)})];
    let mut messages = Vec::new();
    for turn in 0..6 {
        let text = |text: String| json!([{"type": "text", "text": text}]);
        let question = json!({"role": "user", "content": text(format!("question {turn} {}", "x".repeat(400))), "timestamp": turn});
        let answer = json!({"role": "assistant", "content": text(format!("answer {turn} {}", "y".repeat(400))),
            "stopReason": "stop", "model": "m", "provider": "p", "usage": usage, "timestamp": turn});
        for message in [question, answer] {
            events.push(json!({"type": "MessageStart", "loop_id": loop_id, "message": message}));
            events.push(json!({"type": "MessageEnd", "loop_id": loop_id, "message": message}));
            messages.push(message);
        }
    }
    events
        .push(json!({"type": "AgentEnd", "loop_id": loop_id, "messages": messages, "usage": usage,
        "timestamp": "2026-02-07T14:00:05Z", "rejection": null}));
    let file = place.file(&format!("{session}.jsonl"));
    let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
    std::fs::write(&file, lines).unwrap();
    place.ok(&["record", &file.display().to_string(), "--strict"]);
}

fn config_snapshot(window: u64) -> Value {
    json!({"model": "m", "provider": "p", "config_id": "p.m", "name": "M", "api": "anthropic_messages",
        "base_url": "https://example.org", "reasoning": false, "context_window": window, "max_tokens": 100,
        "thinking_level": "off", "temperature": 0.3})
}

/// 1 if a compaction block is over the session's loop, else 0.
fn compactions(place: &Place, session: &str) -> usize {
    let context = place.json(&["context", session]);
    let messages = context["context"]["messages"].as_array().unwrap();
    let text = |item: &Value| item["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    usize::from(messages.iter().any(|item| text(item).starts_with("[Summary]")))
}

const SETTINGS: &str = "compaction:\n  reserve_tokens: 500\n  keep_recent_tokens: 300\n";

#[test]
fn what_outgrew_its_window_is_compacted_when_asked_to_look() {
    let place = Place::new();
    recorded(&place, "full", 1_800);
    recorded(&place, "roomy", 800);
    std::fs::write(place.data_dir().join("config.yaml"), SETTINGS).unwrap();
    let looked = place.json(&["compact", "--auto", "--dry-run"]);
    assert_eq!(looked["compacted"].as_array().unwrap().len(), 1);
    assert_eq!(compactions(&place, "full"), 0, "a dry run writes nothing");
    let done = place.json(&["compact", "--auto"]);
    assert_eq!(done["compacted"][0]["session_id"], "full");
    assert_eq!((compactions(&place, "full"), compactions(&place, "roomy")), (1, 0));
    assert_eq!(place.json(&["compact", "--auto"]), json!({"compacted": []}), "once is enough");
    let off = SETTINGS.replace("compaction:", "compaction:\n  enabled: false");
    recorded(&place, "second", 1_800);
    std::fs::write(place.data_dir().join("config.yaml"), off).unwrap();
    let off = place.json(&["compact", "--auto"]);
    assert_eq!(off["compacted"], json!([]));
    assert!(off["nothing_to_do"].to_string().contains("switched off"), "{off}");
}

#[test]
fn a_server_compacts_what_outgrows_its_window_by_itself() {
    let place = Place::new();
    std::fs::create_dir_all(place.data_dir()).unwrap();
    let settings = format!("{SETTINGS}log:\n  format: json\n");
    std::fs::write(place.data_dir().join("config.yaml"), settings).unwrap();
    let _server = Server::start(&place);
    // Another process records, and the server notices it.
    recorded(&place, "roomy", 800);
    recorded(&place, "full", 1_800);
    until("a compaction by the server", || compactions(&place, "full") > 0);
    assert_eq!((compactions(&place, "full"), compactions(&place, "roomy")), (1, 0));
    assert!(place.ok(&["context", "full"]).contains("question 0"), "the digest tells how it began");
    let log = || std::fs::read_to_string(place.file("server.log")).unwrap();
    until("a line about it in the server's log", || log().contains("compacted"));
    for line in log().lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "a log line is JSON: {line}");
        assert!(!line.contains("\"full\""), "ids are callers' words: {line}");
    }
}
