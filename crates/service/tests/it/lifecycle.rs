//! Sessions: create, ensure, get, list, change, delete, bring back.

use crate::common::flaky_store::FlakyStore;
use crate::common::{TestService, assistant, object};
use bough_service::Settings;
use bough_session::{LoopEvent, LoopId, LoopPhase, RawJson, Record, SessionId};
use bough_store::StoreExt;
use serde_json::{Value, json};

on_every_store!(
    a_new_session_is_idle_and_empty,
    ensuring_creates_once_and_then_only_reads,
    an_empty_or_endless_id_is_refused_and_an_odd_one_is_not,
    set_meta_replaces_what_is_given,
    set_status_keeps_a_reason_only_for_errors,
    setting_nothing_writes_nothing,
    deleting_and_ensuring_again_gives_a_clean_session,
    a_deleted_session_can_be_brought_back_once,
    purged_is_gone,
    a_deleted_session_can_be_brought_back_until_its_retention_ends,
    sessions_are_listed_by_where_their_task_stands,
    lists_page_in_each_order,
    lists_filter_by_status_metadata_and_archive,
    a_limit_is_clamped_and_a_cursor_belongs_to_its_order,
    tasks_are_named_and_listed,
    lists_filter_by_the_beginning_of_an_id_and_by_text,
    search_finds_words_of_titles_and_messages,
    everything_is_there_after_reopening,
);

async fn a_new_session_is_idle_and_empty(bed: TestService) {
    let created =
        bed.ok("session::create", json!({"title": "t", "metadata": {"owner": "u_1"}})).await;
    let id = created["session_id"].as_str().unwrap();
    assert_eq!(id.len(), 34, "s_ and 32 hex digits: {id}");
    assert!(id.starts_with("s_") && id[2..].bytes().all(|b| b.is_ascii_hexdigit()));
    let now = created["meta"]["created_at"].clone();
    assert_eq!(
        created["meta"],
        json!({
            "session_id": id, "title": "t", "description": "", "status": "idle",
            "metadata": {"owner": "u_1"}, "created_at": now, "updated_at": now, "message_count": 0,
        })
    );
    let got = bed.ok("session::get", json!({"session_id": id})).await;
    assert_eq!(got, json!({"meta": created["meta"]}));
    let bare = bed.ok("session::create", json!({})).await;
    assert!(bare["meta"].get("metadata").is_none());
    assert_eq!(bed.ok("session::get", json!({"session_id": "nope"})).await, Value::Null);
}

async fn ensuring_creates_once_and_then_only_reads(bed: TestService) {
    let first =
        bed.ok("session::ensure", json!({"session_id": "chat/42: é", "title": "one"})).await;
    assert_eq!(first["created"], json!(true));
    bed.tick(1000);
    let second =
        bed.ok("session::ensure", json!({"session_id": "chat/42: é", "title": "two"})).await;
    assert_eq!(second["created"], json!(false));
    assert_eq!(second["meta"], first["meta"]);
    assert_eq!(second["meta"]["title"], json!("one"));
}

async fn an_empty_or_endless_id_is_refused_and_an_odd_one_is_not(bed: TestService) {
    let (code, _) = bed.err("session::ensure", json!({"session_id": ""})).await;
    assert_eq!(code, "session/invalid_request");
    for id in [".", "..", "../escape", "a/b", "A", "a", "CON", "%2e", "x.jsonl", "日本"] {
        let made = bed.ok("session::ensure", json!({"session_id": id, "title": id})).await;
        assert_eq!(made["created"], json!(true), "{id}");
    }
    for id in [".", "..", "../escape", "a/b", "A", "a", "CON", "%2e", "x.jsonl", "日本"] {
        let got = bed.ok("session::get", json!({"session_id": id})).await;
        assert_eq!(got["meta"]["title"], json!(id));
        let gone = bed.ok("session::delete", json!({"session_id": id})).await;
        assert_eq!(gone, json!({"deleted": true}), "{id}");
    }
}

async fn set_meta_replaces_what_is_given(bed: TestService) {
    let id =
        bed.create(json!({"title": "a", "description": "b", "metadata": {"x": 1, "y": 2}})).await;
    bed.tick(5);
    let set = bed.ok("session::set-meta", json!({"session_id": id, "metadata": {"z": [1]}})).await;
    assert_eq!(set["meta"]["metadata"], json!({"z": [1]}));
    assert_eq!(set["meta"]["title"], json!("a"));
    assert_eq!(
        set["meta"]["updated_at"].as_i64().unwrap() - set["meta"]["created_at"].as_i64().unwrap(),
        5
    );
    let cleared = bed.ok("session::set-meta", json!({"session_id": id, "metadata": {}})).await;
    assert_eq!(cleared["meta"]["metadata"], json!({}));
    let both = bed
        .ok("session::set-meta", json!({"session_id": id, "title": "", "description": "d"}))
        .await;
    assert_eq!((&both["meta"]["title"], &both["meta"]["description"]), (&json!(""), &json!("d")));
    assert_eq!(bed.meta(&id).await, both["meta"]);
}

async fn set_status_keeps_a_reason_only_for_errors(bed: TestService) {
    let id = bed.create(json!({})).await;
    let set = async |status: &str, reason: Value| {
        bed.ok("session::set-status", json!({"session_id": id, "status": status, "reason": reason}))
            .await
    };
    let failed = set("error", json!("disk full")).await;
    assert_eq!(failed, json!({"status": "error", "previous_status": "idle"}));
    assert_eq!(bed.meta(&id).await["status_reason"], json!("disk full"));
    // The same status again changes nothing, not even the reason.
    let again = set("error", json!("other")).await;
    assert_eq!(again, json!({"status": "error", "previous_status": "error"}));
    assert_eq!(bed.meta(&id).await["status_reason"], json!("disk full"));
    let working = set("working", json!("ignored")).await;
    assert_eq!(working, json!({"status": "working", "previous_status": "error"}));
    assert!(bed.meta(&id).await.get("status_reason").is_none());
    set("done", Value::Null).await;
    assert_eq!(set("idle", Value::Null).await["previous_status"], json!("done"));
}

async fn setting_nothing_writes_nothing(bed: TestService) {
    let id = bed.create(json!({"title": "t"})).await;
    let before = bed.meta(&id).await;
    bed.tick(1000);
    let same = bed.ok("session::set-meta", json!({"session_id": id})).await;
    assert_eq!(same["meta"], before);
    bed.ok("session::set-status", json!({"session_id": id, "status": "idle"})).await;
    assert_eq!(bed.meta(&id).await, before);
    // The same value, given, is a change.
    let touched = bed.ok("session::set-meta", json!({"session_id": id, "title": "t"})).await;
    assert_ne!(touched["meta"]["updated_at"], before["updated_at"]);
}

async fn deleting_and_ensuring_again_gives_a_clean_session(bed: TestService) {
    bed.ok("session::ensure", json!({"session_id": "s", "title": "old"})).await;
    let entry = bed.say("s", "hello").await;
    assert_eq!(
        bed.ok("session::delete", json!({"session_id": "s"})).await,
        json!({"deleted": true})
    );
    assert_eq!(
        bed.ok("session::delete", json!({"session_id": "s"})).await,
        json!({"deleted": false})
    );
    assert_eq!(bed.ok("session::get", json!({"session_id": "s"})).await, Value::Null);
    let (code, text) = bed.err("session::append", json!({"session_id": "s"})).await;
    assert_eq!((code.as_str(), text.as_str()), ("session/not_found", "session s does not exist"));
    let again = bed.ok("session::ensure", json!({"session_id": "s"})).await;
    assert_eq!(again["created"], json!(true));
    assert_eq!(again["meta"]["message_count"], json!(0));
    assert_eq!(bed.texts("s").await, Vec::<String>::new());
    let old = bed.ok("session::get-message", json!({"session_id": "s", "entry_id": entry})).await;
    assert_eq!(old, Value::Null);
    assert_eq!(
        bed.ok("session::delete", json!({"session_id": "none"})).await,
        json!({"deleted": false})
    );
}

async fn a_deleted_session_can_be_brought_back_once(bed: TestService) {
    let id = bed.create(json!({"title": "kept", "metadata": {"o": 1}})).await;
    bed.say(&id, "hello").await;
    let before = bed.meta(&id).await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    let trash = bed.ok("session::list-trash", json!({})).await;
    assert_eq!(trash["sessions"][0]["meta"], before);
    assert_eq!(trash["sessions"].as_array().unwrap().len(), 1);
    let none = bed.ok("session::list-trash", json!({"metadata": {"o": 2}})).await;
    assert_eq!(none["sessions"], json!([]));
    let back = bed.ok("session::undelete", json!({"session_id": id})).await;
    assert_eq!(back["meta"], before);
    assert_eq!(bed.texts(&id).await, ["hello"]);
    bed.say(&id, "again").await;
    assert_eq!(bed.texts(&id).await, ["hello", "again"]);
    let (code, _) = bed.err("session::undelete", json!({"session_id": id})).await;
    assert!(["session/already_exists", "session/not_in_trash"].contains(&code.as_str()), "{code}");
}

async fn purged_is_gone(bed: TestService) {
    let id = bed.create(json!({})).await;
    assert_eq!(bed.ok("session::purge", json!({"session_id": id})).await, json!({"purged": false}));
    bed.ok("session::delete", json!({"session_id": id})).await;
    assert_eq!(bed.ok("session::purge", json!({"session_id": id})).await, json!({"purged": true}));
    assert_eq!(bed.ok("session::list-trash", json!({})).await["sessions"], json!([]));
    let (code, _) = bed.err("session::undelete", json!({"session_id": id})).await;
    assert_eq!(code, "session/not_in_trash");
}

async fn lists_page_in_each_order(bed: TestService) {
    for name in ["a", "b", "c", "d", "e"] {
        bed.tick(10);
        bed.ok("session::ensure", json!({"session_id": name})).await;
    }
    bed.tick(10);
    bed.ok("session::set-meta", json!({"session_id": "b", "title": "touched"})).await;
    bed.tick(10);
    // The same moment for two: the id decides.
    bed.ok("session::ensure", json!({"session_id": "g"})).await;
    bed.ok("session::ensure", json!({"session_id": "f"})).await;
    for (order, expected) in [
        ("created_asc", ["a", "b", "c", "d", "e", "f", "g"]),
        ("created_desc", ["g", "f", "e", "d", "c", "b", "a"]),
        ("updated_desc", ["g", "f", "b", "e", "d", "c", "a"]),
    ] {
        for limit in [1, 2, 3, 7, 100] {
            let seen = bed.pages("session::list", json!({"order": order, "limit": limit})).await;
            assert_eq!(seen, expected, "{order} by {limit}");
        }
    }
    let whole = bed.ok("session::list", json!({"limit": 7})).await;
    assert!(whole.get("next_cursor").is_none());
}

async fn lists_filter_by_status_metadata_and_archive(bed: TestService) {
    for (id, metadata) in
        [("a", json!({"o": 1, "p": {"q": []}})), ("b", json!({"o": 2})), ("c", Value::Null)]
    {
        bed.ok("session::ensure", json!({"session_id": id, "metadata": metadata})).await;
    }
    bed.ok("session::set-status", json!({"session_id": "b", "status": "working"})).await;
    let archived = bed.ok("session::archive", json!({"session_id": "c"})).await;
    assert_eq!(archived, json!({"archived": true, "changed": true}));
    let again = bed.ok("session::archive", json!({"session_id": "c"})).await;
    assert_eq!(again, json!({"archived": true, "changed": false}));
    let check = async |filter: Value, expected: &[&str]| {
        let mut request = object(json!({"order": "created_asc"}));
        request.extend(object(filter.clone()));
        let seen = bed.pages("session::list", Value::Object(request)).await;
        assert_eq!(seen, expected, "{filter}");
    };
    check(json!({}), &["a", "b"]).await;
    check(json!({"archived": "include"}), &["a", "b", "c"]).await;
    check(json!({"archived": "only"}), &["c"]).await;
    check(json!({"metadata": {}}), &["a", "b"]).await;
    check(json!({"metadata": {"o": 1}}), &["a"]).await;
    check(json!({"metadata": {"p": {"q": []}}}), &["a"]).await;
    check(json!({"metadata": {"o": "1"}}), &[]).await;
    check(json!({"status": "working"}), &["b"]).await;
    check(json!({"status": "working", "metadata": {"o": 1}}), &[]).await;
    let back = bed.ok("session::unarchive", json!({"session_id": "c"})).await;
    assert_eq!(back, json!({"archived": false, "changed": true}));
    check(json!({}), &["a", "b", "c"]).await;
}

async fn a_limit_is_clamped_and_a_cursor_belongs_to_its_order(bed: TestService) {
    for id in ["a", "b", "c"] {
        bed.ok("session::ensure", json!({"session_id": id})).await;
    }
    let one = bed.ok("session::list", json!({"limit": 0})).await;
    assert_eq!(one["sessions"].as_array().unwrap().len(), 1);
    let all = bed.ok("session::list", json!({"limit": 1_000_000})).await;
    assert_eq!(all["sessions"].as_array().unwrap().len(), 3);
    for bad in [json!(-1), json!(1.5), json!("2")] {
        let (code, _) = bed.err("session::list", json!({"limit": bad})).await;
        assert_eq!(code, "session/malformed_request");
    }
    let cursor = one["next_cursor"].as_str().unwrap().to_owned();
    let (code, _) =
        bed.err("session::list", json!({"order": "created_asc", "cursor": cursor})).await;
    assert_eq!(code, "session/invalid_cursor");
    for bad in ["", "!", "e30=", "bnVsbA=="] {
        let (code, _) = bed.err("session::list", json!({"cursor": bad})).await;
        assert_eq!(code, "session/invalid_cursor", "{bad:?}");
    }
}

async fn tasks_are_named_and_listed(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.create(json!({})).await;
    let set =
        bed.ok("session::set-task", json!({"session_id": id, "task": "port the parser"})).await;
    assert_eq!(set, json!({"task": "port the parser"}));
    let seen = bed.pages("session::list", json!({"task": "port the parser"})).await;
    assert_eq!(seen, std::slice::from_ref(&id));
    let cleared = bed.ok("session::set-task", json!({"session_id": id})).await;
    assert_eq!(cleared, json!({}));
    let seen = bed.pages("session::list", json!({"task": "port the parser"})).await;
    assert_eq!(seen, Vec::<String>::new());
    let running = bed.pages("session::list", json!({"task_status": "running"})).await;
    assert_eq!(running, Vec::<String>::new());
}

async fn lists_filter_by_the_beginning_of_an_id_and_by_text(bed: TestService) {
    for id in ["aa1", "aa2", "ab1"] {
        bed.ok("session::ensure", json!({"session_id": id})).await;
    }
    bed.ok("session::ensure", json!({"session_id": "aa3", "metadata": {"cwd": "/home/me/Parser"}}))
        .await;
    bed.append("ab1", json!({"message": assistant("hi")})).await;
    let by = async |filter: Value| {
        let mut found = bed.pages("session::list", filter).await;
        found.sort();
        found
    };
    assert_eq!(by(json!({"id_prefix": "aa", "limit": 2})).await, ["aa1", "aa2", "aa3"]);
    assert_eq!(by(json!({"id_prefix": "aa1"})).await, ["aa1"]);
    assert_eq!(by(json!({"id_prefix": "b"})).await, Vec::<String>::new());
    assert_eq!(by(json!({"query": "m-1"})).await, ["ab1"], "the model that spoke last");
    assert_eq!(by(json!({"query": "me/parser", "id_prefix": "a"})).await, ["aa3"]);
    let page = bed.ok("session::list", json!({"id_prefix": "ab", "include_details": true})).await;
    assert_eq!(page["details"][0]["model"]["model"], json!("m-1"));
    let page = bed.ok("session::list", json!({"id_prefix": "ab"})).await;
    assert_eq!(page.get("details"), None);
}

async fn search_finds_words_of_titles_and_messages(bed: TestService) {
    let titled = bed.create(json!({"title": "the quick brown fox", "metadata": {"o": 1}})).await;
    let spoken = bed.create(json!({"title": "other", "metadata": {"o": 2}})).await;
    bed.say(&spoken, "a zebra crossed the road").await;
    let check = async |request: Value, expected: &[&str]| {
        let found = bed.ok("session::search", request.clone()).await;
        let mut ids: Vec<_> = found["hits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["meta"]["session_id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids.dedup();
        let mut expected: Vec<_> = expected.iter().map(|id| (*id).to_owned()).collect();
        expected.sort();
        assert_eq!(ids, expected, "{request}");
    };
    check(json!({"query": "brown"}), &[&titled]).await;
    check(json!({"query": "zebra"}), &[&spoken]).await;
    check(json!({"query": "zebra", "metadata": {"o": 1}}), &[]).await;
    check(json!({"query": "absent"}), &[]).await;
    let (code, _) = bed.err("session::search", json!({"query": " "})).await;
    assert_eq!(code, "session/invalid_request");
}

async fn everything_is_there_after_reopening(mut bed: TestService) {
    let id = bed.create(json!({"title": "t", "metadata": {"o": [1, {"p": null}]}})).await;
    bed.say(&id, "one").await;
    bed.ok("session::set-status", json!({"session_id": id, "status": "error", "reason": "r"}))
        .await;
    bed.ok("session::archive", json!({"session_id": id})).await;
    let before = bed.meta(&id).await;
    bed.reopen().await;
    assert_eq!(bed.meta(&id).await, before);
    assert_eq!(bed.texts(&id).await, ["one"]);
    assert_eq!(bed.pages("session::list", json!({"archived": "only"})).await, [id]);
}

async fn a_deleted_session_can_be_brought_back_until_its_retention_ends(bed: TestService) {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let retention = Some(std::time::Duration::from_millis(DAY.unsigned_abs()));
    bed.service.set_settings(Settings { trash_retention: retention, ..bed.service.settings() });
    let id = bed.create(json!({})).await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    let trash = bed.ok("session::list-trash", json!({})).await;
    let item = &trash["sessions"][0];
    assert_eq!(item["expires_at"], json!(item["deleted_at"].as_i64().unwrap() + DAY));
    bed.tick(DAY - 1);
    assert_eq!(bed.service.purge_expired().await.unwrap(), 0);
    bed.ok("session::undelete", json!({"session_id": id})).await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    bed.tick(DAY);
    assert_eq!(bed.service.purge_expired().await.unwrap(), 1, "counted from the last deletion");
    let (code, _) = bed.err("session::undelete", json!({"session_id": id})).await;
    assert_eq!(code, "session/not_in_trash");
    // Without an end nothing is ever removed by itself.
    bed.service.set_settings(Settings { trash_retention: None, ..bed.service.settings() });
    let kept = bed.create(json!({})).await;
    bed.ok("session::delete", json!({"session_id": kept})).await;
    bed.tick(1000 * DAY);
    assert_eq!(bed.service.purge_expired().await.unwrap(), 0);
    bed.ok("session::undelete", json!({"session_id": kept})).await;
}

/// The status of a task is what the session's loops say, and lists filter by it.
async fn sessions_are_listed_by_where_their_task_stands(bed: TestService) {
    let ends = [
        ("pending", [LoopPhase::Pending].as_slice()),
        ("running", &[LoopPhase::Pending, LoopPhase::Running]),
        ("completed", &[LoopPhase::Running, LoopPhase::Completed]),
        ("failed", &[LoopPhase::Running, LoopPhase::Aborted]),
    ];
    let store = bed.service.store();
    for (name, phases) in ends {
        let session = SessionId::from_stored(name);
        bed.ok("session::ensure", json!({"session_id": name})).await;
        let head = store.state(&session).await.unwrap().unwrap().head;
        let records = phases.iter().map(|phase| {
            let event = RawJson::parse(r#"{"type":"AgentStart"}"#).unwrap();
            let loop_id = LoopId::from_stored("l");
            let event = LoopEvent { loop_id, phase: Some(*phase), entry_id: None, event };
            Record::Loop(event).at(1)
        });
        let appended =
            store.append(&session, &head, records.collect::<Vec<_>>().into()).await.unwrap();
        appended.durable.await.unwrap();
    }
    bed.create(json!({})).await;
    for (name, _) in ends {
        let listed = bed.pages("session::list", json!({"task_status": name})).await;
        assert_eq!(listed, [name]);
    }
}

/// A sweep that took a restore for an old deletion would remove a session that somebody wants back.
#[tokio::test]
async fn a_restore_that_was_cut_short_is_finished_by_the_sweep_and_not_purged() {
    let (bed, store) = FlakyStore::bed();
    let retention = Some(std::time::Duration::from_millis(1));
    bed.service.set_settings(Settings { trash_retention: retention, ..bed.service.settings() });
    let id = bed.create(json!({})).await;
    bed.ok("session::delete", json!({"session_id": id})).await;
    store.half_restored.store(true, std::sync::atomic::Ordering::SeqCst);
    bed.tick(1_000);
    let trash = bed.ok("session::list-trash", json!({})).await;
    assert_eq!(trash["sessions"][0]["expires_at"], Value::Null);
    assert_eq!(bed.service.purge_expired().await.unwrap(), 0);
    assert_eq!(bed.meta(&id).await["session_id"], json!(id));
}
