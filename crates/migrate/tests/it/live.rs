//! A V1 file as the live store of its session, in both of its forms.

use crate::common::*;
use bough_migrate::{LiveV1, MigrateError, Migrator, RollbackOptions};
use bough_platform::Disk;
use bough_session::{Bookkeeping, Compaction, Entry, EntryBody, EntryId, Label, NewRecord};
use bough_testkit::SimDisk;
use serde_json::{Value, json};

const FILE: &str = "v1/s.jsonl";

fn planted(text: &[u8]) -> (SimDisk, Migrator) {
    let disk = SimDisk::new();
    disk.plant(&path(FILE), text).unwrap();
    let migrator = migrator(&disk, inline(), 1);
    (disk, migrator)
}

fn open(migrator: &Migrator) -> LiveV1 {
    migrator.open_file(FILE).unwrap()
}

fn fold(live: &LiveV1) -> bough_session::SessionState {
    LiveV1::fold(live.file().clone()).unwrap()
}

fn entry(id: &str, parent: Option<&str>, text: &str) -> bough_session::Entry {
    native_entry(id, parent, text, 1_800_000_000_000)
}

#[test]
fn it_says_what_the_file_says() {
    let (_, migrator) = planted(sample("s").as_bytes());
    let live = open(&migrator);
    assert_eq!(live.session_id().as_str(), "s");
    assert_eq!(live.leaf().unwrap().as_str(), "e");
    assert_eq!(fold(&live).meta.message_count, 4);
    assert_eq!(live.header().unwrap().version, 3);
    assert!(live.contains(&EntryId::from_stored("b")));
}

#[test]
fn an_append_is_one_durable_line_after_all_that_was_there() {
    let (disk, migrator) = planted(sample("s").as_bytes());
    let mut live = open(&migrator);
    live.append(&entry("n", Some("b"), "hi")).unwrap();
    let platter = disk.platter();
    let text = bytes(&platter, FILE);
    assert!(text.starts_with(sample("s").as_bytes()));
    let last = values(&text).pop().unwrap();
    assert_eq!((&last["id"], &last["parentId"]), (&json!("n"), &json!("b")));
    assert_eq!(live.leaf().unwrap().as_str(), "n");
    assert!(disk.files().iter().all(|(path, _)| !path.as_str().contains("bough-lock")));
}

#[test]
fn an_entry_that_is_there_changes_nothing_and_an_unknown_parent_is_refused() {
    let (disk, migrator) = planted(sample("s").as_bytes());
    let mut live = open(&migrator);
    live.append(&entry("a", None, "another body")).unwrap();
    assert_eq!(bytes(&disk, FILE), sample("s").as_bytes());
    let refused = live.append(&entry("n", Some("nowhere"), ""));
    assert!(matches!(refused, Err(MigrateError::NotRepresentable { .. })));
}

#[test]
fn what_pi_appends_is_seen_and_a_line_that_is_not_whole_yet_is_not() {
    let (disk, migrator) = planted(sample("s").as_bytes());
    let mut live = open(&migrator);
    let line = message("p", Some("e"), "by pi").to_string();
    let grow = |text: &str| {
        let whole = format!("{}{text}", sample("s"));
        disk.plant(&path(FILE), whole.as_bytes()).unwrap();
    };
    let mut seen: Vec<NewRecord> = Vec::new();
    grow(&line[..20]);
    live.refresh(&mut |new| seen.push(new)).unwrap();
    assert_eq!(seen.len(), 0, "not yet");
    grow(&line);
    live.refresh(&mut |new| seen.push(new)).unwrap();
    assert_eq!(seen.len(), 1);
    grow(&format!("{line}\n"));
    live.refresh(&mut |new| seen.push(new)).unwrap();
    assert_eq!((seen.len(), live.report().blank), (1, 0));
    live.append(&entry("n", Some("p"), "us")).unwrap();
    assert_eq!(values(&bytes(&disk, FILE)).len(), 8);
}

#[test]
fn a_torn_tail_does_not_swallow_the_next_line() {
    let (disk, migrator) = planted(format!("{}{{\"type\":\"mess", sample("s")).as_bytes());
    let mut live = open(&migrator);
    live.append(&entry("n", Some("e"), "hi")).unwrap();
    let lines = values(&bytes(&disk, FILE));
    assert_eq!(lines[6], Value::from("{\"type\":\"mess"));
    assert_eq!(lines[7]["id"], "n");
}

#[test]
fn a_file_that_pi_wrote_anew_is_read_anew() {
    let at = "2024-12-03T14:00:01.000Z";
    let old = file(&[
        json!({"type":"session","id":"s","timestamp":"2024-12-03T14:00:00.000Z","cwd":"/p"}),
        json!({"type":"message","timestamp":at,"message":{"role":"user","content":"one","timestamp":1}}),
    ]);
    let (disk, migrator) = planted(old.as_bytes());
    let mut live = open(&migrator);
    let assigned = live
        .append(&entry("n", live.leaf().cloned().as_ref().map(EntryId::as_str), "two"))
        .unwrap();
    assert_ne!(assigned.as_str(), "n", "version 1 has no ids of its own");
    let branch = live.append(&entry("m", None, "no"));
    assert!(matches!(branch, Err(MigrateError::NotRepresentable { .. })));
    disk.plant(&path(FILE), sample("s").as_bytes()).unwrap();
    assert!(live.refresh(&mut |_| {}).unwrap());
    assert_eq!(live.leaf().unwrap().as_str(), "e");
}

#[test]
fn two_writers_of_ours_exclude_each_other() {
    let (disk, migrator) = planted(sample("s").as_bytes());
    let mut live = open(&migrator);
    let elsewhere = disk.another_process();
    let lock = elsewhere.lock(&path("v1/s.jsonl.bough-lock"), "somebody").unwrap();
    let refused = live.append(&entry("n", Some("e"), ""));
    assert!(matches!(refused, Err(MigrateError::Locked { holder, .. }) if holder == "somebody"));
    drop(lock);
    live.append(&entry("n", Some("e"), "")).unwrap();
}

const DATABASE: &str = "v1/s.sqlite";

fn rows(bytes: &[u8], query: &str) -> Vec<String> {
    let mut database = rusqlite::Connection::open_in_memory().unwrap();
    database.deserialize_read_exact(rusqlite::MAIN_DB, bytes, bytes.len(), true).unwrap();
    let mut statement = database.prepare(query).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn planted_database() -> (SimDisk, Migrator, Vec<u8>) {
    let disk = SimDisk::new();
    let content = database(&values(sample("s").as_bytes()));
    disk.plant(&path(DATABASE), &content).unwrap();
    let migrator = migrator(&disk, small(), 1);
    (disk, migrator, content)
}

#[test]
fn a_database_is_a_session_too() {
    let (disk, migrator, _) = planted_database();
    let mut live = migrator.open_file(DATABASE).unwrap();
    assert_eq!(fold(&live).entry_count, 5);
    live.append(&entry("n", Some("e"), "hi")).unwrap();
    assert_eq!(live.leaf().unwrap().as_str(), "n");
    let now = bytes(&disk.platter(), DATABASE);
    assert_eq!(rows(&now, "SELECT json FROM pi_session_entries ORDER BY seq").len(), 6);
    assert_eq!(rows(&now, "SELECT value FROM pi_session_meta WHERE key = 'message_count'"), ["5"]);
}

#[test]
fn a_database_is_migrated_and_rolled_back() {
    let (disk, migrator, content) = planted_database();
    let summary = migrate(&migrator, DATABASE);
    assert_eq!(summary.plan.report.entries, 5);
    assert_eq!(bytes(&disk, DATABASE), content);
    let log = LogStore::open(platform(std::sync::Arc::new(disk.clone()), 5), small()).unwrap();
    let added = bough_session::Record::Entry(entry("n", Some("e"), "since"));
    let added = log_record(&added, 1);
    log.append("s", bough_log::Expected::Any, vec![added]).unwrap();
    log.close_all().unwrap();
    let back = migrator.rollback(&session_s(), &RollbackOptions::default()).unwrap();
    assert_eq!(back.exported, 1);
    let now = bytes(&disk, DATABASE);
    let texts = rows(&now, "SELECT json FROM pi_session_entries ORDER BY seq");
    let parsed: Vec<Value> = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(parsed[..5], values(sample("s").as_bytes())[1..]);
    assert_eq!(parsed[5]["id"], "n");
    assert_eq!(rows(&now, "SELECT value FROM pi_session_meta WHERE key = 'name'"), ["Old"]);
    assert!(matches!(answer(&disk, &migrator, "s"), Answer::File(found) if found.len() == 6));
}

#[test]
fn one_bad_row_does_not_hide_the_others() {
    let disk = SimDisk::new();
    let mut lines = values(sample("s").as_bytes());
    lines.insert(3, Value::from("text"));
    disk.plant(&path(DATABASE), &database(&lines)).unwrap();
    let report = plan(&migrator(&disk, inline(), 1), DATABASE).report;
    assert_eq!((report.entries, report.count(bough_migrate::FindingKind::NotAnObject)), (5, 1));
}

#[test]
fn a_row_of_several_lines_is_one_record() {
    let disk = SimDisk::new();
    let lines = values(sample("s").as_bytes());
    let bytes = crate::common::database(&lines);
    let (mut from, len) = (bytes.as_slice(), bytes.len());
    let mut database = rusqlite::Connection::open_in_memory().unwrap();
    database.deserialize_read_exact(rusqlite::MAIN_DB, &mut from, len, false).unwrap();
    let pretty = serde_json::to_string_pretty(&lines[1]).unwrap();
    database.execute("UPDATE pi_session_entries SET json = ?1 WHERE seq = 1", [pretty]).unwrap();
    let bytes = database.serialize(rusqlite::MAIN_DB).unwrap().to_vec();
    disk.plant(&path(DATABASE), &bytes).unwrap();
    let migrator = migrator(&disk, inline(), 1);
    migrate(&migrator, DATABASE);
    let Answer::Native(found) = answer(&disk, &migrator, "s") else { panic!() };
    assert_eq!((found.len(), found[0].2.as_str()), (5, "first"));
}

#[test]
fn a_database_with_nothing_in_it_is_said_to_be_that() {
    let disk = SimDisk::new();
    disk.plant(&path(DATABASE), b"").unwrap();
    let refused = migrator(&disk, inline(), 1).plan(DATABASE, &mut |_| {}).unwrap_err();
    assert!(matches!(refused, MigrateError::NotASession { .. }), "{refused:?}");
    assert!(refused.to_string().contains("nothing in it"), "{refused}");
}

#[test]
fn a_database_in_the_middle_of_a_write_is_refused() {
    let (disk, migrator, _) = planted_database();
    disk.plant(&path("v1/s.sqlite-journal"), b"hot").unwrap();
    let refused = migrator.plan(DATABASE, &mut |_| {});
    assert!(matches!(refused, Err(MigrateError::UnfinishedWrite { .. })));
}

#[test]
fn a_version_1_file_names_entries_by_their_lines() {
    let mut lines = values(sample("s").as_bytes());
    lines.truncate(4);
    for line in &mut lines {
        let line = line.as_object_mut().unwrap();
        line.remove("parentId");
        line.remove("version");
        if line["type"] != "session" {
            line.remove("id");
        }
    }
    let (disk, migrator) = planted(file(&lines).as_bytes());
    let mut live = open(&migrator);
    let kept = live_entries(&live)[1].id.clone();
    let custom = |bookkeeping: Bookkeeping| Entry {
        body: EntryBody::Custom(bookkeeping.to_payload()),
        parent_id: live.leaf().cloned(),
        ..entry("n", None, "")
    };
    let label = custom(Bookkeeping::Label(Label { target_id: kept.clone(), label: None }));
    let compaction = custom(Bookkeeping::Compaction(Compaction {
        summary: "x".into(),
        first_kept_entry_id: kept.clone(),
        tokens_before: 1,
        details: None,
        from_hook: None,
    }));
    let refused = live.append(&label);
    assert!(matches!(refused, Err(MigrateError::NotRepresentable { .. })), "{refused:?}");
    live.append(&compaction).unwrap();
    let last = values(&bytes(&disk, FILE)).pop().unwrap();
    assert_eq!((&last["firstKeptEntryIndex"], last.get("firstKeptEntryId")), (&json!(2), None));
    let read = live_entries(&open(&migrator)).pop().unwrap().bookkeeping();
    let Some(Bookkeeping::Compaction(read)) = read else { panic!() };
    assert_eq!(read.first_kept_entry_id, kept);
}
