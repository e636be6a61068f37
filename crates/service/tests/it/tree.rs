//! The tree of a session: nodes, siblings, two branches beside each other.

use serde_json::{Value, json};

use crate::common::{TestService, user};

on_every_store!(
    nodes_come_in_pages_with_what_they_say_now,
    messages_name_their_siblings,
    siblings_are_messages_also_behind_labels,
    branches_are_compared_from_where_they_part,
);

/// a - b - c, and from a: d - e, and from a: f; the leaf is f.
async fn branched(bed: &TestService) -> (String, Vec<String>) {
    let id = bed.create(json!({})).await;
    let mut ids = Vec::new();
    for (text, parent) in
        [("a", None), ("b", None), ("c", None), ("d", Some(0)), ("e", None), ("f", Some(0))]
    {
        let parent = parent.and_then(|at: usize| ids.get(at).cloned());
        let request = json!({"message": user(text), "parent_id": parent});
        ids.push(bed.append(&id, request).await["entry_id"].as_str().unwrap().to_owned());
    }
    (id, ids)
}

async fn nodes_come_in_pages_with_what_they_say_now(bed: TestService) {
    let (id, ids) = branched(&bed).await;
    bed.ok(
        "session::update-message",
        json!({"session_id": id, "entry_id": ids[1], "content": [{"type": "text", "text": "B"}]}),
    )
    .await;
    bed.ok("session::set-label", json!({"session_id": id, "entry_id": ids[3], "label": "try"}))
        .await;
    let mut nodes: Vec<Value> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page =
            bed.ok("session::tree", json!({"session_id": id, "limit": 2, "cursor": cursor})).await;
        let some = page["nodes"].as_array().unwrap();
        cursor = page["next_cursor"].clone();
        assert!(some.len() == 2 || cursor.is_null(), "a page is full while there are more");
        nodes.extend(some.clone());
        if cursor.is_null() {
            break;
        }
    }
    let said: Vec<_> = nodes.iter().filter(|node| node["role"] == "user").collect();
    let texts: Vec<_> = said.iter().map(|node| node["preview"].as_str().unwrap()).collect();
    assert_eq!(texts, ["a", "B", "c", "d", "e", "f"]);
    assert_eq!(said[3]["parent_id"], json!(ids[0]));
    assert_eq!(said[3]["label"], "try");
}

async fn messages_name_their_siblings(bed: TestService) {
    let (id, ids) = branched(&bed).await;
    let path = bed.ok("session::path", json!({"session_id": id})).await;
    let items = path["messages"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    assert!(items[0].get("siblings").is_none(), "a root alone has none");
    assert_eq!(items[1]["siblings"], json!([ids[1], ids[3], ids[5]]));
    let other =
        bed.ok("session::path-tail", json!({"session_id": id, "from_entry_id": ids[4]})).await;
    let items = other["messages"].as_array().unwrap();
    assert!(items[0].get("siblings").is_none(), "nothing else follows d");
    assert_eq!(items[1]["siblings"], json!([ids[1], ids[3], ids[5]]));
    // After the leaf was moved.
    bed.ok("session::set-active-leaf", json!({"session_id": id, "entry_id": ids[1]})).await;
    let edited = bed.append(&id, json!({"message": user("C")})).await["entry_id"].clone();
    let path = bed.ok("session::path", json!({"session_id": id})).await;
    assert_eq!(path["messages"][2]["siblings"], json!([ids[2], edited]));
    // Branches that grow in turns have no siblings for it.
    let more = json!({"message": user("e2"), "parent_id": ids[4]});
    let more = bed.append(&id, more).await["entry_id"].clone();
    let path = bed.ok("session::path", json!({"session_id": id, "from_entry_id": more})).await;
    assert!(path["messages"][3].get("siblings").is_none());
    // A second root.
    bed.ok("session::clear-active-leaf", json!({"session_id": id})).await;
    let root = bed.append(&id, json!({"message": user("r")})).await["entry_id"].clone();
    let path = bed.ok("session::path", json!({"session_id": id})).await;
    assert_eq!(path["messages"][0]["siblings"], json!([ids[0], root]));
}

/// Where a sibling is a label, the message that follows the label is meant.
async fn siblings_are_messages_also_behind_labels(bed: TestService) {
    let id = bed.create(json!({})).await;
    let message = async |name: &str, parent: Option<&str>| {
        let request = json!({"message": user(name), "entry_id": name, "parent_id": parent});
        bed.append(&id, request).await;
    };
    let siblings = async |leaf: &str| {
        let request = json!({"session_id": id, "from_entry_id": leaf});
        let path = bed.ok("session::path", request).await;
        path["messages"].as_array().unwrap().last().unwrap()["siblings"].clone()
    };
    let label = async |entry: &str| {
        let request = json!({"session_id": id, "entry_id": entry, "label": "here"});
        bed.ok("session::set-label", request).await;
    };
    message("m1", None).await;
    message("m2", None).await;
    label("m2").await;
    label("m1").await;
    message("m3", None).await;
    message("m4", Some("m2")).await;
    assert_eq!(siblings("m4").await, json!(["m3", "m4"]));
    assert_eq!(siblings("m3").await, json!(["m3", "m4"]), "the same from either of them");
    assert_eq!(siblings("m2").await, Value::Null);
    // A label with nothing below it is no place to switch to.
    message("m5", None).await;
    label("m5").await;
    message("m6", Some("m5")).await;
    assert_eq!(siblings("m6").await, Value::Null);
    // The tree ends with the label's own entry; a session's leaf is the message, and whoever knows it may append.
    label("m6").await;
    let described = bed.ok("session::describe", json!({"session_id": id})).await;
    assert_eq!(described["active_leaf"], json!("m6"));
    let tree = bed.ok("session::tree", json!({"session_id": id})).await;
    assert_ne!(tree["active_leaf"], json!("m6"));
    let next = json!({"message": user("m7"), "entry_id": "m7", "expected_leaf": "m6"});
    bed.append(&id, next).await;
    let leaf = tree["active_leaf"].as_str().unwrap();
    let (code, _) = bed
        .err(
            "session::append",
            json!({"session_id": id, "message": user("late"), "expected_leaf": leaf}),
        )
        .await;
    assert_eq!(code, "session/leaf_conflict");
}

async fn branches_are_compared_from_where_they_part(bed: TestService) {
    let (id, ids) = branched(&bed).await;
    let compare = async |left: &str, right: &str| {
        bed.ok("session::compare", json!({"session_id": id, "left": left, "right": right})).await
    };
    let found = compare(&ids[2], &ids[4]).await;
    assert_eq!(found["common_entry_id"], json!(ids[0]));
    let side = |name: &str| -> Vec<Value> {
        let entries = found[name]["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["entry_id"].clone()).collect()
    };
    assert_eq!(side("left"), [json!(ids[1]), json!(ids[2])]);
    assert_eq!(side("right"), [json!(ids[3]), json!(ids[4])]);
    assert_eq!(found["right"]["count"], 2);
    let inside = compare(&ids[0], &ids[5]).await;
    assert_eq!(inside["common_entry_id"], json!(ids[0]));
    assert_eq!((&inside["left"]["count"], &inside["right"]["count"]), (&json!(0), &json!(1)));
    let (code, _) = bed
        .err("session::compare", json!({"session_id": id, "left": ids[0], "right": "none"}))
        .await;
    assert_eq!(code, "session/entry_not_found");
}
