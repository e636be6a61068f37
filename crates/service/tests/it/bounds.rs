//! Every bound, at one below, at, and one above, on the store that is the default.

use std::sync::Arc;

use crate::common::{TestService, stores, user};
use bough_service::api::AppendManyRequest;
use bough_service::limits::{
    PUBLISH_EVENTS_MAX, QUERY_BYTES_MAX, STAGED_ENTRIES_MAX, STAGED_SESSIONS_MAX,
};
use bough_service::{Service, Settings};
use bough_session::limits::*;
use bough_session::{AgentMessage, ContentBlock, SessionId, UserMessage};
use serde_json::{Value, json};

async fn bed() -> (TestService, String) {
    let bed = TestService::on(&stores::native()).await;
    let id = bed.create(json!({})).await;
    (bed, id)
}

/// The request of size `n` is taken up to the bound, and refused above it.
async fn check(bed: &TestService, function: &str, bound: usize, request: impl Fn(usize) -> Value) {
    for (size, taken) in [(bound - 1, true), (bound, true), (bound + 1, false)] {
        match bed.call(function, request(size)).await {
            Ok(_) => assert!(taken, "{function}: {size} of {bound} was taken"),
            Err(error) => {
                assert!(!taken, "{function}: {size} of {bound}: {error}");
                assert_eq!(error.code(), "session/too_large", "{error}");
                assert_eq!(error.http_status(), 413);
                let data = error.data().unwrap();
                assert_eq!(data["limit"], json!(bound), "{error}");
                assert_eq!(data["actual"], json!(bound + 1), "{error}");
            }
        }
    }
}

fn words(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// JSON that is nested this deeply.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[tokio::test]
async fn ids() {
    let (bed, id) = bed().await;
    check(&bed, "session::ensure", SESSION_ID_BYTES_MAX, |n| json!({"session_id": words(n)})).await;
    check(
        &bed,
        "session::append",
        ENTRY_ID_BYTES_MAX,
        |n| json!({"session_id": id, "entry_id": words(n), "message": user("a")}),
    )
    .await;
}

#[tokio::test]
async fn what_a_session_says_of_itself() {
    let (bed, id) = bed().await;
    check(&bed, "session::create", TITLE_BYTES_MAX, |n| json!({"title": words(n)})).await;
    check(
        &bed,
        "session::set-meta",
        TITLE_BYTES_MAX,
        |n| json!({"session_id": id, "title": words(n)}),
    )
    .await;
    check(&bed, "session::create", DESCRIPTION_BYTES_MAX, |n| json!({"description": words(n)}))
        .await;
    let entry = bed.say(&id, "a").await;
    check(
        &bed,
        "session::fork",
        TITLE_BYTES_MAX,
        |n| json!({"session_id": id, "entry_id": entry, "title": words(n)}),
    )
    .await;
    check(
        &bed,
        "session::set-task",
        TASK_NAME_BYTES_MAX,
        |n| json!({"session_id": id, "task": words(n)}),
    )
    .await;
    for status in ["error", "idle"] {
        bed.ok("session::set-status", json!({"session_id": id, "status": status})).await;
    }
    let mut statuses = ["error", "idle"].iter().cycle();
    for size in [REASON_BYTES_MAX - 1, REASON_BYTES_MAX] {
        for _ in 0..2 {
            let status = statuses.next().unwrap();
            let request = json!({"session_id": id, "status": status, "reason": words(size)});
            bed.ok("session::set-status", request).await;
        }
    }
    let request =
        json!({"session_id": id, "status": "error", "reason": words(REASON_BYTES_MAX + 1)});
    assert_eq!(bed.err("session::set-status", request).await.0, "session/too_large");
}

#[tokio::test]
async fn metadata() {
    let (bed, _) = bed().await;
    // `{"k":"..."}` is eight bytes around the words.
    check(
        &bed,
        "session::create",
        METADATA_BYTES_MAX,
        |n| json!({"metadata": {"k": words(n - 8)}}),
    )
    .await;
    check(&bed, "session::create", METADATA_KEYS_MAX, |n| {
        let keys = (0..n).map(|key| (key.to_string(), json!(1)));
        json!({"metadata": Value::Object(keys.collect())})
    })
    .await;
    check(&bed, "session::create", JSON_DEPTH_MAX, |n| json!({"metadata": {"k": nested(n - 1)}}))
        .await;
}

#[tokio::test]
async fn messages() {
    let (bed, id) = bed().await;
    let around = user("").to_string().len();
    check(
        &bed,
        "session::append",
        MESSAGE_BYTES_MAX,
        |n| json!({"session_id": id, "message": user(&words(n - around))}),
    )
    .await;
    // The largest are read like any other, and what follows them too.
    let last = bed.say(&id, "after").await;
    let fork = bed.ok("session::fork", json!({"session_id": id, "entry_id": last})).await;
    for session in [id.as_str(), fork["session_id"].as_str().unwrap()] {
        let read = bed.pages("session::messages", json!({"session_id": session, "limit": 2})).await;
        assert_eq!(read.len(), 3);
        let tail = json!({"session_id": session, "limit": 2});
        assert_eq!(bed.pages("session::messages-tail", tail).await.len(), 3);
    }
    check(&bed, "session::append", CONTENT_BLOCKS_MAX, |n| {
        let blocks = vec![json!({"type": "text", "text": ""}); n];
        json!({"session_id": id, "message": {"role": "user", "content": blocks, "timestamp": 1}})
    })
    .await;
    check(&bed, "session::append", JSON_DEPTH_MAX, |n| {
        let call =
            json!({"type": "function_call", "id": "c", "function_id": "f", "arguments": nested(n - 2)});
        json!({"session_id": id, "message": {"role": "user", "content": [call], "timestamp": 1}})
    })
    .await;
    check(
        &bed,
        "session::append",
        JSON_DEPTH_MAX,
        |n| json!({"session_id": id, "message": user("a"), "origin": {"o": nested(n - 1)}}),
    )
    .await;
    // `{"o":"..."}` is eight bytes around the words.
    check(
        &bed,
        "session::append",
        ORIGIN_BYTES_MAX,
        |n| json!({"session_id": id, "message": user("a"), "origin": {"o": words(n - 8)}}),
    )
    .await;
}

#[tokio::test]
async fn custom_entries_and_labels() {
    let (bed, id) = bed().await;
    check(
        &bed,
        "session::append",
        CUSTOM_TYPE_BYTES_MAX,
        |n| json!({"session_id": id, "custom": {"custom_type": words(n)}}),
    )
    .await;
    check(
        &bed,
        "session::append",
        JSON_DEPTH_MAX,
        |n| json!({"session_id": id, "custom": {"custom_type": "c", "data": nested(n)}}),
    )
    .await;
    let around = json!({"custom_type": "c", "data": ""}).to_string().len();
    check(&bed, "session::append", MESSAGE_BYTES_MAX, |n| {
        let data = words(n - around);
        json!({"session_id": id, "custom": {"custom_type": "c", "data": data}})
    })
    .await;
    let entry = bed.say(&id, "a").await;
    check(
        &bed,
        "session::set-label",
        LABEL_BYTES_MAX,
        |n| json!({"session_id": id, "entry_id": entry, "label": words(n)}),
    )
    .await;
}

#[tokio::test]
async fn batches() {
    let (bed, id) = bed().await;
    check(
        &bed,
        "session::append-many",
        BATCH_RECORDS_MAX,
        |n| json!({"session_id": id, "messages": vec![user(""); n]}),
    )
    .await;
    let (code, text) =
        bed.err("session::append-many", json!({"session_id": id, "messages": []})).await;
    assert_eq!(code, "session/empty_batch");
    assert_eq!(text, "messages must contain at least one message");
}

/// Five messages, each of which is allowed; together they are the bound, and one byte less or more.
#[tokio::test]
async fn bytes_of_a_batch() {
    let (bed, id) = bed().await;
    let around = user("").to_string().len();
    let say = |bytes: usize| {
        let content = vec![ContentBlock::text(words(bytes - around))];
        Arc::new(AgentMessage::User(UserMessage::new(content, 1)))
    };
    for (bytes, taken) in
        [(BATCH_BYTES_MAX - 1, true), (BATCH_BYTES_MAX, true), (BATCH_BYTES_MAX + 1, false)]
    {
        let (each, rest) = (bytes / 5, bytes % 5);
        let messages = [each, each, each, each, each + rest].map(say).into();
        let request = AppendManyRequest {
            session_id: SessionId::from_stored(id.as_str()),
            messages,
            parent_id: None,
            expected_leaf: None,
            origin: None,
        };
        match bed.service.append_many(&bed.scope, request).await {
            Ok(_) => assert!(taken, "{bytes} were taken"),
            Err(error) => {
                assert!(!taken, "{bytes}: {error}");
                assert_eq!(error.code(), "session/too_large");
                assert_eq!(error.data().unwrap()["actual"], json!(bytes));
            }
        }
    }
}

#[tokio::test]
async fn updates() {
    let (bed, id) = bed().await;
    let entry = bed.say(&id, "").await;
    let around = json!([{"type": "text", "text": ""}]).to_string().len();
    check(&bed, "session::update-message", MESSAGE_BYTES_MAX, |n| {
        let content = json!([{"type": "text", "text": words(n - around)}]);
        json!({"session_id": id, "entry_id": entry, "content": content})
    })
    .await;
    check(&bed, "session::update-message", JSON_DEPTH_MAX, |n| {
        let call =
            json!({"type": "function_call", "id": "c", "function_id": "f", "arguments": nested(n - 2)});
        json!({"session_id": id, "entry_id": entry, "content": [call]})
    })
    .await;
}

/// A message that grows step by step may become as large as one that comes whole, however small the steps are.
#[tokio::test]
async fn steps_of_a_stream() {
    let (bed, id) = bed().await;
    let around = user("").to_string().len();
    let step = |entry: &str, bytes: usize| json!({"session_id": id, "entry_id": entry, "block": 0, "text": words(bytes)});
    for (short_of, last_step) in [(2, 1), (2, 2), (2, 3)] {
        let entry = bed.say(&id, &words(MESSAGE_BYTES_MAX - around - 100 - short_of)).await;
        for _ in 0..100 {
            bed.ok("session::append-delta", step(&entry, 1)).await;
        }
        let asked = bed.call("session::append-delta", step(&entry, last_step)).await;
        match asked {
            Ok(_) => assert!(last_step <= short_of, "{last_step} bytes were taken"),
            Err(error) => {
                assert!(last_step > short_of, "{last_step} bytes: {error}");
                assert_eq!(error.code(), "session/too_large");
                assert_eq!(error.data().unwrap()["actual"], json!(MESSAGE_BYTES_MAX + 1));
            }
        }
    }
}

#[tokio::test]
async fn blocks_of_a_stream() {
    let (bed, id) = bed().await;
    let blocks = vec![json!({"type": "text", "text": ""}); CONTENT_BLOCKS_MAX - 2];
    let message = json!({"role": "user", "content": blocks, "timestamp": 1});
    let appended = bed.append(&id, json!({"message": message})).await;
    check(&bed, "session::append-delta", CONTENT_BLOCKS_MAX, |n| {
        json!({"session_id": id, "entry_id": appended["entry_id"], "block": n - 1, "text": "a"})
    })
    .await;
    check(&bed, "session::update-message", CONTENT_BLOCKS_MAX, |n| {
        let blocks = vec![json!({"type": "text", "text": ""}); n];
        json!({"session_id": id, "entry_id": appended["entry_id"], "content": blocks})
    })
    .await;
}

#[tokio::test]
async fn searches_and_the_store_protocol() {
    let (bed, _) = bed().await;
    check(&bed, "session::search", QUERY_BYTES_MAX, |n| json!({"query": words(n)})).await;
    let event = json!({"trigger_type": "session::deleted", "payload": {"session_id": "s"}});
    check(
        &bed,
        "session::store::publish-events",
        PUBLISH_EVENTS_MAX,
        |n| json!({"events": vec![event.clone(); n]}),
    )
    .await;
}

fn put(session: &str, entry: usize) -> Value {
    let entry =
        json!({"kind": "message", "id": entry.to_string(), "timestamp": 1, "message": user("a")});
    json!({"session_id": session, "entry": entry})
}

#[tokio::test]
async fn what_waits_for_a_session_to_exist() {
    let (bed, _) = bed().await;
    for entry in 0..STAGED_ENTRIES_MAX {
        bed.ok("session::store::put-entry", put("s", entry)).await;
    }
    // Writing one again is not one more.
    bed.ok("session::store::put-entry", put("s", 0)).await;
    let (code, _) = bed.err("session::store::put-entry", put("s", STAGED_ENTRIES_MAX)).await;
    assert_eq!(code, "session/too_large");
    for session in 1..STAGED_SESSIONS_MAX {
        bed.ok("session::store::put-entry", put(&session.to_string(), 0)).await;
    }
    let (code, _) = bed.err("session::store::put-entry", put("one too many", 0)).await;
    assert_eq!(code, "session/too_large");
    bed.ok("session::store::delete-meta", json!({"session_id": "1"})).await;
    bed.ok("session::store::put-entry", put("one too many", 0)).await;
}

#[tokio::test]
async fn pages() {
    let (bed, id) = bed().await;
    let messages: Vec<_> = (0..12).map(|number| user(&number.to_string())).collect();
    bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    let count = async |limit: Value| {
        let page = bed.ok("session::messages", json!({"session_id": id, "limit": limit})).await;
        page["messages"].as_array().unwrap().len()
    };
    let set = |service: &Service, default, max| {
        service.set_settings(Settings {
            default_list_limit: default,
            max_list_limit: max,
            ..service.settings()
        });
    };
    set(&bed.service, 4, 6);
    assert_eq!(count(Value::Null).await, 4);
    for (asked, given) in [(0, 1), (1, 1), (5, 5), (6, 6), (7, 6), (1000, 6)] {
        assert_eq!(count(json!(asked)).await, given, "{asked}");
    }
    // Settings that make no sense still give a page.
    set(&bed.service, 0, 0);
    assert_eq!(count(Value::Null).await, 1);
    assert_eq!(count(json!(9)).await, 1);
    set(&bed.service, 50, 5);
    assert_eq!(count(Value::Null).await, 5);
}

/// Everything that answers in pages has the same largest page.
#[tokio::test]
async fn pages_of_everything() {
    const LARGEST: usize = 4;
    let (bed, id) = bed().await;
    bed.service.set_settings(Settings { max_list_limit: LARGEST, ..bed.service.settings() });
    let root = bed.say(&id, "root").await;
    for number in 0..LARGEST + 2 {
        // A branch, a session and a deleted session more.
        bed.append(&id, json!({"message": user("x"), "parent_id": root})).await;
        bed.create(json!({"title": format!("word {number}")})).await;
        let gone = bed.create(json!({})).await;
        bed.ok("session::delete", json!({"session_id": gone})).await;
    }
    let long = bed.create(json!({})).await;
    let messages = vec![user("x"); LARGEST + 2];
    bed.ok("session::append-many", json!({"session_id": long, "messages": messages})).await;
    let paged = [
        ("session::messages", json!({"session_id": long}), "messages"),
        ("session::messages-tail", json!({"session_id": long}), "messages"),
        ("session::branches", json!({"session_id": id}), "branches"),
        ("session::list", json!({}), "sessions"),
        ("session::list-trash", json!({}), "sessions"),
        ("session::search", json!({"query": "word"}), "hits"),
    ];
    for (function, request, items) in paged {
        for (asked, given) in
            [(0, 1), (1, 1), (LARGEST - 1, LARGEST - 1), (LARGEST, LARGEST), (LARGEST + 1, LARGEST)]
        {
            let mut request = request.clone();
            request["limit"] = json!(asked);
            let page = bed.ok(function, request).await;
            assert_eq!(page[items].as_array().unwrap().len(), given, "{function}: {asked}");
        }
    }
}
