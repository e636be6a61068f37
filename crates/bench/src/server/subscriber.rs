//! Those who follow what happens: readers of server-sent events, and functions that are bound on the bus.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::bus::BusClient;
use crate::Outcome;

/// Where each event's number is in its text, for those who want to know when it came.
pub(crate) const MARK: &[u8] = b"mark-";

/// Live streams that are read until this is dropped.
pub(crate) struct Subscribers {
    _reading: JoinSet<()>,
    heard: Arc<Heard>,
}

/// What came, at all subscribers together.
#[derive(Default)]
struct Heard {
    events: AtomicUsize,
    /// How many of them heard something.
    who: AtomicUsize,
}

/// Is told of each numbered event when it comes.
pub(crate) type Hear = Arc<dyn Fn(usize, Instant) + Send + Sync>;

impl Subscribers {
    /// Opens a stream for each path, and reads them all.
    pub(crate) async fn open(
        address: SocketAddr,
        paths: impl Iterator<Item = String>,
        hear: Option<Hear>,
    ) -> Outcome<Self> {
        let mut reading = JoinSet::new();
        let heard = Arc::<Heard>::default();
        for path in paths {
            let mut socket = TcpStream::connect(address).await?;
            let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
            socket.write_all(request.as_bytes()).await?;
            let mut first = [0; 4096];
            let read = socket.read(&mut first).await?;
            if !first.get(..read).is_some_and(|bytes| bytes.starts_with(b"HTTP/1.1 200")) {
                return Err("a stream was refused".into());
            }
            reading.spawn(read_stream(socket, heard.clone(), hear.clone()));
        }
        Ok(Self { _reading: reading, heard })
    }

    /// Binds a function of a worker of its own to the messages of each session.
    pub(crate) async fn bind<'a>(
        address: SocketAddr,
        sessions: impl Iterator<Item = &'a String>,
    ) -> Outcome<Self> {
        let mut reading = JoinSet::new();
        let heard = Arc::<Heard>::default();
        for (number, session) in sessions.enumerate() {
            let mut client = BusClient::connect(address).await?;
            client.follow(&format!("bench::hear-{number}"), session).await?;
            reading.spawn(answer_calls(client, heard.clone()));
        }
        Ok(Self { _reading: reading, heard })
    }

    /// How many events came, at all of them together.
    pub(crate) fn events(&self) -> usize {
        self.heard.events.load(Ordering::Relaxed)
    }

    /// How many of them heard something.
    pub(crate) fn who_heard(&self) -> usize {
        self.heard.who.load(Ordering::Relaxed)
    }
}

impl Heard {
    /// Counts what one subscriber heard that had heard `before` events.
    fn count(&self, before: usize, more: usize) {
        if before == 0 && more > 0 {
            self.who.fetch_add(1, Ordering::Relaxed);
        }
        self.events.fetch_add(more, Ordering::Relaxed);
    }
}

async fn answer_calls(mut client: BusClient, heard: Arc<Heard>) {
    let mut before = 0;
    while client.answer_call().await.is_ok() {
        heard.count(before, 1);
        before += 1;
    }
}

async fn read_stream(mut socket: TcpStream, heard: Arc<Heard>, hear: Option<Hear>) {
    let (mut buffer, mut before) = (Vec::<u8>::with_capacity(64 * 1024), 0);
    while socket.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        let now = Instant::now();
        // Whole events only; the rest waits for its end.
        let Some(end) = buffer.windows(2).rposition(|pair| pair == b"\n\n") else { continue };
        let whole = buffer.get(..end).unwrap_or_default();
        let count = whole.windows(7).filter(|part| *part == b"\nevent:").count();
        heard.count(before, count);
        before += count;
        if let Some(hear) = &hear {
            for number in numbers(whole) {
                hear(number, now);
            }
        }
        buffer.drain(..end);
    }
}

/// The numbers behind each mark.
fn numbers(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let places = bytes.windows(MARK.len()).enumerate().filter(|(_, part)| *part == MARK);
    places.filter_map(|(at, _)| {
        let digits = bytes.get(at + MARK.len()..)?;
        let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
        std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
    })
}
