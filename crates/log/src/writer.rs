//! One log, open for writing: accepting, committing in groups, latching.

mod commit;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use bough_platform::{Lock, Platform};

use self::commit::CommitFiles;
use crate::error::{LogError, Result};
use crate::files::Files;
use crate::format::Manifest;
use crate::limits;
use crate::load::{Loaded, OpenReport, append_position};
use crate::maintain::Maintainer;
use crate::options::Options;
use crate::queue::{Batch, Expected, Leader, NewDelta, Notify, Queue};
use crate::record::{check_entry_id, check_size};
use crate::state::LogState;
use crate::sync::lock;
use bough_record::{Envelope, Fold, Head, kind};

/// A log that this process may append to.
pub(crate) struct Writer<F: Fold> {
    pub(crate) id: String,
    /// Which opening of this process it is; no two have the same.
    pub(crate) opening: u64,
    pub(crate) platform: Platform,
    pub(crate) options: Options,
    pub(crate) files: Files,
    pub(crate) report: OpenReport,
    queue: Mutex<Queue<F>>,
    state: RwLock<LogState<F>>,
    /// Held by the thread that commits.
    commit: Mutex<CommitFiles>,
    pub(crate) maintainer: Mutex<Maintainer>,
    /// Bytes of frames since the last checkpoint.
    pub(crate) unchecked_bytes: AtomicU64,
    last_used_ms: AtomicU64,
    lock: Mutex<Option<Box<dyn Lock>>>,
    /// A [`CommitTask`](crate::CommitTask) exists that commits until nothing waits.
    driven: AtomicBool,
}

static OPENINGS: AtomicU64 = AtomicU64::new(1);

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) head: Head,
    pub(crate) delta: u64,
}

impl<F: Fold> std::fmt::Debug for Writer<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<F: Fold> Writer<F> {
    pub(crate) fn new(
        platform: Platform,
        options: Options,
        loaded: Loaded<F>,
        lock: Box<dyn Lock>,
    ) -> Self {
        let position = append_position(&loaded);
        let queue = Queue::new(&loaded.state, position, &options);
        let Loaded { manifest, files, mut state, report, .. } = loaded;
        state.position = position;
        Self {
            id: manifest.session_id.clone(),
            opening: OPENINGS.fetch_add(1, Ordering::Relaxed),
            platform,
            options,
            files,
            report,
            queue: Mutex::new(queue),
            state: RwLock::new(state),
            commit: Mutex::new(CommitFiles::default()),
            maintainer: Mutex::new(Maintainer::new(manifest)),
            unchecked_bytes: AtomicU64::new(0),
            last_used_ms: AtomicU64::new(0),
            lock: Mutex::new(Some(lock)),
            driven: AtomicBool::new(false),
        }
    }

    /// Accepts a batch: it has its place in the order, and is durable once [`Writer::wait`] says so.
    /// A closed writer takes nothing: `Ok(None)`.
    pub(crate) fn accept(
        &self,
        expected: Expected,
        batch: &Batch<'_, F>,
    ) -> Result<Option<Ticket>> {
        let mut queue = self.queue();
        if queue.closed {
            return Ok(None);
        }
        let state = self.read_state();
        queue.accept(expected, batch, &state, &*self.platform.entropy)?;
        Ok(Some(Ticket { head: queue.accepted, delta: 0 }))
    }

    /// Accepts a delta, opening its stream first where needed.
    pub(crate) fn accept_delta(&self, delta: &NewDelta) -> Result<Option<Ticket>> {
        check_entry_id(&delta.target)?;
        check_size("a delta", delta.payload.len(), limits::DELTA_BYTES_MAX)?;
        let mut queue = self.queue();
        if queue.closed {
            return Ok(None);
        }
        queue.check_latch()?;
        let state = self.read_state();
        match queue.streamed(&delta.target, &state) {
            Some(newest) if delta.revision == newest.revision + 1 => {}
            Some(newest) => {
                let reason = format!(
                    "entry {:?} is at revision {}; {} does not follow it",
                    delta.target, newest.revision, delta.revision
                );
                return Err(LogError::Invalid { reason });
            }
            None => {
                let open = [Envelope {
                    target: Some(Cow::Borrowed(&delta.target)),
                    revision: Some(delta.revision.saturating_sub(1)),
                    ..Envelope::plain(kind::STREAM, delta.at_ms, "null")
                }];
                let batch = Batch::new(&open);
                queue.accept(Expected::Any, &batch, &state, &*self.platform.entropy)?;
            }
        }
        let number = queue.accept_delta(delta)?;
        Ok(Some(Ticket { head: queue.accepted, delta: number }))
    }

    /// Calls `notify` when the ticket is durable or never will be.
    pub(crate) fn on_durable(&self, ticket: Ticket, notify: Notify) {
        let mut queue = self.queue();
        if let Err(error) = queue.check_latch() {
            drop(queue);
            return notify(Err(error));
        }
        if queue.is_durable(ticket) {
            drop(queue);
            return notify(Ok(ticket.head));
        }
        queue.call_when_durable(ticket, notify);
    }

    /// Waits until the ticket is durable. Commits, also for others, while no other thread does.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<Head> {
        let mut queue = self.queue();
        while !queue.is_durable(ticket) {
            queue.check_latch()?;
            match self.step(queue, ticket) {
                Some(locked) => queue = locked,
                None => return Ok(ticket.head),
            }
        }
        if queue.leader == Leader::None && !queue.is_empty() {
            queue.commit_waiters.hand_over();
        }
        Ok(ticket.head)
    }

    /// Commits until nothing is left to commit.
    pub(crate) fn drive(&self) {
        let mut queue = self.queue();
        while queue.is_busy() {
            let everything = queue.everything();
            queue = self.step(queue, everything).unwrap_or_else(|| self.queue());
        }
    }

    /// Whether the caller must run [`Writer::drive_claimed`].
    pub(crate) fn claim_drive(&self) -> bool {
        !self.driven.swap(true, Ordering::AcqRel)
    }

    /// Commits until nothing is left; for the caller that claimed it.
    pub(crate) fn drive_claimed(&self) {
        loop {
            self.drive();
            self.driven.store(false, Ordering::Release);
            // Something may have come between the last look and giving the claim back.
            if self.queue().is_empty() || !self.claim_drive() {
                return;
            }
        }
    }

    /// Commits one group, or waits for the thread that does. `None` when that thread made the ticket durable.
    fn step<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue<F>>,
        ticket: Ticket,
    ) -> Option<MutexGuard<'a, Queue<F>>> {
        if queue.leader != Leader::None {
            let waiter = queue.commit_waiters.add(ticket);
            drop(queue);
            return (!waiter.sleep()).then(|| self.queue());
        }
        let chunk = queue.next_chunk();
        let deltas = queue.next_deltas();
        if chunk.is_none() && deltas.is_none() {
            return Some(queue);
        }
        queue.leader = Leader::Committing;
        drop(queue);
        let last_delta = deltas.as_ref().and_then(|deltas| deltas.lines.last());
        let last_delta = last_delta.map(|line| line.number);
        let result = self.commit(chunk.as_ref(), deltas);
        let mut queue = self.queue();
        match &result {
            Ok(()) => {
                queue.settle(chunk.as_ref(), last_delta);
                Some(self.notify_durable(queue))
            }
            Err(error) => {
                // In one step: no other thread may commit what follows.
                queue.leader = Leader::None;
                let cause = error.to_string();
                let callbacks = queue.latch(&cause);
                drop(queue);
                notify_latched(callbacks, &cause);
                Some(self.queue())
            }
        }
    }

    /// Wakes the threads and calls the callbacks of what is durable now. Another thread may lead then.
    fn notify_durable<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue<F>>,
    ) -> MutexGuard<'a, Queue<F>> {
        let (durable, delta) = (queue.durable, queue.durable_delta);
        let commit_waiters = queue.commit_waiters.take_durable(durable.seq, delta);
        if !commit_waiters.is_empty() {
            queue.leader = Leader::Waking;
            drop(queue);
            commit_waiters.iter().for_each(|waiter| waiter.wake_durable());
            queue = self.queue();
        }
        queue.leader = Leader::None;
        if queue.latched.is_some() {
            // It latched meanwhile: threads that came since wait for what will never be durable.
            queue.commit_waiters.recheck_all();
        }
        let ready = queue.take_callbacks();
        if !ready.is_empty() {
            drop(queue);
            ready.into_iter().for_each(|notify| notify(Ok(durable)));
            queue = self.queue();
        }
        queue
    }

    pub(crate) fn queue(&self) -> MutexGuard<'_, Queue<F>> {
        lock(&self.queue)
    }

    pub(crate) fn read_state(&self) -> RwLockReadGuard<'_, LogState<F>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write_state(&self) -> RwLockWriteGuard<'_, LogState<F>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the log is, as far as durable.
    pub(crate) fn head(&self) -> Head {
        self.queue().durable
    }

    /// Where the log is, with what is accepted and not durable yet.
    pub(crate) fn accepted(&self) -> Head {
        self.queue().accepted
    }

    pub(crate) fn check_latch(&self) -> Result<()> {
        self.queue().check_latch()
    }

    pub(crate) fn is_latched(&self) -> bool {
        self.queue().latched.is_some()
    }

    /// Accepts nothing more, unless something is on its way to the disk. Returns whether it is closed now.
    pub(crate) fn shut(&self) -> bool {
        let mut queue = self.queue();
        queue.closed = !queue.is_busy();
        queue.closed
    }

    /// Whether something is on its way to the disk.
    pub(crate) fn is_busy(&self) -> bool {
        self.queue().is_busy()
    }

    pub(crate) fn touch(&self) {
        let now = self.platform.clock.monotonic().as_millis();
        self.last_used_ms.store(u64::try_from(now).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(crate) fn idle_for(&self) -> Duration {
        let used = Duration::from_millis(self.last_used_ms.load(Ordering::Relaxed));
        self.platform.clock.monotonic().saturating_sub(used)
    }

    /// Refuses further appends, because the disk failed.
    pub(crate) fn latch(&self, cause: &LogError) {
        let cause = cause.to_string();
        let callbacks = self.queue().latch(&cause);
        notify_latched(callbacks, &cause);
    }

    /// Removes the lock. Waits for rounds and commits first: the next writer, here or in another process, must not
    /// write the same files at the same time.
    pub(crate) fn release(&self) -> Result<()> {
        let _no_round = lock(&self.maintainer);
        let _no_commit = self.hold_commits();
        let lock = lock(&self.lock).take();
        match lock {
            Some(lock) => Ok(lock.remove()?),
            None => Ok(()),
        }
    }

    /// Whether the log is this writer's to write.
    pub(crate) fn is_ours(&self) -> bool {
        lock(&self.lock).is_some()
    }

    /// The manifest as it was last written.
    pub(crate) fn manifest(&self) -> Manifest {
        lock(&self.maintainer).manifest.clone()
    }
}

fn notify_latched(callbacks: Vec<Notify>, cause: &str) {
    for notify in callbacks {
        notify(Err(LogError::Latched { cause: cause.to_owned() }));
    }
}
