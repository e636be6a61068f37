//! What a model would be sent.

use bough_session::{
    Bookkeeping, BranchSummary, Compaction, ContextItem, ContextKind, ContextOutline, Entry,
    EntryId, FORMAT_PI, ForeignBody, ModelChange, RawJson, UsageByModel, context_view,
    estimate_text_tokens,
};
use bough_session::{EntryBody, Usage};

use crate::common::{assistant, entry, kept, result, user};

fn compaction(id: &str, first_kept: &str) -> Entry {
    let compaction = Compaction {
        summary: "so far".into(),
        first_kept_entry_id: EntryId::from_stored(first_kept),
        tokens_before: 100,
        details: None,
        from_hook: None,
    };
    kept(id, None, &Bookkeeping::Compaction(compaction))
}

fn summary(id: &str, text: &str) -> Entry {
    let summary =
        BranchSummary { from_id: "x".into(), summary: text.into(), details: None, from_hook: None };
    kept(id, None, &Bookkeeping::BranchSummary(summary))
}

fn user_entry(id: &str) -> Entry {
    entry(id, None, user(id, 1))
}

#[track_caller]
fn check(path: &[Entry], budget: Option<usize>, expected: &[&str]) {
    let view = context_view(path, budget);
    let ids: Vec<&str> = view.items.iter().map(|item| item.entry_id.as_str()).collect();
    assert_eq!(ids, expected);
    let sum: usize = view.items.iter().map(|item| item.tokens).sum();
    assert_eq!(view.tokens, sum);
    check_outline(path);
}

/// A context that is made item by item is the same.
#[track_caller]
fn check_outline(path: &[Entry]) {
    let mut outline = ContextOutline::default();
    for entry in path.iter().rev() {
        outline.add(entry);
        if outline.is_complete() {
            break;
        }
    }
    let begin = outline.begin().map(|id| path.iter().position(|entry| entry.id == *id).unwrap());
    let rest = path[begin.unwrap_or(0)..].iter().filter_map(|entry| outline.item(entry));
    let items: Vec<ContextItem> = outline.first_items().into_iter().chain(rest).collect();
    let view = context_view(path, None);
    assert_eq!(items, view.items);
    assert_eq!(outline.tokens(), view.tokens);
}

#[test]
fn without_a_compaction_every_message_and_summary_comes() {
    let model = kept(
        "m",
        None,
        &Bookkeeping::ModelChange(ModelChange { provider: "q".into(), model_id: "n".into() }),
    );
    check(&[], None, &[]);
    let path = [user_entry("a"), model, summary("s", "left"), summary("t", ""), user_entry("b")];
    check(&path, None, &["a", "s", "b"]);
}

#[test]
fn the_last_compaction_replaces_what_it_sums_up() {
    let path =
        [user_entry("a"), user_entry("b"), user_entry("c"), compaction("k", "c"), user_entry("d")];
    check(&path, None, &["k", "c", "d"]);
    let view = context_view(&path, None);
    assert_eq!(view.items[0].kind, ContextKind::Compaction);
    assert!(view.items[0].message.text().contains("<summary>\nso far\n</summary>"));
    assert_eq!(view.compaction, Some(EntryId::from_stored("k")));

    let twice = [
        user_entry("a"),
        compaction("k", "a"),
        user_entry("b"),
        compaction("l", "b"),
        user_entry("c"),
    ];
    check(&twice, None, &["l", "b", "c"]);
}

#[test]
fn a_compaction_that_keeps_nothing_keeps_nothing() {
    check(&[user_entry("a"), compaction("k", "gone"), user_entry("b")], None, &["k", "b"]);
    check(&[user_entry("a"), compaction("k", "k"), user_entry("b")], None, &["k", "b"]);
    check(&[user_entry("a"), compaction("k", "b"), user_entry("b")], None, &["k", "b"]);
}

/// Some compactions only leave out messages; an empty summary would be an empty message.
#[test]
fn a_compaction_without_words_leaves_out_and_sends_nothing_instead() {
    for words in ["", " \n"] {
        let mut silent = compaction("k", "c");
        let EntryBody::Custom(custom) = &mut silent.body else { panic!("{silent:?}") };
        custom.data["summary"] = words.into();
        let path = [
            user_entry("a"),
            user_entry("b"),
            user_entry("c"),
            silent,
            summary("s", words),
            user_entry("d"),
        ];
        check(&path, None, &["c", "d"]);
        let view = context_view(&path, None);
        assert_eq!(view.compaction, Some(EntryId::from_stored("k")), "it is in force");
        check(&path, Some(view.tokens), &["c", "d"]);
        check(&path, Some(view.tokens - 1), &["d"]);
    }
}

#[test]
fn over_budget_the_oldest_go_first() {
    let long = |id: &str| entry(id, None, user(&"x".repeat(40), 1));
    let path = [long("a"), long("b"), long("c")];
    check(&path, Some(30), &["a", "b", "c"]);
    check(&path, Some(29), &["b", "c"]);
    check(&path, Some(0), &[]);
    assert_eq!(context_view(&path, Some(29)).left_out, 1);
}

#[test]
fn a_budget_never_drops_the_summary_nor_splits_a_call_from_its_result() {
    let call = entry("call", None, assistant(&"x".repeat(400), "m", None));
    let path = [
        user_entry("a"),
        compaction("k", "call"),
        call,
        entry("r1", None, result("out")),
        entry("r2", None, result("out")),
        user_entry("b"),
    ];
    // The call does not fit, so its results go with it.
    check(&path, Some(80), &["k", "b"]);
    check(&path, Some(0), &["k"]);
}

#[test]
fn a_private_command_stays_out() {
    let bash = |id: &str, private: bool| {
        let line = format!(
            r#"{{"type":"message","message":{{"role":"bashExecution","command":"ls","output":"","exitCode":1,"excludeFromContext":{private},"timestamp":1}}}}"#
        );
        let body = ForeignBody::new(FORMAT_PI, RawJson::parse(line).unwrap());
        Entry { body: EntryBody::Foreign(body), ..user_entry(id) }
    };
    check(&[bash("a", false), bash("b", true)], None, &["a"]);
}

#[test]
fn tokens_are_a_quarter_of_the_characters_rounded_up() {
    assert_eq!(estimate_text_tokens(""), 0);
    assert_eq!(estimate_text_tokens("abcd"), 1);
    assert_eq!(estimate_text_tokens("abcde"), 2);
    assert_eq!(estimate_text_tokens("世界世界"), 1);
}

fn usage_of(path: &[Entry]) -> UsageByModel {
    let mut usage = UsageByModel::default();
    path.iter().for_each(|entry| usage.add_entry(entry));
    usage
}

#[test]
fn the_usage_of_a_branch_is_the_sum_over_its_path() {
    let usage = |output| Some(Usage { output: Some(output), ..Usage::default() });
    let path = [
        user_entry("a"),
        entry("b", None, assistant("x", "m", usage(2))),
        entry("c", None, assistant("x", "n", usage(3))),
    ];
    let sum = usage_of(&path);
    assert_eq!((sum.total.output, sum.models["m"].output), (5, 2));
}

fn pi_line(id: &str, json: &str) -> Entry {
    let body = ForeignBody::new(FORMAT_PI, RawJson::parse(json).unwrap());
    Entry { body: EntryBody::Foreign(body), ..entry(id, None, user("", 1)) }
}

#[test]
fn edits_of_pi_change_what_is_sent_and_the_last_one_counts() {
    let edit = |id: &str, target: &str, replacement: &str| {
        pi_line(
            id,
            &format!(
                r#"{{"type":"context_edit","targetId":"{target}","replacement":{replacement}}}"#
            ),
        )
    };
    let mut path = vec![user_entry("a"), user_entry("b"), user_entry("c")];
    path.push(edit("e1", "a", "null"));
    path.push(edit("e2", "b", r#"{"content":"shorter"}"#));
    check(&path, None, &["b", "c"]);
    assert_eq!(context_view(&path, None).items[0].message.text(), "shorter");
    assert_eq!(path[1].message().unwrap().text(), "b", "what is stored stays");
    path.push(edit("e3", "a", r#"{"content":[{"type":"text","text":"back"}]}"#));
    assert_eq!(context_view(&path, None).items[0].message.text(), "back");
    check_outline(&path);
    path.insert(2, compaction("k", "b"));
    check_outline(&path);
}

#[test]
fn the_system_prompt_that_a_compaction_of_pi_sets_comes_first() {
    let compaction = |system: &str| {
        let line = format!(
            r#"{{"type":"compaction","summary":"so far","firstKeptEntryId":"b","tokensBefore":5{system}}}"#
        );
        [user_entry("a"), user_entry("b"), pi_line("k", &line), user_entry("c")]
    };
    let path = compaction(r#","systemMessage":{"role":"system","content":"Be brief."}"#);
    check(&path, None, &["k", "k", "b", "c"]);
    let view = context_view(&path, None);
    assert_eq!(view.items[0].kind, ContextKind::Compaction);
    assert_eq!(view.items[0].message.text(), "Be brief.");
    assert!(view.items[1].message.text().contains("so far"));
    check(&path, Some(0), &["k", "k"]);
    // It counts towards the budget.
    let fixed = view.items[0].tokens + view.items[1].tokens;
    check(&path, Some(fixed + view.items[3].tokens), &["k", "k", "c"]);
    for none in ["", r#","systemMessage":null"#, r#","systemMessage":{"content":""}"#] {
        check(&compaction(none), None, &["k", "b", "c"]);
    }
}

#[test]
fn usage_of_no_message_is_counted_too() {
    let line = r#"{"type":"usage","kind":"cache_warm","provider":"p","model":"m","usage":{"input":5,"output":6,"cost":{"total":0.5}}}"#;
    let usage = usage_of(&[user_entry("a"), pi_line("u", line)]);
    assert_eq!((usage.total.input, usage.models["m"].output), (5, 6));
    assert!((usage.total.cost_usd - 0.5).abs() < 1e-9);
}
