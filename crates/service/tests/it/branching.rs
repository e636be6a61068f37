//! The tree: forks, leaves, branches, labels, and the views over a path.

use crate::common;
use crate::common::{TestService, assistant, stores, user};
use bough_service::limits::BUILD_BATCH_RECORDS;
use bough_session::SessionId;
use bough_store::StoreExt;
use serde_json::{Value, json};

on_every_store!(
    a_fork_of_a_long_session_is_whole,
    a_fork_copies_the_path_under_fresh_ids,
    a_fork_copies_the_newest_revision_and_starts_to_count_anew,
    a_fork_of_a_compacted_path_keeps_its_context,
    forking_what_is_not_there_is_refused,
    a_fork_has_the_id_that_was_chosen_unless_it_is_taken,
    a_fork_without_an_entry_copies_the_active_path,
    a_whole_fork_has_every_branch_under_the_same_ids,
    a_whole_fork_under_fresh_ids_has_the_same_tree,
    a_fork_of_a_branch_has_the_labels_of_its_own_entries_only,
    the_leaf_moves_anywhere_and_appends_follow_it,
    the_leaf_moves_before_the_first_entry,
    a_leaf_that_is_where_it_should_be_is_not_written,
    a_session_is_read_as_it_is_kept,
    a_branch_is_read_by_its_end,
    branches_are_listed_with_depth_and_label,
    a_label_names_an_entry_until_it_is_taken_away,
    usage_is_summed_for_session_branch_and_model,
    the_context_applies_compactions_and_summaries,
    the_context_fits_a_budget,
);

async fn a_fork_copies_the_path_under_fresh_ids(bed: TestService) {
    let id = bed
        .create(json!({"title": "source", "description": "d", "metadata": {"owner": "u"}}))
        .await;
    let a = bed.append(&id, json!({"message": user("a"), "origin": {"t": 1}})).await;
    bed.append(&id, json!({"custom": {"custom_type": "mark", "data": 7}})).await;
    let c = bed.say(&id, "c").await;
    bed.append(&id, json!({"message": user("sibling"), "parent_id": a["entry_id"]})).await;
    bed.ok("session::set-status", json!({"session_id": id, "status": "error", "reason": "r"}))
        .await;
    let before = bed.meta(&id).await;
    bed.tick(1000);
    let fork = bed.ok("session::fork", json!({"session_id": id, "entry_id": c})).await;
    let now = before["updated_at"].as_i64().unwrap() + 1000;
    assert_eq!(
        fork["meta"],
        json!({
            "session_id": fork["session_id"], "title": "source", "description": "d", "status": "idle",
            "metadata": {"owner": "u"}, "forked_from": id, "created_at": now, "updated_at": now,
            "message_count": 2,
        })
    );
    let copy = fork["session_id"].as_str().unwrap();
    assert_eq!(bed.meta(copy).await, fork["meta"]);
    let path =
        bed.ok("session::messages", json!({"session_id": copy, "include_custom": true})).await;
    let items = path["messages"].as_array().unwrap();
    assert_eq!(items.len(), 3);
    assert_eq!(items[1]["custom"], json!({"custom_type": "mark", "data": 7}));
    let first = bed.entry(copy, items[0]["entry_id"].as_str().unwrap()).await;
    assert_ne!(first["id"], a["entry_id"]);
    assert_eq!(first["timestamp"], a["timestamp"], "copies keep their times");
    assert_eq!(first["origin"], json!({"t": 1}));
    let second = bed.entry(copy, items[1]["entry_id"].as_str().unwrap()).await;
    assert_eq!(second["parent_id"], first["id"]);
    assert_eq!(bed.meta(&id).await, before, "the source is untouched");
    // The two go on apart.
    bed.say(copy, "only here").await;
    assert_eq!(bed.texts(copy).await, ["a", "c", "only here"]);
    assert_eq!(bed.texts(&id).await, ["a", "sibling"]);
    let titled =
        bed.ok("session::fork", json!({"session_id": id, "entry_id": c, "title": ""})).await;
    assert_eq!(titled["meta"]["title"], json!(""));
}

async fn a_fork_copies_the_newest_revision_and_starts_to_count_anew(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "draft").await;
    bed.update(&id, &entry, "final").await;
    let fork = bed.ok("session::fork", json!({"session_id": id, "entry_id": entry})).await;
    let copy = fork["session_id"].as_str().unwrap();
    bed.reopen().await;
    assert_eq!(bed.texts(copy).await, ["final"]);
    let items = bed.ok("session::messages", json!({"session_id": copy})).await;
    let copied = bed.entry(copy, items["messages"][0]["entry_id"].as_str().unwrap()).await;
    assert_eq!(copied["revision"], json!(0));
    assert_eq!(bed.entry(&id, &entry).await["revision"], json!(1));
}

async fn a_fork_of_a_compacted_path_keeps_its_context(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "forgotten").await;
    let kept = bed.say(&id, "kept").await;
    let compaction = compaction("what came before", &kept);
    bed.append(&id, json!({"custom": compaction})).await;
    let last = bed.say(&id, "after").await;
    let context = context_texts(&bed, json!({"session_id": id})).await;
    assert_eq!(context.len(), 3);
    let fork = bed.ok("session::fork", json!({"session_id": id, "entry_id": last})).await;
    let copied = context_texts(&bed, json!({"session_id": fork["session_id"]})).await;
    assert_eq!(copied, context);
}

async fn forking_what_is_not_there_is_refused(bed: TestService) {
    let id = bed.create(json!({})).await;
    let (code, _) = bed.err("session::fork", json!({"session_id": "no", "entry_id": "e"})).await;
    assert_eq!(code, "session/not_found");
    let (code, text) = bed.err("session::fork", json!({"session_id": id, "entry_id": "e"})).await;
    assert_eq!(code, "session/entry_not_found");
    assert_eq!(text, format!("entry e does not exist in session {id}"));
}

async fn a_fork_has_the_id_that_was_chosen_unless_it_is_taken(bed: TestService) {
    let id = bed.create(json!({})).await;
    let entry = bed.say(&id, "a").await;
    let fork = |to: &str| json!({"session_id": id, "entry_id": entry, "new_session_id": to});
    let made = bed.ok("session::fork", fork("chosen")).await;
    assert_eq!((&made["session_id"], &made["meta"]["forked_from"]), (&json!("chosen"), &json!(id)));
    assert_eq!(bed.texts("chosen").await, ["a"]);
    for taken in ["chosen", &id] {
        let (code, _) = bed.err("session::fork", fork(taken)).await;
        assert_eq!(code, "session/already_exists");
    }
    assert_eq!(bed.texts("chosen").await, ["a"], "what was there is untouched");
    assert_eq!(bed.err("session::fork", fork("")).await.0, "session/invalid_request");
}

async fn a_fork_without_an_entry_copies_the_active_path(bed: TestService) {
    let id = bed.create(json!({})).await;
    let empty = bed.ok("session::fork", json!({"session_id": id})).await;
    assert_eq!(empty["meta"]["message_count"], json!(0));
    let a = bed.say(&id, "a").await;
    bed.say(&id, "b").await;
    bed.append(&id, json!({"message": user("c"), "parent_id": a})).await;
    let fork = bed.ok("session::fork", json!({"session_id": id, "keep_ids": true})).await;
    let copy = fork["session_id"].as_str().unwrap();
    assert_eq!(bed.texts(copy).await, ["a", "c"]);
    assert_eq!(bed.entry(copy, &a).await["id"], json!(a));
}

/// A session with two branches, a label, documents that name each other, and a leaf that was moved back.
async fn tree(bed: &TestService) -> (String, Vec<String>) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    bed.update(&id, &b, "b, again").await;
    let c = bed.append(&id, json!({"message": user("c"), "parent_id": a})).await;
    let c = c["entry_id"].as_str().unwrap().to_owned();
    bed.ok("session::set-label", json!({"session_id": id, "entry_id": b, "label": "here"})).await;
    for name in ["d1", "d2"] {
        let custom = json!({"custom_type": "doc", "data": {"name": name}});
        let request = json!({"session_id": id, "entry_id": name, "custom": custom});
        bed.ok("session::append-entry", request).await;
    }
    bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": b})).await;
    (id, vec![a, b, c, "d1".to_owned(), "d2".to_owned()])
}

async fn documents(bed: &TestService, session: &str) -> Vec<Value> {
    let request = json!({"session_id": session, "custom_type": "doc", "order": "newest"});
    let found = bed.ok("session::entries", request).await;
    found["entries"].as_array().unwrap().iter().map(|item| item["custom"].clone()).collect()
}

async fn a_whole_fork_has_every_branch_under_the_same_ids(mut bed: TestService) {
    let (id, entries) = tree(&bed).await;
    let request =
        json!({"session_id": id, "whole": true, "keep_ids": true, "new_session_id": "to"});
    bed.ok("session::fork", request).await;
    bed.reopen().await;
    for entry in &entries {
        let (source, copy) = (bed.entry(&id, entry).await, bed.entry("to", entry).await);
        for field in ["id", "parent_id", "timestamp", "message", "data"] {
            assert_eq!(copy[field], source[field], "{field} of {entry}");
        }
    }
    assert_eq!(bed.texts("to").await, ["a", "b, again"], "the leaf is where it was");
    assert_eq!(documents(&bed, "to").await, documents(&bed, &id).await);
    let branches = |session: String| {
        let bed = &bed;
        async move {
            bed.ok("session::branches", json!({"session_id": session})).await["branches"].clone()
        }
    };
    let (source, copy) = (branches(id.clone()).await, branches("to".to_owned()).await);
    let ends = |list: &Value| -> Vec<_> {
        let ends = list.as_array().unwrap().iter();
        ends.map(|end| (end["entry_id"].clone(), end["depth"].clone(), end["label"].clone()))
            .collect()
    };
    assert_eq!(ends(&copy), ends(&source));
    // With an entry, the active path ends there.
    let at = json!({"session_id": id, "whole": true, "keep_ids": true, "entry_id": entries[2]});
    let fork = bed.ok("session::fork", at).await;
    assert_eq!(bed.texts(fork["session_id"].as_str().unwrap()).await, ["a", "c"]);
    let (code, _) =
        bed.err("session::fork", json!({"session_id": id, "whole": true, "entry_id": "x"})).await;
    assert_eq!(code, "session/entry_not_found");
}

async fn a_whole_fork_under_fresh_ids_has_the_same_tree(bed: TestService) {
    let (id, entries) = tree(&bed).await;
    let fork = bed.ok("session::fork", json!({"session_id": id, "whole": true})).await;
    let copy = fork["session_id"].as_str().unwrap();
    assert_eq!(bed.texts(copy).await, ["a", "b, again"]);
    assert_eq!(documents(&bed, copy).await, documents(&bed, &id).await);
    let get = json!({"session_id": copy, "entry_id": entries[0]});
    assert_eq!(bed.ok("session::get-message", get).await, Value::Null);
    let listed = bed.ok("session::branches", json!({"session_id": copy})).await;
    let labels: Vec<_> = listed["branches"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|end| end["label"].as_str())
        .collect();
    assert_eq!(labels, ["here"], "the label names the copy");
}

async fn a_fork_of_a_branch_has_the_labels_of_its_own_entries_only(bed: TestService) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    bed.append(&id, json!({"message": user("c"), "parent_id": a})).await;
    for (entry, label) in [(&b, "elsewhere"), (&a, "here")] {
        let request = json!({"session_id": id, "entry_id": entry, "label": label});
        bed.ok("session::set-label", request).await;
    }
    bed.say(&id, "d").await;
    for keep_ids in [false, true] {
        let request = json!({"session_id": id, "keep_ids": keep_ids});
        let fork = bed.ok("session::fork", request).await;
        let fork = fork["session_id"].as_str().unwrap();
        assert_eq!(bed.texts(fork).await, ["a", "c", "d"]);
        let path = bed.ok("session::path", json!({"session_id": fork})).await;
        let request = json!({"session_id": fork, "custom_type": "bough.label"});
        let found = bed.ok("session::entries", request).await;
        let labels: Vec<_> = found["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| &item["custom"]["data"])
            .collect();
        let first = &path["messages"][0]["entry_id"];
        assert_eq!(labels, [&json!({"label": "here", "target_id": first})]);
    }
}

async fn the_leaf_moves_anywhere_and_appends_follow_it(bed: TestService) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    let before = bed.meta(&id).await;
    bed.tick(10);
    let moved = bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": a})).await;
    assert_eq!(moved, json!({"active_leaf": a}));
    assert_eq!(bed.meta(&id).await, before, "moving the leaf is no activity");
    assert_eq!(bed.texts(&id).await, ["a"]);
    let c = bed.append(&id, json!({"message": user("c")})).await;
    assert_eq!(c["parent_id"], json!(a));
    bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": b})).await;
    assert_eq!(bed.texts(&id).await, ["a", "b"]);
    let (code, _) =
        bed.err("session::set-active-leaf", json!({"session_id": id, "entry_id": "x"})).await;
    assert_eq!(code, "session/entry_not_found");
    let (code, _) =
        bed.err("session::set-active-leaf", json!({"session_id": "x", "entry_id": a})).await;
    assert_eq!(code, "session/not_found");
    let request = json!({"session_id": id, "message": user("d"), "parent_id": "ghost"});
    let (code, text) = bed.err("session::append", request).await;
    assert_eq!(code, "session/parent_not_found");
    assert_eq!(text, format!("parent entry ghost does not exist in session {id}"));
}

async fn a_leaf_that_is_where_it_should_be_is_not_written(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    let session = SessionId::from_stored(id.as_str());
    let store = bed.service.store();
    let before = store.state(&session).await.unwrap().unwrap().head;
    let moved = bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": b})).await;
    assert_eq!(moved, json!({"active_leaf": b}));
    assert_eq!(store.state(&session).await.unwrap().unwrap().head, before);
}

async fn the_leaf_moves_before_the_first_entry(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    let clear = || json!({"session_id": id});
    assert_eq!(bed.ok("session::clear-active-leaf", clear()).await, json!({"moved": true}));
    assert_eq!(bed.ok("session::clear-active-leaf", clear()).await, json!({"moved": false}));
    bed.reopen().await;
    assert!(bed.texts(&id).await.is_empty(), "the path is empty, the entries are there");
    let request = json!({"message": user("first, anew"), "expected_leaf": ""});
    let anew = bed.append(&id, request).await;
    assert_eq!(anew["parent_id"], Value::Null);
    assert_eq!(bed.texts(&id).await, ["first, anew"]);
    let branches = bed.ok("session::branches", json!({"session_id": id})).await;
    let mut ends: Vec<&str> = Vec::new();
    for branch in branches["branches"].as_array().unwrap() {
        ends.push(branch["entry_id"].as_str().unwrap());
    }
    assert_eq!(ends, [anew["entry_id"].as_str().unwrap(), b.as_str()]);
    let (code, _) = bed.err("session::clear-active-leaf", json!({"session_id": "x"})).await;
    assert_eq!(code, "session/not_found");
}

async fn a_session_is_read_as_it_is_kept(bed: TestService) {
    let id = bed.create(json!({"title": "kept"})).await;
    let a = bed.say(&id, "a").await;
    bed.append(&id, json!({"message": user("b"), "parent_id": a})).await;
    bed.append(&id, json!({"message": user("c"), "parent_id": a})).await;
    let read = async |read: Value| {
        let answer = bed.ok("session::raw", json!({"session_id": id, "read": read})).await;
        assert_eq!(answer.get("error"), None);
        answer["ok"].clone()
    };
    assert_eq!(read(json!({"op": "state"})).await["state"]["title"], "kept");
    let start = json!({"seq": 0, "step": 0});
    let records = read(json!({"op": "records", "after": start, "limit": 100})).await;
    let kinds: Vec<_> = records["records"].as_array().unwrap().iter().collect();
    let added = |stored: &&&Value| stored["record"]["kind"] == "entry";
    assert_eq!(kinds.iter().filter(added).count(), 3, "every branch: {records}");
    let one = read(json!({"op": "records", "after": start, "limit": 1})).await;
    assert_eq!(one["records"].as_array().unwrap().len(), 1);
    assert_eq!(one["end"], records["end"]);
    assert_eq!(read(json!({"op": "entry", "entry_id": a})).await["record"]["id"], json!(a));
    assert_eq!(read(json!({"op": "branch_heads", "limit": 9})).await.as_array().unwrap().len(), 2);
    let path =
        read(json!({"op": "path", "query": {"leaf": null, "start": "root", "limit": 9}})).await;
    assert_eq!(path["entries"].as_array().unwrap().len(), 2);
}

async fn a_branch_is_read_by_its_end(bed: TestService) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    bed.append(&id, json!({"message": user("c"), "parent_id": a})).await;
    let read = async |from: &str| {
        let request = json!({"session_id": id, "from_entry_id": from, "limit": 1});
        bed.pages("session::messages", request).await
    };
    assert_eq!(read(&b).await, [a.clone(), b]);
    assert_eq!(read(&a).await, [a]);
}

async fn branches_are_listed_with_depth_and_label(bed: TestService) {
    let id = bed.create(json!({})).await;
    assert_eq!(
        bed.ok("session::branches", json!({"session_id": id})).await,
        json!({"branches": []})
    );
    let a = bed.say(&id, "a").await;
    let b = bed.say(&id, "b").await;
    bed.tick(10);
    let c = bed.append(&id, json!({"message": user("c"), "parent_id": a})).await;
    let listed = bed.ok("session::branches", json!({"session_id": id})).await;
    assert_eq!(listed["active_leaf"], c["entry_id"]);
    let mut heads: Vec<_> = listed["branches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|branch| {
            (
                branch["entry_id"].as_str().unwrap(),
                branch["depth"].as_u64().unwrap(),
                branch["active"].as_bool().unwrap(),
            )
        })
        .collect();
    heads.sort_by_key(|(_, _, active)| *active);
    assert_eq!(heads, [(b.as_str(), 2, false), (c["entry_id"].as_str().unwrap(), 2, true)]);
    let one = bed.ok("session::branches", json!({"session_id": id, "limit": 1})).await;
    assert_eq!(one["branches"], json!([listed["branches"][0]]));
    let next = json!({"session_id": id, "limit": 1, "cursor": one["next_cursor"]});
    let last = bed.ok("session::branches", next).await;
    assert_eq!(last["branches"], json!([listed["branches"][1]]));
    assert_eq!(last.get("next_cursor"), None, "there is no more");
    let other = bed.create(json!({})).await;
    let elsewhere = json!({"session_id": other, "cursor": one["next_cursor"]});
    let (code, _) = bed.err("session::branches", elsewhere).await;
    assert_eq!(code, "session/invalid_cursor");
    bed.ok(
        "session::set-label",
        json!({"session_id": id, "entry_id": c["entry_id"], "label": "try two"}),
    )
    .await;
    let listed = bed.ok("session::branches", json!({"session_id": id})).await;
    let labelled: Vec<_> = listed["branches"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|branch| branch["active"] == json!(true))
        .map(|branch| branch["label"].clone())
        .collect();
    assert_eq!(labelled, [json!("try two")]);
    let (code, _) = bed.err("session::branches", json!({"session_id": "no"})).await;
    assert_eq!(code, "session/not_found");
}

async fn a_label_names_an_entry_until_it_is_taken_away(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let set = async |bed: &TestService, label: Value| {
        bed.ok("session::set-label", json!({"session_id": id, "entry_id": a, "label": label})).await
    };
    assert_eq!(set(&bed, json!("start")).await, json!({"entry_id": a, "label": "start"}));
    let count =
        bed.ok("session::messages", json!({"session_id": id, "include_custom": true})).await;
    assert_eq!(count["messages"].as_array().unwrap().len(), 2);
    // The same label again adds nothing.
    set(&bed, json!("start")).await;
    let again =
        bed.ok("session::messages", json!({"session_id": id, "include_custom": true})).await;
    assert_eq!(again, count);
    assert_eq!(count["messages"][1]["custom"]["custom_type"], json!("bough.label"));
    bed.reopen().await;
    let label =
        bed.ok("session::branches", json!({"session_id": id})).await["branches"][0]["label"]
            .clone();
    assert_eq!(label, json!("start"));
    assert_eq!(set(&bed, Value::Null).await, json!({"entry_id": a}));
    let gone = bed.ok("session::branches", json!({"session_id": id})).await["branches"][0].clone();
    assert!(gone.get("label").is_none(), "{gone}");
    let (code, _) = bed
        .err("session::set-label", json!({"session_id": id, "entry_id": "no", "label": "x"}))
        .await;
    assert_eq!(code, "session/entry_not_found");
}

async fn usage_is_summed_for_session_branch_and_model(bed: TestService) {
    let id = bed.create(json!({})).await;
    let root = bed.say(&id, "q").await;
    let said = async |model: &str, input: u64, cost: f64| {
        let mut message = assistant("a");
        message["model"] = json!(model);
        message["usage"] = json!({"input": input, "output": 1, "cost_usd": cost});
        let request = json!({"message": message, "parent_id": root});
        bed.append(&id, request).await["entry_id"].clone()
    };
    let first = said("small", 10, 0.25).await;
    said("large", 100, 0.5).await;
    let usage = bed.ok("session::usage", json!({"session_id": id})).await;
    assert_eq!(usage["session"]["total"]["input"], json!(110));
    assert_eq!(usage["session"]["total"]["cost_usd"], json!(0.75));
    assert_eq!(usage["session"]["models"]["small"]["input"], json!(10));
    assert_eq!(usage["branch"]["total"]["input"], json!(100));
    let other = bed.ok("session::usage", json!({"session_id": id, "from_entry_id": first})).await;
    assert_eq!(other["branch"]["total"]["input"], json!(10));
    let (code, _) =
        bed.err("session::usage", json!({"session_id": id, "from_entry_id": "no"})).await;
    assert_eq!(code, "session/entry_not_found");
}

async fn the_context_applies_compactions_and_summaries(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "one").await;
    let two = bed.say(&id, "two").await;
    bed.append(&id, json!({"custom": compaction("sum of one", &two)})).await;
    let summary = json!({"custom_type": "bough.branch_summary", "data": {"from_id": "x", "summary": "elsewhere"}});
    bed.append(&id, json!({"custom": summary})).await;
    bed.append(&id, json!({"custom": {"custom_type": "mark"}})).await;
    let last = bed.say(&id, "three").await;
    let texts = context_texts(&bed, json!({"session_id": id})).await;
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(texts[0].contains("sum of one") && texts[2].contains("elsewhere"));
    assert_eq!((texts[1].as_str(), texts[3].as_str()), ("two", "three"));
    let earlier = context_texts(&bed, json!({"session_id": id, "from_entry_id": two})).await;
    assert_eq!(earlier, ["one", "two"]);
    let full = bed.ok("session::context", json!({"session_id": id})).await;
    assert_eq!(full["messages"][3]["entry_id"], json!(last));
    assert_eq!(full["left_out"], json!(0));
}

async fn the_context_fits_a_budget(bed: TestService) {
    let id = bed.create(json!({})).await;
    for _ in 0..10 {
        bed.say(&id, &"x".repeat(40)).await;
    }
    let context = bed.ok("session::context", json!({"session_id": id, "max_tokens": 35})).await;
    assert_eq!(context["messages"].as_array().unwrap().len(), 3);
    assert_eq!(context["estimated_tokens"], json!(30));
    assert_eq!(context["left_out"], json!(7));
    let none = bed.ok("session::context", json!({"session_id": id, "max_tokens": 0})).await;
    assert_eq!(none["messages"], json!([]));
}

fn compaction(summary: &str, first_kept: &str) -> Value {
    json!({
        "custom_type": "bough.compaction",
        "data": {"summary": summary, "first_kept_entry_id": first_kept, "tokens_before": 9},
    })
}

async fn context_texts(bed: &TestService, request: Value) -> Vec<String> {
    let context = bed.ok("session::context", request).await;
    let messages = context["messages"].as_array().unwrap();
    messages.iter().map(|item| common::text(&item["message"])).collect()
}

/// Longer than what is held in memory at a time, with references across the parts.
async fn a_fork_of_a_long_session_is_whole(mut bed: TestService) {
    let id = bed.create(json!({"title": "long"})).await;
    let first = bed.say(&id, "first").await;
    let count = BUILD_BATCH_RECORDS * 2 + 7;
    let messages: Vec<_> = (0..count).map(|number| user(&number.to_string())).collect();
    bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    let compaction = json!({"custom_type": "bough.compaction", "data": {
        "summary": "so far", "first_kept_entry_id": first, "tokens_before": 1,
    }});
    let last = bed.append(&id, json!({"custom": compaction})).await["entry_id"].clone();
    let mut listener = bed.listen().await;
    let fork = bed.ok("session::fork", json!({"session_id": id, "entry_id": last})).await;
    assert_eq!(fork["meta"]["message_count"], json!(count + 1));
    assert_eq!(listener.kinds().await, ["created"], "one session, whole");
    let copy = fork["session_id"].as_str().unwrap().to_owned();
    bed.reopen().await;
    assert_eq!(bed.meta(&copy).await, fork["meta"]);
    let pages = json!({"session_id": copy, "limit": 500, "include_custom": true});
    let copied = bed.pages("session::messages", pages).await;
    let original = bed
        .pages("session::messages", json!({"session_id": id, "limit": 500, "include_custom": true}))
        .await;
    assert_eq!(copied.len(), count + 2);
    assert!(original.iter().all(|entry| !copied.contains(entry)), "under fresh ids");
    let end = bed.entry(&copy, copied.last().unwrap()).await;
    assert_eq!(end["data"]["first_kept_entry_id"], json!(copied[0]), "and names the copy");
    bed.say(&copy, "goes on").await;
    assert_eq!(bed.meta(&copy).await["message_count"], json!(count + 2));
}

#[tokio::test]
async fn a_fork_that_is_given_up_leaves_nothing() {
    let bed = TestService::on(&stores::native()).await;
    let id = bed.create(json!({})).await;
    let messages: Vec<_> = (0..BUILD_BATCH_RECORDS + 1).map(|_| user("x")).collect();
    let many =
        bed.ok("session::append-many", json!({"session_id": id, "messages": messages})).await;
    let request = json!({"session_id": id, "entry_id": many["last_entry_id"]});
    for polls in 0..12 {
        // Polled some times, then dropped, wherever it was.
        let mut fork = Box::pin(bed.call("session::fork", request.clone()));
        for _ in 0..polls {
            let soon = std::time::Duration::from_millis(2);
            if tokio::time::timeout(soon, &mut fork).await.is_ok() {
                break;
            }
        }
    }
    let listed = bed.pages("session::list", json!({})).await;
    for session in listed.iter().filter(|session| **session != id) {
        assert_eq!(bed.meta(session).await["message_count"], json!(BUILD_BATCH_RECORDS + 1));
    }
}
