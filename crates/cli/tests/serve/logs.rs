//! What the server says of itself.

use serde_json::{Value, json};

use crate::client::{request, user};
use crate::process::Bough;

/// Log lines end up in places where nobody thinks of what callers wrote.
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
