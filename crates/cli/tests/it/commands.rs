//! The real program on a real data directory: what it prints, and how it ends.
#![expect(clippy::disallowed_methods, reason = "tests make and break files of their own")]

use std::io::Write;
use std::process::Stdio;

use crate::common::{Place, answer, answered, one_conversation, user};
use serde_json::{Value, json};

/// Output with ids and ages taken out, so that it can be compared.
fn plain(text: &str, ids: &[&str]) -> String {
    let mut text = text.to_owned();
    for (at, id) in ids.iter().enumerate() {
        text = text.replace(id, &format!("<{at}>"));
        let short: String = id.chars().take(12).collect();
        text = text.replace(&short, &format!("<{at}>"));
    }
    text
}

#[test]
fn an_empty_store() {
    let place = Place::new();
    let listed = place.run(&["ls"]);
    assert_eq!((listed.code, listed.out.as_str()), (0, ""));
    assert!(listed.err.contains("no sessions yet"));
    assert_eq!(place.json(&["ls"]), json!({"sessions": [], "more": false}));
    let shown = place.run(&["show", "last"]);
    assert_eq!(shown.code, 3);
    assert_eq!(
        shown.err,
        "error: there are no sessions yet\n\
         hint: `bough migrate` brings sessions in, `bough record` records one\n"
    );
    assert!(place.ok(&["verify"]).contains("checked 0 sessions"));
    assert_eq!(place.json(&["restore", "--list"]), json!({"sessions": []}));
}

#[test]
fn a_session_is_listed_and_shown() {
    let (place, session, entries) = one_conversation();
    let listed = plain(&place.ok(&["ls"]), &[&session]);
    assert_eq!(
        listed,
        "ID            TITLE        MSGS  AGE  MODEL      COST\n\
         <0>  Date parser     6  now  sonnet-4  $0.03\n"
    );
    let json = place.json(&["ls"]);
    assert_eq!(json["sessions"][0]["title"], "Date parser");
    assert_eq!(json["sessions"][0]["details"]["preview"], "Fix the date parser");
    let shown = place.ok(&["show", &session]);
    let transcript = shown.split("\n\n").skip(1).collect::<Vec<_>>().join("\n\n");
    let ids: Vec<&str> = entries.iter().map(String::as_str).collect();
    assert_eq!(
        plain(&transcript, &ids),
        "● user  <0>\n  Fix the date parser\n\n\
         ● assistant sonnet-4 · 50 out  <1>\n  → read {\"path\":\"src/date.rs\"}\n\n\
         ● result of read  <2>\n  ← 1 line\n\n\
         ● assistant sonnet-4 · 50 out  <3>\n  Fixed it.\n\n\
         ● user  <4>\n  Add a test\n\n\
         ● assistant sonnet-4 · 50 out  <5>\n  Added ␛[31m\u{fffd} one for 世界.\n\n"
    );
}

#[test]
fn sessions_are_found_by_id_prefix_title_and_last() {
    let (place, session, _) = one_conversation();
    place.with(async |sessions| sessions.conversation("Date parser, plan B").await);
    let found =
        |name: &str| place.json(&["show", name, "-n", "0"])["session"]["session_id"].clone();
    assert_eq!(found(&session), json!(session));
    assert_eq!(found(&session[..10]), json!(session));
    assert_eq!(found("date parser"), json!(session), "a title that fits exactly wins");
    assert_eq!(found("plan B"), found("last"));
    assert_eq!(found(&format!("id:{session}")), json!(session));
    let ambiguous = place.run(&["show", "s_"]);
    assert_eq!(ambiguous.code, 2);
    assert_eq!(ambiguous.err.matches("hint: s_").count(), 2, "the candidates are named");
    assert_eq!(place.run(&["show", "nothing like it"]).code, 3);
}

#[test]
fn errors_are_json_when_asked_for() {
    let place = Place::new();
    let failed = place.run(&["show", "nope", "--json"]);
    let error: Value = serde_json::from_str(&failed.err).unwrap();
    assert_eq!((failed.code, &error["error"]["kind"]), (3, &json!("not_found")));
    assert!(error["error"]["hints"][0].as_str().unwrap().contains("bough ls"));
}

#[test]
fn renaming_archiving_and_labels() {
    let (place, session, entries) = one_conversation();
    assert_eq!(place.json(&["rename", &session, "New name"])["meta"]["title"], "New name");
    place.ok(&["archive", "New name"]);
    assert_eq!(place.json(&["ls"])["sessions"], json!([]));
    assert_eq!(place.json(&["ls", "--archived"])["sessions"][0]["title"], "New name");
    place.ok(&["unarchive", "New name"]);
    place.ok(&["label", "last", &entries[3], "fixed"]);
    let tree = place.ok(&["tree", "last", "--print"]);
    assert!(tree.contains("[fixed] assistant: Fixed it."), "{tree}");
    assert_eq!(
        place.json(&["context", "last", "--leaf", "fixed"])["context"]["messages"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    place.ok(&["label", "last", "fixed", "--clear"]);
    assert!(!place.ok(&["tree", "last", "--print"]).contains("[fixed]"));
}

#[test]
fn a_fork_goes_its_own_way() {
    let (place, session, entries) = one_conversation();
    let fork = place.json(&["fork", &session, &entries[4], "--before", "--title", "Plan B"]);
    let id = fork["session_id"].as_str().unwrap();
    assert_eq!(place.json(&["show", id])["messages"].as_array().unwrap().len(), 4);
    assert_eq!(place.json(&["show", &session])["messages"].as_array().unwrap().len(), 6);
    assert_eq!(fork["meta"]["forked_from"], json!(session));
}

#[test]
fn deleting_asks_and_can_be_undone() {
    let (place, session, _) = one_conversation();
    let asked = place.run(&["rm", &session]);
    assert_eq!(asked.code, 2, "nobody is there to answer");
    assert!(asked.err.contains("hint: pass --yes to answer yes"), "{}", asked.err);
    place.ok(&["rm", &session, "--yes"]);
    assert_eq!(place.run(&["show", &session]).code, 3);
    assert_eq!(place.json(&["restore", "--list"])["sessions"][0]["meta"]["title"], "Date parser");
    place.ok(&["undo"]);
    assert_eq!(place.json(&["show", &session])["messages"].as_array().unwrap().len(), 6);
    place.ok(&["rm", &session, "--yes", "--purge"]);
    assert_eq!(place.run(&["restore", &session]).code, 3);
}

#[test]
fn usage_is_added_up() {
    let (place, session, _) = one_conversation();
    let usage = place.json(&["usage", &session]);
    assert_eq!(usage["session"]["total"]["output"], 150);
    assert_eq!(place.json(&["usage"])["usage"]["models"]["sonnet-4"]["input"], 3_000);
    assert!(place.ok(&["usage", "last"]).contains("sonnet-4"));
    let fork = place.json(&["fork", &session, "--title", "Copy"]);
    let of_fork = place.json(&["usage", fork["session_id"].as_str().unwrap()]);
    assert_eq!(of_fork["session"]["total"]["output"], 150, "a session by itself is whole");
    let all = place.json(&["usage"]);
    assert_eq!((&all["sessions"], &all["usage"]["total"]["output"]), (&json!(2), &json!(150)));
    assert_eq!(all["copied_by_forks"]["total"]["messages"], 3);
    assert!(place.run(&["usage"]).err.contains("forks copied 3 answers"));
}

/// The money was spent, and the answers are still there to be read: a sum that lost them would be wrong.
#[test]
fn what_forks_copied_stays_in_the_sum_when_its_origin_is_deleted() {
    let (place, session, entries) = one_conversation();
    place.ok(&["fork", &session, "--title", "All of it"]);
    place.ok(&["fork", &session, &entries[1], "--title", "The beginning"]);
    let sums = || {
        let all = place.json(&["usage"]);
        let of = |what: &str| all[what]["total"]["messages"].as_u64().unwrap();
        (of("usage"), of("copied_by_forks"))
    };
    assert_eq!(sums(), (3, 4), "the origin counts them");
    place.ok(&["rm", &session, "--yes"]);
    assert_eq!(sums(), (3, 1), "the fork with the most of them counts them");
    place.ok(&["rm", "All of it", "--yes"]);
    assert_eq!(sums(), (1, 0));
    place.ok(&["undo"]);
    place.ok(&["restore", &session]);
    assert_eq!(sums(), (3, 4));
}

#[test]
fn compacting_is_shown_written_and_undone() {
    let (place, session, _) = one_conversation();
    let looked = place.json(&["compact", &session, "--keep-recent", "5", "--dry-run"]);
    assert_eq!(looked["entry_id"], Value::Null);
    let asked = place.run(&["compact", &session, "--keep-recent", "5"]);
    assert_eq!(asked.code, 2, "it is shown before it is written");
    assert!(asked.out.contains("## Goal\nFix the date parser"), "{}", asked.out);
    place.ok(&["compact", &session, "--keep-recent", "5", "--yes"]);
    let context = place.ok(&["context", &session]);
    assert!(context.contains("compacted into the following summary"), "{context}");
    assert!(context.contains("src/date.rs"));
    assert_eq!(
        place.json(&["compact", &session, "--yes"])["nothing_to_do"],
        "the session was just compacted"
    );
    place.ok(&["compact", &session, "--undo"]);
    assert!(!place.ok(&["context", &session]).contains("compacted"));
    assert_eq!(
        place.json(&["compact", &session, "--undo"])["nothing_to_do"],
        "no compaction is in force"
    );
}

#[test]
fn a_summary_comes_from_a_file_or_a_program() {
    let (place, session, _) = one_conversation();
    let base = ["compact", &session, "--keep-recent", "5", "--dry-run"];
    let file = place.file("summary.md");
    write(&file, "My own words.");
    let path = file.display().to_string();
    let from_file = place.json(&[&base[..], &["--summary-file", &path]].concat());
    assert!(from_file["summary"].as_str().unwrap().starts_with("My own words."));
    let program = ["--command", "sh -c 'grep -c User'"];
    let from_program = place.json(&[&base[..], &program].concat());
    assert!(from_program["summary"].as_str().unwrap().starts_with('2'), "{from_program}");
    let failed = place.run(&[&base[..], &["--command", "false"]].concat());
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("false ended with"), "{}", failed.err);
}

#[test]
fn nothing_is_compacted_by_itself_without_a_known_window() {
    let (place, _, _) = one_conversation();
    assert_eq!(place.json(&["compact", "--auto"]), json!({"compacted": []}));
}

#[test]
fn exports_in_every_format() {
    let (place, session, entries) = one_conversation();
    let lines = place.ok(&["export", &session]);
    assert_eq!(lines.lines().count(), 6);
    let branch = place.ok(&["export", &session, "--leaf", &entries[0]]);
    assert_eq!(branch.lines().count(), 1);
    let document: Value =
        serde_json::from_str(&place.ok(&["export", &session, "--format", "json"])).unwrap();
    assert_eq!(document["entries"].as_array().unwrap().len(), 6);
    let file = place.file("out.md").display().to_string();
    let chat = place.ok(&["export", &session, "--format", "openai-chat"]);
    let chat: serde_json::Value = serde_json::from_str(&chat).unwrap();
    assert_eq!(chat["format"], "openai-chat");
    assert!(!chat["messages"].as_array().unwrap().is_empty());
    place.ok(&["export", &session, "--format", "md", "-o", &file]);
    let refused = place.run(&["export", &session, "--format", "md", "-o", &file]);
    assert_eq!(refused.code, 2, "a file is not written over");
    place.ok(&["export", &session, "--format", "md", "-o", &file, "--force"]);
}

#[test]
fn what_cannot_be_done_says_what_to_do_next() {
    let (place, session, _) = one_conversation();
    let check = |args: &[&str], code: i32, hint: &str| {
        let answered = place.run(args);
        assert_eq!(answered.code, code, "{args:?}: {answered:?}");
        assert!(answered.err.contains(hint), "{args:?}: {}", answered.err);
        let with_json: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let error: Value = serde_json::from_str(&place.run(&with_json).err).unwrap();
        assert!(!error["error"]["message"].as_str().unwrap().is_empty());
        assert!(!error["error"]["hints"].as_array().unwrap().is_empty(), "{args:?}: {error}");
    };
    check(&["show", "nowhere"], 3, "`bough ls --all`");
    check(&["fork", &session, "nowhere"], 3, "`bough tree SESSION --print`");
    check(&["undo"], 3, "`bough ls --all`");
    check(&["restore", "nowhere"], 3, "`bough restore --list`");
    check(&["migrate", "/no/such/file"], 3, "~/.pi/agent/sessions");
    check(&["rollback", &session, "--yes"], 3, "hint: ");
    check(&["record", "/no/such/file"], 3, "standard input");
    check(&["replay", &session], 3, "`bough export`");
    check(&["token", "revoke", "nowhere"], 3, "`bough token list`");
    check(&["rm", &session], 2, "--yes");
    check(&["resume"], 2, "`bough ls`");
    check(&["ls", "--limit", "0"], 2, "at least 1, or --all");
    check(&["verify", "--server", "http://127.0.0.1:1"], 2, "without --server");
    check(&["ls", "--server", "http://127.0.0.1:1"], 7, "server runs");
}

#[test]
fn damage_is_found_and_what_is_whole_is_copied() {
    let (place, session, _) = one_conversation();
    assert!(place.ok(&["verify", &session]).contains("0 damaged"));
    let segment = crate::common::find(&place.data_dir(), "seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x20;
    std::fs::write(&segment, bytes).unwrap();
    let checked = place.run(&["verify", "--json"]);
    assert_eq!(checked.code, 5);
    let report: Value = serde_json::from_str(&checked.out).unwrap();
    assert_eq!(report["ok"], false);
    for name in [session.clone(), format!("id:{session}"), session[..8].to_owned()] {
        let one = place.run(&["verify", &name]);
        assert_eq!((one.code, one.out.contains("damaged: ")), (5, true), "{name}: {one:?}");
    }
    for command in ["show", "export", "tree", "context", "usage", "fork", "tail"] {
        let refused = place.run(&[command, &session]);
        assert_eq!(refused.code, 5, "{command}: {} {}", refused.out, refused.err);
        assert!(refused.err.contains("bough salvage"), "{command}: {}", refused.err);
        let says = |text: &str| refused.err.contains(text);
        let names_place =
            says("error: stored data is damaged: the checksum") && says(" (segments/");
        assert!(names_place, "{command}: {}", refused.err);
    }
    assert!(place.ok(&["ls"]).contains("Date parser"), "it is still listed");
    let rescued = place.file("rescued").display().to_string();
    let saved = place.ok(&["salvage", "--to", &rescued]);
    assert!(saved.contains("saved"), "{saved}");
    assert!(place.ok(&["verify", "--data-dir", &rescued]).contains("0 damaged"));
    let again = place.run(&["salvage", "--to", &rescued]);
    assert_eq!(again.code, 4, "the directory has the session: {again:?}");
    let one = place.run(&["salvage", &session, "--to", &rescued]);
    assert_eq!((one.code, one.err.contains("hint: name a new directory")), (4, true), "{one:?}");
}

#[test]
fn events_are_recorded_and_played_back() {
    let place = Place::new();
    let events = events();
    let file = place.file("events.jsonl");
    write(
        &file,
        &format!(
            "{}not json\n",
            events.iter().map(|event| format!("{event}\n")).collect::<String>()
        ),
    );
    let path = file.display().to_string();
    let recorded = place.run(&["record", &path, "--print", "sessions"]);
    assert_eq!(recorded.code, 0, "{recorded:?}");
    assert!(recorded.err.contains("line 5: not an event"), "{}", recorded.err);
    let sessions: Value = serde_json::from_str(&recorded.out).unwrap();
    assert_eq!(sessions[0]["session_id"], "rec-1");
    assert_eq!(place.json(&["show", "rec-1", "--loops"])["loops"][0]["loop_id"], "loop-1");
    assert_eq!(place.run(&["record", &path, "--strict"]).code, 1);
    let replayed = place.ok(&["replay", "rec-1"]);
    let kinds: Vec<Value> = replayed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
        .collect();
    assert_eq!(kinds.first(), Some(&events[0]["type"]));
}

/// The events of one short loop.
fn events() -> Vec<Value> {
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1});
    let usage = json!({"input": 1, "output": 2, "reasoning": 0, "cache_read": 0, "cache_write": 0, "total_tokens": 3});
    vec![
        json!({"type": "AgentStart", "agent_id": "agent", "session_id": "rec-1", "loop_id": "loop-1",
            "parent_loop_id": null, "continuation_kind": "Initial", "timestamp": "2026-02-07T14:00:00Z",
            "metadata": null}),
        json!({"type": "MessageStart", "loop_id": "loop-1", "message": message}),
        json!({"type": "MessageEnd", "loop_id": "loop-1", "message": message}),
        json!({"type": "AgentEnd", "loop_id": "loop-1", "messages": [message], "usage": usage,
            "timestamp": "2026-02-07T14:00:05Z", "rejection": null}),
    ]
}

#[test]
fn a_session_is_followed_while_another_process_writes_it() {
    let (place, session, _) = one_conversation();
    let mut follower = place
        .command(&["tail", "-f", &session, "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    for _ in 0..6 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["type"], "message");
    }
    let id = bough_session::SessionId::from_stored(session.as_str());
    place.with(async |sessions| sessions.append(&id, user("Are you following?")).await);
    let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line["type"], "session::message-added");
    assert_eq!(line["payload"]["message"]["content"][0]["text"], "Are you following?");
    place.ok(&["rm", &session, "--yes"]);
    assert!(follower.wait().unwrap().success(), "it ends when the session is deleted");
}

#[test]
fn tokens_and_configuration() {
    let place = Place::new();
    let made = place.json(&[
        "token",
        "create",
        "--scope",
        "owner=u_1",
        "--rights",
        "read",
        "--expires",
        "30d",
    ]);
    let id = made["record"]["id"].as_str().unwrap().to_owned();
    assert!(made["token"].as_str().unwrap().starts_with("bough_"));
    assert_eq!(place.json(&["token", "list"])["tokens"][0]["scope"], json!({"owner": "u_1"}));
    place.ok(&["token", "revoke", &id]);
    assert!(place.ok(&["token", "list"]).contains("revoked"));
    assert_eq!(place.run(&["token", "revoke", "nobody"]).code, 3);
    assert!(place.ok(&["config", "show"]).contains("keep_recent_tokens: 20000"));
    assert!(place.ok(&["config", "check"]).contains("the defaults apply"));
    write(&place.data_dir().join("config.yaml"), "listen: nonsense\n");
    let wrong = place.run(&["config", "check"]);
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("listen"), "{}", wrong.err);
}

#[test]
fn colours_only_where_they_are_wanted() {
    let (place, _, _) = one_conversation();
    assert!(!place.ok(&["ls"]).contains('\u{1b}'), "a pipe gets none");
    assert!(place.ok(&["ls", "--color", "always"]).contains('\u{1b}'));
    let mut plain = place.command(&["ls", "--color", "auto"]);
    let out = answered(plain.env("NO_COLOR", "1").output().unwrap()).out;
    assert!(!out.contains('\u{1b}'));
}

#[test]
fn help_and_completions() {
    let place = Place::new();
    let help = place.ok(&["--help"]);
    assert!(help.contains("Examples:") && help.contains("Exit codes:"));
    assert!(place.ok(&["rm", "--help"]).contains("bough restore"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.ok(&["completions", shell]).contains("bough"));
    }
    assert_eq!(place.run(&[]).code, 2);
    assert_eq!(place.run(&["frobnicate"]).code, 2);
    assert_eq!(place.run(&["resume"]).code, 2, "a screen needs a terminal");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let place = Place::new();
    place.with(async |sessions| {
        let session = sessions.create("Long").await;
        sessions
            .append_many(&session, (0..2_000).map(|n| answer(&format!("line {n}"))).collect())
            .await;
    });
    let mut shown =
        place.command(&["show", "last", "--all"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(shown.stdout.take());
    assert!(shown.wait().unwrap().success());
}

fn write(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_makes_no_sense_is_said_with_the_next_step() {
    let (place, session, _) = one_conversation();
    let junk = place.file("junk.jsonl");
    std::fs::write(&junk, "no session\n".repeat(30)).unwrap();
    let (junk, data_dir) = (junk.display().to_string(), place.data_dir().display().to_string());
    let check = |args: &[&str], code: i32, words: &str| {
        let answered = place.run(args);
        assert_eq!(answered.code, code, "{args:?}: {answered:?}");
        assert!(answered.err.contains(words), "{args:?}: {}", answered.err);
    };
    check(&["ls", "-n", "0"], 2, "0");
    check(&["migrate", "/no-such-place"], 3, "there is nothing at /no-such-place");
    check(&["migrate", &junk], 1, "is not a pi session");
    check(&["rollback", &session], 3, "has no V1 file to go back to");
    check(&["salvage", "--to", &data_dir], 2, "is the data directory itself");
    check(&["salvage", "nothing", "--to", &place.file("to").display().to_string()], 3, "hint: ");
    check(&["record", &junk], 1, "there is no event in the input");
    let told = place.run(&["record", &junk]).err;
    assert_eq!(told.matches("passed over").count(), 11, "ten lines and the rest: {told}");
    assert!(place.ok(&["unarchive", &session]).contains("was not archived"));
    let wrong = place.run(&["show", "--json"]);
    let error: Value = serde_json::from_str(&wrong.err).unwrap();
    assert_eq!((wrong.code, &error["error"]["kind"]), (2, &json!("usage")));
    assert!(error["error"]["message"].as_str().unwrap().contains("<SESSION>"), "{error}");
}

#[test]
fn a_configuration_that_serve_would_refuse_is_not_well() {
    let place = Place::new();
    write(&place.data_dir().join("config.yaml"), "listen: 0.0.0.0:7717\nbus: off\n");
    let open = place.run(&["config", "check"]);
    assert_eq!(open.code, 1);
    assert!(open.err.contains("bough token create"), "{}", open.err);
    place.ok(&["token", "create"]);
    assert!(place.ok(&["config", "check"]).contains("is valid"));
}
