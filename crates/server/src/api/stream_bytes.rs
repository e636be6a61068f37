//! The bytes of events that streams hold while their readers receive them.
//!
//! A reader that stalls in the middle of a large event keeps that event in memory, so the bytes of each token are
//! bounded. Readers of the same event share its bytes. A reader that would exceed the bound waits, and costs its
//! cursor. A reader that has taken nothing for a while gives way to waiting ones: its connection ends, and it resumes
//! after the last event that it received whole.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_platform::Clock;
use bough_service::FeedEvent;
use tokio::sync::Notify;

use crate::limits::STREAM_STALLED_AFTER;
use crate::net::Activity;

/// The bytes that the streams of a server hold, by token. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamBytes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    holds: Mutex<HashMap<Option<String>, Vec<Hold>>>,
    released: Notify,
    /// Numbers the holds.
    made: AtomicU64,
}

#[derive(Debug)]
struct Hold {
    number: u64,
    what: What,
    bytes: usize,
    reader: Arc<StreamReader>,
}

/// A held object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    /// An event, by its address, which is stable while it is held.
    Event(usize),
    /// Something that no other reader has.
    Own(u64),
}

/// One reader of a stream.
pub(crate) struct StreamReader {
    bytes: StreamBytes,
    clock: Arc<dyn Clock>,
    token: Option<String>,
    connection: Option<Arc<Activity>>,
    /// When it last took something, in milliseconds of the clock.
    taken_at: AtomicU64,
}

/// Bytes that a reader holds; dropping this releases them.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    reader: Arc<StreamReader>,
    number: u64,
}

impl StreamBytes {
    /// A reader with a token, on a connection that can be closed.
    pub(crate) fn reader(
        &self,
        token: Option<String>,
        connection: Option<Arc<Activity>>,
        clock: Arc<dyn Clock>,
    ) -> Arc<StreamReader> {
        let taken_at = AtomicU64::new(now_ms(&*clock));
        Arc::new(StreamReader { bytes: self.clone(), clock, token, connection, taken_at })
    }

    /// How many bytes are held, for all tokens together.
    pub(crate) fn held(&self) -> usize {
        self.lock().values().map(|holds| total(holds.iter())).sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, Vec<Hold>>> {
        self.0.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StreamReader {
    /// Notes that the reader took something.
    pub(crate) fn note_taken(&self) {
        self.taken_at.store(now_ms(&*self.clock), Ordering::Relaxed);
    }

    /// Holds an event; `None` if its token would hold more than `most`. A token that holds nothing may hold an event of
    /// any size.
    pub(crate) fn hold_event(
        self: &Arc<Self>,
        event: &Arc<FeedEvent>,
        most: usize,
    ) -> Option<HeldBytes> {
        self.hold(event_at(event), event.weight(), most)
    }

    /// Counts bytes of this reader alone that are in memory already.
    pub(crate) fn hold_own(self: &Arc<Self>, bytes: usize) -> Option<HeldBytes> {
        self.hold(self.own(), bytes, usize::MAX)
    }

    /// Waits until this many bytes, or as many as the bound allows, can be held, and holds them.
    pub(crate) async fn reserve(self: &Arc<Self>, bytes: usize, most: usize) -> HeldBytes {
        let bytes = bytes.min(most);
        loop {
            let released = self.bytes.0.released.notified();
            if let Some(held) = self.hold(self.own(), bytes, most) {
                return held;
            }
            self.close_stalled();
            // A reader that stalls from now on is detected when the time is over.
            let _is_released = tokio::time::timeout(STREAM_STALLED_AFTER, released).await.is_ok();
        }
    }

    fn own(&self) -> What {
        What::Own(self.bytes.0.made.fetch_add(1, Ordering::Relaxed))
    }

    fn hold(self: &Arc<Self>, what: What, bytes: usize, most: usize) -> Option<HeldBytes> {
        let mut all = self.bytes.lock();
        let holds = all.entry(self.token.clone()).or_default();
        if !fits(holds.iter(), what, bytes, most) {
            return None;
        }
        let number = self.bytes.0.made.fetch_add(1, Ordering::Relaxed);
        holds.push(Hold { number, what, bytes, reader: self.clone() });
        Some(HeldBytes { reader: self.clone(), number })
    }

    /// Closes the connections that hold what has been stalled for longest, if it was stalled for long enough.
    fn close_stalled(&self) {
        let long = u64::try_from(STREAM_STALLED_AFTER.as_millis()).unwrap_or(u64::MAX);
        let stalled_before = now_ms(&*self.clock).saturating_sub(long);
        let all = self.bytes.lock();
        let Some(holds) = all.get(&self.token) else { return };
        let mut last_taken = HashMap::<What, u64>::new();
        for hold in holds.iter() {
            let taken_at = hold.reader.taken_at.load(Ordering::Relaxed);
            last_taken
                .entry(hold.what)
                .and_modify(|at| *at = taken_at.max(*at))
                .or_insert(taken_at);
        }
        // Shared bytes are free when all their readers are gone.
        let longest = last_taken.into_iter().min_by_key(|(_, at)| *at);
        let Some((what, _)) = longest.filter(|(_, at)| *at <= stalled_before) else { return };
        for hold in holds.iter().filter(|hold| hold.what == what) {
            if let Some(connection) = &hold.reader.connection {
                connection.close();
            }
        }
    }
}

/// Whether something can be held beside what is held already.
fn fits<'a>(
    mut holds: impl Iterator<Item = &'a Hold> + Clone,
    what: What,
    bytes: usize,
    most: usize,
) -> bool {
    let total = total(holds.clone());
    total == 0 || total.saturating_add(bytes) <= most || holds.any(|hold| hold.what == what)
}

/// The bytes of holds; an event that several readers hold counts once.
fn total<'a>(holds: impl Iterator<Item = &'a Hold>) -> usize {
    let mut counted = HashSet::new();
    let once = holds.filter(|hold| counted.insert(hold.what));
    once.fold(0, |sum, hold| sum.saturating_add(hold.bytes))
}

fn event_at(event: &Arc<FeedEvent>) -> What {
    What::Event(Arc::as_ptr(event).addr())
}

fn now_ms(clock: &dyn Clock) -> u64 {
    u64::try_from(clock.monotonic().as_millis()).unwrap_or(u64::MAX)
}

impl HeldBytes {
    /// Holds an event in place of the previous bytes; `None` releases those if the event exceeds the bound.
    pub(crate) fn into_event(self, event: &Arc<FeedEvent>, most: usize) -> Option<Self> {
        let what = event_at(event);
        {
            let mut all = self.reader.bytes.lock();
            let holds = all.get_mut(&self.reader.token)?;
            let others = holds.iter().filter(|hold| hold.number != self.number);
            if !fits(others, what, event.weight(), most) {
                return None;
            }
            let own = holds.iter_mut().find(|hold| hold.number == self.number)?;
            (own.what, own.bytes) = (what, event.weight());
        }
        self.reader.bytes.0.released.notify_waiters();
        Some(self)
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        let bytes = &self.reader.bytes;
        {
            let mut all = bytes.lock();
            if let Some(holds) = all.get_mut(&self.reader.token) {
                holds.retain(|hold| hold.number != self.number);
                if holds.is_empty() {
                    all.remove(&self.reader.token);
                }
            }
        }
        bytes.0.released.notify_waiters();
    }
}

impl std::fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamReader").field("token", &self.token).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use bough_platform::SystemClock;

    use super::*;

    fn reader(bytes: &StreamBytes, token: &str) -> Arc<StreamReader> {
        bytes.reader(Some(token.to_owned()), None, Arc::new(SystemClock::new()))
    }

    #[test]
    fn each_token_has_a_bound_of_its_own() {
        let bytes = StreamBytes::default();
        let (one, other) = (reader(&bytes, "one"), reader(&bytes, "other"));
        let hold = |reader: &Arc<StreamReader>, size| reader.hold(reader.own(), size, 100);
        let first = hold(&one, 60).unwrap();
        assert!(hold(&one, 41).is_none(), "60 and 41 are more than 100");
        let second = hold(&one, 40).unwrap();
        let third = hold(&other, 1000).unwrap();
        assert_eq!(bytes.held(), 1100, "a token that holds nothing may hold anything");
        assert!(hold(&other, 1).is_none());
        drop((first, second, third));
        assert_eq!(bytes.held(), 0);
        assert!(bytes.lock().is_empty());
    }

    #[test]
    fn readers_of_one_event_hold_it_once() {
        let bytes = StreamBytes::default();
        let (one, other) = (reader(&bytes, "t"), reader(&bytes, "t"));
        let held = one.hold(What::Event(1), 90, 100).unwrap();
        let same = other.hold(What::Event(1), 90, 100).unwrap();
        assert!(other.hold(What::Event(2), 90, 100).is_none());
        assert_eq!(bytes.held(), 90);
        drop(held);
        assert_eq!(bytes.held(), 90, "the other one still has it");
        drop(same);
        assert!(other.hold(What::Event(2), 90, 100).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_waits_for_free_bytes() {
        let bytes = StreamBytes::default();
        let (one, other) = (reader(&bytes, "t"), reader(&bytes, "t"));
        let held = one.hold(one.own(), 90, 100).unwrap();
        let mut reserved = std::pin::pin!(other.reserve(90, 100));
        let not_yet = tokio::time::timeout(4 * STREAM_STALLED_AFTER, reserved.as_mut()).await;
        assert!(not_yet.is_err());
        drop(held);
        drop(reserved.await);
    }
}
