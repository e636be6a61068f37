use bough_session::{
    AgentMessage, AssistantMessage, Bookkeeping, BranchSummary, Canonical, Compaction,
    ContentBlock, EntryId, FunctionCallBlock, FunctionResultMessage, ModelChange, StopReason,
    Usage, UserMessage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cut::{NothingToCompact, plan};
use super::digest::{DIGEST_MARK, digest};
use super::tokens::context_tokens;
use super::undo::{Undo, undo};
use super::*;

/// A path that is written down one entry at a time; entries are named `0`, `1`, `2`...
#[derive(Default)]
struct Path(Vec<PathItem>);

impl Path {
    fn add(mut self, said: Canonical) -> Self {
        let id = EntryId::from_stored(self.0.len().to_string());
        self.0.push(PathItem { id, said });
        self
    }

    fn message(self, message: AgentMessage) -> Self {
        self.add(Canonical::Message(message.into()))
    }

    fn note(self, note: Bookkeeping) -> Self {
        self.add(Canonical::Custom(note.to_payload()))
    }

    fn user(self, text: &str) -> Self {
        let content = vec![ContentBlock::text(text)];
        self.message(AgentMessage::User(UserMessage::new(content, 0)))
    }

    fn answer(self, text: &str) -> Self {
        self.message(answer(vec![ContentBlock::text(text)], None))
    }

    fn call(self, id: &str, function: &str, arguments: Value) -> Self {
        let call = FunctionCallBlock::new(id.into(), function.into(), arguments.into());
        self.message(answer(vec![ContentBlock::FunctionCall(call)], None))
    }

    fn result(self, id: &str, text: &str, is_error: bool) -> Self {
        self.message(AgentMessage::FunctionResult(FunctionResultMessage {
            is_error,
            ..FunctionResultMessage::new(
                id.into(),
                String::new(),
                vec![ContentBlock::text(text)],
                0,
            )
        }))
    }

    fn model(self) -> Self {
        let change = ModelChange { provider: "p".into(), model_id: "m".into() };
        self.note(Bookkeeping::ModelChange(change))
    }

    fn compaction(self, summary: &str, first_kept: &str) -> Self {
        self.note(Bookkeeping::Compaction(Compaction {
            summary: summary.into(),
            first_kept_entry_id: EntryId::from_stored(first_kept),
            tokens_before: 0,
            details: None,
            from_hook: None,
        }))
    }
}

fn answer(content: Vec<ContentBlock>, usage: Option<Usage>) -> AgentMessage {
    AgentMessage::Assistant(AssistantMessage {
        usage,
        ..AssistantMessage::new(content, "p".into(), "m".into(), 0)
    })
}

/// Forty characters: ten tokens.
const TEN: &str = "0123456789012345678901234567890123456789";

#[track_caller]
fn check_cut(path: Path, keep_recent: u64, first_kept: &str, split: Option<usize>) {
    let plan = plan(&path.0, keep_recent).expect("something to compact");
    assert_eq!((plan.first_kept.as_str(), plan.split_turn), (first_kept, split));
}

fn four_turns() -> Path {
    (0..4).fold(Path::default(), |path, _| path.user(TEN).answer(TEN))
}

#[test]
fn the_kept_tail_has_at_least_what_is_to_be_kept() {
    check_cut(four_turns(), 20, "6", None);
    check_cut(four_turns(), 21, "5", Some(4));
    check_cut(four_turns(), 10, "7", Some(6));
    check_cut(four_turns(), 1, "7", Some(6));
}

#[test]
fn a_call_stays_with_its_result() {
    let path = || {
        Path::default()
            .user(TEN)
            .answer(TEN)
            .user(TEN)
            .call("a", "bash", json!({}))
            .result("a", TEN, false)
    };
    // Ten tokens back is the result; the next place a model may be shown first is after it.
    check_cut(path().answer(TEN), 20, "5", Some(2));
    // Without anything after it, the cut moves back to before the call.
    check_cut(path(), 10, "3", Some(2));
}

#[test]
fn what_lies_between_a_call_and_its_result_does_not_part_them() {
    let path = Path::default()
        .user(TEN)
        .call("a", "bash", json!({}))
        .user("are you there?")
        .result("a", TEN, false);
    check_cut(path, 10, "1", Some(0));
}

#[test]
fn bookkeeping_stays_with_what_it_introduces() {
    let path = Path::default().user(TEN).answer(TEN).model().user(TEN).answer(TEN);
    check_cut(path, 20, "2", None);
}

#[test]
fn a_branch_summary_may_come_first() {
    let summary = BranchSummary {
        from_id: "root".into(),
        summary: TEN.into(),
        details: None,
        from_hook: None,
    };
    let path = Path::default().user(TEN).note(Bookkeeping::BranchSummary(summary)).answer(TEN);
    check_cut(path, 20, "1", None);
}

#[test]
fn the_range_starts_where_the_last_compaction_kept_from() {
    let path = four_turns().compaction("earlier", "4").user(TEN).answer(TEN);
    let plan = plan(&path.0, 20).unwrap();
    assert_eq!(plan.range, 4..9);
    assert_eq!(plan.previous.unwrap().kept_from, 4);
}

#[test]
fn nothing_to_compact() {
    let check = |path: Path, expected| assert_eq!(plan(&path.0, 20).unwrap_err(), expected);
    check(Path::default(), NothingToCompact::Empty);
    check(Path::default().model(), NothingToCompact::Empty);
    check(Path::default().user(TEN).answer(TEN), NothingToCompact::AllIsRecent);
    check(four_turns().compaction("s", "4"), NothingToCompact::JustCompacted);
}

#[test]
fn tokens_come_from_the_newest_report_and_estimates_after_it() {
    let usage = Usage { input: Some(900), output: Some(100), ..Usage::default() };
    let reported = answer(vec![ContentBlock::text(TEN)], Some(usage.clone()));
    let path = Path::default().user(TEN).message(reported.clone()).user(TEN);
    assert_eq!(context_tokens(&path.0), 1_010);

    let AgentMessage::Assistant(mut broken) = reported.clone() else { unreachable!() };
    broken.stop_reason = StopReason::Aborted;
    let path = Path::default().user(TEN).message(AgentMessage::Assistant(broken));
    assert_eq!(context_tokens(&path.0), 20, "an answer that broke off says nothing");

    let path = Path::default().user(TEN).message(reported).compaction(TEN, "1").user(TEN);
    assert_eq!(
        context_tokens(&path.0),
        55,
        "what was reported before is out of date, and the summary has an introduction"
    );
}

#[test]
fn files_are_read_or_changed_and_carried_on() {
    let path = Path::default()
        .user(TEN)
        .call("1", "read", json!({"path": "b.rs"}))
        .call("2", "fs::read_file", json!({"file_path": "a.rs"}))
        .call("3", "mcp__files__edit", json!({"path": "b.rs"}))
        .call("4", "bash", json!({"path": "not-a-file"}));
    let files = Files::of(&path.0, None);
    assert_eq!(files.to_details(), json!({"readFiles": ["a.rs"], "modifiedFiles": ["b.rs"]}));

    let mut path = path.compaction("s", "0");
    let Canonical::Custom(custom) = &mut path.0[5].said else { unreachable!() };
    custom.data["details"] = json!({"readFiles": ["old.rs"], "modifiedFiles": []});
    let path = path.user(TEN).answer(TEN).user(TEN);
    let plan_of = |path: &Path| plan(&path.0, 10).unwrap().files;
    assert!(plan_of(&path).read.contains("old.rs"));
    let mut hooked = path;
    let Canonical::Custom(custom) = &mut hooked.0[5].said else { unreachable!() };
    custom.data["from_hook"] = json!(true);
    assert!(!plan_of(&hooked).read.contains("old.rs"));
}

#[test]
fn the_worked_example() {
    let path = Path::default()
        .user("The date parser fails on leap days. Please fix it.")
        .call("1", "read", json!({"path": "src/date.rs"}))
        .result("1", "fn parse() {}", false)
        .call("2", "bash", json!({"command": "cargo test"}))
        .result("2", "1 failed", true)
        .call("3", "edit", json!({"path": "src/parse.rs"}))
        .result("3", "ok", false)
        .answer("Fixed: February 29 is accepted in leap years.")
        .user("Also add a test for 1900.")
        .answer("Added `leap_year_1900`.")
        .user("Thanks. Now the time zones.");
    let plan = plan(&path.0, 5).unwrap();
    assert_eq!(
        digest(&path.0, &plan),
        "## Goal\n\
         The date parser fails on leap days. Please fix it.\n\
         \n\
         ## So far\n\
         2 user messages, 5 answers, 3 calls (bash 1, edit 1, read 1), 1 failed.\n\
         \n\
         ## Last user message\n\
         Also add a test for 1900.\n\
         \n\
         ## Last answer\n\
         Added `leap_year_1900`.\n\
         \n\
         <read-files>\n\
         src/date.rs\n\
         </read-files>\n\
         \n\
         <modified-files>\n\
         src/parse.rs\n\
         </modified-files>\n\
         \n\
         (Digest by fixed rules; no model wrote this.)"
    );
}

#[test]
fn the_goal_is_what_was_meant_for_the_model() {
    let goal = |path: Path| {
        let path = path.user(TEN).answer(TEN).user(TEN);
        let plan = plan(&path.0, 5).unwrap();
        let text = digest(&path.0, &plan);
        text.lines().nth(1).unwrap().to_owned()
    };
    let stopped = || {
        let AgentMessage::Assistant(said) = answer(Vec::new(), None) else { unreachable!() };
        AgentMessage::Assistant(AssistantMessage { stop_reason: StopReason::Aborted, ..said })
    };
    let fix = "Fix the parser";
    let command = || Path::default().user("/model opus").message(stopped());
    assert_eq!(goal(command().user(fix).answer("done")), fix);
    assert_eq!(goal(Path::default().user("no, wait").message(stopped()).user(fix)), fix);
    assert_eq!(goal(Path::default().user(fix).answer("done").user("/compact")), fix);
    let path = "/home/u/date.rs does not compile";
    assert_eq!(goal(Path::default().user(path).answer("done")), path);
    let broken_off = Path::default().user(fix).call("1", "read", json!({})).message(stopped());
    assert_eq!(goal(broken_off), fix, "it was begun");
}

#[test]
fn without_a_report_the_context_is_as_large_as_what_is_sent() {
    let path = four_turns().compaction("A summary.", "4").user(TEN);
    let entries: Vec<_> = path.0.iter().map(super::tokens::entry_of).collect();
    let sent = bough_session::context_view(&entries, None).tokens as u64;
    assert_eq!(context_tokens(&path.0), sent);
}

#[test]
fn a_digest_keeps_what_a_model_wrote_before_and_not_an_older_digest() {
    let check = |summary: &str, kept: bool| {
        let path = four_turns().compaction(summary, "4").user(TEN).answer(TEN);
        let plan = plan(&path.0, 20).unwrap();
        assert_eq!(digest(&path.0, &plan).contains("## Earlier summary"), kept, "{summary}");
    };
    check("A model wrote this.", true);
    check(&format!("## Goal\nx\n\n{DIGEST_MARK}"), false);
}

#[test]
fn a_conversation_as_text() {
    let path = Path::default()
        .user("hi")
        .call("1", "bash", json!({"command": "ls"}))
        .result("1", &"x".repeat(2_010), false)
        .answer("done");
    let text = conversation_text(&path.0);
    let expected = format!(
        "[User]: hi\n\n[Assistant tool calls]: bash({{\"command\":\"ls\"}})\n\n\
         [Tool result]: {}… (10 more characters)\n\n[Assistant]: done",
        "x".repeat(2_000)
    );
    assert_eq!(text, expected);
}

#[test]
fn the_last_compaction_is_undone_by_moving_the_leaf() {
    let path = four_turns().compaction("s", "4");
    let expected = Undo::MoveLeaf {
        compaction: EntryId::from_stored("8"),
        to: Some(EntryId::from_stored("7")),
    };
    assert_eq!(undo(&path.0), Some(expected));
    assert_eq!(undo(&four_turns().0), None);
}

#[test]
fn a_compaction_further_up_is_undone_by_restating_what_was_in_force() {
    let path = four_turns().compaction("one", "4").user(TEN).compaction("two", "9").user(TEN);
    let Some(Undo::Append { compaction, entry }) = undo(&path.0) else { panic!("an entry") };
    assert_eq!(compaction.as_str(), "10");
    let path = path.note(entry);
    let Some(Bookkeeping::Compaction(back)) = path.0[12].bookkeeping() else { panic!() };
    assert_eq!((back.summary.as_str(), back.first_kept_entry_id.as_str()), ("one", "4"));

    let Some(Undo::Append { compaction, entry }) = undo(&path.0) else { panic!("an entry") };
    assert_eq!(compaction.as_str(), "8", "the first one is next");
    let path = path.note(entry);
    let Some(Bookkeeping::Compaction(back)) = path.0[13].bookkeeping() else { panic!() };
    assert_eq!((back.summary.as_str(), back.first_kept_entry_id.as_str()), ("", "0"));
    assert_eq!(undo(&path.0), None);
    assert!(plan(&path.0, 10).is_ok(), "what was undone can be compacted again");
}

#[test]
fn what_is_left_behind_is_what_the_new_path_does_not_have() {
    let old = four_turns();
    let ids =
        |names: &[&str]| names.iter().map(|name| EntryId::from_stored(*name)).collect::<Vec<_>>();
    assert_eq!(left_behind(&old.0, &ids(&["0", "1", "2"])).len(), 5);
    assert_eq!(left_behind(&old.0, &ids(&[])).len(), 8);
    let all: Vec<EntryId> = old.0.iter().map(|item| item.id.clone()).collect();
    assert!(left_behind(&old.0, &all).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    User(usize),
    Answer(usize),
    Call,
    Result(usize),
    Quiet,
    Compaction,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..60_usize).prop_map(Step::User),
        (0..60_usize).prop_map(Step::Answer),
        Just(Step::Call),
        (0..60_usize).prop_map(Step::Result),
        Just(Step::Quiet),
        Just(Step::Compaction),
    ]
}

/// A path in which every result answers the oldest call that is still open.
fn build(steps: &[Step]) -> Path {
    let mut open = std::collections::VecDeque::new();
    steps.iter().enumerate().fold(Path::default(), |path, (at, step)| match step {
        Step::User(size) => path.user(&"u".repeat(*size)),
        Step::Answer(size) => path.answer(&"a".repeat(*size)),
        Step::Call => {
            open.push_back(at.to_string());
            path.call(&at.to_string(), "bash", json!({}))
        }
        Step::Result(size) => match open.pop_front() {
            Some(id) => path.result(&id, &"r".repeat(*size), false),
            None => path.model(),
        },
        Step::Quiet => path.model(),
        Step::Compaction => path.compaction("s", &at.saturating_sub(3).to_string()),
    })
}

proptest! {
    #[test]
    fn a_cut_never_parts_a_call_from_its_result(
        steps in prop::collection::vec(step(), 1..40),
        keep_recent in 0..80_u64,
    ) {
        let path = build(&steps);
        let Ok(plan) = plan(&path.0, keep_recent) else { return Ok(()) };
        let cut = plan.range.end;
        prop_assert!(plan.range.start < cut && cut < path.0.len());
        let called_before = |id: &str| path.0[..cut].iter().filter_map(PathItem::message).any(|message| {
            message.content().iter().any(|block| matches!(block, ContentBlock::FunctionCall(call) if call.id == id))
        });
        for item in &path.0[cut..] {
            if let Some(AgentMessage::FunctionResult(result)) = item.message() {
                prop_assert!(!called_before(&result.function_call_id), "cut at {cut} parts {result:?}");
            }
        }
        prop_assert_eq!(&plan.first_kept, &path.0[cut].id);
        prop_assert_eq!(plan.kept_entries, path.0.len() - cut);
    }
}
