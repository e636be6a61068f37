//! The steps of a history, each with what was asked and what was answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::engine::LogStore;
use bough_log::{Envelope, Expected, Head, LogError, NewDelta, kind};
use bough_platform::Clock;

use super::{Driver, Tracked, is_refusal};
use crate::crash::engine::{self, ShowError};
use crate::crash::history::{Batch, Event, LifeId, Place};
use crate::crash::judge::check_life;
use crate::crash::report::Verdict;
use crate::crash::workload::{SMALL, Size};

/// A life that was asked for.
struct Begun {
    life: LifeId,
    id: String,
    batch: Batch,
    /// What the session was before.
    before: Option<Tracked>,
}

impl Driver {
    pub(super) fn create(&mut self, session: u8) -> Result<(), LogError> {
        let store = self.store()?;
        let begun = self.begin_life(session, SMALL);
        match store.create(&begun.id, &begun.batch) {
            Ok(head) => {
                self.life_is_there(session, &begun, head);
                Ok(())
            }
            Err(error) => Err(self.life_is_refused(session, begun, error)),
        }
    }

    /// What is built out of sight appears whole or not at all.
    pub(super) fn import(&mut self, session: u8) -> Result<(), LogError> {
        let store = self.store()?;
        let begun = self.begin_life(session, Size { records: 4, bytes: 60 });
        let mut staged = store.stage("import", &begun.id)?;
        let (first, rest) = begun.batch.split_at(begun.batch.len() / 2);
        staged.add(first)?;
        staged.add(rest)?;
        let head = staged.store().accepted_head(&begun.id)?;
        if let Err(error) = staged.publish() {
            return Err(self.life_is_refused(session, begun, error));
        }
        self.life_is_there(session, &begun, head);
        staged.discard()
    }

    fn begin_life(&mut self, session: u8, size: Size) -> Begun {
        let life = self.history.now().lives.len();
        let id = format!("s{session}");
        let tracked = Tracked {
            life,
            id: id.clone(),
            entries: Vec::new(),
            written: 0,
            flavour: self.flavour,
            revisions: BTreeMap::new(),
        };
        let before = self.sessions.insert(session, tracked);
        let batch = self.batch(session, size);
        self.note_event(Event::CreateBegun { id: id.clone() });
        self.note_event(Event::AppendBegun { life, batch: Arc::clone(&batch) });
        Begun { life, id, batch, before }
    }

    fn life_is_there(&mut self, session: u8, begun: &Begun, head: Head) {
        let (life, incarnation) = (begun.life, head.incarnation);
        self.note_event(Event::CreateDone { life, incarnation });
        self.appended(session, &begun.batch);
        self.note_event(Event::Synced { life });
    }

    /// An id that is taken leaves everything as it was; after any other failure nobody knows yet.
    fn life_is_refused(&mut self, session: u8, begun: Begun, error: LogError) -> LogError {
        if let (LogError::Exists { .. }, Some(before)) = (&error, begun.before) {
            self.sessions.insert(session, before);
            self.note_event(Event::CreateRefused { life: begun.life });
        }
        error
    }

    /// New entries, each the child of the one before.
    pub(super) fn batch(&mut self, session: u8, size: Size) -> Batch {
        let mut records = Vec::new();
        let at_ms = self.clock.now_ms();
        if let Some(tracked) = self.sessions.get_mut(&session) {
            let mut parent = tracked.entries.last().cloned();
            for _ in 0..size.records {
                let (id, payload) = tracked.next_entry(size.bytes);
                records.push(Envelope::entry(&id, parent.as_deref(), at_ms, payload));
                parent = Some(id);
            }
        }
        records.into()
    }

    pub(crate) fn append(&mut self, session: u8, batch: Batch) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let store = self.store()?;
        let begun = Event::AppendBegun { life: tracked.life, batch: Arc::clone(&batch) };
        self.note_event(begun);
        match store.append(&tracked.id, Expected::Any, &batch) {
            Ok(_) => {
                self.appended(session, &batch);
                Ok(())
            }
            Err(error) => {
                if is_refusal(&error) {
                    self.note_event(Event::AppendRefused { life: tracked.life });
                } else {
                    self.failed = Some(batch);
                }
                Err(error)
            }
        }
    }

    fn appended(&mut self, session: u8, batch: &Batch) {
        if let Some(tracked) = self.sessions.get_mut(&session) {
            let life = tracked.life;
            tracked
                .entries
                .extend(batch.iter().filter_map(|record| record.id.as_deref().map(str::to_owned)));
            self.note_event(Event::AppendDone { life });
        }
    }

    pub(super) fn group(&mut self, session: u8, count: usize) -> Result<(), LogError> {
        let store = self.store()?;
        let tracked = self.tracked(session)?;
        let mut waiting = Vec::new();
        for _ in 0..count {
            let batch = self.batch(session, SMALL);
            let begun = Event::AppendBegun { life: tracked.life, batch: Arc::clone(&batch) };
            self.note_event(begun);
            match store.enqueue(&tracked.id, Expected::Any, &bough_log::Batch::new(&batch)) {
                Ok(pending) => waiting.push((pending, batch)),
                Err(error) => {
                    self.note_event(Event::AppendRefused { life: tracked.life });
                    return Err(error);
                }
            }
        }
        for (pending, batch) in waiting {
            pending.wait()?;
            self.appended(session, &batch);
        }
        Ok(())
    }

    pub(super) fn stale(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let store = self.store()?;
        let head = store.read(&tracked.id)?.head();
        let stale = Head::genesis(&tracked.id, head.incarnation);
        let batch = self.batch(session, SMALL);
        match store.append(&tracked.id, Expected::Head(stale), &batch) {
            Err(LogError::Conflict { current }) if current == head => Ok(()),
            Err(LogError::Conflict { .. }) => self.wrong("a conflict does not carry the head"),
            Err(error) => Err(error),
            Ok(_) => self.wrong("an append against an old head was taken"),
        }
    }

    pub(super) fn old_life(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let store = self.store()?;
        let head = store.read(&tracked.id)?.head();
        let lives = &self.history.now().lives;
        let earlier = lives.iter().filter(|life| life.id == tracked.id);
        let other = earlier.filter_map(|life| life.incarnation).find(|i| *i != head.incarnation);
        let Some(incarnation) = other else { return Ok(()) };
        let batch = self.batch(session, SMALL);
        let expected = Expected::Head(Head { incarnation, ..head });
        match store.append(&tracked.id, expected, &batch) {
            Err(LogError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => self.wrong("an append against a head of an earlier life was taken"),
        }
    }

    pub(super) fn second_writer(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        // Whoever writes has the lock.
        self.store()?.open_for_writing(&tracked.id)?;
        let before = self.disk.digest();
        let other = self.door_to(&self.disk.another_process());
        let platform = engine::platform(other, &self.clock, 98);
        let store = LogStore::open(platform, engine::options(self.scale))?;
        let record = Envelope::plain("note", 0, "\"by another\"");
        match store.append(&tracked.id, Expected::Any, vec![record]) {
            Err(LogError::Locked { .. }) if self.disk.digest() == before => Ok(()),
            Err(LogError::Locked { .. }) => self.wrong("a refused writer wrote"),
            Err(error) => Err(error),
            Ok(_) => self.wrong("two processes write one session"),
        }
    }

    pub(super) fn repeat(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let Some(id) = tracked.entries.last() else {
            return Ok(());
        };
        let record = Envelope::entry(id, None, self.clock.now_ms(), "\"again\"");
        match self.store()?.append(&tracked.id, Expected::Any, vec![record]) {
            Err(LogError::Duplicate { .. }) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => self.wrong("an entry was taken twice"),
        }
    }

    pub(super) fn wrong(&mut self, words: &str) -> Result<(), LogError> {
        self.verdicts.push(Verdict::broken(words));
        Ok(())
    }

    pub(super) fn branch(&mut self, session: u8) -> Result<(), LogError> {
        let at_ms = self.clock.now_ms();
        let mut records = Vec::new();
        if let Some(tracked) = self.sessions.get_mut(&session) {
            let beside = tracked.entries.iter().nth_back(1).cloned();
            let (id, payload) = tracked.next_entry(30);
            records.push(Envelope::entry(&id, beside.as_deref(), at_ms, payload));
        }
        self.append(session, records.into())
    }

    pub(super) fn move_leaf(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let first = tracked.entries.first().map(String::as_str);
        let record = Envelope::leaf(first, self.clock.now_ms());
        self.append(session, [record].into())
    }

    pub(super) fn note(&mut self, session: u8) -> Result<(), LogError> {
        let at_ms = self.clock.now_ms();
        let mut records = Vec::new();
        if let Some(tracked) = self.sessions.get_mut(&session) {
            let (_, payload) = tracked.next_entry(25);
            records.push(Envelope::plain("note", at_ms, payload));
        }
        self.append(session, records.into())
    }

    pub(super) fn revise(&mut self, session: u8) -> Result<(), LogError> {
        let at_ms = self.clock.now_ms();
        let Some(tracked) = self.sessions.get_mut(&session) else {
            return Ok(());
        };
        let Some(target) = tracked.entries.last().cloned() else {
            return Ok(());
        };
        let revision = tracked.next_revision(&target);
        let (_, payload) = tracked.next_entry(30);
        let record = Envelope::revision(&target, revision, at_ms, payload);
        self.append(session, [record].into())
    }

    pub(super) fn delta(&mut self, session: u8, bytes: usize) -> Result<(), LogError> {
        let at_ms = self.clock.now_ms();
        let store = self.store()?;
        let tracked = self.tracked(session)?;
        let Some(target) = tracked.entries.last().cloned() else {
            return Ok(());
        };
        let is_open = store.read(&tracked.id)?.streaming().contains(&target);
        let Some(kept) = self.sessions.get_mut(&session) else {
            return Ok(());
        };
        let revision = kept.next_revision(&target);
        let (_, payload) = kept.next_entry(bytes);
        let life = tracked.life;
        if !is_open {
            let opening = Envelope {
                target: Some(target.clone().into()),
                revision: Some(revision - 1),
                ..Envelope::plain(kind::STREAM, at_ms, "null")
            };
            let batch = [opening].into();
            self.note_event(Event::AppendBegun { life, batch });
        }
        let delta = NewDelta { target, revision, at_ms, payload };
        let begun = Event::DeltaBegun { life, delta: delta.clone() };
        self.note_event(begun);
        let pending = match store.enqueue_delta(&tracked.id, &delta) {
            Ok(pending) => pending,
            Err(error) => {
                self.note_event(Event::DeltaRefused { life });
                if !is_open {
                    self.note_event(Event::AppendRefused { life });
                }
                return Err(error);
            }
        };
        pending.wait()?;
        if !is_open {
            self.note_event(Event::AppendDone { life });
        }
        self.note_event(Event::DeltaDone { life });
        Ok(())
    }

    pub(super) fn delete(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let store = self.store()?;
        let life = tracked.life;
        let payload = format!("\"deleted {}\"", tracked.written);
        let record = Envelope::plain(kind::TOMBSTONE, self.clock.now_ms(), payload.clone());
        let batch = [record].into();
        self.note_event(Event::AppendBegun { life, batch });
        let to = Place::Trash;
        self.note_event(Event::MoveBegun { life, to });
        store.delete(&tracked.id, self.clock.now_ms(), &payload)?;
        self.note_event(Event::AppendDone { life });
        self.note_event(Event::Synced { life });
        self.note_event(Event::MoveDone { life });
        Ok(())
    }

    pub(super) fn undo(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let life = tracked.life;
        self.undelete(session, &format!("\"undone {}\"", tracked.written))?;
        self.note_event(Event::AppendDone { life });
        self.note_event(Event::Synced { life });
        self.note_event(Event::MoveDone { life });
        Ok(())
    }

    pub(super) fn undelete(&mut self, session: u8, payload: &str) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let store = self.store()?;
        let (life, at_ms) = (tracked.life, self.clock.now_ms());
        let incarnation = self.history.now().lives.get(life).and_then(|life| life.incarnation);
        let batch = [Envelope::plain(kind::RESTORED, at_ms, payload.to_owned())].into();
        self.note_event(Event::AppendBegun { life, batch });
        self.note_event(Event::MoveBegun { life, to: Place::Live });
        store.undelete(&tracked.id, incarnation, at_ms, payload).map(|_| ())
    }

    pub(super) fn purge(&mut self) -> Result<(), LogError> {
        let store = self.store()?;
        let lives = &self.history.now().lives;
        let trashed: Vec<LifeId> = (0..lives.len())
            .filter(|life| lives.get(*life).is_some_and(|life| life.place == Place::Trash))
            .collect();
        for life in &trashed {
            let (life, to) = (*life, Place::Nowhere);
            self.note_event(Event::MoveBegun { life, to });
        }
        store.purge(i64::MAX)?;
        for life in trashed {
            self.note_event(Event::MoveDone { life });
        }
        Ok(())
    }

    pub(super) fn read_elsewhere(&mut self) -> Result<(), LogError> {
        let other = self.disk.another_process();
        let platform = engine::platform(Arc::new(other), &self.clock, 99);
        let reader = LogStore::open(platform, engine::options(self.scale))?;
        let before = self.disk.digest();
        for life in self.history.now().lives.clone() {
            if life.place != Place::Live {
                continue;
            }
            match engine::show(&reader.read(&life.id)?) {
                Ok(shown) => self.verdicts.extend(check_life(&shown, &life).err()),
                Err(ShowError::Refused(error)) => return Err(error),
                Err(error) => self.verdicts.push(error.verdict()),
            }
        }
        if self.disk.digest() != before {
            self.verdicts.push(Verdict::broken("reading wrote"));
        }
        Ok(())
    }
}
