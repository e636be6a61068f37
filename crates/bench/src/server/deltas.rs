//! What a viewer of a reply that streams is sent, beside the text of the reply.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::HttpClient;
use super::load::client_runtime;
use super::place::Place;
use crate::measure::as_f64;
use crate::report::Row;
use crate::{Options, Outcome};

const DELTAS: usize = 4000;
/// What each delta adds.
const TOKEN: &str = "token ";
/// What a delta may cost a viewer above its text, in bytes.
const BOUND: f64 = 200.0;

/// How the deltas are sent to the server.
#[derive(Clone, Copy)]
enum Form {
    /// One request each.
    Apart,
    /// Lines of one request.
    Together,
}

pub(crate) fn bytes(options: &Options) -> Outcome<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, form) in [("a request each", Form::Apart), ("one request", Form::Together)] {
        eprintln!("{DELTAS} deltas in {name}");
        let place = Place::start(&options.folder)?;
        let sent = client_runtime()?.block_on(stream(&place, form))?;
        let above = (as_f64(sent) - as_f64(DELTAS * TOKEN.len())) / as_f64(DELTAS);
        let what = format!("deltas in {name}: sent to a viewer, above the text");
        let row = Row::new(what, "bytes/delta", above).beside("bound", BOUND);
        rows.push(row.beside("text", as_f64(TOKEN.len())));
    }
    Ok(rows)
}

/// Streams a reply, and counts what a viewer gets, headers and all.
async fn stream(place: &Place, form: Form) -> Outcome<usize> {
    let mut client = HttpClient::connect(place.http).await?;
    client.make_session("s").await?;
    let mut viewer = TcpStream::connect(place.http).await?;
    let head = format!("GET /v1/sessions/s/events HTTP/1.1\r\nhost: {}\r\n\r\n", place.http);
    viewer.write_all(head.as_bytes()).await?;
    viewer.readable().await?;
    let viewing = tokio::spawn(count_until_finished(viewer));
    let reply = r#"{"entry_id":"e","stream":true,"message":{"role":"assistant","content":[{"type":"text","text":""}]}}"#;
    client.append("s", reply).await?;
    match form {
        Form::Apart => {
            let delta = format!(r#"{{"block":0,"text":"{TOKEN}"}}"#);
            for _ in 0..DELTAS {
                client.ask("POST", "/v1/sessions/s/entries/e/delta", &delta).await?;
            }
        }
        Form::Together => send_together(place).await?,
    }
    let finish = r#"{"stop_reason":"end"}"#;
    client.ask("POST", "/v1/sessions/s/entries/e/finish", finish).await?;
    viewing.await?
}

/// Sends all deltas as lines of one body, and waits for the last acknowledgement.
async fn send_together(place: &Place) -> Outcome<()> {
    let line = format!("{{\"block\":0,\"text\":\"{TOKEN}\"}}\n");
    let body = line.repeat(DELTAS);
    let mut socket = TcpStream::connect(place.http).await?;
    let head = format!(
        "POST /v1/sessions/s/entries/e/deltas HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\
         content-type: application/x-ndjson\r\ncontent-length: {}\r\n\r\n",
        place.http,
        body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err("the deltas were refused".into()) }
}

async fn count_until_finished(mut viewer: TcpStream) -> Outcome<usize> {
    const END: &[u8] = b"event: message.finished";
    let mut bytes = Vec::new();
    loop {
        if viewer.read_buf(&mut bytes).await? == 0 {
            return Err("the stream ended before the reply did".into());
        }
        let tail = bytes.len().saturating_sub(64 * 1024);
        let newest = bytes.get(tail..).unwrap_or_default();
        if newest.windows(END.len()).any(|part| part == END) {
            return Ok(bytes.len());
        }
    }
}
