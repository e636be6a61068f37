//! Irregular files and commands that cannot be carried out: the messages that people see.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "tests make and break files of their own")]

use bough_store::StoreExt;
use std::os::unix::fs::symlink;

use crate::common::Place;
use bough_session::{EntryId, Record, SessionId};
use serde_json::{Value, json};

const AT: &str = "2026-02-07T14:00:00.000Z";

fn user_line(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": AT,
        "message": {"role": "user", "content": text, "timestamp": 1}})
}

fn compaction(id: &str, parent: &str, kept: &str) -> Value {
    json!({"type": "compaction", "id": id, "parentId": parent, "timestamp": AT,
        "summary": "what was", "firstKeptEntryId": kept, "tokensBefore": 7})
}

/// A place with a file of pi; its session has the file's name.
fn with_file(name: &str, lines: &[Value]) -> (Place, String) {
    let place = Place::new();
    let file = place.file(&format!("pi/{name}.jsonl"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let header = json!({"type": "session", "version": 3, "id": name, "timestamp": AT, "cwd": "/p"});
    let lines = std::iter::once(&header).chain(lines).map(|line| format!("{line}\n"));
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    (place, file.display().to_string())
}

fn conversation() -> [Value; 2] {
    [user_line("a1", None, "Hello"), user_line("a2", Some("a1"), "More")]
}

#[test]
fn a_text_that_was_cut_in_the_middle_of_a_character_is_shown_and_counted() {
    let (place, file) = with_file("cut", &[user_line("a1", None, "HALF")]);
    let text = std::fs::read_to_string(&file).unwrap().replace("HALF", "cut \\ud83d");
    std::fs::write(&file, &text).unwrap();
    assert!(place.ok(&["show", &file]).contains("cut \u{fffd}"));
    let answered = place.run(&["migrate", &file]);
    assert!(answered.err.contains("1 half character"), "{answered:?}");
    assert!(place.ok(&["context", "cut"]).contains("cut \u{fffd}"));
    assert_eq!(place.ok(&["export", "cut", "--format", "pi"]), text);
}

#[test]
fn a_renamed_session_goes_back_to_its_file() {
    let (place, file) = with_file("renamed", &conversation());
    place.ok(&["migrate", &file]);
    place.ok(&["rename", "renamed", "Better"]);
    let answered = place.run(&["rollback", "renamed", "--yes"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.err.contains("1 line was added"), "{answered:?}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"name\":\"Better\""));
}

#[test]
fn a_compaction_of_a_file_is_taken_back_for_good() {
    let mut lines = conversation().to_vec();
    lines.push(compaction("c1", "a2", "a2"));
    let (place, file) = with_file("undone", &lines);
    place.ok(&["compact", &file, "--undo"]);
    assert!(place.ok(&["compact", &file, "--undo"]).contains("no compaction is in force"));
    let text = std::fs::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&last["customType"], &last["parentId"]), (&json!("bough.leaf"), &json!("a2")));
}

#[test]
fn what_a_file_has_no_place_for_is_refused_with_the_way_out() {
    let (place, file) = with_file("raw", &conversation());
    for args in [&["rm", &file, "--yes"][..], &["rename", &file, "x"], &["archive", &file]] {
        let answered = place.run(args);
        assert_ne!(answered.code, 0);
        assert!(answered.err.contains("bough migrate"), "{args:?}: {answered:?}");
        assert!(!answered.err.contains("adapter"), "{args:?}: {answered:?}");
    }
    let answered = place.run(&["rollback", &file, "--yes"]);
    assert_eq!(answered.code, 3, "{answered:?}");
    assert!(answered.err.contains("bough migrate"), "{answered:?}");
}

#[test]
fn a_folder_is_brought_in_and_what_is_no_session_is_named() {
    let (place, file) = with_file("one", &conversation());
    std::fs::write(place.file("pi/notes.jsonl"), "{\"a\":1}\n").unwrap();
    symlink("/dev/zero", place.file("pi/endless.jsonl")).unwrap();
    symlink(&file, place.file("pi/zlink.jsonl")).unwrap();
    let folder = place.file("pi").display().to_string();
    place.ok(&["migrate", &folder, "--dry-run"]);
    assert!(!place.data_dir().exists(), "a dry run makes nothing");
    let answered = place.run(&["migrate", &folder]);
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.out.contains("1 was here already, 2 files are no sessions"), "{answered:?}");
    for name in ["notes.jsonl", "endless.jsonl"] {
        assert!(answered.err.contains(name), "{answered:?}");
    }
}

#[test]
fn a_file_that_grew_since_is_refused_with_the_right_reason() {
    let (place, file) = with_file("grew", &conversation());
    place.ok(&["migrate", &file]);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}{}\n", user_line("a3", Some("a2"), "by pi"))).unwrap();
    let answered = place.run(&["migrate", &file]);
    assert!(answered.err.contains("changed since it was brought in"), "{answered:?}");
    assert!(answered.err.contains("bough rollback grew"), "{answered:?}");
}

#[test]
fn a_deleted_session_is_found_by_the_name_that_pi_gave_it() {
    let mut lines = conversation().to_vec();
    let info = json!({"type": "session_info", "id": "a3", "parentId": "a2", "timestamp": AT,
        "name": "Parser"});
    lines.push(info);
    let (place, file) = with_file("named", &lines);
    place.ok(&["migrate", &file]);
    place.ok(&["rm", "named", "--yes"]);
    assert!(place.ok(&["restore", "--list"]).contains("Parser"));
    place.ok(&["restore", "parser"]);
    assert!(place.ok(&["ls"]).contains("Parser"));
}

#[test]
fn a_device_is_not_replaced_by_an_export() {
    let (place, file) = with_file("out", &conversation());
    let device = place.file("device");
    symlink("/dev/null", &device).unwrap();
    let answered = place.run(&["export", &file, "-o", device.to_str().unwrap(), "--force"]);
    assert_eq!(answered.code, 2, "{answered:?}");
    assert!(std::fs::symlink_metadata(&device).unwrap().is_symlink());
}

#[test]
fn no_message_is_shown_and_it_is_said_that_there_are_some() {
    let (place, file) = with_file("some", &conversation());
    let answer = place.json(&["show", &file, "-n", "0"]);
    assert_eq!((&answer["more"], &answer["messages"]), (&json!(true), &json!([])));
}

#[test]
fn commands_of_this_machine_refuse_a_server_and_files_that_are_not_there() {
    let place = Place::new();
    let server = ["--server", "http://127.0.0.1:9"];
    for command in [&["serve"][..], &["config", "show"]] {
        let args: Vec<&str> = command.iter().copied().chain(server).collect();
        let answered = place.run(&args);
        assert_eq!(answered.code, 2, "{answered:?}");
    }
    let answered = place.run(&["config", "check", "--config", "/no/such/file"]);
    assert_eq!(answered.code, 3, "{answered:?}");
}

#[test]
fn why_nothing_was_compacted_is_said() {
    let (place, file) = with_file("quiet", &conversation());
    let out = place.ok(&["compact", &file, "--auto"]);
    assert!(out.contains("the window of its model is not known"), "{out}");
    std::fs::create_dir_all(place.data_dir()).unwrap();
    std::fs::write(place.data_dir().join("config.yaml"), "compaction:\n  enabled: false\n")
        .unwrap();
    let out = place.ok(&["compact", "--auto"]);
    assert!(out.contains("switched off"), "{out}");
}

#[test]
fn the_folder_that_one_is_in_is_brought_in_as_any_other() {
    let (place, _) = with_file("here", &conversation());
    std::fs::create_dir(place.file("pi/below")).unwrap();
    for (folder, argument) in [("pi", "."), ("pi/below", "..")] {
        let output = place
            .command(&["migrate", argument, "--dry-run"])
            .current_dir(place.file(folder))
            .output()
            .unwrap();
        let answered = crate::common::answered(output);
        assert_eq!(answered.code, 0, "{argument}: {answered:?}");
        assert!(answered.out.contains("here.jsonl"), "{argument}: {answered:?}");
    }
}

#[test]
fn a_file_that_grew_since_is_said_to_by_every_command_that_shows_it() {
    let (place, file) = with_file("grew", &conversation());
    place.ok(&["migrate", &file]);
    let commands: [&[&str]; 9] = [
        &["tail", &file],
        &["tail", &file, "--json"],
        &["show", &file],
        &["show", &file, "--json"],
        &["tree", &file],
        &["tree", &file, "--json"],
        &["context", &file],
        &["usage", &file],
        &["export", &file, "--format", "pi"],
    ];
    let quiet = commands.map(|args| place.run(args));
    for (answered, args) in quiet.iter().zip(commands) {
        assert_eq!((answered.code, answered.err.as_str()), (0, ""), "{args:?}");
    }
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}{}\n", user_line("a3", Some("a2"), "by pi"))).unwrap();
    for (before, args) in quiet.iter().zip(commands) {
        let answered = place.run(args);
        assert_eq!((answered.code, &answered.out), (0, &before.out), "{args:?}");
        assert_eq!(answered.err.lines().count(), 1, "{args:?}: {answered:?}");
        assert!(answered.err.contains("bough rollback grew --accept-changed"), "{answered:?}");
    }
    let forked = place.run(&["fork", &file]);
    assert!(forked.err.contains("--accept-changed"), "{forked:?}");
    assert_eq!(place.run(&["show", "grew"]).err, "", "no file was named");
    place.ok(&["rollback", "grew", "--yes", "--accept-changed"]);
    let answered = place.run(&["show", &file]);
    assert!(answered.out.contains("by pi") && answered.err.is_empty(), "{answered:?}");
}

#[test]
fn a_rollback_of_a_session_that_another_process_writes_is_a_conflict() {
    let (place, file) = with_file("held", &conversation());
    place.ok(&["migrate", &file]);
    let answered = place.with_store(async |store| {
        let session = SessionId::from_stored("held");
        let head = store.state(&session).await.unwrap().unwrap().head;
        let entry = crate::common::entry(
            "a3",
            Some(EntryId::from_stored("a2")),
            crate::common::user("more"),
        );
        let appended = store.append(&session, &head, vec![Record::Entry(entry).at(1)].into()).await;
        appended.unwrap().durable.await.unwrap();
        place.run(&["rollback", "held", "--yes"])
    });
    assert_eq!(answered.code, 4, "{answered:?}");
    let holder = format!("(process {})", std::process::id());
    assert!(answered.err.contains(&holder), "{answered:?}");
    place.ok(&["rollback", "held", "--yes"]);
}

#[test]
fn a_damaged_session_goes_back_to_its_file_once_the_loss_is_accepted() {
    let (place, file) = with_file("rotten", &conversation());
    place.ok(&["migrate", &file]);
    let segment = crate::common::find(&place.data_dir(), "seg");
    let rotten = std::fs::read_to_string(&segment).unwrap().replace("Hello", "Jello");
    std::fs::write(&segment, rotten).unwrap();
    let refused = place.run(&["rollback", "rotten", "--yes"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    for way_out in ["bough salvage", "--accept-loss"] {
        assert!(refused.err.contains(way_out), "{refused:?}");
    }
    place.ok(&["rollback", "rotten", "--yes", "--accept-loss"]);
    assert!(place.ok(&["show", "rotten"]).contains("Hello"), "the file answers");
}

#[test]
fn a_salvaged_session_can_be_given_back_to_its_file() {
    let (place, file) = with_file("rescued", &conversation());
    place.ok(&["migrate", &file]);
    let rescued = place.file("new").display().to_string();
    place.ok(&["salvage", "--to", &rescued]);
    let answered = place.run(&["rollback", "rescued", "--yes", "--data-dir", &rescued]);
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.out.contains(&file), "{answered:?}");
}

#[test]
fn one_session_is_salvaged_by_the_beginning_of_its_id() {
    let (place, file) = with_file("0123456789abcdef", &conversation());
    place.ok(&["migrate", &file]);
    let rescued = place.file("new").display().to_string();
    let saved = place.json(&["salvage", "012345", "--to", &rescued]);
    assert_eq!(saved["sessions"][0]["session_id"], "0123456789abcdef");
    assert!(place.ok(&["ls", "--data-dir", &rescued]).contains("0123"));
}

#[test]
fn a_salvage_that_fails_makes_no_directory() {
    let (place, file) = with_file("whole", &conversation());
    place.ok(&["migrate", &file]);
    let (to, empty) = (place.file("to"), place.file("empty").display().to_string());
    let new = to.display().to_string();
    for arguments in [
        &["salvage", "nothing", "--to", &new][..],
        &["salvage", "--to", &new, "--data-dir", &empty],
    ] {
        let refused = place.run(arguments);
        assert_eq!((refused.code, to.exists()), (3, false), "{refused:?}");
    }
}
