//! What was seen of each session of an original main.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bough_session::{Incarnation, SessionId, SessionMeta};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fs::line::{self, Item, RECORD};
use crate::fs::replay::Replay;
use crate::image::Image;

/// Every session that was looked at.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Names this process. The place of a record is only known here, so no other process may understand our cursors.
    process: Incarnation,
    lives: AtomicU64,
    by_id: Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<Kept>>>>,
}

/// What was seen of one session.
#[derive(Debug, Default)]
pub(super) struct Kept {
    replay: Option<Replay>,
    /// When the main's session was made: another time is another life.
    created_at: i64,
    /// Reserved entries that were read already.
    read: HashSet<String>,
}

impl Sessions {
    pub(super) fn new(process: Incarnation) -> Self {
        Self { process, lives: AtomicU64::new(0), by_id: Mutex::default() }
    }

    /// A name that no other process has.
    pub(super) fn name(&self) -> String {
        format!("session::bridge::{}", self.process)
    }

    pub(super) fn of(&self, session: &SessionId) -> Arc<tokio::sync::Mutex<Kept>> {
        let mut by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        by_id.entry(session.clone()).or_default().clone()
    }

    pub(super) fn known(&self) -> Vec<SessionId> {
        let by_id = self.by_id.lock().unwrap_or_else(PoisonError::into_inner);
        by_id.keys().cloned().collect()
    }

    /// A life that no session had before. The main knows none, so each begins when it is first seen here.
    pub(super) fn new_life(&self) -> Incarnation {
        let mut hash = Sha256::new();
        hash.update(self.process.bytes());
        hash.update(self.lives.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let mut life = [0; 16];
        life.copy_from_slice(digest.split_at(16).0);
        Incarnation::new(life)
    }

    /// Takes in what the main has now.
    pub(super) fn take_in(
        &self,
        session: &SessionId,
        kept: &mut Kept,
        meta: SessionMeta,
        entries: &Value,
        leaf: &Value,
    ) {
        if kept.created_at != meta.created_at {
            kept.forget();
        }
        kept.created_at = meta.created_at;
        let mut items = Vec::new();
        if kept.replay.is_none() {
            items.push(Item::Life(self.new_life()));
            items.push(Item::Meta(Box::new(meta.clone())));
        }
        let listed = entries.get("entries").and_then(Value::as_array);
        let mut listed: Vec<&Value> = listed.into_iter().flatten().collect();
        // Reserved entries say more than the plain ones that they are shown by, so they come first.
        listed.sort_by_key(|entry| (!is_reserved(entry), time_of(entry)));
        for entry in listed {
            let id = entry.get("id").and_then(Value::as_str).unwrap_or_default();
            if !is_reserved(entry) || kept.read.insert(id.to_owned()) {
                items.extend(line::parse(
                    json!({"type": "entry", "entry": entry}).to_string().as_bytes(),
                ));
            }
        }
        let leaf = json!({"type": "leaf", "entry_id": leaf.get("entry_id")}).to_string();
        items.extend(line::parse(leaf.as_bytes()));
        items.push(Item::Meta(Box::new(meta)));
        let replay = kept.replay.get_or_insert_with(|| Replay::new(session.clone()));
        replay.apply(items, &[]);
    }
}

/// Whether an entry carries a record that the original has no words for.
pub(super) fn is_reserved(entry: &Value) -> bool {
    entry.get("custom_type").and_then(Value::as_str) == Some(RECORD)
}

fn time_of(entry: &Value) -> i64 {
    entry.get("timestamp").and_then(Value::as_i64).unwrap_or_default()
}

impl Kept {
    pub(super) fn image(&self) -> Option<&Image> {
        self.replay.as_ref().and_then(Replay::image)
    }

    /// The life and how far it was seen.
    pub(super) fn place(&self) -> Option<(Incarnation, u64)> {
        self.image().map(|image| (image.incarnation, image.seq()))
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Remembers a reserved entry that this instance has written itself.
    pub(super) fn note(&mut self, entry: &Value) {
        let id = entry.get("id").and_then(Value::as_str);
        self.read.extend(id.filter(|_| is_reserved(entry)).map(str::to_owned));
    }

    /// Puts what this instance has written in the place of what was seen.
    pub(super) fn put(&mut self, image: Image) {
        self.created_at = image.state.created_at;
        self.replay = Some(Replay::of(image));
    }
}
