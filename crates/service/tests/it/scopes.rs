//! Scopes: what is not yours is not there, on every function and on every feed.

use crate::common::{TestService, object, user};
use bough_service::{EventFilter, EventKind, Right, Scope, StartAt, functions};
use bough_session::SessionId;
use serde_json::{Value, json};

on_every_store!(
    what_is_not_yours_looks_like_what_is_not_there,
    no_function_shows_another_tenants_words,
    a_scope_is_written_into_what_it_makes,
    nobody_writes_a_session_out_of_their_scope,
    events_stay_within_the_scope,
    rights_and_functions_are_needed,
    the_trash_is_scoped_too,
);

/// The functions that make what they do not find.
const MAKES_SESSIONS: [&str; 6] = [
    "session::create",
    "session::ensure",
    "session::record",
    "session::store::put-meta",
    "session::store::put-entry",
    "session::store::set-active-leaf",
];

/// Words that must never reach the other tenant.
const SECRET: &str = "MARKED-d41d8cd9";

fn tenant(name: &str) -> Scope {
    Scope::new(name, [Right::Read, Right::Write, Right::Admin, Right::Bridge])
        .only_sessions_with(object(json!({"owner": name})))
}

/// One bed, two tenants, and a session of the first with its secret in every place.
async fn two_tenants(bed: TestService) -> (TestService, TestService, String, String) {
    let (ann, bob) = (bed.with_scope(tenant("ann")), bed.with_scope(tenant("bob")));
    let id = ann
        .create(json!({"title": SECRET, "description": SECRET, "metadata": {"note": SECRET}}))
        .await;
    let entry = ann.say(&id, SECRET).await;
    let task = json!({"session_id": id, "task": SECRET});
    ann.ok("session::set-task", task).await;
    let status = json!({"session_id": id, "status": "error", "reason": SECRET});
    ann.ok("session::set-status", status).await;
    (ann, bob, id, entry)
}

/// A request for each function that names the session and the entry.
fn request_for(function: &str, id: &str, entry: &str) -> Value {
    let meta = json!({
        "session_id": id, "title": "x", "description": "", "status": "idle", "metadata": {"owner": "ann"},
        "created_at": 1, "updated_at": 1, "message_count": 0,
    });
    let stored = json!({"kind": "message", "id": "new", "parent_id": null, "timestamp": 1, "message": user("x")});
    match function {
        "session::append" | "session::append-many" => json!({
            "session_id": id, "message": user("x"), "messages": [user("x")], "parent_id": entry,
        }),
        "session::search" => json!({"query": SECRET}),
        "session::record" => json!({"recording_id": id, "events": []}),
        "session::recording" | "session::loop-chain" => {
            json!({"session_id": id, "recording_id": id, "loop_id": "x"})
        }
        "session::list" => json!({"task": SECRET, "archived": "include"}),
        "session::raw" => {
            let after = json!({"seq": 0, "revision": 0});
            json!({"session_id": id, "read": {"op": "records", "after": after, "limit": 10}})
        }
        "session::store::put-meta" => json!({"meta": meta}),
        "session::store::put-entry" => json!({"session_id": id, "entry": stored}),
        "session::store::publish-events" => json!({"events": []}),
        _ => json!({
            "session_id": id, "entry_id": entry, "content": [], "status": "done", "block": 0, "text": "x",
            "label": "x", "title": "x", "after": "start",
        }),
    }
}

async fn what_is_not_yours_looks_like_what_is_not_there(bed: TestService) {
    let (ann, bob, id, entry) = two_tenants(bed).await;
    let before = ann.meta(&id).await;
    for function in functions() {
        // Making a session of this id is the one thing for which a foreign one cannot look like none.
        if MAKES_SESSIONS.contains(&function.id) {
            continue;
        }
        let theirs = bob.call(function.id, request_for(function.id, &id, &entry)).await;
        let absent = bob.call(function.id, request_for(function.id, "absent", &entry)).await;
        match (theirs, absent) {
            (Ok(theirs), Ok(absent)) => assert_eq!(theirs, absent, "{}", function.id),
            (Err(theirs), Err(absent)) => {
                assert_eq!(theirs.code(), absent.code(), "{}", function.id);
                let renamed = theirs.to_string().replace(&id, "absent");
                assert_eq!(renamed, absent.to_string(), "{}", function.id);
            }
            (theirs, absent) => panic!("{}: {theirs:?} but {absent:?}", function.id),
        }
    }
    for function in ["session::ensure", "session::store::put-meta", "session::store::put-entry"] {
        let (code, _) = bob.err(function, request_for(function, &id, &entry)).await;
        assert!(
            ["session/forbidden", "session/not_found"].contains(&code.as_str()),
            "{function}: {code}"
        );
    }
    assert_eq!(ann.meta(&id).await, before, "and nothing of it changed");
    assert_eq!(ann.texts(&id).await, [SECRET]);
}

async fn no_function_shows_another_tenants_words(bed: TestService) {
    let (ann, bob, id, entry) = two_tenants(bed).await;
    let mine = bob.create(json!({"title": "mine"})).await;
    bob.say(&mine, "hello").await;
    for function in functions() {
        for session in [&id, &mine] {
            let answer = bob.call(function.id, request_for(function.id, session, &entry)).await;
            let words = match answer {
                Ok(answer) => answer.to_string(),
                Err(error) => error.to_string(),
            };
            assert!(!words.contains(SECRET), "{}: {words}", function.id);
        }
    }
    drop(ann);
}

async fn a_scope_is_written_into_what_it_makes(bed: TestService) {
    let ann = bed.with_scope(tenant("ann"));
    let made = ann.ok("session::create", json!({"metadata": {"x": 1}})).await;
    assert_eq!(made["meta"]["metadata"], json!({"owner": "ann", "x": 1}));
    let ensured = ann.ok("session::ensure", json!({"session_id": "s"})).await;
    assert_eq!(ensured["meta"]["metadata"], json!({"owner": "ann"}));
    let again = ann.ok("session::ensure", json!({"session_id": "s"})).await;
    assert_eq!(again["created"], json!(false));
    let replaced =
        ann.ok("session::set-meta", json!({"session_id": "s", "metadata": {"y": 2}})).await;
    assert_eq!(replaced["meta"]["metadata"], json!({"owner": "ann", "y": 2}));
    let entry = ann.say("s", "a").await;
    let fork = ann.ok("session::fork", json!({"session_id": "s", "entry_id": entry})).await;
    assert_eq!(fork["meta"]["metadata"], json!({"owner": "ann", "y": 2}));
    assert_eq!(ann.pages("session::list", json!({})).await.len(), 3);
}

async fn nobody_writes_a_session_out_of_their_scope(bed: TestService) {
    let ann = bed.with_scope(tenant("ann"));
    ann.ok("session::ensure", json!({"session_id": "s"})).await;
    for (function, request) in [
        ("session::create", json!({"metadata": {"owner": "bob"}})),
        ("session::ensure", json!({"session_id": "t", "metadata": {"owner": "bob"}})),
        ("session::set-meta", json!({"session_id": "s", "metadata": {"owner": "bob"}})),
    ] {
        assert_eq!(ann.err(function, request).await.0, "session/forbidden", "{function}");
    }
    assert_eq!(ann.meta("s").await["metadata"], json!({"owner": "ann"}));
}

async fn events_stay_within_the_scope(bed: TestService) {
    let (ann, bob, id, _) = two_tenants(bed).await;
    let one = EventFilter::of(EventKind::ALL).in_session(SessionId::from_stored(id.as_str()));
    let mut listeners = [
        bob.subscribe(EventFilter::of(EventKind::ALL), StartAt::Now).await,
        bob.subscribe(EventFilter::of(EventKind::ALL), StartAt::Snapshot).await,
        bob.subscribe(one.clone(), StartAt::Now).await,
        bob.subscribe(one.clone(), StartAt::Start).await,
        bob.subscribe(one, StartAt::Snapshot).await,
    ];
    ann.say(&id, SECRET).await;
    ann.ok("session::set-meta", json!({"session_id": id, "description": SECRET})).await;
    ann.create(json!({"title": SECRET})).await;
    ann.ok("session::delete", json!({"session_id": id})).await;
    for listener in &mut listeners {
        assert_eq!(listener.kinds().await, Vec::<&str>::new());
    }
    bob.create(json!({})).await;
    assert_eq!(listeners[0].kinds().await, ["created"]);
}

async fn rights_and_functions_are_needed(bed: TestService) {
    let id = bed.create(json!({})).await;
    let reader = bed.with_scope(Scope::new("reader", [Right::Read]));
    reader.ok("session::get", json!({"session_id": id})).await;
    for function in functions().iter().filter(|function| function.right != Right::Read) {
        let (code, _) = reader.err(function.id, json!({})).await;
        assert_eq!(code, "session/forbidden", "{}", function.id);
    }
    let writer = bed.with_scope(Scope::new("writer", [Right::Write]));
    writer.say(&id, "a").await;
    assert_eq!(writer.err("session::get", json!({"session_id": id})).await.0, "session/forbidden");
    let denied =
        writer.service.subscribe(&writer.scope, EventFilter::everything(), StartAt::Now).await;
    assert_eq!(denied.unwrap_err().code(), "session/forbidden");
    let few = Scope::owner().only_functions(["session::get".to_owned()]);
    let few = bed.with_scope(few);
    few.ok("session::get", json!({"session_id": id})).await;
    assert_eq!(few.err("session::list", json!({})).await.0, "session/forbidden");
}

async fn the_trash_is_scoped_too(bed: TestService) {
    let (ann, bob, id, _) = two_tenants(bed).await;
    ann.ok("session::delete", json!({"session_id": id})).await;
    assert_eq!(bob.ok("session::list-trash", json!({})).await, json!({"sessions": []}));
    assert_eq!(
        bob.err("session::undelete", json!({"session_id": id})).await.0,
        "session/not_in_trash"
    );
    assert_eq!(bob.ok("session::purge", json!({"session_id": id})).await, json!({"purged": false}));
    ann.ok("session::undelete", json!({"session_id": id})).await;
    assert_eq!(ann.texts(&id).await, [SECRET]);
}
