//! Idempotency keys: the same key means the same request, for a time.

use std::time::Duration;

use bough_platform::Clock as _;
use bough_service::{CallTerms, Settings};
use serde_json::{Value, json};

use crate::common::TestService;

const KEY_LIFETIME: i64 = 60 * 60 * 1000;

on_every_store!(a_key_ends_after_its_time, keys_without_an_end, a_clock_that_is_behind);

/// A service whose keys live for an hour.
fn hourly(bed: &TestService) {
    let idempotency_keys = Some(Duration::from_millis(KEY_LIFETIME.unsigned_abs()));
    bed.service.set_settings(Settings { idempotency_keys, ..Settings::default() });
}

async fn keyed(bed: &TestService, function: &str, request: Value) -> Value {
    // A key is of one function.
    let key = [function.bytes().fold(0, u8::wrapping_add); 32];
    let terms = CallTerms { key: Some(key), incarnation: None };
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
