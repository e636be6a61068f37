//! What was accepted and is not durable yet. Accepting orders and encodes; it touches no disk.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use bough_platform::Entropy;
use bough_record::{Envelope, Fold, Head, Incarnation, kind};
use serde_json::value::RawValue;

use crate::canary;
use crate::chunk::{Chunk, DeltaChunk, FoldStep, Queued};
use crate::commit_waiters::CommitWaiters;
use crate::error::{LogError, Result};
use crate::format::{BatchPlace, FrameHeader, Position, RowId, StreamLine, encode_frame};
use crate::limits;
use crate::nonces::Nonces;
use crate::options::{Durability, Options};
use crate::record;
use crate::state::{FrameLocation, LogState};
use crate::writer::Ticket;

/// Called once, when what it waits for is durable or will never be.
pub(crate) type Notify = Box<dyn FnOnce(Result<Head>) + Send>;

/// Records to append as one batch.
#[derive(Debug)]
pub struct Batch<'a, F: Fold = ()> {
    /// The records.
    pub records: &'a [Envelope<'a>],
    /// The fold after the last of them, if the caller has it; else the log applies them.
    pub fold: Option<Arc<F>>,
}

impl<'a, F: Fold> Batch<'a, F> {
    /// A batch that the log folds itself.
    #[must_use]
    pub const fn new(records: &'a [Envelope<'a>]) -> Self {
        Self { records, fold: None }
    }

    fn fold_step(&self, is_last: bool) -> FoldStep<F> {
        match &self.fold {
            None => FoldStep::Apply,
            Some(fold) if is_last => FoldStep::Value(Arc::clone(fold)),
            Some(_) => FoldStep::Later,
        }
    }
}

/// The accepted part of a log.
pub(crate) struct Queue<F: Fold> {
    pub(crate) accepted: Head,
    pub(crate) accepted_delta: u64,
    position: Position,
    chunks: VecDeque<Chunk<F>>,
    deltas: DeltaChunk,
    /// Entries accepted and not durable yet.
    ids: HashMap<RowId, u64>,
    /// Messages that stream, as far as accepted: the newest revision, or `None` once a revision record
    /// that closes the stream is accepted and not durable yet.
    streaming: Streaming,
    /// Callers that are called back.
    callbacks: Vec<(Ticket, Notify)>,
    nonces: Nonces,
    segment_bytes: u64,
    group_bytes_max: usize,
    /// In the weaker durability: the first record that no sync is known to have made durable.
    unsynced_from: Option<u64>,
    pub(crate) leader: Leader,
    /// Threads that wait for the leader.
    pub(crate) commit_waiters: CommitWaiters,
    pub(crate) latched: Option<String>,
    /// The log was closed; a caller that still has this writer asks the store for another.
    pub(crate) closed: bool,
    pub(crate) durable: Head,
    pub(crate) durable_delta: u64,
}

/// What the thread does that commits for all the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leader {
    /// No thread commits; the next one may.
    None,
    /// It writes and syncs.
    Committing,
    /// It has committed and wakes the waiting threads: what they append meanwhile is one group.
    Waking,
}

/// How far a message has streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streamed {
    /// Its newest revision.
    pub(crate) revision: u64,
    /// The newest delta's number; 0 when there is none yet.
    pub(crate) number: u64,
}

/// A piece of a message that is still streaming.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDelta {
    /// The entry that streams.
    pub target: String,
    /// The revision that it has with this piece: one more than before.
    pub revision: u64,
    /// When, milliseconds since the epoch.
    pub at_ms: i64,
    /// What changed: a JSON value in one line.
    pub payload: String,
}

/// What the caller believes about the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It is exactly this one.
    Head(Head),
    /// It is of this incarnation.
    Incarnation(Incarnation),
    /// It does not matter.
    Any,
}

impl<F: Fold> Queue<F> {
    pub(crate) fn new(state: &LogState<F>, position: Position, options: &Options) -> Self {
        Self {
            accepted: state.head,
            accepted_delta: state.streams.number,
            position,
            chunks: VecDeque::new(),
            deltas: DeltaChunk::default(),
            ids: HashMap::new(),
            streaming: HashMap::new(),
            callbacks: Vec::new(),
            nonces: Nonces::default(),
            segment_bytes: options.segment_bytes,
            group_bytes_max: options.group_bytes_max,
            unsynced_from: match options.durability {
                Durability::Synced => None,
                Durability::MayLoseNewestOnPowerCut => Some(state.head.seq + 1),
            },
            leader: Leader::None,
            commit_waiters: CommitWaiters::default(),
            latched: None,
            closed: false,
            durable: state.head,
            durable_delta: state.streams.number,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.deltas.lines.is_empty()
    }

    /// Whether something is on its way to the disk.
    pub(crate) fn is_busy(&self) -> bool {
        self.leader == Leader::Committing || !self.is_empty()
    }

    /// The ticket of everything that is accepted.
    pub(crate) fn everything(&self) -> Ticket {
        Ticket { head: self.accepted, delta: self.accepted_delta }
    }

    pub(crate) fn is_durable(&self, ticket: Ticket) -> bool {
        self.durable.seq >= ticket.head.seq && self.durable_delta >= ticket.delta
    }

    pub(crate) fn check_latch(&self) -> Result<()> {
        match &self.latched {
            Some(cause) => Err(LogError::Latched { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Accepts a batch after everything accepted before it.
    pub(crate) fn accept(
        &mut self,
        expected: Expected,
        batch: &Batch<'_, F>,
        state: &LogState<F>,
        entropy: &dyn Entropy,
    ) -> Result<Head> {
        self.check_latch()?;
        let fits = match expected {
            Expected::Head(expected) => {
                expected == self.accepted
                    || canary::on(canary::INCARNATION_IGNORED) && expected.seq == self.accepted.seq
            }
            Expected::Incarnation(incarnation) => incarnation == self.accepted.incarnation,
            Expected::Any => true,
        };
        if !fits {
            return Err(LogError::Conflict { current: self.accepted });
        }
        check_batch(batch.records)?;
        record::check_links(batch.records, |id| self.locate(id, state))?;
        self.encode(batch, state, entropy)?;
        Ok(self.accepted)
    }

    fn locate(&self, id: &str, state: &LogState<F>) -> Result<Option<u64>> {
        let accepted = (!self.ids.is_empty()).then(|| self.ids.get(&RowId::of(id))).flatten();
        match accepted {
            Some(seq) => Ok(Some(*seq)),
            None => state.find(id),
        }
    }

    fn encode(
        &mut self,
        batch: &Batch<'_, F>,
        state: &LogState<F>,
        entropy: &dyn Entropy,
    ) -> Result<()> {
        let records = batch.records;
        let count = u32::try_from(records.len()).unwrap_or(u32::MAX);
        // Drawn before anything is encoded: a batch is taken whole or not at all.
        self.nonces.draw(records.len(), entropy)?;
        self.open_chunk(records.len())?;
        // A frame vouches only for what was durable before it was written.
        let write_start = self.unsynced_from.filter(|_| !canary::on(canary::UNSYNCED_VOUCHES));
        let Some(chunk) = self.chunks.back_mut() else {
            return Ok(());
        };
        for (index, record) in records.iter().enumerate() {
            let last_step = last_step(record, &self.streaming, state);
            let nonce = self.nonces.take();
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            let seq = self.accepted.seq + 1;
            let frame = self.position.frames + 1;
            let header = FrameHeader {
                seq,
                segment: self.position.segment,
                frame,
                batch: BatchPlace { index, count },
                write_start: write_start.unwrap_or(chunk.first_seq),
                last_step,
                ..FrameHeader::of(record, Cow::Borrowed(nonce.as_str()))
            };
            let start = chunk.bytes.len();
            let (chain, crc) =
                encode_frame(&header, &record.payload, self.accepted.chain, &mut chunk.bytes);
            let len = (chunk.bytes.len() - start) as u64;
            let offset = self.position.bytes;
            let segment = self.position.segment;
            let location = FrameLocation { segment, frame, offset, len, crc, chain };
            if let Some(id) = record.id.as_deref() {
                self.ids.insert(RowId::of(id), seq);
            }
            if let (kind::REVISION, Some(target)) = (&*record.kind, record.target.as_deref()) {
                self.streaming.insert(target.to_owned(), None);
            }
            // A frame ends with its payload, a brace and a line break.
            let payload_end = chunk.bytes.len().saturating_sub(2);
            let payload = payload_end.saturating_sub(record.payload.len())..payload_end;
            let fold = batch.fold_step(header.batch.is_last());
            let record = Envelope { payload: Cow::Borrowed(""), ..record.borrowed() }.into_owned();
            chunk.records.push(Queued { record, payload, seq, last_step, location, fold });
            self.position.bytes += len;
            self.position.frames = frame;
            self.accepted.seq = seq;
            self.accepted.chain = chain;
            chunk.head = self.accepted;
        }
        Ok(())
    }

    /// Makes sure that the last chunk is one that the next batch, of so many records, may join.
    fn open_chunk(&mut self, records: usize) -> Result<()> {
        if self.position.bytes >= self.segment_bytes {
            self.position.closed = true;
        }
        self.position = self.position.next();
        if self.position.segment > limits::SEGMENTS_MAX {
            let (size, limit) = (self.position.segment, limits::SEGMENTS_MAX);
            return Err(LogError::TooLarge { what: "a log's segments", size, limit });
        }
        let joins = self.chunks.back().is_some_and(|chunk| {
            chunk.segment == self.position.segment && chunk.bytes.len() < self.group_bytes_max
        });
        if !joins {
            self.chunks.push_back(Chunk {
                segment: self.position.segment,
                offset: self.position.bytes,
                first_seq: self.accepted.seq + 1,
                bytes: Vec::new(),
                records: Vec::with_capacity(records),
                head: self.accepted,
            });
        }
        Ok(())
    }

    /// How far a message has streamed; `None` when its stream has to be opened.
    pub(crate) fn streamed(&self, target: &str, state: &LogState<F>) -> Option<Streamed> {
        streamed(target, &self.streaming, state)
    }

    /// Accepts a delta of a message whose stream is open, or opened by a record accepted before.
    pub(crate) fn accept_delta(&mut self, delta: &NewDelta) -> Result<u64> {
        let payload = RawValue::from_string(delta.payload.clone()).map_err(|error| {
            LogError::Invalid { reason: format!("the delta is not JSON: {error}") }
        })?;
        let number = self.accepted_delta + 1;
        let (revision, at_ms) = (delta.revision, delta.at_ms);
        let (after, target) = (self.accepted.seq, delta.target.clone());
        let line = StreamLine { number, after, target, revision, at_ms, payload };
        line.encode(&mut self.deltas.bytes)?;
        self.deltas.lines.push(line);
        self.accepted_delta = number;
        let streamed = Some(Streamed { revision, number });
        match self.streaming.get_mut(&delta.target) {
            Some(known) => *known = streamed,
            None => drop(self.streaming.insert(delta.target.clone(), streamed)),
        }
        Ok(number)
    }

    pub(crate) fn next_chunk(&mut self) -> Option<Chunk<F>> {
        self.chunks.pop_front()
    }

    /// The deltas, once every frame that they stand on has been taken.
    pub(crate) fn next_deltas(&mut self) -> Option<DeltaChunk> {
        let ready = self.chunks.is_empty() && !self.deltas.lines.is_empty();
        ready.then(|| std::mem::take(&mut self.deltas))
    }

    /// A chunk, and the deltas up to one, became durable.
    pub(crate) fn settle(&mut self, chunk: Option<&Chunk<F>>, last_delta: Option<u64>) {
        if let Some(chunk) = chunk {
            self.durable = chunk.head;
            for id in chunk.records.iter().filter_map(|queued| queued.record.id.as_deref()) {
                self.ids.remove(&RowId::of(id));
            }
            if self.is_empty() {
                self.streaming.clear();
            }
        }
        if let Some(number) = last_delta {
            self.durable_delta = number;
        }
    }

    /// In the weaker durability: records up to this one are durable now.
    pub(crate) fn note_synced(&mut self, seq: u64) {
        if let Some(from) = &mut self.unsynced_from {
            *from = seq + 1;
        }
    }

    pub(crate) fn call_when_durable(&mut self, ticket: Ticket, notify: Notify) {
        self.callbacks.push((ticket, notify));
    }

    /// The callbacks of what is durable by now.
    pub(crate) fn take_callbacks(&mut self) -> Vec<Notify> {
        let (seq, delta) = (self.durable.seq, self.durable_delta);
        let is_durable = |ticket: &Ticket| ticket.head.seq <= seq && ticket.delta <= delta;
        let ready = self.callbacks.extract_if(.., |(ticket, _)| is_durable(ticket));
        ready.map(|(_, notify)| notify).collect()
    }

    /// Accepts nothing more. Returns all callbacks: nothing more will become durable.
    pub(crate) fn latch(&mut self, cause: &str) -> Vec<Notify> {
        self.latched.get_or_insert_with(|| cause.to_owned());
        self.chunks.clear();
        self.deltas = DeltaChunk::default();
        self.commit_waiters.recheck_all();
        self.callbacks.drain(..).map(|(_, notify)| notify).collect()
    }
}

/// What is accepted of the messages that stream and is not durable yet.
type Streaming = HashMap<String, Option<Streamed>>;

fn streamed<F: Fold>(target: &str, accepted: &Streaming, state: &LogState<F>) -> Option<Streamed> {
    match accepted.get(target) {
        Some(streamed) => *streamed,
        None => state.streams.newest(target),
    }
}

/// The newest step that a revision takes the place of. Of several revisions of one target in a batch the first stands
/// for its deltas and closes the stream; the others say something new.
fn last_step<F: Fold>(
    record: &Envelope<'_>,
    accepted: &Streaming,
    state: &LogState<F>,
) -> Option<u64> {
    let target = record.target.as_deref().filter(|_| record.kind == kind::REVISION)?;
    let streamed = streamed(target, accepted, state)?;
    (streamed.number > 0 && Some(streamed.revision) <= record.revision).then_some(streamed.number)
}

pub(crate) fn check_batch(records: &[Envelope<'_>]) -> Result<()> {
    if records.is_empty() {
        return Err(LogError::Invalid { reason: "a batch has at least one record".to_owned() });
    }
    record::check_size("a batch", records.len(), limits::BATCH_RECORDS_MAX)?;
    let bytes = records.iter().map(|record| record.payload.len()).sum();
    record::check_size("a batch's payload", bytes, limits::BATCH_BYTES_MAX)?;
    records.iter().try_for_each(record::check)
}
