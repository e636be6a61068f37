//! The examples run, and show what they say they show.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test may")]

use std::path::PathBuf;
use std::process::Command;

/// Runs an example, which cargo builds along with the tests; gives the lines that it printed.
fn run(name: &str) -> Vec<String> {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    let ran = Command::new(&path).output();
    let ran = ran.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (out, err) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{name}: {err}");
    out.lines().map(ToOwned::to_owned).collect()
}

#[test]
fn embed_reads_back_what_it_wrote() {
    let lines = run("embed");
    assert!(lines[1].ends_with(r#""Weather question", 2 messages"#), "{lines:?}");
    assert_eq!(
        lines[2..],
        ["  user: What's the weather in Porto?", "  assistant: Sunny, 24 degrees."]
    );
}

#[test]
fn live_subscribe_goes_on_where_it_stopped() {
    let lines = run("live_subscribe");
    let away = lines.iter().position(|line| line == "(went away)").unwrap();
    assert_eq!(away, 4, "{lines:?}");
    assert_eq!(lines[0], r#"added    "Tell me about boughs.""#);
    let revisions = lines.iter().filter(|line| line.starts_with("revision")).count();
    assert!((1..=4).contains(&revisions), "each revision at most once: {lines:?}");
    let last = lines.iter().rfind(|line| line.starts_with("revision")).unwrap();
    assert_eq!(last, r#"revision 4 "A bough is a main branch of a tree.""#);
    assert_eq!(lines.last().unwrap(), "session::status-changed");
}

#[test]
fn branch_and_compare_shows_both_branches_and_forks_the_better_one() {
    let lines = run("branch_and_compare");
    for shown in [r#""Hazel.": 400 tokens, $0.02"#, r#""Oak?": 40 tokens, $0.001"#] {
        assert!(lines.iter().any(|line| line.ends_with(shown)), "{shown}: {lines:?}");
    }
    assert!(lines[2].contains("goes on from Some"), "{lines:?}");
}
