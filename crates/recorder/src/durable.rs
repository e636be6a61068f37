//! Recording into logs while the agent works.
//!
//! Events go into a bounded buffer. A task turns them into records and appends the records to the sink in batches.
//! A caller waits only while the buffer is full. An event is stored when the sink has acknowledged all of its records.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use bough_session::Record;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};

use crate::event::AgentEvent;
use crate::limits::{DURABLE_BATCH_RECORDS_MAX, DURABLE_BUFFER_EVENTS, DURABLE_HELD_SESSIONS_MAX};
use crate::model::RecordedSession;
use crate::recorder::{Notice, SessionRecorderConfig};
use crate::translate::{RecordBatch, Translator, fold_records};

mod claims;
mod linked_sessions;
mod loop_index;
mod sink;

use loop_index::LoopIndex;
pub use sink::RecordSink;

/// Called with each notice: the number of the event (from 1), and the notice.
pub type NoticeFn = Arc<dyn Fn(u64, &Notice) + Send + Sync>;

/// How a durable recorder records.
#[derive(Clone)]
pub struct DurableOptions {
    /// What is recorded.
    pub config: SessionRecorderConfig,
    /// How many events may wait to be stored.
    pub buffer_events: usize,
    /// Called with each notice.
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

/// Why events are not stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError<E: std::error::Error + 'static> {
    /// The sink failed. The recorder stores nothing more of this session.
    #[error(
        "recording of session {session_id:?} stopped: {source}; fix the cause and record the events again"
    )]
    NotStored {
        /// The session.
        session_id: String,
        /// Why.
        source: Arc<E>,
    },
    /// The sink panicked. The recorder stores nothing more of this session.
    #[error(
        "recording of session {session_id:?} stopped: the sink panicked ({message}); fix the sink and record the \
         events again"
    )]
    Panicked {
        /// The session.
        session_id: String,
        /// The message of the panic.
        message: String,
    },
    /// The recorder has ended.
    #[error("the recorder has ended; start another one")]
    Ended,
}

/// The error of a sink is shared, because it need not implement `Clone`.
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

/// The result of a recording.
#[derive(Debug)]
pub struct Recording<E: std::error::Error + 'static> {
    /// The sessions that are stored, in the order of their first events.
    pub sessions: Vec<RecordedSession>,
    /// Why the other sessions are not stored.
    pub failures: Vec<DurableError<E>>,
    /// How many events are not stored.
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
        let (stored_sender, stored) = watch::channel(0);
        let task = Task {
            sink,
            translator: Translator::new(options.config),
            on_notice: options.on_notice,
            received: 0,
            translated: 0,
            stored: stored_sender,
            order: Vec::new(),
            known: BTreeSet::new(),
            waiting: Vec::new(),
            failed: BTreeMap::new(),
            events_not_stored: 0,
            loop_index: LoopIndex::default(),
            linked: BTreeMap::new(),
            claims: HashMap::new(),
            resting: BTreeSet::new(),
        };
        Self { commands, stored, task: Arc::new(tokio::spawn(task.run(inbox))) }
    }

    /// Takes an event. Waits only while the buffer is full.
    pub async fn record(&self, event: AgentEvent) -> Result<(), DurableError<S::Error>> {
        let sent = self.commands.send(Command::Event(Box::new(event))).await;
        sent.map_err(|_| DurableError::Ended)
    }

    /// Waits until every event that was taken is stored. Fails if one is not.
    pub async fn sync(&self) -> Result<(), DurableError<S::Error>> {
        let (sender, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Sync(sender)).await;
        sent.map_err(|_| DurableError::Ended)?;
        answer.await.unwrap_or(Err(DurableError::Ended))
    }

    /// How many of the events are done: stored, or reported as not stored.
    #[must_use]
    pub fn done(&self) -> u64 {
        *self.stored.borrow()
    }

    /// Whether the recorder has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Aborts the loops that are still open, stores everything and returns the result.
    pub async fn finish(self) -> Result<Recording<S::Error>, DurableError<S::Error>> {
        let (sender, answer) = oneshot::channel();
        let sent = self.commands.send(Command::Finish(sender)).await;
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
    /// How many events were received, and how many of them are translated to records.
    received: u64,
    translated: u64,
    stored: watch::Sender<u64>,
    /// The sessions of the events, in the order of their first events.
    order: Vec<String>,
    known: BTreeSet<String>,
    waiting: Vec<Waiting>,
    failed: BTreeMap<String, DurableError<S::Error>>,
    events_not_stored: u64,
    loop_index: LoopIndex,
    /// Sessions that are in memory only for links, and how many records each had.
    linked: BTreeMap<String, usize>,
    /// The sessions that this recorder records.
    claims: HashMap<String, S::Claim>,
    /// Those of them that have no open loop, so that others may have recorded into them.
    resting: BTreeSet<String>,
}

/// Records that are not passed to the sink yet.
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
                    Command::Event(event) => self.handle_event(*event).await,
                    Command::Sync(sender) => {
                        self.store().await;
                        self.rest();
                        // The caller may have stopped waiting.
                        drop(sender.send(self.verdict()));
                    }
                    Command::Finish(sender) => {
                        let recording = self.finish().await;
                        drop(sender.send(recording));
                        return;
                    }
                }
            }
            self.store().await;
            self.drop_all_linked();
            self.release_complete();
            self.rest();
        }
        // The last clone was dropped: store what was received, and leave loops open for the next
        // recorder.
        self.store().await;
    }

    async fn handle_event(&mut self, event: AgentEvent) {
        self.received += 1;
        self.drop_linked_of(&event);
        self.renew_for(&event).await;
        self.resume_for(&event).await;
        self.load_linked_for(&event).await;
        let translation = self.translator.on_event(event);
        for notice in &translation.report.notices {
            if let Notice::AlreadyRecorded { session_id, .. } = notice {
                self.note_session(session_id);
            }
        }
        if let Some(on_notice) = &self.on_notice {
            for notice in &translation.report.notices {
                on_notice(self.received, notice);
            }
        }
        self.add(translation.batches, 1);
        self.translated = self.received;
        let records: usize = self.waiting.iter().map(|waiting| waiting.batch.records.len()).sum();
        if records >= DURABLE_BATCH_RECORDS_MAX {
            self.store().await;
        }
    }

    /// Loads the session of an event if it is stored and not in memory.
    async fn resume_for(&mut self, event: &AgentEvent) {
        if let Some(session_id) = event.session_id() {
            return self.resume_session(session_id, None).await;
        }
        let unknown = event.loop_id().filter(|id| !self.translator.recorder().knows(id));
        if let Some(loop_id) = unknown
            && let Some(named) = self.loop_index.session_of(loop_id).map(str::to_owned)
        {
            self.resume_session(&named, Some(loop_id)).await;
        }
    }

    /// Appends the records that wait for a session, because its log is about to be read.
    async fn store_what_waits_for(&mut self, session_id: &str) {
        if self.waiting.iter().any(|waiting| waiting.batch.session_id == session_id) {
            self.store().await;
        }
    }

    /// Remembers that events of a session came.
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
            let link_after = self.linked.get(&batch.session_id).copied();
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

    /// Appends everything that waits, all sessions at the same time.
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
                    // Another process may be recording it, so the copy in memory may differ from what is stored.
                    self.drop_linked(&session_id);
                    self.tell_link_not_stored(&session_id, error.to_string());
                }
                Ok(Err(AppendError::Sink(error))) => self.fail(session_id, error),
                Ok(Err(AppendError::MovedOn)) => unreachable!("only links are compared"),
                // A panic of a sink stops its session, not the others.
                Err(broken_off) => self.panicked(session_id, broken_off),
            }
        }
        self.stored.send_replace(self.translated);
    }

    /// Stops the recording of a session and reports it at once.
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
            on_notice(self.received, &Notice::NotStored { session_id, reason });
        }
    }

    fn verdict(&self) -> Result<(), DurableError<S::Error>> {
        self.failed.values().next().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    /// Keeps memory within bounds: a complete session can be read again from its log.
    fn release_complete(&mut self) {
        if self.translator.recorder().sessions().count() > DURABLE_HELD_SESSIONS_MAX {
            drop(self.translator.release_completed());
            let translator = &self.translator;
            self.claims.retain(|session_id, _| translator.holds(session_id));
        }
    }

    async fn finish(&mut self) -> Recording<S::Error> {
        // Records that wait for linked sessions are marked as theirs already.
        self.drop_all_linked();
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
    #[error("another recorder or program changed it meanwhile")]
    MovedOn,
}

/// Appends the records that wait for a session; claims the session first if it is not claimed yet.
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

/// The message of a panic.
fn said_in(broken_off: JoinError) -> String {
    let Ok(panic) = broken_off.try_into_panic() else {
        return "it was broken off".to_owned();
    };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it did not say why".to_owned())
}

/// Whether a log has records of a loop.
fn tells_of(records: &[Record], loop_id: &str) -> bool {
    records.iter().any(
        |record| matches!(record.known(), Record::Loop(event) if event.loop_id.as_str() == loop_id),
    )
}
