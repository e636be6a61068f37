use proptest::prelude::*;

use super::super::event::{self, Event};
use super::super::stack::{Request, Target};
use super::super::testing::*;
use super::state::*;
use super::*;
use crate::backend::{ListPage, Summary};
use bough_session::{SessionId, SessionStatus};

fn options(size: super::super::event::Size) -> PickerOptions {
    PickerOptions {
        size,
        now_ms: NOW,
        project: Some("/home/u/project".into()),
        scope: Scope::All,
        only_pick: false,
    }
}

fn some_sessions() -> Vec<Summary> {
    let mut sessions = vec![
        summary("s_parser", "Fix the date parser", 3),
        summary("s_wide", "世界 wide title 你好", 30),
        summary("s_plain", "", 200),
        summary("s_escape", "bad \u{1b}[31m title \u{202e}", 400),
        summary("s_fork", "Fix the date parser, plan B", 1_000),
    ];
    sessions[1].meta.status = SessionStatus::Working;
    sessions[4].meta.forked_from = Some(SessionId::from_stored("s_parser"));
    sessions
}

fn with_sessions(size: super::super::event::Size, sessions: Vec<Summary>) -> PickerState {
    let mut state = PickerState::new(options(size));
    start(&mut state);
    answer_with(&mut state, page(1, sessions, None));
    state
}

fn page(generation: u64, sessions: Vec<Summary>, next: Option<&str>) -> Answer {
    let next_cursor = next.map(str::to_owned);
    Answer::Loaded { generation, page: Ok(ListPage { sessions, next_cursor }) }
}

fn answer_with(state: &mut PickerState, answer: Answer) -> Vec<Request> {
    update(state, Event::Answer(event::Answer::Picker(answer)))
}

fn press(state: &mut PickerState, keys: &[&str]) -> Vec<Request> {
    keys.iter().flat_map(|name| update(state, Event::Key(key(name)))).collect()
}

fn captions(state: &PickerState) -> Vec<String> {
    let rows = state.rows.iter().filter_map(|row| Some((row.depth, state.session(*row)?)));
    rows.map(|(depth, summary)| format!("{}{}", ">".repeat(depth), summary.id())).collect()
}

fn effects(requests: Vec<Request>) -> Vec<Effect> {
    let effects = requests.into_iter().filter_map(|request| match request {
        Request::Picker(effect) if !matches!(effect, Effect::Preview(_)) => Some(effect),
        _ => None,
    });
    effects.collect()
}

#[test]
fn frames() {
    let empty = with_sessions(SMALL, Vec::new());
    check_snapshot("picker_empty_80x24", &draw(SMALL, |frame, theme| view(&empty, frame, theme)));
    for (name, size) in [("picker_80x24", SMALL), ("picker_160x50", LARGE)] {
        let mut state = with_sessions(size, some_sessions());
        let items =
            Ok(vec![answer("e2", "It is fixed.\nFebruary has 29 days."), user("e1", "Fix it")]);
        answer_with(
            &mut state,
            Answer::Previewed { session: SessionId::from_stored("s_parser"), items },
        );
        check_snapshot(name, &draw(size, |frame, theme| view(&state, frame, theme)));
    }
    let mut state = with_sessions(SMALL, some_sessions());
    press(&mut state, &["Ctrl+d"]);
    check_snapshot("picker_delete_80x24", &draw(SMALL, |frame, theme| view(&state, frame, theme)));
}

#[test]
fn what_an_empty_list_says_fits_a_narrow_window() {
    let size = super::super::event::Size { columns: 60, rows: 20 };
    for keys in [&[][..], &["x"], &["Tab"], &["Ctrl+n"]] {
        let mut state = with_sessions(size, Vec::new());
        press(&mut state, keys);
        let generation = state.generation;
        answer_with(&mut state, page(generation, Vec::new(), None));
        let frame = draw(size, |frame, theme| view(&state, frame, theme));
        let words = frame.lines().nth(3).unwrap().trim_end().to_owned();
        assert!(words.starts_with("No") && words.ends_with('.'), "{keys:?}: {frame}");
    }
}

#[test]
fn a_window_made_tiny_breaks_nothing() {
    let mut state = with_sessions(SMALL, some_sessions());
    for size in TINY {
        update(&mut state, Event::Resize(size));
        press(&mut state, &["Down", "PageDown", "Ctrl+d"]);
        draw(size, |frame, theme| view(&state, frame, theme));
        press(&mut state, &["Esc"]);
    }
}

#[test]
fn the_first_screen_reads_one_page() {
    let mut state = PickerState::new(options(SMALL));
    let asked = effects(start(&mut state));
    let [Effect::Load { .. }, Effect::FindFiles { .. }] = asked.as_slice() else {
        panic!("one page, and the files: {asked:?}")
    };
    let many: Vec<Summary> = (0..100).map(|n| summary(&format!("s_{n}"), "x", n)).collect();
    let more = answer_with(&mut state, page(1, many, Some("next")));
    assert_eq!(effects(more), [], "a full screen is enough, however many sessions there are");
    let moved = press(&mut state, &["End"]);
    assert!(
        matches!(effects(moved).as_slice(), [Effect::Load { ask, .. }] if ask.cursor.as_deref() == Some("next"))
    );
}

#[test]
fn a_search_goes_through_all_sessions_and_shows_what_it_has() {
    let mut state = PickerState::new(options(SMALL));
    start(&mut state);
    let many: Vec<Summary> = (0..95).map(|n| summary(&format!("s_{n}"), "x", n)).collect();
    answer_with(
        &mut state,
        page(1, many.into_iter().chain(some_sessions()).collect(), Some("next")),
    );
    let typed = press(&mut state, &["d", "p", "r", "s"]);
    assert!(
        matches!(effects(typed).as_slice(), [Effect::Load { .. }]),
        "the rest is read meanwhile"
    );
    assert_eq!(captions(&state), ["s_parser", "s_fork"]);
    answer_with(&mut state, page(1, vec![summary("s_late", "Date parsing", 9_000)], None));
    assert_eq!(captions(&state).len(), 3);
    press(&mut state, &["Esc"]);
    assert_eq!(captions(&state).len(), 101);
}

#[test]
fn forks_lie_below_what_they_came_from() {
    let mut state = with_sessions(SMALL, some_sessions());
    press(&mut state, &["Ctrl+s"]);
    assert_eq!(state.sort, Sort::Threaded);
    assert_eq!(captions(&state), ["s_parser", ">s_fork", "s_wide", "s_plain", "s_escape"]);
}

#[test]
fn forks_in_a_circle_are_shown_once() {
    let mut sessions = some_sessions();
    sessions[0].meta.forked_from = Some(SessionId::from_stored("s_fork"));
    let mut state = with_sessions(SMALL, sessions);
    press(&mut state, &["Ctrl+s"]);
    assert_eq!(captions(&state).len(), 5);
}

#[test]
fn deleting_asks_first_and_can_be_taken_back() {
    let mut state = with_sessions(SMALL, some_sessions());
    assert_eq!(effects(press(&mut state, &["Ctrl+d", "n"])), [], "any other key cancels");
    let asked = press(&mut state, &["Ctrl+d", "Enter"]);
    let parser = SessionId::from_stored("s_parser");
    assert_eq!(effects(asked), [Effect::Delete(parser.clone())]);
    answer_with(&mut state, Answer::Deleted { session: parser.clone(), done: Ok(()) });
    assert_eq!(captions(&state)[0], "s_wide");
    assert_eq!(effects(press(&mut state, &["Ctrl+z"])), [Effect::Undelete(parser)]);
}

#[test]
fn what_failed_is_said_and_changes_nothing() {
    let mut state = with_sessions(SMALL, some_sessions());
    let session = SessionId::from_stored("s_parser");
    answer_with(&mut state, Answer::Deleted { session, done: Err("locked".into()) });
    assert_eq!(captions(&state).len(), 5);
    assert!(
        state.status.as_ref().is_some_and(|status| status.is_problem && status.text == "locked")
    );
}

#[test]
fn renaming_and_archiving() {
    let mut state = with_sessions(SMALL, some_sessions());
    let asked = press(&mut state, &["Ctrl+r", "Ctrl+u", "N", "e", "w", "Enter"]);
    let session = SessionId::from_stored("s_parser");
    assert_eq!(effects(asked), [Effect::Rename { session: session.clone(), title: "New".into() }]);
    answer_with(&mut state, Answer::Renamed { session: session.clone(), title: Ok("New".into()) });
    assert_eq!(state.chosen().unwrap().caption(), "New");
    let asked = press(&mut state, &["Ctrl+a"]);
    assert_eq!(effects(asked), [Effect::SetArchived { session: session.clone(), archived: true }]);
    answer_with(&mut state, Answer::Archived { session, archived: true, done: Ok(()) });
    assert_eq!(captions(&state).len(), 4);
}

#[test]
fn enter_opens_or_picks() {
    let mut state = with_sessions(SMALL, some_sessions());
    let session = SessionId::from_stored("s_wide");
    assert_eq!(
        press(&mut state, &["Down", "Enter"]).pop(),
        Some(Request::Open(Target::Session(session.clone(), None)))
    );
    state.only_pick = true;
    assert_eq!(press(&mut state, &["Enter"]), [Request::Pick(session)]);
}

#[test]
fn tab_asks_for_this_folder_alone() {
    let mut state = with_sessions(SMALL, some_sessions());
    let asked = press(&mut state, &["Tab"]);
    let [Effect::Load { ask, generation: 2 }, Effect::FindFiles { generation: 2 }] =
        &effects(asked)[..]
    else {
        panic!("a new question")
    };
    assert_eq!(ask.metadata["cwd"], "/home/u/project");
    let late = answer_with(&mut state, page(1, some_sessions(), None));
    assert_eq!(
        (late.len(), captions(&state).len()),
        (0, 0),
        "answers to the old question are dropped"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_keys_leave_a_picker_that_can_be_drawn(keys in prop::collection::vec(0..18_usize, 0..30), tiny in 0..8_usize) {
        const NAMES: [&str; 18] = ["Up", "Down", "PageDown", "End", "Home", "a", "r", "\"", "Backspace", "Esc", "Tab",
            "Ctrl+s", "Ctrl+n", "Ctrl+p", "Ctrl+r", "Ctrl+d", "Ctrl+v", "Enter"];
        let mut state = with_sessions(SMALL, some_sessions());
        for at in keys {
            press(&mut state, &[NAMES[at]]);
            prop_assert!(state.rows.is_empty() || state.window.chosen < state.rows.len());
        }
        let size = TINY.get(tiny).copied().unwrap_or(SMALL);
        update(&mut state, Event::Resize(size));
        draw(size, |frame, theme| view(&state, frame, theme));
    }
}

fn refreshed(sessions: Vec<Summary>, next: Option<&str>) -> Answer {
    let next_cursor = next.map(str::to_owned);
    Answer::Refreshed { generation: 1, page: Ok(ListPage { sessions, next_cursor }) }
}

#[test]
fn sessions_that_others_made_or_deleted_are_seen_when_time_goes_by() {
    let mut state = with_sessions(SMALL, some_sessions());
    let asked = effects(update(&mut state, Event::Tick { now_ms: NOW }));
    assert!(matches!(asked.as_slice(), [Effect::Refresh { generation: 1, .. }]), "{asked:?}");
    assert_eq!(effects(update(&mut state, Event::Tick { now_ms: NOW })), [], "one at a time");
    press(&mut state, &["Down"]);
    let mut newest = some_sessions();
    newest.remove(2);
    newest.insert(0, summary("s_new", "Made elsewhere", 0));
    answer_with(&mut state, refreshed(newest, None));
    assert_eq!(captions(&state), ["s_new", "s_parser", "s_wide", "s_escape", "s_fork"]);
    assert_eq!(state.chosen().unwrap().id().as_str(), "s_wide", "the choice stays");
    answer_with(&mut state, refreshed(vec![summary("s_escape", "Changed", 0)], Some("more")));
    assert_eq!(
        captions(&state),
        ["s_escape", "s_new", "s_parser", "s_wide", "s_fork"],
        "what is older than the page is not on it"
    );
}

#[test]
fn what_others_delete_does_not_move_the_choice_or_what_a_question_is_about() {
    let mut state = with_sessions(SMALL, some_sessions());
    press(&mut state, &["Down", "Down"]);
    let chosen = state.chosen().unwrap().id().clone();
    let others = || some_sessions().split_off(1);
    let mut renaming = with_sessions(SMALL, some_sessions());
    press(&mut renaming, &["Down", "Down", "Ctrl+r"]);
    press(&mut state, &["Ctrl+d"]);
    for state in [&mut state, &mut renaming] {
        answer_with(state, refreshed(others(), None));
        assert_eq!(captions(state).len(), 4);
        assert_eq!(state.chosen().unwrap().id(), &chosen);
    }
    // Even the chosen session may be gone by now; then there is nothing left to delete.
    let mut gone = with_sessions(SMALL, some_sessions());
    press(&mut gone, &["Down", "Down", "Ctrl+d"]);
    let rest = some_sessions().into_iter().filter(|session| *session.id() != chosen).collect();
    answer_with(&mut gone, refreshed(rest, None));
    assert_eq!(effects(press(&mut gone, &["y"])), []);
    assert_eq!(effects(press(&mut state, &["y"])), [Effect::Delete(chosen.clone())]);
    let renamed = effects(press(&mut renaming, &["Enter"]));
    let is_of_chosen =
        |effect: &Effect| matches!(effect, Effect::Rename { session, .. } if *session == chosen);
    assert!(renamed.iter().all(is_of_chosen) && renamed.len() == 1, "{renamed:?}");
}

#[test]
fn files_of_pi_are_listed_marked_and_left_alone() {
    let mut state = with_sessions(SMALL, some_sessions());
    let file = |id: &str, hours_ago| Summary {
        file: Some(format!("/pi/{id}.jsonl")),
        ..summary(id, "", hours_ago)
    };
    let files = Ok(vec![file("pi_1", 1), file("s_wide", 0)]);
    answer_with(&mut state, Answer::FoundFiles { generation: 1, files });
    assert_eq!(captions(&state)[..3], ["pi_1", "s_parser", "s_wide"], "a session is listed once");
    let drawn = draw(SMALL, |frame, theme| view(&state, frame, theme));
    assert_eq!(drawn.matches("[pi file]").count(), 1, "{drawn}");
    press(&mut state, &["Up", "Up"]);
    for changing in ["Ctrl+d", "Ctrl+r"] {
        press(&mut state, &[changing]);
        assert_eq!(state.mode, Mode::Browse);
        assert!(state.status.as_ref().unwrap().is_problem);
    }
    assert_eq!(effects(press(&mut state, &["Ctrl+a"])), []);
    let opened = effects(press(&mut state, &["Enter"]));
    assert_eq!(opened, [Effect::OpenFile { file: "/pi/pi_1.jsonl".into() }]);
    let session = Ok(SessionId::from_stored("pi_1"));
    let requests = answer_with(&mut state, Answer::OpenedFile { session });
    assert_eq!(requests, [Request::Open(Target::Session(SessionId::from_stored("pi_1"), None))]);
}
