//! The fold over a session's log.

use bough_session::limits::{
    STATE_LABELS_MAX, STATE_MODELS_MAX, STATE_NAME_BYTES_MAX, STATE_OPEN_LOOPS_MAX,
    STATE_OPEN_STREAMS_MAX, STATE_PREVIEW_CHARS_MAX, USAGE_OTHER_MODELS,
};
use bough_session::{
    Bookkeeping, Entry, EntryBody, EntryId, FORMAT_PI, Finish, ForeignBody, Label, LoopEvent,
    LoopId, LoopPhase, MetaChange, ModelChange, ModelName, RawJson, Record, Revision, SessionId,
    SessionInfo, SessionState, SessionStatus, StatusChange, StreamTally, TaskStatus, Usage,
    UsageChange,
};
use serde_json::json;

use crate::common::{assistant, entry, kept, map, user};

fn fold(records: &[Record]) -> SessionState {
    let mut state = SessionState::new(SessionId::from_stored("s"));
    for (seq, record) in (1..).zip(records) {
        state.apply(record, seq, i64::try_from(seq).unwrap() * 10);
    }
    state
}

fn titled(title: &str) -> Record {
    Record::Meta(MetaChange { title: Some(title.into()), ..MetaChange::default() })
}

fn status(status: SessionStatus, reason: Option<&str>) -> Record {
    let reason = reason.map(str::to_owned);
    Record::Meta(MetaChange {
        status: Some(StatusChange { status, reason }),
        ..MetaChange::default()
    })
}

fn tokens(output: u64) -> Usage {
    Usage { output: Some(output), cost_usd: Some(0.5), ..Usage::default() }
}

fn phase(name: &str, phase: LoopPhase) -> Record {
    Record::Loop(LoopEvent {
        loop_id: LoopId::from_stored(name),
        phase: Some(phase),
        entry_id: None,
        event: RawJson::parse(r#"{"config_snapshot":{"context_window":200000}}"#).unwrap(),
    })
}

#[test]
fn the_first_record_makes_the_session() {
    let state = fold(&[titled("t")]);
    let meta = &state.meta;
    assert_eq!((meta.created_at, meta.updated_at, meta.message_count), (10, 10, 0));
    assert_eq!((meta.title.as_str(), meta.status), ("t", SessionStatus::Idle));
    let imported = Record::Meta(MetaChange {
        created_at: Some(3),
        updated_at: Some(4),
        forked_from: Some(SessionId::from_stored("f")),
        ..MetaChange::default()
    });
    let meta = fold(&[imported]).meta;
    assert_eq!((meta.created_at, meta.updated_at), (3, 4));
    assert_eq!(meta.forked_from, Some(SessionId::from_stored("f")));
}

#[test]
fn a_reason_stays_only_with_an_error() {
    let state = fold(&[titled("t"), status(SessionStatus::Error, Some("why"))]);
    assert_eq!(state.meta.status_reason.as_deref(), Some("why"));
    let state = fold(&[
        status(SessionStatus::Error, Some("why")),
        status(SessionStatus::Done, Some("other")),
    ]);
    assert_eq!((state.meta.status, state.meta.status_reason), (SessionStatus::Done, None));
}

#[test]
fn metadata_is_replaced_whole() {
    let set =
        |value| Record::Meta(MetaChange { metadata: Some(map(value)), ..MetaChange::default() });
    let state = fold(&[set(json!({"a": 1, "b": 2})), set(json!({"c": 3}))]);
    assert_eq!(state.meta.metadata, Some(map(json!({"c": 3}))));
}

#[test]
fn entries_move_the_leaf_and_messages_count() {
    let note = Bookkeeping::SessionInfo(SessionInfo { name: "n".into() });
    let state = fold(&[
        titled("t"),
        Record::Entry(entry("a", None, user("  First\nquestion ", 1))),
        Record::Entry(entry("b", Some("a"), user("second", 1))),
        Record::Entry(kept("c", Some("b"), &note)),
        Record::Leaf(Some(EntryId::from_stored("a"))),
    ]);
    assert_eq!((state.meta.message_count, state.entry_count), (2, 3));
    assert_eq!(state.leaf, Some(EntryId::from_stored("a")));
    assert_eq!(state.meta.updated_at, 40, "moving the leaf is no activity");
    assert_eq!(state.preview.as_deref(), Some("First question"));
    assert_eq!(state.name.as_deref(), Some("n"));
    assert_eq!(fold(&[titled("t"), Record::Leaf(None)]).leaf, None);
}

#[test]
fn archiving_is_no_activity() {
    let archive = Record::Meta(MetaChange { archived: Some(true), ..MetaChange::default() });
    let state = fold(&[titled("t"), archive]);
    assert!(state.archived);
    assert_eq!(state.meta.updated_at, 10);
}

#[test]
fn time_never_goes_back() {
    let mut state = SessionState::new(SessionId::from_stored("s"));
    state.apply(&titled("t"), 1, 100);
    state.apply(&titled("u"), 2, 50);
    assert_eq!((state.meta.created_at, state.meta.updated_at), (100, 100));
    state.meta.touch(120);
    assert_eq!(state.meta.updated_at, 120);
}

#[test]
fn a_record_that_was_seen_changes_nothing() {
    let mut state = fold(&[titled("t"), Record::Entry(entry("a", None, user("x", 1)))]);
    let before = state.clone();
    state.apply(&Record::Entry(entry("a", None, user("x", 1))), 2, 999);
    assert_eq!(state, before);
}

#[test]
fn usage_is_summed_by_model() {
    let change =
        Bookkeeping::ModelChange(ModelChange { provider: "q".into(), model_id: "n".into() });
    let finish = |before: Option<Usage>, after| {
        Record::Revision(Revision {
            finish: Some(Box::new(Finish {
                usage: Some(UsageChange { model: "m".into(), before, after }),
                ..Finish::default()
            })),
            ..Revision::replace(&entry("b", None, user("x", 1)), &[], None)
        })
    };
    let state = fold(&[
        Record::Entry(entry("a", None, assistant("x", "m", Some(tokens(3))))),
        Record::Entry(entry("b", Some("a"), assistant("x", "m", None))),
        finish(None, tokens(4)),
        finish(Some(tokens(4)), tokens(10)),
        Record::Entry(entry("c", Some("b"), assistant("x", "other", Some(tokens(100))))),
        Record::Entry(kept("d", Some("c"), &change)),
    ]);
    assert_eq!(state.usage.models["m"].output, 13);
    assert_eq!(state.usage.models["m"].messages, 2);
    assert_eq!(state.usage.total.output, 113);
    assert!((state.usage.total.cost_usd - 1.5).abs() < 1e-9);
    assert_eq!(state.model.unwrap().model, "n");
}

#[test]
fn a_stream_counts_when_it_is_finished() {
    let tokens = |output| Usage { output: Some(output), ..Usage::default() };
    let begun = [
        Record::Streaming(EntryId::from_stored("b")),
        Record::Entry(entry("b", None, assistant("", "", Some(tokens(1))))),
    ];
    let state = fold(&begun);
    assert!(state.streams.is_open(&EntryId::from_stored("b")));
    assert_eq!((state.usage.total.messages, state.meta.message_count), (0, 1));
    assert_eq!(state.model, None, "it is not known yet");
    let finish = Record::Revision(Revision {
        finish: Some(Box::new(Finish {
            usage: Some(UsageChange { model: "m".into(), before: None, after: tokens(7) }),
            model: Some(ModelName { provider: "p".into(), model: "m".into() }),
            ..Finish::default()
        })),
        ..Revision::replace(&entry("b", None, user("x", 1)), &[], None)
    });
    let [streaming, added] = begun;
    let before = fold(&[streaming.clone(), added.clone()]).streams;
    let state = fold(&[streaming.clone(), added, finish.clone()]);
    let mut reverted = state.streams.clone();
    reverted.revert(&finish);
    assert_eq!(reverted, before);
    reverted.revert(&streaming);
    assert!(reverted.is_empty());
    assert!(!state.streams.is_open(&EntryId::from_stored("b")));
    assert!(state.streams.is_closed(&EntryId::from_stored("b")));
    assert_eq!(state.usage.models["m"].output, 7);
    assert_eq!(state.model.unwrap().model, "m");
    let text = serde_json::to_string(&state.streams).unwrap();
    assert_eq!(serde_json::from_str::<StreamTally>(&text).unwrap(), state.streams);
}

#[test]
fn no_more_streams_are_remembered_than_there_may_be() {
    let name = |number: usize| EntryId::from_stored(format!("e{number}"));
    let records: Vec<_> =
        (0..=STATE_OPEN_STREAMS_MAX).map(|n| Record::Streaming(name(n))).collect();
    let state = fold(&records);
    assert_eq!(state.streams.open_count(), STATE_OPEN_STREAMS_MAX);
    assert!(!state.streams.is_open(&name(0)));
    assert!(state.streams.is_open(&name(STATE_OPEN_STREAMS_MAX)));
}

#[test]
fn usage_that_pi_reports_of_no_message_is_summed_too() {
    let line = r#"{"type":"usage","provider":"p","model":"m","usage":{"input":5,"output":6}}"#;
    let body = ForeignBody::new(FORMAT_PI, RawJson::parse(line).unwrap());
    let entry = Entry { body: EntryBody::Foreign(body), ..entry("u", None, user("", 1)) };
    let state = fold(&[titled("x"), Record::Entry(entry)]);
    assert_eq!((state.usage.total.input, state.usage.models["m"].output), (5, 6));
    assert_eq!(state.meta.message_count, 0);
}

#[test]
fn the_task_follows_its_loops() {
    let check = |records: &[Record], expected: Option<TaskStatus>| {
        assert_eq!(fold(records).task_status(), expected, "{records:?}");
    };
    check(&[titled("t")], None);
    check(&[phase("a", LoopPhase::Pending)], Some(TaskStatus::Pending));
    let both = [phase("a", LoopPhase::Pending), phase("b", LoopPhase::Running)];
    check(&both, Some(TaskStatus::Running));
    let ended = |end| [phase("a", LoopPhase::Running), phase("a", end)];
    check(&ended(LoopPhase::Completed), Some(TaskStatus::Completed));
    check(&ended(LoopPhase::Rejected), Some(TaskStatus::Failed));
    check(&ended(LoopPhase::Aborted), Some(TaskStatus::Failed));
    let state = fold(&[phase("a", LoopPhase::Running)]);
    assert_eq!(state.context_window, Some(200_000));
    assert!(state.loops.any_open());
}

#[test]
fn deletion_can_be_undone() {
    assert!(fold(&[titled("t"), Record::Tombstone]).deleted);
    assert!(!fold(&[titled("t"), Record::Tombstone, Record::Restored]).deleted);
}

#[test]
fn the_state_stays_small_whatever_comes() {
    let huge = "x".repeat(10_000);
    let mut records = vec![titled("t")];
    for n in 0..500 {
        let model = format!("model {n} {huge}");
        let label =
            Label { target_id: EntryId::from_stored(format!("e{n}")), label: Some(huge.clone()) };
        records.push(Record::Entry(entry("a", None, assistant("x", &model, Some(tokens(1))))));
        records.push(Record::Entry(kept("b", None, &Bookkeeping::Label(label))));
        records.push(phase(&format!("loop {n}"), LoopPhase::Running));
    }
    records.push(Record::Entry(entry("c", None, user(&huge, 1))));
    let mut state = fold(&records);
    assert_eq!(state.usage.models.len(), STATE_MODELS_MAX + 1);
    assert_eq!(state.usage.models[USAGE_OTHER_MODELS].output, 500 - STATE_MODELS_MAX as u64);
    assert_eq!(state.labels.iter().count(), STATE_LABELS_MAX);
    assert_eq!(state.loops.open.len(), STATE_OPEN_LOOPS_MAX);
    assert!(serde_json::to_string(&state).unwrap().len() < 160 * 1024);

    // All loops end, also those that were only counted.
    for (seq, n) in (state.seq + 1..).zip(0..500) {
        state.apply(&phase(&format!("loop {n}"), LoopPhase::Completed), seq, 1);
    }
    assert!(!state.loops.any_open());
    assert_eq!(state.task_status(), Some(TaskStatus::Completed));
}

/// Each bound of the state at one below, at, and one above.
#[test]
fn the_state_keeps_up_to_its_bounds() {
    let around = |most: usize| [(most - 1, most - 1), (most, most), (most + 1, most)];
    for (given, kept_count) in around(STATE_LABELS_MAX) {
        let labels = (0..given).map(|n| {
            let target_id = EntryId::from_stored(format!("e{n}"));
            let label = Label { target_id, label: Some("l".to_owned()) };
            Record::Entry(kept("b", None, &Bookkeeping::Label(label)))
        });
        let state = fold(&labels.collect::<Vec<_>>());
        assert_eq!(state.labels.iter().count(), kept_count);
        let newest = EntryId::from_stored(format!("e{}", given - 1));
        assert!(state.labels.get(&newest).is_some(), "the oldest falls out");
    }
    for (given, kept_count) in around(STATE_OPEN_LOOPS_MAX) {
        let loops = (0..given).map(|n| phase(&n.to_string(), LoopPhase::Running));
        assert_eq!(fold(&loops.collect::<Vec<_>>()).loops.open.len(), kept_count);
    }
    for (given, kept_count) in around(STATE_MODELS_MAX) {
        let records = (0..given).map(|n| {
            Record::Entry(entry("a", None, assistant("x", &n.to_string(), Some(tokens(1)))))
        });
        let models = fold(&records.collect::<Vec<_>>()).usage.models;
        let own = models.keys().filter(|name| *name != USAGE_OTHER_MODELS);
        assert_eq!(
            (own.count(), models.contains_key(USAGE_OTHER_MODELS)),
            (kept_count, given > kept_count)
        );
    }
    for (given, kept_count) in around(STATE_NAME_BYTES_MAX) {
        let message = assistant("x", &"m".repeat(given), Some(tokens(1)));
        let state = fold(&[Record::Entry(entry("a", None, message))]);
        assert_eq!(state.model.unwrap().model.len(), kept_count);
        assert_eq!(state.usage.models.keys().next().unwrap().len(), kept_count);
    }
    for (given, is_cut) in [
        (STATE_PREVIEW_CHARS_MAX - 1, false),
        (STATE_PREVIEW_CHARS_MAX, false),
        (STATE_PREVIEW_CHARS_MAX + 1, true),
    ] {
        let text = "x".repeat(given);
        let shown = fold(&[Record::Entry(entry("a", None, user(&text, 1)))]).preview.unwrap();
        let kept = shown.trim_end_matches('\u{2026}');
        assert_eq!((kept.len(), shown != kept), (given.min(STATE_PREVIEW_CHARS_MAX), is_cut));
    }
}

#[test]
fn labels_can_be_taken_away() {
    let label = |label: Option<&str>| {
        Record::Entry(kept(
            "l",
            None,
            &Bookkeeping::Label(Label {
                target_id: EntryId::from_stored("a"),
                label: label.map(str::to_owned),
            }),
        ))
    };
    let state = fold(&[label(Some("one")), label(Some("two"))]);
    assert_eq!(state.labels.get(&EntryId::from_stored("a")), Some("two"));
    let state = fold(&[label(Some("one")), label(None)]);
    assert!(state.labels.is_empty());
}

#[test]
fn a_fold_goes_on_from_a_snapshot_at_any_record() {
    let records = [
        titled("t"),
        Record::Entry(entry("a", None, user("hi", 1))),
        Record::Entry(entry("b", Some("a"), assistant("x", "m", Some(tokens(3))))),
        phase("l", LoopPhase::Running),
        status(SessionStatus::Error, Some("why")),
        Record::Leaf(Some(EntryId::from_stored("a"))),
        phase("l", LoopPhase::Aborted),
        Record::Tombstone,
    ];
    let whole = fold(&records);
    for cut in 0..records.len() {
        let snapshot = serde_json::to_string(&fold(&records[..cut])).unwrap();
        let mut state: SessionState = serde_json::from_str(&snapshot).unwrap();
        for (seq, record) in (1..).zip(&records) {
            state.apply(record, seq, i64::try_from(seq).unwrap() * 10);
        }
        assert_eq!(state, whole, "cut at {cut}");
    }
}

fn forked() -> Record {
    let forked_from = Some(SessionId::from_stored("f"));
    Record::Meta(MetaChange { forked_from, ..MetaChange::default() })
}

fn cost(id: &str, output: u64, timestamp: i64) -> Record {
    let mut stored = entry(id, None, assistant("x", "m", Some(tokens(output))));
    stored.timestamp = timestamp;
    Record::Entry(stored)
}

#[test]
fn what_a_fork_copied_is_told_apart_from_what_was_said_in_it() {
    let leaf = |id: &str| Record::Leaf(Some(EntryId::from_stored(id)));
    let records = [forked(), cost("a", 3, 10), cost("b", 4, 10), leaf("b"), cost("c", 5, 60)];
    let details = fold(&records).details();
    assert_eq!((details.usage.total.output, details.copied_usage.total.output), (12, 7));
    assert_eq!(details.copied_usage.models["m"].messages, 2);
    let later = [records.as_slice(), &[leaf("a"), cost("d", 1, 70)]].concat();
    let later = fold(&later).details();
    assert_eq!(later.copied_usage, details.copied_usage, "only the first mark ends copies");
    let mut own = details.usage.clone();
    own.remove_sum(&details.copied_usage);
    assert_eq!((own.total.output, own.total.messages), (5, 1));
    own.add_sum(&details.copied_usage);
    assert_eq!(own, details.usage);
    let unforked = [titled("t"), cost("a", 3, 1), leaf("a"), cost("b", 4, 60)];
    assert!(fold(&unforked).details().copied_usage.is_empty());
}

#[test]
fn in_a_fork_without_a_mark_what_is_older_than_the_session_was_copied() {
    let made = MetaChange { created_at: Some(100), ..MetaChange::default() };
    let Record::Meta(MetaChange { forked_from, .. }) = forked() else { unreachable!() };
    let first = Record::Meta(MetaChange { forked_from, ..made });
    let records = [first, titled("t"), cost("a", 3, 99), cost("b", 4, 100), Record::Leaf(None)];
    assert_eq!(fold(&records).details().copied_usage.total.output, 3);
}

/// A snapshot from before copies were counted lacks the figure; used as it is, the fork would seem to have copied
/// nothing.
#[test]
fn a_snapshot_of_a_fork_that_does_not_say_what_it_copied_is_not_complete() {
    let leaf = Record::Leaf(Some(EntryId::from_stored("a")));
    for (first, is_fork) in [(forked(), true), (titled("t"), false)] {
        let state = fold(&[first, cost("a", 3, 10), leaf.clone()]);
        let mut snapshot = serde_json::to_value(&state).unwrap();
        assert_eq!(serde_json::from_value::<SessionState>(snapshot.clone()).unwrap(), state);
        assert!(state.is_complete());
        snapshot.as_object_mut().unwrap().remove("copied_usage");
        let old: SessionState = serde_json::from_value(snapshot).unwrap();
        assert_eq!(old.is_complete(), !is_fork);
    }
    assert!(fold(&[forked(), leaf]).is_complete(), "a fork of nothing says that it copied nothing");
}
