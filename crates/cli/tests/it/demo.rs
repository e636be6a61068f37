//! `bough demo` on a real data directory.
#![expect(clippy::disallowed_methods, reason = "tests make and look into directories of their own")]

use std::io::BufRead;

use crate::common::Place;
use serde_json::Value;

#[test]
fn each_run_writes_new_sessions_of_every_kind() {
    let place = Place::new();
    let first = place.json(&["demo"])["session_ids"].as_array().unwrap().len();
    assert_eq!(first, 9);
    place.ok(&["demo"]);
    let listed = place.json(&["ls"]);
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2 * first);
    for status in ["idle", "done", "error"] {
        assert!(sessions.iter().any(|session| session["status"] == status), "{status}");
    }
    let long = sessions.iter().map(|session| session["message_count"].as_u64().unwrap()).max();
    assert_eq!(long, Some(480));
    let titles: Vec<&Value> = sessions.iter().map(|session| &session["title"]).collect();
    assert!(titles.iter().any(|title| *title == "Make the report page faster"), "{titles:?}");
    assert!(place.ok(&["verify"]).contains("checked 18 sessions"));
}

/// Both at once: the sessions of the past, and those that an agent writes live.
#[cfg(unix)]
#[test]
fn a_server_with_the_demo_leaves_nothing_behind() {
    let place = Place::new();
    let temporary = place.file("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut server = place
        .command(&["serve", "--demo", "--listen", "127.0.0.1:0", "--bus", "off"])
        .env("TMPDIR", &temporary)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut welcome = std::io::BufReader::new(server.stdout.take().unwrap()).lines();
    let address = welcome
        .find_map(|line| line.unwrap().split_once("http://").map(|(_, rest)| rest.to_owned()))
        .unwrap();
    let address = format!("http://{}", address.trim_end_matches('/'));
    let live = |sessions: &Value| {
        sessions["sessions"].as_array().unwrap().iter().any(|one| one["status"] == "working")
    };
    while !live(&place.json(&["ls", "--server", &address])) {}
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
    let kill = std::process::Command::new("kill").arg(server.id().to_string()).status();
    assert!(kill.unwrap().success());
    assert!(server.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    assert!(!place.data_dir().exists(), "the user's own directory is left alone");
}
