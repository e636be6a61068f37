//! What readers cost that stop reading while large messages come.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::http::{HttpClient, message};
use super::load::client_runtime;
use super::place::Place;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

const READERS: usize = 64;
const MESSAGES: usize = 6;
const MESSAGE_BYTES: usize = 7_500_000;
/// What the readers may cost together.
const BOUND_MIB: f64 = 100.0;
/// How long the server is given to fill every buffer that it fills. Shorter than a stalled reader is endured.
const SETTLING: Duration = Duration::from_secs(5);

pub(crate) fn memory(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, after) in [("what happens", false), ("what happened", true)] {
        eprintln!("{READERS} readers that stall in {what}");
        let cost = measure(options, after)? - measure_without(options)?;
        let name = format!("{READERS} readers of {what}, stalled at 7.5 MB messages: memory");
        let text = as_f64(MESSAGE_BYTES) / as_f64(1 << 20);
        rows.push(Row::new(name, "MiB", cost).beside("bound", BOUND_MIB).beside("text", text));
    }
    Ok(rows)
}

/// The server's memory with the readers.
fn measure(options: &Options, after: bool) -> Outcome<f64> {
    let place = Place::start(&options.folder)?;
    client_runtime()?.block_on(async {
        HttpClient::connect(place.http).await?.make_session("s").await?;
        if after {
            append_all(&place).await?;
            let _stalled = open_unread(&place, "?after=start").await?;
            settled(&place).await
        } else {
            let _stalled = open_unread(&place, "").await?;
            append_all(&place).await?;
            settled(&place).await
        }
    })
}

/// Its memory when the same was appended and nobody reads.
fn measure_without(options: &Options) -> Outcome<f64> {
    let place = Place::start(&options.folder)?;
    client_runtime()?.block_on(async {
        HttpClient::connect(place.http).await?.make_session("s").await?;
        append_all(&place).await?;
        settled(&place).await
    })
}

async fn append_all(place: &Place) -> Outcome<()> {
    let mut client = HttpClient::connect(place.http).await?;
    let body = message(&"x".repeat(MESSAGE_BYTES));
    for _ in 0..MESSAGES {
        client.append("s", &body).await?;
    }
    Ok(())
}

/// Opens the streams, and reads nothing.
async fn open_unread(place: &Place, query: &str) -> Outcome<Vec<TcpStream>> {
    let mut streams = Vec::new();
    for _ in 0..READERS {
        let mut stream = TcpStream::connect(place.http).await?;
        let head = format!("GET /v1/sessions/s/events{query} HTTP/1.1\r\nhost: {}", place.http);
        stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await?;
        streams.push(stream);
    }
    // The last of them is served once its head has come.
    for stream in &streams {
        stream.readable().await?;
    }
    Ok(streams)
}

/// The most memory that the server has held while it filled its buffers.
async fn settled(place: &Place) -> Outcome<f64> {
    tokio::time::sleep(SETTLING).await;
    place.most_memory()
}
