//! Two processes on one data directory: each hears what the other does, one goes on when the other is killed, and a
//! subscriber who kept a cursor misses nothing, whatever ended the process.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::process::{Other, answer_calls, service_on};
use crate::common::{text, user};
use bough_service::{EventFilter, EventKind, FeedItem, Scope, Service, StartAt, Subscription};
use bough_session::SessionId;
use serde_json::{Value, json};

/// The other process; see [`Other::start`].
#[test]
fn child() {
    answer_calls();
}

/// How long to wait for something that takes a moment.
const PATIENCE: Duration = Duration::from_secs(120);

async fn ok(service: &Service, function: &str, request: Value) -> Value {
    service.call(&Scope::owner(), function, request).await.unwrap()
}

async fn subscribe(service: &Service, start: StartAt) -> Subscription {
    service.subscribe(&Scope::owner(), EventFilter::everything(), start).await.unwrap()
}

fn message(session: &str, text: &str) -> Value {
    json!({"session_id": session, "message": user(text)})
}

/// What was delivered, by session: `created`, or the text of a message.
type Delivered = BTreeMap<String, Vec<String>>;

fn note(told: &mut Delivered, payload: &Value) {
    let said = match payload.get("message") {
        Some(message) => text(message),
        None => "created".to_owned(),
    };
    told.entry(payload["session_id"].as_str().unwrap().to_owned()).or_default().push(said);
}

/// Hears events until there are `count` of them.
async fn hear(subscription: &mut Subscription, told: &mut Delivered, count: usize) {
    while told.values().map(Vec::len).sum::<usize>() < count {
        let item = tokio::time::timeout(PATIENCE, subscription.next()).await;
        match item.expect("everything is told").unwrap() {
            FeedItem::Event(delivery) => note(told, &delivery.event.value()),
            other => panic!("not an event: {other:?}"),
        }
    }
}

/// The same in the other process; gives where it is afterwards.
fn hear_there(other: &mut Other, told: &mut Delivered, mut after: Value, count: usize) -> Value {
    while told.values().map(Vec::len).sum::<usize>() < count {
        let answer = other.ok("session::watch", json!({"after": after, "wait_ms": 20_000}));
        assert_eq!(answer["gap"], json!(false));
        for event in answer["events"].as_array().unwrap() {
            note(told, &event["payload"]);
        }
        after = answer["next"].clone();
    }
    after
}

fn numbers(count: usize) -> Vec<String> {
    std::iter::once("created".to_owned()).chain((0..count).map(|n| n.to_string())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_write_their_sessions_and_each_hears_the_other_once_and_in_order() {
    const MESSAGES: usize = 40;
    let directory = tempfile::tempdir().unwrap();
    let here = service_on(directory.path()).await;
    let mut there = Other::start(directory.path());
    let mut feed = subscribe(&here, StartAt::Now).await;
    let begin = there.ok("session::watch", json!({}))["next"].clone();
    there.order("session::ensure", json!({"session_id": "theirs"}));
    for number in 0..MESSAGES {
        there.order("session::append", message("theirs", &number.to_string()));
    }
    ok(&here, "session::ensure", json!({"session_id": "ours"})).await;
    for number in 0..MESSAGES {
        ok(&here, "session::append", message("ours", &number.to_string())).await;
    }
    for _ in 0..=MESSAGES {
        assert!(there.answer().get("ok").is_some());
    }
    let expected: Delivered =
        ["ours", "theirs"].map(|session| (session.to_owned(), numbers(MESSAGES))).into();
    let count = 2 * (MESSAGES + 1);
    let (mut told_here, mut told_there) = (Delivered::new(), Delivered::new());
    hear(&mut feed, &mut told_here, count).await;
    hear_there(&mut there, &mut told_there, begin, count);
    assert_eq!(told_here, expected);
    assert_eq!(told_there, expected);
    there.end();
}

/// Calls until the other process has given up its lock, which it does when the session rests.
async fn when_unlocked(mut call: impl AsyncFnMut() -> Result<Value, String>) -> Value {
    let started = tokio::time::Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(code) => assert_eq!(code, "session/locked"),
        }
        assert!(started.elapsed() < PATIENCE, "the lock is never given up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_take_turns_at_one_session_and_their_messages_make_one_chain() {
    let directory = tempfile::tempdir().unwrap();
    let here = service_on(directory.path()).await;
    let mut there = Other::start(directory.path());
    let mut feed = subscribe(&here, StartAt::Now).await;
    let begin = there.ok("session::watch", json!({}))["next"].clone();
    ok(&here, "session::ensure", json!({"session_id": "s"})).await;
    ok(&here, "session::append", message("s", "0")).await;
    // While one writes, the other is refused with its name, and reads.
    assert_eq!(there.call("session::append", message("s", "no")), Err("session/locked".into()));
    let page = there.ok("session::messages", json!({"session_id": "s"}));
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
    when_unlocked(async || there.call("session::append", message("s", "1"))).await;
    let second = when_unlocked(async || {
        let call = here.call(&Scope::owner(), "session::append", message("s", "2")).await;
        call.map_err(|error| error.code().to_owned())
    })
    .await;
    let (mut told_here, mut told_there) = (Delivered::new(), Delivered::new());
    hear(&mut feed, &mut told_here, 4).await;
    hear_there(&mut there, &mut told_there, begin, 4);
    let expected: Delivered = [("s".to_owned(), numbers(3))].into();
    assert_eq!(told_here, expected);
    assert_eq!(told_there, expected);
    let page = there.ok("session::messages", json!({"session_id": "s"}));
    let texts: Vec<_> =
        page["messages"].as_array().unwrap().iter().map(|item| text(&item["message"])).collect();
    assert_eq!(texts, ["0", "1", "2"], "one chain: nobody branched off");
    assert_eq!(page["messages"][2]["entry_id"], second["entry_id"]);
    there.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_goes_on_with_the_session_of_one_that_was_killed_and_tells_what_it_did() {
    let directory = tempfile::tempdir().unwrap();
    let here = service_on(directory.path()).await;
    let mut feed = subscribe(&here, StartAt::Now).await;
    let mut there = Other::start(directory.path());
    there.ok("session::ensure", json!({"session_id": "quiet"}));
    there.ok("session::ensure", json!({"session_id": "s"}));
    for number in 0..20 {
        there.ok("session::append", message("s", &number.to_string()));
    }
    there.ok("session::append", message("quiet", "0"));
    // Killed before it could write down for others what it did.
    there.kill();
    ok(&here, "session::append", message("s", "20")).await;
    let mut told = Delivered::new();
    hear(&mut feed, &mut told, 24).await;
    let expected: Delivered =
        [("s".to_owned(), numbers(21)), ("quiet".to_owned(), numbers(1))].into();
    assert_eq!(told, expected, "also of the session that nobody has written to since");
}

/// Rounds of this: a process writes as fast as it can and is killed at some moment; the next one goes on from the cursor
/// that the subscriber had kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_who_kept_a_cursor_misses_nothing_when_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut cursor = None;
    let mut told = Delivered::new();
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (round, answers) in [3, 30, 11, 1, 47].into_iter().enumerate() {
        let mut there = Other::start(directory.path());
        let after =
            cursor.take().unwrap_or_else(|| there.ok("session::watch", json!({}))["next"].clone());
        let sessions = ["a".to_owned(), "b".to_owned(), format!("new in {round}")];
        let mut orders = Vec::new();
        for session in &sessions {
            there.ok("session::ensure", json!({"session_id": session}));
            said.entry(session.clone()).or_insert_with(|| vec!["created".to_owned()]);
        }
        for number in 0..60 {
            let session = &sessions[number % 3];
            let text = format!("{round}.{number}");
            there.order("session::append", message(session, &text));
            orders.push((session.clone(), text));
        }
        for _ in 0..answers {
            assert!(there.answer().get("ok").is_some());
        }
        let late = there.kill().len();
        let here = service_on(directory.path()).await;
        let mut feed =
            subscribe(&here, StartAt::After(after.as_str().unwrap().parse().unwrap())).await;
        // What was acknowledged was said; what was on its way may have been.
        for (index, (session, text)) in orders.into_iter().enumerate() {
            let page =
                ok(&here, "session::messages", json!({"session_id": session, "limit": 500})).await;
            let kept = page["messages"]
                .as_array()
                .unwrap()
                .iter()
                .any(|item| self::text(&item["message"]) == text);
            assert!(kept || index >= answers + late, "{text} was acknowledged");
            if kept {
                said.get_mut(&session).unwrap().push(text);
            }
        }
        let count = said.values().map(Vec::len).sum();
        hear(&mut feed, &mut told, count).await;
        assert_eq!(told, said, "round {round}");
        assert!(feed.next_ready().await.unwrap().is_none(), "and nothing twice");
        cursor = Some(json!(feed.cursor().unwrap().to_string()));
        here.store().close().await.unwrap();
    }
}

/// Whether a call was refused because the other process writes, or says what `truth` expects of the present.
fn locked_or(answer: &Result<Value, bough_service::ServiceError>, truth: impl Fn(&Value) -> bool) {
    match answer {
        Ok(answer) => assert!(truth(answer), "{answer}"),
        Err(error) => assert_eq!(error.code(), "session/locked", "{error}"),
    }
}

/// What a process remembers of a session that another one has changed since is no answer, also where it writes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_writes_nothing_is_of_the_present() {
    let directory = tempfile::tempdir().unwrap();
    let here = service_on(directory.path()).await;
    let mut there = Other::start(directory.path());
    let s = |more: Value| {
        let mut request = json!({"session_id": "s"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        request
    };
    let owner = Scope::owner();
    let call = async |function: &str, more: Value| here.call(&owner, function, s(more)).await;
    there.ok("session::ensure", s(json!({})));
    there.ok("session::append", s(json!({"entry_id": "a", "message": user("one")})));

    // Each time this process looks once, the other one changes the session, and this process asks again.
    ok(&here, "session::set-status", s(json!({"status": "idle"}))).await;
    there.ok("session::set-status", s(json!({"status": "working"})));
    let answer = call("session::set-status", json!({"status": "idle"})).await;
    locked_or(&answer, |answer| answer["previous_status"] == "working");

    when_unlocked(async || there.call("session::set-status", s(json!({"status": "done"})))).await;
    ok(&here, "session::unarchive", s(json!({}))).await;
    there.ok("session::archive", s(json!({})));
    locked_or(&call("session::unarchive", json!({})).await, |answer| answer["changed"] == true);

    let second = s(json!({"entry_id": "b", "message": user("two")}));
    when_unlocked(async || there.call("session::append", second.clone())).await;
    let refused =
        call("session::append", json!({"message": user("no"), "expected_leaf": "x"})).await;
    assert!(refused.unwrap_err().to_string().contains("b"));
    there.ok("session::append", s(json!({"entry_id": "c", "message": user("three")})));
    let request = json!({"message": user("four"), "expected_leaf": "c"});
    locked_or(&call("session::append", request).await, |answer| answer["entry_id"].is_string());

    when_unlocked(async || there.call("session::set-status", s(json!({"status": "idle"})))).await;
    ok(&here, "session::ensure", s(json!({}))).await;
    there.ok("session::delete", s(json!({})));
    assert_eq!(ok(&here, "session::ensure", s(json!({}))).await["created"], json!(true));
    there.end();
}

/// The last messages of another process are delivered before the deletion of their session, also to a subscriber of that
/// session that reads after all of it happened.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_said_before_another_process_deleted_it_is_delivered() {
    let directory = tempfile::tempdir().unwrap();
    let here = service_on(directory.path()).await;
    let mut there = Other::start(directory.path());
    there.ok("session::ensure", json!({"session_id": "s"}));
    let filter = EventFilter::everything().in_session(SessionId::from_stored("s"));
    let mut subscription = here.subscribe(&Scope::owner(), filter, StartAt::Now).await.unwrap();
    there.ok("session::append", message("s", "one"));
    there.ok("session::append", message("s", "two"));
    there.ok("session::delete", json!({"session_id": "s"}));
    let mut kinds = Vec::new();
    while kinds.last() != Some(&EventKind::Deleted) {
        let next = tokio::time::timeout(PATIENCE, subscription.next()).await;
        if let FeedItem::Event(delivery) = next.expect("it is told").unwrap() {
            kinds.push(delivery.event.kind());
        }
    }
    let told = [EventKind::MessageAdded, EventKind::MessageAdded, EventKind::Deleted];
    assert_eq!(kinds, told);
    there.end();
}
