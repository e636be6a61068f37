//! Readers that take nothing while large events wait for them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Client, soon, until};
use crate::http::{new_session, user};
use crate::test_server::TestServer;

/// More than the buffers of a connection take, in messages of one megabyte.
const MESSAGES: usize = 16;

/// No other bound ends a connection in these tests, and a token holds one event.
const ONE_EVENT: &str = "limits: {stream_bytes_per_token: 1, write_stall_timeout: 1h}";

async fn fill(client: &Client, id: &str) {
    for number in 0..MESSAGES {
        let text = format!("{number} {}", "x".repeat(1 << 20));
        client.post(&format!("/v1/sessions/{id}/entries"), user(&text)).await.ok();
    }
}

/// Opens a stream and reads nothing of it.
async fn open_unread(test: &TestServer, path: &str) -> TcpStream {
    let address = test.server().http_address();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

async fn held_bytes(client: &Client) -> usize {
    let page = client.get("/metrics").await.text;
    let line = page.lines().find_map(|line| line.strip_prefix("bough_stream_bytes "));
    line.unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_reader_that_stalls_gives_way_to_one_that_reads() {
    let test = TestServer::with(ONE_EVENT).await;
    let client = test.client();
    let id = new_session(&client).await;
    fill(&client, &id).await;
    let path = format!("/v1/sessions/{id}/events?after=start");
    let mut stalled = open_unread(&test, &path).await;
    until(async || held_bytes(&client).await > 1 << 20).await;
    let mut reading = client.events(&path).await;
    for number in 0..MESSAGES {
        let event = reading.until("session::message-added").await;
        let text = event.data["payload"]["message"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{number} ")), "each of them, in order");
    }
    let mut taken = Vec::new();
    soon(stalled.read_to_end(&mut taken)).await.unwrap();
    let text = String::from_utf8_lossy(&taken);
    let last = text.rmatch_indices("\nid: ").find_map(|(at, _)| text[at + 5..].lines().next());
    let heard = text.matches("\n\nid: ").count();
    assert!(heard < MESSAGES, "it was cut off");
    // It resumes from the last event that it has whole.
    assert!(last.is_some(), "and knows where to go on");
    until(async || held_bytes(&client).await == 0).await;
}

#[tokio::test]
async fn readers_that_stall_hold_no_more_than_their_token_may() {
    const READERS: usize = 6;
    let most = 6 << 20;
    let test = TestServer::with(&format!("limits: {{stream_bytes_per_token: {most}}}")).await;
    let client = test.client();
    let mut unread = Vec::new();
    let mut ids = Vec::new();
    for _ in 0..READERS {
        let id = new_session(&client).await;
        // Half of them receive new events, half read old ones.
        let query = if unread.len() % 2 == 0 { "" } else { "?after=start" };
        let path = format!("/v1/sessions/{id}/events{query}");
        unread.push(open_unread(&test, &path).await);
        ids.push(id);
    }
    until(async || client.get("/metrics").await.text.contains("\nbough_streams 6\n")).await;
    let mut largest = 0;
    for id in &ids {
        fill(&client, id).await;
        largest = largest.max(held_bytes(&client).await);
    }
    assert!(largest > 1 << 20, "something was held: {largest}");
    assert!(largest <= most + (1 << 20), "{largest}");
}
