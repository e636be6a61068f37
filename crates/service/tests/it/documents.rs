//! Documents by key: put, compared, listed, deleted, and compacted so that what they cost follows the live keys.

use std::path::Path;
use std::time::Duration;

use crate::common::process::{Other, service_on};
use crate::common::{TestService, stores};
use bough_service::limits::DOCUMENT_DEAD_BYTES_MIN;
use bough_service::{CallTerms, EventFilter, Request, Right, Scope, Service, StartAt, function};
use serde_json::{Value, json};

on_every_store!(
    a_document_is_put_read_and_deleted,
    versions_are_compared_and_never_come_again,
    a_batch_is_all_or_none,
    pages_are_bounded_by_count_and_bytes,
    values_are_kept_byte_for_byte,
    documents_are_in_no_list_feed_or_count,
    each_tenant_has_its_own,
    a_repeated_request_changes_nothing,
    bounds_are_checked,
    documents_are_there_after_a_restart,
);

fn key(key: &str) -> Value {
    json!({"scope": "app", "key": key})
}

fn put(key: &str, value: &Value) -> Value {
    json!({"scope": "app", "key": key, "value": value})
}

async fn keys(bed: &TestService, request: Value) -> Vec<String> {
    let page = bed.ok("session::kv::list", request).await;
    let documents = page["documents"].as_array().unwrap();
    documents.iter().map(|document| document["key"].as_str().unwrap().to_owned()).collect()
}

async fn a_document_is_put_read_and_deleted(bed: TestService) {
    assert_eq!(bed.ok("session::kv::get", key("a")).await, Value::Null);
    let first = bed.ok("session::kv::put", put("a", &json!({"n": 1}))).await;
    assert_eq!(first, json!({"key": "a", "version": 1}));
    bed.tick(5);
    bed.ok("session::kv::put", put("a", &Value::Null)).await;
    let begun = 1_700_000_000_000_i64;
    let expected = json!({
        "key": "a", "version": 2, "created_at": begun, "updated_at": begun + 5, "value": null,
    });
    assert_eq!(bed.ok("session::kv::get", key("a")).await, expected);
    for name in ["b/2", "b/1", "c"] {
        bed.ok("session::kv::put", put(name, &json!(name))).await;
    }
    assert_eq!(keys(&bed, json!({"scope": "app"})).await, ["a", "b/1", "b/2", "c"]);
    assert_eq!(keys(&bed, json!({"scope": "app", "prefix": "b/"})).await, ["b/1", "b/2"]);
    let some = json!({"scope": "app", "keys": ["c", "x", "a"]});
    assert_eq!(keys(&bed, some).await, ["c", "a"]);
    assert!(keys(&bed, json!({"scope": "other"})).await.is_empty());
    let only = bed.ok("session::kv::list", json!({"scope": "app", "keys_only": true})).await;
    assert!(only["documents"][0].get("value").is_none(), "{only}");
    assert_eq!(bed.ok("session::kv::delete", key("a")).await, json!({"deleted": true}));
    assert_eq!(bed.ok("session::kv::delete", key("a")).await, json!({"deleted": false}));
    assert_eq!(bed.ok("session::kv::get", key("a")).await, Value::Null);
}

async fn versions_are_compared_and_never_come_again(bed: TestService) {
    let at = |version: u64| json!({"scope": "app", "key": "a", "value": version, "expected_version": version});
    let (code, text) = bed.err("session::kv::put", at(3)).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("session/document_conflict", "document a does not exist")
    );
    bed.ok("session::kv::put", at(0)).await;
    let (code, text) = bed.err("session::kv::put", at(0)).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("session/document_conflict", "document a is at version 1")
    );
    assert_eq!(bed.ok("session::kv::put", at(1)).await["version"], 2);
    let gone = |version: u64| json!({"scope": "app", "key": "a", "expected_version": version});
    bed.err("session::kv::delete", gone(1)).await;
    bed.ok("session::kv::delete", gone(2)).await;
    assert_eq!(bed.ok("session::kv::put", at(0)).await["version"], 4, "the deletion was 3");
    bed.err("session::kv::put", at(2)).await;
}

async fn a_batch_is_all_or_none(bed: TestService) {
    let batch =
        json!({"scope": "app", "put": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]});
    let written = bed.ok("session::kv::write", batch).await;
    let versions = json!([{"key": "a", "version": 1}, {"key": "b", "version": 2}]);
    assert_eq!(written, json!({"documents": versions, "deleted": 0}));
    let refused = json!({
        "scope": "app",
        "put": [{"key": "c", "value": 3}, {"key": "a", "value": 9, "expected_version": 7}],
        "delete": [{"key": "b"}],
    });
    bed.err("session::kv::write", refused).await;
    assert_eq!(keys(&bed, json!({"scope": "app"})).await, ["a", "b"]);
    let mixed = json!({
        "scope": "app", "put": [{"key": "c", "value": 3}],
        "delete": [{"key": "b", "expected_version": 2}, {"key": "x"}],
    });
    assert_eq!(bed.ok("session::kv::write", mixed).await["deleted"], 1);
    assert_eq!(keys(&bed, json!({"scope": "app"})).await, ["a", "c"]);
    let twice =
        json!({"scope": "app", "put": [{"key": "a", "value": 1}], "delete": [{"key": "a"}]});
    assert_eq!(bed.err("session::kv::write", twice).await.0, "session/invalid_request");
}

async fn pages_are_bounded_by_count_and_bytes(bed: TestService) {
    let large = "x".repeat(1000);
    for number in 0..7 {
        bed.ok("session::kv::put", put(&format!("k{number}"), &json!(large))).await;
    }
    let pages = async |mut request: Value| {
        let mut sizes = Vec::new();
        loop {
            let page = bed.ok("session::kv::list", request.clone()).await;
            sizes.push(page["documents"].as_array().unwrap().len());
            match page.get("next_cursor") {
                Some(next) => request["cursor"] = next.clone(),
                None => return sizes,
            }
        }
    };
    assert_eq!(pages(json!({"scope": "app", "limit": 3})).await, [3, 3, 1]);
    assert_eq!(pages(json!({"scope": "app", "max_bytes": 2500})).await, [2, 2, 2, 1]);
    assert_eq!(pages(json!({"scope": "app", "max_bytes": 1})).await, [1; 7]);
    let some = json!({"scope": "app", "keys": ["k5", "k0", "k3"], "limit": 2});
    assert_eq!(pages(some).await, [2, 1]);
    let wrong = json!({"scope": "app", "cursor": "x"});
    assert_eq!(bed.err("session::kv::list", wrong).await.0, "session/invalid_cursor");
}

async fn values_are_kept_byte_for_byte(bed: TestService) {
    let value = r#"{"b":1.0,"a":123456789012345678901234567890,"b":"\u0041"}"#;
    let body = format!(r#"{{"scope":"app","key":"a","value":{value}}}"#);
    let request = Request::from_body(body.as_bytes()).unwrap();
    let put = function("session::kv::put").unwrap();
    bed.service.answer(&bed.scope, put, request).await.unwrap();
    let get = function("session::kv::get").unwrap();
    let answer = bed.service.answer(&bed.scope, get, key("a").into()).await.unwrap();
    let text = String::from_utf8(answer.to_json().unwrap()).unwrap();
    assert!(text.ends_with(&format!(r#""value":{value}}}"#)), "{text}");
}

async fn documents_are_in_no_list_feed_or_count(bed: TestService) {
    let mut feed =
        bed.service.subscribe(&bed.scope, EventFilter::everything(), StartAt::Now).await.unwrap();
    bed.ok("session::kv::put", put("a", &json!("needle"))).await;
    let session = bed.create(json!({"title": "t"})).await;
    bed.ok("session::kv::put", put("a", &json!("needle"))).await;
    let listed = bed.ok("session::list", json!({})).await;
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(bed.ok("session::stats", json!({})).await["sessions"], 1);
    let told = tokio::time::timeout(Duration::from_secs(120), feed.next()).await.unwrap().unwrap();
    assert!(format!("{told:?}").contains(&session), "{told:?}");
    let documents = json!({"session_id": "bough.kv:app"});
    assert_eq!(bed.ok("session::get", documents.clone()).await, Value::Null);
    assert_eq!(bed.err("session::messages", documents.clone()).await.0, "session/not_found");
    assert_eq!(bed.ok("session::delete", documents.clone()).await["deleted"], false);
    let reserved = json!({"session_id": "bough.kv:new"});
    assert_eq!(bed.err("session::ensure", reserved).await.0, "session/invalid_request");
    assert_eq!(keys(&bed, json!({"scope": "app"})).await, ["a"]);
}

async fn each_tenant_has_its_own(bed: TestService) {
    let tenant = |name: &str| {
        let metadata = json!({"tenant": name}).as_object().unwrap().clone();
        let rights = [Right::Read, Right::Write];
        bed.with_scope(Scope::new(name, rights).only_sessions_with(metadata))
    };
    let (a, b) = (tenant("a"), tenant("b"));
    a.ok("session::kv::put", put("k", &json!(1))).await;
    assert_eq!(b.ok("session::kv::get", key("k")).await, Value::Null);
    assert!(keys(&b, json!({"scope": "app"})).await.is_empty());
    assert_eq!(b.err("session::kv::put", put("k", &json!(2))).await.0, "session/forbidden");
    assert_eq!(b.err("session::kv::delete", key("k")).await.0, "session/forbidden");
    assert_eq!(a.ok("session::kv::get", key("k")).await["value"], 1);
    assert_eq!(bed.ok("session::kv::get", key("k")).await["value"], 1, "the owner sees all");
}

async fn a_repeated_request_changes_nothing(bed: TestService) {
    let call = async |request: Value| {
        let terms = CallTerms { key: Some([7; 32]), ..CallTerms::default() };
        let service = bed.service.on_terms(terms);
        let write = function("session::kv::write").unwrap();
        let answer = service.answer(&bed.scope, write, request.into()).await;
        answer.map(|answer| (answer.to_value().unwrap(), answer.is_replay))
    };
    let request = json!({
        "scope": "app",
        "put": [{"key": "a", "value": 1, "expected_version": 0}, {"key": "b", "value": 2}],
    });
    let (first, is_replay) = call(request.clone()).await.unwrap();
    assert!(!is_replay);
    assert_eq!(call(request.clone()).await.unwrap(), (first.clone(), true));
    bed.ok("session::kv::put", put("a", &json!(3))).await;
    assert_eq!(call(request).await.unwrap(), (first, true), "one document tells of both");
    assert_eq!(bed.ok("session::kv::get", key("a")).await["value"], 3);
    let other = json!({"scope": "app", "put": [{"key": "b", "value": 9}]});
    assert_eq!(call(other).await.unwrap_err().code(), "session/other_content");
}

async fn bounds_are_checked(bed: TestService) {
    let code = async |request: Value| bed.err("session::kv::put", request).await.0;
    assert_eq!(code(put("", &json!(1))).await, "session/invalid_request");
    assert_eq!(code(put(&"k".repeat(1025), &json!(1))).await, "session/too_large");
    let scope = |scope: String| json!({"scope": scope, "key": "k", "value": 1});
    assert_eq!(code(scope(String::new())).await, "session/invalid_request");
    assert_eq!(code(scope("s".repeat(257))).await, "session/too_large");
    bed.ok("session::kv::put", scope("s".repeat(256))).await;
    bed.ok("session::kv::put", put(&"k".repeat(1024), &json!(1))).await;
    let many: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
    let many = json!({"scope": "app", "keys": many});
    assert_eq!(bed.err("session::kv::list", many).await.0, "session/too_large");
}

async fn documents_are_there_after_a_restart(mut bed: TestService) {
    bed.ok("session::kv::put", put("a", &json!(1))).await;
    bed.ok("session::kv::put", put("b", &json!(2))).await;
    bed.ok("session::kv::delete", key("a")).await;
    bed.reopen().await;
    assert_eq!(keys(&bed, json!({"scope": "app"})).await, ["b"]);
    assert_eq!(bed.ok("session::kv::put", put("a", &json!(3))).await["version"], 4);
    assert!(bed.ok("session::list", json!({})).await["sessions"].as_array().unwrap().is_empty());
}

/// Bytes of all files in a directory.
fn disk_bytes(directory: &Path) -> u64 {
    let listed = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => disk_bytes(&entry.path()),
        found => found.map_or(0, |found| found.len()),
    };
    listed.map(size).sum()
}

const VALUE_BYTES: usize = 32 * 1024;
/// As many overwritten values of that size make a log that is compacted.
const ENOUGH: usize = 2 * DOCUMENT_DEAD_BYTES_MIN / VALUE_BYTES;

async fn ok(service: &Service, function: &str, request: Value) -> Value {
    service.call(&Scope::owner(), function, request).await.unwrap()
}

#[tokio::test]
async fn what_documents_cost_follows_the_live_keys() {
    let factory = stores::native();
    let mut bed = TestService::on(&factory).await;
    let value = |number: usize| json!(format!("{number}:{}", "x".repeat(VALUE_BYTES)));
    bed.ok("session::kv::put", put("kept", &json!("k"))).await;
    bed.ok("session::kv::put", put("gone", &json!("g"))).await;
    for number in 0..5 * ENOUGH {
        bed.ok("session::kv::put", put("a", &value(number))).await;
        assert_eq!(bed.ok("session::kv::get", key("a")).await["value"], value(number));
    }
    bed.ok("session::kv::delete", key("gone")).await;
    let written = 5 * ENOUGH * VALUE_BYTES;
    let sessions = factory.directory().unwrap().join("sessions");
    let bytes = disk_bytes(&sessions) as usize;
    assert!(bytes < 2 * DOCUMENT_DEAD_BYTES_MIN, "{bytes} of {written} bytes are left");
    let newest = bed.ok("session::kv::get", key("a")).await["version"].clone();
    bed.reopen().await;
    assert_eq!(keys(&bed, json!({"scope": "app"})).await, ["a", "kept"]);
    let found = bed.ok("session::kv::get", key("a")).await;
    assert_eq!((&found["version"], &found["value"]), (&newest, &value(5 * ENOUGH - 1)));
    let next = bed.ok("session::kv::put", put("gone", &json!(1))).await;
    assert_eq!(next["version"].as_u64().unwrap(), 5 * ENOUGH as u64 + 4, "no version comes again");
}

/// Overwrites one key in each of two processes, which compact the same log again and again: nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_compact_one_log_and_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let here = service_on(directory.path()).await;
    let mut there = Other::start(directory.path());
    let rounds = 6;
    let many = |round: usize, who: &str| -> Vec<Value> {
        (0..ENOUGH / 2).map(|n| put(who, &json!([round, n, "x".repeat(VALUE_BYTES)]))).collect()
    };
    for round in 0..rounds {
        let count = json!({"scope": "app", "key": format!("round-{round}"), "value": round});
        when_unlocked(async || call(&here, "session::kv::put", count.clone()).await).await;
        for request in many(round, "ours") {
            ok(&here, "session::kv::put", request).await;
        }
        assert_eq!(there.ok("session::kv::get", key("ours"))["value"][0], round);
        for request in many(round, "theirs") {
            when_unlocked(async || there.call("session::kv::put", request.clone())).await;
        }
        assert_eq!(ok(&here, "session::kv::get", key("theirs")).await["value"][0], round);
    }
    let listed = there.ok("session::kv::list", json!({"scope": "app", "prefix": "round-"}));
    assert_eq!(listed["documents"].as_array().unwrap().len(), rounds);
    let last = ENOUGH / 2 - 1;
    assert_eq!(there.ok("session::kv::get", key("ours"))["value"][1], last);
    assert_eq!(ok(&here, "session::kv::get", key("theirs")).await["value"][1], last);
    there.end();
}

async fn call(service: &Service, function: &str, request: Value) -> Result<Value, String> {
    let answer = service.call(&Scope::owner(), function, request).await;
    answer.map_err(|error| error.code().to_owned())
}

/// Calls until the other process has given up its lock, which it does when the session rests.
async fn when_unlocked(mut call: impl AsyncFnMut() -> Result<Value, String>) -> Value {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(code) => assert_eq!(code, "session/locked"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Kills a process that does nothing but overwrite and compact: what it acknowledged is there, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_while_it_compacts_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for round in 0..8_u64 {
        let mut there = Other::start(directory.path());
        there.ok("session::kv::put", put(&format!("round-{round}"), &json!(round)));
        let orders = 3 * ENOUGH as u64;
        for number in 1..=orders {
            there.order(
                "session::kv::put",
                put("a", &json!([acknowledged + number, "x".repeat(VALUE_BYTES)])),
            );
        }
        // It is in the middle of the work when it is killed; each time a little later.
        for _ in 0..round * orders / 10 {
            assert!(there.answer().get("ok").is_some());
        }
        let answered = round * orders / 10 + there.kill().len() as u64;
        let here = service_on(directory.path()).await;
        let found = when_unlocked(async || call(&here, "session::kv::get", key("a")).await).await;
        let newest = found["value"][0].as_u64().unwrap_or(0);
        assert!(newest >= acknowledged + answered, "{newest} of {acknowledged} + {answered}");
        assert!(newest <= acknowledged + orders);
        let listed =
            ok(&here, "session::kv::list", json!({"scope": "app", "prefix": "round-"})).await;
        assert_eq!(listed["documents"].as_array().unwrap().len() as u64, round + 1);
        when_unlocked(async || call(&here, "session::kv::put", put("a", &json!([newest]))).await)
            .await;
        here.store().close().await.unwrap();
        acknowledged = newest;
    }
}
