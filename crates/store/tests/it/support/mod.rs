//! What several tests of adapters need.

use std::collections::BTreeMap;
use std::path::Path;

use bough_session::{
    AgentMessage, ContentBlock, ContentChange, Delta, Entry, EntryBody, EntryId, MetaChange,
    NewRecord, Record, SessionId, TextAppend, UserMessage,
};
use bough_store::{Head, Store, StoreExt};
use serde_json::Value;

pub fn id(text: &str) -> SessionId {
    SessionId::from_stored(text)
}

pub fn entry_id(text: &str) -> EntryId {
    EntryId::from_stored(text)
}

pub fn titled(title: &str, at_ms: i64) -> NewRecord {
    Record::Meta(MetaChange { title: Some(title.to_owned()), ..MetaChange::default() }).at(at_ms)
}

pub fn says(name: &str, parent: Option<&str>, text: &str, at_ms: i64) -> NewRecord {
    let message = AgentMessage::User(UserMessage::new(vec![ContentBlock::text(text)], at_ms));
    Record::Entry(Entry::new(
        entry_id(name),
        parent.map(entry_id),
        at_ms,
        EntryBody::Message(message.into()),
    ))
    .at(at_ms)
}

pub fn step(name: &str, revision: u64, text: &str) -> Delta {
    Delta {
        at_ms: 50,
        entry_id: entry_id(name),
        revision,
        change: ContentChange::Append(TextAppend { block: 0, text: text.to_owned() }),
        details: None,
        origin: None,
    }
}

pub async fn create(store: &dyn Store, session: &SessionId) -> Head {
    let appended = store.create(session, vec![titled("t", 1)].into()).await.unwrap();
    appended.durable.await.unwrap();
    appended.head
}

pub async fn push(store: &dyn Store, session: &SessionId, records: Vec<NewRecord>) -> Head {
    let head = store.state(session).await.unwrap().unwrap().head;
    let appended = store.append(session, &head, records.into()).await.unwrap();
    appended.durable.await.unwrap();
    appended.head
}

pub async fn text_of(store: &dyn Store, session: &SessionId, entry: &str) -> Option<String> {
    let stored = store.entry(session, &entry_id(entry)).await.unwrap()?;
    Some(stored.entry.message().unwrap().text())
}

/// What session-manager would make of a session file: the last meta, the last record of each entry, the last
/// leaf. Lines that it cannot read are skipped.
#[derive(Debug, Default, PartialEq)]
pub struct AsOriginal {
    pub meta: Option<Value>,
    pub entries: BTreeMap<String, Value>,
    pub leaf: Option<String>,
    pub unreadable: usize,
    pub other_kinds: usize,
}

impl AsOriginal {
    /// A file with lines of the published kinds only.
    pub fn read(path: &Path) -> Self {
        let seen = Self::read_lenient(path);
        assert_eq!(seen.other_kinds, 0);
        seen
    }

    /// A file that may have lines of later kinds, which count as read and say nothing.
    pub fn read_lenient(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let mut seen = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let Ok(line) = serde_json::from_str::<Value>(line) else {
                seen.unreadable += 1;
                continue;
            };
            match line["type"].as_str().unwrap() {
                "meta" => seen.meta = Some(line["meta"].clone()),
                "entry" => {
                    let entry = line["entry"].clone();
                    seen.entries.insert(entry["id"].as_str().unwrap().to_owned(), entry);
                }
                "leaf" => seen.leaf = line["entry_id"].as_str().map(str::to_owned),
                _ => seen.other_kinds += 1,
            }
        }
        seen
    }

    /// The entries that are not reserved to us.
    pub fn plain(&self) -> BTreeMap<&str, &Value> {
        let reserved = |entry: &Value| {
            let custom_type = entry["custom_type"].as_str().unwrap_or_default();
            ["bough.life", "bough.record"].contains(&custom_type)
        };
        let plain = self.entries.iter().filter(|(_, entry)| !reserved(entry));
        plain.map(|(id, entry)| (id.as_str(), entry)).collect()
    }
}
