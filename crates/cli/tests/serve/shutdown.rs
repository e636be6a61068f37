//! A server that is asked to end.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::client::{append_surely, user};
use crate::process::Bough;

/// A request whose body has not come yet when the signal does.
struct HalfSent {
    socket: TcpStream,
    rest: String,
}

impl HalfSent {
    fn begin(server: &Bough, session: &str, text: &str) -> Self {
        let body = json!({"message": user(text)}).to_string();
        let mut socket = TcpStream::connect(server.http).unwrap();
        socket.set_read_timeout(Some(crate::process::PATIENCE)).unwrap();
        let (first, rest) = body.split_at(10);
        let head = format!(
            "POST /v1/sessions/{session}/entries HTTP/1.1\r\nhost: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{first}",
            server.http,
            body.len()
        );
        socket.write_all(head.as_bytes()).unwrap();
        Self { socket, rest: rest.to_owned() }
    }

    fn finish(mut self) -> String {
        self.socket.write_all(self.rest.as_bytes()).unwrap();
        let mut answer = String::new();
        self.socket.read_to_string(&mut answer).unwrap();
        answer
    }
}

#[test]
fn what_was_begun_is_finished_and_the_end_is_clean() {
    for signal in ["TERM", "INT"] {
        let mut server = Bough::start("");
        let session = server.new_session();
        append_surely(server.http, &session, "before");
        let mut stream = server.stream("/v1/events");
        let late = HalfSent::begin(&server, &session, "late");
        // Another request on its own connection has been served, so the first one has arrived.
        append_surely(server.http, &session, "meanwhile");
        assert_eq!(stream.added(1), ["meanwhile"]);
        server.signal(signal);
        assert!(stream.next().is_err(), "streams end when the server does");
        let answer = late.finish();
        assert!(answer.starts_with("HTTP/1.1 200"), "{signal}: {answer}");
        assert!(server.wait().success(), "{}", server.log());
        assert!(TcpStream::connect(server.http).is_err(), "nothing listens any more");
        server.restart();
        assert_eq!(server.texts(&session), ["before", "meanwhile", "late"]);
    }
}

/// A client that never finishes cannot keep the server from ending.
#[test]
fn a_request_that_never_ends_does_not_keep_the_server() {
    let mut server = Bough::start("limits: {request_timeout: 1s}");
    let session = server.new_session();
    let _stuck = HalfSent::begin(&server, &session, "never");
    append_surely(server.http, &session, "kept");
    server.signal("TERM");
    assert!(server.wait().success(), "{}", server.log());
    server.restart();
    assert_eq!(server.texts(&session), ["kept"]);
}
