//! Idempotency keys: the same key means the same request, for a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bough_platform::Clock as _;
use bough_service::{Answer, CallTerms, ServiceError, Settings, function};
use bough_store::shared_state::{
    Change, Document, MemorySharedState, Persistence, SharedState, SharedStateError,
};
use serde_json::{Value, json};

use crate::common::TestService;

const KEY_LIFETIME: i64 = 60 * 60 * 1000;

on_every_store!(
    a_key_ends_after_its_time,
    keys_without_an_end,
    a_clock_that_is_behind,
    a_kept_answer_ends_after_its_time,
    a_crash_before_the_answer_is_kept,
    two_calls_at_once_are_one,
);

/// A service whose keys live for an hour.
fn hourly(bed: &TestService) {
    let idempotency_keys = Some(Duration::from_millis(KEY_LIFETIME.unsigned_abs()));
    bed.service.set_settings(Settings { idempotency_keys, ..Settings::default() });
}

async fn keyed(bed: &TestService, function: &str, request: Value) -> Value {
    // A key is of one function.
    let key = [function.bytes().fold(0, u8::wrapping_add); 32];
    let terms = CallTerms { key: Some(key), ..CallTerms::default() };
    bed.service.on_terms(terms).call(&bed.scope, function, request).await.unwrap()
}

/// Every function that a key makes repeatable, with a request and the member of the answer that names what it made.
fn requests(session: &str, entry: &str) -> Vec<(&'static str, Value, &'static str)> {
    let message = json!({"role": "user", "content": "x", "timestamp": 1});
    let entries = json!([{"entry_id": entry, "message": message}, {"message": message}]);
    let canonical =
        json!({"role": "user", "content": [{"type": "text", "text": "x"}], "timestamp": 1});
    vec![
        ("session::create", json!({"title": "t"}), "/session_id"),
        ("session::fork", json!({"session_id": session, "entry_id": entry}), "/session_id"),
        ("session::append", json!({"session_id": session, "message": canonical}), "/entry_id"),
        (
            "session::append-many",
            json!({"session_id": session, "messages": [canonical]}),
            "/last_entry_id",
        ),
        ("session::append-entry", json!({"session_id": session, "message": message}), "/entry_id"),
        (
            "session::append-entries",
            json!({"session_id": session, "entries": entries}),
            "/entries/1/entry_id",
        ),
    ]
}

async fn session_with_an_entry(bed: &TestService) -> (String, String) {
    let made = bed.call("session::create", json!({})).await.unwrap();
    let session = made["session_id"].as_str().unwrap().to_owned();
    let message = json!({"role": "user", "content": "x", "timestamp": 1});
    let request = json!({"session_id": session, "entry_id": "first", "message": message});
    bed.call("session::append-entry", request).await.unwrap();
    (session, "first".to_owned())
}

/// One rule for whatever a key made: at any moment of its life the key finds it, and after that it is a new key.
async fn a_key_ends_after_its_time(bed: TestService) {
    hourly(&bed);
    let (session, entry) = session_with_an_entry(&bed).await;
    for (function, request, name) in requests(&session, &entry) {
        let made = keyed(&bed, function, request.clone()).await;
        for wait in [1, KEY_LIFETIME / 2, KEY_LIFETIME / 2 - 2] {
            bed.tick(wait);
            let again = keyed(&bed, function, request.clone()).await;
            assert_eq!(again.pointer(name), made.pointer(name), "{function} within its time");
        }
        bed.tick(1);
        let new = keyed(&bed, function, request.clone()).await;
        assert_ne!(new.pointer(name), made.pointer(name), "{function} after its time");
        bed.tick(KEY_LIFETIME - 1);
        let again = keyed(&bed, function, request).await;
        assert_eq!(again.pointer(name), new.pointer(name), "{function}, the new key");
    }
}

async fn keys_without_an_end(bed: TestService) {
    bed.service.set_settings(Settings { idempotency_keys: None, ..Settings::default() });
    let (session, entry) = session_with_an_entry(&bed).await;
    for (function, request, name) in requests(&session, &entry) {
        let made = keyed(&bed, function, request.clone()).await;
        bed.tick(1000 * KEY_LIFETIME);
        let again = keyed(&bed, function, request).await;
        assert_eq!(again.pointer(name), made.pointer(name), "{function}");
    }
}

/// Two servers on one store, whose clocks are not quite the same: the second comes when its window has not begun yet.
async fn a_clock_that_is_behind(bed: TestService) {
    hourly(&bed);
    let now = bed.clock.now_ms();
    bed.tick(KEY_LIFETIME - now.rem_euclid(KEY_LIFETIME));
    let made = keyed(&bed, "session::create", json!({"title": "t"})).await;
    bed.tick(-1000);
    let again = keyed(&bed, "session::create", json!({"title": "t"})).await;
    assert_eq!(again["session_id"], made["session_id"]);
}

/// Documents that a process does not live to write the answer of a call into.
#[derive(Debug, Default)]
struct DyingState {
    documents: MemorySharedState,
    is_dying: AtomicBool,
}

#[async_trait]
impl SharedState for DyingState {
    async fn get(&self, key: &str) -> Result<Option<Document>, SharedStateError> {
        self.documents.get(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<(String, Document)>, SharedStateError> {
        self.documents.list(prefix, after, limit).await
    }

    async fn apply(
        &self,
        changes: Vec<Change>,
        persistence: Persistence,
    ) -> Result<Vec<u64>, SharedStateError> {
        let has_answer = |change: &Change| {
            change.value.as_ref().is_some_and(|value| value.get("answer").is_some())
        };
        if self.is_dying.load(Ordering::SeqCst) && changes.iter().any(has_answer) {
            return Err(SharedStateError::Unavailable { reason: "the process ended".to_owned() });
        }
        self.documents.apply(changes, persistence).await
    }
}

/// Calls with a key of the tenant, as HTTP does.
async fn once(
    bed: &TestService,
    key: u8,
    name: &str,
    request: &Value,
) -> Result<Answer, ServiceError> {
    let named = [name.bytes().fold(key, u8::wrapping_add); 32];
    let terms = CallTerms { key: Some(named), tenant_key: Some([key; 32]), incarnation: None };
    let service = bed.service.on_terms(terms);
    service.answer(&bed.scope, function(name).unwrap(), request.clone().into()).await
}

async fn a_kept_answer_ends_after_its_time(bed: TestService) {
    hourly(&bed);
    let noted = Arc::new(MemorySharedState::new());
    assert!(bed.service.set_used_keys(noted.clone()));
    let (session, _) = session_with_an_entry(&bed).await;
    let title = |title: &str| json!({"session_id": session, "title": title});
    assert!(!once(&bed, 1, "session::set-meta", &title("a")).await.unwrap().is_replay);
    bed.tick(KEY_LIFETIME - 1);
    assert!(once(&bed, 1, "session::set-meta", &title("a")).await.unwrap().is_replay);
    let other = once(&bed, 1, "session::set-meta", &title("b")).await.unwrap_err();
    assert_eq!((other.code(), other.http_status()), ("session/other_content", 422));
    assert_eq!(bed.service.forget_ended_keys().await.unwrap(), 0);
    bed.tick(1);
    assert!(!once(&bed, 1, "session::set-meta", &title("b")).await.unwrap().is_replay);
    bed.tick(KEY_LIFETIME);
    assert_eq!(bed.service.forget_ended_keys().await.unwrap(), 1);
    assert_eq!(noted.list("", None, 10).await.unwrap(), []);
}

/// The write is durable, its answer is not kept, and the caller asks again.
async fn a_crash_before_the_answer_is_kept(bed: TestService) {
    let noted = Arc::new(DyingState::default());
    bed.service.set_used_keys(noted.clone());
    let (session, entry) = session_with_an_entry(&bed).await;
    let message = json!({"role": "assistant", "content": "x"});
    let begin = json!({"session_id": session, "entry_id": "s", "message": message, "stream": true});
    bed.call("session::append-entry", begin).await.unwrap();
    let content = json!([{"type": "text", "text": "y"}]);
    let (named, streamed) = (
        json!({"session_id": session, "entry_id": entry}),
        json!({"session_id": session, "entry_id": "s"}),
    );
    let with = |base: &Value, more: Value| {
        let mut request = base.as_object().unwrap().clone();
        request.extend(more.as_object().unwrap().clone());
        Value::Object(request)
    };
    let expecting = with(&named, json!({"content": content, "expected_revision": 0}));
    let finish = json!({"stop_reason": "length", "usage": {"output": 7}, "model": "m"});
    let calls = [
        ("session::update-message", expecting, json!({"updated": true, "revision": 1})),
        (
            "session::finish-message",
            with(&streamed, finish),
            json!({"revision": 1, "stop_reason": "length"}),
        ),
        (
            "session::set-status",
            with(&json!({"session_id": session}), json!({"status": "done"})),
            Value::Null,
        ),
        ("session::set-label", with(&named, json!({"label": "l"})), Value::Null),
    ];
    for (key, (name, request, expected)) in (1..).zip(calls) {
        noted.is_dying.store(true, Ordering::SeqCst);
        let died = once(&bed, key, name, &request).await.unwrap_err();
        assert_eq!(died.code(), "session/storage", "{name}");
        noted.is_dying.store(false, Ordering::SeqCst);
        for _ in 0..2 {
            let again = once(&bed, key, name, &request).await.unwrap();
            assert_eq!(again.stale, None, "{name}");
            if !expected.is_null() {
                assert_eq!(again.to_value().unwrap(), expected, "{name}");
                assert!(again.is_replay, "{name}");
            }
        }
        let other = once(&bed, key, "session::set-task", &request).await.unwrap_err();
        assert_eq!(other.code(), "session/other_content", "{name}");
    }
    // The same content that somebody else wrote is no first try of this call.
    let late = with(&named, json!({"content": content, "expected_revision": 0}));
    let stale = once(&bed, 50, "session::update-message", &late).await.unwrap();
    assert_eq!(stale.stale, Some(1));
    let closed = once(&bed, 51, "session::finish-message", &streamed).await.unwrap_err();
    assert_eq!(closed.code(), "session/not_streaming");
}

async fn two_calls_at_once_are_one(bed: TestService) {
    bed.service.set_used_keys(Arc::new(MemorySharedState::new()));
    let (session, entry) = session_with_an_entry(&bed).await;
    let request = json!({"session_id": session, "entry_id": entry, "content": []});
    let call = || once(&bed, 1, "session::update-message", &request);
    let (a, b, c) = tokio::join!(call(), call(), call());
    let answers = [a.unwrap(), b.unwrap(), c.unwrap()];
    assert_eq!(answers.iter().filter(|answer| answer.is_replay).count(), 2);
    for answer in answers {
        assert_eq!(answer.to_value().unwrap(), json!({"updated": true, "revision": 1}));
    }
}
