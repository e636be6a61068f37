//! Data directories of earlier versions (`tests/fixtures`): today's program reads, verifies, writes, restarts, restores
//! and exports each of them.
#![expect(clippy::disallowed_methods, reason = "tests unpack and compare files of their own")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Place, Server};
use serde_json::{Value, json};

const VERSION: &str = "df7fc5d";

/// A copy of a fixture, and what the version that wrote it read from it.
struct Fixture {
    place: Place,
    expected: Value,
}

impl Fixture {
    fn unpack(name: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join(VERSION);
        let place = Place::new();
        let archive = folder.join(format!("{name}.tar.gz"));
        let unpacked =
            Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(place.path()).status();
        assert!(unpacked.unwrap().success());
        let expected = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
        let fixture = Self { place, expected: serde_json::from_str(&expected).unwrap() };
        fixture.relocate();
        fixture
    }

    /// The manifest of a migrated session names its file by its whole path.
    fn relocate(&self) {
        let made_in = self.expected["made_in"].as_str().unwrap();
        let here = self.place.path().display().to_string();
        for manifest in files_named(&self.place.data_dir(), "manifest.json") {
            let text = std::fs::read_to_string(&manifest).unwrap();
            let (body, _) = text.rsplit_once(",\"crc\":").unwrap();
            let body = body.replace(made_in, &here);
            let crc = crc32c::crc32c(body.as_bytes());
            std::fs::write(&manifest, format!("{body},\"crc\":\"{crc:08x}\"}}")).unwrap();
        }
    }

    fn expected_in(&self, part: &str) -> BTreeMap<String, Value> {
        serde_json::from_value(self.expected[part].clone()).unwrap()
    }

    #[track_caller]
    fn verify(&self) {
        let report = self.place.json(&["verify"]);
        assert_eq!(report["ok"], true, "{report}");
    }

    /// Everything reads as it did.
    #[track_caller]
    fn check_sessions(&self, server: &Client) {
        let sessions = self.expected_in("sessions");
        for (id, expected) in &sessions {
            let found = server.session(id);
            assert_contains(&found, expected, id);
            assert_eq!(found["entries"].as_array().unwrap().len(), entries(expected).len());
        }
        let page = server.ok("GET", "/v1/sessions?limit=200&archived=include", None);
        assert_eq!(ids(&page["sessions"]), sessions.into_keys().collect::<Vec<_>>());
    }

    /// Each session accepts an entry and keeps it, with everything else, when its server is killed.
    fn check_appends(&self) {
        let sessions = self.expected_in("sessions");
        let server = Client::start(&self.place);
        for id in sessions.keys() {
            let message = json!({"role": "user", "content": [{"type": "text", "text": "New"}], "timestamp": 1});
            let body = json!({"entry_id": "new-entry", "message": message});
            server.ok("POST", &format!("{}/entries", path(id)), Some(body));
        }
        drop(server);
        let server = Client::start(&self.place);
        for (id, expected) in &sessions {
            let found = server.session(id);
            assert_eq!(found["active_leaf"], "new-entry", "{id}");
            let there = by_id(&found);
            assert_eq!(there["new-entry"]["parent_id"], expected["active_leaf"], "{id}");
            for entry in entries(expected) {
                assert_contains(there[entry["id"].as_str().unwrap()], entry, id);
            }
        }
    }
}

/// A server of the real program and the requests that are sent to it.
struct Client {
    server: Server,
    agent: ureq::Agent,
}

impl Client {
    fn start(place: &Place) -> Self {
        Self { server: Server::start(place), agent: ureq::Agent::new_with_defaults() }
    }

    #[track_caller]
    fn ok(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", self.server.address);
        let answer = match (method, body) {
            ("GET", None) => self.agent.get(url).call(),
            ("POST", Some(body)) => self
                .agent
                .post(url)
                .header("content-type", "application/json")
                .send(body.to_string()),
            other => panic!("no request is made so: {other:?}"),
        };
        let mut answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }

    /// Everything that a session shows, in the shape that `tests/fixtures/make.py` writes.
    fn session(&self, id: &str) -> Value {
        let path = path(id);
        let branches = self.ok("GET", &format!("{path}/branches?limit=500"), None);
        let mut found = BTreeMap::new();
        for branch in branches["branches"].as_array().unwrap() {
            let end = escaped(branch["entry_id"].as_str().unwrap());
            let mut query = String::new();
            loop {
                let query_of_page =
                    format!("include_custom=true&limit=200&from_entry_id={end}{query}");
                let page = self.ok("GET", &format!("{path}/messages?{query_of_page}"), None);
                for item in page["messages"].as_array().unwrap() {
                    let entry = item["entry_id"].as_str().unwrap();
                    found.entry(entry.to_owned()).or_insert_with(|| self.entry(id, entry));
                }
                match page["next_cursor"].as_str() {
                    Some(cursor) => query = format!("&cursor={}", escaped(cursor)),
                    None => break,
                }
            }
        }
        json!({
            "meta": self.ok("GET", &path, None)["meta"],
            "active_leaf": branches["active_leaf"],
            "entries": found.into_values().collect::<Vec<_>>(),
        })
    }

    /// An entry in the shape of the bus, which does not change.
    fn entry(&self, session: &str, entry: &str) -> Value {
        let request = json!({"session_id": session, "entry_id": entry});
        self.ok("POST", "/v1/call/session::get-message", Some(request))["entry"].clone()
    }
}

fn path(session: &str) -> String {
    format!("/v1/sessions/{}", escaped(session))
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape =
        |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escape).collect()
}

fn entries(session: &Value) -> &Vec<Value> {
    session["entries"].as_array().unwrap()
}

fn by_id(session: &Value) -> BTreeMap<&str, &Value> {
    entries(session).iter().map(|entry| (entry["id"].as_str().unwrap(), entry)).collect()
}

fn ids(sessions: &Value) -> Vec<String> {
    let listed = sessions.as_array().unwrap().iter();
    let mut ids: Vec<String> =
        listed.map(|session| session["session_id"].as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Later versions may show more, never less and never something else.
#[track_caller]
fn assert_contains(found: &Value, expected: &Value, about: &str) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            for (name, value) in expected {
                let found = found.get(name).unwrap_or(&Value::Null);
                assert_contains(found, value, &format!("{about}.{name}"));
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (number, value) in expected.iter().enumerate() {
                assert_contains(&found[number], value, &format!("{about}.{number}"));
            }
        }
        _ => assert_eq!(found, expected, "{about}"),
    }
}

fn files_named(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_named(&path, name));
        } else if path.file_name().is_some_and(|found| found == name) {
            found.push(path);
        }
    }
    found
}

/// What holds for every fixture.
fn check(name: &str) -> Fixture {
    let fixture = Fixture::unpack(name);
    fixture.verify();
    fixture.check_sessions(&Client::start(&fixture.place));
    fixture.verify();
    fixture.check_appends();
    fixture.verify();
    fixture
}

#[test]
fn sessions_that_were_closed_in_order() {
    check("plain");
}

#[test]
fn sessions_that_were_killed_under_load_and_torn() {
    check("crashed");
}

#[test]
fn sessions_of_recorded_agents() {
    let fixture = check("recorded");
    for session in fixture.expected_in("sessions").keys() {
        fixture.place.ok(&["replay", session]);
    }
}

#[test]
fn a_message_that_was_streaming_goes_on() {
    check("streaming");
    let fixture = Fixture::unpack("streaming");
    let sessions = fixture.expected_in("sessions");
    let before = by_id(&sessions["killed"])["streams"];
    let server = Client::start(&fixture.place);
    let delta = json!({"block": 0, "text": "and ends."});
    let path = path("killed");
    let answer = server.ok("POST", &format!("{path}/entries/streams/delta"), Some(delta));
    assert_eq!(answer["revision"], before["revision"].as_u64().unwrap() + 1);
    drop(server);
    let after = Client::start(&fixture.place).entry("killed", "streams");
    let text = before["message"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(after["message"]["content"][0]["text"], format!("{text}and ends."));
}

#[test]
fn deleted_sessions_are_restored() {
    let fixture = check("trash");
    let deleted = fixture.expected_in("trash");
    let server = Client::start(&fixture.place);
    for (id, expected) in &deleted {
        server.ok("POST", &format!("/v1/trash/{}/undelete", escaped(id)), Some(json!({})));
        let mut expected = expected.clone();
        // Restoring is a change, also when the expectation was written.
        expected["meta"]["updated_at"].take();
        let mut found = server.session(id);
        found["meta"]["updated_at"].take();
        assert_contains(&found, &expected, id);
    }
    drop(server);
    fixture.verify();
}

#[test]
fn migrated_sessions_go_back_to_their_files() {
    let fixture = check("migrated");
    drop(fixture);
    let Fixture { place, .. } = Fixture::unpack("migrated");
    let bytes = |folder: &str, session: &str| {
        std::fs::read(place.file(folder).join(format!("{session}.jsonl"))).unwrap()
    };
    for session in ["untouched", "written", "given-back"] {
        place.ok(&["rollback", session, "--yes"]);
        let (now, original) = (bytes("pi", session), bytes("original", session));
        assert!(now.starts_with(&original), "{session}");
        let added = String::from_utf8(now[original.len()..].to_vec()).unwrap();
        let lines: Vec<Value> =
            added.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ids: Vec<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
        let since: &[&str] = if session == "written" { &["since"] } else { &[] };
        assert_eq!(ids, since, "{session}");
    }
    assert_eq!(place.json(&["verify"])["ok"], true);
}
