//! Threads that wait for the one that commits. Each is woken by itself and only when it has something to do, so that a
//! commit does not set all of them on one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;

use crate::writer::Ticket;

/// The thread has no signal yet.
const WAITING: u8 = 0;
/// What it waits for is durable.
const DURABLE: u8 = 1;
/// Something else happened: the thread has to read the queue again.
const RECHECK: u8 = 2;

/// One waiting thread.
#[derive(Debug)]
pub(crate) struct CommitWaiter {
    thread: Thread,
    signal: AtomicU8,
}

impl CommitWaiter {
    fn of_this_thread() -> Self {
        Self { thread: std::thread::current(), signal: AtomicU8::new(WAITING) }
    }

    /// Waits for a signal; returns whether its ticket is durable.
    pub(crate) fn sleep(&self) -> bool {
        loop {
            match self.signal.load(Ordering::Acquire) {
                WAITING => std::thread::park(),
                signal => return signal == DURABLE,
            }
        }
    }

    fn wake(&self, signal: u8) {
        self.signal.store(signal, Ordering::Release);
        self.thread.unpark();
    }

    pub(crate) fn wake_durable(&self) {
        self.wake(DURABLE);
    }
}

/// The threads that wait, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct CommitWaiters {
    waiting: Vec<(Ticket, Arc<CommitWaiter>)>,
}

impl CommitWaiters {
    /// Adds the calling thread, which then sleeps without holding any lock.
    pub(crate) fn add(&mut self, ticket: Ticket) -> Arc<CommitWaiter> {
        let waiter = Arc::new(CommitWaiter::of_this_thread());
        self.waiting.push((ticket, Arc::clone(&waiter)));
        waiter
    }

    /// Those whose tickets are durable by now.
    pub(crate) fn take_durable(&mut self, seq: u64, delta: u64) -> Vec<Arc<CommitWaiter>> {
        let durable = |ticket: &Ticket| ticket.head.seq <= seq && ticket.delta <= delta;
        let taken = self.waiting.extract_if(.., |(ticket, _)| durable(ticket));
        taken.map(|(_, waiter)| waiter).collect()
    }

    /// Wakes the thread that waits longest, so that it commits: the leader leaves, and there is more to commit.
    pub(crate) fn hand_over(&mut self) {
        if !self.waiting.is_empty() {
            self.waiting.remove(0).1.wake(RECHECK);
        }
    }

    /// Wakes all: nothing more becomes durable.
    pub(crate) fn recheck_all(&mut self) {
        self.waiting.drain(..).for_each(|(_, waiter)| waiter.wake(RECHECK));
    }
}
