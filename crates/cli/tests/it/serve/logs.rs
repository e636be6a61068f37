//! What the server says of itself.

use serde_json::{Value, json};

use super::client::{append_surely, request, user};
use super::process::{Bough, until};

/// Log lines may end up in places that must not have callers' text.
#[test]
fn nothing_that_callers_wrote_is_in_the_log_and_every_line_is_json() {
    const MARK: &str = "mark-of-caller\n\u{1b}[31m";
    let mut server = Bough::start_with("log: {level: trace}", &["--log", "json"]);
    let body = json!({"title": MARK, "metadata": {MARK: MARK}});
    let made = server.ok("POST", "/v1/sessions", Some(body));
    let session = made["session_id"].as_str().unwrap();
    let entries = format!("/v1/sessions/{session}/entries");
    server.ok("POST", &entries, Some(json!({"message": user(MARK)})));
    let refused = json!({"message": {"role": MARK}, "entry_id": MARK});
    assert_eq!(server.send("POST", &entries, Some(refused)).status, 400);
    let status = format!("/v1/sessions/{session}/status");
    assert_eq!(server.send("PUT", &status, Some(json!({"status": MARK}))).status, 400);
    let path = "/v1/mark-of-caller?mark-of-caller=mark-of-caller";
    assert_eq!(request(server.http, "GET", path, None).unwrap().status, 404);
    server.signal("TERM");
    assert!(server.wait().success());
    let log = server.log();
    assert!(!log.contains("mark-of-caller"), "{log}");
    assert!(log.lines().count() > 0, "something was logged");
    for line in log.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok_and(|line| line.is_object()), "{line}");
    }
}

/// What the log says at a level, of lines that are JSON.
fn logged(server: &Bough, level: &str) -> Vec<Value> {
    let lines: Vec<String> = server.log().lines().map(str::to_owned).collect();
    let values = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    values.filter(|line| line["level"] == level).collect()
}

/// An operator can find a refused request and its reason by the id that its sender got.
#[test]
fn a_refused_request_leaves_a_line_with_its_id_its_status_and_the_reason() {
    let server = Bough::start_with("tokens: {required: true}", &["--log", "json"]);
    assert_eq!(server.send("GET", "/v1/sessions/secret-name", None).status, 401);
    assert_eq!(server.send("GET", "/secret-page?secret=1", None).status, 401);
    let lines = logged(&server, "INFO");
    let refused: Vec<&Value> =
        lines.iter().filter(|line| line["message"] == "request refused").collect();
    let [first, second] = refused.as_slice() else { panic!("{lines:?}") };
    assert_eq!(first["route"], "/v1/sessions/{session_id}");
    assert_eq!((&first["method"], &first["status"]), (&json!("GET"), &json!(401)));
    assert_eq!(first["code"], "guard/token_needed");
    assert_eq!(second["route"], "");
    assert_ne!(first["request"], second["request"]);
    assert!(!server.log().contains("secret"), "{}", server.log());
}

/// A file that another program spoiled hides no other, and an operator finds it.
#[test]
fn every_file_that_the_fs_adapter_skips_is_in_the_log_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let entry = r#"{"type":"entry","entry":{"kind":"custom","id":"e","parent_id":null,"timestamp":1,"revision":0,"custom_type":"x","data":null}}"#;
    let spoiled: [(&str, &[u8]); 4] = [
        ("noise.jsonl", b"\xff\xfe not text\n"),
        ("words.jsonl", b"not json\n"),
        ("%zz.jsonl", b"{}\n"),
        ("entries.jsonl", &[entry.as_bytes(), b"\n"].concat()),
    ];
    for (name, bytes) in spoiled {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    std::fs::create_dir(folder.path().join("folder.jsonl")).unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let config = format!("adapter: {{name: fs, config: {{data_dir: '{data_dir}'}}}}");
    let server = Bough::start_with(&config, &["--log", "json"]);
    server.new_session();
    for _ in 0..2 {
        let page = server.ok("GET", "/v1/sessions", None);
        assert_eq!(page["sessions"].as_array().unwrap().len(), 1);
    }
    let warnings = logged(&server, "WARN");
    let names = spoiled.iter().map(|(name, _)| *name).chain(["folder.jsonl"]);
    for name in names {
        let path = json!(folder.path().join(name));
        let warned = warnings.iter().filter(|line| line["path"] == path).count();
        assert_eq!(warned, 1, "{name}: {warnings:?}");
    }
}

#[test]
fn a_configuration_that_cannot_be_built_shows_everywhere_and_changes_nothing() {
    let server = Bough::start_with("max_list_limit: 7", &["--log", "json"]);
    let session = server.new_session();
    append_surely(server.http, &session, "before");
    let bad = [
        ("adapter: {name: fs, config: {data_dir: /dev/null/x}}", "/dev/null/x"),
        ("adapter: {name: bridge, config: {url: 'http://main:1'}}", "ws://HOST:PORT"),
        ("limits: {streams: 0}", "limits.streams"),
        ("max_list_limit: [", "YAML"),
    ];
    for (count, (config, words)) in bad.into_iter().enumerate() {
        server.reconfigure(config);
        let refused =
            || server.ok("GET", "/v1/config/status", None)["rejected_reloads"] == count + 1;
        until("the refusal", refused);
        let status = server.ok("POST", "/v1/call/session::config-status", Some(json!({})));
        assert_eq!(status["last_outcome"], "rejected");
        assert!(status["last_error"].as_str().unwrap().contains(words), "{status}");
        let ready = server.ok("GET", "/readyz", None);
        assert_eq!((&ready["status"], &ready["config"]), (&json!("ready"), &json!("rejected")));
        assert_eq!(
            (&ready["store"], &ready["rejected_reloads"]),
            (&json!("native"), &json!(count + 1))
        );
        let errors = logged(&server, "ERROR");
        assert_eq!(errors.len(), count + 1, "{errors:?}");
        assert!(errors[count]["error"].as_str().unwrap().contains(words), "{errors:?}");
        append_surely(server.http, &session, &count.to_string());
    }
    assert_eq!(
        server.texts(&session),
        ["before", "0", "1", "2", "3"],
        "what ran before still runs"
    );
    server.reconfigure("max_list_limit: 2");
    until("a good one", || server.ok("GET", "/readyz", None)["config"] == "applied");
    let page = server.ok("GET", &format!("/v1/sessions/{session}/messages"), None);
    assert_eq!(page["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn the_log_changes_its_form_and_its_level_at_once() {
    let server = Bough::start("");
    let speaks = |fits: &dyn Fn(&str) -> bool| {
        until("such a line", || {
            server.ok("GET", "/v1/sessions", None);
            server.log().lines().any(fits)
        });
    };
    assert!(!server.log().contains("DEBUG"));
    server.reconfigure("log: {level: debug}");
    speaks(&|line| line.contains("DEBUG") && !line.starts_with('{'));
    server.reconfigure("log: {format: json, level: debug}");
    until("a line of JSON", || {
        server.ok("GET", "/v1/sessions", None);
        !logged(&server, "DEBUG").is_empty()
    });
    server.reconfigure("log: {format: json}\nlisten: '127.0.0.1:7'\nengine: 'ws://127.0.0.1:7'");
    let warned = |field: &str| logged(&server, "WARN").iter().any(|line| line["field"] == field);
    until("a word about the next start", || warned("engine"));
    assert!(!warned("listen"), "a flag says where it listens, whatever the file says");
}
