//! How a recorder treats sessions: hooks, formation, scope, drains, late and lost events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bough_recorder::{
    AgentEnd, AgentEvent, AgentStart, ContinuationKind, LoopStatus, Notice, ParallelLoopEnd,
    ParallelLoopStart, RETAINED_SESSIONS_MAX, SessionFormation, SessionRecorder,
    SessionRecorderConfig, SessionScope, SpawnGraph, TaskStatus, Timestamp, ToolExecutionEnd,
    ToolResult, save_session, usage_with_sub_agents,
};
use bough_session::Usage;
use serde_json::json;

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_ms(second * 1000)
}

fn start_with(session: &str, id: &str, parent: Option<&str>, second: i64) -> AgentStart {
    AgentStart {
        agent_id: "agent".to_owned(),
        session_id: session.to_owned(),
        loop_id: id.to_owned(),
        parent_loop_id: parent.map(str::to_owned),
        continuation_kind: match parent {
            Some(_) => ContinuationKind::Default,
            None => ContinuationKind::Initial,
        },
        timestamp: at(second),
        metadata: None,
        config_snapshot: None,
    }
}

fn start(session: &str, id: &str, parent: Option<&str>, second: i64) -> AgentEvent {
    start_with(session, id, parent, second).into()
}

fn end(id: &str, second: i64) -> AgentEvent {
    AgentEnd {
        loop_id: id.to_owned(),
        messages: vec![],
        usage: Usage { input: Some(10), ..Usage::default() },
        timestamp: at(second),
        rejection: None,
    }
    .into()
}

fn spawns(id: &str, child: &str) -> AgentEvent {
    ToolExecutionEnd {
        loop_id: id.to_owned(),
        tool_call_id: "call".to_owned(),
        tool_name: "sub_agent".to_owned(),
        result: ToolResult::default().from_sub_agent(child).into(),
        is_error: false,
        child_loop_id: None,
    }
    .into()
}

fn recorder() -> SessionRecorder {
    SessionRecorder::new(SessionRecorderConfig::default())
}

#[test]
fn the_hooks_are_called_once_for_each_session() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (before, after) = (Arc::clone(&calls), Arc::clone(&calls));
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        before_task: Some(Arc::new(move |session| {
            before.lock().unwrap().push(format!("before {}", session.session_id));
            true
        })),
        after_task: Some(Arc::new(move |session| {
            let loops = session.loops.len();
            after.lock().unwrap().push(format!("after {} {loops}", session.session_id));
        })),
        ..SessionRecorderConfig::default()
    });
    recorder.on_event(start("s", "s.1", None, 0));
    assert_eq!(recorder.checkpoint(), 0, "a loop is open");
    recorder.on_event(end("s.1", 1));
    assert_eq!(recorder.checkpoint(), 1);
    assert_eq!(recorder.checkpoint(), 0, "it is complete already");
    assert_eq!(recorder.drain_completed().len(), 1);
    recorder.on_event(start("s", "s.2", Some("s.1"), 2));
    recorder.on_event(start("t", "t.1", None, 3));
    assert_eq!(recorder.flush(), 2);
    let sessions = recorder.drain_completed();
    let loops: Vec<usize> = sessions.iter().map(|session| session.loops.len()).collect();
    assert_eq!(loops, [2, 1]);
    assert!(recorder.drain_completed().is_empty(), "nothing is handed out twice");
    assert_eq!(recorder.flush(), 0);
    let calls = calls.lock().unwrap();
    assert_eq!(*calls, ["before s", "before t", "after s 2", "after t 1"]);
}

#[test]
fn a_task_ends_with_the_whole_session_after_checkpoints_and_after_a_timeout() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let after = Arc::clone(&calls);
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        after_task: Some(Arc::new(move |session| {
            let loops = session.loops.len();
            after.lock().unwrap().push(format!("{} {loops}", session.session_id));
        })),
        inactivity_timeout: Some(Duration::from_secs(30)),
        ..SessionRecorderConfig::default()
    });
    for number in 1..=2 {
        recorder.on_event(start("s", &format!("s.{number}"), None, number));
        recorder.on_event(end(&format!("s.{number}"), number));
        recorder.checkpoint();
        recorder.drain_completed();
    }
    assert!(calls.lock().unwrap().is_empty(), "a checkpoint ends no task");
    recorder.on_event(start("t", "t.1", None, 10));
    recorder.on_event(end("t.1", 10));
    assert!(calls.lock().unwrap().is_empty(), "the agent was not idle for long");
    recorder.on_event(start("u", "u.1", None, 41));
    assert_eq!(*calls.lock().unwrap(), ["t 1"]);
    recorder.flush();
    assert_eq!(*calls.lock().unwrap(), ["t 1", "s 2", "u 1"]);
    recorder.flush();
    assert_eq!(calls.lock().unwrap().len(), 3, "each task ends once");
    recorder.on_event(start("s", "s.3", None, 42));
    recorder.on_event(end("s.3", 42));
    recorder.flush();
    assert_eq!(calls.lock().unwrap().last().unwrap(), "s 3");
}

#[test]
fn a_task_ends_when_its_session_is_dropped() {
    let calls = Arc::new(Mutex::new(0));
    let after = Arc::clone(&calls);
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        after_task: Some(Arc::new(move |_| *after.lock().unwrap() += 1)),
        ..SessionRecorderConfig::default()
    });
    for number in 0..=bough_recorder::RETAINED_SESSIONS_MAX {
        let loop_id = format!("s{number}.1");
        recorder.on_event(start(&format!("s{number}"), &loop_id, None, 0));
        recorder.on_event(end(&loop_id, 1));
    }
    recorder.checkpoint();
    recorder.drain_completed();
    assert_eq!(*calls.lock().unwrap(), 1);
    recorder.flush();
    assert_eq!(*calls.lock().unwrap(), bough_recorder::RETAINED_SESSIONS_MAX + 1);
}

#[test]
fn a_refused_session_leaves_nothing_and_every_event_is_accounted_for() {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        before_task: Some(Arc::new(|session| session.session_id != "no")),
        ..SessionRecorderConfig::default()
    });
    let announced = ParallelLoopStart {
        session_id: "no".to_owned(),
        loop_ids: vec!["no.1".to_owned()],
        timestamp: at(0),
    };
    assert!(recorder.on_event(announced.clone().into()).is_clean(), "nobody was asked yet");
    for event in [
        start("no", "no.1", None, 0),
        end("no.1", 1),
        start("no", "no.2", None, 2),
        announced.into(),
    ] {
        let report = recorder.on_event(event);
        assert!(matches!(report.notices[..], [Notice::RefusedSession { .. }]), "{report:?}");
        assert!(report.is_lost());
    }
    assert!(recorder.on_event(start("yes", "yes.1", None, 0)).is_clean());
    recorder.flush();
    assert_eq!(recorder.sessions().count(), 1);
}

#[test]
fn an_agent_that_was_idle_makes_its_next_session_by_timeout() {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig {
        inactivity_timeout: Some(Duration::from_secs(60)),
        scope: SessionScope::Persistent,
        ..SessionRecorderConfig::default()
    });
    recorder.on_event(start("one", "one.1", None, 0));
    recorder.on_event(end("one.1", 100));
    recorder.on_event(start("two", "two.1", None, 160));
    recorder.on_event(end("two.1", 170));
    recorder.on_event(start("three", "three.1", None, 231));
    recorder.announce_session("four", SessionFormation::Explicit { timestamp: at(7) });
    recorder.on_event(start("four", "four.1", None, 1000));
    let formation = |id: &str| recorder.get_session(id).unwrap().formation.clone();
    assert_eq!(formation("two"), SessionFormation::FirstLoop { timestamp: at(160) });
    assert_eq!(
        formation("three"),
        SessionFormation::InactivityTimeout {
            threshold_secs: 60,
            previous_session_id: Some("two".to_owned()),
            timestamp: at(231),
        }
    );
    assert_eq!(formation("four"), SessionFormation::Explicit { timestamp: at(7) });
    assert!(recorder.sessions().all(|session| session.scope == SessionScope::Persistent));
}

#[test]
fn a_session_is_active_when_its_last_loop_started() {
    let mut recorder = recorder();
    recorder.on_event(start("s", "s.1", None, 5));
    recorder.on_event(end("s.1", 50));
    let session = recorder.get_session("s").unwrap();
    assert_eq!((session.created_at, session.last_active_at), (at(5), at(5)));
    recorder.on_event(start("s", "s.2", None, 60));
    let session = recorder.get_session("s").unwrap();
    assert_eq!((session.created_at, session.last_active_at), (at(5), at(60)));
}

#[test]
fn what_cannot_be_placed_is_said() {
    let mut recorder = recorder();
    let check = |recorder: &mut SessionRecorder, event: AgentEvent, expected: &str| {
        let report = recorder.on_event(event);
        let notices: Vec<String> = report.notices.iter().map(ToString::to_string).collect();
        assert_eq!(notices, [expected]);
    };
    check(&mut recorder, end("nobody", 1), "AgentEnd of a loop that never started: \"nobody\"");
    let dreamt = serde_json::from_value(json!({"type": "Dreamt", "of": "sheep"})).unwrap();
    check(&mut recorder, dreamt, "Dreamt names no loop");
    recorder.on_event(start("s", "s.1", None, 0));
    check(&mut recorder, start("s", "s.1", None, 0), "\"s.1\" was started twice");
    recorder.on_event(end("s.1", 1));
    check(&mut recorder, end("s.1", 2), "AgentEnd after the end of its loop \"s.1\"");
    let chosen = |session: &str, id: &str| -> AgentEvent {
        ParallelLoopEnd {
            session_id: session.to_owned(),
            selected_loop_id: id.to_owned(),
            selected_config_index: 0,
            evaluation_usage: Usage::default(),
            timestamp: at(3),
        }
        .into()
    };
    let nowhere = "ParallelLoopEnd of an unknown session: \"x\"";
    check(&mut recorder, chosen("x", "s.1"), nowhere);
    let alone = "\"s.1\" was chosen from a group that was never announced";
    check(&mut recorder, chosen("s", "s.1"), alone);
    let again = "\"s.1\" was chosen from a group that was decided before";
    check(&mut recorder, chosen("s", "s.1"), again);
    let record = recorder.get_session("s").unwrap().get_loop("s.1").unwrap();
    assert_eq!(record.ended_at, Some(at(1)), "the first end counts");
    assert_eq!(record.events.len(), 3, "late events are kept");
}

#[test]
fn sub_agents_are_linked_whichever_side_speaks_first() {
    let child = |parent: Option<&str>| -> AgentEvent {
        AgentStart {
            continuation_kind: ContinuationKind::Initial,
            ..start_with("child", "opaque", parent, 5)
        }
        .into()
    };
    let parent = [start("parent", "p", None, 0), spawns("p", "opaque"), end("p", 9)];
    let child_end = end("opaque", 6);
    let named = child(Some("p"));
    let orders: [Vec<AgentEvent>; 5] = [
        vec![
            parent[0].clone(),
            named.clone(),
            child_end.clone(),
            parent[1].clone(),
            parent[2].clone(),
        ],
        vec![
            parent[0].clone(),
            parent[1].clone(),
            parent[2].clone(),
            named.clone(),
            child_end.clone(),
        ],
        vec![
            named.clone(),
            child_end.clone(),
            parent[0].clone(),
            parent[1].clone(),
            parent[2].clone(),
        ],
        // The child does not know who its parent is.
        vec![
            parent[0].clone(),
            child(None),
            child_end.clone(),
            parent[1].clone(),
            parent[2].clone(),
        ],
        // The tool's answer arrives after its loop has ended.
        vec![parent[0].clone(), named, parent[2].clone(), child_end, parent[1].clone()],
    ];
    for events in orders {
        let mut recorder = recorder();
        for event in events {
            recorder.on_event(event);
        }
        recorder.flush();
        let sessions = recorder.drain_completed();
        let find = |id: &str| sessions.iter().find(|session| session.session_id == id).unwrap();
        let spawn = find("child").parent_spawn_ref.as_ref().unwrap();
        assert_eq!(
            json!(spawn),
            json!({"parent_session_id": "parent", "parent_loop_id": "p",
            "tool_call_id": "call", "tool_name": "sub_agent"})
        );
        let refs = &find("parent").get_loop("p").unwrap().child_loop_refs;
        assert_eq!(
            json!(refs),
            json!([{"child_session_id": "child", "child_loop_id": "opaque",
            "tool_call_id": "call", "tool_name": "sub_agent"}])
        );
        let graph = SpawnGraph::new(&sessions);
        assert_eq!(graph.spawns().len(), 1);
        assert_eq!(graph.family_of("parent"), ["parent", "child"]);
        assert_eq!(graph.chain_to("child").len(), 1);
        assert_eq!(usage_with_sub_agents("parent", &sessions).input, Some(20));
        assert_eq!(usage_with_sub_agents("child", &sessions).input, Some(10));
    }
}

#[test]
fn a_drained_session_that_learns_something_is_handed_out_again() {
    let mut recorder = recorder();
    let child = AgentStart {
        continuation_kind: ContinuationKind::Initial,
        ..start_with("child", "c", Some("p"), 5)
    };
    recorder.on_event(child.into());
    recorder.on_event(end("c", 6));
    recorder.checkpoint();
    assert_eq!(recorder.drain_completed().len(), 1);
    recorder.on_event(start("parent", "p", None, 0));
    recorder.on_event(spawns("p", "c"));
    let again = recorder.drain_completed();
    assert_eq!(again[0].session_id, "child");
    assert_eq!(again[0].parent_spawn_ref.as_ref().unwrap().tool_call_id, "call");
}

#[test]
fn saving_each_drain_never_loses_a_loop() {
    let folder = tempfile::tempdir().unwrap();
    let mut recorder = recorder();
    for number in 1..=5 {
        let id = format!("s.{number}");
        let parent = (number > 1).then(|| format!("s.{}", number - 1));
        recorder.on_event(start("s", &id, parent.as_deref(), number));
        recorder.on_event(end(&id, number));
        recorder.checkpoint();
        for session in recorder.drain_completed() {
            assert_eq!(session.loops.len(), usize::try_from(number).unwrap());
            save_session(&session, folder.path()).unwrap();
        }
    }
    // A recorder that does not know the file must not overwrite it, unless it continues from it.
    let mut other = SessionRecorder::new(SessionRecorderConfig::default());
    other.on_event(start("s", "s.6", Some("s.5"), 6));
    other.flush();
    let session = other.drain_completed().remove(0);
    assert!(save_session(&session, folder.path()).is_err());
    let dir = folder.path().to_owned();
    let mut goes_on = SessionRecorder::new(SessionRecorderConfig {
        load_session: Some(Arc::new(move |id| bough_recorder::load_session(id, &dir).ok())),
        ..SessionRecorderConfig::default()
    });
    goes_on.on_event(start("s", "s.6", Some("s.5"), 6));
    goes_on.on_event(end("s.6", 7));
    goes_on.flush();
    let session = goes_on.drain_completed().remove(0);
    assert_eq!(session.loops.len(), 6);
    assert_eq!(session.loop_chain_to("s.6").len(), 6);
    save_session(&session, folder.path()).unwrap();
}

#[test]
fn sessions_drained_too_long_ago_are_forgotten_and_that_is_said() {
    let mut recorder = recorder();
    for number in 0..=RETAINED_SESSIONS_MAX {
        let (session, id) = (format!("s{number}"), format!("s{number}.1"));
        recorder.on_event(start(&session, &id, None, 0));
        recorder.on_event(end(&id, 1));
    }
    recorder.checkpoint();
    assert_eq!(recorder.drain_completed().len(), RETAINED_SESSIONS_MAX + 1);
    let report = recorder.on_event(start("s0", "s0.2", None, 5));
    assert!(matches!(report.notices[..], [Notice::SessionForgotten { .. }]), "{report:?}");
    assert!(!report.is_lost());
    assert!(recorder.on_event(start("s1", "s1.2", None, 5)).is_clean());
    assert_eq!(recorder.get_session("s1").unwrap().loops.len(), 2);
}

#[test]
fn a_resumed_session_breaks_off_what_was_open() {
    let mut before = recorder();
    before.on_event(start("s", "s.1", None, 0));
    before.on_event(start("s", "s.2", Some("s.1"), 1));
    let session = before.get_session("s").unwrap().clone();
    let mut after = recorder();
    assert_eq!(after.resume(session), 2);
    after.on_event(start("s", "s.3", Some("s.2"), 2));
    after.flush();
    let session = after.drain_completed().remove(0);
    let statuses: Vec<LoopStatus> = session.loops.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [LoopStatus::Aborted; 3]);
    assert_eq!(session.children_of("s.1").count(), 1);
    assert_eq!(session.children_of("s.2").count(), 1);
}

#[test]
fn tasks_have_names_and_stand_somewhere() {
    let mut recorder = recorder();
    let named = AgentStart {
        metadata: Some(json!({"task_name": "fix the roof"}).into()),
        ..start_with("s", "s.1", None, 0)
    };
    recorder.on_event(named.into());
    let session = recorder.get_session("s").unwrap();
    assert_eq!(session.task_name.as_deref(), Some("fix the roof"));
    assert_eq!(session.task_status(), TaskStatus::Running);
    recorder.on_event(end("s.1", 1));
    assert_eq!(recorder.get_session("s").unwrap().task_status(), TaskStatus::Completed);
    assert!(recorder.set_task_name("s", "fix the whole house"));
    assert!(recorder.set_task_status("s", Some(TaskStatus::Failed)));
    let session = recorder.get_session("s").unwrap();
    assert_eq!(session.task_name.as_deref(), Some("fix the whole house"));
    assert_eq!(session.task_status(), TaskStatus::Failed);
    assert!(!recorder.set_task_name("nobody", "x"));
    let plain = start("t", "t.1", None, 0);
    recorder.on_event(plain);
    let document = serde_json::to_value(recorder.get_session("t").unwrap()).unwrap();
    assert_eq!(document.get("task_name"), None, "a name that was never set is not in the file");
    assert_eq!(document.get("task_status"), None);
}

#[test]
fn long_chains_and_wide_trees_are_walked_link_by_link() {
    let mut recorder = recorder();
    let loops = 20_000;
    for number in 0..loops {
        let parent = (number > 0).then(|| format!("s.{}", number - 1));
        recorder.on_event(start("s", &format!("s.{number}"), parent.as_deref(), number));
        recorder.on_event(end(&format!("s.{number}"), number));
        recorder.on_event(start("s", &format!("wide.{number}"), Some("s.0"), number));
        recorder.on_event(end(&format!("wide.{number}"), number));
    }
    recorder.flush();
    let session = recorder.drain_completed().remove(0);
    let last = format!("s.{}", loops - 1);
    assert_eq!(session.loop_chain_to(&last).len(), 20_000);
    assert_eq!(session.children_of("s.0").count(), 20_001);
}
