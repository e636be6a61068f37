//! Entries that were redacted in the log, as `docs/FORMAT.md` reserves it: no read and no search has their content again.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{OsDisk, Platform, SystemClock};
use bough_record::Envelope;
use bough_search::NativeIndex;
use bough_service::{EventFilter, EventKind, FeedCursor, FeedItem, Scope, Service, StartAt};
use bough_session::{NewRecord, SessionId, codec};
use bough_store::{NativeOptions, NativeStore, Store, StoreError, StoreExt};
use bough_testkit::{RedactedLength, redact_entry};
use serde_json::{Value, json};

use crate::common::process::service_on;
use crate::common::{TestService, assistant, stores, user};

const LENGTHS: [RedactedLength; 2] = [RedactedLength::Kept, RedactedLength::Changed];
/// Words of the redacted entries: of a message, of a message before and after its change, of an application's entry, of a
/// message that is kept as it came, of one that streamed and failed, and of a compaction.
const GONE: [&str; 10] = [
    "firstsecret",
    "draftsecret",
    "changedsecret",
    "notesecret",
    "revisedlater",
    "foreignsecret",
    "streamsecret",
    "failuresecret",
    "warningsecret",
    "summarysecret",
];
/// Long enough for the digest that takes the place of content.
const REST: &str = "and so on, and so on, and so on, and so on";

/// How long to wait for something that takes a moment.
const PATIENCE: Duration = Duration::from_secs(120);

/// A session with the words in some entries, and one that is kept.
struct Planted {
    session: String,
    redacted: [String; 6],
    kept: String,
    /// Where the session's feed was before.
    begun: FeedCursor,
}

async fn append_id(bed: &TestService, session: &str, request: Value) -> String {
    bed.append(session, request).await["entry_id"].as_str().unwrap().to_owned()
}

async fn plant(bed: &TestService) -> Planted {
    let session = bed.create(json!({"title": "A title"})).await;
    let feed = bed.subscribe(of_one(&session), StartAt::Now).await;
    let begun = feed.subscription.cursor().unwrap();
    let first = bed.say(&session, &format!("firstsecret {REST}")).await;
    let changed = bed.say(&session, &format!("draftsecret {REST}")).await;
    bed.update(&session, &changed, &format!("changedsecret {REST}")).await;
    bed.update(&session, &changed, &format!("revisedlater {REST}")).await;
    let data = json!({"custom_type": "note", "data": {"text": format!("notesecret {REST}")}});
    let note = append_id(bed, &session, json!({"custom": data})).await;
    let foreign = foreign(bed, &session).await;
    let streamed = streamed(bed, &session).await;
    let data = json!({"summary": format!("summarysecret {REST} {REST}"), "first_kept_entry_id": foreign, "tokens_before": 9});
    let data = json!({"custom_type": "bough.compaction", "data": data});
    let summary = append_id(bed, &session, json!({"custom": data})).await;
    let kept = bed.say(&session, "what is keptword").await;
    Planted { session, redacted: [first, changed, note, foreign, streamed, summary], kept, begun }
}

/// A message with a member that the canonical message does not have, so that it is stored as it came.
async fn foreign(bed: &TestService, session: &str) -> String {
    let content = json!([{"type": "text", "text": format!("foreignsecret {REST}")}]);
    let message = json!({
        "role": "assistant", "content": content, "stop_reason": "end", "model": "m", "provider": "p",
        "timestamp": 7, "usage": {"input": 5, "output": 6}, "comment": "foreignsecret",
    });
    append_id(bed, session, json!({"message": message})).await
}

/// A message that streamed and ended with an error.
async fn streamed(bed: &TestService, session: &str) -> String {
    let begun = json!({"message": assistant(&format!("streamsecret {REST}")), "stream": true});
    let entry = append_id(bed, session, begun).await;
    for _ in 0..3 {
        let more = json!({"session_id": session, "entry_id": entry, "block": 0, "text": format!("streamsecret {REST}")});
        bed.ok("session::append-delta", more).await;
    }
    let failed = json!({
        "session_id": session, "entry_id": entry, "stop_reason": "error", "model": "m-2", "usage": {"output": 7},
        "error_message": format!("failuresecret {REST}"), "warnings": [format!("warningsecret {REST}")],
    });
    bed.ok("session::finish-message", failed).await;
    entry
}

/// The record that says that an entry was redacted, and hides it.
fn redaction(entry: &str, payload: &Value) -> NewRecord {
    let target = Some(entry.to_owned().into());
    let record = Envelope { target, ..Envelope::plain("redacted", 5, payload.to_string()) };
    codec::decode(record).at(5)
}

async fn append_redaction(
    store: &dyn Store,
    session: &str,
    entry: &str,
    payload: &Value,
) -> Result<(), StoreError> {
    let id = SessionId::from_stored(session);
    let head = store.state(&id).await?.unwrap().head;
    let appended = store.append(&id, &head, vec![redaction(entry, payload)].into()).await?;
    appended.durable.await?;
    Ok(())
}

/// Redacts the planted entries and opens the store again.
async fn redact(bed: &mut TestService, planted: &Planted, length: RedactedLength) {
    let [first, changed, note, foreign, streamed, summary] = &planted.redacted;
    for (entry, payload) in [
        (first, json!({"message": true, "preview": true, "by": "somebody", "reason": "a key"})),
        (changed, json!({"message": true})),
        (note, Value::Null),
        (foreign, json!({"message": true})),
        (streamed, json!({"message": true})),
        (summary, Value::Null),
    ] {
        let store = bed.service.store();
        append_redaction(&*store, &planted.session, entry, &payload).await.unwrap();
    }
    bed.service.store().close().await.unwrap();
    let disk = OsDisk::create(bed.factory.directory().unwrap()).unwrap();
    let folder = bed.factory.directory().unwrap().join("sessions");
    assert!(holds_secrets(&folder), "the words are stored as they are");
    for entry in &planted.redacted {
        redact_entry(&disk, &planted.session, entry, length).unwrap();
    }
    assert!(!holds_secrets(&folder), "a file still has the words");
    check_files(bed.factory.directory().unwrap());
    bed.reopen().await;
}

/// Every byte of the sessions is what the log knows.
fn check_files(folder: &Path) {
    let visit = &mut |report: bough_store::VerifyReport| {
        assert!(report.is_well(), "{report:?}");
        ControlFlow::Continue(())
    };
    bough_store::verify(Platform::system(folder).unwrap(), None, visit).unwrap();
}

/// Whether a file of the sessions has one of the words.
fn holds_secrets(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().any(|listed| {
        let path = listed.unwrap().path();
        if path.is_dir() {
            return holds_secrets(&path);
        }
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        GONE.iter().any(|word| text.contains(word))
    })
}

fn index(bed: &TestService) {
    let folder = bed.factory.directory().unwrap();
    let disk = Arc::new(OsDisk::create(folder).unwrap());
    let index = NativeIndex::in_folder(disk, folder, bed.clock.clone()).unwrap();
    bed.service.set_search_index(Some(Arc::new(index)));
}

/// How many hits a query has, once the index has everything.
async fn hits(service: &Service, query: &str) -> usize {
    loop {
        let request = json!({"query": query, "limit": 100});
        let found = service.call(&Scope::owner(), "session::search", request).await.unwrap();
        if found["index"]["is_complete"] == json!(true) {
            return found["hits"].as_array().unwrap().len();
        }
    }
}

async fn nothing_is_found(service: &Service) {
    for word in GONE {
        for query in [word.to_owned(), format!("{word} is:old"), format!("{word} is:data")] {
            assert_eq!(hits(service, &query).await, 0, "{query}");
        }
    }
    assert_eq!(hits(service, "keptword").await, 1);
}

/// No read fails, and none has a word of the redacted entries.
async fn no_read_has_it(bed: &TestService, planted: &Planted) {
    let Planted { session, redacted, kept, .. } = planted;
    let of_session = json!({"session_id": session, "include_custom": true});
    for function in
        ["get", "messages", "messages-tail", "path", "context", "entries", "branches", "tree"]
    {
        let answer = bed.ok(&format!("session::{function}"), of_session.clone()).await.to_string();
        assert!(!GONE.iter().any(|word| answer.contains(word)), "{function}: {answer}");
        assert!(function == "get" || answer.contains(kept), "{function}: {answer}");
    }
    for entry in redacted {
        let of_entry = json!({"session_id": session, "entry_id": entry});
        assert_eq!(bed.ok("session::entry", of_entry.clone()).await, Value::Null);
        assert_eq!(bed.ok("session::get-message", of_entry).await, Value::Null);
    }
    let records = json!({"op": "records", "after": {"seq": 0, "step": 0}, "limit": 100});
    let raw = bed.ok("session::raw", json!({"session_id": session, "read": records})).await;
    assert!(!GONE.iter().any(|word| raw.to_string().contains(word)), "{raw}");
    assert!(raw.to_string().contains("a key"), "the redaction itself is kept: {raw}");
    no_feed_has_it(bed, planted).await;
    for prefix in redacted.iter().map(|entry| &entry[..entry.len() - 1]) {
        let named = json!({"session_id": session, "id_prefix": prefix});
        assert_eq!(bed.ok("session::entries", named).await["entries"], json!([]), "{prefix}");
    }
    let listed = bed.ok("session::list", json!({"include_details": true})).await;
    let shown = listed["sessions"][0].to_string();
    assert!(shown.contains("A title") && !shown.contains("secret"), "{listed}");
}

fn of_one(session: &str) -> EventFilter {
    EventFilter::everything().in_session(SessionId::from_stored(session))
}

/// Not to subscribers that come late, and not to one that resumes where it was before the entries were written.
async fn no_feed_has_it(bed: &TestService, planted: &Planted) {
    let of_one = of_one(&planted.session);
    for (filter, start) in [
        (of_one.clone(), StartAt::Start),
        (of_one.clone(), StartAt::Snapshot),
        (of_one, StartAt::After(planted.begun.clone())),
        (EventFilter::everything(), StartAt::Replay(None)),
    ] {
        let mut late = bed.subscribe(filter, start.clone()).await;
        let mut told = String::new();
        while let Some(item) = late.subscription.next_ready().await.unwrap() {
            told.push_str(&format!("{item:?}"));
        }
        assert!(!GONE.iter().any(|word| told.contains(word)), "{start:?}: {told}");
        assert!(
            matches!(start, StartAt::Snapshot) || told.contains("keptword"),
            "{start:?}: {told}"
        );
    }
}

/// What a list and the service count, without what moves with time.
async fn counts(bed: &TestService, session: &str) -> Value {
    let id = SessionId::from_stored(session);
    let state = bed.service.store().state(&id).await.unwrap().unwrap().state;
    json!({
        "entries": state.entry_count, "messages": state.meta.message_count, "hidden": state.hidden_count,
        "preview": state.preview, "leaf": state.leaf, "compactions": state.compactions, "model": state.model,
        "usage": bed.ok("session::usage", json!({"session_id": session})).await["session"],
        "stats": bed.ok("session::stats", json!({})).await["rows"],
    })
}

async fn bed() -> TestService {
    TestService::on(&stores::native()).await
}

#[tokio::test]
async fn redacted_entries_are_in_no_read_and_counts_are_right() {
    for length in LENGTHS {
        let mut bed = bed().await;
        let planted = plant(&bed).await;
        let spent = counts(&bed, &planted.session).await;
        redact(&mut bed, &planted, length).await;
        let mut expected = json!({
            "entries": 1, "messages": 1, "hidden": 6, "preview": null, "leaf": planted.kept,
        });
        for same in ["compactions", "model", "usage", "stats"] {
            expected[same] = spent[same].clone();
        }
        assert_eq!(spent["usage"]["total"]["output"], json!(13), "{spent}");
        for _ in 0..2 {
            no_read_has_it(&bed, &planted).await;
            assert_eq!(counts(&bed, &planted.session).await, expected, "{length:?}");
            // The lists are made again from the log.
            bed.service.store().close().await.unwrap();
            let folder = bed.factory.directory().unwrap();
            for file in ["catalogue.sqlite", "catalogue.sqlite-wal", "catalogue.sqlite-shm"] {
                drop(std::fs::remove_file(folder.join(file)));
            }
            bed.reopen().await;
        }
        let next = bed.say(&planted.session, "one more").await;
        assert_eq!(bed.texts(&planted.session).await, ["what is keptword", "one more"]);
        assert_eq!(bed.entry(&planted.session, &next).await["parent_id"], json!(planted.kept));
        bed.reopen().await;
        let fork = json!({"session_id": planted.session, "entry_id": next});
        let fork = bed.ok("session::fork", fork).await["session_id"].as_str().unwrap().to_owned();
        assert_eq!(bed.texts(&fork).await, ["what is keptword", "one more"]);
    }
}

#[tokio::test]
async fn an_index_made_before_or_after_a_redaction_finds_nothing() {
    for length in LENGTHS {
        for is_made_before in [true, false] {
            let mut bed = bed().await;
            let planted = plant(&bed).await;
            if is_made_before {
                index(&bed);
                assert_eq!(hits(&bed.service, "firstsecret").await, 1);
                assert_eq!(hits(&bed.service, "draftsecret is:old").await, 1);
            }
            redact(&mut bed, &planted, length).await;
            index(&bed);
            nothing_is_found(&bed.service).await;
            bed.ok("session::reindex", json!({})).await;
            nothing_is_found(&bed.service).await;
        }
    }
}

/// Whoever redacts an entry that was hidden before says so, and nothing is counted twice.
#[tokio::test]
async fn a_hidden_entry_that_is_redacted_counts_once() {
    let mut bed = bed().await;
    let planted = plant(&bed).await;
    let hide = json!({"session_id": planted.session, "entry_ids": [planted.redacted[0]]});
    bed.ok("session::hide-entries", hide).await;
    let before = counts(&bed, &planted.session).await;
    let store = bed.service.store();
    let payload = json!({"message": true, "preview": true, "hidden": true});
    append_redaction(&*store, &planted.session, &planted.redacted[0], &payload).await.unwrap();
    assert_eq!(counts(&bed, &planted.session).await, before);
    store.close().await.unwrap();
    let disk = OsDisk::create(bed.factory.directory().unwrap()).unwrap();
    let length = RedactedLength::Changed;
    redact_entry(&disk, &planted.session, &planted.redacted[0], length).unwrap();
    bed.reopen().await;
    assert_eq!(counts(&bed, &planted.session).await, before);
    index(&bed);
    assert_eq!(hits(&bed.service, "firstsecret").await, 0);
}

/// Another process on the directory.
async fn another_store(folder: &Path) -> NativeStore {
    let platform = Platform::system(folder).unwrap();
    NativeStore::open(platform, folder.to_owned(), NativeOptions::default()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_had_the_session_open_finds_and_shows_nothing() {
    for length in LENGTHS {
        let folder = tempfile::tempdir().unwrap();
        let service = service_on(folder.path()).await;
        let disk = Arc::new(OsDisk::create(folder.path()).unwrap());
        let index =
            NativeIndex::in_folder(disk.clone(), folder.path(), Arc::new(SystemClock::new()));
        service.set_search_index(Some(Arc::new(index.unwrap())));
        let owner = Scope::owner();
        let ok = async |function: &str, request: Value| {
            service.call(&owner, function, request).await.unwrap()
        };
        ok("session::ensure", json!({"session_id": "s"})).await;
        let say = async |text: &str| {
            let message = user(&format!("{text} {REST}"));
            let said = ok("session::append", json!({"session_id": "s", "message": message})).await;
            said["entry_id"].as_str().unwrap().to_owned()
        };
        let entry = say("firstsecret").await;
        say("keptword").await;
        let filter = EventFilter::of([EventKind::MessageRemoved]);
        let mut feed = service.subscribe(&owner, filter, StartAt::Now).await.unwrap();
        assert_eq!(hits(&service, "firstsecret").await, 1);
        let other = another_store(folder.path()).await;
        let payload = json!({"message": true, "preview": true});
        // The service gives the lock up when the session is idle.
        while let Err(error) = append_redaction(&other, "s", &entry, &payload).await {
            assert!(matches!(error, StoreError::Locked { .. }), "{error}");
            assert_eq!(hits(&service, "keptword").await, 1);
        }
        other.close().await.unwrap();
        redact_entry(&*disk, "s", &entry, length).unwrap();
        let item = tokio::time::timeout(PATIENCE, feed.next()).await;
        let item = item.expect("the removal is told").unwrap();
        assert!(matches!(item, FeedItem::Event(_)), "{item:?}");
        nothing_is_found(&service).await;
        let shown = ok("session::messages", json!({"session_id": "s"})).await;
        assert_eq!(shown["messages"].as_array().unwrap().len(), 1, "{shown}");
        say("more").await;
        nothing_is_found(&service).await;
        check_files(folder.path());
    }
}

/// Only records of the log hide an entry: a caller cannot append one that no read would show.
#[tokio::test]
async fn nobody_can_append_an_entry_that_is_hidden() {
    let bed = bed().await;
    let session = bed.create(json!({})).await;
    for custom_type in ["bough.hidden", "bough.redacted"] {
        let custom = json!({"custom_type": custom_type, "data": "unseen"});
        let request = json!({"session_id": session, "custom": custom});
        let (code, text) = bed.err("session::append", request).await;
        assert_eq!(code, "session/invalid_request", "{text}");
        let many = json!({"session_id": session, "entries": [{"custom": custom}]});
        bed.err("session::append-entries", many).await;
    }
    assert_eq!(counts(&bed, &session).await["entries"], json!(0));
    // The type is no more than a word in other places.
    let message = json!({"role": "custom", "custom_type": "bough.hidden", "content": [{"type": "text", "text": "seen"}], "timestamp": 1});
    append_id(&bed, &session, json!({"message": message})).await;
    assert_eq!(bed.texts(&session).await, ["seen"]);
}
