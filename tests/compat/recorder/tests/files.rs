//! Session files go both ways: what we write phi-core reads, and what it writes we read.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test stops where something is not as it should be"
)]

use std::path::Path;

use bough_recorder as ours;
use phi_core::session as phi;
use phi_core_latest::session as latest;

const CASES: [&str; 18] = [
    include_str!("../../../../crates/recorder/tests/cases/01_simple_loop.json"),
    include_str!("../../../../crates/recorder/tests/cases/02_continuation_chain.json"),
    include_str!("../../../../crates/recorder/tests/cases/04_branch_tree.json"),
    include_str!("../../../../crates/recorder/tests/cases/06_parallel_select_second.json"),
    include_str!("../../../../crates/recorder/tests/cases/08_parallel_pending_never_started.json"),
    include_str!("../../../../crates/recorder/tests/cases/12_sub_agent_spawn.json"),
    include_str!(
        "../../../../crates/recorder/tests/cases/14_sub_agent_tool_end_before_child_start.json"
    ),
    include_str!("../../../../crates/recorder/tests/cases/18_input_rejected.json"),
    include_str!("../../../../crates/recorder/tests/cases/19_flush_aborts_open_loop.json"),
    include_str!("../../../../crates/recorder/tests/cases/22_child_ends_before_parent.json"),
    include_str!("../../../../crates/recorder/tests/cases/23_streaming_off.json"),
    include_str!("../../../../crates/recorder/tests/cases/26_standalone_compaction_pass.json"),
    include_str!("../../../../crates/recorder/tests/cases/29_before_task_reject.json"),
    include_str!("../../../../crates/recorder/tests/cases/31_reopen_after_checkpoint.json"),
    include_str!("../../../../crates/recorder/tests/cases/36_opaque_loop_ids.json"),
    include_str!("../../../../crates/recorder/tests/cases/38_config_snapshot.json"),
    include_str!("../../../../crates/recorder/tests/cases/39_message_shapes.json"),
    include_str!("../../../../crates/recorder/tests/cases/41_turn_edges.json"),
];

const FULL: &str = include_str!("../../../../crates/recorder/tests/cases/full-session-file.json");
const LATEST_FILE: &str =
    include_str!("../../../../crates/recorder/tests/cases/session-file-0.15.2.json");
const REAL_RUN: &str =
    include_str!("../../../../crates/recorder/tests/cases/events_real_run.jsonl");

fn events_of(case: &str) -> Vec<serde_json::Value> {
    let case: serde_json::Value = serde_json::from_str(case).unwrap();
    let steps = case["steps"].as_array().unwrap().iter();
    steps.filter_map(|step| step.get("event").cloned()).collect()
}

fn record(events: &[serde_json::Value]) -> Vec<ours::RecordedSession> {
    let mut recorder = ours::SessionRecorder::new(ours::SessionRecorderConfig {
        include_streaming_events: true,
        ..ours::SessionRecorderConfig::default()
    });
    for event in events {
        recorder.on_event(serde_json::from_value(event.clone()).unwrap());
    }
    recorder.flush();
    recorder.drain_completed()
}

/// phi-core reads the file, and what it says of it is what we say.
fn check_read_by_phi_core(session: &ours::RecordedSession, dir: &Path) {
    ours::save_session(session, dir).unwrap();
    let read = phi::load_session(&session.session_id, dir).unwrap();
    assert_eq!(read.loops.len(), session.loops.len());
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!(written, serde_json::to_value(session).unwrap(), "{}", session.session_id);
    assert_eq!(Some(read.total_usage().input), session.total_usage().input);
}

#[test]
fn phi_core_reads_our_files() {
    let folder = tempfile::tempdir().unwrap();
    for (at, case) in CASES.iter().enumerate() {
        let dir = folder.path().join(at.to_string());
        for session in record(&events_of(case)) {
            check_read_by_phi_core(&session, &dir);
        }
    }
    let real: Vec<_> = REAL_RUN.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for session in record(&real) {
        check_read_by_phi_core(&session, &folder.path().join("real"));
    }
    let full: ours::RecordedSession = serde_json::from_str(FULL).unwrap();
    check_read_by_phi_core(&full, &folder.path().join("full"));
}

#[test]
fn what_we_add_to_a_file_does_not_disturb_phi_core() {
    let folder = tempfile::tempdir().unwrap();
    let mut session = record(&events_of(CASES[0])).remove(0);
    session.task_name = Some("a task".to_owned());
    session.stated_task_status = Some(ours::TaskStatus::Completed);
    ours::save_session(&session, folder.path()).unwrap();
    let read = phi::load_session(&session.session_id, folder.path()).unwrap();
    assert_eq!(read.session_id, session.session_id);
}

#[test]
fn we_read_the_files_of_phi_core() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    for case in CASES {
        let mut recorder = phi::SessionRecorder::new(phi::SessionRecorderConfig {
            include_streaming_events: true,
            ..phi::SessionRecorderConfig::default()
        });
        for event in events_of(case) {
            recorder.on_event(serde_json::from_value(event).unwrap());
        }
        recorder.flush();
        for session in recorder.drain_completed() {
            phi::save_session(&session, dir).unwrap();
            let read = ours::load_session(&session.session_id, dir).unwrap();
            let mut loops: Vec<_> = session.loops.iter().collect();
            loops.sort_by_key(|record| record.started_at);
            let ids: Vec<_> = read.loops.iter().map(|record| record.loop_id.as_str()).collect();
            assert_eq!(ids, loops.iter().map(|record| &record.loop_id).collect::<Vec<_>>());
            for (ours, theirs) in read.loops.iter().zip(loops) {
                let (ours, theirs) = (serde_json::to_value(ours), serde_json::to_value(theirs));
                assert_eq!(ours.unwrap(), theirs.unwrap());
            }
            ours::delete_session(&session.session_id, dir).unwrap();
        }
    }
}

#[test]
fn our_bytes_are_the_bytes_of_phi_core() {
    let folder = tempfile::tempdir().unwrap();
    let session: phi::Session = serde_json::from_str(FULL).unwrap();
    let theirs = serde_json::to_string_pretty(&session).unwrap();
    let session: ours::RecordedSession = serde_json::from_str(FULL).unwrap();
    let path = ours::save_session(&session, folder.path()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test looks at the file from outside")]
    let ours = std::fs::read_to_string(path).unwrap();
    assert_eq!(ours, theirs);
}

/// What the two later kinds of events and messages with node ids look like (since 0.8 and 0.9).
fn later_events() -> Vec<serde_json::Value> {
    let mut events: Vec<serde_json::Value> =
        REAL_RUN.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let loop_id = events[0]["loop_id"].clone();
    let at = events[0]["timestamp"].clone();
    let turn = events.iter().position(|event| event["type"] == "TurnStart").unwrap();
    events.insert(
        turn + 1,
        serde_json::json!({"type": "TurnRequest", "loop_id": loop_id, "turn_index": 0, "timestamp": at,
            "payload": {"system_prompt": "be kind", "messages": [], "provenance": [], "tools": [],
                "model_id": "mock", "thinking_level": "off", "max_tokens": null, "temperature": null,
                "response_format": {"kind": "text"}}}),
    );
    let end = events.iter().position(|event| event["type"] == "AgentEnd").unwrap();
    let messages = events[end]["messages"].as_array_mut().unwrap();
    for (node, message) in messages.iter_mut().enumerate() {
        message["nodeId"] = node.into();
        message["parentId"] = node.saturating_sub(1).into();
    }
    events.insert(
        end,
        serde_json::json!({"type": "RevertApplied", "loop_id": loop_id, "category": "tangent",
            "target": 1, "abandoned_node_ids": [2], "summary": null, "applied": true, "reason": null,
            "timestamp": at}),
    );
    events
}

/// The sessions that phi-core makes of events in its newest version.
fn recorded_by_the_latest(events: &[serde_json::Value]) -> Vec<latest::Session> {
    let mut recorder = latest::SessionRecorder::new(latest::SessionRecorderConfig {
        capture_turn_requests: true,
        ..latest::SessionRecorderConfig::default()
    });
    for event in events {
        recorder.on_event(serde_json::from_value(event.clone()).unwrap());
    }
    recorder.flush();
    recorder.drain_completed()
}

#[test]
fn files_of_the_newest_version_go_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let mut streams: Vec<_> = CASES.iter().map(|case| events_of(case)).collect();
    streams.push(later_events());
    for events in streams {
        for theirs in recorded_by_the_latest(&events) {
            latest::save_session(&theirs, dir).unwrap();
            let read = ours::load_session(&theirs.session_id, dir).unwrap();
            let (read, theirs_json) = (serde_json::to_value(&read), serde_json::to_value(&theirs));
            assert_eq!(whole(read.unwrap()), whole(theirs_json.unwrap()));
            ours::delete_session(&theirs.session_id, dir).unwrap();
        }
        for session in record(&events) {
            ours::save_session(&session, dir).unwrap();
            let read = latest::load_session(&session.session_id, dir).unwrap();
            let (read, ours_json) = (serde_json::to_value(&read), serde_json::to_value(&session));
            assert_eq!(whole(read.unwrap()), whole(ours_json.unwrap()));
            ours::delete_session(&session.session_id, dir).unwrap();
        }
    }
}

/// A whole session as JSON: its loops by start, and without events, which files since 0.14 leave out.
fn whole(mut session: serde_json::Value) -> serde_json::Value {
    let loops = session["loops"].as_array_mut().unwrap();
    for record in loops.iter_mut() {
        record.as_object_mut().unwrap().remove("events");
    }
    let started = |record: &serde_json::Value| -> ours::Timestamp {
        record["started_at"].as_str().unwrap().parse().unwrap()
    };
    loops.sort_by_key(started);
    session
}

/// Of streams that no difference on purpose is about, both make the same sessions.
#[test]
fn the_newest_version_records_the_same_sessions() {
    let by_id = |mut sessions: Vec<serde_json::Value>| {
        sessions.sort_by_key(|session| session["session_id"].to_string());
        sessions
    };
    let mut compared = 0;
    for case in CASES {
        let class: serde_json::Value = serde_json::from_str(case).unwrap();
        if class["class"] != "conforming" {
            continue;
        }
        let events = events_of(case);
        let theirs = recorded_by_the_latest(&events);
        let theirs = theirs.iter().map(|one| whole(serde_json::to_value(one).unwrap())).collect();
        let ours = record(&events);
        let ours = ours.iter().map(|one| whole(serde_json::to_value(one).unwrap())).collect();
        assert_eq!(by_id(ours), by_id(theirs));
        compared += 1;
    }
    assert_eq!(compared, 10);
}

/// The file that `bough-recorder` keeps of the newest version is what that version writes.
#[test]
fn the_kept_file_of_the_newest_version_is_genuine() {
    let session = recorded_by_the_latest(&later_events()).remove(0);
    let written = serde_json::to_string_pretty(&session).unwrap();
    assert_eq!(written, LATEST_FILE.trim_end());
}
