//! A small client of HTTP and server-sent events that survives the end of a server.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::PATIENCE;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// One request on a connection of its own.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: Option<&Value>,
) -> io::Result<Answer> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    // A truncated answer counts as no answer.
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(cut)?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(cut)?;
    Ok(Answer { status, body: serde_json::from_str(body).map_err(|_| cut())? })
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1})
}

pub(crate) fn text_of(message: &Value) -> String {
    message["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}

/// Appends a text until the server acknowledges it. Repeating is safe because the entry has an id.
pub(crate) fn append_surely(address: SocketAddr, session: &str, text: &str) {
    let body = json!({"entry_id": format!("e-{text}"), "message": user(text)});
    let path = format!("/v1/sessions/{session}/entries");
    let started = Instant::now();
    loop {
        match request(address, "POST", &path, Some(&body)) {
            Ok(answer) if answer.status == 200 => return,
            other => assert!(started.elapsed() < PATIENCE, "{text} cannot be appended: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One server-sent event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Event {
    pub(crate) fn session(&self) -> &str {
        self.data["payload"]["session_id"].as_str().unwrap_or_default()
    }

    pub(crate) fn text(&self) -> String {
        text_of(&self.data["payload"]["message"])
    }
}

/// A stream of server-sent events.
pub(crate) struct Stream {
    socket: TcpStream,
    raw: Vec<u8>,
    text: String,
    /// The last id that the server sent: where to resume.
    pub(crate) last_id: Option<String>,
}

impl Stream {
    pub(crate) fn open(address: SocketAddr, path: &str, after: Option<&str>) -> io::Result<Self> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let last = after.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n{last}\r\n");
        socket.write_all(head.as_bytes())?;
        let last_id = after.map(str::to_owned);
        let mut stream = Self { socket, raw: Vec::new(), text: String::new(), last_id };
        let head = stream.take_head()?;
        if !head.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(head));
        }
        Ok(stream)
    }

    fn take_head(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = find(&self.raw, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&self.raw[..end]).into_owned();
                self.raw.drain(..end + 4);
                return Ok(head);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 * 1024];
        let read = self.socket.read(&mut piece)?;
        self.raw.extend_from_slice(&piece[..read]);
        if read == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Moves the whole chunks that are there into the text.
    fn unchunk(&mut self) {
        while let Some(end) = find(&self.raw, b"\r\n") {
            let size = String::from_utf8_lossy(&self.raw[..end]).into_owned();
            let length = usize::from_str_radix(&size, 16).unwrap();
            if self.raw.len() < end + 2 + length + 2 {
                return;
            }
            let chunk = &self.raw[end + 2..end + 2 + length];
            self.text.push_str(std::str::from_utf8(chunk).unwrap());
            self.raw.drain(..end + 2 + length + 2);
        }
    }

    /// Reads until the stream has sent its position, which comes before its first event.
    pub(crate) fn find_place(&mut self) -> io::Result<()> {
        while self.last_id.is_none() {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let id = block.lines().find_map(|line| line.strip_prefix("id: "));
                self.last_id = Some(id.unwrap().to_owned());
                self.text = rest.to_owned();
            } else {
                self.fill()?;
                self.unchunk();
            }
        }
        Ok(())
    }

    /// The next event; an error when the connection ended.
    pub(crate) fn next(&mut self) -> io::Result<Event> {
        loop {
            while let Some((block, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = block.lines();
                    lines.find_map(|line| line.strip_prefix(name)).map(str::to_owned)
                };
                let (id, name, data) = (field("id: "), field("event: "), field("data: "));
                self.text = rest.to_owned();
                self.last_id = id.or(self.last_id.take());
                if let (Some(name), Some(data)) = (name, data) {
                    return Ok(Event { name, data: serde_json::from_str(&data).unwrap() });
                }
            }
            self.fill()?;
            self.unchunk();
        }
    }

    /// The texts of the next messages that are added.
    pub(crate) fn added(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        while texts.len() < count {
            let event = self.next().unwrap();
            if event.name == "session::message-added" {
                texts.push(event.text());
            }
        }
        texts
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}
