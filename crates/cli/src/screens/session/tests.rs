use bough_service::api::MessageItem;
use bough_session::{EntryId, SessionId};
use proptest::prelude::*;
use serde_json::json;

use super::super::event::{self, Event, Size};
use super::super::stack::{Request, Target};
use super::super::testing::*;
use super::state::*;
use super::*;
use crate::backend::{EventPage, PathPage, SessionEvent};

fn session() -> SessionId {
    SessionId::from_stored("s_1")
}

/// The screen once it has read the newest page: `items` are in the order of the path.
fn opened(size: Size, items: Vec<MessageItem>, older: Option<&str>) -> SessionState {
    let mut state = SessionState::new(session(), size, NOW);
    start(&mut state);
    answer_with(
        &mut state,
        Answer::Summary { session: session(), summary: Ok(Some(summary("s_1", "Readme tour", 1))) },
    );
    answer_with(&mut state, events(vec![]));
    answer_with(&mut state, page(1, From::Tail, items, older));
    state
}

fn page(generation: u64, from: From, mut items: Vec<MessageItem>, next: Option<&str>) -> Answer {
    if from == From::Tail {
        items.reverse();
    }
    let page = Ok(PathPage { messages: items, next_cursor: next.map(str::to_owned) });
    Answer::Page { session: session(), generation, from, page }
}

fn events(events: Vec<(&str, serde_json::Value)>) -> Answer {
    let events = events.into_iter().map(|(kind, payload)| SessionEvent {
        kind: format!("session::{kind}"),
        seq: 1,
        step: 0,
        payload,
    });
    let page = EventPage { events: events.collect(), next: "cursor".into(), gap: false };
    Answer::Events { session: session(), page: Ok(page) }
}

fn added(item: &MessageItem, parent: Option<&str>) -> (&'static str, serde_json::Value) {
    let mut payload = serde_json::to_value(item).unwrap();
    payload["parent_id"] = json!(parent);
    ("message-added", payload)
}

fn answer_with(state: &mut SessionState, answer: Answer) -> Vec<Request> {
    update(state, Event::Answer(event::Answer::Session(answer)))
}

fn press(state: &mut SessionState, keys: &[&str]) -> Vec<Request> {
    keys.iter().flat_map(|name| update(state, Event::Key(key(name)))).collect()
}

fn conversation() -> Vec<MessageItem> {
    vec![
        user("u1", "What is in the \u{1b}[31m readme of 世界?"),
        answer("a1", "Let me look."),
        result("r1", "line one\nline two"),
        answer("a2", "It says hello."),
    ]
}

fn text(state: &SessionState) -> String {
    let lines = state.items.iter().flat_map(|item| &item.lines);
    lines.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
}

fn ids(state: &SessionState) -> Vec<&str> {
    state.items.iter().map(|item| item.item.entry_id.as_str()).collect()
}

#[test]
fn frames() {
    for (name, size) in [("session_80x24", SMALL), ("session_160x50", LARGE)] {
        let mut state = opened(size, conversation(), None);
        let mut main = outline::testing::one_loop("main-1", None);
        main.spawned = outline::testing::spawned("s_sub");
        let loops = vec![main];
        answer_with(&mut state, Answer::Loops { session: session(), loops: Ok(loops) });
        if size == LARGE {
            press(&mut state, &["o"]);
        }
        check_snapshot(name, &draw(size, |frame, theme| view(&state, frame, theme)));
    }
}

#[test]
fn thoughts_and_tools_are_folded_until_asked_for() {
    let mut state = opened(SMALL, conversation(), None);
    let folded = text(&state);
    assert!(folded.contains("▸ thinking, 2 lines") && !folded.contains("Step by step"));
    assert!(folded.contains("▸ bash {\"command\":\"ls\"}") && !folded.contains("line two"));
    press(&mut state, &["Ctrl+t"]);
    assert!(text(&state).contains("Step by step") && !text(&state).contains("line two"));
    press(&mut state, &["Ctrl+o"]);
    assert!(text(&state).contains("line two"));
    assert!(!text(&state).contains('\u{1b}'), "nothing that a terminal would obey");
}

#[test]
fn one_message_is_unfolded_alone() {
    let mut state = opened(SMALL, conversation(), None);
    press(&mut state, &["Enter"]);
    assert_eq!(text(&state).matches("Step by step").count(), 1);
}

#[test]
fn what_is_written_is_seen_at_once() {
    let mut state = opened(SMALL, conversation(), None);
    let next = user("u2", "Thanks!");
    answer_with(&mut state, events(vec![added(&next, Some("a2"))]));
    assert_eq!(ids(&state), ["u1", "a1", "r1", "a2", "u2"]);
    answer_with(&mut state, events(vec![added(&next, Some("a2"))]));
    assert_eq!(ids(&state).len(), 5, "delivered twice, shown once");
    let grown = serde_json::to_value(user("u2", "Thanks a lot!")).unwrap();
    answer_with(&mut state, events(vec![("message-updated", grown)]));
    assert!(text(&state).contains("Thanks a lot!"));
    assert!(state.follows);
}

#[test]
fn another_branch_is_read_anew() {
    let mut state = opened(SMALL, conversation(), None);
    let asked =
        answer_with(&mut state, events(vec![added(&user("u9", "From before"), Some("a1"))]));
    assert!(
        asked
            .iter()
            .any(|request| matches!(request, Request::Session(Effect::Page { cursor: None, .. })))
    );
    let asked = answer_with(&mut state, events(vec![("leaf-moved", json!({"entry_id": "a1"}))]));
    assert!(
        asked
            .iter()
            .any(|request| matches!(request, Request::Session(Effect::Page { cursor: None, .. })))
    );
}

#[test]
fn older_messages_come_above_and_what_is_seen_stays() {
    let long: Vec<MessageItem> = (0..30).map(|n| user(&format!("n{n}"), "words")).collect();
    let mut state = opened(SMALL, long, Some("older"));
    assert!(state.follows);
    let asked = press(&mut state, &["PageUp", "PageUp", "PageUp", "PageUp"]);
    assert!(asked.iter().any(|request| matches!(request, Request::Session(Effect::Page { cursor: Some(c), .. }) if c == "older")));
    let seen = draw(SMALL, |frame, theme| view(&state, frame, theme));
    let older: Vec<MessageItem> = (0..10).map(|n| user(&format!("o{n}"), "old")).collect();
    answer_with(&mut state, page(1, From::Tail, older, None));
    assert_eq!(ids(&state)[0], "o0");
    let still = draw(SMALL, |frame, theme| view(&state, frame, theme));
    assert_eq!(seen, still);
}

#[test]
fn the_beginning_is_read_from_the_beginning() {
    let mut state = opened(SMALL, conversation(), Some("older"));
    let asked = press(&mut state, &["g"]);
    assert!(matches!(
        asked.as_slice(),
        [Request::Session(Effect::Page { from: From::Head, cursor: None, .. })]
    ));
    let generation = state.generation;
    answer_with(
        &mut state,
        page(generation, From::Head, vec![user("first", "Hello")], Some("more")),
    );
    assert_eq!(ids(&state)[0], "first");
    let asked = press(&mut state, &["G"]);
    assert!(
        asked.iter().any(|request| matches!(
            request,
            Request::Session(Effect::Page { from: From::Tail, .. })
        ))
    );
}

#[test]
fn keys_that_leave() {
    let mut state = opened(SMALL, conversation(), None);
    assert_eq!(press(&mut state, &["t"]), [Request::Open(Target::Tree(session()))]);
    assert_eq!(press(&mut state, &["q"]), [Request::Back]);
    answer_with(&mut state, events(vec![("deleted", json!({}))]));
    assert!(
        draw(SMALL, |frame, theme| view(&state, frame, theme)).contains("The session was deleted")
    );
}

#[test]
fn a_window_made_tiny_breaks_nothing() {
    let mut state = opened(SMALL, conversation(), None);
    for size in TINY {
        update(&mut state, Event::Resize(size));
        press(&mut state, &["Up", "o", "Ctrl+t", "PageDown"]);
        draw(size, |frame, theme| view(&state, frame, theme));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_keys_leave_a_screen_that_can_be_drawn(keys in prop::collection::vec(0..14_usize, 0..25), count in 0..40_usize) {
        const NAMES: [&str; 14] = ["Up", "Down", "PageUp", "PageDown", "Home", "End", "n", "p", "Enter", "Ctrl+t", "Ctrl+o", "o", "g", "G"];
        let items: Vec<MessageItem> = (0..count).map(|n| answer(&n.to_string(), "some words")).collect();
        let mut state = opened(SMALL, items, None);
        for at in keys {
            press(&mut state, &[NAMES[at]]);
            prop_assert!(state.top <= state.total());
            prop_assert!(state.items.is_empty() || state.chosen < state.items.len());
        }
        draw(SMALL, |frame, theme| view(&state, frame, theme));
    }
}

#[test]
fn ids_are_compared_whole() {
    let state = opened(SMALL, conversation(), None);
    assert_eq!(state.place(&EntryId::from_stored("a2")), Some(3));
    assert_eq!(state.place(&EntryId::from_stored("a")), None);
}

#[test]
fn a_screen_whose_server_ended_says_so_and_tries_again() {
    let mut state = opened(SMALL, vec![user("u1", "hi")], None);
    let facts = |state: &SessionState| {
        let drawn = draw(SMALL, |frame, theme| view(state, frame, theme));
        drawn.lines().next().unwrap().trim_end().to_owned()
    };
    assert!(facts(&state).ends_with("· live"), "{}", facts(&state));
    let page = Err("no answer".to_owned());
    assert_eq!(answer_with(&mut state, Answer::Events { session: session(), page }), []);
    assert!(facts(&state).ends_with("· not live"), "{}", facts(&state));
    let asked = update(&mut state, Event::Tick { now_ms: NOW });
    let watch = |waits| {
        let watch = Effect::Watch { session: session(), after: Some("cursor".into()), waits };
        [Request::Session(watch)]
    };
    assert_eq!(
        asked,
        watch(false),
        "an answer says that the server is back, an event may not come"
    );
    let again = update(&mut state, Event::Tick { now_ms: NOW });
    assert_eq!(again, [], "one request at a time");
    assert_eq!(answer_with(&mut state, events(vec![])), watch(true));
    assert!(facts(&state).ends_with("· live"), "{}", facts(&state));
    assert_eq!(update(&mut state, Event::Tick { now_ms: NOW }), []);
}
