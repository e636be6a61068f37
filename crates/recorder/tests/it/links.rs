//! Links between sessions of which one is not in memory when the other is recorded.

use std::collections::HashSet;
use std::sync::Arc;

use crate::support::logs::{DiskFull, Logs, in_memory, with_notices};
use bough_recorder::{
    AgentEvent, DurableOptions, DurableRecorder, LoopStatus, RecordedSession, Recording, SpawnRef,
};
use serde_json::json;

const SPAWN: &str = include_str!("../cases/12_sub_agent_spawn.json");
const TOOL_ENDS_FIRST: &str =
    include_str!("../cases/14_sub_agent_tool_end_before_child_start.json");

fn events_of(case: &str) -> Vec<AgentEvent> {
    let case: serde_json::Value = serde_json::from_str(case).unwrap();
    let steps = case["steps"].as_array().unwrap().iter();
    let events = steps.filter_map(|step| step.get("event").cloned());
    events.map(|event| serde_json::from_value(event).unwrap()).collect()
}

fn event(value: serde_json::Value) -> AgentEvent {
    serde_json::from_value(value).unwrap()
}

fn start(session_id: &str, loop_id: &str, parent: Option<&str>) -> AgentEvent {
    event(
        json!({"type": "AgentStart", "agent_id": "a", "session_id": session_id, "loop_id": loop_id,
        "parent_loop_id": parent, "continuation_kind": "Initial",
        "timestamp": "2026-01-01T00:00:00Z", "metadata": null}),
    )
}

fn end(loop_id: &str) -> AgentEvent {
    event(json!({"type": "AgentEnd", "loop_id": loop_id, "messages": [], "rejection": null,
        "usage": {"input": 0, "output": 0, "reasoning": 0, "cache_read": 0, "cache_write": 0,
        "total_tokens": 0}, "timestamp": "2026-01-01T00:00:01Z"}))
}

fn tool_ended(loop_id: &str, child: &str) -> AgentEvent {
    event(
        json!({"type": "ToolExecutionEnd", "loop_id": loop_id, "tool_call_id": format!("to {child}"),
        "tool_name": "sub_agent", "result": {"content": [], "details": null}, "is_error": false,
        "child_loop_id": child}),
    )
}

/// One run of a recorder, and the notices that it reported.
async fn run(logs: &Arc<Logs>, events: Vec<AgentEvent>) -> (Recording<DiskFull>, Vec<String>) {
    let (options, heard) = with_notices();
    let recorder = DurableRecorder::start(Arc::clone(logs), options);
    for event in events {
        recorder.record(event).await.unwrap();
    }
    let recording = recorder.finish().await.unwrap();
    let heard = heard.lock().unwrap().clone();
    (recording, heard)
}

/// Records these events, and kills the recorder.
async fn run_and_kill(logs: &Arc<Logs>, events: &[AgentEvent]) {
    let recorder = DurableRecorder::start(Arc::clone(logs), DurableOptions::default());
    for event in events {
        recorder.record(event.clone()).await.unwrap();
    }
    recorder.sync().await.unwrap();
}

fn is_of(session: &str) -> impl Fn(&AgentEvent) -> bool {
    let prefix = format!("{session}.");
    move |event| event.loop_id().is_some_and(|id| id.starts_with(&prefix))
}

/// The links between two sessions: the child's side, and the parent's.
fn links(logs: &Logs, child: &str, parent: &str) -> (Option<SpawnRef>, serde_json::Value) {
    let side = |id: &str| logs.fold(id).unwrap_or_else(|| panic!("{id} is not stored"));
    let refs: Vec<_> =
        side(parent).loops.iter().map(|record| record.child_loop_refs.clone()).collect();
    (side(child).parent_spawn_ref, json!(refs))
}

#[track_caller]
fn assert_linked(logs: &Logs, child: &str, parent: &str, tool_call_id: &str) {
    let (spawn, refs) = links(logs, child, parent);
    let spawn = spawn.unwrap_or_else(|| panic!("{child} knows no parent; {parent} says {refs}"));
    assert_eq!(
        (spawn.parent_session_id.as_str(), spawn.tool_call_id.as_str()),
        (parent, tool_call_id)
    );
    let refs = refs.to_string();
    let child_side = format!("\"child_session_id\":\"{child}\"");
    assert!(refs.contains(&child_side) && refs.contains(tool_call_id), "{refs}");
}

#[tokio::test]
async fn each_session_in_a_run_of_its_own_gives_the_links_of_one_run() {
    for case in [SPAWN, TOOL_ENDS_FIRST] {
        let events = events_of(case);
        let whole = in_memory(events.clone());
        let of = |session| -> Vec<AgentEvent> {
            events.iter().filter(|event| is_of(session)(event)).cloned().collect()
        };
        for order in [["sess-parent", "sess-child"], ["sess-child", "sess-parent"]] {
            let logs = Arc::new(Logs::default());
            for session in order {
                let (recording, heard) = run(&logs, of(session)).await;
                assert!(recording.failures.is_empty() && heard.is_empty(), "{heard:?}");
            }
            for session in &whole {
                let stored = logs.fold(&session.session_id).unwrap();
                assert_eq!(crate::support::differences(&stored, session), "", "{order:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_restart_anywhere_loses_no_link() {
    let events = events_of(SPAWN);
    for at in 0..events.len() {
        let logs = Arc::new(Logs::default());
        run_and_kill(&logs, &events[..at]).await;
        run(&logs, events[at..].to_vec()).await;
        let (spawn, refs) = links(&logs, "sess-child", "sess-parent");
        let whole = in_memory(events.clone());
        let side = |id: &str| whole.iter().find(|session| session.session_id == id).unwrap();
        assert_eq!(spawn, side("sess-child").parent_spawn_ref, "killed after {at}");
        let expected: Vec<_> =
            side("sess-parent").loops.iter().map(|record| record.child_loop_refs.clone()).collect();
        assert_eq!(refs, json!(expected), "killed after {at}");
    }
}

#[tokio::test]
async fn sessions_that_were_let_go_of_are_linked() {
    let children: Vec<usize> = (0..2600).collect();
    for opaque in [false, true] {
        let id = |child: usize| {
            if opaque { format!("loop-{child}") } else { format!("c{child}.sub.1") }
        };
        let logs = Arc::new(Logs::default());
        let mut events = vec![start("parent", "parent.cfg.1", None)];
        for child in &children {
            events.push(start(&format!("c{child}"), &id(*child), None));
            events.push(end(&id(*child)));
        }
        let named: Vec<usize> = children.iter().copied().step_by(200).collect();
        events.extend(named.iter().map(|child| tool_ended("parent.cfg.1", &id(*child))));
        let (recording, heard) = run(&logs, events).await;
        assert!(recording.failures.is_empty() && heard.is_empty(), "{heard:?}");
        assert_eq!(recording.sessions.len(), children.len() + 1);
        for child in named {
            let tool_call_id = format!("to {}", id(child));
            assert_linked(&logs, &format!("c{child}"), "parent", &tool_call_id);
        }
    }
}

/// A session that named an unknown loop may be dropped from memory before the loop starts.
#[tokio::test]
async fn a_loop_that_comes_late_is_linked_with_those_that_named_it() {
    let logs = Arc::new(Logs::default());
    let mut events = vec![
        start("child", "child-loop", Some("parent-loop")),
        end("child-loop"),
        start("other", "other.cfg.1", None),
        tool_ended("other.cfg.1", "late-loop"),
        end("other.cfg.1"),
    ];
    for other in 0..2600 {
        events.push(start(&format!("s{other}"), &format!("s{other}.cfg.1"), None));
        events.push(end(&format!("s{other}.cfg.1")));
    }
    events.push(start("parent", "parent-loop", None));
    events.push(start("late", "late-loop", None));
    let (_, heard) = run(&logs, events).await;
    assert!(heard.is_empty(), "{heard:?}");
    assert_linked(&logs, "child", "parent", "");
    assert_linked(&logs, "late", "other", "to late-loop");
}

/// Another process may be recording the parent: only the link to the sub-agent is written into it.
#[tokio::test]
async fn a_session_that_is_only_linked_with_goes_on() {
    let logs = Arc::new(Logs::default());
    run_and_kill(&logs, &[start("parent", "parent.cfg.1", None)]).await;
    let before = logs.log("parent").len();
    let child = vec![start("child", "child.cfg.1", Some("parent.cfg.1")), end("child.cfg.1")];
    let (recording, heard) = run(&logs, child.clone()).await;
    assert!(heard.is_empty(), "{heard:?}");
    assert_linked(&logs, "child", "parent", "");
    let ids = |recording: &Recording<DiskFull>| -> Vec<String> {
        recording.sessions.iter().map(|session| session.session_id.clone()).collect()
    };
    assert_eq!(ids(&recording), ["child", "parent"], "both changed");
    let parent = logs.fold("parent").unwrap();
    assert_eq!(parent.loops.last().unwrap().status, LoopStatus::Running);
    assert_eq!(logs.log("parent").len(), before + 1, "the link, and nothing else");
    // Recording everything again changes nothing, and reports it.
    let (recording, _) = run(&logs, child).await;
    assert_eq!(ids(&recording), ["child"]);
    assert_eq!(logs.log("parent").len(), before + 1);
}

/// A session that was loaded for a link, and then has events of its own, continues as after any restart.
#[tokio::test]
async fn a_session_that_is_linked_with_may_speak_next() {
    let logs = Arc::new(Logs::default());
    run_and_kill(&logs, &[start("parent", "parent.cfg.1", None)]).await;
    let events = vec![
        start("child", "child.cfg.1", Some("parent.cfg.1")),
        start("parent", "parent.cfg.2", None),
        tool_ended("parent.cfg.2", "child.cfg.1"),
        tool_ended("parent.cfg.1", "child.cfg.1"),
        end("parent.cfg.2"),
        end("child.cfg.1"),
    ];
    let (recording, heard) = run(&logs, events).await;
    assert_eq!(heard, ["4: ToolExecutionEnd after the end of its loop \"parent.cfg.1\""]);
    let parent = logs.fold("parent").unwrap();
    let statuses: Vec<LoopStatus> = parent.loops.iter().map(|record| record.status).collect();
    assert_eq!(statuses, [LoopStatus::Aborted, LoopStatus::Completed]);
    assert_linked(&logs, "child", "parent", "to child.cfg.1");
    let held: Vec<RecordedSession> = recording.sessions;
    assert_eq!(held[0], logs.fold("child").unwrap());
    assert_eq!(held[1], parent);
}

#[tokio::test]
async fn a_link_that_cannot_be_written_fails_no_recording() {
    let mut logs = Logs::default();
    let parent = vec![start("parent", "parent.cfg.1", None), end("parent.cfg.1")];
    let held = Arc::new(logs);
    run(&held, parent).await;
    logs = Arc::try_unwrap(held).ok().unwrap();
    logs.broken = HashSet::from(["parent".to_owned()]);
    let logs = Arc::new(logs);
    let events = vec![start("child", "child.cfg.1", Some("parent.cfg.1")), end("child.cfg.1")];
    let (recording, heard) = run(&logs, events).await;
    assert!(recording.failures.is_empty());
    assert_eq!(recording.sessions.len(), 1, "nothing of the parent changed");
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].ends_with("the link is not written in session \"parent\": the disk is full"));
    let (spawn, refs) = links(&logs, "child", "parent");
    assert_eq!(spawn.unwrap().parent_session_id, "parent");
    assert_eq!(refs, json!([[]]));
}
