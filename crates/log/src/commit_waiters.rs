//! Threads that wait for whoever commits. Each is woken by itself and only when it is its turn, so that a
//! commit does not set all of them on one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::Thread;

use crate::writer::Ticket;

/// Nothing was said yet.
const NOTHING: u8 = 0;
/// What it waits for is durable.
const DURABLE: u8 = 1;
/// Something else happened: it has to look for itself.
const LOOK: u8 = 2;

/// One waiting thread.
#[derive(Debug)]
pub(crate) struct CommitWaiter {
    thread: Thread,
    told: AtomicU8,
}

impl CommitWaiter {
    fn of_this_thread() -> Self {
        Self { thread: std::thread::current(), told: AtomicU8::new(NOTHING) }
    }

    /// Waits until it is told something; says whether that was that its ticket is durable.
    pub(crate) fn sleep(&self) -> bool {
        loop {
            match self.told.load(Ordering::Acquire) {
                NOTHING => std::thread::park(),
                told => return told == DURABLE,
            }
        }
    }

    fn tell(&self, what: u8) {
        self.told.store(what, Ordering::Release);
        self.thread.unpark();
    }

    pub(crate) fn tell_durable(&self) {
        self.tell(DURABLE);
    }

    pub(crate) fn tell_to_look(&self) {
        self.tell(LOOK);
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

    /// The one that waits longest looks for itself: whoever led leaves, and there is more to commit.
    pub(crate) fn hand_over(&mut self) {
        if !self.waiting.is_empty() {
            self.waiting.remove(0).1.tell_to_look();
        }
    }

    /// Everybody looks: nothing more becomes durable.
    pub(crate) fn tell_all_to_look(&mut self) {
        self.waiting.drain(..).for_each(|(_, waiter)| waiter.tell_to_look());
    }
}
