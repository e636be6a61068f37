//! Readers of server-sent events.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Outcome;

/// Where each event's number is in its text, for those who want to know when it came.
pub(crate) const MARK: &[u8] = b"mark-";

/// Live streams that are read until this is dropped.
pub(crate) struct Subscribers {
    _reading: JoinSet<()>,
    events: Arc<AtomicUsize>,
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
        let events = Arc::new(AtomicUsize::new(0));
        for path in paths {
            let mut socket = TcpStream::connect(address).await?;
            let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
            socket.write_all(request.as_bytes()).await?;
            let mut first = [0; 4096];
            let read = socket.read(&mut first).await?;
            if !first.get(..read).is_some_and(|bytes| bytes.starts_with(b"HTTP/1.1 200")) {
                return Err("a stream was refused".into());
            }
            reading.spawn(read_all(socket, events.clone(), hear.clone()));
        }
        Ok(Self { _reading: reading, events })
    }

    /// How many events came, at all of them together.
    pub(crate) fn events(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }
}

async fn read_all(mut socket: TcpStream, events: Arc<AtomicUsize>, hear: Option<Hear>) {
    let mut buffer: Vec<u8> = Vec::with_capacity(64 * 1024);
    while socket.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
        let now = Instant::now();
        // Whole events only; the rest waits for its end.
        let Some(end) = buffer.windows(2).rposition(|pair| pair == b"\n\n") else { continue };
        let whole = buffer.get(..end).unwrap_or_default();
        let count = whole.windows(7).filter(|part| *part == b"\nevent:").count();
        events.fetch_add(count, Ordering::Relaxed);
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
