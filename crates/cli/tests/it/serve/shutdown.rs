//! A server that is asked to end.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::client::{append_surely, user};
use super::process::Bough;

/// A request whose body has not come yet when the signal does.
struct HalfSent {
    socket: TcpStream,
    rest: String,
}

impl HalfSent {
    fn begin(server: &Bough, session: &str, text: &str) -> Self {
        let body = json!({"message": user(text)}).to_string();
        let mut socket = TcpStream::connect(server.http).unwrap();
        socket.set_read_timeout(Some(super::process::PATIENCE)).unwrap();
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

/// A client of the bus that never answers, not even the close of its connection.
fn mute_client(server: &Bough) -> TcpStream {
    let mut socket = TcpStream::connect(server.bus.unwrap()).unwrap();
    socket.set_read_timeout(Some(super::process::PATIENCE)).unwrap();
    let hello = "GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n";
    socket.write_all(hello.as_bytes()).unwrap();
    let mut first = [0; 12];
    socket.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 101");
    socket
}

/// It does not keep the sessions from a successor: the store is closed before the client is given up.
#[test]
fn a_bus_client_that_does_not_answer_does_not_hold_the_store() {
    let mut server = Bough::start("log: {level: debug}");
    let session = server.new_session();
    append_surely(server.http, &session, "before");
    let client = mute_client(&server);
    server.signal("TERM");
    assert!(server.wait().success(), "{}", server.log());
    let log = server.log();
    let before_end = log.split("closed").next().unwrap();
    assert!(log.contains("the server is closing"), "{log}");
    assert!(!before_end.contains("a worker is gone"), "{log}");
    server.restart();
    append_surely(server.http, &session, "after");
    assert_eq!(server.texts(&session), ["before", "after"]);
    drop(client);
}
