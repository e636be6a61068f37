//! Reading the messages of a session: pages, roles, branches, cursors.

use crate::common::{TestService, assistant, user};
use serde_json::{Value, json};

on_every_store!(
    messages_are_read_oldest_first_in_pages,
    messages_are_read_newest_first_in_pages,
    roles_leave_out_everything_else,
    a_cursor_belongs_to_its_path_and_filter,
);

async fn messages_are_read_oldest_first_in_pages(bed: TestService) {
    let id = bed.create(json!({})).await;
    assert_eq!(
        bed.ok("session::messages", json!({"session_id": id})).await,
        json!({"messages": []})
    );
    let mut expected = Vec::new();
    for number in 0..10 {
        if number % 3 == 0 {
            bed.append(&id, json!({"custom": {"custom_type": "mark"}})).await;
        }
        expected.push(bed.say(&id, &number.to_string()).await);
    }
    for limit in [1, 3, 9, 10, 11] {
        let seen = bed.pages("session::messages", json!({"session_id": id, "limit": limit})).await;
        assert_eq!(seen, expected, "by {limit}");
    }
    let exact = bed.ok("session::messages", json!({"session_id": id, "limit": 10})).await;
    assert!(exact.get("next_cursor").is_none(), "nothing remains");
    let all = bed
        .pages("session::messages", json!({"session_id": id, "limit": 4, "include_custom": true}))
        .await;
    assert_eq!(all.len(), 14);
    // A page that was begun goes on where it stopped, although the session grew.
    let page = bed.ok("session::messages", json!({"session_id": id, "limit": 9})).await;
    bed.say(&id, "later").await;
    let rest =
        bed.ok("session::messages", json!({"session_id": id, "cursor": page["next_cursor"]})).await;
    assert_eq!(rest["messages"].as_array().unwrap().len(), 2);
}

async fn messages_are_read_newest_first_in_pages(bed: TestService) {
    let id = bed.create(json!({})).await;
    let mut expected = Vec::new();
    for number in 0..7 {
        expected.push(bed.say(&id, &number.to_string()).await);
        bed.append(&id, json!({"custom": {"custom_type": "mark"}})).await;
    }
    expected.reverse();
    for limit in [1, 2, 7, 100] {
        let seen =
            bed.pages("session::messages-tail", json!({"session_id": id, "limit": limit})).await;
        assert_eq!(seen, expected, "by {limit}");
    }
    let from = &expected[3];
    let seen = bed
        .pages(
            "session::messages-tail",
            json!({"session_id": id, "limit": 2, "from_entry_id": from}),
        )
        .await;
    assert_eq!(seen, expected[3..]);
}

async fn roles_leave_out_everything_else(bed: TestService) {
    let id = bed.create(json!({})).await;
    let mine = bed.say(&id, "a").await;
    bed.append(&id, json!({"custom": {"custom_type": "mark"}})).await;
    let note = bed
        .append(&id, json!({"message": {"role": "custom", "custom_type": "n", "content": [], "timestamp": 1}}))
        .await["entry_id"]
        .clone();
    bed.append(&id, json!({"message": assistant("b")})).await;
    let check = async |roles: Value, expected: &[&str]| {
        let request = json!({"session_id": id, "roles": roles, "include_custom": true, "limit": 1});
        assert_eq!(bed.pages("session::messages", request).await, expected, "{roles}");
    };
    check(json!(["user"]), &[&mine]).await;
    check(json!(["custom"]), &[note.as_str().unwrap()]).await;
    check(json!(["user", "custom"]), &[&mine, note.as_str().unwrap()]).await;
    check(json!([]), &[]).await;
    check(json!(["function_result"]), &[]).await;
    let unknown = json!({"session_id": id, "roles": ["robot"]});
    assert_eq!(bed.err("session::messages", unknown).await.0, "session/malformed_request");
}

async fn a_cursor_belongs_to_its_path_and_filter(bed: TestService) {
    let id = bed.create(json!({})).await;
    let a = bed.say(&id, "a").await;
    bed.say(&id, "b").await;
    bed.say(&id, "c").await;
    let page = bed.ok("session::messages", json!({"session_id": id, "limit": 2})).await;
    let cursor = page["next_cursor"].clone();
    let refused = async |request: Value| bed.err("session::messages", request).await.0;
    let other_roles = json!({"session_id": id, "cursor": cursor, "roles": ["assistant"]});
    assert_eq!(refused(other_roles).await, "session/invalid_cursor");
    let other_path = json!({"session_id": id, "cursor": cursor, "from_entry_id": a});
    assert_eq!(refused(other_path).await, "session/invalid_cursor");
    // The path moved away under the cursor.
    bed.append(&id, json!({"message": user("x"), "parent_id": a})).await;
    assert_eq!(
        refused(json!({"session_id": id, "cursor": cursor})).await,
        "session/invalid_cursor"
    );
    for bad in ["", "?", "e30=", "eyJpZCI6MX0="] {
        assert_eq!(
            refused(json!({"session_id": id, "cursor": bad})).await,
            "session/invalid_cursor"
        );
    }
    let gone = json!({"session_id": id, "from_entry_id": "nope"});
    assert_eq!(refused(gone).await, "session/entry_not_found");
}
