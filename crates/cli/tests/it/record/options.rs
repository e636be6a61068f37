//! The options of `bough record`, the files that it reads, and what ends it.

use bough_recorder::RecordedSession;
use serde_json::{Value, json};

use super::{
    by_id, case, cases, events_of, in_memory, loops, real_run, recorded, run_with, say, start,
};
use crate::common::{Place, answered, until};

/// The lines of an event log of phi-core since 0.14, and its session files.
#[test]
fn the_files_of_the_newest_phi_core_can_be_recorded() {
    let events = real_run();
    let log: String = (1..)
        .zip(&events)
        .map(|(ordinal, event)| format!("{}\n", json!({"ordinal": ordinal, "event": event})))
        .collect();
    let place = Place::new();
    let answered = run_with(&place, &["record", "--print", "sessions"], &log);
    assert_eq!(answered.code, 0, "{answered:?}");
    let sessions: Vec<Value> = serde_json::from_str(&answered.out).unwrap();
    assert_eq!(by_id(&sessions), by_id(&in_memory(&events, false)));
    // A torn last line is skipped, and a line that is not an event is reported.
    let torn = run_with(&Place::new(), &["record"], &log[..log.len() - 10]);
    assert!(torn.err.contains("passed over"), "{}", torn.err);

    // A session file is known by what is in it: a copy may have any name.
    for (name, copy) in [
        ("full-session-file.json", "a copy.json"),
        ("session-file-0.15.2.json", "of one line.json"),
    ] {
        let mut text = std::fs::read_to_string(cases().join(name)).unwrap();
        let stored: RecordedSession = serde_json::from_str(&text).unwrap();
        if copy == "of one line.json" {
            text = serde_json::from_str::<Value>(&text).unwrap().to_string();
        }
        let place = Place::new();
        let file = place.data_dir().with_file_name(copy);
        std::fs::write(&file, &text).unwrap();
        let answered = place.ok(&["record", file.to_str().unwrap(), "--print", "sessions"]);
        let sessions: Vec<RecordedSession> = serde_json::from_str(&answered).unwrap();
        let [session] = &sessions[..] else { panic!("{}", sessions.len()) };
        let contents = |session: &RecordedSession| -> Vec<Value> {
            let loops = session.loops.iter();
            loops.map(|one| json!([one.loop_id, one.status, one.messages, one.usage])).collect()
        };
        assert_eq!(contents(session), contents(&stored), "{name}");
        // What was printed can be recorded as well.
        std::fs::write(&file, &answered).unwrap();
        let again = Place::new();
        let printed = again.ok(&["record", file.to_str().unwrap(), "--print", "sessions"]);
        let printed: Vec<RecordedSession> = serde_json::from_str(&printed).unwrap();
        assert_eq!(contents(&printed[0]), contents(&stored), "{name}");
    }
}

/// One error with the reason, and not a warning for each line.
#[test]
fn a_document_that_is_no_session_file_is_refused() {
    let place = Place::new();
    let text = std::fs::read_to_string(cases().join("full-session-file.json")).unwrap();
    let file = place.data_dir().with_file_name("session.json");
    std::fs::write(&file, text.replace("\"loops\"", "\"rings\"")).unwrap();
    let refused = place.run(&["record", file.to_str().unwrap()]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("missing field `loops`"), "{}", refused.err);
    assert!(!refused.err.contains("passed over"), "{}", refused.err);
}

#[test]
fn usage_shows_what_loops_and_judges_reported() {
    let place = Place::new();
    let mut events = events_of(&case("06_parallel_select_second.json"));
    let (mut reported, mut judged) = (0, 0);
    for event in &mut events {
        if event["type"] == json!("AgentEnd") {
            event["usage"]["input"] = json!(1000);
            reported += 1000;
        }
        if event["type"] == json!("ParallelLoopEnd") {
            event["evaluation_usage"]["input"] = json!(77);
            judged += 77;
        }
    }
    recorded(&place, &[], &events);
    let usage = place.json(&["usage", "sess-a"]);
    assert_eq!(usage["reported"]["input"], json!(reported));
    assert_eq!(usage["judges"]["input"], json!(judged));
    assert!(reported > 0 && judged > 0);
    assert!(usage["session"]["total"]["messages"].is_u64(), "{usage}");
    let shown = place.ok(&["usage", "sess-a"]);
    assert!(shown.contains("by loops") && shown.contains("by judges"), "{shown}");
}

#[test]
fn a_session_after_a_timeout_says_so() {
    let events = events_of(&case("01_simple_loop.json"));
    let mut later = events.clone();
    for event in &mut later {
        let text =
            event.to_string().replace("sess-a", "sess-b").replace("2026-01-01", "2026-01-02");
        *event = serde_json::from_str(&text).unwrap();
    }
    let both = [events, later].concat();
    let formation = |args: &[&str]| -> Value {
        let sessions = recorded(&Place::new(), args, &both);
        sessions.iter().find(|one| one["session_id"] == "sess-b").unwrap()["formation"].clone()
    };
    assert!(formation(&[])["FirstLoop"].is_object());
    let timeout = &formation(&["--inactivity-timeout", "30m"])["InactivityTimeout"];
    assert_eq!(timeout["threshold_secs"], json!(1800));
    assert_eq!(timeout["previous_session_id"], json!("sess-a"));
    assert!(formation(&["--inactivity-timeout", "forever"])["FirstLoop"].is_object());
    let refused = run_with(&Place::new(), &["record", "--inactivity-timeout", "soon"], "");
    assert_eq!(refused.code, 2);
}

#[test]
fn sessions_in_memory_are_printed_and_gone() {
    let place = Place::new();
    let events = events_of(&case("01_simple_loop.json"));
    let sessions = recorded(&place, &["--memory", "--scope", "persistent"], &events);
    assert_eq!(sessions[0]["scope"], json!("persistent"));
    assert_eq!(sessions[0]["loops"].as_array().unwrap().len(), 1);
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 0);
    assert_eq!(recorded(&place, &[], &events)[0]["scope"], json!("ephemeral"));
}

/// A signal that asks the recorder to end.
#[cfg(unix)]
#[test]
fn both_signals_end_a_recording_with_everything_stored() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let events = events_of(&case("01_simple_loop.json"));
        let mut recorder = start(&place, &["record"]);
        let mut stdin = recorder.stdin.take().unwrap();
        say(&mut stdin, &events[..2]);
        until("the recording", || !loops(&place, "sess-a").is_empty());
        let pid = recorder.id().to_string();
        let sent = std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
        let answered = answered(recorder.wait_with_output().unwrap());
        assert_eq!((answered.code, answered.out.as_str()), (0, "sess-a\n"), "{answered:?}");
        assert_eq!(loops(&place, "sess-a")[0]["status"], "aborted", "{signal}");
        drop(stdin);
    }
}
