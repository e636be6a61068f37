use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bough_session::{
    Delta, EntryId, Incarnation, NewRecord, Record, Removal, Revision, SessionId, SessionMeta,
    SessionState,
};
use bough_store::{Appended, Batch, Durable, Position, StoreError, StoreExt};

use super::context::WriteContext;
use super::run_to_completion::run_to_completion;
use crate::error::ServiceError;
use crate::limits::{WRITE_ATTEMPTS_MAX, WRITE_RETRY_WAIT, WRITE_RETRY_WAIT_MAX};
use crate::open_session::{
    AcceptedState, CommitNotifier, CommitWaiter, Known, OpenSession, OpenSessions, RecentWrite,
    UncommittedEntry, WriteEnd, WriteState,
};
use crate::rules::documents::DocumentFact;
use crate::scope::Scope;
use crate::service::Service;

/// A rule that writes: it reads a session and decides what to write.
#[async_trait]
pub(crate) trait Command: Send + 'static {
    /// The caller's answer when the write is durable.
    type Answer: Send + 'static;

    /// Reads and decides. It is called again if another writer changed the session in between.
    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<Self::Answer>, ServiceError>;
}

/// What to write.
pub(crate) enum Decision<A> {
    /// Nothing; the answer is valid once everything accepted so far is durable.
    Nothing(A),
    /// The first records of a session that does not exist.
    Create(Vec<Record>, A),
    /// A batch.
    Append(Vec<Record>, A),
    /// What a recorder has, with the time of each record: the first records of a session, or a batch.
    Recorded(Vec<NewRecord>, A),
    /// One step of a streaming message.
    Step(Box<Delta>, A),
}

/// Runs a command to completion, even if the caller stops waiting for it.
pub(crate) async fn run<C: Command>(
    service: &Service,
    session: &SessionId,
    command: C,
) -> Result<C::Answer, ServiceError> {
    let sessions = service.runtime().sessions.clone();
    let open = sessions.open(session);
    let (now_ms, expected) = (service.now_ms(), service.expected_incarnation());
    let job = WriteJob { sessions, open, now_ms, expected };
    Ok(run_to_completion(job.run(command)).await?.0)
}

/// Runs a command that the state of a session decides alone. The session must exist for the caller; `decide` gets its state and the
/// time.
pub(crate) async fn change<A: Send + 'static>(
    service: &Service,
    scope: &Scope,
    session: &SessionId,
    decide: impl FnMut(&SessionState, i64) -> Result<Decision<A>, ServiceError> + Send + 'static,
) -> Result<A, ServiceError> {
    run(service, session, StateCommand { scope: scope.clone(), decide }).await
}

struct StateCommand<F> {
    scope: Scope,
    decide: F,
}

#[async_trait]
impl<A, F> Command for StateCommand<F>
where
    A: Send + 'static,
    F: FnMut(&SessionState, i64) -> Result<Decision<A>, ServiceError> + Send + 'static,
{
    type Answer = A;

    async fn decide(
        &mut self,
        context: &mut WriteContext<'_>,
    ) -> Result<Decision<A>, ServiceError> {
        (self.decide)(context.visible(&self.scope)?, context.now_ms)
    }
}

/// Runs a command for a recorder, which has no service. Also returns where the session is after the write, if there was one.
pub(crate) async fn run_recorded<C: Command>(
    sessions: &Arc<OpenSessions>,
    open: &Arc<OpenSession>,
    now_ms: i64,
    command: C,
) -> Result<(C::Answer, Option<WriteEnd>), ServiceError> {
    let (sessions, open) = (sessions.clone(), open.clone());
    let job = WriteJob { sessions, open, now_ms, expected: None };
    run_to_completion(job.run(command)).await
}

/// Begins a session under a fresh id, which has no other writer.
pub(crate) async fn create(
    service: &Service,
    session: &SessionId,
    records: Vec<Record>,
) -> Result<SessionMeta, ServiceError> {
    let runtime = service.runtime();
    let now_ms = service.now_ms();
    let session = session.clone();
    let task = async move {
        let records = dated(records, now_ms);
        let state = Arc::new(first_state(&session, &records));
        let batch = Batch { records, state: Some(state.clone()) };
        let accepted = runtime.store.create(&session, batch).await?;
        accepted.durable.await?;
        Ok(state.meta.clone())
    };
    run_to_completion(task).await
}

pub(super) struct WriteJob {
    pub(super) sessions: Arc<OpenSessions>,
    pub(super) open: Arc<OpenSession>,
    pub(super) now_ms: i64,
    /// The incarnation of the session that the caller means.
    pub(super) expected: Option<Incarnation>,
}

/// How one attempt went on.
enum Attempt<A> {
    /// Nothing was written; the answer is valid once everything accepted before is durable.
    Nothing(A, Option<CommitWaiter>),
    /// The store accepted it; the answer is valid once it is durable.
    Accepted(A, CommitNotifier, Durable),
    /// The store has newer records, or will have them: read again.
    Stale,
    /// The store accepts nothing until the session is reopened.
    Latched,
}

impl WriteJob {
    async fn run<C: Command>(
        self,
        mut command: C,
    ) -> Result<(C::Answer, Option<WriteEnd>), ServiceError> {
        let mut wait = WRITE_RETRY_WAIT;
        for _ in 0..WRITE_ATTEMPTS_MAX {
            match self.attempt(&mut command).await? {
                Attempt::Nothing(answer, newest) => {
                    committed(newest).await?;
                    return Ok((answer, None));
                }
                Attempt::Accepted(answer, notifier, durable) => {
                    return Ok((answer, Some(self.commit(notifier, durable).await?)));
                }
                Attempt::Latched => {
                    self.open.store().reopen(self.open.id()).await?;
                    self.sessions.note_reopened();
                }
                Attempt::Stale => wait = pause(wait).await,
            }
        }
        Err(ServiceError::Busy {
            session: self.open.id().to_string(),
            attempts: WRITE_ATTEMPTS_MAX,
        })
    }

    async fn attempt<C: Command>(
        &self,
        command: &mut C,
    ) -> Result<Attempt<C::Answer>, ServiceError> {
        let mut state = self.open.lock().await;
        match self.decide(&mut state, command).await? {
            Ok(decision) => self.carry_out(&mut state, decision).await,
            Err(refused) => {
                // The refusal may depend on records that are not durable yet. The caller must be able to read them.
                let newest = state.newest.clone();
                drop(state);
                committed(newest).await?;
                Err(refused)
            }
        }
    }

    /// What to write, or why it is refused. The store compares a batch with the present head; an answer that writes
    /// nothing must be about the present state too. Another process may have written since the session was read, unless
    /// this process holds its log: then it is read again.
    async fn decide<C: Command>(
        &self,
        state: &mut WriteState,
        command: &mut C,
    ) -> Result<Result<Decision<C::Answer>, ServiceError>, ServiceError> {
        let read = self.load(state).await?;
        let decided = self.ask(state, command).await;
        let writes = !matches!(decided, Ok(Decision::Nothing(_)) | Err(_));
        if writes || read || self.open.is_newest(state).await? {
            return Ok(decided);
        }
        self.open.forget(state).await;
        self.load(state).await?;
        Ok(self.ask(state, command).await)
    }

    async fn ask<C: Command>(
        &self,
        state: &mut WriteState,
        command: &mut C,
    ) -> Result<Decision<C::Answer>, ServiceError> {
        let is_other = |expected| state.incarnation().is_some_and(|now| now != expected);
        if self.expected.is_some_and(is_other) {
            return Err(ServiceError::OtherIncarnation { session: self.open.id().to_string() });
        }
        command.decide(&mut self.context(state)).await
    }

    /// Waits until an accepted write is durable.
    pub(super) async fn commit(
        &self,
        notifier: CommitNotifier,
        durable: Durable,
    ) -> Result<WriteEnd, StoreError> {
        let (end, outcome) = (notifier.announced, durable.await);
        self.open.note_committed(notifier, &outcome);
        outcome.map(|()| end)
    }

    /// Loads the session; returns whether it was read for that.
    pub(super) async fn load(&self, state: &mut WriteState) -> Result<bool, StoreError> {
        let load = self.open.load(state).await?;
        if load.reopened {
            self.sessions.note_reopened();
        }
        Ok(load.read)
    }

    pub(super) fn context<'a>(&'a self, write_state: &'a mut WriteState) -> WriteContext<'a> {
        WriteContext { open: &self.open, write_state, now_ms: self.now_ms }
    }

    async fn carry_out<A: Send>(
        &self,
        state: &mut WriteState,
        decision: Decision<A>,
    ) -> Result<Attempt<A>, ServiceError> {
        let (accepted, answer) = match decision {
            Decision::Nothing(answer) => {
                return Ok(Attempt::Nothing(answer, state.newest.clone()));
            }
            Decision::Create(records, answer) => {
                (self.create(state, dated(records, self.now_ms)).await, answer)
            }
            Decision::Append(records, answer) => {
                (self.append(state, dated(records, self.now_ms)).await, answer)
            }
            Decision::Recorded(records, answer) if state.accepted().is_none() => {
                (self.create(state, records).await, answer)
            }
            Decision::Recorded(records, answer) => (self.append(state, records).await, answer),
            Decision::Step(delta, answer) => (self.append_step(state, *delta).await, answer),
        };
        match accepted {
            Ok((notifier, durable)) => Ok(Attempt::Accepted(answer, notifier, durable)),
            Err(error) => {
                self.open.forget(state).await;
                match error {
                    StoreError::Conflict { .. }
                    | StoreError::RevisionConflict { .. }
                    | StoreError::Exists { .. } => Ok(Attempt::Stale),
                    StoreError::Locked { .. } if self.sessions.is_settling(self.now_ms) => {
                        Ok(Attempt::Stale)
                    }
                    StoreError::Latched { .. } => Ok(Attempt::Latched),
                    other => Err(other.into()),
                }
            }
        }
    }

    pub(super) async fn create(
        &self,
        state: &mut WriteState,
        records: Vec<NewRecord>,
    ) -> Result<(CommitNotifier, Durable), StoreError> {
        let (folded, added) =
            (Arc::new(first_state(self.open.id(), &records)), added_entries(&records));
        let batch = Batch { records, state: Some(folded.clone()) };
        let appended = self.open.store().create(self.open.id(), batch).await?;
        Ok(self.accepted(state, (Position::default(), folded), appended, added))
    }

    pub(super) async fn append(
        &self,
        state: &mut WriteState,
        records: Vec<NewRecord>,
    ) -> Result<(CommitNotifier, Durable), StoreError> {
        if std::mem::take(&mut state.has_steps) {
            // The batch joins the steps of a message; the feeds must take each of them before.
            self.sessions.catch_up(&self.open).await;
        }
        let Some(mut before) = state.take_accepted() else {
            return Err(StoreError::invalid("a batch for a session that does not exist"));
        };
        fold(Arc::make_mut(&mut before.state), &records);
        let added = added_entries(&records);
        let documents = state.documents.as_ref().map(|_| DocumentFact::of_new(&records));
        for new in &records {
            if let Record::Revision(Revision { entry_id, .. })
            | Record::Removed(Removal { entry_id, .. }) = &new.record
            {
                // The record changes the message beside its stream, so the copy in memory is outdated.
                drop(state.streams.take(entry_id));
            }
        }
        let for_feeds = self.open.is_followed().then(|| records.clone());
        let batch = Batch { records, state: Some(before.state.clone()) };
        let appended = self.open.store().append(self.open.id(), &before.head, batch).await?;
        if let (Some(index), Some(documents)) = (&mut state.documents, documents) {
            index.apply_new(documents, appended.head.seq);
            self.sessions.bound_documents();
        }
        let recent = for_feeds.and_then(|all| RecentWrite::batch(before.position, &appended, all));
        self.keep_for_feeds(&appended, recent);
        Ok(self.accepted(state, (before.position, before.state), appended, added))
    }

    pub(super) async fn append_step(
        &self,
        state: &mut WriteState,
        delta: Delta,
    ) -> Result<(CommitNotifier, Durable), StoreError> {
        let taken = (state.take_accepted(), state.streams.take(&delta.entry_id));
        let (Some(mut before), Some(mut message)) = taken else {
            return Err(StoreError::invalid("a step for a message that is not in memory"));
        };
        let current = message.entry.revision;
        if delta.revision != current + 1 {
            return Err(StoreError::RevisionConflict { entry: delta.entry_id, current });
        }
        message.apply(&delta).map_err(|error| StoreError::invalid(error.to_string()))?;
        Arc::make_mut(&mut before.state).meta.touch(delta.at_ms);
        let for_feeds = self.open.is_followed().then(|| delta.clone());
        let appended = self.open.store().append_delta(self.open.id(), delta).await?;
        state.streams.put(message.entry.id.clone(), message);
        state.has_steps = true;
        let recent = for_feeds.and_then(|step| RecentWrite::step(before.position, &appended, step));
        self.keep_for_feeds(&appended, recent);
        Ok(self.accepted(state, (before.position, before.state), appended, Vec::new()))
    }

    /// Keeps an accepted write for the subscribers of the session.
    fn keep_for_feeds(&self, appended: &Appended, write: Option<RecentWrite>) {
        if let Some(write) = write {
            self.open.keep_for_feeds(appended.head.incarnation, write);
            self.sessions.bound_recent_writes();
        }
    }

    /// Notes an accepted write, so that the next writer decides on top of it.
    fn accepted(
        &self,
        state: &mut WriteState,
        (before, mut folded): (Position, Arc<SessionState>),
        appended: Appended,
        added: Vec<(EntryId, UncommittedEntry)>,
    ) -> (CommitNotifier, Durable) {
        let Appended { head, position, durable } = appended;
        // The store may have joined steps of a stream into a record of its own before ours.
        if folded.seq != head.seq {
            Arc::make_mut(&mut folded).seq = head.seq;
        }
        let accepted = AcceptedState { head, position: before.join(position), state: folded };
        state.known = Known::Present(Box::new(accepted));
        let announced = (head, position);
        (self.open.note_accepted(state, announced, added), durable)
    }
}

/// Waits until a write, and so everything before it, is durable.
async fn committed(newest: Option<CommitWaiter>) -> Result<(), ServiceError> {
    match newest {
        Some(newest) => Ok(newest.wait().await?),
        None => Ok(()),
    }
}

async fn pause(wait: Duration) -> Duration {
    tokio::time::sleep(wait).await;
    WRITE_RETRY_WAIT_MAX.min(wait * 2)
}

/// The state of a session that begins with these records.
fn first_state(session: &SessionId, records: &[NewRecord]) -> SessionState {
    let mut state = SessionState::new(session.clone());
    fold(&mut state, records);
    state
}

pub(super) fn fold(state: &mut SessionState, records: &[NewRecord]) {
    for new in records {
        let seq = state.seq + 1;
        state.apply(&new.record, seq, new.at_ms);
    }
}

pub(super) fn dated(records: Vec<Record>, at_ms: i64) -> Vec<NewRecord> {
    records.into_iter().map(|record| record.at(at_ms)).collect()
}

/// What the next writer must know of entries before the records are durable.
fn added_entries(records: &[NewRecord]) -> Vec<(EntryId, UncommittedEntry)> {
    let added = records.iter().filter_map(|new| match new.record.known() {
        Record::Entry(entry) => Some((entry.id.clone(), entry.into())),
        Record::Removed(removal) => Some((removal.entry_id.clone(), UncommittedEntry::hidden())),
        _ => None,
    });
    added.collect()
}
