//! After a failure or a new start: finds out which unanswered requests took effect.

use bough_log::{LogError, kind};

use super::{Driver, Tracked};
use crate::crash::engine::{self, ShowError, Shown};
use crate::crash::history::{Event, Place};
use crate::crash::judge::{check_life, check_running};
use crate::crash::report::Verdict;

impl Driver {
    /// After a new start: finds out which unanswered requests took effect.
    pub(crate) fn resolve_all(&mut self) -> Result<(), LogError> {
        let sessions: Vec<u8> = self.sessions.keys().copied().collect();
        sessions.into_iter().try_for_each(|session| self.resolve(session))
    }

    /// Opens a session for writing and finds out which unanswered requests took effect.
    pub(crate) fn resolve(&mut self, session: u8) -> Result<(), LogError> {
        let tracked = self.tracked(session)?;
        let store = self.store()?;
        let life = tracked.life;
        match store.open_for_writing(&tracked.id) {
            Ok(_) => {}
            Err(LogError::NotFound { .. }) => return self.resolve_place(session, tracked),
            Err(error) => return Err(error),
        }
        let shown = match engine::show(&store.read(&tracked.id)?) {
            Ok(shown) => shown,
            Err(ShowError::Refused(error)) => return Err(error),
            Err(error) => {
                self.verdicts.push(error.verdict());
                return Ok(());
            }
        };
        let Some(expected) = self.history.now().lives.get(life).cloned() else {
            return Ok(());
        };
        let incarnation = shown.head.incarnation;
        if expected.incarnation.is_none() {
            self.note_event(Event::CreateDone { life, incarnation });
        }
        match check_running(&shown, &expected) {
            Ok(kept) => {
                let (batches, deltas) = (kept.batches, kept.deltas);
                let event = Event::Reopened { life, batches, deltas };
                self.note_event(event);
                let at = Place::Live;
                self.note_event(Event::Found { life, at });
            }
            Err(verdict) => self.verdicts.push(verdict),
        }
        self.learn(session, &shown);
        Ok(())
    }

    fn resolve_place(&mut self, session: u8, tracked: Tracked) -> Result<(), LogError> {
        let life = tracked.life;
        let Some(expected) = self.history.now().lives.get(life).cloned() else {
            return Ok(());
        };
        let trashed = engine::trashed(&self.store()?, &tracked.id)?;
        let in_trash = trashed.iter().any(|found| Some(*found) == expected.incarnation);
        let at = if in_trash { Place::Trash } else { Place::Nowhere };
        if !expected.may_be(at) {
            let words = format!("{} should be {:?}, is {at:?}", expected.id, expected.place);
            self.verdicts.push(Verdict::lost(words));
        }
        // A removal that failed half-way may come back; everything else is certain once it is seen.
        if at != Place::Nowhere || expected.moving != Some(Place::Nowhere) {
            self.note_event(Event::Found { life, at });
        }
        if in_trash && !expected.pending.is_empty() {
            return self.resolve_from_trash(session, &tracked);
        }
        Ok(())
    }

    /// A request about a session in the trash is unanswered: only undeleting it shows the result.
    fn resolve_from_trash(&mut self, session: u8, tracked: &Tracked) -> Result<(), LogError> {
        let life = tracked.life;
        self.undelete(session, "\"to see what is there\"")?;
        let store = self.store()?;
        let shown = match engine::show(&store.read(&tracked.id)?) {
            Ok(shown) => shown,
            Err(ShowError::Refused(error)) => return Err(error),
            Err(error) => {
                self.verdicts.push(error.verdict());
                return Ok(());
            }
        };
        let Some(expected) = self.history.now().lives.get(life).cloned() else { return Ok(()) };
        let mut rest = shown.records.iter().skip(expected.must().count()).peekable();
        let mut which = Vec::new();
        for (batch, place) in expected.pending.iter().zip(0..) {
            if rest.peek().is_some_and(|record| batch.first() == Some(*record)) {
                rest.nth(batch.len().saturating_sub(1));
                which.push(place);
            }
        }
        self.note_event(Event::Kept { life, which });
        self.note_event(Event::MoveDone { life });
        if let Some(now) = self.history.now().lives.get(life).cloned() {
            self.verdicts.extend(check_life(&shown, &now).err());
        }
        self.learn(session, &shown);
        Ok(())
    }

    fn learn(&mut self, session: u8, shown: &Shown) {
        if let Some(tracked) = self.sessions.get_mut(&session) {
            let records = &shown.records;
            tracked.entries = records
                .iter()
                .filter_map(|record| record.id.as_deref().map(str::to_owned))
                .collect();
            tracked.revisions.clear();
            let revised = records.iter().filter_map(|record| {
                let is_revision = record.kind == kind::REVISION || record.kind == kind::STREAM;
                is_revision
                    .then(|| Some((record.target.as_deref()?.to_owned(), record.revision?)))?
            });
            let streamed = shown.deltas.iter().map(|delta| (delta.target.clone(), delta.revision));
            for (target, revision) in revised.chain(streamed) {
                let newest = tracked.revisions.entry(target).or_insert(0);
                *newest = revision.max(*newest);
            }
        }
    }
}
