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
    let answer = Answer::Found { query: query.to_owned(), is_first: true, found };
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
        let answer = Answer::Found { query: "n".to_owned(), is_first: true, found };
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
    let (mut stack, _) = self::stack(Within::Session(SessionId::from_stored("a \"b")), TINY[4]);
    assert_eq!(typed(&mut stack, "x"), ["session:\"a \"\"b\" x"]);
}

/// The cursors that are asked for.
fn cursors(effects: Vec<StackEffect>) -> Vec<Option<String>> {
    let cursor = |effect| match effect {
        StackEffect::Search(Effect::Search(request)) => Some(request.cursor),
        _ => None,
    };
    effects.into_iter().filter_map(cursor).collect()
}

#[test]
fn further_hits_are_read_when_the_last_ones_are_near() {
    let (mut stack, _) = stack(Within::Everything, TINY[4]);
    typed(&mut stack, "n");
    let page = |ids: std::ops::Range<u32>, next: Option<&str>| {
        let hits = ids.map(|id| hit(&format!("s{id}"), "e1", "n", &[(0, 1)])).collect();
        let next_cursor = next.map(str::to_owned);
        let found = Ok(SearchResponse { hits, next_cursor, ..SearchResponse::default() });
        let is_first = next.is_some();
        let answer = Answer::Found { query: "n".to_owned(), is_first, found };
        Event::Answer(AnyAnswer::Search(answer))
    };
    assert_eq!(cursors(stack.update(page(0..100, Some("further")))), []);
    let frame = |stack: &ScreenStack| draw(TINY[4], |frame, theme| stack.view(frame, theme));
    assert!(frame(&stack).contains("100+ hits"), "{}", frame(&stack));
    let mut asked = Vec::new();
    for _ in 0..99 {
        asked.extend(cursors(stack.update(Event::Key(key("Down")))));
    }
    assert_eq!(asked, [Some("further".to_owned())], "once");
    stack.update(page(100..103, None));
    for _ in 0..9 {
        assert_eq!(cursors(stack.update(Event::Key(key("Down")))), []);
    }
    let shown = frame(&stack);
    assert!(shown.contains("103 hits") && shown.contains("About s102"), "{shown}");
    // A page without hits is not the end, and a failure is tried again with the next key.
    typed(&mut stack, "x");
    let found = |is_first, found| {
        let answer = Answer::Found { query: "nx".to_owned(), is_first, found };
        Event::Answer(AnyAnswer::Search(answer))
    };
    let next_cursor = Some("second".to_owned());
    let nothing = Ok(SearchResponse { next_cursor, ..SearchResponse::default() });
    let second = [Some("second".to_owned())];
    assert_eq!(cursors(stack.update(found(true, nothing))), second);
    assert_eq!(cursors(stack.update(found(false, Err("no answer".to_owned())))), []);
    assert_eq!(cursors(stack.update(Event::Key(key("Down")))), second);
}

#[test]
fn a_query_that_is_asked_again_keeps_the_chosen_hit() {
    let (mut stack, _) = stack(Within::Everything, TINY[4]);
    typed(&mut stack, "n");
    let found = |stack: &mut ScreenStack, ids: &[&str]| {
        let hits = ids.iter().map(|id| hit(id, "e1", "n", &[(0, 1)])).collect();
        let index = Some(IndexStatus::default());
        let found = Ok(SearchResponse { hits, index, ..SearchResponse::default() });
        let answer = Answer::Found { query: "n".to_owned(), is_first: true, found };
        stack.update(Event::Answer(AnyAnswer::Search(answer)));
    };
    found(&mut stack, &["s1", "s2"]);
    stack.update(Event::Key(key("Down")));
    assert_eq!(asked(stack.update(Event::Tick { now_ms: NOW })), ["n"], "the index is behind");
    found(&mut stack, &["s3", "s1", "s2"]);
    let effects = format!("{:?}", stack.update(Event::Key(key("Enter"))));
    assert!(effects.contains("\"s2\"") && !effects.contains("\"s1\""), "{effects}");
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
fn within_a_session_the_hits_are_named_by_who_speaks() {
    for columns in [60, 200] {
        let size = Size { columns, rows: 14 };
        let (mut stack, _) = stack(Within::Session(SessionId::from_stored("s1")), size);
        typed(&mut stack, "f");
        answer(&mut stack, "session:\"s1\" f", vec![hit("s1", "e2", "a flaky test", &[(2, 12)])]);
        let frame = draw(size, |frame, theme| stack.view(frame, theme));
        let heading = frame.lines().nth(3).unwrap().trim_end().to_owned();
        assert!(heading.starts_with("user ") && heading.ends_with("1m · other branch"), "{frame}");
        assert!(!frame.contains("About s1"), "{frame}");
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
