//! Searching with the real program: alone, beside a server, over HTTP, and after the server was killed.
#![expect(clippy::disallowed_methods, reason = "tests make files of their own")]

use crate::common::{Changed, Place, Server, user};
use bough_session::EntryId;
use serde_json::{Value, json};

fn entries(found: &Value) -> Vec<&str> {
    let hits = found["hits"].as_array().unwrap();
    hits.iter().filter_map(|hit| hit["entry_id"].as_str()).collect()
}

#[test]
fn what_was_said_is_found_with_a_way_to_open_it() {
    let place = Place::new();
    let (session, entry_ids) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let found = place.json(&["search", "fixed"]);
    assert_eq!(entries(&found), [entry_ids[3].as_str()]);
    assert_eq!(found["hits"][0]["snippet"]["highlights"], json!([[0, 5]]));
    assert_eq!(found["index"]["is_complete"], json!(true));
    let shown = place.run(&["search", "src/date.rs", "tool:read"]);
    assert!(shown.out.contains("Date parser") && shown.out.contains("src/date.rs"), "{shown:?}");
    assert!(
        shown.err.contains(&format!("bough show {session} --leaf {}", entry_ids[1])),
        "{shown:?}"
    );
    let colored = place.ok(&["search", "fixed", "--color", "always"]);
    assert!(colored.contains("\u{1b}[33mFixed\u{1b}[0m"), "{colored:?}");
    let one = place.json(&["search", "\"date parser\"", "is:title"]);
    assert_eq!(one["hits"].as_array().unwrap().len(), 1);
    assert_eq!(entries(&place.json(&["search", "世界"])), [entry_ids[5].as_str()]);
    assert_eq!(place.run(&["search", "nowhere"]).out, "");
}

/// Every byte of a text as a URL has it.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[test]
fn planted_words_are_found_by_the_command_and_over_http_alike() {
    let place = Place::new();
    let (session, planted) = place.with(async |sessions| sessions.planted().await);
    let check = |found: &Value, query: &str, entry: Option<&bough_session::EntryId>| {
        let hits = found["hits"].as_array().unwrap();
        assert_eq!(hits.len(), 1, "{query}: {found}");
        assert_eq!(hits[0]["entry_id"], json!(entry), "{query}");
        assert_eq!(hits[0]["meta"]["session_id"], json!(session), "{query}");
        let highlights = hits[0]["snippet"]["highlights"].as_array().unwrap();
        assert!(!highlights.is_empty(), "{query}: {found}");
    };
    for (query, entry) in &planted {
        check(&place.json(&["search", query]), query, entry.as_ref());
    }
    let server = Server::start(&place);
    for (query, entry) in &planted {
        let path = format!("/v1/search?query={}", encoded(query));
        let found = loop {
            let found = server.http("GET", &path, None);
            if found["index"]["is_complete"] == json!(true) {
                break found;
            }
        };
        check(&found, query, entry.as_ref());
        let command = place.json(&["search", query, "--server", &server.address]);
        check(&command, query, entry.as_ref());
    }
    let listed = server.http("GET", "/v1/sessions?query=plantedtitle", None);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(server.http("GET", "/v1/sessions?query=nowhere", None)["sessions"], json!([]));
}

/// Searches for each word of a changed session. Without an active leaf, the session is deleted.
#[track_caller]
fn check_changed(changed: &Changed, leaf: Option<&EntryId>, search: impl Fn(&str) -> Value) {
    let Changed { revised, left, right, .. } = changed;
    for (query, entry, revision) in [
        ("revisedword", Some(revised), Value::Null),
        ("outdatedword", None, Value::Null),
        ("outdatedword is:old", Some(revised), json!(0)),
        ("revisedword is:old", None, Value::Null),
        ("leftword", Some(left), Value::Null),
        ("rightword", Some(right), Value::Null),
    ] {
        let found = search(query);
        let hit = |hit: &Value| {
            json!([hit["entry_id"], hit["revision"], hit["on_active_path"] == json!(true)])
        };
        let hits: Vec<Value> = found["hits"].as_array().unwrap().iter().map(hit).collect();
        let expected = entry
            .zip(leaf)
            .map(|(entry, leaf)| json!([entry, revision, entry == leaf || entry == revised]));
        assert_eq!(hits, Vec::from_iter(expected), "{query}: {found}");
    }
}

#[test]
fn a_revision_a_switched_branch_and_a_deleted_session_are_searched_by_the_command_and_over_http_alike()
 {
    let place = Place::new();
    let changed = place.with(async |sessions| sessions.changed().await);
    let session = changed.session.as_str();
    check_changed(&changed, Some(&changed.right), |query| place.json(&["search", query]));
    let server = Server::start(&place);
    let through = ["--server", &server.address];
    let check = |leaf: Option<&EntryId>| {
        check_changed(&changed, leaf, |query| {
            let path = format!("/v1/search?query={}", encoded(query));
            loop {
                let found = server.http("GET", &path, None);
                if found["index"]["is_complete"] == json!(true) {
                    return found;
                }
            }
        });
        check_changed(&changed, leaf, |query| {
            place.json(&[&["search", query], &through[..]].concat())
        });
    };
    check(Some(&changed.right));
    let leaf = json!({"entry_id": changed.left});
    server.http("PUT", &format!("/v1/sessions/{session}/leaf"), Some(&leaf));
    check(Some(&changed.left));
    place.ok(&[&["rm", session, "--yes"], &through[..]].concat());
    check(None);
    server.http("POST", &format!("/v1/trash/{session}/undelete"), None);
    check(Some(&changed.left));
    let content = json!({"content": "a newestword"});
    server.http(
        "PUT",
        &format!("/v1/sessions/{session}/entries/{}", changed.revised),
        Some(&content),
    );
    drop(server);
    let found = |query: &str| entries(&place.json(&["search", query])).len();
    assert_eq!(
        ["newestword", "revisedword", "revisedword is:old", "outdatedword is:old"].map(found),
        [1, 0, 1, 1]
    );
    place.ok(&["rm", session, "--yes"]);
    check_changed(&changed, None, |query| place.json(&["search", query]));
}

#[test]
fn a_whole_id_names_one_session_and_a_tilde_the_home_directory() {
    let place = Place::new();
    let ids = place.with(async |sessions| sessions.alike(&place.file("my work")).await);
    let found = |query: &str| {
        let found = place.json(&["search", query]);
        let hits = found["hits"].as_array().unwrap().clone();
        hits.iter().map(|hit| hit["meta"]["session_id"].clone()).collect::<Vec<_>>()
    };
    for id in &ids {
        let quoted = id.as_str().replace('"', "\"\"");
        assert_eq!(found(&format!("needle session:\"{quoted}\"")), [json!(id)]);
    }
    for query in ["needle session:pla", "needle project:\"~/my work\"", "needle project:~"] {
        assert_eq!(found(query).len(), 3, "{query}");
    }
    assert!(found("needle project:\"~/my\"").is_empty());
    let shown = place.run(&["search", "needle session:\"plan b\""]);
    assert!(shown.err.contains("bough show 'plan b' --leaf e_"), "it can be pasted: {shown:?}");
}

#[test]
fn a_query_that_cannot_be_read_says_what_to_write() {
    let place = Place::new();
    for (query, hint) in [("rol:user", "role"), ("after:soon", "2026-10-01"), ("\"open", "quote")] {
        let refused = place.run(&["search", query]);
        assert_ne!(refused.code, 0, "{query}");
        assert!(refused.err.contains(hint), "{refused:?}");
        assert!(refused.err.contains("bough help search"), "{refused:?}");
    }
    let long = place.run(&["search", &"x".repeat(2000)]);
    assert!(long.code == 2 && long.err.contains("bough help search"), "{long:?}");
    let cursor = place.run(&["search", "x", "--cursor", "nonsense"]);
    assert!(cursor.code == 2 && cursor.err.contains("leave out --cursor"), "{cursor:?}");
    assert_eq!(place.run(&["search", "x", "-n", "0"]).code, 2);
    let pasted = place.run(&["search", "git commit -m fix"]);
    assert!(pasted.err.contains("`-m` leaves out what has that word"), "{pasted:?}");
}

#[test]
fn as_many_hits_are_printed_as_are_wanted() {
    let place = Place::new();
    place.with(async |sessions| {
        let session = sessions.create("Many").await;
        for first in [0, 300] {
            let messages = (first..first + 300).map(|number| user(&format!("needle {number}")));
            sessions.append_many(&session, messages.collect()).await;
        }
    });
    // More than a page of the service.
    let found = place.json(&["search", "needle", "-n", "550"]);
    let unique: std::collections::BTreeSet<&str> = entries(&found).into_iter().collect();
    assert_eq!((entries(&found).len(), unique.len()), (550, 550));
    let cursor = found["next_cursor"].as_str().unwrap();
    let rest = place.json(&["search", "needle", "-n", "550", "--cursor", cursor]);
    assert_eq!((entries(&rest).len(), rest.get("next_cursor")), (50, None));
    assert!(entries(&rest).iter().all(|entry| !unique.contains(entry)));
}

#[test]
fn deleted_sessions_are_not_found_and_restored_ones_are() {
    let place = Place::new();
    let (session, entry_ids) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let session = session.as_str();
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()]);
    place.ok(&["rm", session, "--yes"]);
    assert!(entries(&place.json(&["search", "fixed"])).is_empty());
    place.ok(&["restore", session]);
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()]);
}

#[test]
fn an_index_that_is_gone_or_damaged_is_built_again() {
    let place = Place::new();
    let (_, entry_ids) = place.with(async |sessions| sessions.conversation("Date parser").await);
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()]);
    let index = place.data_dir().join("search.sqlite");
    std::fs::remove_file(&index).unwrap();
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()]);
    for suffix in ["-wal", "-shm"] {
        drop(std::fs::remove_file(place.data_dir().join(format!("search.sqlite{suffix}"))));
    }
    std::fs::write(&index, "not a database ".repeat(999)).unwrap();
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()]);
    assert_eq!(place.json(&["reindex"])["index"]["is_complete"], json!(true));
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()]);
    for command in ["search", "reindex"] {
        // All but the first page: the file opens as before.
        let mut bytes = std::fs::read(&index).unwrap();
        bytes.iter_mut().skip(4096).for_each(|byte| *byte = 0xa5);
        std::fs::write(&index, bytes).unwrap();
        if command == "reindex" {
            assert_eq!(place.json(&["reindex"])["index"]["is_complete"], json!(true));
        }
        assert_eq!(
            entries(&place.json(&["search", "fixed"])),
            [entry_ids[3].as_str()],
            "{command}"
        );
    }
}

#[test]
fn a_server_searches_over_http_and_commands_beside_it_share_its_index() {
    let place = Place::new();
    let (session, entry_ids) =
        place.with(async |sessions| sessions.conversation("Date parser").await);
    let server = Server::start(&place);
    let through = |query: &str| loop {
        let found = place.json(&["search", query, "--server", &server.address]);
        if found["index"]["is_complete"] == json!(true) {
            return found;
        }
    };
    assert_eq!(entries(&through("fixed")), [entry_ids[3].as_str()]);
    place.ok(&["rename", session.as_str(), "Another title", "--server", &server.address]);
    assert_eq!(through("is:title another")["hits"].as_array().unwrap().len(), 1);
    assert_eq!(entries(&place.json(&["search", "fixed"])), [entry_ids[3].as_str()], "beside it");
    assert_eq!(place.json(&["search", "is:title another"])["hits"].as_array().unwrap().len(), 1);
    place.ok(&["reindex", "--server", &server.address]);
    assert_eq!(entries(&through("fixed")), [entry_ids[3].as_str()]);
    for suffix in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(place.data_dir().join(format!("search.sqlite{suffix}"))));
    }
    // The server keeps the lock, so it is the one that builds the index again.
    let beside = loop {
        let found = place.json(&["search", "fixed"]);
        if found["index"]["is_complete"] == json!(true) {
            break found;
        }
    };
    assert_eq!(entries(&beside), [entry_ids[3].as_str()], "after the index was deleted");
}

#[test]
fn a_search_does_not_wait_for_an_index_that_another_process_holds() {
    let place = Place::new();
    place.with(async |sessions| sessions.conversation("Date parser").await);
    let disk = bough_platform::OsDisk::create(place.data_dir()).unwrap();
    let name = bough_platform::RelPath::parse("search.sqlite.lock").unwrap();
    let held = bough_platform::Disk::lock(&disk, &name, "another").unwrap();
    let found = place.json(&["search", "fixed"]);
    let index = &found["index"];
    assert_eq!((&index["is_complete"], &index["is_elsewhere"]), (&json!(false), &json!(true)));
    drop(held);
    assert_eq!(place.json(&["search", "fixed"])["index"]["is_complete"], json!(true));
}

#[test]
fn everything_acknowledged_is_found_after_a_server_was_killed() {
    let place = Place::new();
    let session = place.with(async |sessions| sessions.create("Killed").await);
    for round in 0..3 {
        let server = Server::start(&place);
        for number in 0..20 {
            let body = json!({"message": user(&format!("planted{round}x{number} everywhere"))});
            server.http("POST", &format!("/v1/sessions/{session}/entries"), Some(&body));
        }
        // Killed, as `kill -9` does.
        drop(server);
        let last = place.json(&["search", &format!("planted{round}x19")]);
        assert_eq!(entries(&last).len(), 1, "round {round}");
    }
    let all = place.json(&["search", "everywhere", "-n", "100"]);
    assert_eq!(entries(&all).len(), 60);
    assert_eq!(place.run(&["verify"]).code, 0);
}
