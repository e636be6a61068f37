//! Entries: append, update, stream, read back.

use crate::common::{TestService, assistant, object, text, user};
use serde_json::{Value, json};

on_every_store!(
    appending_chains_to_the_active_leaf,
    the_same_entry_id_twice_is_one_entry,
    an_entry_id_may_be_chosen_but_not_empty,
    a_batch_is_one_chain_with_one_time,
    custom_entries_are_kept_but_not_counted,
    an_append_that_expects_another_leaf_is_refused,
    what_is_not_the_leaf_fails_nobody,
    updates_replace_content_and_count_revisions,
    an_expected_revision_guards_an_update,
    details_belong_to_results_and_custom_messages,
    a_refused_update_writes_nothing,
    deltas_add_text_to_a_block,
    a_streamed_reply_is_whole_after_reopening,
    unknown_fields_of_a_request_are_ignored_and_null_is_absent,
    every_kind_of_message_comes_back_as_it_was,
    bookkeeping_of_a_known_kind_is_a_custom_entry,
);

async fn appending_chains_to_the_active_leaf(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.tick(10);
    let first = bed.append(&id, json!({"message": user("a"), "origin": {"turn": 1}})).await;
    assert_eq!(first["parent_id"], Value::Null);
    assert!(first.as_object().unwrap().contains_key("parent_id"));
    bed.tick(10);
    let second = bed.append(&id, json!({"message": user("b")})).await;
    assert_eq!(second["parent_id"], first["entry_id"]);
    // An explicit parent branches, and the leaf follows.
    let third =
        bed.append(&id, json!({"message": user("c"), "parent_id": first["entry_id"]})).await;
    assert_eq!(third["parent_id"], first["entry_id"]);
    assert_eq!(bed.texts(&id).await, ["a", "c"]);
    let meta = bed.meta(&id).await;
    assert_eq!(meta["message_count"], json!(3));
    assert_eq!(meta["updated_at"], third["timestamp"]);
    let entry = bed
        .ok("session::get-message", json!({"session_id": id, "entry_id": first["entry_id"]}))
        .await;
    assert_eq!(
        entry["entry"],
        json!({
            "kind": "message", "id": first["entry_id"], "parent_id": null, "revision": 0,
            "timestamp": first["timestamp"], "origin": {"turn": 1}, "message": user("a"),
        })
    );
}

async fn the_same_entry_id_twice_is_one_entry(bed: TestService) {
    let id = bed.create(json!({})).await;
    let first = bed.append(&id, json!({"entry_id": "mine", "message": user("a")})).await;
    assert_eq!(first["entry_id"], json!("mine"));
    let leaf = bed.append(&id, json!({"message": user("b")})).await;
    bed.tick(50);
    let before = bed.meta(&id).await;
    // Another body, another parent, even one that does not exist: the entry that is there answers.
    let again = bed
        .append(&id, json!({"entry_id": "mine", "message": user("other"), "parent_id": "nope"}))
        .await;
    assert_eq!(again, first);
    assert_eq!(bed.meta(&id).await, before);
    assert_eq!(bed.texts(&id).await, ["a", "b"]);
    let next = bed.append(&id, json!({"message": user("c")})).await;
    assert_eq!(next["parent_id"], leaf["entry_id"]);
    // But a body there must be, and only one.
    let (code, _) = bed.err("session::append", json!({"session_id": id, "entry_id": "mine"})).await;
    assert_eq!(code, "session/invalid_request");
}

async fn an_entry_id_may_be_chosen_but_not_empty(bed: TestService) {
    let id = bed.create(json!({})).await;
    let (code, _) = bed
        .err("session::append", json!({"session_id": id, "entry_id": "", "message": user("a")}))
        .await;
    assert_eq!(code, "session/invalid_request");
    for odd in ["..", "a/b", "é", " "] {
        let made = bed.append(&id, json!({"entry_id": odd, "message": user(odd)})).await;
        assert_eq!(made["entry_id"], json!(odd));
    }
    assert_eq!(bed.texts(&id).await, ["..", "a/b", "é", " "]);
}

async fn a_batch_is_one_chain_with_one_time(bed: TestService) {
    let id = bed.create(json!({})).await;
    let root = bed.say(&id, "root").await;
    bed.tick(10);
    let many = bed
        .ok(
            "session::append-many",
            json!({"session_id": id, "origin": {"t": 1}, "messages": [user("a"), assistant("b"), user("c")]}),
        )
        .await;
    let ids: Vec<_> = many["entry_ids"].as_array().unwrap().clone();
    assert_eq!(ids.len(), 3);
    assert_eq!(many["last_entry_id"], ids[2]);
    assert_eq!(bed.texts(&id).await, ["root", "a", "b", "c"]);
    let mut parent = json!(root);
    let mut times = Vec::new();
    for entry_id in &ids {
        let entry = bed.entry(&id, entry_id.as_str().unwrap()).await;
        assert_eq!(entry["parent_id"], parent);
        assert_eq!(entry["origin"], json!({"t": 1}));
        times.push(entry["timestamp"].clone());
        parent = entry_id.clone();
    }
    times.dedup();
    assert_eq!(times.len(), 1);
    let branch = bed
        .ok(
            "session::append-many",
            json!({"session_id": id, "parent_id": root, "messages": [user("z")]}),
        )
        .await;
    assert_eq!(bed.texts(&id).await, ["root", "z"]);
    assert_eq!(branch["entry_ids"].as_array().unwrap().len(), 1);
}

async fn custom_entries_are_kept_but_not_counted(bed: TestService) {
    let id = bed.create(json!({})).await;
    let mark = bed.append(&id, json!({"custom": {"custom_type": "mark"}})).await;
    bed.say(&id, "a").await;
    assert_eq!(bed.meta(&id).await["message_count"], json!(1));
    assert_eq!(bed.texts(&id).await, ["a"]);
    let all = bed.ok("session::messages", json!({"session_id": id, "include_custom": true})).await;
    assert_eq!(
        all["messages"][0],
        json!({"entry_id": mark["entry_id"], "custom": {"custom_type": "mark", "data": null}})
    );
    assert_eq!(all["messages"].as_array().unwrap().len(), 2);
    let entry = bed.entry(&id, mark["entry_id"].as_str().unwrap()).await;
    assert_eq!((&entry["kind"], &entry["data"]), (&json!("custom"), &Value::Null));
    for both in [json!({}), json!({"message": user("a"), "custom": {"custom_type": "m"}})] {
        let mut request = object(both);
        request.insert("session_id".into(), json!(id));
        let (code, _) = bed.err("session::append", Value::Object(request)).await;
        assert_eq!(code, "session/invalid_request");
    }
}

async fn an_append_that_expects_another_leaf_is_refused(bed: TestService) {
    let id = bed.create(json!({})).await;
    let first = bed.append(&id, json!({"message": user("a"), "expected_leaf": ""})).await;
    let leaf = first["entry_id"].as_str().unwrap();
    let late = json!({"session_id": id, "message": user("late"), "expected_leaf": ""});
    let (code, text) = bed.err("session::append", late).await;
    assert_eq!(code, "session/leaf_conflict");
    assert_eq!(text, format!("the active leaf of session {id} is {leaf}, not empty"));
    let second = bed.append(&id, json!({"message": user("b"), "expected_leaf": leaf})).await;
    let (code, _) = bed
        .err(
            "session::append-many",
            json!({"session_id": id, "messages": [user("x")], "expected_leaf": leaf}),
        )
        .await;
    assert_eq!(code, "session/leaf_conflict");
    assert_eq!(bed.texts(&id).await, ["a", "b"]);
    // A repeated append that was acknowledged is no conflict, although the leaf moved since.
    let chosen =
        json!({"entry_id": "k", "message": user("c"), "expected_leaf": second["entry_id"]});
    let first_time = bed.append(&id, chosen.clone()).await;
    assert_eq!(bed.append(&id, chosen).await, first_time);
}

async fn what_is_not_the_leaf_fails_nobody(bed: TestService) {
    let id = bed.create(json!({})).await;
    let leaf = bed.say(&id, "a").await;
    bed.ok("session::set-status", json!({"session_id": id, "status": "working"})).await;
    bed.ok("session::set-meta", json!({"session_id": id, "title": "t"})).await;
    bed.update(&id, &leaf, "aa").await;
    bed.append(&id, json!({"message": user("b"), "expected_leaf": leaf})).await;
    assert_eq!(bed.texts(&id).await, ["aa", "b"]);
}

async fn updates_replace_content_and_count_revisions(bed: TestService) {
    let id = bed.create(json!({})).await;
    let mut said = assistant("");
    said["usage"] = json!({"input": 3, "output": 4, "cost_usd": 0.5});
    let entry = bed.append(&id, json!({"message": said, "origin": {"kept": true}})).await;
    let entry_id = entry["entry_id"].as_str().unwrap();
    for (revision, text) in ["h", "he", "hey", "other", "other", ""].iter().enumerate() {
        bed.tick(1);
        let request = json!({
            "session_id": id, "entry_id": entry_id, "origin": {"not": "kept"},
            "content": [{"type": "text", "text": text}],
        });
        let updated = bed.ok("session::update-message", request).await;
        assert_eq!(updated, json!({"updated": true, "revision": revision + 1}));
        let now = bed.entry(&id, entry_id).await;
        assert_eq!(now["message"]["content"][0]["text"], json!(text));
    }
    let now = bed.entry(&id, entry_id).await;
    assert_eq!(now["revision"], json!(6));
    assert_eq!(now["timestamp"], entry["timestamp"]);
    assert_eq!(now["origin"], json!({"kept": true}));
    assert_eq!(now["message"]["usage"], said["usage"]);
    assert_eq!(now["message"]["model"], said["model"]);
    let meta = bed.meta(&id).await;
    assert_eq!(meta["message_count"], json!(1));
    assert!(meta["updated_at"].as_i64().unwrap() > entry["timestamp"].as_i64().unwrap());
}

async fn an_expected_revision_guards_an_update(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "a").await;
    let update = async |expected: u64, text: &str| {
        let content = json!([{"type": "text", "text": text}]);
        let request = json!({"session_id": id, "entry_id": entry, "content": content, "expected_revision": expected});
        bed.ok("session::update-message", request).await
    };
    assert_eq!(update(0, "b").await, json!({"updated": true, "revision": 1}));
    assert_eq!(update(0, "c").await, json!({"updated": false, "revision": 1}));
    assert_eq!(update(9, "c").await, json!({"updated": false, "revision": 1}));
    assert_eq!(update(1, "c").await, json!({"updated": true, "revision": 2}));
    assert_eq!(bed.texts(&id).await, ["c"]);
}

async fn details_belong_to_results_and_custom_messages(bed: TestService) {
    let id = bed.create(json!({})).await;
    let result = json!({
        "role": "function_result", "function_call_id": "c", "function_id": "f",
        "content": [], "timestamp": 1,
    });
    let entry = bed.append(&id, json!({"message": result})).await["entry_id"].clone();
    let stored = bed.entry(&id, entry.as_str().unwrap()).await;
    assert_eq!(stored["message"]["details"], Value::Null);
    assert_eq!(stored["message"]["is_error"], json!(false));
    let update = async |details: Value| {
        let request =
            json!({"session_id": id, "entry_id": entry, "content": [], "details": details});
        bed.ok("session::update-message", request).await;
        bed.entry(&id, entry.as_str().unwrap()).await["message"]["details"].clone()
    };
    assert_eq!(update(json!({"rows": [1, 2]})).await, json!({"rows": [1, 2]}));
    // null is absent: the details stay.
    assert_eq!(update(Value::Null).await, json!({"rows": [1, 2]}));
    let mine = bed.say(&id, "a").await;
    let request = json!({"session_id": id, "entry_id": mine, "content": [], "details": 1});
    let (code, text) = bed.err("session::update-message", request).await;
    assert_eq!(code, "session/details_not_supported");
    assert_eq!(
        text,
        format!(
            "entry {mine} has role User; `details` applies to function_result and custom messages"
        )
    );
}

async fn a_refused_update_writes_nothing(bed: TestService) {
    let id = bed.create(json!({})).await;
    let said = bed.say(&id, "a").await;
    let custom = bed.append(&id, json!({"custom": {"custom_type": "m"}})).await["entry_id"].clone();
    let before = bed.meta(&id).await;
    bed.tick(10);
    let refused = async |session: &str, entry: &Value, more: Value| {
        let mut request = object(json!({"session_id": session, "entry_id": entry, "content": []}));
        request.extend(object(more));
        bed.err("session::update-message", Value::Object(request)).await
    };
    // Session, entry, kind, revision, and only then details.
    assert_eq!(refused("no", &json!("no"), json!({})).await.0, "session/not_found");
    let (code, text) = refused(&id, &json!("no"), json!({})).await;
    assert_eq!(code, "session/entry_not_found");
    assert_eq!(text, format!("entry no does not exist in session {id}"));
    let (code, text) = refused(&id, &custom, json!({"expected_revision": 7, "details": 1})).await;
    assert_eq!(code, "session/invalid_entry_kind");
    let custom = custom.as_str().unwrap();
    assert_eq!(
        text,
        format!(
            "entry {custom} is a custom entry; session::update-message only applies to messages"
        )
    );
    let mismatch = json!({"session_id": id, "entry_id": said, "content": [], "expected_revision": 7, "details": 1});
    let answer = bed.ok("session::update-message", mismatch).await;
    assert_eq!(answer, json!({"updated": false, "revision": 0}));
    assert_eq!(
        refused(&id, &json!(said), json!({"details": 1})).await.0,
        "session/details_not_supported"
    );
    assert_eq!(bed.meta(&id).await, before);
    assert_eq!(bed.entry(&id, &said).await["revision"], json!(0));
}

async fn deltas_add_text_to_a_block(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.append(&id, json!({"message": assistant("")})).await["entry_id"].clone();
    let delta = async |more: Value| {
        let mut request = object(json!({"session_id": id, "entry_id": entry}));
        request.extend(object(more));
        Value::Object(request)
    };
    let add = async |more: Value| bed.ok("session::append-delta", delta(more).await).await;
    assert_eq!(
        add(json!({"block": 0, "text": "he"})).await,
        json!({"updated": true, "revision": 1})
    );
    assert_eq!(add(json!({"block": 0, "text": "y"})).await["revision"], json!(2));
    assert_eq!(
        add(json!({"block": 1, "text": "hm", "block_type": "thinking"})).await["revision"],
        json!(3)
    );
    let late = add(json!({"block": 1, "text": "m", "expected_revision": 1})).await;
    assert_eq!(late, json!({"updated": false, "revision": 3}));
    let now = bed.entry(&id, entry.as_str().unwrap()).await;
    assert_eq!(
        now["message"]["content"],
        json!([{"type": "text", "text": "hey"}, {"type": "thinking", "text": "hm"}])
    );
    let (code, _) =
        bed.err("session::append-delta", delta(json!({"block": 3, "text": "x"})).await).await;
    assert_eq!(code, "session/invalid_request");
    // Deltas and whole updates count the same revisions.
    bed.update(&id, entry.as_str().unwrap(), "all new").await;
    assert_eq!(add(json!({"block": 0, "text": "!"})).await["revision"], json!(5));
    assert_eq!(bed.texts(&id).await, ["all new!"]);
}

async fn a_streamed_reply_is_whole_after_reopening(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.append(&id, json!({"message": assistant("")})).await["entry_id"].clone();
    let entry = entry.as_str().unwrap();
    let mut whole = String::new();
    for step in 0..200 {
        whole.push_str(&format!("word{step} é "));
        bed.update(&id, entry, &whole).await;
    }
    bed.reopen().await;
    let now = bed.entry(&id, entry).await;
    assert_eq!(now["revision"], json!(200));
    assert_eq!(text(&now["message"]), whole);
    bed.say(&id, "next").await;
    bed.reopen().await;
    assert_eq!(bed.texts(&id).await, [whole, "next".to_owned()]);
    assert_eq!(bed.entry(&id, entry).await["revision"], json!(200));
}

async fn unknown_fields_of_a_request_are_ignored_and_null_is_absent(bed: TestService) {
    let made = bed
        .ok(
            "session::create",
            json!({"_caller_worker_id": "w", "title": null, "metadata": null, "else": [1]}),
        )
        .await;
    assert_eq!(made["meta"]["title"], json!(""));
    let id = made["session_id"].as_str().unwrap();
    let request = json!({
        "session_id": id, "message": user("a"), "custom": null, "parent_id": null, "entry_id": null,
        "origin": null, "expected_leaf": null, "_caller_worker_id": "w",
    });
    bed.ok("session::append", request).await;
    let (code, text) =
        bed.err("session::set-status", json!({"session_id": id, "status": "halted"})).await;
    assert_eq!(code, "session/malformed_request");
    assert_eq!(
        text,
        "unknown variant `halted`, expected one of `idle`, `working`, `done`, `error`, in `status`"
    );
    let bare = json!({"session_id": id, "message": {"role": "user", "content": "hi"}});
    let (_, text) = bed.err("session::append", bare).await;
    assert_eq!(text, r#"invalid type: string "hi", expected a sequence, in `message`"#);
    let (code, text) = bed.err("session::get", json!({"other": 1})).await;
    assert_eq!(code, "session/malformed_request");
    assert_eq!(text, "missing field `session_id`", "it is in none of those that are there");
    assert_eq!(bed.err("session::get", json!([id])).await.0, "session/malformed_request");
    let (code, text) = bed.err("session::nope", json!({})).await;
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("session/function_not_found", "Function session::nope not found")
    );
}

async fn every_kind_of_message_comes_back_as_it_was(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    let messages = [
        json!({"role": "user", "timestamp": 1, "content": [
            {"type": "text", "text": "hé\u{0}\n"}, {"type": "image", "mime": "image/png", "data": "AA=="}]}),
        json!({"role": "assistant", "timestamp": -5, "stop_reason": "function_call", "model": "m", "provider": "p",
            "native_stop_reason": "tool_use", "error_message": "e", "error_kind": "rate_limited",
            "warnings": ["w"], "usage": {"input": 1, "cost_usd": 0.25}, "content": [
            {"type": "thinking", "text": "hm", "signature": "sig"},
            {"type": "function_call", "id": "c", "function_id": "f", "arguments": {"a": [1.5, null]}}]}),
        json!({"role": "function_result", "timestamp": 9_007_199_254_740_993_i64, "function_call_id": "c",
            "function_id": "f", "details": {"k": "v"}, "is_error": true, "content": [
            {"type": "function_result", "function_call_id": "c", "is_error": false, "content": [
                {"type": "text", "text": "inner"}]}]}),
        json!({"role": "custom", "timestamp": 0, "custom_type": "notice", "display": "badge",
            "details": [1], "content": []}),
    ];
    for message in &messages {
        bed.append(&id, json!({"message": message})).await;
    }
    bed.reopen().await;
    let back = bed.ok("session::messages", json!({"session_id": id})).await;
    for (item, message) in back["messages"].as_array().unwrap().iter().zip(&messages) {
        assert_eq!(&item["message"], message);
    }
}

async fn bookkeeping_of_a_known_kind_is_a_custom_entry(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    let payloads = [
        json!({"custom_type": "bough.model_change", "data": {"provider": "p", "model_id": "m", "more": 1}}),
        json!({"custom_type": "bough.tomorrow", "data": {"unknown": [true]}}),
        json!({"custom_type": "compaction", "data": {"the": "application's own"}}),
    ];
    for payload in &payloads {
        bed.append(&id, json!({"custom": payload})).await;
    }
    bed.reopen().await;
    let back = bed.ok("session::messages", json!({"session_id": id, "include_custom": true})).await;
    let back: Vec<_> =
        back["messages"].as_array().unwrap().iter().map(|item| item["custom"].clone()).collect();
    assert_eq!(back, payloads);
}
