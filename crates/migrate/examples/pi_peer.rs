//! The other side of `tests/pi`: does with files and a data directory what pi's own session manager is
//! then held against. Answers are JSON on standard output.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a tool of a test"
)]

use std::path::PathBuf;
use std::sync::Arc;

use bough_migrate::{ExportFormat, ExportOptions, Migrator, OsV1Files, RollbackOptions, export};
use bough_platform::Platform;
use bough_session::{
    AgentMessage, ContentBlock, Entry, EntryBody, EntryId, MetaChange, Record, SessionEntry,
    SessionId, UserMessage,
};
use bough_store::{NativeOptions, NativeStore, Store};
use serde_json::{Value, json};

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let answer = match words.as_slice() {
        ["read", file] => read(file),
        ["migrate", data, file] => migrate(data, file),
        ["rollback", data, session] => rollback(data, session),
        ["say", data, session, text] => say(data, session, text).await,
        ["make", data, session, entries] => make(data, session, entries).await,
        ["export", data, session, out] => write(data, session, out, None).await,
        ["export", data, session, out, leaf] => write(data, session, out, Some(leaf)).await,
        _ => panic!("unknown words: {words:?}"),
    };
    println!("{answer}");
}

fn migrator(data: &str) -> Migrator {
    Migrator::open(Platform::system(data).unwrap(), Arc::new(OsV1Files)).unwrap()
}

async fn store(data: &str) -> NativeStore {
    let platform = Platform::system(data).unwrap();
    NativeStore::open(platform, PathBuf::from(data), NativeOptions::default()).await.unwrap()
}

/// What we see in a pi file.
fn read(file: &str) -> Value {
    let data = std::env::temp_dir().join(format!("bough-pi-peer-{}", std::process::id()));
    let live = migrator(data.to_str().unwrap()).open_file(file).unwrap();
    std::fs::remove_dir_all(data).unwrap();
    let mut entries = Vec::new();
    live.records(&mut |new| {
        if let Some(entry) = new.record.as_entry() {
            let text = entry.message().map(|message| message.text());
            entries.push(json!({"id": entry.id, "parentId": entry.parent_id, "text": text}));
        }
    })
    .unwrap();
    let state = live.state();
    let labels: Vec<Value> = state.labels.iter().map(|(id, label)| json!([id, label])).collect();
    json!({
        "session": live.session_id(), "leaf": live.leaf(), "name": state.name, "labels": labels,
        "entries": entries, "well": live.report().is_well(),
    })
}

fn migrate(data: &str, file: &str) -> Value {
    let migrator = migrator(data);
    let plan = migrator.plan(file, &mut |_| {}).unwrap();
    let summary = migrator.migrate(plan, None, &mut |_| {}).unwrap();
    json!({"session": summary.plan.session_id, "entries": summary.plan.report.entries})
}

fn rollback(data: &str, session: &str) -> Value {
    let options = RollbackOptions { reason: "test".to_owned(), ..RollbackOptions::default() };
    let summary = migrator(data).rollback(session, &options).unwrap();
    json!({"exported": summary.exported, "address": summary.address})
}

async fn say(data: &str, session: &str, text: &str) -> Value {
    let store = store(data).await;
    let session = SessionId::from_stored(session);
    let now = store.state(&session).await.unwrap().unwrap();
    let timestamp = now.state.updated_at + 1_000;
    let content = vec![ContentBlock::text(text)];
    let entry = Entry {
        id: EntryId::from_stored(format!("said-{}", now.head.seq)),
        parent_id: now.state.leaf.clone(),
        timestamp,
        revision: 0,
        origin: None,
        body: EntryBody::Message(AgentMessage::User(UserMessage { content, timestamp })),
    };
    let id = entry.id.clone();
    let batch = vec![Record::Entry(entry).at(timestamp)];
    store.append(&session, &now.head, batch).await.unwrap().durable.await.unwrap();
    store.close().await.unwrap();
    json!({"id": id})
}

/// A native session of canonical entries.
async fn make(data: &str, session: &str, entries: &str) -> Value {
    let store = store(data).await;
    let entries: Vec<SessionEntry> = serde_json::from_str(entries).unwrap();
    let meta = MetaChange { title: Some("Made here".to_owned()), ..MetaChange::default() };
    let mut records = vec![Record::Meta(meta).at(1_700_000_000_000)];
    records.extend(entries.into_iter().map(|e| Record::Entry(e.into()).at(1_700_000_000_001)));
    let session = SessionId::from_stored(session);
    store.create(&session, records).await.unwrap().durable.await.unwrap();
    store.close().await.unwrap();
    json!({})
}

async fn write(data: &str, session: &str, out: &str, leaf: Option<&&str>) -> Value {
    let store = store(data).await;
    let leaf = leaf.map(|leaf| EntryId::from_stored(*leaf));
    let options = ExportOptions { leaf, ..ExportOptions::whole(ExportFormat::Pi) };
    let mut bytes = Vec::new();
    let session = SessionId::from_stored(session);
    let exported = export(&store, &session, &options, &mut bytes).await.unwrap();
    std::fs::write(out, bytes).unwrap();
    store.close().await.unwrap();
    json!({"entries": exported.entries, "kept": exported.kept})
}
