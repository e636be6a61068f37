//! Interrupted turns, turns of renamed loops, and settings that are derived from messages.

use bough_recorder::{
    AgentEvent, LoopRecord, Notice, RecordedMessage, RecordedSession, SessionRecorder,
    SessionRecorderConfig,
};
use bough_session::{AgentMessage, StopReason};
use serde_json::{Value, json};

const AT: &str = "2026-01-01T00:00:00Z";

fn event(value: &Value) -> AgentEvent {
    AgentEvent::from_json(&value.to_string()).unwrap()
}

fn start(session: &str, id: &str, at: &str) -> Value {
    json!({"type": "AgentStart", "agent_id": "a", "session_id": session, "loop_id": id,
        "parent_loop_id": null, "timestamp": at, "metadata": null})
}

fn turn_start(id: &str) -> Value {
    json!({"type": "TurnStart", "loop_id": id, "turn_index": 0, "timestamp": AT,
        "triggered_by": "User"})
}

fn heard(id: &str, message: &Value) -> Value {
    json!({"type": "MessageEnd", "loop_id": id, "message": message})
}

fn end(id: &str, messages: &[Value]) -> Value {
    json!({"type": "AgentEnd", "loop_id": id, "messages": messages, "timestamp": AT,
        "usage": {"input": 1, "output": 2}, "rejection": null})
}

fn asked() -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": "?"}], "timestamp": 1})
}

fn called(id: &str) -> Value {
    json!({"role": "assistant", "model": "m", "provider": "p", "stopReason": "toolUse",
        "content": [{"type": "toolCall", "id": "c", "name": "t", "arguments": {}}],
        "usage": {"input": 3, "output": 4}, "timestamp": 2,
        "turnId": {"loopId": id, "turnIndex": 0}})
}

fn answered(id: &str) -> Value {
    json!({"role": "toolResult", "toolCallId": "c", "toolName": "t", "isError": false,
        "content": [], "timestamp": 3, "turnId": {"loopId": id, "turnIndex": 0}})
}

fn record(recorder: &mut SessionRecorder, events: &[Value]) -> Vec<Notice> {
    let heard = events.iter().flat_map(|value| recorder.on_event(event(value)).notices);
    heard.collect()
}

fn recorded(events: &[Value]) -> (RecordedSession, Vec<Notice>) {
    let mut recorder = SessionRecorder::new(SessionRecorderConfig::default());
    let notices = record(&mut recorder, events);
    recorder.flush();
    (recorder.drain_completed().remove(0), notices)
}

fn only_loop(session: &RecordedSession) -> &LoopRecord {
    assert_eq!(session.loops.len(), 1);
    session.loops.last().unwrap()
}

#[test]
fn a_turn_that_is_open_when_its_loop_ends_is_kept() {
    let id = "s.c.1";
    let (session, notices) = recorded(&[
        start("s", id, AT),
        turn_start(id),
        heard(id, &asked()),
        heard(id, &called(id)),
        heard(id, &answered(id)),
        end(id, &[asked(), called(id), answered(id)]),
    ]);
    assert_eq!(notices, [Notice::TurnCutShort { loop_id: id.to_owned(), turn_index: 0 }]);
    let [turn] = &only_loop(&session).turns[..] else { panic!("one turn") };
    let roles: Vec<&str> = turn.all_messages().map(RecordedMessage::role).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult"]);
    assert_eq!((turn.usage.input, turn.ended_at), (Some(3), AT.parse().unwrap()));
}

#[test]
fn a_turn_in_which_the_model_said_nothing_is_kept_as_aborted() {
    let id = "s.c.1";
    let events = [start("s", id, AT), turn_start(id), heard(id, &asked()), end(id, &[asked()])];
    let (session, notices) = recorded(&events);
    assert_eq!(notices.len(), 1);
    let [turn] = &only_loop(&session).turns[..] else { panic!("one turn") };
    assert_eq!(turn.input_messages.len(), 1);
    let Some(AgentMessage::Assistant(reply)) = turn.output_message.message() else {
        panic!("the model's");
    };
    assert_eq!((reply.content.len(), reply.stop_reason), (0, StopReason::Aborted));
    assert_eq!(reply.native_stop_reason.as_deref(), Some("aborted"));
}

#[test]
fn the_messages_of_a_renamed_loop_name_it_by_its_new_id() {
    let id = "s.c.1";
    let turn_end = json!({"type": "TurnEnd", "loop_id": id, "message": called(id), "timestamp": AT,
        "usage": {"input": 1, "output": 1}, "tool_results": []});
    let of_other = json!({"role": "user", "content": [], "timestamp": 1,
        "turnId": {"loopId": "other", "turnIndex": 7}});
    let mut events = Vec::new();
    for at in [AT, "2026-01-01T00:00:01Z"] {
        let messages = [asked(), called(id), of_other.clone()];
        events.extend([start("s", id, at), turn_start(id), turn_end.clone(), end(id, &messages)]);
    }
    let (session, _) = recorded(&events);
    let turn_loops = |record: &LoopRecord| -> Vec<Option<String>> {
        let turns = record.turns.iter().flat_map(|turn| turn.all_messages());
        let named = record.messages.iter().chain(turns).map(RecordedMessage::turn_id);
        named.map(|turn_id| turn_id.map(|turn_id| turn_id.loop_id.clone())).collect()
    };
    for loop_id in [id, "s.c.1-2"] {
        let record = session.get_loop(loop_id).unwrap();
        let named = Some(loop_id.to_owned());
        let other = Some("other".to_owned());
        assert_eq!(turn_loops(record), [None, named.clone(), other, named]);
        let event = &record.events[1].event;
        assert_eq!(event.loop_id(), Some(id), "events stay as they came");
    }
}

#[test]
fn the_configuration_is_what_stands_between_the_session_and_the_number() {
    for (session, id, expected) in [
        ("s", "s.claude-3.5.think.1", Some("claude-3.5.think")),
        ("my.session", "my.session.gpt-4.1.2", Some("gpt-4.1")),
        ("my.session", "other.gpt.2", Some("gpt")),
        ("my.session", "opaque", None),
        ("s", "s.1", None),
    ] {
        let events = [start(session, id, AT), end(id, &[called(id)])];
        let (session, _) = recorded(&events);
        let config = only_loop(&session).config.as_ref().unwrap();
        assert_eq!(config.config_id.as_deref(), expected, "{id}");
    }
}
