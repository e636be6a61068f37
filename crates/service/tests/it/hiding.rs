//! Entries that are hidden: from every read, for good, and paths lead through them.

use crate::common::{TestService, text, user};
use bough_service::limits::HIDE_ENTRIES_MAX;
use bough_service::{EventFilter, EventKind, StartAt};
use serde_json::{Value, json};

on_every_store!(
    a_hidden_entry_is_in_no_read,
    paths_lead_through_hidden_entries,
    trees_and_siblings_leave_hidden_entries_out,
    hiding_is_repeatable_and_all_or_nothing,
    nothing_can_be_done_to_a_hidden_entry,
    the_leaf_moves_to_what_is_left,
    a_message_that_streams_can_be_hidden,
    documents_are_found_behind_hidden_ones,
    counts_follow_and_usage_stays,
    the_feed_says_what_was_hidden_and_never_what_it_said,
    a_whole_fork_keeps_hidden_entries_hidden,
    a_context_begins_at_a_kept_entry_that_was_hidden,
    hidden_and_appended_at_once,
);

const SECRET: &str = "the secret words";

async fn hide(bed: &TestService, session: &str, entries: &[&str]) -> Value {
    bed.ok("session::hide-entries", json!({"session_id": session, "entry_ids": entries})).await
}

/// A session that says `a`, the secret and `c`, and the ids of the three.
async fn session(bed: &TestService) -> (String, [String; 3]) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    let b = bed.say(&id, "draft").await;
    bed.update(&id, &b, SECRET).await;
    let c = bed.say(&id, "c").await;
    (id, [a, b, c])
}

async fn a_hidden_entry_is_in_no_read(mut bed: TestService) {
    let (id, [a, b, c]) = session(&bed).await;
    assert_eq!(hide(&bed, &id, &[&b]).await, json!({"hidden": 1}));
    for _ in 0..2 {
        let of_session = json!({"session_id": id, "include_custom": true});
        for function in [
            "messages",
            "messages-tail",
            "path",
            "path-tail",
            "context",
            "entries",
            "branches",
            "tree",
        ] {
            let answer = bed.ok(&format!("session::{function}"), of_session.clone()).await;
            assert!(!answer.to_string().contains(SECRET), "{function}: {answer}");
            let is_shown = answer.to_string().contains(&format!(r#""entry_id":"{b}""#));
            assert!(!is_shown, "{function}: {answer}");
            assert!(!answer.to_string().contains("bough.hidden"), "{function}: {answer}");
        }
        let of_entry = json!({"session_id": id, "entry_id": b});
        assert_eq!(bed.ok("session::entry", of_entry.clone()).await, Value::Null);
        assert_eq!(bed.ok("session::get-message", of_entry).await, Value::Null);
        let by_ids = json!({"session_id": id, "ids": [a, b, c]});
        let found = bed.ok("session::entries", by_ids).await;
        assert_eq!(found["entries"].as_array().unwrap().len(), 2);
        let records = json!({"op": "records", "after": {"seq": 0, "step": 0}, "limit": 100});
        let raw = json!({"session_id": id, "read": records});
        let raw = bed.ok("session::raw", raw).await.to_string();
        assert!(raw.contains(&a) && !raw.contains(SECRET) && !raw.contains("draft"), "{raw}");
        bed.reopen().await;
    }
}

async fn paths_lead_through_hidden_entries(bed: TestService) {
    let (id, [a, b, c]) = session(&bed).await;
    let first = bed.ok("session::messages", json!({"session_id": id, "limit": 2})).await;
    hide(&bed, &id, &[&b]).await;
    assert_eq!(bed.texts(&id).await, ["a", "c"]);
    let rest = json!({"session_id": id, "limit": 2, "cursor": first["next_cursor"]});
    let rest = bed.ok("session::messages", rest).await;
    let rest: Vec<_> =
        rest["messages"].as_array().unwrap().iter().map(|item| text(&item["message"])).collect();
    assert_eq!(rest, ["c"], "a page goes on behind an entry that was hidden since");
    let d = bed.append(&id, json!({"message": user("d"), "parent_id": c})).await;
    assert_eq!(d["parent_id"], json!(c));
    hide(&bed, &id, &[&a]).await;
    assert_eq!(bed.texts(&id).await, ["c", "d"]);
    let pages = bed.pages("session::messages", json!({"session_id": id, "limit": 1})).await;
    assert_eq!(json!(pages), json!([c, d["entry_id"]]));
}

async fn trees_and_siblings_leave_hidden_entries_out(bed: TestService) {
    let (id, [a, b, c]) = session(&bed).await;
    let mut others = Vec::new();
    for text in ["x", "y"] {
        let other = bed.append(&id, json!({"message": user(text), "parent_id": a})).await;
        others.push(other["entry_id"].as_str().unwrap().to_owned());
    }
    hide(&bed, &id, &[&b, &others[0]]).await;
    let tree = bed.ok("session::tree", json!({"session_id": id})).await;
    let nodes: Vec<_> = tree["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["entry_id"].clone(), node["parent_id"].clone()))
        .collect();
    let above = json!(a);
    assert_eq!(
        nodes,
        [(above.clone(), Value::Null), (json!(c), above.clone()), (json!(others[1]), above)]
    );
    let path = bed.ok("session::path", json!({"session_id": id})).await;
    let last = path["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["entry_id"], json!(others[1]));
    assert!(last.get("siblings").is_none(), "{last}");
    let compare = json!({"session_id": id, "left": c, "right": others[1]});
    let compared = bed.ok("session::compare", compare).await;
    assert_eq!(compared["common_entry_id"], json!(a));
    let hidden = json!({"session_id": id, "left": c, "right": b});
    assert_eq!(bed.err("session::compare", hidden).await.0, "session/entry_not_found");
}

async fn hiding_is_repeatable_and_all_or_nothing(bed: TestService) {
    let (id, [a, b, c]) = session(&bed).await;
    let request = |entries: Vec<&str>| json!({"session_id": id, "entry_ids": entries});
    let (code, _) = bed.err("session::hide-entries", request(vec![&a, "nothing"])).await;
    assert_eq!(code, "session/entry_not_found");
    assert_eq!(bed.texts(&id).await, ["a", SECRET, "c"], "nothing was hidden");
    assert_eq!(hide(&bed, &id, &[&b, &b, &a]).await, json!({"hidden": 2}));
    assert_eq!(hide(&bed, &id, &[&a, &b]).await, json!({"hidden": 0}));
    assert_eq!(hide(&bed, &id, &[]).await, json!({"hidden": 0}));
    assert_eq!(bed.texts(&id).await, ["c"]);
    let many = vec![c.as_str(); HIDE_ENTRIES_MAX + 1];
    assert_eq!(bed.err("session::hide-entries", request(many)).await.0, "session/too_large");
    let elsewhere = json!({"session_id": "nowhere", "entry_ids": [c]});
    assert_eq!(bed.err("session::hide-entries", elsewhere).await.0, "session/not_found");
}

async fn nothing_can_be_done_to_a_hidden_entry(bed: TestService) {
    let (id, [_, b, _]) = session(&bed).await;
    hide(&bed, &id, &[&b]).await;
    let entry = json!({"session_id": id, "entry_id": b});
    let with = |member: &str, value: Value| {
        let mut request = entry.clone();
        request[member] = value;
        request
    };
    let content = json!([{"type": "text", "text": "back"}]);
    let refused = [
        ("update-message", with("content", content), "session/entry_not_found"),
        ("set-active-leaf", entry.clone(), "session/entry_not_found"),
        ("set-label", with("label", json!("x")), "session/entry_not_found"),
        ("fork", entry.clone(), "session/entry_not_found"),
    ];
    for (function, request, code) in refused {
        let refused = bed.err(&format!("session::{function}"), request).await;
        assert_eq!(refused.0, code, "{function}: {}", refused.1);
    }
    let below = json!({"session_id": id, "message": user("x"), "parent_id": b});
    assert_eq!(bed.err("session::append", below).await.0, "session/parent_not_found");
    let path = json!({"session_id": id, "from_entry_id": b});
    assert_eq!(bed.err("session::messages", path).await.0, "session/entry_not_found");
    let again = json!({"session_id": id, "entry_id": b, "message": user("again")});
    bed.ok("session::append", again).await;
    assert_eq!(bed.texts(&id).await, ["a", "c"], "an id is not used again");
}

async fn the_leaf_moves_to_what_is_left(bed: TestService) {
    let (id, [a, b, c]) = session(&bed).await;
    hide(&bed, &id, &[&b]).await;
    hide(&bed, &id, &[&c]).await;
    let described = bed.ok("session::describe", json!({"session_id": id})).await;
    assert_eq!(described["active_leaf"], json!(a));
    let branches = bed.ok("session::branches", json!({"session_id": id})).await;
    assert_eq!(branches["branches"].as_array().unwrap().len(), 1);
    assert_eq!(branches["branches"][0]["entry_id"], json!(a));
    assert_eq!(branches["branches"][0]["depth"], json!(1));
    let next = bed.append(&id, json!({"message": user("next")})).await;
    assert_eq!(next["parent_id"], json!(a));
    let branches = bed.ok("session::branches", json!({"session_id": id})).await;
    assert_eq!(branches["branches"].as_array().unwrap().len(), 1, "the hidden branch is none");
    assert_eq!(branches["branches"][0]["entry_id"], next["entry_id"]);
    hide(&bed, &id, &[&a, next["entry_id"].as_str().unwrap()]).await;
    let described = bed.ok("session::describe", json!({"session_id": id})).await;
    assert_eq!(described.get("active_leaf").unwrap_or(&Value::Null), &Value::Null);
    assert_eq!(bed.texts(&id).await, [""; 0]);
    bed.say(&id, "a new beginning").await;
    assert_eq!(bed.texts(&id).await, ["a new beginning"]);
}

async fn a_message_that_streams_can_be_hidden(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "a").await;
    let message = json!({"role": "assistant", "content": [], "timestamp": 1});
    let begun = json!({"session_id": id, "message": message, "stream": true});
    let begun = bed.ok("session::append-entry", begun).await;
    let entry = begun["entry_id"].as_str().unwrap().to_owned();
    let delta = json!({"session_id": id, "entry_id": entry, "block": 0, "text": SECRET});
    bed.ok("session::append-delta", delta.clone()).await;
    hide(&bed, &id, &[&entry]).await;
    assert_eq!(bed.err("session::append-delta", delta.clone()).await.0, "session/entry_not_found");
    bed.reopen().await;
    assert_eq!(bed.err("session::append-delta", delta).await.0, "session/entry_not_found");
    assert_eq!(bed.texts(&id).await, ["a"]);
    bed.say(&id, "b").await;
    assert_eq!(bed.texts(&id).await, ["a", "b"]);
}

async fn documents_are_found_behind_hidden_ones(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    for name in ["d1", "d2", "d3", "d4"] {
        let custom = json!({"custom_type": "doc", "data": {"name": name}});
        let request = json!({"session_id": id, "entry_id": name, "custom": custom});
        bed.ok("session::append-entry", request).await;
    }
    hide(&bed, &id, &["d2", "d4"]).await;
    for _ in 0..2 {
        for (order, names) in [("newest", ["d3", "d1"]), ("oldest", ["d1", "d3"])] {
            let request = json!({"session_id": id, "custom_type": "doc", "order": order});
            let found = bed.ok("session::entries", request).await;
            let found: Vec<_> = found["entries"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["entry_id"].clone())
                .collect();
            assert_eq!(found, names, "{order}");
        }
        bed.reopen().await;
    }
}

async fn counts_follow_and_usage_stays(mut bed: TestService) {
    let id = bed.create(json!({})).await;
    let first = bed.say(&id, SECRET).await;
    let usage =
        json!({"input": 3, "output": 4, "cache_read": 0, "cache_write": 0, "total_tokens": 7});
    let message = json!({
        "role": "assistant", "content": [{"type": "text", "text": "r"}], "timestamp": 1,
        "model": "m", "provider": "p", "usage": usage, "stop_reason": "end",
    });
    let reply = bed.append(&id, json!({"message": message})).await;
    let before = bed.ok("session::usage", json!({"session_id": id})).await;
    hide(&bed, &id, &[&first, reply["entry_id"].as_str().unwrap()]).await;
    for _ in 0..2 {
        assert_eq!(bed.meta(&id).await["message_count"], json!(0));
        let after = bed.ok("session::usage", json!({"session_id": id})).await;
        assert_eq!(after["session"], before["session"], "what was spent stays spent");
        let list = bed.ok("session::list", json!({"query": SECRET})).await;
        assert_eq!(list["sessions"], json!([]), "the preview is gone too");
        bed.reopen().await;
    }
}

async fn the_feed_says_what_was_hidden_and_never_what_it_said(bed: TestService) {
    let (id, [_, b, _]) = session(&bed).await;
    let all = EventFilter::of(EventKind::ALL);
    let mut live = bed.subscribe(all.clone(), StartAt::Now).await;
    hide(&bed, &id, &[&b]).await;
    let (kind, event) = live.event().await;
    assert_eq!(kind.name(), "session::message-removed");
    assert_eq!(event["entry_id"], json!(b));
    let mut again = bed.subscribe(all, StartAt::Start).await;
    let events = again.ready().await;
    assert!(events.iter().any(|(kind, _)| kind.name() == "session::message-removed"));
    for (kind, event) in events {
        let told = event.to_string();
        assert!(!told.contains(SECRET) && !told.contains("draft"), "{kind}: {told}");
    }
}

async fn a_whole_fork_keeps_hidden_entries_hidden(mut bed: TestService) {
    let (id, [a, b, c]) = session(&bed).await;
    hide(&bed, &id, &[&b]).await;
    let request =
        json!({"session_id": id, "whole": true, "keep_ids": true, "new_session_id": "to"});
    bed.ok("session::fork", request).await;
    bed.reopen().await;
    assert_eq!(bed.texts("to").await, ["a", "c"]);
    assert_eq!(bed.meta("to").await["message_count"], json!(2));
    let entry = json!({"session_id": "to", "entry_id": b});
    assert_eq!(bed.ok("session::entry", entry).await, Value::Null);
    let path = bed.ok("session::fork", json!({"session_id": id, "keep_ids": true})).await;
    let copy = path["session_id"].as_str().unwrap();
    assert_eq!(bed.texts(copy).await, ["a", "c"]);
    assert_eq!(bed.entry(copy, &c).await["parent_id"], json!(a));
}

async fn a_context_begins_at_a_kept_entry_that_was_hidden(bed: TestService) {
    let id = bed.create(json!({})).await;
    bed.say(&id, "forgotten").await;
    let kept = bed.say(&id, SECRET).await;
    bed.say(&id, "kept too").await;
    let data = json!({"summary": "before", "first_kept_entry_id": kept, "tokens_before": 1});
    bed.append(&id, json!({"custom": {"custom_type": "bough.compaction", "data": data}})).await;
    hide(&bed, &id, &[&kept]).await;
    let context = bed.ok("session::context", json!({"session_id": id})).await;
    let texts: Vec<_> =
        context["messages"].as_array().unwrap().iter().map(|item| text(&item["message"])).collect();
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(texts[0].contains("before") && texts[1] == "kept too", "{texts:?}");
}

async fn hidden_and_appended_at_once(bed: TestService) {
    let (id, [_, b, c]) = session(&bed).await;
    let append = |n: usize| {
        bed.call("session::append", json!({"session_id": id, "message": user(&n.to_string())}))
    };
    let below = bed.call(
        "session::append",
        json!({"session_id": id, "message": user("below"), "parent_id": c}),
    );
    let hidden = bed.call("session::hide-entries", json!({"session_id": id, "entry_ids": [b, c]}));
    let (first, hidden, below, last) = tokio::join!(append(1), hidden, below, append(2));
    assert_eq!(hidden.unwrap(), json!({"hidden": 2}));
    first.unwrap();
    last.unwrap();
    // Either it came before, or its parent was not there any more.
    assert!(below.is_ok() || below.is_err_and(|error| error.code() == "session/parent_not_found"));
    let raw = bed.ok("session::messages", json!({"session_id": id})).await.to_string();
    assert!(!raw.contains(SECRET), "{raw}");
}
