//! A client that keeps its connection.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Outcome;

/// One connection with one request in flight.
pub(crate) struct HttpClient {
    address: SocketAddr,
    socket: TcpStream,
    buffer: Vec<u8>,
}

impl HttpClient {
    pub(crate) async fn connect(address: SocketAddr) -> Outcome<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { address, socket, buffer: Vec::new() })
    }

    /// Sends a request, and gives the body of an answer that must be good.
    pub(crate) async fn ask(&mut self, method: &str, path: &str, body: &str) -> Outcome<String> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.socket.write_all(request.as_bytes()).await?;
        let (head, body) = self.answer().await?;
        if head.get(9..10) == Some("2") {
            return Ok(body);
        }
        Err(format!("{method} {path}: {head}\n{body}").into())
    }

    async fn answer(&mut self) -> Outcome<(String, String)> {
        self.buffer.clear();
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|part| part == b"\r\n\r\n") {
                break at;
            }
            self.fill().await?;
        };
        let head = String::from_utf8_lossy(self.buffer.get(..end).unwrap_or_default()).into_owned();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.ok_or("an answer without a length")?.parse()?;
        let start = end + 4;
        while self.buffer.len() < start + length {
            self.fill().await?;
        }
        let body = self.buffer.get(start..start + length).unwrap_or_default();
        Ok((head, String::from_utf8_lossy(body).into_owned()))
    }

    async fn fill(&mut self) -> Outcome<()> {
        if self.socket.read_buf(&mut self.buffer).await? == 0 {
            return Err("the server closed the connection".into());
        }
        Ok(())
    }

    /// Makes a session with an id of our choice.
    pub(crate) async fn make_session(&mut self, id: &str) -> Outcome<()> {
        let body = r#"{"title":"bench","metadata":{"owner":"bench"}}"#;
        self.ask("PUT", &format!("/v1/sessions/{id}"), body).await.map(drop)
    }

    /// Appends one message, durably.
    pub(crate) async fn append(&mut self, session: &str, body: &str) -> Outcome<()> {
        self.ask("POST", &format!("/v1/sessions/{session}/entries"), body).await.map(drop)
    }
}

/// The body of an append. The text is about as long as a message of `bench log`.
pub(crate) fn message(text: &str) -> String {
    format!(
        r#"{{"message":{{"role":"user","content":[{{"type":"text","text":"{text:.<200}"}}],"timestamp":1}}}}"#
    )
}
