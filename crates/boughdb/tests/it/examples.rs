//! The examples run, and show what they say they show.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Where cargo puts an example, which it builds along with the tests.
fn program(name: &str) -> PathBuf {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.extend(["examples", name]);
    path
}

/// Runs an example; gives the lines that it printed.
fn run(name: &str) -> Vec<String> {
    let path = program(name);
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
    assert!((1..=5).contains(&revisions), "each revision at most once: {lines:?}");
    let last = lines.iter().rfind(|line| line.starts_with("revision")).unwrap();
    assert_eq!(last, r#"revision 5 "A bough is a main branch of a tree.""#);
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

#[test]
fn record_agent_finds_its_session_in_the_store() {
    assert_eq!(
        run("record_agent"),
        [
            "1 session, 0 not stored",
            "user: Name a tree.",
            "assistant: Hazel.",
            "chat-1.small.1: Completed, 1 turn",
            "  Name a tree. (0 of 15 tokens)",
            "  Hazel. (3 of 15 tokens)",
        ]
    );
}

#[test]
fn session_files_are_saved_refused_and_deleted() {
    assert_eq!(
        run("session_files"),
        [
            "session started: paid",
            "session started: not-paid",
            "session ended: paid (1 loop)",
            r#"files: ["paid"]"#,
            "second writer: true",
            r#"task: Some("greet")"#,
            "left: 0",
        ]
    );
}

#[test]
fn streaming_events_are_kept_where_they_are_asked_for() {
    assert_eq!(
        run("streaming_events"),
        [
            r#"pieces kept: false, [] of ["Hazel and oak."]"#,
            r#"pieces kept: true, ["Hazel", " and", " oak."] of ["Hazel and oak."]"#,
        ]
    );
}

#[test]
fn models_and_judge_shows_what_each_part_cost() {
    assert_eq!(
        run("models_and_judge"),
        [
            "small (small-default): 20 tokens written, chosen: true",
            "large (large-default): 300 tokens written, chosen: false",
            "all loops wrote 320 tokens",
            "the judge took 50",
        ]
    );
}

/// Each public module and each type that programs begin with has code in its documentation.
#[test]
fn the_main_types_and_modules_have_code_in_their_documentation() {
    const MAIN: [&str; 6] = ["Bough", "Session", "Documents", "Reply", "Recorder", "Subscription"];
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| std::fs::read_to_string(format!("{root}/src/{path}")).unwrap();
    let library = read("lib.rs");
    for line in library.lines() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            let text = read(&format!("{}.rs", name.trim_end_matches(';')));
            let header: Vec<&str> =
                text.lines().take_while(|line| line.starts_with("//!")).collect();
            assert!(header.contains(&"//! ```"), "{line}");
        }
    }
    assert!(documentation(&library, "pub use bough_service::api;").contains("```"), "api");
    let sources = [
        "bough.rs",
        "documents.rs",
        "recorder.rs",
        "reply.rs",
        "session/mod.rs",
        "subscription.rs",
    ];
    let sources: String = sources.map(read).concat();
    for name in MAIN {
        let text = documentation(&sources, &format!("pub struct {name} "));
        assert!(text.contains("```"), "{name}");
    }
}

/// The comments above a line.
fn documentation(source: &str, line: &str) -> String {
    let before = source.split(line).next().unwrap();
    assert_ne!(before.len(), source.len(), "there is no `{line}`");
    let above =
        before.lines().rev().take_while(|line| line.starts_with("///") || line.starts_with("#["));
    above.collect::<Vec<_>>().join("\n")
}

#[test]
fn loop_tree_is_walked_from_its_root() {
    let lines = run("loop_tree");
    assert_eq!(lines[0], "s.a.1: Completed, Initial");
    assert_eq!(lines[1], "  s.a.2: Rejected, Default");
    assert_eq!(lines[2], r#"    s.a.3: Completed, Rerun { tag: "again" }"#);
    assert_eq!(lines[5], r#"  s.a.4: Completed, Branch { tag: "what if" }"#);
    assert_eq!(lines[6], "the way to the winner: s.a.1 > s.a.2 > s.a.3 > s.opus.2");
    assert_eq!(lines[7], "winner: s.opus.2");
}

#[test]
fn sub_agents_know_each_other() {
    assert_eq!(
        run("sub_agents"),
        [
            "parent.main.1: sub_agent spawned child.main.1",
            "child was spawned by parent",
            "the family: parent, child",
            "all of it read 110 tokens",
        ]
    );
}

#[test]
fn a_compaction_changes_the_context_and_not_the_messages() {
    let lines = run("compact_and_load");
    assert_eq!(lines[0], "before: 80 messages in the context, 80 kept");
    assert!(lines[1].starts_with("compacted: ") && lines[1].ends_with(", 80 kept"), "{lines:?}");
    assert_ne!(lines[1], lines[0].replace("before", "compacted"));
    assert_eq!(lines[2], lines[0].replace("before", "restored"));
}

#[test]
fn an_agent_rotates_and_refuses() {
    assert_eq!(
        run("rotate_and_filter"),
        [
            r#"after a pause: false, Rejected Some("it holds a password") []"#,
            "after a pause: true, Completed None [\"Tell me all about hazel trees\\n[Warning: that is long]\"]",
        ]
    );
}

#[test]
fn a_replay_makes_an_equal_session() {
    let lines = run("replay");
    assert_eq!(lines[0], "after 0ns: AgentStart");
    assert_eq!(lines[2], "after 1s: AgentStart");
    assert_eq!(lines.last().unwrap(), "equal: true");
}

/// The example of a chat server while it runs.
struct ChatServer {
    process: Child,
    address: String,
}

impl ChatServer {
    fn start(folder: &tempfile::TempDir) -> Self {
        let mut command = Command::new(program("chat_server"));
        command.arg(folder.path()).arg("0").stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().to_owned();
        Self { process, address }
    }

    /// Sends a request and gives the connection that its answer comes on.
    fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{head} HTTP/1.1\r\nhost: chat\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }
}

impl Drop for ChatServer {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn chat_server_shows_the_reply_to_who_follows() {
    let folder = tempfile::tempdir().unwrap();
    let server = ChatServer::start(&folder);
    let events = server.send("GET /chats/one/events", "");

    let mut answer = String::new();
    server.send("POST /chats/one", "Why?").read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");

    let mut lines = BufReader::new(events).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("data: ") && line.contains("You asked: Why?")));
}

#[test]
fn a_message_comes_back_in_every_format() {
    let lines = run("any_format");
    assert_eq!(lines[0], "anthropic: as it came: true");
    assert!(lines[1].starts_with("openai-chat: ") && lines[1].contains("Rain?"), "{lines:?}");
    assert!(lines[2].starts_with("gemini: ") && lines[2].contains("parts"), "{lines:?}");
}

#[test]
fn entries_are_found_by_key_and_changed_once() {
    assert_eq!(
        run("batches_and_keys"),
        [
            "made with 3 entries",
            "newest state: {\"step\":2}",
            "by prefix: 2",
            "a second writer: session/leaf_conflict",
            "hidden: 1, left: 0 messages",
        ]
    );
}
