//! Minimal clients for HTTP, server-sent events and the bus.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// How long anything may take before a test fails: long enough for a machine that does other work beside it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for something, but not for ever.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happened for too long")
}

/// Polls until a condition holds, with a time limit.
pub(crate) async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    soon(async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// A client with the headers that it always sends.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    headers: Vec<(String, String)>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body of a successful answer.
    pub(crate) fn ok(self) -> Value {
        assert!((200..300).contains(&self.status), "{self:?}");
        self.json()
    }

    /// The code of an answer that must be a problem.
    pub(crate) fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let body = self.json();
        assert_eq!(body["status"], status);
        assert!(body["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{body}");
        body["code"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { address, headers: vec![("host".to_owned(), address.to_string())] }
    }

    /// The same client with one more header, in place of one with the same name.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.retain(|(known, _)| known != name);
        client.headers.push((name.to_owned(), value.to_owned()));
        client
    }

    pub(crate) fn with_token(&self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.send("POST", path, Some(body.to_string())).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.send("PUT", path, Some(body.to_string())).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send("DELETE", path, None).await
    }

    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<String>) -> Answer {
        let mut stream = self.open(method, path, body.as_deref(), "close").await;
        let mut bytes = Vec::new();
        soon(stream.read_to_end(&mut bytes)).await.unwrap();
        read_answer(&bytes)
    }

    /// Opens a stream of server-sent events.
    pub(crate) async fn events(&self, path: &str) -> EventStream {
        let stream = self.open("GET", path, None, "keep-alive").await;
        let mut events =
            EventStream { stream, text: String::new(), raw: Vec::new(), bytes_read: 0 };
        let head = events.head().await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        events
    }

    /// Sends the beginning of a body, and waits until the answer has begun. Then the connection breaks.
    pub(crate) async fn broken_post(&self, path: &str, part: &str, until: &str) {
        let headers = self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
        let (headers, length) = (headers.collect::<String>(), part.len() + 1);
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request =
            format!("POST {path} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{part}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let (mut heard, mut piece) = (String::new(), [0; 4096]);
        while !heard.contains(until) {
            let read = soon(stream.read(&mut piece)).await.unwrap();
            assert!(read > 0, "the answer ended: {heard}");
            heard.push_str(&String::from_utf8_lossy(&piece[..read]));
        }
    }

    /// Opens a request whose body is sent piece by piece, and reads the beginning of its answer.
    pub(crate) async fn deltas(&self, path: &str) -> EventStream {
        let client = self.with("transfer-encoding", "chunked");
        let client = client.with("content-type", "application/x-ndjson");
        let stream = client.open("POST", path, None, "keep-alive").await;
        let mut answers =
            EventStream { stream, text: String::new(), raw: Vec::new(), bytes_read: 0 };
        let head = answers.head().await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        answers
    }

    async fn open(
        &self,
        method: &str,
        path: &str,
        body: Option<&str>,
        connection: &str,
    ) -> TcpStream {
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: {connection}\r\n");
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = body {
            if !self.headers.iter().any(|(name, _)| name == "content-type") {
                head.push_str("content-type: application/json\r\n");
            }
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        if let Some(body) = body {
            // A server that refuses early may close before it has read everything.
            let _ = stream.write_all(body.as_bytes()).await.is_ok();
        }
        stream
    }
}

fn read_answer(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let is_chunked =
        headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let text = if is_chunked { unchunk(body).0 } else { body.to_owned() };
    Answer { status, headers, text }
}

/// The content of the whole chunks of a body, and how many bytes they took.
fn unchunk(body: &str) -> (String, usize) {
    let (mut content, mut at) = (String::new(), 0);
    while let Some((size, rest)) = body[at..].split_once("\r\n") {
        let Ok(length) = usize::from_str_radix(size, 16) else { break };
        if length == 0 || rest.len() < length + 2 {
            break;
        }
        content.push_str(&rest[..length]);
        at += size.len() + 2 + length + 2;
    }
    (content, at)
}

/// A stream of server-sent events that is being read.
pub(crate) struct EventStream {
    stream: TcpStream,
    text: String,
    raw: Vec<u8>,
    bytes_read: usize,
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl EventStream {
    async fn head(&mut self) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.raw).into_owned();
            if let Some(end) = text.find("\r\n\r\n") {
                self.raw.drain(..end + 4);
                return text;
            }
            assert!(self.fill().await, "the stream ended before it began: {text}");
        }
    }

    async fn fill(&mut self) -> bool {
        let mut piece = [0; 16 * 1024];
        let read = soon(self.stream.read(&mut piece)).await.unwrap_or(0);
        self.raw.extend_from_slice(&piece[..read]);
        self.bytes_read += read;
        read > 0
    }

    /// How many bytes came so far, headers and all.
    pub(crate) fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    /// The next event that has data; `None` when the stream ended.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = read_block(&self.block().await?) {
                return Some(event);
            }
        }
    }

    /// Waits for the next block without an event: the greeting, or a heartbeat.
    pub(crate) async fn sign_of_life(&mut self) {
        assert_eq!(self.line().await.as_deref(), Some(": ok"));
    }

    /// The next line; `None` when the stream ended.
    pub(crate) async fn line(&mut self) -> Option<String> {
        while !self.text.contains('\n') {
            if !self.more().await {
                return None;
            }
        }
        let (line, rest) = self.text.split_once('\n')?;
        let (line, rest) = (line.to_owned(), rest.to_owned());
        self.text = rest;
        Some(line)
    }

    /// Sends a piece of the request's body; an empty one ends it.
    pub(crate) async fn send(&mut self, piece: &str) {
        let chunk = format!("{:x}\r\n{piece}\r\n", piece.len());
        self.stream.write_all(chunk.as_bytes()).await.unwrap();
    }

    /// The next lines up to an empty one; `None` when the stream ended.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let block = block.to_owned();
                self.text = rest.to_owned();
                return Some(block);
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Reads on; `false` when the stream ended.
    async fn more(&mut self) -> bool {
        let raw = String::from_utf8_lossy(&self.raw).into_owned();
        let (content, taken) = unchunk(&raw);
        if raw.starts_with("0\r\n") {
            // The last piece. The connection is kept for other requests.
            return false;
        }
        if taken == 0 {
            return self.fill().await;
        }
        self.text.push_str(&content);
        self.raw.drain(..taken);
        true
    }

    /// The next event with this name; others before it are skipped.
    pub(crate) async fn until(&mut self, name: &str) -> Event {
        // Signs of life come for ever.
        soon(async {
            loop {
                let event = self.next().await.expect("the stream ended");
                if event.name == name {
                    return event;
                }
            }
        })
        .await
    }

    /// The next event, which must have this name.
    pub(crate) async fn expect(&mut self, name: &str) -> Event {
        let event = self.next().await.expect("the stream ended");
        assert_eq!(event.name, name, "{event:?}");
        event
    }
}

fn read_block(block: &str) -> Option<Event> {
    let field = |name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .map(str::to_owned)
    };
    let data = field("data")?;
    Some(Event {
        id: field("id"),
        name: field("event").unwrap_or_default(),
        data: serde_json::from_str(&data).unwrap(),
    })
}

/// A worker on the bus.
pub(crate) struct Worker {
    socket: WebSocketStream<TcpStream>,
    pub(crate) capabilities: Option<String>,
    waiting: Vec<Value>,
    next_id: u64,
}

impl Worker {
    pub(crate) async fn connect(address: SocketAddr, token: Option<&str>) -> Self {
        Self::try_connect(address, token, None).await.unwrap()
    }

    /// Connects, or gives the status of the refusal.
    pub(crate) async fn try_connect(
        address: SocketAddr,
        token: Option<&str>,
        origin: Option<&str>,
    ) -> Result<Self, u16> {
        use tokio_tungstenite::tungstenite::Error;
        use tokio_tungstenite::tungstenite::client::IntoClientRequest;
        let mut request = format!("ws://{address}/").into_client_request().unwrap();
        let headers = request.headers_mut();
        if let Some(token) = token {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        if let Some(origin) = origin {
            headers.insert("origin", origin.parse().unwrap());
        }
        let stream = TcpStream::connect(address).await.unwrap();
        let connected = soon(tokio_tungstenite::client_async(request, stream)).await;
        let (socket, response) = match connected {
            Ok(connected) => connected,
            Err(Error::Http(response)) => return Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        };
        let capabilities = response.headers().get("x-iii-capabilities");
        let capabilities = capabilities.map(|value| value.to_str().unwrap().to_owned());
        let mut worker = Self { socket, capabilities, waiting: Vec::new(), next_id: 0 };
        let hello = worker.receive().await;
        assert_eq!(hello["type"], "workerregistered");
        Ok(worker)
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        loop {
            match soon(self.socket.next()).await.expect("the bus closed").unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Why the bus closed the connection, which it must do; frames before that are skipped.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            let message = soon(self.socket.next()).await.expect("the bus closed without a word");
            if let Message::Close(frame) = message.expect("a reason came before the end") {
                let frame = frame.expect("a reason");
                return (frame.code.into(), frame.reason.to_string());
            }
        }
    }

    /// Asks the bus to close the connection.
    pub(crate) async fn close(&mut self, code: u16) {
        use tokio_tungstenite::tungstenite::protocol::CloseFrame;
        let frame = CloseFrame { code: code.into(), reason: "".into() };
        soon(self.socket.send(Message::Close(Some(frame)))).await.unwrap();
    }

    /// Whether the bus ends the connection without further frames.
    pub(crate) async fn is_over(&mut self) -> bool {
        !matches!(soon(self.socket.next()).await, Some(Ok(_)))
    }

    /// The next frame that fits; others wait.
    pub(crate) async fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.iter().position(&fits) {
            return self.waiting.remove(at);
        }
        loop {
            let frame = self.receive().await;
            if fits(&frame) {
                return frame;
            }
            self.waiting.push(frame);
        }
    }

    /// The next call of a function that this worker hosts.
    pub(crate) async fn called(&mut self, function: &str) -> Value {
        self.next(|frame| frame["type"] == "invokefunction" && frame["function_id"] == function)
            .await
    }

    /// Answers a call.
    pub(crate) async fn answer(&mut self, call: &Value, result: Value) {
        self.send(json!({
            "type": "invocationresult", "invocation_id": call["invocation_id"],
            "function_id": call["function_id"], "result": result,
        }))
        .await;
    }

    /// Calls a function and waits for the frame that answers.
    pub(crate) async fn call_frame(&mut self, function: &str, data: Value) -> Value {
        self.next_id += 1;
        let id = format!("00000000-0000-0000-0000-{:012}", self.next_id);
        self.send(json!({"type": "invokefunction", "invocation_id": id, "function_id": function, "data": data}))
            .await;
        self.next(|frame| {
            frame["type"] == "invocationresult" && frame["invocation_id"] == id.as_str()
        })
        .await
    }

    /// Calls a function, which must succeed.
    pub(crate) async fn call(&mut self, function: &str, data: Value) -> Value {
        let frame = self.call_frame(function, data).await;
        assert!(frame.get("error").is_none(), "{frame}");
        frame["result"].clone()
    }

    /// Calls a function, which must fail; its code and message.
    pub(crate) async fn refused(&mut self, function: &str, data: Value) -> (String, String) {
        let frame = self.call_frame(function, data).await;
        let error = &frame["error"];
        assert!(error.is_object(), "{frame}");
        assert_eq!(error.get("stacktrace"), None, "it is for the log");
        (error["code"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
    }

    pub(crate) async fn host(&mut self, function: &str) {
        self.send(json!({"type": "registerfunction", "id": function})).await;
    }

    pub(crate) async fn bind(
        &mut self,
        id: &str,
        trigger_type: &str,
        function: &str,
        config: Value,
    ) {
        self.send(json!({
            "type": "registertrigger", "id": id, "trigger_type": trigger_type,
            "function_id": function, "config": config,
        }))
        .await;
    }
}
