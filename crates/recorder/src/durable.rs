//! Recording into logs while the agent works.
//!
//! Events go into a bounded buffer; a task of its own turns them into records and hands them to the sink in
//! batches. Whoever says an event waits only when the buffer is full. An event counts as stored when the
//! sink has acknowledged all records of it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bough_session::{NewRecord, Record};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};

use crate::event::AgentEvent;
use crate::limits::{DURABLE_BATCH_RECORDS_MAX, DURABLE_BUFFER_EVENTS, DURABLE_HELD_SESSIONS_MAX};
use crate::model::Session;
use crate::recorder::{Notice, SessionRecorderConfig};
use crate::translate::{RecordBatch, Translator, fold_records};

mod claims;
mod links;
mod whereabouts;

use whereabouts::Whereabouts;

/// Where the records of sessions go: a store, as far as recording needs to know it.
#[async_trait]
pub trait RecordSink: Send + Sync + 'static {
    /// Why something was not loaded or stored.
    type Error: std::error::Error + Send + Sync + 'static;
    /// A session that one recorder records. While the recorder has it and does not rest, no other recorder gets one of
    /// the same session.
    type Claim: Send + 'static;

    /// All records of a session; none if there is no such session.
    async fn load(&self, session_id: &str) -> Result<Vec<Record>, Self::Error>;

    /// Claims a session and reads it. An error while another recorder has it.
    async fn claim(&self, session_id: &str) -> Result<(Self::Claim, Vec<Record>), Self::Error>;

    /// No loop of the session is open: another recorder may claim it.
    fn rest(&self, _claim: &mut Self::Claim) {}

    /// Goes on with a session after a rest; `false` if somebody else recorded into it meanwhile. The claim is then of no
    /// more use.
    async fn renew(&self, _claim: &mut Self::Claim) -> Result<bool, Self::Error> {
        Ok(true)
    }

    /// Appends records to a session, making it if it is new. They are on the disk, all of them, when this
    /// returns; if it fails, nothing may be believed about them.
    async fn append(
        &self,
        claim: &mut Self::Claim,
        records: Vec<NewRecord>,
    ) -> Result<(), Self::Error>;
}

/// Told of what was not as expected: the number of the event (from 1), and what it was.
pub type NoticeFn = Arc<dyn Fn(u64, &Notice) + Send + Sync>;

/// How a durable recorder records.
#[derive(Clone)]
pub struct DurableOptions {
    /// What is recorded.
    pub config: SessionRecorderConfig,
    /// How many events may wait to be stored.
    pub buffer_events: usize,
    /// Told of what was not as expected.
    pub on_notice: Option<NoticeFn>,
}

impl Default for DurableOptions {
    fn default() -> Self {
        Self {
            config: SessionRecorderConfig::default(),
            buffer_events: DURABLE_BUFFER_EVENTS,
            on_notice: None,
        }
    }
}

impl fmt::Debug for DurableOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableOptions")
            .field("config", &self.config)
            .field("buffer_events", &self.buffer_events)
            .finish_non_exhaustive()
    }
}

/// Why an event is not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError<E: std::error::Error + 'static> {
    /// The sink failed; nothing more of this session is stored until it is recorded anew.
    #[error(
        "session {session_id:?} is not stored any further: {source}; mend that, then record it anew"
    )]
    NotStored {
        /// The session.
        session_id: String,
        /// Why.
        source: Arc<E>,
    },
    /// The sink broke off in the middle of storing; nothing more of this session is stored until it is
    /// recorded anew.
    #[error(
        "session {session_id:?} is not stored any further: storing it panicked ({message}); mend the sink, then \
         record again"
    )]
    Panicked {
        /// The session.
        session_id: String,
        /// What the panic said.
        message: String,
    },
    /// The recorder has ended.
    #[error("the recorder has ended; start another one")]
    Ended,
}

/// A sink's error is shared, so it need not be one that can be cloned.
impl<E: std::error::Error + 'static> Clone for DurableError<E> {
    fn clone(&self) -> Self {
        match self {
            Self::NotStored { session_id, source } => {
                Self::NotStored { session_id: session_id.clone(), source: Arc::clone(source) }
            }
            Self::Panicked { session_id, message } => {
                Self::Panicked { session_id: session_id.clone(), message: message.clone() }
            }
            Self::Ended => Self::Ended,
        }
    }
}

/// What was recorded, all told.
#[derive(Debug)]
pub struct Recording<E: std::error::Error + 'static> {
    /// The sessions that events came for, in the order in which they were first heard of, without those that are
    /// not stored as they should be.
    pub sessions: Vec<Session>,
    /// Why the others are not.
    pub failures: Vec<DurableError<E>>,
    /// How many events are not stored, because their sessions are not.
    pub events_not_stored: u64,
}

/// Records events into a sink. Cheap to clone; the recorder ends with its last clone, or with
/// [`DurableRecorder::finish`].
pub struct DurableRecorder<S: RecordSink> {
    commands: mpsc::Sender<Command<S>>,
    stored: watch::Receiver<u64>,
    task: Arc<JoinHandle<()>>,
}

/// Everything that can wake the recording task.
enum Command<S: RecordSink> {
    Event(Box<AgentEvent>),
    Sync(oneshot::Sender<Result<(), DurableError<S::Error>>>),
    Finish(oneshot::Sender<Recording<S::Error>>),
}

impl<S: RecordSink> DurableRecorder<S> {
    /// Starts recording, on the tokio runtime that this is called on.
    #[must_use]
    pub fn start(sink: Arc<S>, options: DurableOptions) -> Self {
        let (commands, inbox) = mpsc::channel(options.buffer_events.max(1));
        let (told, stored) = watch::channel(0);
        let task = Task {
            sink,
            translator: Translator::new(options.config),
            on_notice: options.on_notice,
            heard: 0,
            translated: 0,
            told,
            order: Vec::new(),
            known: BTreeSet::new(),
            waiting: Vec::new(),
            failed: BTreeMap::new(),
            events_not_stored: 0,
            whereabouts: Whereabouts::default(),
            guests: BTreeMap::new(),
            claims: HashMap::new(),
            resting: BTreeSet::new(),
        };
        Self { commands, stored, task: Arc::new(tokio::spawn(task.run(inbox))) }
    }

    /// Takes in an event. Waits only while too many are not stored yet.
    pub async fn record(&self, event: AgentEvent) -> Result<(), DurableError<S::Error>> {
        let sent = self.commands.send(Command::Event(Box::new(event))).await;
        sent.map_err(|_| DurableError::Ended)
    }

    /// Waits until every event that was taken in is stored; an error if one is not.
    pub async fn sync(&self) -> Result<(), DurableError<S::Error>> {
        let (told, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Sync(told)).await;
        sent.map_err(|_| DurableError::Ended)?;
        answer.await.unwrap_or(Err(DurableError::Ended))
    }

    /// How many of the events that were taken in are done with: stored, or reported as not.
    #[must_use]
    pub fn done(&self) -> u64 {
        *self.stored.borrow()
    }

    /// Whether the recorder has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Breaks off what is still open, stores it, and says what was recorded.
    pub async fn finish(self) -> Result<Recording<S::Error>, DurableError<S::Error>> {
        let (told, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Finish(told)).await;
        sent.map_err(|_| DurableError::Ended)?;
        answer.await.map_err(|_| DurableError::Ended)
    }
}

impl<S: RecordSink> Clone for DurableRecorder<S> {
    fn clone(&self) -> Self {
        Self {
            commands: self.commands.clone(),
            stored: self.stored.clone(),
            task: Arc::clone(&self.task),
        }
    }
}

impl<S: RecordSink> fmt::Debug for DurableRecorder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableRecorder")
            .field("done", &self.done())
            .field("has_ended", &self.has_ended())
            .finish()
    }
}

/// The recording task.
struct Task<S: RecordSink> {
    sink: Arc<S>,
    translator: Translator,
    on_notice: Option<NoticeFn>,
    /// How many events were taken in, and of how many the records are known.
    heard: u64,
    translated: u64,
    told: watch::Sender<u64>,
    /// The sessions that events came for, in order.
    order: Vec<String>,
    known: BTreeSet<String>,
    waiting: Vec<Waiting>,
    failed: BTreeMap<String, DurableError<S::Error>>,
    events_not_stored: u64,
    whereabouts: Whereabouts,
    /// Sessions that are at hand only for links, and how many records they had.
    guests: BTreeMap<String, usize>,
    /// The sessions that this recorder records.
    claims: HashMap<String, S::Claim>,
    /// Those of them that have no open loop, so that others may have recorded into them.
    resting: BTreeSet<String>,
}

/// Records that are not handed to the sink yet.
struct Waiting {
    batch: RecordBatch,
    /// How many events they were made of.
    events: u64,
    /// If they are the other side of a link, and nothing else: how many records the session had.
    link_after: Option<usize>,
}

impl<S: RecordSink> Task<S> {
    async fn run(mut self, mut inbox: mpsc::Receiver<Command<S>>) {
        let mut round = Vec::new();
        while inbox.recv_many(&mut round, DURABLE_BUFFER_EVENTS).await > 0 {
            for command in round.drain(..) {
                match command {
                    Command::Event(event) => self.take_in(*event).await,
                    Command::Sync(told) => {
                        self.store().await;
                        self.rest();
                        // Whoever asked may have stopped waiting.
                        drop(told.send(self.verdict()));
                    }
                    Command::Finish(told) => {
                        let recording = self.finish().await;
                        drop(told.send(recording));
                        return;
                    }
                }
            }
            self.store().await;
            self.leave_all();
            self.let_go();
            self.rest();
        }
        // Nobody is left to say anything: what came is stored, and loops stay open for whoever goes on.
        self.store().await;
    }

    async fn take_in(&mut self, event: AgentEvent) {
        self.heard += 1;
        self.leave_who_is_spoken_of(&event);
        self.renew_for(&event).await;
        self.bring_back_for(&event).await;
        self.bring_guests_for(&event).await;
        let translation = self.translator.on_event(event);
        for notice in &translation.report.notices {
            if let Notice::AlreadyRecorded { session_id, .. } = notice {
                self.note_session(session_id);
            }
        }
        if let Some(on_notice) = &self.on_notice {
            for notice in &translation.report.notices {
                on_notice(self.heard, notice);
            }
        }
        self.add(translation.batches, 1);
        self.translated = self.heard;
        let records: usize = self.waiting.iter().map(|waiting| waiting.batch.records.len()).sum();
        if records >= DURABLE_BATCH_RECORDS_MAX {
            self.store().await;
        }
    }

    /// Makes sure that the session of an event is at hand, if it is stored.
    async fn bring_back_for(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::AgentStart(start) => self.bring_back(&start.session_id, None).await,
            AgentEvent::ParallelLoopStart(start) => {
                self.bring_back(&start.session_id, None).await;
            }
            AgentEvent::ParallelLoopEnd(end) => self.bring_back(&end.session_id, None).await,
            event => {
                let unknown = event.loop_id().filter(|id| !self.translator.recorder().knows(id));
                if let Some(loop_id) = unknown
                    && let Some(named) = self.whereabouts.session_of(loop_id).map(str::to_owned)
                {
                    self.bring_back(&named, Some(loop_id)).await;
                }
            }
        }
    }

    /// What waits for a session belongs to its log, which is about to be read.
    async fn store_what_waits_for(&mut self, session_id: &str) {
        if self.waiting.iter().any(|waiting| waiting.batch.session_id == session_id) {
            self.store().await;
        }
    }

    /// Remembers that events came for a session.
    fn note_session(&mut self, session_id: &str) {
        if !self.known.contains(session_id) {
            self.known.insert(session_id.to_owned());
            self.order.push(session_id.to_owned());
        }
    }

    /// Adds what is to be stored. The first batch is the one of the session that the event belongs to.
    fn add(&mut self, batches: Vec<RecordBatch>, mut events: u64) {
        for batch in batches {
            let events = std::mem::take(&mut events);
            let link_after = self.guests.get(&batch.session_id).copied();
            if link_after.is_none() {
                self.note_session(&batch.session_id);
            }
            let same = |waiting: &&mut Waiting| waiting.batch.session_id == batch.session_id;
            match self.waiting.iter_mut().find(same) {
                Some(waiting) => {
                    waiting.batch.records.extend(batch.records);
                    waiting.events += events;
                }
                None => self.waiting.push(Waiting { batch, events, link_after }),
            }
        }
    }

    /// Hands everything that waits to the sink, all sessions at once.
    async fn store(&mut self) {
        let mut appends = Vec::new();
        for waiting in std::mem::take(&mut self.waiting) {
            let session_id = waiting.batch.session_id.clone();
            if self.failed.contains_key(&session_id) {
                self.events_not_stored += waiting.events;
                continue;
            }
            let claim = self.claims.remove(&session_id);
            let (events, is_link) = (waiting.events, waiting.link_after.is_some());
            let append = tokio::spawn(append(Arc::clone(&self.sink), claim, waiting));
            appends.push((session_id, events, is_link, append));
        }
        for (session_id, events, is_link, append) in appends {
            let appended = append.await;
            if !matches!(appended, Ok(Ok(_))) {
                self.events_not_stored += events;
            }
            match appended {
                Ok(Ok(claim)) => {
                    self.note_session(&session_id);
                    if !is_link {
                        self.claims.insert(session_id, claim);
                    }
                }
                Ok(Err(error)) if is_link => {
                    // It may be in another process's hands, and what is at hand is not what is stored.
                    self.leave(&session_id);
                    self.tell_link_not_stored(&session_id, error.to_string());
                }
                Ok(Err(AppendError::Sink(error))) => self.fail(session_id, error),
                Ok(Err(AppendError::MovedOn)) => unreachable!("only links are compared"),
                // A sink that panics takes its session with it, not the others.
                Err(broken_off) => self.panicked(session_id, broken_off),
            }
        }
        self.told.send_replace(self.translated);
    }

    /// Nothing more of a session is stored, and whoever listens is told at once.
    fn fail(&mut self, session_id: String, error: S::Error) {
        self.tell_not_stored(&session_id, error.to_string());
        let source = Arc::new(error);
        let failure = DurableError::NotStored { session_id: session_id.clone(), source };
        self.failed.insert(session_id, failure);
    }

    fn panicked(&mut self, session_id: String, broken_off: JoinError) {
        let message = said_in(broken_off);
        self.tell_not_stored(&session_id, format!("storing it panicked ({message})"));
        let failure = DurableError::Panicked { session_id: session_id.clone(), message };
        self.failed.insert(session_id, failure);
    }

    fn tell_not_stored(&self, session_id: &str, reason: String) {
        if let Some(on_notice) = &self.on_notice {
            let session_id = session_id.to_owned();
            on_notice(self.heard, &Notice::NotStored { session_id, reason });
        }
    }

    fn verdict(&self) -> Result<(), DurableError<S::Error>> {
        self.failed.values().next().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Keeps memory within bounds: sessions that are complete can be read again from their logs.
    fn let_go(&mut self) {
        if self.translator.recorder().sessions().count() > DURABLE_HELD_SESSIONS_MAX {
            drop(self.translator.release_completed());
            let translator = &self.translator;
            self.claims.retain(|session_id, _| translator.holds(session_id));
        }
    }

    async fn finish(&mut self) -> Recording<S::Error> {
        // What waits for guests is known to be theirs.
        self.leave_all();
        let batches = self.translator.flush();
        self.add(batches, 0);
        self.store().await;
        let mut sessions = Vec::new();
        for session_id in std::mem::take(&mut self.order) {
            if self.failed.contains_key(&session_id) {
                continue;
            }
            let held = self.translator.recorder().held(&session_id);
            if let Some(session) = held {
                sessions.push(session.clone());
            } else if let Ok(records) = self.sink.load(&session_id).await {
                sessions.extend(fold_records(&session_id, &records));
            }
        }
        let failures = self.failed.values().cloned().collect();
        Recording { sessions, failures, events_not_stored: self.events_not_stored }
    }
}

/// Why records were not appended.
#[derive(Debug, thiserror::Error)]
enum AppendError<E: std::error::Error> {
    #[error(transparent)]
    Sink(E),
    #[error("somebody else changed it meanwhile")]
    MovedOn,
}

/// Appends what waits for a session, claiming the session first where that is not done yet.
async fn append<S: RecordSink>(
    sink: Arc<S>,
    claim: Option<S::Claim>,
    waiting: Waiting,
) -> Result<S::Claim, AppendError<S::Error>> {
    let mut claim = match claim {
        Some(claim) => claim,
        None => {
            let (claim, records) =
                sink.claim(&waiting.batch.session_id).await.map_err(AppendError::Sink)?;
            if waiting.link_after.is_some_and(|expected| expected != records.len()) {
                return Err(AppendError::MovedOn);
            }
            claim
        }
    };
    let appended = sink.append(&mut claim, waiting.batch.records).await;
    appended.map(|()| claim).map_err(AppendError::Sink)
}

/// What a panic said.
fn said_in(broken_off: JoinError) -> String {
    let Ok(panic) = broken_off.try_into_panic() else {
        return "it was broken off".to_owned();
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it did not say why".to_owned())
}

/// Whether a log tells of a loop.
fn tells_of(records: &[Record], loop_id: &str) -> bool {
    records.iter().any(
        |record| matches!(record.known(), Record::Loop(event) if event.loop_id.as_str() == loop_id),
    )
}
