//! Recording by requests: nothing is lost, nothing is stored twice, and loops can be asked about.

use bough_recorder::{
    AgentEnd, AgentEvent, AgentStart, ParallelLoopEnd, ParallelLoopStart, RecordedMessage,
    Timestamp,
};
use bough_service::{Right, Scope, ServiceError};
use bough_session::Usage;
use serde_json::{Value, json};

use crate::common::{TestService, object};

on_every_store!(
    events_are_durable_sessions_when_the_call_answers,
    a_request_that_is_repeated_adds_nothing,
    a_gap_is_refused_and_says_where_the_recording_stands,
    after_a_restart_the_open_loops_are_sent_again,
    after_a_restart_events_within_an_open_loop_are_a_gap,
    a_recording_that_finishes_breaks_off_its_loops,
    a_line_that_is_no_event_is_refused_before_anything_is_recorded,
    loops_groups_chains_and_spawns_can_be_asked_for,
    a_compacted_loop_says_what_stands_for_its_messages,
    a_recording_stays_within_its_scope,
    recording_keeps_the_metadata_that_others_gave,
);

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_700_000_000_000 + second * 1000)
}

fn json_of(event: impl Into<AgentEvent>) -> Value {
    serde_json::to_value(event.into()).unwrap()
}

/// A loop of one exchange.
fn exchange(session: &str, loop_id: &str, second: i64, says: &str) -> Vec<Value> {
    let messages = vec![
        RecordedMessage::user(format!("{says}?"), 1),
        RecordedMessage::assistant("p", "m", format!("{says}."), 2),
    ];
    vec![
        json_of(AgentStart::new("agent", session, loop_id, at(second))),
        json_of(AgentEnd::new(loop_id, messages, at(second + 1))),
    ]
}

async fn record(bed: &TestService, request: Value) -> Value {
    bed.ok("session::record", request).await
}

async fn loop_ids(bed: &TestService, session: &str) -> Vec<String> {
    let page = bed.ok("session::loops", json!({"session_id": session})).await;
    let loops = page["loops"].as_array().unwrap();
    loops.iter().map(|one| one["loop_id"].as_str().unwrap().to_owned()).collect()
}

async fn events_are_durable_sessions_when_the_call_answers(mut bed: TestService) {
    let answer = record(&bed, json!({"events": exchange("s", "s.m.1", 1, "one")})).await;
    assert_eq!((&answer["position"], &answer["resume_after"]), (&json!(2), &json!(2)));
    assert_eq!(answer["sessions"], json!(["s"]));
    if bed.service.store().capabilities().survives_restart {
        bed.reopen().await;
    }
    assert_eq!(bed.texts("s").await, ["one?", "one."]);
    assert_eq!(loop_ids(&bed, "s").await, ["s.m.1"]);
}

async fn a_request_that_is_repeated_adds_nothing(bed: TestService) {
    let (first, second) = (exchange("s", "s.m.1", 1, "one"), exchange("s", "s.m.2", 3, "two"));
    let begun = json!({"recording_id": "r", "after": 0, "events": first});
    record(&bed, begun.clone()).await;
    let again = record(&bed, begun).await;
    assert_eq!((&again["position"], &again["already_recorded"]), (&json!(2), &json!(2)));
    // A request that overlaps with what is there adds only what is not.
    let overlapping = [first, second].concat();
    let answer =
        record(&bed, json!({"recording_id": "r", "after": 0, "events": overlapping})).await;
    assert_eq!(answer["position"], json!(4));
    assert_eq!(loop_ids(&bed, "s").await, ["s.m.1", "s.m.2"]);
    assert_eq!(bed.texts("s").await, ["one?", "one.", "two?", "two."]);
    let stands = bed.ok("session::recording", json!({"recording_id": "r"})).await;
    assert_eq!(stands["position"], json!(4));
}

async fn a_gap_is_refused_and_says_where_the_recording_stands(bed: TestService) {
    record(&bed, json!({"recording_id": "r", "events": exchange("s", "s.m.1", 1, "one")})).await;
    let gap = json!({"recording_id": "r", "after": 3, "events": exchange("s", "s.m.2", 3, "two")});
    let refused = bed.call("session::record", gap).await.unwrap_err();
    assert_eq!(refused.code(), "session/recording_gap");
    assert_eq!(refused.data(), Some(json!({"position": 2})));
    let stands = bed.ok("session::recording", json!({"recording_id": "r"})).await;
    assert_eq!(stands["position"], json!(2), "and the recording goes on");
}

/// The second loop was open when the server ended: its start is sent again, and it is the same loop.
async fn after_a_restart_the_open_loops_are_sent_again(mut bed: TestService) {
    if !bed.service.store().capabilities().survives_restart {
        return;
    }
    let events = [exchange("s", "s.m.1", 1, "one"), exchange("s", "s.m.2", 3, "two")].concat();
    let (sent, open) = (&events[..3], &events[2..]);
    let answer = record(&bed, json!({"recording_id": "r", "events": sent})).await;
    assert_eq!((&answer["position"], &answer["resume_after"]), (&json!(3), &json!(2)));
    bed.reopen().await;
    let unknown = bed.ok("session::recording", json!({"recording_id": "r"})).await;
    assert_eq!(unknown, Value::Null);
    let answer = record(&bed, json!({"recording_id": "r", "after": 2, "events": open})).await;
    assert_eq!((&answer["position"], &answer["already_recorded"]), (&json!(4), &json!(1)));
    let page = bed.ok("session::loops", json!({"session_id": "s"})).await;
    let statuses: Vec<&Value> =
        page["loops"].as_array().unwrap().iter().map(|one| &one["status"]).collect();
    assert_eq!(statuses, ["completed", "completed"]);
    assert_eq!(bed.texts("s").await, ["one?", "one.", "two?", "two."]);
}

/// A loop whose messages come one by one.
fn spoken(loop_id: &str, second: i64, says: &str) -> Vec<Value> {
    let message = |message| json!({"type": "MessageEnd", "loop_id": loop_id, "message": message});
    vec![
        json_of(AgentStart::new("agent", "s", loop_id, at(second))),
        json!({"type": "TurnStart", "loop_id": loop_id, "turn_index": 0, "triggered_by": "User", "timestamp": at(second)}),
        message(RecordedMessage::user(format!("{says}?"), 1)),
        message(RecordedMessage::assistant("p", "m", format!("{says}."), 2)),
        json_of(AgentEnd::without_messages(loop_id, at(second + 1))),
    ]
}

async fn after_a_restart_events_within_an_open_loop_are_a_gap(mut bed: TestService) {
    if !bed.service.store().capabilities().survives_restart {
        return;
    }
    let events = [spoken("s.m.1", 1, "one"), spoken("s.m.2", 3, "two")].concat();
    let answer =
        record(&bed, json!({"recording_id": "r", "after": 0, "events": &events[..8]})).await;
    assert_eq!((&answer["position"], &answer["resume_after"]), (&json!(8), &json!(5)));
    bed.reopen().await;
    let rest = json!({"recording_id": "r", "after": 8, "events": &events[8..], "finish": true});
    let unnumbered = json!({"recording_id": "r", "events": &events[8..]});
    for request in [rest, unnumbered] {
        let refused = bed.call("session::record", request).await.unwrap_err();
        assert_eq!(refused.code(), "session/recording_gap");
        assert_eq!(refused.data(), Some(json!({"position": 0})));
    }
    let resume = json!({"recording_id": "r", "after": 5, "events": &events[5..], "finish": true});
    let answer = record(&bed, resume).await;
    assert_eq!(answer["position"], json!(10));
    assert_eq!(bed.texts("s").await, ["one?", "one.", "two?", "two."]);
}

async fn a_recording_that_finishes_breaks_off_its_loops(bed: TestService) {
    let start = json_of(AgentStart::new("agent", "s", "s.m.1", at(1)));
    record(&bed, json!({"recording_id": "r", "events": [start], "finish": true})).await;
    let page = bed.ok("session::loops", json!({"session_id": "s"})).await;
    assert_eq!(page["loops"][0]["status"], json!("aborted"));
    let stands = bed.ok("session::recording", json!({"recording_id": "r"})).await;
    assert_eq!(stands, Value::Null);
}

async fn a_line_that_is_no_event_is_refused_before_anything_is_recorded(bed: TestService) {
    let mut events = exchange("s", "s.m.1", 1, "one");
    events.push(json!(7));
    let refused = bed.call("session::record", json!({"events": events})).await.unwrap_err();
    let ServiceError::Malformed { path, .. } = &refused else { panic!("{refused:?}") };
    assert_eq!(path, "/events/2");
    assert_eq!(bed.ok("session::get", json!({"session_id": "s"})).await, Value::Null);
}

async fn loops_groups_chains_and_spawns_can_be_asked_for(bed: TestService) {
    let ids = vec!["s.a.2".to_owned(), "s.b.2".to_owned()];
    let mut events = exchange("s", "s.m.1", 1, "one");
    events.push(json_of(ParallelLoopStart::new("s", ids.clone(), at(3))));
    for (id, says) in ids.iter().zip(["a", "b"]) {
        let start = AgentStart::new("agent", "s", id, at(4)).continuing("s.m.1");
        let said = vec![RecordedMessage::assistant("p", "m", says, 4)];
        events.extend([json_of(start), json_of(AgentEnd::new(id, said, at(5)))]);
    }
    events.push(json_of(ParallelLoopEnd {
        session_id: "s".into(),
        selected_loop_id: "s.b.2".into(),
        selected_config_index: 1,
        evaluation_usage: Usage { input: Some(5), ..Usage::default() },
        timestamp: at(6),
    }));
    let next = AgentStart::new("agent", "s", "s.m.3", at(7)).continuing("s.b.2");
    events.extend([json_of(next), json_of(AgentEnd::without_messages("s.m.3", at(8)))]);
    let child = AgentStart::new("helper", "child", "child.m.1", at(7)).spawned_by("s.m.3");
    events.extend([json_of(child), json_of(AgentEnd::without_messages("child.m.1", at(8)))]);
    record(&bed, json!({"events": events})).await;

    assert_eq!(loop_ids(&bed, "s").await, ["s.m.1", "s.a.2", "s.b.2", "s.m.3"]);
    let chain = json!({"session_id": "s", "loop_id": "s.m.3"});
    let chain = bed.ok("session::loop-chain", chain).await;
    assert_eq!(chain["loop_ids"], json!(["s.m.1", "s.b.2", "s.m.3"]));
    let groups = bed.ok("session::loop-groups", json!({"session_id": "s"})).await;
    assert_eq!(groups["groups"].as_array().unwrap().len(), 1);
    assert_eq!(groups["groups"][0]["winner"], json!("s.b.2"));
    assert_eq!(groups["groups"][0]["evaluation_usage"]["input"], json!(5));
    // The family is the same from either end.
    for member in ["s", "child"] {
        let family = bed.ok("session::spawns", json!({"session_id": member})).await;
        assert_eq!(family["spawns"][0]["parent_loop_id"], json!("s.m.3"), "{family}");
        assert_eq!(family["spawns"][0]["child_session_id"], json!("child"));
        assert_eq!(family["sessions"].as_array().unwrap().len(), 2);
    }
    let (code, _) =
        bed.err("session::loop-chain", json!({"session_id": "s", "loop_id": "none"})).await;
    assert_eq!(code, "session/loop_not_found");

    // In pages of one, and again after more was recorded.
    let mut request = object(json!({"session_id": "s", "limit": 1}));
    let mut paged = Vec::new();
    loop {
        let page = bed.ok("session::loops", Value::Object(request.clone())).await;
        paged.push(page["loops"][0]["loop_id"].as_str().unwrap().to_owned());
        let Some(cursor) = page.get("next_cursor") else { break };
        request.insert("cursor".into(), cursor.clone());
    }
    assert_eq!(paged, ["s.m.1", "s.a.2", "s.b.2", "s.m.3"]);
    record(&bed, json!({"events": exchange("s", "s.m.4", 9, "four")})).await;
    assert_eq!(loop_ids(&bed, "s").await.len(), 5);
}

async fn a_compacted_loop_says_what_stands_for_its_messages(bed: TestService) {
    let mut events = exchange("s", "s.m.1", 1, "one");
    events.extend(exchange("s", "s.m.2", 3, "two"));
    let summary =
        json!({"role": "user", "timestamp": 9, "content": [{"type": "text", "text": "so far"}]});
    events.push(
        json!({"type": "bough:compaction", "session_id": "s", "loop_id": "s.m.1", "block": {
            "keep_first": {"startTurn": 0, "endTurn": 0},
            "keep_compacted": {"range": {"startTurn": 1, "endTurn": 1}, "messages": [summary]},
            "createdAt": at(5).to_string(),
        }}),
    );
    record(&bed, json!({"events": events})).await;
    let page = bed.ok("session::loops", json!({"session_id": "s"})).await;
    let expected = json!({"created_at": at(5).unix_ms(), "hidden_messages": 1, "kept_before": 1, "summary": "so far"});
    assert_eq!(page["loops"][0]["compaction"], expected);
    assert!(page["loops"][1].get("compaction").is_none());
}

async fn a_recording_stays_within_its_scope(bed: TestService) {
    let tenant = |name: &str| {
        let scope = Scope::new(name, [Right::Read, Right::Write]);
        bed.with_scope(scope.only_sessions_with(object(json!({"owner": name}))))
    };
    let (ann, bob) = (tenant("ann"), tenant("bob"));
    record(&ann, json!({"recording_id": "r", "events": exchange("s", "s.m.1", 1, "one")})).await;
    assert_eq!(ann.meta("s").await["metadata"], json!({"owner": "ann", "agent_id": "agent"}));
    let foreign = json!({"recording_id": "r", "events": exchange("s", "s.m.2", 3, "two")});
    let (code, _) = bob.err("session::record", foreign).await;
    assert_eq!(code, "session/already_exists");
    let (code, _) = bob.err("session::loops", json!({"session_id": "s"})).await;
    assert_eq!(code, "session/not_found");
    assert_eq!(loop_ids(&ann, "s").await, ["s.m.1"]);
    let none = bob.ok("session::recording", json!({"recording_id": "r"})).await;
    assert_eq!(none, Value::Null, "a recording of the same name is another one");
}

async fn recording_keeps_the_metadata_that_others_gave(bed: TestService) {
    let made = json!({"session_id": "s", "metadata": {"project": "x"}});
    bed.ok("session::ensure", made).await;
    record(&bed, json!({"events": exchange("s", "s.m.1", 1, "one")})).await;
    assert_eq!(bed.meta("s").await["metadata"], json!({"project": "x", "agent_id": "agent"}));
}
