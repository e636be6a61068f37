//! Sessions that cannot be stored, most often because another process is recording them.

use std::process::{Child, ChildStdin};

use serde_json::{Value, json};

use super::{case, events_of, lines, loops, recorded, run_with, say, start};
use crate::common::{Place, until};

/// A recorder that is in the middle of a session, and its input.
struct Busy(Child, Option<ChildStdin>);

impl Busy {
    fn with(place: &Place, session: &str, events: &[Value]) -> Self {
        let mut recorder = start(place, &["record"]);
        let mut stdin = recorder.stdin.take().unwrap();
        say(&mut stdin, events);
        let stored = || place.run(&["replay", session, "--events-only"]).out.lines().count();
        until("the recording of its events", || stored() == events.len());
        Self(recorder, Some(stdin))
    }

    fn end(mut self, rest: &[Value]) {
        let mut stdin = self.1.take().unwrap();
        say(&mut stdin, rest);
        drop(stdin);
        assert!(self.0.wait().unwrap().success());
    }
}

#[test]
fn a_session_that_another_process_records_is_not_said_to_be_recorded() {
    let place = Place::new();
    let events = events_of(&case("02_continuation_chain.json"));
    let busy = Busy::with(&place, "sess-a", &events[..2]);
    let other = events_of(&case("12_sub_agent_spawn.json"));
    let input = lines(&events) + &lines(&other);
    let renamed = place.run(&["rename", "sess-a", "x"]);
    for print in [&["record"][..], &["record", "--print", "sessions"]] {
        let refused = run_with(&place, print, &input);
        assert_eq!(refused.code, renamed.code, "{refused:?}");
        assert_eq!(refused.code, 4);
        assert!(!refused.out.contains("sess-a"), "{}", refused.out);
        assert!(refused.out.contains("sess-child"), "the others are recorded: {}", refused.out);
        assert!(refused.err.contains("of 2 sessions"), "{}", refused.err);
        let left_out = format!("{} events left out", events.len() - 2);
        assert!(refused.err.contains(&left_out), "{}", refused.err);
        let words = "another process is writing this session (process ";
        assert!(renamed.err.contains(words) && refused.err.contains(words), "{}", refused.err);
        assert!(!refused.err.contains("boot_id"), "{}", refused.err);
    }
    busy.end(&events[2..]);
    let again = run_with(&place, &["record"], &input);
    assert_eq!(again.code, 0, "{again:?}");
}

/// If another process starts when only the first event of a session is stored, the session still belongs to the first
/// recorder.
#[test]
fn a_session_belongs_to_its_recorder_from_its_first_event_on() {
    let events = events_of(&case("02_continuation_chain.json"));
    for _ in 0..3 {
        let place = Place::new();
        let busy = Busy::with(&place, "sess-a", &events[..1]);
        let refused = run_with(&place, &["record"], &lines(&events));
        assert_eq!(refused.code, 4, "{refused:?}");
        busy.end(&events[1..]);
        let replayed = place.ok(&["replay", "sess-a", "--events-only"]);
        let replayed: Vec<Value> =
            replayed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let as_told = |events: &[Value]| events.iter().map(super::normal).collect::<Vec<_>>();
        assert_eq!(as_told(&replayed), as_told(&events));
    }
}

#[test]
fn a_sub_agent_in_another_process_leaves_its_parent_alone() {
    let events = events_of(&case("12_sub_agent_spawn.json"));
    let is_child = |event: &&Value| event["loop_id"] == json!("sess-child.sub.1");
    let child: Vec<Value> = events.iter().filter(is_child).cloned().collect();
    let parent: Vec<Value> = events.iter().filter(|event| !is_child(event)).cloned().collect();
    let place = Place::new();
    let busy = Busy::with(&place, "sess-parent", &parent[..1]);
    let recorded_child = run_with(&place, &["record"], &lines(&child));
    assert_eq!((recorded_child.code, recorded_child.out.as_str()), (0, "sess-child\n"));
    busy.end(&parent[1..]);
    let replayed = place.ok(&["replay", "sess-parent", "--events-only"]);
    assert_eq!(replayed.lines().count(), parent.len());
    assert_eq!(loops(&place, "sess-parent")[0]["status"], "completed");
}

#[test]
fn a_link_with_a_session_that_another_process_records_is_reported() {
    let place = Place::new();
    let events = events_of(&case("12_sub_agent_spawn.json"));
    let is_child = |event: &&Value| event["loop_id"] == json!("sess-child.sub.1");
    let child: Vec<Value> = events.iter().filter(is_child).cloned().collect();
    let parent: Vec<Value> = events.iter().filter(|event| !is_child(event)).cloned().collect();
    let busy = Busy::with(&place, "sess-parent", &parent[..3]);
    let recorded_child = run_with(&place, &["record"], &lines(&child));
    assert_eq!(recorded_child.code, 0, "{recorded_child:?}");
    assert_eq!(recorded_child.out, "sess-child\n");
    let words = "the link is not written in session \"sess-parent\"";
    assert!(recorded_child.err.contains(words), "{}", recorded_child.err);
    assert_eq!(loops(&place, "sess-parent")[0]["status"], "running");
    // The parent learns of its child when the tool ends, and writes the link.
    busy.end(&parent[3..]);
    let replayed = place.ok(&["replay", "sess-child"]) + &place.ok(&["replay", "sess-parent"]);
    let stored = run_with(&Place::new(), &["record", "--print", "sessions"], &replayed);
    let stored: Vec<Value> = serde_json::from_str(&stored.out).unwrap();
    let whole = recorded(&Place::new(), &[], &events);
    assert_eq!(super::by_id(&stored), super::by_id(&whole));
}

#[test]
fn an_id_that_no_session_may_have_is_said_to_be_one() {
    let (id, wrong) = ("", "must not be empty");
    let mut events = events_of(&case("01_simple_loop.json"));
    events[0]["session_id"] = json!(id);
    let refused = run_with(&Place::new(), &["record"], &lines(&events));
    assert_eq!((refused.code, refused.out.as_str()), (1, ""), "{refused:?}");
    assert!(refused.err.contains(wrong), "{}", refused.err);
    assert!(refused.err.contains("hint: give it another session_id"), "{}", refused.err);
    assert!(refused.err.contains("recorded 0 events of 0 sessions"), "{}", refused.err);
    assert!(!refused.err.contains("record the events again"), "{}", refused.err);
}
