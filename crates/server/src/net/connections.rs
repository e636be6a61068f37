//! The open connections: how many there are, and which has waited longest for its peer.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

/// The open connections of a listener. Cheap to clone.
///
/// A connection either waits for its peer (for a request, or for the rest of one) or works for it. If the limit is
/// reached, the connection that has waited longest is closed, so idle peers cannot keep others out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connections(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    table: Mutex<Table>,
    changed: Notify,
    /// Numbers the waits, so that they can be compared by age.
    waits: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Table {
    opened: u64,
    open: HashMap<u64, Arc<Activity>>,
}

/// Whether a connection waits for its peer.
#[derive(Debug)]
pub(crate) struct Activity {
    /// The number of the current wait; 0 while the connection works.
    wait: AtomicU64,
    waits: Arc<AtomicU64>,
    /// Whether the peer has not taken yet what was written.
    is_sending: AtomicBool,
    gives_way: Notify,
}

/// One open connection; dropping it removes it from the table.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    connections: Connections,
    number: u64,
    activity: Arc<Activity>,
}

impl Connections {
    /// Adds a connection that works, unless there are `most` already.
    pub(crate) fn open(&self, most: usize) -> Option<OpenConnection> {
        let mut table = self.table();
        (table.open.len() < most).then(|| self.add(&mut table))
    }

    /// Adds a connection that waits for its first request. If there are `most` already, the one that has waited longest
    /// is closed; `None` if all of them work.
    pub(crate) fn open_waiting(&self, most: usize) -> Option<OpenConnection> {
        let mut table = self.table();
        if table.open.len() >= most && !table.close_longest_waiting() {
            return None;
        }
        let opened = self.add(&mut table);
        opened.activity.wait();
        Some(opened)
    }

    /// Closes up to `count` waiting connections, the longest waiting first.
    pub(crate) fn close_waiting(&self, count: usize) {
        let mut table = self.table();
        for _ in 0..count {
            if !table.close_longest_waiting() {
                return;
            }
        }
    }

    fn add(&self, table: &mut Table) -> OpenConnection {
        table.opened += 1;
        let number = table.opened;
        let waits = self.0.waits.clone();
        let (wait, is_sending) = (AtomicU64::new(0), AtomicBool::new(false));
        let activity = Arc::new(Activity { wait, waits, is_sending, gives_way: Notify::new() });
        table.open.insert(number, activity.clone());
        OpenConnection { connections: self.clone(), number, activity }
    }

    pub(crate) fn count(&self) -> usize {
        self.table().open.len()
    }

    /// How many connections there ever were.
    pub(crate) fn opened(&self) -> u64 {
        self.table().opened
    }

    /// Waits until none is open.
    pub(crate) async fn all_closed(&self) {
        loop {
            let changed = self.0.changed.notified();
            if self.count() == 0 {
                return;
            }
            changed.await;
        }
    }

    /// Waits until none is open, but not longer than `most`; returns whether none is.
    pub(crate) async fn drained(&self, most: Duration) -> bool {
        tokio::time::timeout(most, self.all_closed()).await.is_ok()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Closes the connection that has waited longest; returns whether one waited.
    fn close_longest_waiting(&mut self) -> bool {
        let waits = self.open.iter().filter_map(|(number, activity)| {
            let wait = activity.wait.load(Ordering::Acquire);
            (wait > 0).then_some((wait, *number))
        });
        let Some((_, number)) = waits.min() else { return false };
        if let Some(activity) = self.open.remove(&number) {
            activity.close();
        }
        true
    }
}

impl Activity {
    /// Marks the connection as waiting for its peer.
    fn wait(&self) {
        let number = 1 + self.waits.fetch_add(1, Ordering::AcqRel);
        // A wait that has begun keeps its age.
        let _was = self.wait.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The connection works from now on.
    pub(crate) fn work(&self) {
        self.wait.store(0, Ordering::Release);
    }

    /// Whether the peer takes no more of what is written.
    pub(super) fn sends(&self, is_sending: bool) {
        self.is_sending.store(is_sending, Ordering::Release);
    }

    /// Waits until the peer has neither sent nor taken anything for as long as `most`.
    pub(super) async fn is_silent(&self, most: Duration) {
        loop {
            let before = self.wait.load(Ordering::Acquire);
            tokio::time::sleep(most).await;
            let has_waited = before != 0 && self.wait.load(Ordering::Acquire) == before;
            if has_waited && !self.is_sending.load(Ordering::Acquire) {
                return;
            }
        }
    }

    /// Asks the connection to close in favour of another one.
    pub(crate) fn close(&self) {
        self.gives_way.notify_one();
    }

    /// Waits until the connection is asked to close.
    pub(crate) async fn gives_way(&self) {
        self.gives_way.notified().await;
    }
}

impl OpenConnection {
    pub(crate) fn activity(&self) -> Arc<Activity> {
        self.activity.clone()
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.table().open.remove(&self.number);
        self.connections.0.changed.notify_waiters();
    }
}

/// The body of a request: the connection waits while the peer does not send it.
pub(crate) struct RequestBody<B> {
    body: B,
    activity: Arc<Activity>,
}

/// The body of an answer: once it is sent, the connection waits for the next request.
pub(super) struct AnswerBody<B> {
    body: B,
    activity: Arc<Activity>,
}

impl<B> RequestBody<B> {
    pub(crate) fn new(body: B, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl<B> AnswerBody<B> {
    pub(super) fn new(body: B, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl<B> Drop for AnswerBody<B> {
    fn drop(&mut self) {
        self.activity.wait();
    }
}

impl<B: Body + Unpin> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending() {
            self.activity.wait();
        } else {
            self.activity.work();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: Body + Unpin> Body for AnswerBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_waited_longest_gives_way() {
        let connections = Connections::default();
        let open = || connections.open_waiting(2);
        let (first, second) = (open().unwrap(), open().unwrap());
        first.activity().work();
        first.activity().wait();
        let third = open().unwrap();
        second.activity().gives_way().await;
        assert_eq!(connections.count(), 2);
        drop(second);
        assert_eq!(connections.count(), 2, "it was taken from the table already");
        first.activity().work();
        third.activity().work();
        assert!(open().is_none(), "connections that work do not give way");
        drop(third);
        assert!(open().is_some());
    }

    #[tokio::test]
    async fn a_wait_that_goes_on_keeps_its_age() {
        let connections = Connections::default();
        let (first, second) =
            (connections.open_waiting(2).unwrap(), connections.open_waiting(2).unwrap());
        first.activity().wait();
        connections.close_waiting(1);
        first.activity().gives_way().await;
        drop(second);
        assert_eq!(connections.count(), 0);
    }
}
