//! Session files of pi and the real program: served, migrated, rolled back, interrupted.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests make and break files of their own"
)]

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::common::{PATIENCE, Place, Server};
use bough_platform::{Clock, SystemClock};
use serde_json::{Value, json};

const NAME: &str = "pi/2026-02-07T14-00-00.000Z_0f0e0d0c.jsonl";

fn header(id: &str) -> Value {
    json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-02-07T14:00:00.000Z", "cwd": "/p"})
}

fn user_line(id: &str, parent: Option<&str>, text: &str) -> Value {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-02-07T14:00:01.000Z",
        "message": {"role": "user", "content": text, "timestamp": 1}})
}

fn text_of(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A place with a file of three messages, two of them on a branch of their own.
fn with_file() -> (Place, String) {
    let place = Place::new();
    let lines = [
        header("pi-session"),
        user_line("a1", None, "Hello"),
        user_line("a2", Some("a1"), "One way"),
        user_line("a3", Some("a1"), "Another way"),
    ];
    let file = place.file(NAME);
    write(&file, &text_of(&lines));
    (place, file.display().to_string())
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn add(path: &str, line: &Value) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

fn lines_of(path: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(place: &Place, session: &str) -> usize {
    place.json(&["show", session, "--all"])["messages"].as_array().unwrap().len()
}

fn titles(listed: &Value) -> Vec<&str> {
    let sessions = listed["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["session_id"].as_str().unwrap()).collect()
}

#[test]
fn a_pi_file_is_brought_in_and_given_back() {
    let place = Place::new();
    let file = place.file("2026-02-07T14-00-00.000Z_0f0e0d0c.jsonl");
    let lines = [header("0f0e0d0c"), user_line("a1", None, "Hello")];
    write(&file, &text_of(&lines));
    let path = file.display().to_string();
    assert!(place.ok(&["migrate", &path, "--dry-run"]).contains("brought in"));
    assert_eq!(place.json(&["ls", "--all"])["sessions"], json!([]), "a dry run writes nothing");
    assert_eq!(place.ok(&["migrate", &path]), "brought in 1 session\n");
    assert_eq!(place.ok(&["import", &path]), "brought in 0 sessions, 1 was here already\n");
    let shown = place.json(&["show", "id:0f0e0d0c"]);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1);
    let exported = place.ok(&["export", "id:0f0e0d0c", "--format", "pi"]);
    let back: Vec<Value> =
        exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(back, lines);
    assert_eq!(place.json(&["rollback", "id:0f0e0d0c", "--yes"])["already"], json!(false));
    assert_eq!(place.run(&["migrate", "/no/such/file.jsonl"]).code, 3);
}

/// A realistic directory: a session, another file of the same session, one with irregular lines, and a file that is not
/// a session.
#[test]
fn a_directory_of_files_is_brought_in_as_far_as_it_can_be_and_the_rest_is_named() {
    let place = Place::new();
    let folder = place.file("sessions");
    let first = |text: &str| user_line("a1", None, text);
    let (one, two) = (header("one"), header("two"));
    write(&folder.join("a.jsonl"), &format!("{one}\n{}\n", first("first")));
    write(&folder.join("b.jsonl"), &format!("{one}\n{}\n", first("another")));
    write(&folder.join("c.jsonl"), &format!("{two}\n{}\nnot json\n", first("odd")));
    write(&folder.join("d.jsonl"), "nothing of the kind\n");
    let path = folder.display().to_string();

    let planned = place.run(&["migrate", &path, "--dry-run"]);
    assert_eq!(planned.code, 0);
    let row = |file: &str| planned.out.lines().find(|line| line.contains(file)).unwrap();
    assert!(row("a.jsonl").ends_with("brought in"), "{}", planned.out);
    assert!(row("b.jsonl").ends_with("refused: another session has the id"), "{}", planned.out);
    assert!(planned.err.contains("c.jsonl: 1 not json (kept)"), "{}", planned.err);
    assert!(planned.err.contains("d.jsonl is not a pi session"), "{}", planned.err);

    let carried_out = place.run(&["migrate", &path]);
    assert_eq!(carried_out.code, 1);
    assert_eq!(carried_out.out, "brought in 2 sessions, 1 file is no session\n");
    assert!(carried_out.err.contains("c.jsonl: 1 not json (kept)"), "{}", carried_out.err);
    assert!(carried_out.err.contains("b.jsonl: session one exists already"), "{}", carried_out.err);
    assert!(carried_out.err.contains("error: 1 file could not be brought in\nhint: "));
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_file_that_was_not_brought_in_is_read_and_written_as_it_is() {
    let (place, file) = with_file();
    assert_eq!(messages(&place, &file), 2, "the branch that ends at the last line");
    let tree = place.ok(&["tree", &file, "--print"]);
    assert!(tree.contains("One way") && tree.contains("Another way"), "{tree}");
    assert_eq!(place.ok(&["export", &file, "--format", "pi"]), text_of(&lines_of(&file)));
    assert_eq!(place.json(&["context", &file])["context"]["messages"].as_array().unwrap().len(), 2);
    place.ok(&["label", &file, "a2", "good"]);
    let written = lines_of(&file);
    assert_eq!(written.len(), 5, "the label is a line of the file");
    assert_eq!(written[4]["label"], "good");
    assert_eq!(place.json(&["ls", "--all"])["sessions"], json!([]), "nothing was brought in");
    let renamed = place.run(&["rename", &file, "A title"]);
    assert_eq!(renamed.code, 1);
    assert!(
        renamed.err.contains("program's file"),
        "what it cannot hold is listed: {}",
        renamed.err
    );
}

#[test]
fn a_file_is_followed_while_pi_writes_it() {
    let (place, file) = with_file();
    let mut follower = place
        .command(&["tail", "-f", &file, "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(follower.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(out);
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["payload"]["entry_id"], "a1");
    assert_eq!(next()["payload"]["entry_id"], "a3");
    add(&file, &user_line("a4", Some("a3"), "Written by pi"));
    let news = next();
    assert_eq!(news["type"], "session::message-added");
    assert_eq!(news["payload"]["message"]["content"][0]["text"], "Written by pi");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

#[test]
fn what_is_brought_in_is_listed_at_once() {
    let (place, file) = with_file();
    assert_eq!(place.json(&["ls"])["sessions"], json!([]), "the catalogue is there and empty");
    place.ok(&["migrate", &file]);
    assert_eq!(titles(&place.json(&["ls"])), ["pi-session"]);
    let second = place.file("pi/second.jsonl");
    write(&second, &text_of(&[header("second"), user_line("b", None, "Two")]));
    place.ok(&["migrate", &place.file("pi").display().to_string()]);
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_salvaged_is_listed_at_once_also_beside_other_sessions() {
    let (place, file) = with_file();
    place.ok(&["migrate", &file]);
    let rescued = place.file("rescued").display().to_string();
    place.ok(&["salvage", "--to", &rescued, "pi-session"]);
    assert_eq!(titles(&place.json(&["ls", "--data-dir", &rescued])), ["pi-session"]);
    write(&place.file("pi/other.jsonl"), &text_of(&[header("other"), user_line("b", None, "Two")]));
    place.ok(&["migrate", &place.file("pi/other.jsonl").display().to_string()]);
    place.ok(&["salvage", "--to", &rescued, "other"]);
    let listed = place.json(&["ls", "--data-dir", &rescued]);
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);
}

#[test]
fn a_session_that_went_back_is_served_from_its_file() {
    let (place, file) = with_file();
    let before = std::fs::read(&file).unwrap();
    place.ok(&["migrate", &file]);
    assert_eq!(std::fs::read(&file).unwrap(), before, "the source is never changed");
    place.ok(&["rollback", "pi-session", "--yes"]);
    assert_eq!(titles(&place.json(&["ls"])), ["pi-session"], "it is still there");
    assert_eq!(messages(&place, "pi-session"), 2);
    add(&file, &user_line("a4", Some("a3"), "By pi"));
    assert_eq!(messages(&place, "pi-session"), 3, "what pi writes is seen");
    place.ok(&["label", "pi-session", "a4", "by-pi"]);
    assert_eq!(lines_of(&file).last().unwrap()["label"], "by-pi", "what we write is in the file");
    assert_eq!(place.json(&["ls"])["sessions"][0]["message_count"], 4, "and the list knows");
    place.ok(&["migrate", &file]);
    assert_eq!(
        place.json(&["migrate", &file])["files"][0]["summary"]["outcome"],
        "already_migrated"
    );
    assert_eq!(messages(&place, "pi-session"), 4, "the label is on the path");
    assert_eq!(place.json(&["verify"])["ok"], true);
}

#[test]
fn a_catalogue_made_anew_lists_what_files_answer_for() {
    let (place, file) = with_file();
    write(&place.file("pi/other.jsonl"), &text_of(&[header("other"), user_line("b", None, "Two")]));
    place.ok(&["migrate", &place.file("pi").display().to_string()]);
    place.ok(&["rollback", "pi-session", "--yes"]);
    add(&file, &user_line("a4", Some("a3"), "By pi"));
    let without_catalogue = || {
        for name in ["catalogue.sqlite", "catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
            drop(std::fs::remove_file(place.data_dir().join(name)));
        }
    };
    let listed = || {
        let listed = place.json(&["ls"]);
        let mut ids: Vec<String> = titles(&listed).into_iter().map(ToOwned::to_owned).collect();
        ids.sort();
        ids
    };
    without_catalogue();
    assert_eq!(listed(), ["other", "pi-session"]);
    without_catalogue();
    place.ok(&["show", "other"]);
    assert_eq!(listed(), ["other", "pi-session"], "whichever command came first");
    without_catalogue();
    let server = Server::start(&place);
    let there = place.json(&["ls", "--server", &server.address]);
    assert_eq!(titles(&there).len(), 2);
}

#[test]
fn a_server_serves_files_too() {
    let (place, file) = with_file();
    place.ok(&["migrate", &file]);
    place.ok(&["rollback", "pi-session", "--yes"]);
    let server = Server::start(&place);
    let shown = place.json(&["show", "pi-session", "--server", &server.address]);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    place.ok(&["label", "pi-session", "a3", "through", "--server", &server.address]);
    assert_eq!(lines_of(&file).last().unwrap()["label"], "through");
}

#[test]
fn everything_odd_in_a_file_is_kept_and_said() {
    let place = Place::new();
    let file = place.file(NAME);
    let odd = [
        header("odd").to_string(),
        user_line("a", None, "first").to_string(),
        "not json at all".to_owned(),
        user_line("a", None, "the same id").to_string(),
        user_line("b", Some("nobody"), "an orphan").to_string(),
        user_line("c", Some("c"), "its own parent").to_string(),
        json!({"type": "from_the_future", "id": "d", "parentId": "b", "timestamp": "2026-02-07T14:00:01.000Z", "x": [1, 2]}).to_string(),
        "{\"type\":\"mess".to_owned(),
    ];
    write(&file, &odd.join("\r\n"));
    let path = file.display().to_string();
    let brought = place.run(&["migrate", &path]);
    assert_eq!(brought.code, 0, "{brought:?}");
    for word in ["not json", "duplicate id", "parent missing", "parent self", "torn"] {
        assert!(brought.err.contains(word), "{word:?} is missing: {}", brought.err);
    }
    let exported = place.ok(&["export", "odd", "--format", "pi"]);
    let exported: Vec<&str> = exported.lines().collect();
    assert_eq!(exported, odd.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Kills the program at some moment of its work, and checks that the next command finds everything in order.
fn killed(place: &Place, args: &[&str], after: Duration) {
    let mut child = place
        .command(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_migration_and_a_rollback_that_are_killed_are_recovered_by_the_next_command() {
    const ENTRIES: usize = 300;
    let place = Place::new();
    let file = place.file(NAME);
    let mut lines = vec![header("killed")];
    let id = |number: usize| format!("e{number}");
    lines.extend((0..ENTRIES).map(|number| {
        let parent = number.checked_sub(1).map(id);
        user_line(&id(number), parent.as_deref(), &format!("message {number}"))
    }));
    write(&file, &text_of(&lines));
    let path = file.display().to_string();
    let clock = SystemClock::new();
    place.ok(&["migrate", &path]);
    let migrating = clock.monotonic();
    place.ok(&["rollback", "killed", "--yes"]);
    let rolling_back = clock.monotonic() - migrating;
    let rounds = 4;
    for round in 0..rounds {
        killed(&place, &["migrate", &path], migrating * (2 * round + 1) / (2 * rounds));
        // Whichever store is active now, it has the whole session.
        assert_eq!(messages(&place, "killed"), ENTRIES, "round {round}");
        place.ok(&["migrate", &path]);
        let back = ["rollback", "killed", "--yes"];
        killed(&place, &back, rolling_back * (2 * round + 1) / (2 * rounds));
        assert_eq!(messages(&place, "killed"), ENTRIES, "round {round}");
        place.ok(&back);
    }
    assert_eq!(place.json(&["verify"])["ok"], true);
    assert_eq!(lines_of(&path), lines, "the file is as it was");
}

/// A line of fifty megabytes and ten more around it: memory depends on the longest line, not on the file.
#[test]
#[cfg(target_os = "linux")]
fn a_very_long_line_is_brought_in_with_bounded_memory() {
    const LINE: usize = 50_000_000;
    let place = Place::new();
    let file = place.file(NAME);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let mut out = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    writeln!(out, "{}", header("long")).unwrap();
    // Line breaks are escaped, so the text differs from the bytes in the file.
    let text = "fifteen letters\n".repeat(LINE / 17);
    writeln!(out, "{}", user_line("a", None, &text)).unwrap();
    let filler = "y".repeat(100_000);
    for number in 0..100 {
        writeln!(out, "{}", user_line(&format!("f{number}"), Some("a"), &filler)).unwrap();
    }
    out.flush().unwrap();
    let path = file.display().to_string();
    let mut child = place.command(&["migrate", &path]).stdin(Stdio::null()).spawn().unwrap();
    let peak = peak_memory(&mut child);
    assert!(child.wait().unwrap().success());
    // At most two copies of the line exist at any time, among the reader, the record and its frame. The program itself
    // comes on top.
    assert!(peak < 3 * LINE as u64, "{peak} bytes at most at once");
    assert_eq!(place.json(&["ls"])["sessions"][0]["message_count"], 101);
}

/// The most memory that a process had while it ran.
#[cfg(target_os = "linux")]
fn peak_memory(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let clock = SystemClock::new();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        assert!(clock.monotonic() < PATIENCE, "it does not end");
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) * 1024);
        std::thread::sleep(Duration::from_millis(5));
    }
    peak
}

#[test]
fn a_database_of_pi_goes_both_ways() {
    let place = Place::new();
    let database = place.with(async |sessions| {
        let (session, _) = sessions.conversation("From a database").await;
        let mut bytes = Vec::new();
        let store = sessions.service.store();
        bough_migrate::write_sqlite(&*store, &session, &mut bytes).await.unwrap();
        bytes
    });
    let path = place.file("pi/session.sqlite");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, database).unwrap();
    let (file, elsewhere) = (path.display().to_string(), place.file("new").display().to_string());
    let there = |args: &[&str]| place.json(&[args, &["--data-dir", &elsewhere]].concat());
    let as_it_is = there(&["show", &file]);
    assert_eq!(as_it_is["session"]["message_count"], 6, "served as it is");
    let brought = there(&["migrate", &file]);
    assert_eq!(brought["files"][0]["summary"]["plan"]["format"], "sqlite_v1");
    let session = brought["files"][0]["summary"]["plan"]["session_id"].as_str().unwrap();
    there(&["label", session, "leaf", "since"]);
    let back = there(&["rollback", session, "--yes"]);
    assert_eq!(back["exported"], 1, "the label was added to the database");
    let tree = there(&["tree", &file]);
    assert!(tree["entries"].as_array().unwrap().iter().any(|entry| entry["label"] == "since"));
}
