//! Compaction by requests: planned, written, undone, of conversations and of recorded sessions.

use std::sync::Arc;

use bough_recorder::{AgentEnd, AgentEvent, AgentStart, RecordedMessage, Timestamp};
use bough_service::compaction::{CompactionSettings, ContextStream};
use bough_service::limits::{CONTEXT_BYTES_MAX, CONTEXT_MESSAGE_OVERHEAD, SCAN_ENTRIES};
use bough_service::{Right, Scope, Settings};
use bough_session::SessionId;
use bough_session::limits::MESSAGE_BYTES_MAX;
use serde_json::{Value, json};

use crate::common::{TestService, object, stores};

on_every_store!(
    a_conversation_is_planned_compacted_and_restored,
    a_context_is_not_said_to_be_smaller_than_its_estimate,
    a_plan_says_what_the_context_says_whatever_answers_reported,
    a_plan_begins_where_the_context_does_behind_a_hidden_entry,
    a_recorded_session_has_the_size_that_its_compaction_printed,
    a_report_from_before_a_block_does_not_count_after_it,
    a_context_is_streamed_as_it_is_answered,
    a_compaction_that_others_wrote_after_is_undone_by_an_entry,
    the_turns_of_a_recorded_session_are_planned_compacted_and_restored,
    a_stale_leaf_is_a_conflict_and_changes_nothing,
    nothing_to_compact_is_said_and_changes_nothing,
    only_what_is_due_is_compacted_when_that_is_asked_for,
    a_request_brings_a_summary_or_asks_for_the_digest,
    a_session_that_is_being_recorded_is_not_compacted,
    a_session_of_another_tenant_is_not_there,
);

const LOOP: &str = "s.m.1";

/// A session of ten messages with about ten tokens each.
async fn conversation(bed: &TestService) -> String {
    let id = bed.create(json!({})).await;
    for number in 0..10 {
        bed.say(&id, &format!("message {number} {}", "word ".repeat(6))).await;
    }
    id
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_700_000_000_000 + second * 1000)
}

fn json_of(event: impl Into<AgentEvent>) -> Value {
    serde_json::to_value(event.into()).unwrap()
}

/// A recorded session `s` of one loop with twenty turns.
async fn recorded(bed: &TestService) {
    let turns = (0..20).flat_map(|number| {
        let answer = format!("Answer {number}: {}", "word ".repeat(60));
        [
            RecordedMessage::user(format!("Question {number}"), 1),
            RecordedMessage::assistant("p", "m", answer, 2),
        ]
    });
    let events = vec![
        json_of(AgentStart::new("agent", "s", LOOP, at(1))),
        json_of(AgentEnd::new(LOOP, turns.collect::<Vec<_>>(), at(2))),
    ];
    bed.ok("session::record", json!({"events": events, "finish": true})).await;
}

async fn plan(bed: &TestService, request: Value) -> Value {
    bed.ok("session::plan-compaction", request).await
}

async fn context(bed: &TestService, session: &str) -> Value {
    bed.ok("session::context", json!({"session_id": session})).await
}

fn number(answer: &Value, field: &str) -> u64 {
    answer[field].as_u64().unwrap_or_else(|| panic!("{field} of {answer}"))
}

async fn a_conversation_is_planned_compacted_and_restored(mut bed: TestService) {
    let id = conversation(&bed).await;
    let whole = context(&bed, &id).await;
    let planned = plan(&bed, json!({"session_id": id, "keep_recent_tokens": 25})).await;
    assert_eq!((&planned["written"], &planned["entry_id"]), (&json!(false), &Value::Null));
    assert_eq!(number(&planned, "summarised_entries") + number(&planned, "kept_entries"), 10);
    assert_eq!(planned["tokens_before"], whole["tokens"]);
    assert_eq!(context(&bed, &id).await, whole, "a plan changes nothing");
    let request = json!({
        "session_id": id, "keep_recent_tokens": 25, "digest": true,
        "expected_leaf": planned["active_leaf"],
    });
    let done = bed.ok("session::compact", request).await;
    assert_eq!(done["written"], json!(true));
    for field in ["summary", "tokens_before", "tokens_after", "first_kept_entry_id"] {
        assert_eq!(done[field], planned[field], "{field}");
    }
    assert_eq!(done["active_leaf"], done["entry_id"]);
    if bed.service.store().capabilities().survives_restart {
        bed.reopen().await;
    }
    let compacted = context(&bed, &id).await;
    assert_eq!(compacted["messages"][0]["entry_id"], done["entry_id"]);
    assert_eq!(compacted["messages"][1]["entry_id"], done["first_kept_entry_id"]);
    assert_eq!(compacted["tokens"], done["tokens_after"]);
    let undone = bed.ok("session::undo-compaction", json!({"session_id": id})).await;
    assert_eq!((&undone["undone"], undone.get("entry_id")), (&done["entry_id"], None));
    assert_eq!(context(&bed, &id).await["messages"], whole["messages"]);
    let again = bed.ok("session::undo-compaction", json!({"session_id": id})).await;
    assert_eq!(
        again,
        json!({"session_id": id, "loops": [], "nothing_to_do": "no compaction is in force"})
    );
}

/// The last answer reports fewer tokens than the estimate of what is left out.
async fn a_context_is_not_said_to_be_smaller_than_its_estimate(bed: TestService) {
    let id = conversation(&bed).await;
    let answer = json!({
        "role": "assistant", "content": [{"type": "text", "text": "Done."}], "provider": "p", "model": "m",
        "stop_reason": "end", "timestamp": 1, "usage": {"input": 9, "output": 1},
    });
    bed.ok("session::append", json!({"session_id": id, "message": answer})).await;
    let request = json!({"session_id": id, "keep_recent_tokens": 25, "digest": true});
    let done = bed.ok("session::compact", request).await;
    assert_eq!(number(&done, "tokens_before"), 10);
    assert_eq!(context(&bed, &id).await["tokens"], done["tokens_after"]);
}

/// The answer counts what the model was sent beside the messages, such as its tools.
fn answer_of(input: u64) -> Value {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": "Done."}], "provider": "p", "model": "m",
        "stop_reason": "end", "timestamp": 1, "usage": {"input": input, "output": 1},
    })
}

async fn a_plan_says_what_the_context_says_whatever_answers_reported(bed: TestService) {
    let id = conversation(&bed).await;
    bed.ok("session::append", json!({"session_id": id, "message": answer_of(900)})).await;
    let request = json!({"session_id": id, "keep_recent_tokens": 25, "digest": true});
    let planned = plan(&bed, json!({"session_id": id, "keep_recent_tokens": 25})).await;
    assert_eq!(planned["tokens_before"], 901);
    assert_eq!(context(&bed, &id).await["tokens"], 901);
    let done = bed.ok("session::compact", request).await;
    assert_eq!(done["tokens_after"], planned["tokens_after"]);
    assert_eq!(context(&bed, &id).await["tokens"], done["tokens_after"]);
}

async fn a_plan_begins_where_the_context_does_behind_a_hidden_entry(bed: TestService) {
    let id = conversation(&bed).await;
    let request = json!({"session_id": id, "keep_recent_tokens": 25, "digest": true});
    let done = bed.ok("session::compact", request.clone()).await;
    let hidden = json!({"session_id": id, "entry_ids": [done["first_kept_entry_id"]]});
    bed.ok("session::hide-entries", hidden).await;
    bed.say(&id, "and on").await;
    let planned = plan(&bed, json!({"session_id": id, "keep_recent_tokens": 1})).await;
    assert_eq!(planned["tokens_before"], context(&bed, &id).await["tokens"]);
    let done = bed.ok("session::compact", request).await;
    assert_eq!(context(&bed, &id).await["tokens"], done["tokens_after"]);
}

async fn a_recorded_session_has_the_size_that_its_compaction_printed(bed: TestService) {
    recorded(&bed).await;
    for summary in [json!({"digest": true}), json!({"summary": "They talked.\nFor long."})] {
        let mut request = json!({"session_id": "s", "keep_recent_tokens": 300});
        let planned = plan(&bed, request.clone()).await;
        assert_eq!(planned["tokens_before"], context(&bed, "s").await["tokens"]);
        request.as_object_mut().unwrap().extend(object(summary));
        let done = bed.ok("session::compact", request).await;
        assert_eq!(context(&bed, "s").await["tokens"], done["tokens_after"]);
        bed.ok("session::undo-compaction", json!({"session_id": "s"})).await;
    }
}

/// The answer of the last loop reported the context of before.
async fn a_report_from_before_a_block_does_not_count_after_it(bed: TestService) {
    recorded(&bed).await;
    let usage = json!({"input": 5_000, "output": 1, "cache_read": 0, "cache_write": 0,
        "reasoning": 0, "total_tokens": 5_001});
    let answer = json!({"role": "assistant", "model": "m", "provider": "p", "timestamp": 3,
        "stopReason": "stop", "usage": usage, "content": [{"type": "text", "text": "Done."}]});
    let question =
        json!({"role": "user", "timestamp": 3, "content": [{"type": "text", "text": "More?"}]});
    let start = json!({"type": "AgentStart", "agent_id": "agent", "session_id": "s",
        "loop_id": "s.m.2", "parent_loop_id": LOOP, "continuation_kind": "Default",
        "timestamp": "2023-11-14T22:13:23Z", "metadata": null, "config_snapshot": null});
    let end = json!({"type": "AgentEnd", "loop_id": "s.m.2", "messages": [question, answer],
        "timestamp": "2023-11-14T22:13:24Z", "usage": usage, "rejection": null});
    bed.ok("session::record", json!({"events": [start, end], "finish": true})).await;
    assert_eq!(context(&bed, "s").await["tokens"], 5_001);
    bed.tick(3_600_000);
    let request = json!({"session_id": "s", "keep_recent_tokens": 300, "digest": true});
    let done = bed.ok("session::compact", request).await;
    assert_eq!(done["written"], json!(true));
    assert_eq!(context(&bed, "s").await["tokens"], done["tokens_after"]);
    bed.say("s", "and on").await;
    let later = context(&bed, "s").await;
    assert_eq!(later["tokens"], later["estimated_tokens"], "there is no newer report");
}

async fn a_context_is_streamed_as_it_is_answered(bed: TestService) {
    let id = conversation(&bed).await;
    same_in_parts(&bed, &id).await;
    bed.ok("session::append", json!({"session_id": id, "message": answer_of(900)})).await;
    for number in 0..SCAN_ENTRIES {
        bed.say(&id, &format!("and {number}")).await;
    }
    same_in_parts(&bed, &id).await;
    let request = json!({"session_id": id, "keep_recent_tokens": 25, "digest": true});
    let done = bed.ok("session::compact", request).await;
    same_in_parts(&bed, &id).await;
    let hidden = json!({"session_id": id, "entry_ids": [done["first_kept_entry_id"]]});
    bed.ok("session::hide-entries", hidden).await;
    bed.say(&id, "and on").await;
    same_in_parts(&bed, &id).await;
    same_in_parts(&bed, &bed.create(json!({})).await).await;
}

/// A context that is read in parts has the messages and the sizes of the one that is answered at once.
async fn same_in_parts(bed: &TestService, id: &str) {
    let whole = context(bed, id).await;
    let session = SessionId::from_stored(id);
    let stream = ContextStream::open(bed.service.store(), &session, None).await.unwrap();
    let mut stream = stream.expect("a session without loops");
    let mut messages = Vec::new();
    while let Some(items) = stream.next().await.unwrap() {
        assert!(items.len() <= SCAN_ENTRIES);
        messages.extend(items);
    }
    assert_eq!(serde_json::to_value(messages).unwrap(), whole["messages"]);
    assert_eq!(json!(stream.tokens()), whole["tokens"]);
    assert_eq!(json!(stream.estimated_tokens()), whole["estimated_tokens"]);
}

#[tokio::test]
async fn a_context_beyond_its_bound_is_refused_with_the_ways_out() {
    let bed = TestService::on(&stores::memory()).await;
    let id = bed.create(json!({})).await;
    let message_bytes = MESSAGE_BYTES_MAX / 2;
    for _ in 0..CONTEXT_BYTES_MAX / message_bytes {
        bed.say(&id, &"x".repeat(message_bytes - 2 * CONTEXT_MESSAGE_OVERHEAD)).await;
    }
    assert!(context(&bed, &id).await["messages"].is_array());
    bed.say(&id, &"x".repeat(message_bytes)).await;
    let refused = bed.call("session::context", json!({"session_id": id})).await.unwrap_err();
    assert_eq!((refused.code(), refused.http_status()), ("session/context_too_large", 413));
    assert!(refused.hint().contains("max_tokens"), "{}", refused.hint());
    let request = json!({"session_id": id, "max_tokens": message_bytes / 2});
    let newest = bed.ok("session::context", request).await;
    assert!(!newest["messages"].as_array().unwrap().is_empty(), "a budget shows the newest part");
    streams_all(&bed, &id).await;
}

async fn streams_all(bed: &TestService, id: &str) {
    let session = SessionId::from_stored(id);
    let stream = ContextStream::open(bed.service.store(), &session, None).await.unwrap();
    let mut stream = stream.unwrap();
    let mut messages = 0;
    while let Some(items) = stream.next().await.unwrap() {
        messages += items.len();
    }
    assert_eq!(messages, CONTEXT_BYTES_MAX / (MESSAGE_BYTES_MAX / 2) + 1);
}

async fn a_compaction_that_others_wrote_after_is_undone_by_an_entry(bed: TestService) {
    let id = conversation(&bed).await;
    let request = json!({"session_id": id, "keep_recent_tokens": 25, "summary": " My words. "});
    let done = bed.ok("session::compact", request).await;
    assert_eq!(done["summary"], json!("My words."));
    bed.say(&id, "and on").await;
    let undone = bed.ok("session::undo-compaction", json!({"session_id": id})).await;
    assert_eq!(undone["undone"], done["entry_id"]);
    assert!(undone["entry_id"].is_string());
    assert_eq!(context(&bed, &id).await["messages"].as_array().unwrap().len(), 11);
}

async fn the_turns_of_a_recorded_session_are_planned_compacted_and_restored(mut bed: TestService) {
    recorded(&bed).await;
    let whole = context(&bed, "s").await;
    let request =
        json!({"session_id": "s", "keep_recent_tokens": 300, "include_conversation": true});
    let planned = plan(&bed, request).await;
    assert_eq!((&planned["written"], &planned["loops"]), (&json!(false), &json!([LOOP])));
    assert!(planned["conversation"].as_str().unwrap().contains("Question 5"));
    assert_eq!(context(&bed, "s").await, whole, "a plan changes nothing");
    let request = json!({"session_id": "s", "keep_recent_tokens": 300, "summary": "They talked."});
    let done = bed.ok("session::compact", request).await;
    assert_eq!((&done["written"], &done["loops"]), (&json!(true), &json!([LOOP])));
    assert!(number(&done, "tokens_after") < number(&done, "tokens_before"));
    if bed.service.store().capabilities().survives_restart {
        bed.reopen().await;
    }
    let compacted = context(&bed, "s").await;
    assert!(compacted.to_string().contains("They talked."), "{compacted}");
    let count = |context: &Value| context["messages"].as_array().unwrap().len();
    assert!(count(&compacted) < count(&whole));
    let undone = bed.ok("session::undo-compaction", json!({"session_id": "s"})).await;
    assert_eq!(undone, json!({"session_id": "s", "loops": [LOOP]}));
    assert_eq!(context(&bed, "s").await["messages"], whole["messages"]);
}

async fn a_stale_leaf_is_a_conflict_and_changes_nothing(bed: TestService) {
    let id = conversation(&bed).await;
    recorded(&bed).await;
    for session in [id.as_str(), "s"] {
        let stale = plan(&bed, json!({"session_id": session})).await["active_leaf"].clone();
        bed.say(session, "meanwhile").await;
        let before = context(&bed, session).await;
        let request = json!({
            "session_id": session, "keep_recent_tokens": 25, "digest": true, "expected_leaf": stale,
        });
        let refused = bed.call("session::compact", request).await.unwrap_err();
        assert_eq!((refused.code(), refused.http_status()), ("session/leaf_conflict", 409));
        let request = json!({"session_id": session, "expected_leaf": stale});
        let refused = bed.call("session::undo-compaction", request).await.unwrap_err();
        assert_eq!(refused.code(), "session/leaf_conflict");
        assert_eq!(context(&bed, session).await, before);
    }
}

async fn nothing_to_compact_is_said_and_changes_nothing(bed: TestService) {
    let check = async |session: &str, reason: &str| {
        let request = json!({"session_id": session, "digest": true});
        let done = bed.ok("session::compact", request).await;
        assert_eq!((&done["written"], &done["reason"]), (&json!(false), &json!(reason)));
        assert!(done["nothing_to_do"].is_string());
        let planned = plan(&bed, json!({"session_id": session})).await;
        assert_eq!(planned, done, "a plan answers the same");
    };
    let empty = bed.create(json!({})).await;
    check(&empty, "empty").await;
    let id = conversation(&bed).await;
    check(&id, "all_is_recent").await;
    let request = json!({"session_id": id, "keep_recent_tokens": 25, "digest": true});
    bed.ok("session::compact", request).await;
    check(&id, "just_compacted").await;
    recorded(&bed).await;
    check("s", "all_is_recent").await;
}

async fn only_what_is_due_is_compacted_when_that_is_asked_for(bed: TestService) {
    let set = |settings: CompactionSettings| {
        let compaction = Arc::new(settings);
        bed.service.set_settings(Settings { compaction, ..bed.service.settings() });
    };
    let id = bed.create(json!({})).await;
    for number in 0..10 {
        let text = format!("answer {number} {}", "word ".repeat(6));
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": text}],
            "model": "gpt-4", "provider": "p", "stop_reason": "end", "timestamp": 1});
        bed.append(&id, json!({"message": answer})).await;
    }
    let settings = |reserve_tokens| CompactionSettings {
        reserve_tokens,
        keep_recent_tokens: 25,
        ..CompactionSettings::default()
    };
    let request = json!({"session_id": id, "digest": true, "only_if_due": true});
    set(CompactionSettings { enabled: false, ..settings(8_190) });
    assert_eq!(bed.ok("session::compact", request.clone()).await["reason"], "switched_off");
    set(settings(100));
    let fits = bed.ok("session::compact", request.clone()).await;
    assert_eq!((&fits["reason"], &fits["window"]), (&json!("fits"), &json!(8_192)));
    set(settings(8_190));
    let done = bed.ok("session::compact", request).await;
    assert_eq!(done["written"], json!(true), "{done}");
    let unknown = conversation(&bed).await;
    let unknown = plan(&bed, json!({"session_id": unknown, "only_if_due": true})).await;
    assert_eq!((&unknown["reason"], unknown.get("window")), (&json!("no_window"), None));
}

async fn a_request_brings_a_summary_or_asks_for_the_digest(bed: TestService) {
    let id = conversation(&bed).await;
    for wrong in [
        json!({}),
        json!({"digest": false}),
        json!({"summary": "  "}),
        json!({"summary": "words", "digest": true}),
    ] {
        let mut request = wrong.clone();
        request["session_id"] = json!(id);
        let (code, _) = bed.err("session::compact", request).await;
        assert_eq!(code, "session/invalid_request", "{wrong}");
    }
}

async fn a_session_that_is_being_recorded_is_not_compacted(bed: TestService) {
    recorded(&bed).await;
    let open = json_of(AgentStart::new("agent", "s", "s.m.2", at(5)));
    bed.ok("session::record", json!({"recording_id": "r", "events": [open]})).await;
    let request = json!({"session_id": "s", "keep_recent_tokens": 300, "digest": true});
    let (code, _) = bed.err("session::compact", request.clone()).await;
    assert_eq!(code, "session/locked");
    bed.ok("session::record", json!({"recording_id": "r", "events": [], "finish": true})).await;
    assert_eq!(bed.ok("session::compact", request).await["written"], json!(true));
}

async fn a_session_of_another_tenant_is_not_there(bed: TestService) {
    let id = conversation(&bed).await;
    let scope = Scope::new("bob", [Right::Read, Right::Write]);
    let bob = bed.with_scope(scope.only_sessions_with(object(json!({"owner": "bob"}))));
    let of_session = json!({"session_id": id, "digest": true});
    for function in ["plan-compaction", "compact", "undo-compaction"] {
        let (code, _) = bob.err(&format!("session::{function}"), of_session.clone()).await;
        assert_eq!(code, "session/not_found", "{function}");
    }
    let reader = bed.with_scope(Scope::new("reader", [Right::Read]));
    plan(&reader, of_session.clone()).await;
    let (code, _) = reader.err("session::compact", of_session).await;
    assert_eq!(code, "session/forbidden");
}
