//! The logs of what was seen of each session of a session-manager main.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bough_session::{EntryId, Incarnation, SessionDetails, SessionId, SessionMeta};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fs::line::{self, Item, RECORD};
use crate::fs::replay::Replay;
use crate::limits::MANAGED_DETAILS_MAX;
use crate::memory_session::MemorySession;
use crate::sync::lock;
use crate::types::IncarnationPosition;
use bough_record::Position;

/// The sessions that were used last. Unused ones are evicted when there are too many: they are read again from the
/// main, as another incarnation, when they are needed.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Identifies this process. Positions are valid only here, so no other process may accept our cursors.
    process: Incarnation,
    incarnations: AtomicU64,
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    by_id: HashMap<SessionId, KeptSession>,
    /// Counts uses, to find the least recently used one.
    uses: u64,
    /// Whether there are sessions that are not kept here.
    is_partial: bool,
    evicted: Evicted,
}

#[derive(Debug)]
struct KeptSession {
    kept: Arc<tokio::sync::Mutex<Kept>>,
    used: u64,
}

/// The list rows of evicted sessions, in the order of eviction.
#[derive(Debug, Default)]
struct Evicted {
    details: HashMap<SessionId, SessionDetails>,
    order: VecDeque<SessionId>,
}

/// What was seen of one session.
#[derive(Debug, Default)]
pub(super) struct Kept {
    replay: Option<Replay>,
    /// When the main's session was created: another time is another incarnation.
    created_at: i64,
    /// Reserved entries that were read already.
    read: HashSet<String>,
    /// The main may have it, and it was not read yet: its content is not announced.
    pub(super) is_unknown: bool,
    /// Up to where it was read without announcing.
    quiet_until: Option<u64>,
}

impl Sessions {
    pub(super) fn new(process: Incarnation, most: usize) -> Self {
        let state = State {
            by_id: HashMap::new(),
            uses: 0,
            // Nothing was looked at yet.
            is_partial: true,
            evicted: Evicted::default(),
        };
        Self { process, incarnations: AtomicU64::new(0), most, state: Mutex::new(state) }
    }

    /// A name that no other process has.
    pub(super) fn name(&self) -> String {
        format!("session::bridge::{}", self.process)
    }

    /// How many unused sessions are kept.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// A session, for using it. The least recently used one is evicted, unless a subscriber watches it.
    pub(super) fn of(
        &self,
        session: &SessionId,
        is_watched: impl Fn(&SessionId) -> bool,
    ) -> Arc<tokio::sync::Mutex<Kept>> {
        let mut state = self.lock();
        if !state.by_id.contains_key(session) {
            while state.by_id.len() >= self.most && state.evict_one(&is_watched) {}
        }
        state.uses += 1;
        let (used, is_unknown) = (state.uses, state.is_partial);
        let place = state.by_id.entry(session.clone()).or_insert_with(|| KeptSession {
            kept: Arc::new(tokio::sync::Mutex::new(Kept { is_unknown, ..Kept::default() })),
            used,
        });
        place.used = used;
        place.kept.clone()
    }

    /// A session that is kept, without using it.
    pub(super) fn peek(&self, session: &SessionId) -> Option<Arc<tokio::sync::Mutex<Kept>>> {
        self.lock().by_id.get(session).map(|place| place.kept.clone())
    }

    /// The list row of an evicted session.
    pub(super) fn details(&self, session: &SessionId) -> Option<SessionDetails> {
        self.lock().evicted.details.get(session).cloned()
    }

    pub(super) fn known(&self) -> Vec<SessionId> {
        self.lock().by_id.keys().cloned().collect()
    }

    /// Whether there are sessions that are not kept here.
    pub(super) fn is_partial(&self) -> bool {
        self.lock().is_partial
    }

    /// Every session of the main is kept.
    pub(super) fn set_whole(&self) {
        self.lock().is_partial = false;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// A new incarnation. The main knows none, so each begins when a session is first seen here.
    pub(super) fn new_incarnation(&self) -> Incarnation {
        let mut hash = Sha256::new();
        hash.update(self.process.bytes());
        hash.update(self.incarnations.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        let digest: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(digest.split_at(16).0);
        Incarnation::new(bytes)
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
            items.push(Item::Incarnation(self.new_incarnation()));
            items.push(Item::Meta(Box::new(meta.clone())));
        }
        let listed = entries.get("entries").and_then(Value::as_array);
        let mut listed: Vec<&Value> = listed.into_iter().flatten().collect();
        // Reserved entries have more information than the plain ones that follow, so they come
        // first.
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

impl State {
    /// Evicts the least recently used session; `false` if all are in use.
    fn evict_one(&mut self, is_watched: &impl Fn(&SessionId) -> bool) -> bool {
        // A session with another holder is in use. New holders need the lock that we have.
        let idle = self
            .by_id
            .iter()
            .filter(|(session, place)| Arc::strong_count(&place.kept) == 1 && !is_watched(session));
        let oldest = idle.min_by_key(|(_, place)| place.used);
        let Some(session) = oldest.map(|(session, _)| session.clone()) else {
            return false;
        };
        let place = self.by_id.remove(&session);
        let kept =
            place.and_then(|place| Arc::into_inner(place.kept)).map(|kept| kept.into_inner());
        if let Some(image) = kept.as_ref().and_then(Kept::image) {
            self.is_partial = true;
            self.evicted.put(session, image.state.details());
        }
        true
    }
}

impl Evicted {
    fn put(&mut self, session: SessionId, details: SessionDetails) {
        if self.details.insert(session.clone(), details).is_none() {
            self.order.push_back(session);
        }
        if self.order.len() > MANAGED_DETAILS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.details.remove(&oldest);
        }
    }
}

/// Whether an entry carries a record that session-manager cannot express.
pub(super) fn is_reserved(entry: &Value) -> bool {
    entry.get("custom_type").and_then(Value::as_str) == Some(RECORD)
}

fn time_of(entry: &Value) -> i64 {
    entry.get("timestamp").and_then(Value::as_i64).unwrap_or_default()
}

impl Kept {
    pub(super) fn image(&self) -> Option<&MemorySession> {
        self.replay.as_ref().and_then(Replay::image)
    }

    /// The incarnation, and the position up to which it was seen.
    pub(super) fn end(&self) -> Option<IncarnationPosition> {
        let image = self.image()?;
        Some(IncarnationPosition::new(image.incarnation, Position::at(image.seq())))
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Notes the first read of the main's session; its content is not announced.
    pub(super) fn found_quietly(&mut self) {
        self.is_unknown = false;
        self.quiet_until = self.image().map(MemorySession::seq);
    }

    /// Everything that was read is announced.
    pub(super) fn set_announced(&mut self) {
        self.quiet_until = None;
    }

    /// Whether an event is about something that was read without announcing.
    pub(super) fn is_unannounced(&mut self, payload: &Value) -> bool {
        let Some(quiet_until) = self.quiet_until else {
            return false;
        };
        let entry = payload.get("entry_id").and_then(Value::as_str).map(EntryId::from_stored);
        let stored = entry.and_then(|entry| self.image()?.entry(&entry));
        let is_unannounced = match stored {
            Some(stored) if payload.get("revision").is_none() => stored.seq <= quiet_until,
            _ => self.image().is_none_or(|image| image.seq() == quiet_until),
        };
        // Events come in order: after one that was announced, all were.
        self.quiet_until = self.quiet_until.filter(|_| is_unannounced);
        is_unannounced
    }

    /// Remembers a reserved entry that this instance has written itself.
    pub(super) fn note(&mut self, entry: &Value) {
        let id = entry.get("id").and_then(Value::as_str);
        self.read.extend(id.filter(|_| is_reserved(entry)).map(str::to_owned));
    }

    /// Replaces the kept log by what this instance has written.
    pub(super) fn put(&mut self, image: MemorySession) {
        self.is_unknown = false;
        self.created_at = image.state.meta.created_at;
        self.replay = Some(Replay::of(image));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::from_stored(text)
    }

    fn sessions(most: usize) -> Sessions {
        let sessions = Sessions::new(Incarnation::new([1; 16]), most);
        sessions.set_whole();
        sessions
    }

    /// Uses a session that the main has.
    fn see(sessions: &Sessions, name: &str) {
        let kept = sessions.of(&id(name), |_| false);
        let mut kept = kept.try_lock().unwrap();
        kept.put(MemorySession::new(&id(name), sessions.new_incarnation()));
    }

    fn known(sessions: &Sessions) -> Vec<String> {
        let mut names: Vec<String> = sessions.known().iter().map(ToString::to_string).collect();
        names.sort();
        names
    }

    #[test]
    fn the_session_that_was_used_longest_ago_is_evicted() {
        let sessions = sessions(3);
        ["a", "b", "c", "a"].into_iter().for_each(|name| see(&sessions, name));
        assert_eq!(known(&sessions), ["a", "b", "c"]);
        assert!(!sessions.is_partial(), "all of them are here");
        see(&sessions, "d");
        assert_eq!(known(&sessions), ["a", "c", "d"]);
        assert!(sessions.is_partial());
        assert!(sessions.details(&id("b")).is_some(), "lists still know it");
        assert!(sessions.peek(&id("b")).is_none() && sessions.details(&id("a")).is_none());
    }

    #[test]
    fn a_session_that_is_in_use_or_watched_stays() {
        let sessions = sessions(2);
        ["a", "b"].into_iter().for_each(|name| see(&sessions, name));
        let in_use = sessions.of(&id("a"), |_| false);
        sessions.of(&id("c"), |session| *session == id("b"));
        assert_eq!(
            known(&sessions),
            ["a", "b", "c"],
            "rather one too many than one that is missed"
        );
        drop(in_use);
        sessions.of(&id("d"), |session| *session == id("b"));
        assert_eq!(known(&sessions), ["b", "d"]);
    }

    #[test]
    fn what_is_looked_at_again_is_not_news() {
        let sessions = sessions(1);
        see(&sessions, "a");
        assert!(!sessions.of(&id("a"), |_| false).try_lock().unwrap().is_unknown);
        see(&sessions, "b");
        let again = sessions.of(&id("a"), |_| false);
        assert!(again.try_lock().unwrap().is_unknown);
    }

    #[test]
    fn details_of_evicted_sessions_are_bounded() {
        let mut evicted = Evicted::default();
        for number in 0..=MANAGED_DETAILS_MAX {
            evicted.put(id(&number.to_string()), SessionDetails::default());
        }
        assert_eq!(
            (evicted.details.len(), evicted.order.len()),
            (MANAGED_DETAILS_MAX, MANAGED_DETAILS_MAX)
        );
        assert!(!evicted.details.contains_key(&id("0")));
    }
}
