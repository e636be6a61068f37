//! The rules again, in the plainest form: maps and lists in memory, nothing shared with the service.

#![allow(unreachable_pub, reason = "a module of a test")]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// All sessions, the deleted ones, and the events.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    pub sessions: BTreeMap<String, Session>,
    /// Deleted sessions, the first deleted first.
    pub trash: Vec<Session>,
    /// What the feed must tell: kind and session.
    pub told: Vec<(&'static str, String)>,
}

/// One session.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub id: String,
    pub title: String,
    pub description: String,
    pub status: String,
    pub reason: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub forked_from: Option<String>,
    pub created_at: i64,
    pub updated_at: i64,
    pub archived: bool,
    pub task: Option<String>,
    pub leaf: Option<String>,
    pub entries: Vec<Entry>,
}

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub id: String,
    pub parent: Option<String>,
    pub timestamp: i64,
    pub revision: u64,
    pub body: Body,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The text blocks of a user message.
    Message(Vec<String>),
    /// A custom type and its data.
    Custom(String, Value),
}

impl Oracle {
    pub fn tell(&mut self, kind: &'static str, session: &str) {
        self.told.push((kind, session.to_owned()));
    }

    pub fn begin(&mut self, id: &str, title: &str, metadata: Option<Map<String, Value>>, now: i64) {
        let session = Session {
            id: id.to_owned(),
            title: title.to_owned(),
            description: String::new(),
            status: "idle".to_owned(),
            reason: None,
            metadata,
            forked_from: None,
            created_at: now,
            updated_at: now,
            archived: false,
            task: None,
            leaf: None,
            entries: Vec::new(),
        };
        self.sessions.insert(id.to_owned(), session);
        self.tell("created", id);
    }

    pub fn delete(&mut self, id: &str) -> bool {
        let Some(session) = self.sessions.remove(id) else {
            return false;
        };
        self.trash.push(session);
        self.tell("deleted", id);
        true
    }

    /// The most recently deleted life of an id, taken out of the trash.
    pub fn take_from_trash(&mut self, id: &str) -> Option<Session> {
        let at = self.trash.iter().rposition(|session| session.id == id)?;
        Some(self.trash.remove(at))
    }
}

impl Session {
    pub fn meta(&self) -> Value {
        let messages = self.entries.iter().filter(|entry| matches!(entry.body, Body::Message(_)));
        let mut meta = json!({
            "session_id": self.id, "title": self.title, "description": self.description,
            "status": self.status, "created_at": self.created_at, "updated_at": self.updated_at,
            "message_count": messages.count(),
        });
        if let Some(reason) = &self.reason {
            meta["status_reason"] = json!(reason);
        }
        if let Some(metadata) = &self.metadata {
            meta["metadata"] = Value::Object(metadata.clone());
        }
        if let Some(source) = &self.forked_from {
            meta["forked_from"] = json!(source);
        }
        meta
    }

    pub fn entry(&self, id: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    pub fn entry_mut(&mut self, id: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id == id)
    }

    pub fn add(&mut self, id: &str, parent: Option<String>, body: Body, now: i64) {
        self.entries.push(Entry { id: id.to_owned(), parent, timestamp: now, revision: 0, body });
        self.leaf = Some(id.to_owned());
        self.updated_at = self.updated_at.max(now);
    }

    /// The entries from the root to an entry.
    pub fn path(&self, leaf: Option<&str>) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut next = leaf.map(ToOwned::to_owned);
        while let Some(entry) = next.and_then(|id| self.entry(&id)) {
            path.push(entry);
            next = entry.parent.clone();
        }
        path.reverse();
        path
    }

    /// The ends of all branches with their depths, sorted.
    pub fn heads(&self) -> Vec<(String, usize)> {
        let followed =
            |id: &str| self.entries.iter().any(|entry| entry.parent.as_deref() == Some(id));
        let heads = self.entries.iter().filter(|entry| !followed(&entry.id));
        let mut heads: Vec<_> =
            heads.map(|entry| (entry.id.clone(), self.path(Some(&entry.id)).len())).collect();
        heads.sort();
        heads
    }
}

impl Entry {
    pub fn wire(&self) -> Value {
        let mut entry = json!({
            "id": self.id, "parent_id": self.parent, "timestamp": self.timestamp, "revision": self.revision,
        });
        match &self.body {
            Body::Message(texts) => {
                entry["kind"] = json!("message");
                entry["message"] = message(texts);
            }
            Body::Custom(custom_type, data) => {
                entry["kind"] = json!("custom");
                entry["custom_type"] = json!(custom_type);
                entry["data"] = data.clone();
            }
        }
        entry
    }

    pub fn item(&self) -> Value {
        match &self.body {
            Body::Message(texts) => json!({"entry_id": self.id, "message": message(texts)}),
            Body::Custom(custom_type, data) => {
                json!({"entry_id": self.id, "custom": {"custom_type": custom_type, "data": data}})
            }
        }
    }
}

pub fn content(texts: &[String]) -> Value {
    texts.iter().map(|text| json!({"type": "text", "text": text})).collect()
}

pub fn message(texts: &[String]) -> Value {
    json!({"role": "user", "content": content(texts), "timestamp": 1})
}
