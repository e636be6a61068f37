//! `bough record` and `bough replay`, as a person and an agent use them: the real program, its standard input and output.
#![expect(clippy::disallowed_methods, reason = "tests look at the program from outside")]

mod held;
mod options;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Answered, PATIENCE, Place, answered, until};
use bough_recorder::{
    AgentEvent, RecordedSession, SessionRecorder, SessionRecorderConfig, Timestamp,
};
use serde_json::{Value, json};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../recorder/tests/cases")
}

fn case(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(cases().join(name)).unwrap()).unwrap()
}

fn events_of(case: &Value) -> Vec<Value> {
    let steps = case["steps"].as_array().unwrap().iter();
    steps.filter_map(|step| step.get("event").cloned()).collect()
}

fn real_run() -> Vec<Value> {
    let text = std::fs::read_to_string(cases().join("events_real_run.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// Runs the program with something on its standard input.
fn run_with(place: &Place, args: &[&str], input: &str) -> Answered {
    let mut child = start(place, args);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    answered(child.wait_with_output().unwrap())
}

fn start(place: &Place, args: &[&str]) -> Child {
    let mut command = place.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[track_caller]
fn recorded(place: &Place, args: &[&str], events: &[Value]) -> Vec<Value> {
    let args: Vec<&str> = ["record", "--print", "sessions"].iter().chain(args).copied().collect();
    let answered = run_with(place, &args, &lines(events));
    assert_eq!(answered.code, 0, "{answered:?}");
    serde_json::from_str(&answered.out).unwrap()
}

/// JSON values as they are to be compared: null is absent, a time is an instant.
fn normal(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), normal(value))).collect())
        }
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::String(text) => text.parse::<Timestamp>().map_or(value.clone(), |at| json!(at)),
        other => other.clone(),
    }
}

fn by_id(sessions: &[Value]) -> Vec<Value> {
    let mut sessions: Vec<Value> = sessions.iter().map(normal).collect();
    sessions.sort_by_key(|session| session["session_id"].to_string());
    sessions
}

fn in_memory(events: &[Value], include_streaming_events: bool) -> Vec<Value> {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        include_streaming_events,
        ..SessionRecorderConfig::default()
    });
    for event in events {
        let event: AgentEvent = serde_json::from_value(event.clone()).unwrap();
        recorder.on_event(event);
    }
    recorder.flush();
    // Through text, as the program's answer comes.
    let text = serde_json::to_string(&recorder.drain_completed()).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The library's own tests compare each case with phi-core; here the program must give the same sessions.
#[test]
fn every_case_gives_the_sessions_that_the_library_makes() {
    let mut seen = 0;
    for entry in std::fs::read_dir(cases()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // Refusing a session needs a program that sets the hook.
        if !name.as_bytes()[0].is_ascii_digit() || name.starts_with("29_") {
            continue;
        }
        seen += 1;
        let case = case(&name);
        let events = events_of(&case);
        let sessions = by_id(&recorded(&Place::new(), &[], &events));
        assert_eq!(sessions, by_id(&in_memory(&events, false)), "{name}");
        if case["class"] == json!("conforming") {
            let expected = case["expected"]["drains"][0].as_array().unwrap().iter();
            let expected: Vec<Value> = expected.map(|one| one["session"].clone()).collect();
            assert_eq!(sessions, by_id(&expected), "{name}");
        }
    }
    assert_eq!(seen, 17);
}

#[test]
fn pieces_of_messages_are_kept_where_that_is_asked_for() {
    let events = real_run();
    let updates = |sessions: &[Value]| lines(sessions).matches("\"MessageUpdate\"").count();
    let without = recorded(&Place::new(), &[], &events);
    assert_eq!(updates(&without), 0);
    let place = Place::new();
    let with = recorded(&place, &["--include-streaming-events"], &events);
    assert!(updates(&with) > 0);
    assert_eq!(by_id(&with), by_id(&in_memory(&events, true)));
    let id = with[0]["session_id"].as_str().unwrap();
    let replayed = place.ok(&["replay", id]);
    assert_eq!(replayed.matches("\"MessageUpdate\"").count(), updates(&with));
}

#[test]
fn bad_lines_are_reported_with_their_numbers_and_passed_over() {
    let place = Place::new();
    let events = events_of(&case("01_simple_loop.json"));
    let mut input = lines(&events[..2]);
    input.push_str("\nnot json\n{\"type\":\"TurnStart\"}\n[1]\n");
    input.push_str("{\"type\":\"InputRejected\",\"loop_id\":\"nobody\",\"reason\":\"x\"}\n");
    input.push_str("{\"type\":\"Dreamt\",\"loop_id\":\"sess-a.cfg.1\"}\n");
    input.push_str(&lines(&events[2..]));
    let file = place.file("events.jsonl");
    std::fs::write(&file, &input).unwrap();
    let path = file.display().to_string();
    let answered = place.run(&["record", &path, "--print", "sessions"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    for expected in [
        "line 4: not an event",
        "line 5: not an event",
        "line 6: not an event",
        "line 7: InputRejected of a loop that never started",
    ] {
        assert!(answered.err.contains(expected), "{expected}: {}", answered.err);
    }
    assert!(!answered.err.contains("line 3"), "an empty line is nothing: {}", answered.err);
    let sessions: Vec<Value> = serde_json::from_str(&answered.out).unwrap();
    let kinds = sessions[0]["loops"][0]["events"].as_array().unwrap();
    assert_eq!(kinds.len(), events.len() + 1, "the event of the future is kept");

    let strict = run_with(&Place::new(), &["record", "--strict", "--print", "sessions"], &input);
    assert_eq!(strict.code, 1);
    assert!(strict.err.contains("line 4: not an event"), "{}", strict.err);
    assert!(!strict.err.contains("line 5"), "it stopped: {}", strict.err);
    let sessions: Vec<Value> = serde_json::from_str(&strict.out).unwrap();
    assert_eq!(sessions[0]["loops"][0]["status"], json!("Aborted"), "what came before is kept");
    let folder = place.data_dir().display().to_string();
    let no_file = place.run(&["record", &folder]);
    assert_eq!(no_file.code, 1);
    assert!(no_file.err.contains(&folder), "{}", no_file.err);
    let none = run_with(&Place::new(), &["record"], "{\n\"pretty\": 1\n}\n");
    assert!(none.err.contains("line 2: not an event") && none.err.contains("at column"));
    assert!(none.err.contains("there is no event in the input"), "{}", none.err);
    // A file that an editor began with a mark loses nothing.
    let marked = Place::new();
    let whole = run_with(&marked, &["record"], &format!("\u{feff}{}", lines(&events)));
    assert!(whole.err.starts_with(&format!("recorded {} events", events.len())), "{}", whole.err);
    let missing = place.run(&["record", "no-such-file"]);
    assert_eq!(missing.code, 3, "{missing:?}");
}

/// Every field that is left out is reported, once.
#[test]
fn fields_that_are_not_kept_are_named_once() {
    let mut events = events_of(&case("02_continuation_chain.json"));
    for event in &mut events {
        event["trace_id"] = json!("t");
    }
    let answered = run_with(&Place::new(), &["record"], &lines(&events));
    assert_eq!(answered.code, 0, "{answered:?}");
    let types: std::collections::BTreeSet<&str> =
        events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    for name in &types {
        let warning = format!("{name} has a field \"trace_id\" that is not kept");
        assert_eq!(answered.err.matches(&warning).count(), 1, "{name}: {}", answered.err);
    }
    let start = &mut events[0];
    for field in 0..30 {
        start[format!("f{field}")] = json!(field);
    }
    let many = run_with(&Place::new(), &["record"], &lines(&events[..1]));
    assert_eq!(many.err.matches("that is not kept").count(), 20, "{}", many.err);
    assert!(many.err.contains("11 more fields were not kept"), "{}", many.err);
}

#[test]
fn sessions_say_the_scope_that_is_configured() {
    let place = Place::new();
    let events = events_of(&case("01_simple_loop.json"));
    assert_eq!(recorded(&place, &[], &events)[0]["scope"], json!("ephemeral"));
    let other = Place::new();
    std::fs::create_dir_all(other.data_dir()).unwrap();
    let config = other.data_dir().join("config.yaml");
    std::fs::write(&config, "session:\n  scope: persistent\n").unwrap();
    assert_eq!(recorded(&other, &[], &events)[0]["scope"], json!("persistent"));
    // Stored either way, and the same from the log.
    for place in [&place, &other] {
        assert_eq!(place.json(&["show", "sess-a", "--loops"])["loops"][0]["status"], "completed");
    }
    std::fs::write(&config, "session:\n  scope: sometimes\n").unwrap();
    let refused = run_with(&other, &["record"], "");
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("scope"), "{}", refused.err);
}

fn say(stdin: &mut ChildStdin, events: &[Value]) {
    stdin.write_all(lines(events).as_bytes()).unwrap();
    stdin.flush().unwrap();
}

fn loops(place: &Place, session: &str) -> Vec<Value> {
    let answered = place.run(&["show", session, "--loops", "--json"]);
    let value: Value = serde_json::from_str(&answered.out).unwrap_or_default();
    value["loops"].as_array().cloned().unwrap_or_default()
}

/// Records events until all of them are stored, and kills the recorder; returns the stored ones.
fn record_and_kill(place: &Place, events: &[Value]) -> Vec<Value> {
    let id = events[0]["session_id"].as_str().unwrap();
    let mut recorder = start(place, &["record"]);
    let mut stdin = recorder.stdin.take().unwrap();
    // The input stays open: only the events themselves make it durable.
    say(&mut stdin, events);
    let replayed = || {
        let answered = place.run(&["replay", id, "--events-only"]);
        answered.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let streamed = |event: &&Value| event["type"] != json!("MessageUpdate");
    let recorded_events: Vec<Value> = events.iter().filter(streamed).cloned().collect();
    until("the recording of every event", || replayed().len() == recorded_events.len());
    assert_eq!(loops(place, id).last().unwrap()["status"], "running");
    // On unix this is kill -9.
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    drop(stdin);
    assert_eq!(normal(&json!(replayed())), normal(&json!(recorded_events)));
    recorded_events
}

/// A stream that is recorded again as a whole gives the session of an uninterrupted recording.
#[test]
fn a_stream_whose_recorder_was_killed_can_be_recorded_again() {
    let place = Place::new();
    let events = real_run();
    let cut = first_end_among(&events) + 4;
    record_and_kill(&place, &events[..cut]);
    let sessions = recorded(&place, &[], &events);
    assert_eq!(by_id(&sessions), by_id(&in_memory(&events, false)));
    let id = events[0]["session_id"].as_str().unwrap();
    let statuses: Vec<Value> = loops(&place, id).iter().map(|one| one["status"].clone()).collect();
    assert!(statuses.iter().all(|status| status == "completed"), "{statuses:?}");
    let again = run_with(&place, &["record"], &lines(&events));
    assert!(again.err.contains("recorded 0 events"), "{}", again.err);
}

#[test]
fn what_was_stored_survives_a_killed_recorder_and_recording_goes_on() {
    let place = Place::new();
    let events = real_run();
    let id = events[0]["session_id"].as_str().unwrap().to_owned();
    let first_end = first_end_among(&events);
    let recorded_events = record_and_kill(&place, &events[..first_end + 4]);

    // The agent was killed too: it starts a third loop from the first, in the same session.
    let mut third = events[0].clone();
    third["loop_id"] = json!("third");
    third["parent_loop_id"] = events[0]["loop_id"].clone();
    third["continuation_kind"] = json!("Default");
    third["timestamp"] = json!("2027-01-01T00:00:00Z");
    let mut end = events[first_end].clone();
    end["loop_id"] = json!("third");
    end["timestamp"] = json!("2027-01-01T00:00:05Z");
    let sessions = recorded(&place, &[], &[third, end]);
    assert_eq!(sessions.len(), 1);
    let statuses: Vec<&Value> =
        sessions[0]["loops"].as_array().unwrap().iter().map(|record| &record["status"]).collect();
    assert_eq!(statuses, ["Completed", "Aborted", "Completed"]);
    let second = &sessions[0]["loops"][1];
    let heard = recorded_events.len() - first_end_among(&recorded_events) - 1;
    assert_eq!(second["events"].as_array().unwrap().len(), heard, "up to the last one stored");
    assert_eq!(loops(&place, &id).len(), 3);
    assert!(place.ok(&["verify"]).contains("0 damaged"));
}

fn first_end_among(events: &[Value]) -> usize {
    events.iter().position(|event| event["type"] == json!("AgentEnd")).unwrap()
}

#[test]
fn a_recorded_session_is_listed_read_walked_and_forked_like_any_other() {
    let place = Place::new();
    let case = case("06_parallel_select_second.json");
    recorded(&place, &[], &events_of(&case));
    let listed = place.json(&["ls"]);
    assert_eq!(listed["sessions"][0]["session_id"], "sess-a", "{listed}");
    let texts = |out: &str, messages: &Value| {
        let loops = messages.as_array().unwrap().iter();
        let texts = loops.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned());
        texts.filter(|text| out.contains(text.as_str())).count()
    };
    let session = &case["expected"]["drains"][0][0]["session"];
    let branch = |is_selected: bool| {
        let loops = session["loops"].as_array().unwrap().iter();
        let found = loops.filter(|record| !record["parallel_group"].is_null());
        let mut found =
            found.filter(|record| record["parallel_group"]["is_selected"] == is_selected);
        found.next().unwrap()["messages"].clone()
    };
    let (chosen, other) = (branch(true), branch(false));
    let last = |messages: &Value| messages.as_array().unwrap().last().cloned().unwrap();
    let shown = place.ok(&["show", "sess-a"]);
    assert_eq!(texts(&shown, &json!([last(&chosen)])), 1, "{shown}");
    assert_eq!(texts(&shown, &json!([last(&other)])), 0, "only the chosen branch: {shown}");
    let tree = place.ok(&["tree", "sess-a", "--print"]);
    assert_eq!(texts(&tree, &json!([last(&chosen), last(&other)])), 2, "{tree}");
    place.ok(&["fork", "sess-a", "--title", "Plan B"]);
    let forked = place.ok(&["show", "Plan B"]);
    assert_eq!(texts(&forked, &json!([last(&chosen)])), 1, "{forked}");
}

#[test]
fn a_session_is_watched_while_it_is_recorded() {
    let place = Place::new();
    let events = events_of(&case("02_continuation_chain.json"));
    let first_loop = first_end_among(&events) + 1;
    recorded(&place, &[], &events[..first_loop]);
    let mut tail = start(&place, &["tail", "-f", "sess-a", "-n", "1"]);
    let (heard, lines_heard) = std::sync::mpsc::channel();
    let out = BufReader::new(tail.stdout.take().unwrap());
    let reading = std::thread::spawn(move || {
        for line in out.lines().map_while(Result::ok) {
            drop(heard.send(line));
        }
    });
    lines_heard.recv_timeout(PATIENCE).unwrap();
    let mut recorder = start(&place, &["record"]);
    let mut stdin = recorder.stdin.take().unwrap();
    say(&mut stdin, &events[first_loop..]);
    let last = events.iter().rev().find(|event| event["type"] == json!("MessageEnd")).unwrap();
    let words = last["message"]["content"][0]["text"].as_str().unwrap();
    let began = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(began.elapsed());
        let line =
            lines_heard.recv_timeout(left).expect("the message is shown while it is recorded");
        if line.contains(words) {
            break;
        }
    }
    drop(stdin);
    assert!(recorder.wait().unwrap().success());
    tail.kill().unwrap();
    tail.wait().unwrap();
    reading.join().unwrap();
}

#[test]
fn a_replay_can_be_recorded_again() {
    let place = Place::new();
    for name in ["06_parallel_select_second.json", "12_sub_agent_spawn.json"] {
        let sessions = recorded(&place, &[], &events_of(&case(name)));
        for session in sessions {
            let id = session["session_id"].as_str().unwrap();
            let replayed = place.ok(&["replay", id]);
            let copy = run_with(&Place::new(), &["record", "--print", "sessions"], &replayed);
            assert_eq!(copy.code, 0, "{copy:?}");
            let again: Vec<Value> = serde_json::from_str(&copy.out).unwrap();
            let again = again.iter().find(|again| again["session_id"] == session["session_id"]);
            assert_eq!(again, Some(&session), "{name}");
        }
    }
}

#[test]
fn a_file_that_is_recorded_again_adds_nothing() {
    let place = Place::new();
    for events in [real_run(), events_of(&case("06_parallel_select_second.json"))] {
        let first = recorded(&place, &[], &events);
        let id = first[0]["session_id"].as_str().unwrap();
        let replayed = place.ok(&["replay", id]);
        for input in [lines(&events), replayed.clone()] {
            let again = run_with(&place, &["record", "--print", "sessions"], &input);
            assert_eq!(again.code, 0, "{again:?}");
            assert!(again.err.contains("recorded 0 events of 1 session"), "{}", again.err);
            assert!(again.err.contains("events were recorded before"), "{}", again.err);
            assert_eq!(serde_json::from_str::<Vec<Value>>(&again.out).unwrap(), first);
        }
        assert_eq!(place.ok(&["replay", id]), replayed);
    }
}

#[test]
fn parts_of_a_session_are_played_back() {
    let place = Place::new();
    let events = events_of(&case("02_continuation_chain.json"));
    let sessions = recorded(&place, &[], &events);
    let session: RecordedSession = serde_json::from_value(sessions[0].clone()).unwrap();
    let second = session.loops.iter().nth(1).unwrap();
    let played = |args: &[&str]| -> Vec<Value> {
        let args: Vec<&str> = ["replay", "sess-a"].iter().chain(args).copied().collect();
        place.ok(&args).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of_loop: Vec<Value> = second.events.iter().map(|event| json!(event.event)).collect();
    assert_eq!(played(&["--loop", &second.loop_id]), of_loop);
    assert_eq!(played(&["--loop", &second.loop_id, "--from", "2"]), of_loop[2..]);
    let whole = played(&[]);
    assert_eq!(played(&["--from", "5"]), whole[5..]);
    assert_eq!(played(&["--events-only"]).len(), events.len());
    for args in [
        &["replay", "sess-a", "--loop", "nobody"][..],
        &["replay", "sess-a", "--from", "1000"],
        &["replay", "nobody"],
    ] {
        let refused = place.run(args);
        assert_eq!(refused.code, 3, "{args:?}: {refused:?}");
    }
}

/// Two events of a recording lie a second apart: played back as fast as it was, that is how long it takes.
#[test]
fn a_replay_can_be_as_fast_as_it_was() {
    let place = Place::new();
    let mut events = events_of(&case("18_input_rejected.json"));
    let last = events.len() - 1;
    events[0]["timestamp"] = json!("2026-01-01T00:00:00Z");
    events[last]["timestamp"] = json!("2026-01-01T00:00:01Z");
    recorded(&place, &[], &events);
    let took = |speed: &str| {
        let began = Instant::now();
        let out = place.ok(&["replay", "sess-a", "--speed", speed, "--events-only"]);
        (out, began.elapsed())
    };
    let (slow, elapsed) = took("recorded");
    assert!(elapsed >= Duration::from_secs(1), "{elapsed:?}");
    assert_eq!(slow, took("at-once").0);
}
