//! Back: what the V1 file gets, what is refused, and who answers.

use std::sync::Arc;

use crate::common::*;
use bough_log::Expected;
use bough_log::format::{ActiveStore, Outcome as Ended, Phase, Pointer, StoreState};
use bough_migrate::{LostKind, MigrateError, Migrator, Outcome, RollbackOptions, Standing};
use bough_session::{
    Bookkeeping, Compaction, Entry, EntryBody, EntryId, Label, LoopEvent, LoopId, MetaChange,
    RawJson, Record, Removal,
};
use bough_testkit::SimDisk;
use serde_json::{Value, json};

const FILE: &str = "v1/s.jsonl";

struct Fixture {
    disk: SimDisk,
    migrator: Migrator,
}

impl Fixture {
    /// A migrated session.
    fn migrated(text: &str) -> Self {
        let disk = SimDisk::new();
        disk.plant(&path(FILE), text.as_bytes()).unwrap();
        let migrator = migrator(&disk, small(), 1);
        migrate(&migrator, FILE);
        Self { disk, migrator }
    }

    /// Appends records as a service would.
    fn append(&self, records: &[Record]) {
        let log = LogStore::open(platform(Arc::new(self.disk.clone()), 7), small()).unwrap();
        for record in records {
            let record = log_record(record, 1_800_000_000_000);
            log.append("s", Expected::Any, vec![record]).unwrap();
        }
        log.close_all().unwrap();
    }

    fn back(&self) -> bough_migrate::Result<bough_migrate::RollbackSummary> {
        self.migrator.rollback(
            &session_s(),
            &RollbackOptions { reason: "test".into(), ..Default::default() },
        )
    }

    fn back_anyway(&self) -> bough_migrate::RollbackSummary {
        let options = RollbackOptions {
            reason: "test".into(),
            accept_loss: true,
            accept_changed_target: true,
        };
        self.migrator.rollback(&session_s(), &options).unwrap()
    }

    fn lines(&self) -> Vec<Value> {
        values(&bytes(&self.disk, FILE))
    }

    fn state(&self) -> StoreState {
        logs(&self.disk).manifest("s").unwrap().unwrap().state
    }
}

fn entry(id: &str, parent: &str, text: &str) -> Record {
    Record::Entry(native_entry(id, Some(parent), text, 1_800_000_000_000))
}

#[test]
fn with_nothing_written_since_the_file_is_not_touched_and_answers_again() {
    let fixture = Fixture::migrated(&sample("s"));
    let summary = fixture.back().unwrap();
    assert_eq!((summary.exported, summary.already), (0, false));
    assert_eq!(bytes(&fixture.disk, FILE), sample("s").as_bytes());
    let manifest = logs(&fixture.disk).manifest("s").unwrap().unwrap();
    assert_eq!(manifest.state, StoreState::RolledBack);
    assert_eq!(manifest.active_store, ActiveStore::JsonlV3);
    assert_eq!(manifest.previous, Some(Pointer::NativeV2));
    let Answer::File(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    assert_eq!(found.len(), 5);
    let again = fixture.back().unwrap();
    assert!(again.already);
}

#[test]
fn the_ledger_keeps_snapshot_and_correlation_and_gives_the_reason() {
    let fixture = Fixture::migrated(&sample("s"));
    fixture.back().unwrap();
    let ledger = logs(&fixture.disk).ledger("s").unwrap();
    let (forward, back) = ledger.split_at(5);
    let phases: Vec<Phase> = back.iter().map(|event| event.phase).collect();
    assert_eq!(phases, [Phase::Planned, Phase::Verified, Phase::RolledBack]);
    for event in back {
        assert_eq!(event.source_snapshot_id, forward[0].source_snapshot_id);
        assert_eq!(event.correlation_id, forward[0].correlation_id);
        assert_eq!(event.migration_id, forward[0].migration_id);
        assert_eq!(
            (event.source_format.as_str(), event.target_format.as_str()),
            ("native_v2", "jsonl_v3")
        );
        assert_eq!(event.outcome, Ended::Ok);
    }
    assert_eq!(back[2].reason, "test");
    assert!(back[2].verification.entry_count_match);
}

#[test]
fn what_was_written_since_is_added_to_the_file() {
    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[entry("n1", "c", "more"), entry("n2", "n1", "and more")]);
    let summary = fixture.back().unwrap();
    assert_eq!(summary.exported, 2);
    assert_eq!(fixture.lines()[..6], values(sample("s").as_bytes()));
    let added = &fixture.lines()[6..];
    assert_eq!(added[0]["id"], "n1");
    assert_eq!(added[0]["parentId"], "c");
    assert_eq!(added[0]["timestamp"], "2027-01-15T08:00:00.000Z");
    assert_eq!(added[0]["message"]["role"], "user");
    assert_eq!(added[1]["message"]["content"], json!([{"type":"text","text":"and more"}]));
    let Answer::File(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    assert_eq!(found[6], ("n2".into(), Some("n1".into()), "and more".into()));
}

#[test]
fn a_leaf_that_is_not_the_last_entry_and_a_title_get_a_line_each() {
    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[Record::Leaf(Some(EntryId::from_stored("c")))]);
    fixture.back().unwrap();
    let last = fixture.lines().pop().unwrap();
    assert_eq!((&last["type"], &last["parentId"]), (&json!("custom"), &json!("c")));
    assert_eq!(last["customType"], "bough.leaf");

    let fixture = Fixture::migrated(&sample("s"));
    let change = MetaChange { title: Some("Named here".into()), ..MetaChange::default() };
    fixture.append(&[Record::Meta(change)]);
    fixture.back().unwrap();
    let last = fixture.lines().pop().unwrap();
    assert_eq!((&last["type"], &last["name"]), (&json!("session_info"), &json!("Named here")));
    assert_eq!(last["parentId"], "e");
}

/// What a rename writes: every field of the session's own record, changed or not.
#[test]
fn a_field_that_says_what_it_said_is_no_loss() {
    let own = |title: &str, description: &str, archived| {
        let Value::Object(metadata) = json!({"cwd": "/p", "imported_from": "pi"}) else { panic!() };
        Record::Meta(MetaChange {
            title: Some(title.into()),
            description: Some(description.into()),
            metadata: Some(metadata),
            archived,
            ..MetaChange::default()
        })
    };
    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[own("Named", "", Some(true)), own("Named", "", Some(false))]);
    fixture.back().unwrap();
    assert_eq!(fixture.lines().pop().unwrap()["name"], "Named");

    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[own("", "described", None)]);
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    assert_eq!((lost.len(), lost[0].kind, lost[0].count), (1, LostKind::Meta, 1));
    assert_eq!(fixture.back_anyway().exported, 0, "no line takes the name away");
}

#[test]
fn what_the_file_cannot_say_is_named_and_refused() {
    let fixture = Fixture::migrated(&sample("s"));
    let event = LoopEvent {
        loop_id: LoopId::from_stored("l"),
        phase: None,
        entry_id: None,
        event: RawJson::parse("{}").unwrap(),
    };
    let archived = MetaChange { archived: Some(true), ..MetaChange::default() };
    fixture.append(&[Record::Loop(event.clone()), Record::Loop(event), Record::Meta(archived)]);
    let before = fixture.disk.digest();
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    let lost: Vec<_> = lost.iter().map(|lost| (lost.kind, lost.count)).collect();
    assert_eq!(lost, [(LostKind::Meta, 1), (LostKind::LoopEvent, 2)]);
    assert_eq!(fixture.disk.digest(), before, "a refusal changes nothing");
    assert!(matches!(answer(&fixture.disk, &fixture.migrator, "s"), Answer::Native(_)));
    let summary = fixture.back_anyway();
    assert_eq!(summary.lost.len(), 2);
    assert_eq!(fixture.state(), StoreState::RolledBack);
}

#[test]
fn a_change_of_a_migrated_entry_would_be_lost_and_one_of_a_newer_entry_is_not() {
    let fixture = Fixture::migrated(&sample("s"));
    let revise = |id: &str, text: &str| {
        Record::Revision(bough_session::Revision {
            entry_id: EntryId::from_stored(id),
            from: 0,
            to: 1,
            change: bough_session::ContentChange::Content(vec![bough_session::ContentBlock::text(
                text,
            )]),
            details: None,
            origin: None,
            finish: None,
        })
    };
    fixture.append(&[entry("n", "e", "draft"), revise("n", "final")]);
    fixture.back().unwrap();
    assert_eq!(fixture.lines().pop().unwrap()["message"]["content"][0]["text"], "final");

    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[revise("a", "changed")]);
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    assert_eq!(lost[0].kind, LostKind::Revision);
}

#[test]
fn a_target_that_another_program_wrote_to_is_refused_unless_that_is_accepted() {
    let by_pi = message("p", Some("e"), "by pi");
    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[entry("n", "e", "by us")]);
    let grown = format!("{}{by_pi}\n", sample("s"));
    fixture.disk.plant(&path(FILE), grown.as_bytes()).unwrap();
    assert!(matches!(fixture.back(), Err(MigrateError::TargetChanged { .. })));
    assert_eq!(fixture.back_anyway().exported, 1);
    let ids: Vec<Value> = fixture.lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["s", "a", "b", "c", "d", "e", "p", "n"]);

    let fixture = Fixture::migrated(&sample("s"));
    fixture.disk.plant(&path(FILE), grown.as_bytes()).unwrap();
    assert_eq!(fixture.back().unwrap().exported, 0, "nothing of ours is in its way");

    let fixture = Fixture::migrated(&sample("s"));
    let rewritten = sample("s").replace("first", "other");
    fixture.disk.plant(&path(FILE), rewritten.as_bytes()).unwrap();
    assert!(matches!(fixture.back(), Err(MigrateError::TargetChanged { .. })));
}

#[test]
fn a_target_that_is_gone_is_refused_and_the_log_goes_on() {
    let fixture = Fixture::migrated(&sample("s"));
    fixture.disk.uproot(&path(FILE)).unwrap();
    assert!(matches!(fixture.back(), Err(MigrateError::Missing { .. })));
    assert!(matches!(answer(&fixture.disk, &fixture.migrator, "s"), Answer::Native(_)));
    fixture.append(&[entry("n", "e", "still works")]);
}

#[test]
fn a_session_that_was_never_migrated_has_nothing_to_go_back_to() {
    let disk = SimDisk::new();
    let migrator = migrator(&disk, inline(), 1);
    let log = LogStore::open(platform(Arc::new(disk.clone()), 5), inline()).unwrap();
    log.create("s", vec![bough_log::Envelope::plain("meta", 1, "{}")]).unwrap();
    let refused = migrator.rollback(&session_s(), &RollbackOptions::default());
    assert!(matches!(refused, Err(MigrateError::NothingToRollBackTo { .. })), "{refused:?}");
}

#[test]
fn after_a_rollback_the_file_is_live_and_can_be_migrated_again() {
    let fixture = Fixture::migrated(&sample("s"));
    fixture.append(&[entry("n", "e", "native")]);
    fixture.back().unwrap();
    let mut live = fixture.migrator.open_live(&session_s()).unwrap();
    live.append(&native_entry("m", Some("n"), "in the file", 1_800_000_000_000)).unwrap();
    assert_eq!(plan(&fixture.migrator, FILE).standing, Standing::ServedFromFile);
    let summary = try_migrate(&fixture.migrator, FILE).unwrap();
    assert_eq!(summary.outcome, Outcome::Migrated);
    let Answer::Native(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    let ids: Vec<_> = found.iter().map(|text| text.0.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e", "n", "m"]);
    let trash = logs(&fixture.disk).trash().unwrap();
    assert_eq!(trash.len(), 1);
    assert!(trash[0].deleted_at_ms.is_some(), "the life before waits for its retention");
}

/// Two messages, one after the other: there are no ids.
fn version_1() -> String {
    let at = "2024-12-03T14:00:01.000Z";
    file(&[
        json!({"type":"session","id":"s","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p"}),
        json!({"type":"message","timestamp":at,"message":{"role":"user","content":"one","timestamp":1}}),
        json!({"type":"message","timestamp":at,"message":{"role":"user","content":"two","timestamp":1}}),
    ])
}

#[test]
fn version_1_goes_on_in_a_line_and_refuses_branches() {
    let text = version_1();
    let fixture = Fixture::migrated(&text);
    let Answer::Native(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    fixture.append(&[entry("n", &found[1].0, "three")]);
    fixture.back().unwrap();
    let last = fixture.lines().pop().unwrap();
    assert_eq!(last.get("id"), None);
    assert_eq!(last["message"]["content"][0]["text"], "three");

    let fixture = Fixture::migrated(&text);
    fixture.append(&[entry("n", &found[0].0, "a branch")]);
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    assert_eq!(lost[0].kind, LostKind::Branch);
}

fn bookkeeping(id: &str, parent: &str, bookkeeping: &Bookkeeping) -> Record {
    let body = EntryBody::Custom(bookkeeping.to_payload());
    Record::Entry(Entry { body, ..native_entry(id, Some(parent), "", 1_800_000_000_000) })
}

fn compaction(first_kept: &str) -> Bookkeeping {
    Bookkeeping::Compaction(Compaction {
        summary: "all of it".into(),
        first_kept_entry_id: EntryId::from_stored(first_kept),
        tokens_before: 1,
        details: None,
        from_hook: None,
    })
}

/// pi gives the entries of such a file new ids when it opens it.
#[test]
fn version_1_names_entries_by_their_lines() {
    let text = format!("not json\n{}", version_1());
    let fixture = Fixture::migrated(&text);
    let Answer::Native(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    let last = &found[1].0;
    fixture.append(&[
        entry("n", last, "three"),
        bookkeeping("c1", "n", &compaction(last)),
        bookkeeping("c2", "c1", &compaction("n")),
        bookkeeping("c3", "c2", &compaction("nowhere")),
    ]);
    fixture.back().unwrap();
    let lines = fixture.lines();
    let kept: Vec<_> = lines[5..].iter().map(|line| line.get("firstKeptEntryIndex")).collect();
    assert_eq!(kept, [Some(&json!(2)), Some(&json!(3)), None]);
    assert!(lines.iter().all(|line| line.get("firstKeptEntryId").is_none()));
    let live = fixture.migrator.open_live(&session_s()).unwrap();
    let entries = live_entries(&live);
    let Some(Bookkeeping::Compaction(second)) = entries[4].bookkeeping() else { panic!() };
    assert_eq!(second.first_kept_entry_id, entries[2].id);
}

#[test]
fn version_1_refuses_to_lose_labels_and_line_numbers() {
    let fixture = Fixture::migrated(&version_1());
    let Answer::Native(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    let last = &found[1].0;
    let target_id = EntryId::from_stored(last.as_str());
    let label = Bookkeeping::Label(Label { target_id, label: Some("here".into()) });
    fixture.append(&[bookkeeping("l", last, &label)]);
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    assert_eq!((lost.len(), lost[0].kind), (1, LostKind::Label));

    let fixture = Fixture::migrated(&version_1());
    fixture.append(&[bookkeeping("c", last, &compaction(last))]);
    let grown = format!("{}[1]\n", version_1());
    fixture.disk.plant(&path(FILE), grown.as_bytes()).unwrap();
    let options = RollbackOptions { accept_changed_target: true, ..RollbackOptions::default() };
    let refused = fixture.migrator.rollback(&session_s(), &options);
    assert!(matches!(refused, Err(MigrateError::NotRepresentable { .. })), "{refused:?}");
    assert_eq!(bytes(&fixture.disk, FILE), grown.as_bytes());
}

/// Taking back a compaction moves the leaf to the entry before it. Without the move, the compaction would be in force again.
#[test]
fn version_1_refuses_to_lose_where_the_leaf_is() {
    let fixture = Fixture::migrated(&version_1());
    let Answer::Native(found) = answer(&fixture.disk, &fixture.migrator, "s") else { panic!() };
    let last = &found[1].0;
    let back = Record::Leaf(Some(EntryId::from_stored(last.as_str())));
    fixture.append(&[entry("n", last, "three"), back]);
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    assert_eq!((lost.len(), lost[0].kind), (1, LostKind::Leaf));
    fixture.back_anyway();
}

#[test]
fn entries_after_a_doubled_id_are_said_in_the_files_own_words() {
    let text = file(&[header("s"), message("a", None, "1"), message("a", Some("a"), "2")]);
    let text = format!("{text}{}\n", message("a", None, "3"));
    let fixture = Fixture::migrated(&text);
    fixture.append(&[entry("n", "a~3", "next")]);
    fixture.back().unwrap();
    assert_eq!(fixture.lines().pop().unwrap()["parentId"], "a");
}

#[test]
fn an_entry_that_was_hidden_since_comes_back_without_what_it_said() {
    let fixture = Fixture::migrated(&sample("s"));
    let entry_id = EntryId::from_stored("n");
    let hidden = Record::Removed(Removal { entry_id, is_message: true, is_preview: false });
    fixture.append(&[entry("n", "e", "a secret"), hidden, entry("m", "n", "next")]);
    let Err(MigrateError::WouldLose { lost }) = fixture.back() else { panic!() };
    assert_eq!((lost.len(), lost[0].kind), (1, LostKind::Removal));
    assert_eq!(fixture.back_anyway().exported, 2);
    let lines = fixture.lines();
    let added: Vec<_> = lines[6..].iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(added, ["n", "m"], "its place in the tree stays");
    assert!(!lines.iter().any(|line| line.to_string().contains("a secret")), "{lines:?}");
}

#[test]
fn another_process_that_is_writing_stops_a_rollback() {
    let fixture = Fixture::migrated(&sample("s"));
    let elsewhere = fixture.disk.another_process();
    let log = LogStore::open(platform(Arc::new(elsewhere), 8), small()).unwrap();
    log.open_for_writing("s").unwrap();
    let refused = fixture.back();
    assert!(matches!(refused, Err(MigrateError::SessionLocked { .. })), "{refused:?}");
    log.close_all().unwrap();
    fixture.back().unwrap();
}
