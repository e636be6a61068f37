//! Entries that were redacted in the log, as `docs/FORMAT.md` reserves it: no read and no search has their content again.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bough_platform::{OsDisk, Platform, SystemClock};
use bough_record::Envelope;
use bough_search::NativeIndex;
use bough_service::{EventFilter, EventKind, FeedItem, Scope, Service, StartAt};
use bough_session::{NewRecord, SessionId, codec};
use bough_store::{NativeOptions, NativeStore, Store, StoreError, StoreExt};
use bough_testkit::{RedactedLength, redact_entry};
use serde_json::{Value, json};

use crate::common::process::service_on;
use crate::common::{TestService, stores, user};

const LENGTHS: [RedactedLength; 2] = [RedactedLength::Kept, RedactedLength::Changed];
/// Words of the redacted entries: of a message, of a message before and after its change, and of an application's entry.
const GONE: [&str; 5] =
    ["firstsecret", "draftsecret", "changedsecret", "notesecret", "revisedlater"];
/// Long enough for the digest that takes the place of content.
const REST: &str = "and so on, and so on, and so on, and so on";

/// How long to wait for something that takes a moment.
const PATIENCE: Duration = Duration::from_secs(120);

/// A session with the words in three entries, and one that is kept.
struct Planted {
    session: String,
    redacted: [String; 3],
    kept: String,
}

async fn append_id(bed: &TestService, session: &str, request: Value) -> String {
    bed.append(session, request).await["entry_id"].as_str().unwrap().to_owned()
}

async fn plant(bed: &TestService) -> Planted {
    let session = bed.create(json!({"title": "A title"})).await;
    let first = bed.say(&session, &format!("firstsecret {REST}")).await;
    let changed = bed.say(&session, &format!("draftsecret {REST}")).await;
    bed.update(&session, &changed, &format!("changedsecret {REST}")).await;
    bed.update(&session, &changed, &format!("revisedlater {REST}")).await;
    let data = json!({"custom_type": "note", "data": {"text": format!("notesecret {REST}")}});
    let note = append_id(bed, &session, json!({"custom": data})).await;
    let kept = bed.say(&session, "what is keptword").await;
    Planted { session, redacted: [first, changed, note], kept }
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
    let [first, changed, note] = &planted.redacted;
    for (entry, payload) in [
        (first, json!({"message": true, "preview": true, "by": "somebody", "reason": "a key"})),
        (changed, json!({"message": true})),
        (note, Value::Null),
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
    let Planted { session, redacted, kept } = planted;
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
    let listed = bed.ok("session::list", json!({"include_details": true})).await;
    let shown = listed["sessions"][0].to_string();
    assert!(shown.contains("A title") && !shown.contains("secret"), "{listed}");
}

/// What a list and the service count, without what moves with time.
async fn counts(bed: &TestService, session: &str) -> (u64, u64, u64, Option<String>, String) {
    let id = SessionId::from_stored(session);
    let state = bed.service.store().state(&id).await.unwrap().unwrap().state;
    let leaf = state.leaf.as_ref().unwrap().to_string();
    (state.entry_count, state.meta.message_count, state.hidden_count, state.preview.clone(), leaf)
}

async fn bed() -> TestService {
    TestService::on(&stores::native()).await
}

#[tokio::test]
async fn redacted_entries_are_in_no_read_and_counts_are_right() {
    for length in LENGTHS {
        let mut bed = bed().await;
        let planted = plant(&bed).await;
        redact(&mut bed, &planted, length).await;
        let expected = (1, 1, 3, None, planted.kept.clone());
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
