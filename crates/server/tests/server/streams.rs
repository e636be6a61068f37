//! Messages that stream, seen by clients that apply events, over connections that break and servers that restart.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::{Client, Event, EventStream};
use crate::http::new_session;
use crate::test_server::TestServer;
use crate::viewer::Viewer;

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }
}

pub(crate) fn reply(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}],
        "stop_reason": "end", "model": "m", "provider": "p", "timestamp": 1})
}

/// Everything that was written: each revision of each message, as `GET` showed it then.
#[derive(Default)]
struct Written {
    revisions: BTreeMap<String, Vec<Value>>,
    streaming: Vec<String>,
    statuses: usize,
}

const SESSION: &str = "/v1/sessions/s";

impl Written {
    async fn act(&mut self, client: &Client, dice: &mut Dice, number: usize) {
        let names: Vec<String> = self.revisions.keys().rev().take(4).cloned().collect();
        let any = names.get(dice.roll(names.len().max(1))).cloned();
        let streaming = self.streaming.get(dice.roll(self.streaming.len().max(1))).cloned();
        let entry = match (dice.roll(14), streaming, any) {
            (0, ..) => self.append(client, number, false).await,
            (1 | 2, ..) | (_, None, None) => self.append(client, number, true).await,
            (3, _, Some(entry)) => {
                let content = json!([{"type": "text", "text": format!("edit {number}")}]);
                client.put(&path(&entry), json!({"content": content})).await.ok();
                entry
            }
            (4, Some(entry), _) => {
                let usage = json!({"input": number, "output": 1, "cost_usd": 0.5});
                let body = json!({"stop_reason": "length", "usage": usage, "model": "m-2"});
                client.post(&format!("{}/finish", path(&entry)), body).await.ok();
                self.streaming.retain(|open| *open != entry);
                entry
            }
            (_, Some(entry), _) => {
                let delta = self.delta(&entry, dice, number);
                client.post(&format!("{}/delta", path(&entry)), delta).await.ok();
                entry
            }
            (_, None, Some(_)) => self.append(client, number, true).await,
        };
        let now = client.get(&path(&entry)).await.ok()["entry"].clone();
        let revisions = self.revisions.entry(entry).or_default();
        assert_eq!(now["revision"], revisions.len() as u64);
        revisions.push(now["message"].clone());
    }

    async fn append(&mut self, client: &Client, number: usize, stream: bool) -> String {
        let entry = format!("e{number:04}");
        let body = json!({"entry_id": entry, "message": reply("a"), "stream": stream});
        client.post(&format!("{SESSION}/entries"), body).await.ok();
        if stream {
            self.streaming.push(entry.clone());
        }
        entry
    }

    /// More text for one of the blocks that are there, or a block of any kind.
    fn delta(&self, entry: &str, dice: &mut Dice, number: usize) -> Value {
        let blocks = self.revisions[entry].last().unwrap()["content"].as_array().unwrap();
        let block = dice.roll(blocks.len() + 1);
        let text = format!("{number} \"\n");
        if block < blocks.len() {
            return json!({"block": block, "text": text});
        }
        match dice.roll(3) {
            0 => json!({"block": block, "text": text, "kind": "thinking"}),
            1 => json!({"block": block, "text": "{\"a\":", "kind": "tool_arguments",
                "function_call_id": format!("c{number}"), "function_id": "f"}),
            _ => json!({"block": block, "text": text}),
        }
    }

    /// Appends a marker to the feed after everything so far.
    async fn mark(&mut self, client: &Client) -> String {
        self.statuses += 1;
        let reason = self.statuses.to_string();
        let body = json!({"status": "error", "reason": reason});
        client.put(&format!("{SESSION}/status"), json!({"status": "working"})).await.ok();
        client.put(&format!("{SESSION}/status"), body).await.ok();
        reason
    }
}

fn path(entry: &str) -> String {
    format!("{SESSION}/entries/{entry}")
}

/// A reader that keeps the messages of the session, over broken connections.
struct Reader {
    name: &'static str,
    path: &'static str,
    query: &'static str,
    last: Option<String>,
    viewer: Viewer,
    names: BTreeMap<String, usize>,
}

impl Reader {
    fn new(name: &'static str, path: &'static str, query: &'static str) -> Self {
        let (viewer, names) = (Viewer::default(), BTreeMap::new());
        Self { name, path, query, last: None, viewer, names }
    }

    async fn connect(&self, client: &Client) -> EventStream {
        match &self.last {
            Some(last) => client.with("last-event-id", last).events(self.path).await,
            None => client.events(&format!("{}{}", self.path, self.query)).await,
        }
    }

    /// Reads up to a marker, and drops the connection after every few events.
    async fn read_to(
        &mut self,
        client: &Client,
        stream: EventStream,
        dice: &mut Dice,
        mark: &str,
        written: &Written,
    ) {
        let mut stream = stream;
        loop {
            for _ in 0..=dice.roll(6) {
                let event = stream.next().await.unwrap();
                assert_ne!(event.name, "gap", "{}: {event:?}", self.name);
                self.take(&event, written);
                if event.data["payload"]["status_reason"] == mark {
                    return;
                }
            }
            drop(stream);
            stream = self.connect(client).await;
        }
    }

    fn take(&mut self, event: &Event, written: &Written) {
        *self.names.entry(event.name.clone()).or_default() += 1;
        if event.id.is_some() {
            self.last.clone_from(&event.id);
        }
        let Some(entry) = self.viewer.apply(event) else { return };
        let kept = &self.viewer.messages[&entry];
        let as_was = &written.revisions[&entry][usize::try_from(kept.revision).unwrap()];
        // A snapshot before `message.finished` may already show the end.
        assert_eq!(kept.message, *as_was, "{}: {entry} after {event:?}", self.name);
    }

    /// Checks that all messages of the reader are current.
    fn check(&self, written: &Written, has_all: bool) {
        for (entry, revisions) in &written.revisions {
            let Some(kept) = self.viewer.messages.get(entry) else {
                assert!(!has_all, "{}: {entry} was never told", self.name);
                continue;
            };
            assert_eq!(Some(&kept.message), revisions.last(), "{}: {entry}", self.name);
            assert_eq!(kept.revision, revisions.len() as u64 - 1, "{}: {entry}", self.name);
        }
    }
}

/// Property: a reader that applies the events has each message as `GET` shows it at that revision.
async fn viewers_have_what_get_shows(config: &str, seed: u64) {
    let mut test = TestServer::with(config).await;
    let mut client = test.client();
    let (mut dice, mut written) = (Dice(seed), Written::default());
    client.put(SESSION, json!({})).await.ok();
    let mut readers = vec![
        Reader::new("from the start", "/v1/sessions/s/events", "?after=start"),
        Reader::new("all sessions", "/v1/events", ""),
    ];
    for number in 0..12 {
        if number == 3 {
            readers.push(Reader::new("midway", "/v1/sessions/s/events", ""));
            readers.push(Reader::new("with a snapshot", "/v1/sessions/s/events", "?snapshot=true"));
        }
        let mut streams = Vec::new();
        for reader in &readers {
            streams.push(reader.connect(&client).await);
        }
        for step in 0..12 {
            written.act(&client, &mut dice, number * 100 + step).await;
        }
        let mark = written.mark(&client).await;
        for (reader, stream) in readers.iter_mut().zip(streams) {
            reader.read_to(&client, stream, &mut dice, &mark, &written).await;
            reader.check(&written, reader.name == "from the start");
        }
        if config.is_empty() && dice.roll(3) == 0 {
            test = TestServer::again(test.stop().await).await;
            client = test.client();
        }
    }
    for reader in &readers {
        for name in ["message.delta", "message.finished"] {
            assert!(reader.names.contains_key(name), "{}: {:?}", reader.name, reader.names);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_have_what_get_shows_over_cuts_and_restarts() {
    viewers_have_what_get_shows("", 0x9e37_79b9_7f4a_7c15).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viewers_have_what_get_shows_from_memory() {
    viewers_have_what_get_shows("adapter: {name: memory}", 10_781_548_708).await;
}

/// Reads a stream to its next mark.
async fn names_until_mark(stream: &mut EventStream, mark: &str) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let event = stream.next().await.unwrap();
        if event.data["payload"]["status_reason"] == mark {
            return events;
        }
        if event.name != "session::status-changed" {
            events.push(event);
        }
    }
}

async fn stream_a_reply(client: &Client, deltas: usize) {
    let body = json!({"entry_id": "r", "message": reply(""), "stream": true});
    client.post(&format!("{SESSION}/entries"), body).await.ok();
    for number in 0..deltas {
        let delta = json!({"block": 0, "text": format!("{number} ")});
        client.post("/v1/sessions/s/entries/r/delta", delta).await.ok();
    }
}

#[tokio::test]
async fn a_reader_who_wants_no_deltas_gets_a_streamed_message_once_and_whole() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    client.put(SESSION, json!({})).await.ok();
    let mut stream = client.events("/v1/sessions/s/events?deltas=off").await;
    stream_a_reply(&client, 5).await;
    client.post("/v1/sessions/s/entries/r/finish", json!({})).await.ok();
    let mark = Written::default().mark(&client).await;
    let events = names_until_mark(&mut stream, &mark).await;
    let [only] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(only.name, "message.snapshot");
    assert_eq!(only.data["message"]["content"][0]["text"], "0 1 2 3 4 ");
    let refused = client.get("/v1/events?deltas=some").await;
    assert_eq!(refused.problem(400), "http/bad_request");
}

/// Of deltas that come closely together, readers of the session and of all sessions get a few events.
#[tokio::test]
async fn a_delta_costs_little_more_than_its_text() {
    const DELTAS: usize = 400;
    let test = TestServer::in_memory().await;
    let client = test.client();
    let session = new_session(&client).await;
    let entries = format!("/v1/sessions/{session}/entries");
    let body = json!({"message": reply(""), "stream": true});
    let entry = client.post(&entries, body).await.ok()["entry_id"].as_str().unwrap().to_owned();
    let of_session = format!("/v1/sessions/{session}/events?after=start");
    let mut streams =
        [client.events(&of_session).await, client.events("/v1/events?after=start").await];
    let mut before = [0, 0];
    for (stream, before) in streams.iter_mut().zip(&mut before) {
        stream.until("message.started").await;
        *before = stream.bytes_read();
    }
    let line = json!({"block": 0, "text": "sixteen letters."}).to_string();
    let lines = format!("{line}\n").repeat(DELTAS);
    let writer = client.with("content-type", "application/x-ndjson");
    let path = format!("{entries}/{entry}/deltas");
    assert_eq!(writer.send("POST", &path, Some(lines)).await.status, 200);
    for (stream, before) in streams.iter_mut().zip(before) {
        let (mut text, mut events) = (0, 0);
        while text < DELTAS * 16 {
            text += stream.until("message.delta").await.data["text"].as_str().unwrap().len();
            events += 1;
        }
        let bytes = stream.bytes_read() - before - text;
        assert!(bytes <= DELTAS * 200, "{bytes} bytes for {DELTAS} deltas");
        assert!(events < DELTAS / 2, "{events} events for {DELTAS} deltas");
    }
}

#[tokio::test]
async fn a_reader_names_the_events_that_it_wants() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    client.put(SESSION, json!({})).await.ok();
    let status = "session::status-changed";
    let open = |types: &str| {
        let (client, path) = (client.clone(), format!("{SESSION}/events?types={types},{status}"));
        async move { client.events(&path).await }
    };
    let mut ends = open("message.finished").await;
    let mut updates = open("session::message-updated").await;
    let mut begins = open("session::message-added").await;
    stream_a_reply(&client, 1).await;
    client.post("/v1/sessions/s/entries/r/finish", json!({})).await.ok();
    let mark = Written::default().mark(&client).await;
    for (stream, expected) in [
        (&mut ends, &["message.finished"][..]),
        (&mut updates, &["message.delta", "message.finished"]),
        (&mut begins, &["message.started"]),
    ] {
        let events = names_until_mark(stream, &mark).await;
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(names, expected);
    }
}

/// A report that is taken counts for ever, and an error of an unknown kind is named by its place.
#[tokio::test]
async fn the_end_of_a_message_is_read_strictly() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    let message = json!({"role": "assistant", "content": [], "usage": {"input": 7}});
    let entry = json!({"create": true, "entry_id": "r", "stream": true, "message": message});
    client.post("/v1/sessions/s/entries", entry).await.ok();
    let usage = client.get("/v1/sessions/s/usage").await.ok();
    assert_eq!(
        (&usage["session"], &usage["branch"]["total"]["input"]),
        (&usage["branch"], &json!(0))
    );
    let finish = "/v1/sessions/s/entries/r/finish";
    let refused = client.post(finish, json!({"usage": {"input": 5, "outputs": 3}})).await;
    assert_eq!(refused.problem(400), "http/unknown_member");
    assert!(refused.text.contains("did you mean `output`?"), "{}", refused.text);
    for (error, place) in [
        (json!({"message": "m", "kind": "overloaded_error"}), "/error/kind"),
        (json!({"message": 5}), "/error/message"),
        (json!({}), "/error/message"),
        (json!(5), "/error"),
    ] {
        let refused = client.post(finish, json!({ "error": error })).await;
        assert_eq!(refused.problem(400), "session/malformed_request", "{error}");
        assert_eq!(refused.json()["errors"][0]["path"], place, "{}", refused.text);
    }
    client.post(finish, json!({"usage": {"input": 5}})).await.ok();
    let usage = client.get("/v1/sessions/s/usage").await.ok();
    assert_eq!(usage["session"], usage["branch"]);
    assert_eq!(usage["session"]["total"]["input"], 5);
}

#[tokio::test]
async fn a_finished_message_takes_no_more() {
    let test = TestServer::with("").await;
    let client = test.client();
    client.put(SESSION, json!({})).await.ok();
    stream_a_reply(&client, 2).await;
    let usage = json!({"input": 10, "output": 5, "cost_usd": 0.25});
    let before = client.get("/v1/sessions/s/usage").await.ok();
    let finish = json!({"usage": usage, "error": {"message": "cut", "kind": "transient"}});
    let done = client.post("/v1/sessions/s/entries/r/finish", finish).await.ok();
    assert_eq!((&done["revision"], &done["stop_reason"]), (&json!(3), &json!("error")));
    let after = client.get("/v1/sessions/s/usage").await.ok();
    assert_ne!(before, after, "usage counts from the end on");
    let test = TestServer::again(test.stop().await).await;
    let client = test.client();
    for what in ["delta", "finish"] {
        let body = if what == "delta" { json!({"block": 0, "text": "x"}) } else { json!({}) };
        let answer = client.post(&format!("{}/{what}", path("r")), body).await;
        assert_eq!(answer.problem(409), "session/not_streaming");
        assert_eq!(answer.json()["data"]["revision"], 3, "{answer:?}");
    }
    let message = client.get(&path("r")).await.ok()["entry"]["message"].clone();
    assert_eq!(message["error_message"], "cut");
    assert_eq!(message["usage"], usage);
}

/// A message says why it ended once it has, in events as in what `GET` shows. The text of a block may look like the member.
#[tokio::test]
async fn a_message_that_streams_does_not_say_why_it_ended() {
    let test = TestServer::in_memory().await;
    let client = test.client();
    client.put("/v1/sessions/s", json!({})).await.ok();
    let body = json!({"entry_id": "r", "message": reply("First."), "stream": true});
    client.post("/v1/sessions/s/entries", body).await.ok();
    let mut events = client.events("/v1/sessions/s/events?after=start").await;
    let started = events.until("message.started").await.data["message"].clone();
    assert_eq!((&started["model"], started.get("stop_reason")), (&json!("m"), None));
    for text in [r#","stop_reason":"end""#.to_owned(), "long ".repeat(40_000)] {
        let content = json!([{"type": "text", "text": text}]);
        client.put(&path("r"), json!({"content": content})).await.ok();
        let shown = client.get(&path("r")).await.ok()["entry"]["message"].clone();
        assert_eq!((&shown["content"], shown.get("stop_reason")), (&content, None));
        assert_eq!(events.until("message.snapshot").await.data["message"], shown);
    }
    client.post(&format!("{}/finish", path("r")), json!({})).await.ok();
    assert_eq!(events.until("message.finished").await.data["stop_reason"], "end");
    let shown = client.get(&path("r")).await.ok()["entry"]["message"].clone();
    assert_eq!(shown["stop_reason"], "end");
}
