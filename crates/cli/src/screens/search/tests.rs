use bough_service::api::{IndexStatus, SearchHit, SearchResponse, SearchSnippet};
use bough_session::{EntryId, Role, SessionId};

use super::super::event::{Answer as AnyAnswer, Event, Size};
use super::super::stack::{Effect as StackEffect, ScreenStack, Target};
use super::super::testing::{NOW, TINY, check_snapshot, draw, key, summary};
use super::{Answer, Effect, Within};

fn hit(id: &str, entry: &str, text: &str, highlights: &[(usize, usize)]) -> SearchHit {
    let found = summary(id, &format!("About {id}"), 3);
    SearchHit {
        meta: found.meta,
        details: None,
        preview: None,
        entry_id: Some(EntryId::from_stored(entry)),
        revision: None,
        role: Some(Role::User),
        timestamp: Some(NOW - 60_000),
        snippet: Some(SearchSnippet {
            kind: "text".into(),
            text: text.into(),
            highlights: highlights.to_vec(),
        }),
        on_active_path: Some(entry != "e2"),
        score: Some(1.0),
    }
}

fn stack(within: Within, size: Size) -> (ScreenStack, Vec<StackEffect>) {
    ScreenStack::with(Target::Search(within, String::new()), size, NOW)
}

fn typed(stack: &mut ScreenStack, text: &str) -> Vec<String> {
    let keys = text.chars().map(|letter| key(&letter.to_string()));
    keys.flat_map(|key| asked(stack.update(Event::Key(key)))).collect()
}

fn asked(effects: Vec<StackEffect>) -> Vec<String> {
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            StackEffect::Search(Effect::Search(request)) => Some(request.query),
            _ => None,
        })
        .collect()
}

fn answer(stack: &mut ScreenStack, query: &str, hits: Vec<SearchHit>) -> Vec<StackEffect> {
    let found = Ok(SearchResponse { hits, ..SearchResponse::default() });
    let answer = Answer::Found { query: query.to_owned(), found };
    stack.update(Event::Answer(AnyAnswer::Search(answer)))
}

#[test]
fn keys_that_are_typed_meanwhile_are_one_question() {
    let (mut stack, effects) = stack(Within::Everything, TINY[4]);
    assert!(effects.is_empty(), "nothing is typed");
    assert_eq!(typed(&mut stack, "needle"), ["n"], "one question at a time");
    assert_eq!(asked(answer(&mut stack, "n", vec![])), ["needle"], "all the rest in the next");
    assert!(asked(answer(&mut stack, "needle", vec![])).is_empty());
    assert_eq!(typed(&mut stack, " "), [""; 0], "the same question is not asked twice");
}

#[test]
fn while_the_index_is_behind_the_question_is_asked_again() {
    let (mut stack, _) = stack(Within::Everything, TINY[4]);
    typed(&mut stack, "n");
    let tick = || Event::Tick { now_ms: NOW };
    for is_complete in [false, false, true] {
        let index = Some(IndexStatus { is_complete, ..IndexStatus::default() });
        let found = Ok(SearchResponse { index, ..SearchResponse::default() });
        let answer = Answer::Found { query: "n".to_owned(), found };
        assert!(asked(stack.update(Event::Answer(AnyAnswer::Search(answer)))).is_empty());
        let again: &[&str] = if is_complete { &[] } else { &["n"] };
        assert_eq!(asked(stack.update(tick())), again);
        assert!(asked(stack.update(tick())).is_empty(), "one question at a time");
    }
}

#[test]
fn a_hit_opens_its_session_at_the_entry() {
    let (mut stack, _) = stack(Within::Everything, TINY[4]);
    typed(&mut stack, "n");
    answer(&mut stack, "n", vec![hit("s1", "e1", "n", &[(0, 1)]), hit("s2", "e2", "n", &[(0, 1)])]);
    stack.update(Event::Key(key("Down")));
    let effects = stack.update(Event::Key(key("Enter")));
    let opened = effects.iter().any(|effect| {
        let StackEffect::Session(super::super::session::Effect::Summary(id)) = effect else {
            return false;
        };
        id.as_str() == "s2"
    });
    assert!(opened, "{effects:?}");
}

#[test]
fn a_search_within_a_session_asks_for_that_session() {
    let (mut stack, _) = stack(Within::Session(SessionId::from_stored("s 1")), TINY[4]);
    assert_eq!(typed(&mut stack, "x"), ["session:\"s 1\" x"]);
}

#[test]
fn hits_are_shown_in_narrow_and_wide_windows() {
    let long = format!("{}then the flaky test failed again", "much was said before, ".repeat(4));
    let start = long.chars().count() - "flaky test failed again".len();
    for (name, size) in [
        ("search_60x14", Size { columns: 60, rows: 14 }),
        ("search_200x14", Size { columns: 200, rows: 14 }),
    ] {
        let (mut stack, _) = stack(Within::Everything, size);
        typed(&mut stack, "f");
        let hits = vec![
            hit("s1", "e1", "a flaky test", &[(2, 12)]),
            hit("s2", "e2", &long, &[(start, start + 10)]),
        ];
        answer(&mut stack, "f", hits);
        let frame = draw(size, |frame, theme| stack.view(frame, theme));
        assert!(frame.contains("flaky test failed"), "what was found is seen: {frame}");
        check_snapshot(name, &frame);
    }
}

#[test]
fn tiny_windows_break_nothing() {
    for size in TINY {
        let (mut stack, _) = stack(Within::Everything, size);
        typed(&mut stack, "f");
        answer(&mut stack, "f", vec![hit("s1", "e1", "a flaky test", &[(2, 12)])]);
        draw(size, |frame, theme| stack.view(frame, theme));
    }
}
