//! The output and the exit codes of commands in cases where people had difficulties: labels, ids, widths, counts,
//! files.
#![expect(clippy::disallowed_methods, reason = "tests make and break files of their own")]

use std::io::{BufRead, Read};
use std::process::{Command, Stdio};

use crate::common::{Place, Sessions, answer, answered, one_conversation, result, user};
use bough_service::Scope;
use bough_service::api::AppendDeltaRequest;
use bough_session::{AgentMessage, EntryId, SessionId, Usage};
use serde_json::{Value, json};

#[test]
fn a_label_names_one_entry_and_never_a_label() {
    let (place, session, entries) = one_conversation();
    let label = |entry: &str, name: &str| place.json(&["label", &session, entry, name]);
    assert_eq!(label("leaf", "a")["entry_id"], json!(entries[5]));
    assert_eq!(label("leaf", "a")["entry_id"], json!(entries[5]), "not the label entry");
    let moved = label(&entries[1], "a");
    assert_eq!(moved["moved_from"], json!([entries[5]]));
    let context = place.json(&["context", &session, "--leaf", "a"]);
    assert_eq!(context["context"]["messages"].as_array().unwrap().len(), 2);
    let shown = place.json(&["show", &session]);
    let newest = shown["messages"].as_array().unwrap().last().unwrap()["entry_id"].clone();
    let refused = place.run(&["label", &session, newest.as_str().unwrap(), "b"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn a_label_that_two_entries_were_given_names_the_last() {
    let (place, session, entries) = one_conversation();
    place.with(async |sessions| {
        for entry in [&entries[0], &entries[3]] {
            let request = json!({"session_id": session, "entry_id": entry, "label": "twice"});
            let request = serde_json::from_value(request).unwrap();
            sessions.service.set_label(&Scope::owner(), request).await.unwrap();
        }
    });
    let context = place.json(&["context", &session, "--leaf", "twice"]);
    assert_eq!(context["context"]["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn only_messages_count_as_newest() {
    let (place, session, entries) = one_conversation();
    place.ok(&["label", &session, "leaf", "here"]);
    let shown = place.json(&["show", &session, "-n", "1"]);
    let items = shown["messages"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["entry_id"]), (2, &json!(entries[5])));
    assert_eq!(shown["more"], true);
    let tail = place.ok(&["tail", &session, "-n", "1"]);
    assert!(tail.contains("one for 世界"), "{tail}");
    assert_eq!(place.json(&["show", &session, "-n", "0"])["messages"], json!([]));
    assert_eq!(place.json(&["show", &session, "-n", "6"])["more"], false);
}

#[test]
fn printed_ids_can_be_pasted() {
    let place = Place::new();
    let (session, entries) = place.with(async |sessions| {
        let session = sessions.create("Alike").await;
        let mut entries = Vec::new();
        for number in 0..3 {
            let id = format!("an-entry-with-a-long-beginning-{number}-and-an-end");
            let request = json!({"session_id": session, "entry_id": id, "message": user("hi")});
            let request = serde_json::from_value(request).unwrap();
            sessions.service.append(&Scope::owner(), request).await.unwrap();
            entries.push(id);
        }
        (session.to_string(), entries)
    });
    let tree = place.ok(&["tree", &session, "--print"]);
    let lines: Vec<&str> = tree.lines().skip(1).collect();
    for (line, entry) in lines.iter().zip(&entries) {
        let shown = line.trim_end_matches("← active").split_whitespace().last().unwrap();
        assert_eq!(place.json(&["label", &session, shown, "x"])["entry_id"], json!(entry));
    }
}

#[test]
fn a_tree_in_json_has_its_entries_and_its_active_path() {
    let (place, session, entries) = one_conversation();
    place.with(async |sessions| {
        let id = SessionId::from_stored(session.as_str());
        sessions.set_leaf(&id, &EntryId::from_stored(entries[3].as_str())).await;
        sessions.append(&id, user("Another way")).await;
    });
    let tree = place.json(&["tree", &session]);
    assert_eq!(tree["entries"].as_array().unwrap().len(), 7);
    let path = tree["active_path"].as_array().unwrap();
    assert_eq!((path.len(), &path[3]), (5, &json!(entries[3])));
    assert_eq!(path[4], tree["active_leaf"]);
    assert_eq!(tree["session_id"], json!(session));
    let empty = place.with(async |sessions| sessions.create("Empty").await);
    let tree = place.json(&["tree", empty.as_str()]);
    assert_eq!((&tree["entries"], &tree["active_path"]), (&json!([]), &json!([])));
}

#[test]
fn one_wrong_name_changes_nothing() {
    let (place, session, _) = one_conversation();
    let failed = place.run(&["archive", &session, "no-such-session"]);
    assert_eq!((failed.code, failed.out.as_str()), (3, ""));
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn the_trash_calls_a_session_what_lists_called_it() {
    let place = Place::new();
    let (session, _) = place.with(async |sessions| sessions.conversation("").await);
    assert!(place.ok(&["ls"]).contains("Fix the date parser"));
    place.ok(&["rm", session.as_str(), "--yes"]);
    assert!(place.ok(&["restore", "--list"]).contains("Fix the date parser"));
    place.ok(&["restore", "fix the date parser"]);
    assert_eq!(place.json(&["ls"])["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn reports_name_a_session_as_every_answer_does() {
    let (place, session, _) = one_conversation();
    let report = place.json(&["verify"]);
    assert_eq!(report["sessions"][0]["session_id"], json!(session));
    assert_eq!(report["sessions"][0]["id"], Value::Null);
}

#[test]
fn a_file_that_exists_is_not_somebody_elses_writing() {
    let (place, session, _) = one_conversation();
    let file = place.file("out.md").display().to_string();
    std::fs::write(&file, "mine").unwrap();
    let refused = place.run(&["export", &session, "--format", "md", "-o", &file]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn copies_without_a_price_have_no_brackets() {
    let place = Place::new();
    let (session, entries) = place.with(async |sessions| {
        let session = sessions.create("Free").await;
        let AgentMessage::Assistant(mut reply) = answer("For nothing") else { unreachable!() };
        reply.usage = Some(Usage { input: Some(1), ..Usage::default() });
        let messages = vec![user("What?"), AgentMessage::Assistant(reply)];
        let entries = sessions.append_many(&session, messages).await;
        (session, entries)
    });
    place.ok(&["fork", session.as_str(), entries[1].as_str()]);
    let usage = place.run(&["usage"]);
    assert!(usage.err.contains("1 answer more") && !usage.err.contains("()"), "{usage:?}");
}

#[test]
fn tabs_stay_in_a_pipe() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let session = sessions.create("Tabs").await;
        sessions.append(&session, user("a\tb\n\tc")).await;
        session
    });
    for command in ["show", "tail"] {
        let shown = place.ok(&[command, session.as_str()]);
        assert!(shown.contains("  a\tb\n  \tc\n"), "{shown:?}");
    }
}

async fn add(sessions: &Sessions, session: &SessionId, entry: &EntryId, text: &str) {
    let request: AppendDeltaRequest = serde_json::from_value(
        json!({"session_id": session, "entry_id": entry, "block": 0, "text": text}),
    )
    .unwrap();
    sessions.service.append_delta(&Scope::owner(), request).await.unwrap();
}

#[test]
fn what_a_stream_adds_stays_on_its_line_in_a_pipe() {
    let place = Place::new();
    let (session, _) = place.with(async |sessions| sessions.conversation("Stream").await);
    let mut follower = place
        .command(&["tail", "-f", session.as_str(), "-n", "1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(follower.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    place.with(async |sessions| {
        let entry = sessions.append(&session, answer("One")).await;
        for text in [", two", ", three", "\nand ", "four"] {
            add(&sessions, &session, &entry, text).await;
        }
        sessions.append(&session, user("Thanks")).await;
    });
    place.ok(&["rm", session.as_str(), "--yes"]);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(follower.wait().unwrap().success());
    assert!(rest.contains("\n  One, two, three\n  and four\n"), "{rest}");
}

#[test]
fn a_context_is_as_large_as_compaction_takes_it_for() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let session = sessions.create("Sizes").await;
        let AgentMessage::Assistant(mut reply) = answer("Done.") else { unreachable!() };
        reply.usage = Some(Usage { input: Some(176_000), output: Some(500), ..Usage::default() });
        let messages =
            vec![user(&"word ".repeat(500)), AgentMessage::Assistant(reply), user("And now?")];
        sessions.append_many(&session, messages).await;
        session
    });
    let context = place.json(&["context", session.as_str()]);
    let planned = place.json(&["compact", session.as_str(), "--keep-recent", "1", "--dry-run"]);
    assert_eq!(context["tokens"], json!(176_502));
    assert_eq!(planned["tokens_before"], context["tokens"]);
}

#[test]
fn a_budget_reads_only_the_end_of_a_long_path() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let session = sessions.create("Long").await;
        for _ in 0..12 {
            let many = (0..100).map(|number| user(&format!("Message {number} of many"))).collect();
            sessions.append_many(&session, many).await;
        }
        session
    });
    let context = &place.json(&["context", session.as_str(), "--max-tokens", "50"])["context"];
    let messages = context["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["message"]["content"][0]["text"], "Message 99 of many");
    assert_eq!(context["estimated_tokens"], 50);
    // Of 1,200 messages a page of 500 was read.
    assert_eq!(context["left_out"].as_u64().unwrap() + messages.len() as u64, 500);
}

#[test]
fn a_context_within_a_budget_keeps_the_summary_of_an_old_compaction() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let session = sessions.create("Compacted long ago").await;
        let many = |count| (0..count).map(|number| user(&format!("Message {number}"))).collect();
        sessions.append_many(&session, many(10)).await;
        session
    });
    let id = session.as_str();
    place.ok(&["compact", id, "--keep-recent", "5", "--digest", "--yes"]);
    place.with(async |sessions| {
        for _ in 0..11 {
            let many = (0..100).map(|number| user(&format!("Later message {number}"))).collect();
            sessions.append_many(&session, many).await;
        }
    });
    let context = &place.json(&["context", id, "--max-tokens", "200"])["context"];
    let messages = context["messages"].as_array().unwrap();
    let text = |at: usize| messages[at]["message"]["content"][0]["text"].as_str().unwrap();
    assert!(text(0).contains("compacted into the following summary"), "{}", text(0));
    assert_eq!(text(messages.len() - 1), "Later message 99");
    assert!(context["estimated_tokens"].as_u64().unwrap() <= 200);
}

/// The program on a full disk: no file may grow.
#[cfg(unix)]
fn on_a_full_disk(place: &Place, args: &[&str]) -> crate::common::Answered {
    let program = env!("CARGO_BIN_EXE_bough");
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", program]).args(args);
    command.env_clear().envs(place.environment());
    command.stdin(Stdio::null()).output().map(answered).unwrap()
}

/// The events of a loop with one message.
#[cfg(unix)]
fn recorded_events(session: &str) -> String {
    let message =
        json!({"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1});
    let usage = json!({"input": 1, "output": 2, "reasoning": 0, "cache_read": 0, "cache_write": 0,
        "total_tokens": 3});
    let events = [
        json!({"type": "AgentStart", "agent_id": "agent", "session_id": session, "loop_id": "l",
            "parent_loop_id": null, "continuation_kind": "Initial",
            "timestamp": "2026-02-07T14:00:00Z", "metadata": null}),
        json!({"type": "MessageEnd", "loop_id": "l", "message": message}),
        json!({"type": "AgentEnd", "loop_id": "l", "messages": [message], "usage": usage,
            "timestamp": "2026-02-07T14:00:05Z", "rejection": null}),
    ];
    events.iter().map(|event| format!("{event}\n")).collect()
}

/// A conversation with its id, a recording and a session in the trash.
#[cfg(unix)]
fn one_of_each() -> (Place, String) {
    let (place, session, _) = one_conversation();
    place.ok(&["fork", &session]);
    place.ok(&["rm", "last", "--yes"]);
    let events = recorded_events("rec-1");
    std::fs::write(place.file("events.jsonl"), events).unwrap();
    place.ok(&["record", &place.file("events.jsonl").display().to_string()]);
    (place, session)
}

/// Every command that reads answers, and one that writes is refused.
#[cfg(unix)]
fn can_only_be_read(session: &str, run: impl Fn(&[&str]) -> crate::common::Answered) {
    let listed = run(&["ls", "--json"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    let listed = listed["sessions"].as_array().unwrap();
    assert!(listed.iter().any(|row| row["session_id"] == json!(session)), "{listed:?}");
    for args in [
        &["show", "last"][..],
        &["tail", "Date parser"],
        &["tree", session, "--print"],
        &["usage"],
        &["usage", session],
        &["context", session],
        &["export", session, "--format", "md"],
        &["restore", "--list"],
        &["verify"],
        &["compact", session, "--keep-recent", "5", "--dry-run"],
        &["search", "parser"],
        &["replay", "rec-1"],
        &["show", "rec-1", "--loops"],
    ] {
        let done = run(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        assert!(!done.out.is_empty(), "{args:?}");
    }
    let refused = run(&["rename", session, "New"]);
    assert_eq!(refused.code, 1, "{refused:?}");
}

#[cfg(unix)]
fn remove_catalogue(place: &Place) {
    for name in ["catalogue.sqlite", "catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
        drop(std::fs::remove_file(place.data_dir().join(name)));
    }
}

#[cfg(unix)]
#[test]
fn a_disk_that_is_full_can_be_read() {
    let (place, session) = one_of_each();
    can_only_be_read(&session, |args| on_a_full_disk(&place, args));
    remove_catalogue(&place);
    can_only_be_read(&session, |args| on_a_full_disk(&place, args));
    assert_eq!(place.json(&["show", &session])["session"]["title"], "Date parser");
}

/// The id of a user who owns nothing and has no rights.
#[cfg(unix)]
const NOBODY: u32 = 65_534;

/// The program as a user who may only read the data directory. No rights hold back the superuser, so for that one it
/// runs as another user.
#[cfg(unix)]
fn without_write_rights(place: &Place) -> impl Fn(&[&str]) -> crate::common::Answered {
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::process::CommandExt;
    let is_superuser = std::fs::metadata(place.path()).unwrap().uid() == 0;
    let copy = place.file("bough");
    std::fs::copy(env!("CARGO_BIN_EXE_bough"), &copy).unwrap();
    let path = place.path().display().to_string();
    if is_superuser {
        let owner = NOBODY.to_string();
        assert!(Command::new("chown").args(["-R", &owner, &path]).status().unwrap().success());
    }
    assert!(Command::new("chmod").args(["-R", "a-w", &path]).status().unwrap().success());
    move |args| {
        let mut command = Command::new(&copy);
        if is_superuser {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.args(args).current_dir("/").env_clear().envs(place.environment());
        command.stdin(Stdio::null()).output().map(answered).unwrap()
    }
}

#[cfg(unix)]
#[test]
fn a_directory_without_write_rights_can_be_read() {
    for is_catalogue_there in [true, false] {
        let (place, session) = one_of_each();
        if !is_catalogue_there {
            remove_catalogue(&place);
        }
        can_only_be_read(&session, without_write_rights(&place));
        let path = place.path().display().to_string();
        assert!(Command::new("chmod").args(["-R", "u+w", &path]).status().unwrap().success());
    }
}

/// Copies leave out folders that are empty, and what a process that was killed had begun to build cannot be removed.
#[cfg(unix)]
#[test]
fn a_directory_without_write_rights_can_be_read_whatever_lies_beside_the_sessions() {
    let (place, session) = one_of_each();
    for folder in ["staging", "processes"] {
        std::fs::remove_dir_all(place.data_dir().join(folder)).unwrap();
    }
    remove_catalogue(&place);
    can_only_be_read(&session, without_write_rights(&place));
    let path = place.path().display().to_string();
    assert!(Command::new("chmod").args(["-R", "u+w", &path]).status().unwrap().success());

    std::fs::remove_dir_all(place.data_dir().join("trash")).unwrap();
    let begun = place.data_dir().join("staging/begun");
    std::fs::create_dir_all(&begun).unwrap();
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    std::fs::File::open(&begun).unwrap().set_modified(long_ago).unwrap();
    let run = without_write_rights(&place);
    for args in [&["ls"][..], &["verify"], &["show", &session]] {
        let done = run(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
    }
    assert!(Command::new("chmod").args(["-R", "u+w", &path]).status().unwrap().success());
}

#[test]
fn a_long_session_of_a_known_model_is_compacted_by_itself() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let session = sessions.create("Of pi").await;
        let AgentMessage::Assistant(mut reply) = answer("Done.") else { unreachable!() };
        reply.model = "claude-sonnet-4-5".to_owned();
        reply.usage = Some(Usage { input: Some(190_000), output: Some(500), ..Usage::default() });
        let messages = vec![
            user("Fix it"),
            result("c", &"line\n".repeat(20_000)),
            user(&"word ".repeat(20_000)),
            AgentMessage::Assistant(reply),
        ];
        sessions.append_many(&session, messages).await;
        session
    });
    assert_eq!(place.json(&["context", session.as_str()])["window"], 200_000);
    let config = place.data_dir().join("config.yaml");
    std::fs::write(&config, "compaction: {windows: {claude-sonnet-4: 1000000}}\n").unwrap();
    assert_eq!(place.json(&["context", session.as_str()])["window"], 1_000_000);
    assert_eq!(place.json(&["compact", "--auto"]), json!({"compacted": []}));
    std::fs::remove_file(&config).unwrap();
    let done = place.json(&["compact", "--auto"]);
    assert_eq!(done["compacted"][0]["tokens_before"], 190_500);
}

#[test]
fn a_session_file_of_pi_is_forked_into_another_one() {
    let place = Place::new();
    let file = place.file("one.jsonl").display().to_string();
    let line = |id: &str, parent: Option<&str>, text: &str| {
        json!({"type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-02-07T14:00:01.000Z",
            "message": {"role": "user", "content": text, "timestamp": 1}})
    };
    let header = json!({"type": "session", "version": 3, "id": "pi-one",
        "timestamp": "2026-02-07T14:00:00.000Z", "cwd": "/p"});
    let lines = [header, line("a1", None, "Hello"), line("a2", Some("a1"), "One way")];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, &text).unwrap();
    let folder = place.path().display().to_string();
    let made = place.json(&["fork", &file, "a1", "--pi-file", &folder]);
    let fork = made["file"].as_str().unwrap();
    let written = std::fs::read_to_string(fork).unwrap();
    let written: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written[0]["id"], made["session_id"]);
    assert_ne!(written[0]["id"], "pi-one");
    assert_eq!(written[0]["parentSession"], json!(file));
    assert_eq!((written[0]["cwd"].as_str(), written.len()), (Some("/p"), 2));
    assert_eq!(written[1]["id"], "a1");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "the old one stays as it is");
    assert_eq!(place.json(&["ls"])["sessions"], json!([]), "no session was made");
    let shown = place.json(&["show", fork]);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1);
    let refused = place.run(&["fork", &file, "--pi-file", fork]);
    assert_eq!(refused.code, 2, "never over a file");
    assert!(!refused.err.contains("--force"), "it has no such option: {refused:?}");
}

/// What every write makes again needs no copy of the session.
#[test]
fn damage_that_a_write_mends_is_told_from_a_loss() {
    let place = Place::new();
    let session = place.with(async |sessions| {
        let session = sessions.create("Long").await;
        let messages = (0..400).map(|_| user(&"word ".repeat(100))).collect();
        sessions.append_many(&session, messages).await;
        session
    });
    let table = crate::common::find(&place.data_dir(), "tbl");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let damaged = place.run(&["verify"]);
    assert_eq!((damaged.code, damaged.err.contains("salvage")), (5, false), "{damaged:?}");
    assert!(damaged.err.contains("hint: no record is damaged"), "{damaged:?}");
    place.ok(&["rename", session.as_str(), "Written again"]);
    assert!(place.ok(&["verify"]).contains("0 damaged"));
}
