use bough_session::{EntryId, Role, SessionId, SessionStatus};
use proptest::prelude::*;

use super::super::event::{self, Event, Size};
use super::super::search::Within;
use super::super::stack::{Request, Target};
use super::super::testing::*;
use super::state::*;
use super::*;
use crate::backend::{EntriesPage, Outline};

/// Two turns, then two branches from the second question; the later branch is active.
fn small_tree() -> (Vec<Outline>, &'static str) {
    let mut call = entry("a1", Some("u1"), Role::Assistant, "");
    call.calls = vec!["bash".into()];
    let mut model = entry("m1", Some("r1"), Role::User, "");
    (model.role, model.custom_type) = (None, Some("bough.model_change".into()));
    model.preview = "p/sonnet-4".into();
    let mut label = entry("l1", Some("a3"), Role::User, "");
    (label.role, label.custom_type) = (None, Some("bough.label".into()));
    label.label_target = Some(EntryId::from_stored("u2"));
    label.label = Some("start".into());
    let entries = vec![
        entry("u1", None, Role::User, "What is here?"),
        call,
        entry("r1", Some("a1"), Role::FunctionResult, "README.md"),
        model,
        entry("u2", Some("m1"), Role::User, "Explain the 世界 file \u{1b}[2J"),
        entry("a2", Some("u2"), Role::Assistant, "It is a readme."),
        entry("u3", Some("a2"), Role::User, "Thanks"),
        entry("a3", Some("u2"), Role::Assistant, "It says hello."),
        label,
        entry("u4", Some("l1"), Role::User, "More please"),
    ];
    (entries, "u4")
}

fn with_tree(size: Size) -> TreeState {
    let (entries, leaf) = small_tree();
    with_entries(size, entries, leaf)
}

fn with_entries(size: Size, entries: Vec<Outline>, leaf: &str) -> TreeState {
    let mut state = TreeState::new(SessionId::from_stored("s_1"), size, NOW);
    start(&mut state);
    let page =
        EntriesPage { entries, active_leaf: Some(EntryId::from_stored(leaf)), next_cursor: None };
    answer_with(&mut state, Answer::Loaded { generation: 1, page: Ok(page) });
    let session = SessionId::from_stored("s_1");
    answer_with(
        &mut state,
        Answer::Summary { session, summary: Ok(summary("s_1", "Readme tour", 1)) },
    );
    state
}

fn answer_with(state: &mut TreeState, answer: Answer) -> Vec<Request> {
    update(state, Event::Answer(event::Answer::Tree(answer)))
}

fn press(state: &mut TreeState, keys: &[&str]) -> Vec<Request> {
    keys.iter().flat_map(|name| update(state, Event::Key(key(name)))).collect()
}

fn seen(state: &TreeState) -> Vec<&str> {
    let ids = state.drawing.rows.iter().filter_map(|row| state.forest.node(row.node));
    ids.map(|node| node.entry.id.as_str()).collect()
}

fn chosen(state: &TreeState) -> &str {
    state
        .chosen()
        .and_then(|row| state.forest.node(row.node))
        .map_or("", |node| node.entry.id.as_str())
}

fn id(text: &str) -> EntryId {
    EntryId::from_stored(text)
}

fn switch_of(requests: &[Request]) -> &Switch {
    match requests {
        [Request::Tree(Effect::Switch(switch))] => switch,
        other => panic!("a switch, not {other:?}"),
    }
}

#[test]
fn frames() {
    for (name, size) in [("tree_80x24", SMALL), ("tree_160x50", LARGE)] {
        let state = with_tree(size);
        check_snapshot(name, &draw(size, |frame, theme| view(&state, frame, theme)));
    }
    let mut state = with_tree(SMALL);
    press(&mut state, &["Home", "Enter"]);
    check_snapshot("tree_summary_80x24", &draw(SMALL, |frame, theme| view(&state, frame, theme)));
}

#[test]
fn an_active_path_whose_end_is_filtered_out_ends_at_what_is_seen() {
    let (mut entries, leaf) = small_tree();
    let mut label = entries[0].clone();
    label.id = id("l1");
    label.parent_id = Some(id(leaf));
    label.role = None;
    label.custom_type = Some("bough.label".to_owned());
    label.label_target = Some(id(leaf));
    label.label = Some("here".to_owned());
    entries.push(label);
    let lines = print_lines(entries, Some(&id("l1")), Filter::Default, 80);
    let ends: Vec<&String> = lines.iter().filter(|line| line.ends_with("← active")).collect();
    assert_eq!(ends, ["• │  [here] user: More please  u4  ← active"]);
}

#[test]
fn the_printed_tree() {
    let (entries, leaf) = small_tree();
    assert_eq!(
        print_lines(entries, Some(&id(leaf)), Filter::Default, 80),
        [
            "• user: What is here?  u1",
            "• assistant: → bash  a1",
            "• tool: README.md  r1",
            "• [start] user: Explain the 世界 file ␛[2J  u2",
            "• ├─ assistant: It says hello.  a3",
            "• │  user: More please  u4  ← active",
            "  └─ assistant: It is a readme.  a2",
            "     user: Thanks  u3",
        ]
    );
}

#[test]
fn filters_hide_and_children_move_up() {
    let mut state = with_tree(SMALL);
    let mut check = |keys: &[&str], expected: &[&str]| {
        press(&mut state, keys);
        assert_eq!(seen(&state), expected, "after {keys:?}");
    };
    check(&[], &["u1", "a1", "r1", "u2", "a3", "u4", "a2", "u3"]);
    check(&["Ctrl+u"], &["u1", "u2", "u4", "u3"]);
    check(&["Ctrl+t"], &["u1", "a1", "u2", "a3", "u4", "a2", "u3"]);
    check(&["Ctrl+l"], &["u2"]);
    check(&["Ctrl+a"], &["u1", "a1", "r1", "m1", "u2", "a3", "l1", "u4", "a2", "u3"]);
    check(&["Ctrl+d"], &["u1", "a1", "r1", "u2", "a3", "u4", "a2", "u3"]);
}

#[test]
fn a_search_is_another_screen_and_its_hit_is_gone_to() {
    let mut state = with_tree(SMALL);
    let asked = press(&mut state, &["/"]);
    let within = Within::Session(state.id.clone());
    assert_eq!(asked, [Request::Open(Target::Search(within, String::new()))]);
    update(&mut state, Event::GoTo(id("a2")));
    assert_eq!(chosen(&state), "a2");
    press(&mut state, &["Ctrl+u"]);
    update(&mut state, Event::GoTo(id("m1")));
    assert_eq!(chosen(&state), "m1", "also where the filter hid it");
}

#[test]
fn a_hit_that_is_not_read_yet_is_gone_to_when_it_is() {
    let mut state = with_tree(SMALL);
    let asked = update(&mut state, Event::GoTo(id("new")));
    assert!(matches!(&asked[..], [Request::Tree(Effect::Load { cursor: None, .. })]), "{asked:?}");
    let (mut entries, _) = small_tree();
    let page = |entries, next: Option<&str>| {
        let active_leaf = Some(EntryId::from_stored("u4"));
        let page = EntriesPage { entries, active_leaf, next_cursor: next.map(str::to_owned) };
        Answer::Loaded { generation: 2, page: Ok(page) }
    };
    let rest = entries.split_off(8);
    answer_with(&mut state, page(entries, Some("more")));
    assert_ne!(chosen(&state), "new");
    let last = entry("new", Some("u4"), Role::Assistant, "Written since");
    answer_with(&mut state, page(rest.into_iter().chain([last]).collect(), None));
    assert_eq!((chosen(&state), state.filter), ("new", Filter::Default));
    // What was hidden since it was found is not there.
    update(&mut state, Event::GoTo(id("gone")));
    let (entries, _) = small_tree();
    let page = EntriesPage { entries, active_leaf: Some(id("u4")), next_cursor: None };
    answer_with(&mut state, Answer::Loaded { generation: 3, page: Ok(page) });
    assert!(state.status.as_ref().unwrap().is_problem);
}

#[test]
fn branches_fold_and_unfold() {
    let mut state = with_tree(SMALL);
    assert_eq!(chosen(&state), "u4", "the active leaf is chosen first");
    press(&mut state, &["Ctrl+Left"]);
    assert_eq!(chosen(&state), "a3", "where the branch begins");
    press(&mut state, &["Ctrl+Left"]);
    assert_eq!(seen(&state), ["u1", "a1", "r1", "u2", "a3", "a2", "u3"]);
    press(&mut state, &["Ctrl+Right"]);
    assert_eq!(seen(&state).len(), 8);
    press(&mut state, &["Ctrl+Right"]);
    assert_eq!(chosen(&state), "a2", "the next branch");
}

#[test]
fn a_user_message_is_said_anew_from_before_it() {
    let mut state = with_tree(SMALL);
    press(&mut state, &["Down", "Down", "Enter"]);
    assert_eq!(chosen(&state), "u3");
    let asked = press(&mut state, &["Enter"]);
    let switch = switch_of(&asked);
    assert_eq!((&switch.to, &switch.edit), (&Some(id("a2")), &Some(id("u3"))));
    assert_eq!((&switch.from, &switch.summary), (&Some(id("u4")), &SummaryWish::None));
}

#[test]
fn anything_else_is_gone_on_from() {
    let mut state = with_tree(SMALL);
    press(&mut state, &["Down", "Enter", "Down"]);
    let asked = press(&mut state, &["Enter"]);
    let switch = switch_of(&asked);
    assert_eq!((&switch.to, &switch.edit), (&Some(id("a2")), &None));
    assert_eq!(switch.summary, SummaryWish::Usual);
}

#[test]
fn a_root_message_goes_to_before_the_first_entry() {
    let mut state = with_tree(SMALL);
    press(&mut state, &["Home", "Enter", "Down", "Down", "Enter", "x"]);
    let asked = press(&mut state, &["Enter"]);
    let switch = switch_of(&asked);
    assert_eq!((&switch.to, &switch.edit), (&None, &Some(id("u1"))));
    assert_eq!(switch.summary, SummaryWish::Focused("x".into()));
}

#[test]
fn a_working_session_is_not_switched_without_a_word() {
    let mut state = with_tree(SMALL);
    state.session.as_mut().unwrap().meta.status = SessionStatus::Working;
    press(&mut state, &["Down", "Enter"]);
    assert!(matches!(state.mode, Mode::ConfirmSwitch(_)));
    assert_eq!(press(&mut state, &["Enter"]), [], "only y goes on");
    press(&mut state, &["Enter", "y"]);
    assert!(matches!(state.mode, Mode::Summary { .. }));
}

#[test]
fn labels_and_forks() {
    let mut state = with_tree(SMALL);
    let session = SessionId::from_stored("s_1");
    let asked = press(&mut state, &["Down", "l", "o", "k", "Enter"]);
    let label =
        Effect::Label { session: session.clone(), entry: id("a2"), label: Some("ok".into()) };
    assert_eq!(asked, [Request::Tree(label)]);
    answer_with(
        &mut state,
        Answer::Labelled {
            session: session.clone(),
            entry: id("a2"),
            label: Ok(Some("ok".into())),
        },
    );
    let place = state.forest.place(&id("a2")).unwrap();
    assert_eq!(state.forest.label(place).unwrap().text, "ok");

    let fork = Effect::Fork { session: session.clone(), entry: id("a2"), edit: None };
    assert_eq!(press(&mut state, &["f"]), [Request::Tree(fork)]);
    let fork = Effect::Fork { session, entry: id("a2"), edit: Some(id("u3")) };
    assert_eq!(
        press(&mut state, &["Down", "f"]),
        [Request::Tree(fork)],
        "before the person's message"
    );
}

#[test]
fn a_window_made_tiny_breaks_nothing() {
    let mut state = with_tree(SMALL);
    for size in TINY {
        update(&mut state, Event::Resize(size));
        press(&mut state, &["Down", "Enter"]);
        draw(size, |frame, theme| view(&state, frame, theme));
        press(&mut state, &["Esc", "Up"]);
    }
}

/// A hundred thousand entries in five hundred branches, each forked off the one before it.
fn large_tree() -> Vec<Outline> {
    let mut entries = Vec::new();
    for branch in 0..500 {
        for step in 0..200 {
            let parent = match (branch, step) {
                (0, 0) => None,
                (_, 0) => Some(format!("{}-100", branch - 1)),
                _ => Some(format!("{branch}-{}", step - 1)),
            };
            let role = if step % 2 == 0 { Role::User } else { Role::Assistant };
            entries.push(entry(&format!("{branch}-{step}"), parent.as_deref(), role, "some words"));
        }
    }
    entries
}

#[test]
fn a_large_deep_tree_is_laid_out_and_drawn() {
    let state = with_entries(SMALL, large_tree(), "499-199");
    assert_eq!(state.drawing.rows.len(), 100_000);
    assert_eq!(chosen(&state), "499-199");
    let longest = state.drawing.rows.iter().map(|row| state.drawing.gutter(*row).len()).max();
    assert!(longest.unwrap_or(0) < 120, "deep branches are not indented without end");
    let frame = draw(SMALL, |frame, theme| view(&state, frame, theme));
    assert!(frame.contains("← active") && frame.contains("100000 of 100000"));
}

#[test]
fn an_empty_session_says_so() {
    let state = with_entries(SMALL, Vec::new(), "none");
    assert!(draw(SMALL, |frame, theme| view(&state, frame, theme)).contains("no entries yet"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_entry_is_drawn_once_whatever_the_tree(parents in prop::collection::vec(0..30_usize, 1..30), keys in prop::collection::vec(0..12_usize, 0..12)) {
        const NAMES: [&str; 12] = ["Up", "Down", "Ctrl+Left", "Ctrl+Right", "Ctrl+u", "Ctrl+a", "Ctrl+o", "PageDown", "End", "/", "e", "Esc"];
        let entries: Vec<Outline> = parents.iter().enumerate().map(|(at, parent)| {
            let parent = (*parent < at).then(|| parent.to_string());
            entry(&at.to_string(), parent.as_deref(), if at % 3 == 0 { Role::User } else { Role::Assistant }, "words")
        }).collect();
        let leaf = (entries.len() - 1).to_string();
        let mut state = with_entries(SMALL, entries, &leaf);
        let mut ids: Vec<usize> = state.drawing.rows.iter().map(|row| row.node).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..parents.len()).collect::<Vec<_>>());
        for at in keys {
            press(&mut state, &[NAMES[at]]);
            prop_assert!(state.drawing.rows.is_empty() || state.window.chosen < state.drawing.rows.len());
        }
        draw(SMALL, |frame, theme| view(&state, frame, theme));
    }
}
