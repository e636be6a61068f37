//! Sums over all sessions.

use serde_json::{Value, json};

use crate::common::{TestService, user};

on_every_store!(
    usage_is_summed_by_day_and_model,
    a_streamed_reply_counts_when_it_is_finished,
    copies_are_not_counted_again,
    what_cannot_be_asked_is_refused,
);

fn spoke(model: &str, output: u64) -> Value {
    json!({
        "role": "assistant", "content": [{"type": "text", "text": "x"}], "stop_reason": "end",
        "model": model, "provider": "p", "timestamp": 2, "usage": {"output": output, "cost_usd": 0.5},
    })
}

async fn rows(bed: &TestService, request: Value) -> Vec<Value> {
    bed.ok("session::stats", request).await["rows"].as_array().unwrap().clone()
}

async fn usage_is_summed_by_day_and_model(bed: TestService) {
    let id = bed.create(json!({"metadata": {"cwd": "/x"}})).await;
    bed.append(&id, json!({"message": user("go")})).await;
    bed.tick(3_000);
    bed.append(&id, json!({"message": spoke("m-1", 5)})).await;
    bed.append(&id, json!({"message": spoke("m-2", 7)})).await;
    let found = rows(&bed, json!({"by": ["day", "model"]})).await;
    assert_eq!(found.len(), 2, "{found:?}");
    let first = found.iter().find(|row| row["model"] == "m-1").unwrap();
    assert_eq!(first["usage"]["output"], 5);
    assert_eq!(first["model_time_ms"], 3_000);
    assert_eq!(first["day"].as_str().unwrap().len(), "2026-11-16".len());
    let all = rows(&bed, json!({})).await;
    assert_eq!(all[0]["usage"]["output"], 12);
    assert_eq!(all[0]["usage"]["cost_usd"], 1.0);
    assert_eq!(rows(&bed, json!({"metadata": {"cwd": "/y"}})).await, Vec::<Value>::new());
}

async fn a_streamed_reply_counts_when_it_is_finished(bed: TestService) {
    let id = bed.create(json!({})).await;
    let begun =
        json!({"session_id": id, "stream": true, "message": {"role": "assistant", "content": []}});
    let entry = bed.ok("session::append-entry", begun).await["entry_id"].clone();
    assert_eq!(rows(&bed, json!({"by": ["model"]})).await, Vec::<Value>::new());
    bed.tick(2_000);
    bed.ok(
        "session::finish-message",
        json!({"session_id": id, "entry_id": entry, "model": "m-9", "provider": "p",
            "stop_reason": "end", "usage": {"output": 4}}),
    )
    .await;
    let found = rows(&bed, json!({"by": ["model"]})).await;
    assert_eq!((&found[0]["model"], &found[0]["usage"]["output"]), (&json!("m-9"), &json!(4)));
    assert_eq!(found[0]["model_time_ms"], 2_000);
}

async fn copies_are_not_counted_again(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.append(&id, json!({"message": spoke("m-1", 5)})).await["entry_id"].clone();
    bed.tick(1);
    bed.ok("session::fork", json!({"session_id": id, "entry_id": entry})).await;
    assert_eq!(rows(&bed, json!({})).await[0]["usage"]["output"], 5);
}

async fn what_cannot_be_asked_is_refused(bed: TestService) {
    for request in [json!({"by": ["model", "tool"]}), json!({"from": "soon"})] {
        let (code, _) = bed.err("session::stats", request).await;
        assert_eq!(code, "session/invalid_request");
    }
}
