use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bough_session::{
    Delta, EntryId, Incarnation, NewRecord, Record, SessionId, SessionMeta, SessionState,
};
use bough_store::{Appended, Batch, Durable, StoreError};

use super::bench::Bench;
use super::desk::{Desk, Loaded, PendingEntry, Present, Settling, Ticket, Work};
use super::to_the_end::to_the_end;
use crate::error::ServiceError;
use crate::limits::{WRITE_ATTEMPTS_MAX, WRITE_RETRY_WAIT, WRITE_RETRY_WAIT_MAX};
use crate::runtime::Runtime;
use crate::service::Service;

/// A rule that writes: it looks at the session and says what to write.
#[async_trait]
pub(crate) trait Change: Send + 'static {
    /// What the caller is told when it is done.
    type Answer: Send + 'static;

    /// Looks and decides. It is asked again when somebody else changed the session in between.
    async fn decide(&mut self, bench: &mut Bench<'_>) -> Result<Plan<Self::Answer>, ServiceError>;
}

/// What to write.
pub(crate) enum Plan<A> {
    /// Nothing; the answer holds once everything accepted so far is durable.
    Nothing(A),
    /// The first records of a session that does not exist.
    Create(Vec<Record>, A),
    /// A batch.
    Append(Vec<Record>, A),
    /// One step of a streaming message.
    Step(Box<Delta>, A),
}

/// Runs a change to its end, also when the caller stops waiting for it.
pub(crate) async fn run<C: Change>(
    service: &Service,
    session: &SessionId,
    change: C,
) -> Result<C::Answer, ServiceError> {
    let runtime = service.runtime();
    let desk = runtime.desks.desk(session);
    let (now_ms, life) = (service.now_ms(), service.expected_life());
    let job = Job { desk, now_ms, life, runtime };
    to_the_end(job.run(change)).await
}

/// Begins a session under a fresh id, which nobody else can be writing.
pub(crate) async fn create(
    service: &Service,
    session: &SessionId,
    records: Vec<Record>,
) -> Result<SessionMeta, ServiceError> {
    let runtime = service.runtime();
    let now_ms = service.now_ms();
    let session = session.clone();
    let task = async move {
        let mut state = SessionState::new(session.clone());
        fold(&mut state, &records, now_ms);
        let batch = Batch::from(dated(records, now_ms));
        let accepted = runtime.store.create(&session, batch).await?;
        accepted.durable.await?;
        Ok(state.meta())
    };
    to_the_end(task).await
}

struct Job {
    runtime: Arc<Runtime>,
    desk: Arc<Desk>,
    now_ms: i64,
    /// The life of the session that the caller means.
    life: Option<Incarnation>,
}

/// How one attempt went on.
enum Attempt<A> {
    /// Nothing was written; the answer holds once what was accepted before is durable.
    Nothing(A, Option<Ticket>),
    /// The store accepted it; the answer holds once it is durable.
    Accepted(A, Settling, Durable),
    /// The store has moved on, or is about to: look again.
    Stale,
    /// The store takes nothing until the session is opened again.
    Latched,
}

impl Job {
    async fn run<C: Change>(self, mut change: C) -> Result<C::Answer, ServiceError> {
        let mut wait = WRITE_RETRY_WAIT;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            match self.attempt(&mut change).await? {
                Attempt::Nothing(answer, newest) => {
                    settled(newest).await?;
                    return Ok(answer);
                }
                Attempt::Accepted(answer, settling, durable) => {
                    let outcome = durable.await;
                    self.desk.settle(settling, &outcome);
                    outcome?;
                    return Ok(answer);
                }
                Attempt::Latched => {
                    self.runtime.store.reopen(&self.desk.session).await?;
                    self.runtime.note_reopened();
                }
                Attempt::Stale => wait = pause(wait).await,
            }
        }
        Err(ServiceError::Busy {
            session: self.desk.session.to_string(),
            attempts: WRITE_ATTEMPTS_MAX,
        })
    }

    async fn attempt<C: Change>(&self, change: &mut C) -> Result<Attempt<C::Answer>, ServiceError> {
        let mut work = self.desk.work.lock().await;
        match self.decide(&mut work, change).await? {
            Ok(plan) => self.carry_out(&mut work, plan).await,
            Err(refused) => {
                // The refusal may rest on what is not durable yet; who is told of it must be able to see why.
                let newest = work.newest.clone();
                drop(work);
                settled(newest).await?;
                Err(refused)
            }
        }
    }

    /// What to write, or why nothing may be. The store compares a batch with what is stored when it gets it; an answer that
    /// writes nothing must be of the present too. Another process may have written since the session was read, unless this
    /// one holds its log: then it is read again.
    async fn decide<C: Change>(
        &self,
        work: &mut Work,
        change: &mut C,
    ) -> Result<Result<Plan<C::Answer>, ServiceError>, ServiceError> {
        let read = self.load(work).await?;
        let decided = self.ask(work, change).await;
        let writes = !matches!(decided, Ok(Plan::Nothing(_)) | Err(_));
        if writes || read || work.is_newest(&self.desk.session, &*self.runtime.store) {
            return Ok(decided);
        }
        self.desk.forget(work).await;
        self.load(work).await?;
        Ok(self.ask(work, change).await)
    }

    async fn ask<C: Change>(
        &self,
        work: &mut Work,
        change: &mut C,
    ) -> Result<Plan<C::Answer>, ServiceError> {
        let is_other = |life| work.life().is_some_and(|now| now != life);
        if self.life.is_some_and(is_other) {
            return Err(ServiceError::OtherLife { session: self.desk.session.to_string() });
        }
        change.decide(&mut self.bench(work)).await
    }

    /// Makes the session known; says whether it was read for that.
    async fn load(&self, work: &mut Work) -> Result<bool, ServiceError> {
        let load = self.desk.load(work, &*self.runtime.store).await?;
        if load.reopened {
            self.runtime.note_reopened();
        }
        Ok(load.read)
    }

    fn bench<'a>(&'a self, work: &'a mut Work) -> Bench<'a> {
        Bench { desk: &self.desk, work, store: &*self.runtime.store, now_ms: self.now_ms }
    }

    async fn carry_out<A: Send>(
        &self,
        work: &mut Work,
        plan: Plan<A>,
    ) -> Result<Attempt<A>, ServiceError> {
        let (handed, answer) = match plan {
            Plan::Nothing(answer) => return Ok(Attempt::Nothing(answer, work.newest.clone())),
            Plan::Create(records, answer) => (self.hand_create(work, records).await, answer),
            Plan::Append(records, answer) => (self.hand_batch(work, records).await, answer),
            Plan::Step(delta, answer) => (self.hand_step(work, *delta).await, answer),
        };
        match handed {
            Ok((settling, durable)) => Ok(Attempt::Accepted(answer, settling, durable)),
            Err(error) => {
                self.desk.forget(work).await;
                match error {
                    StoreError::Conflict { .. }
                    | StoreError::RevisionConflict { .. }
                    | StoreError::Exists { .. } => Ok(Attempt::Stale),
                    StoreError::Locked { .. } if self.runtime.is_settling(self.now_ms) => {
                        Ok(Attempt::Stale)
                    }
                    StoreError::Latched { .. } => Ok(Attempt::Latched),
                    other => Err(other.into()),
                }
            }
        }
    }

    async fn hand_create(
        &self,
        work: &mut Work,
        records: Vec<Record>,
    ) -> Result<(Settling, Durable), StoreError> {
        let session = &self.desk.session;
        let mut state = SessionState::new(session.clone());
        fold(&mut state, &records, self.now_ms);
        let (state, added) = (Arc::new(state), added_entries(&records));
        let batch = Batch { records: dated(records, self.now_ms), state: Some(state.clone()) };
        let accepted = self.runtime.store.create(session, batch).await?;
        Ok(self.accepted(work, state, accepted, added))
    }

    async fn hand_batch(
        &self,
        work: &mut Work,
        records: Vec<Record>,
    ) -> Result<(Settling, Durable), StoreError> {
        if std::mem::take(&mut work.stepped) {
            // The batch puts the steps of a message together; who follows them hears each of them before.
            self.runtime.hub.catch_up(&self.desk.session).await;
        }
        let Some(mut present) = take_present(work) else {
            return Err(StoreError::invalid("a batch for a session that does not exist"));
        };
        fold(Arc::make_mut(&mut present.state), &records, self.now_ms);
        let added = added_entries(&records);
        for record in &records {
            if let Record::Revision(revision) = record {
                // A change past the stream: the copy at hand is no longer the newest.
                drop(work.streams.take(&revision.entry_id));
            }
        }
        let (session, store) = (&self.desk.session, &self.runtime.store);
        let state = Some(present.state.clone());
        let batch = Batch { records: dated(records, self.now_ms), state };
        let accepted = store.append(session, &present.head, batch).await?;
        Ok(self.accepted(work, present.state, accepted, added))
    }

    async fn hand_step(
        &self,
        work: &mut Work,
        delta: Delta,
    ) -> Result<(Settling, Durable), StoreError> {
        let taken = (take_present(work), work.streams.take(&delta.entry_id));
        let (Some(mut present), Some(mut stream)) = taken else {
            return Err(StoreError::invalid("a step for a message that is not at hand"));
        };
        stream.step(&delta).map_err(|error| StoreError::invalid(error.to_string()))?;
        Arc::make_mut(&mut present.state).touch(delta.at_ms);
        let session = &self.desk.session;
        let accepted = self.runtime.store.append_delta(session, delta).await?;
        work.streams.put(stream);
        work.stepped = true;
        Ok(self.accepted(work, present.state, accepted, Vec::new()))
    }

    /// Notes an accepted batch, so that the next writer decides on top of it.
    fn accepted(
        &self,
        work: &mut Work,
        mut state: Arc<SessionState>,
        accepted: Appended,
        added: Vec<(EntryId, PendingEntry)>,
    ) -> (Settling, Durable) {
        // The store may have put steps of a stream together into a record of its own before ours.
        if state.seq != accepted.head.seq {
            Arc::make_mut(&mut state).seq = accepted.head.seq;
        }
        work.loaded = Some(Loaded::Present(Box::new(Present { head: accepted.head, state })));
        (self.desk.accept(work, added), accepted.durable)
    }
}

async fn settled(ticket: Option<Ticket>) -> Result<(), ServiceError> {
    match ticket {
        Some(ticket) => Ok(ticket.settled().await?),
        None => Ok(()),
    }
}

async fn pause(wait: Duration) -> Duration {
    tokio::time::sleep(wait).await;
    WRITE_RETRY_WAIT_MAX.min(wait * 2)
}

/// Takes the state out while the store decides: if this is broken off in between, the state is read anew.
fn take_present(work: &mut Work) -> Option<Present> {
    match work.loaded.take() {
        Some(Loaded::Present(present)) => Some(*present),
        Some(Loaded::Absent) | None => None,
    }
}

pub(super) fn fold(state: &mut SessionState, records: &[Record], at_ms: i64) {
    for record in records {
        let seq = state.seq + 1;
        state.apply(record, seq, at_ms);
    }
}

pub(super) fn dated(records: Vec<Record>, at_ms: i64) -> Vec<NewRecord> {
    records.into_iter().map(|record| record.at(at_ms)).collect()
}

fn added_entries(records: &[Record]) -> Vec<(EntryId, PendingEntry)> {
    records
        .iter()
        .filter_map(Record::as_entry)
        .map(|entry| {
            let pending =
                PendingEntry { parent_id: entry.parent_id.clone(), timestamp: entry.timestamp };
            (entry.id.clone(), pending)
        })
        .collect()
}
