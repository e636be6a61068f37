use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bough_session::{EntryId, Incarnation, SessionId, SessionState};
use bough_store::{Head, Store, StoreError};
use tokio::sync::watch;

use super::streams::Streams;
use crate::limits::DESKS_MAX;

/// The sessions that are being written. Idle ones are forgotten when there are many.
#[derive(Default)]
pub(crate) struct Desks {
    desks: Mutex<HashMap<SessionId, Arc<Desk>>>,
    uses: AtomicU64,
}

/// Where one session is written: its state as of the last batch that the store accepted.
pub(crate) struct Desk {
    pub(super) session: SessionId,
    pub(super) work: tokio::sync::Mutex<Work>,
    pending: Mutex<Pending>,
    /// A batch failed: what the desk knows is no longer what is stored.
    broken: AtomicBool,
    last_use: AtomicU64,
}

/// What only the one who holds the lock may touch.
#[derive(Default)]
pub(super) struct Work {
    /// `None` when it must be read first.
    pub(super) loaded: Option<Loaded>,
    /// The newest accepted batch; when it is durable, so is everything before it.
    pub(super) newest: Option<Ticket>,
    pub(super) streams: Streams,
    /// Steps of a message were written since the last batch, which takes them away.
    pub(super) stepped: bool,
    issued: u64,
}

/// What was done to know a session.
pub(super) struct Load {
    /// It was opened again after a failed batch.
    pub(super) reopened: bool,
    /// It was read just now.
    pub(super) read: bool,
}

/// A session as of the last accepted batch.
pub(super) enum Loaded {
    /// There is no such session.
    Absent,
    /// Its head and the fold up to it.
    Present(Box<Present>),
}

pub(super) struct Present {
    pub(super) head: Head,
    pub(super) state: Arc<SessionState>,
}

impl Work {
    /// The life of the session that is known.
    pub(super) fn life(&self) -> Option<Incarnation> {
        match &self.loaded {
            Some(Loaded::Present(present)) => Some(present.head.incarnation),
            Some(Loaded::Absent) | None => None,
        }
    }

    /// Whether what is known is what the store has, as far as that can be said without reading.
    pub(super) fn is_newest(&self, session: &SessionId, store: &dyn Store) -> bool {
        match &self.loaded {
            Some(Loaded::Present(present)) => store.is_newest(session, &present.head),
            // Another process may have made it since.
            Some(Loaded::Absent) | None => false,
        }
    }
}

/// Entries that were accepted and are not yet durable, so that no read shows them.
#[derive(Default)]
struct Pending {
    order: VecDeque<(u64, EntryId)>,
    entries: HashMap<EntryId, PendingEntry>,
}

/// What is known of such an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingEntry {
    pub(crate) parent_id: Option<EntryId>,
    pub(crate) timestamp: i64,
}

type Outcome = Option<Result<(), StoreError>>;

/// The wait for one accepted batch, shared by all who depend on it.
#[derive(Clone)]
pub(super) struct Ticket(watch::Receiver<Outcome>);

/// The other end of a [`Ticket`].
pub(super) struct Settling {
    number: u64,
    outcome: watch::Sender<Outcome>,
}

impl Desks {
    /// The desk of a session.
    pub(crate) fn desk(&self, session: &SessionId) -> Arc<Desk> {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut desks = lock(&self.desks);
        if desks.len() >= DESKS_MAX && !desks.contains_key(session) {
            forget_idle(&mut desks, now);
        }
        let desk =
            desks.entry(session.clone()).or_insert_with(|| Arc::new(Desk::new(session.clone())));
        desk.last_use.store(now, Ordering::Relaxed);
        desk.clone()
    }

    /// How many sessions are held.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.desks).len()
    }
}

/// Forgets the half of the idle desks that was used longest ago. A desk that somebody holds, or whose last batch is not
/// durable yet, is not idle: its overlay is the only place that knows of that batch.
fn forget_idle(desks: &mut HashMap<SessionId, Arc<Desk>>, now: u64) {
    let mut uses: Vec<u64> =
        desks.values().map(|desk| desk.last_use.load(Ordering::Relaxed)).collect();
    uses.sort_unstable();
    let median = uses.get(uses.len() / 2).copied().unwrap_or(now);
    desks.retain(|_, desk| {
        let recent = desk.last_use.load(Ordering::Relaxed) > median;
        recent || Arc::strong_count(desk) > 1 || desk.has_pending()
    });
}

impl Desk {
    fn new(session: SessionId) -> Self {
        Self {
            session,
            work: tokio::sync::Mutex::default(),
            pending: Mutex::default(),
            broken: AtomicBool::new(false),
            last_use: AtomicU64::new(0),
        }
    }

    /// Reads the session if it is not known, or no longer. After a failed batch the store takes nothing until the session
    /// is opened again.
    pub(super) async fn load(
        &self,
        work: &mut Work,
        store: &dyn Store,
    ) -> Result<Load, StoreError> {
        let broken = self.broken.load(Ordering::Acquire);
        if broken {
            self.forget(work).await;
            store.reopen(&self.session).await?;
            self.broken.store(false, Ordering::Release);
        }
        let read = work.loaded.is_none();
        if read {
            let snapshot = store.state(&self.session).await?;
            work.loaded = Some(snapshot.map_or(Loaded::Absent, |snapshot| {
                Loaded::Present(Box::new(Present {
                    head: snapshot.head,
                    state: Arc::new(snapshot.state),
                }))
            }));
        }
        Ok(Load { reopened: broken, read })
    }

    /// Forgets everything, after what was accepted has ended one way or the other: a read shows only what is durable.
    pub(super) async fn forget(&self, work: &mut Work) {
        work.loaded = None;
        work.streams.clear();
        if let Some(newest) = work.newest.take() {
            // Whether it failed is for those who wait for an answer; here only that it ended matters.
            drop(newest.settled().await);
        }
        lock(&self.pending).clear();
    }

    /// Notes a batch that the store accepted, with the entries that it adds.
    pub(super) fn accept(
        &self,
        work: &mut Work,
        entries: Vec<(EntryId, PendingEntry)>,
    ) -> Settling {
        work.issued += 1;
        let number = work.issued;
        lock(&self.pending).add(number, entries);
        let (sender, receiver) = watch::channel(None);
        work.newest = Some(Ticket(receiver));
        Settling { number, outcome: sender }
    }

    /// Notes how an accepted batch ended, and wakes who waits for it.
    pub(super) fn settle(&self, settling: Settling, outcome: &Result<(), StoreError>) {
        if outcome.is_err() {
            self.broken.store(true, Ordering::Release);
        }
        lock(&self.pending).forget_up_to(settling.number);
        settling.outcome.send_replace(Some(outcome.clone()));
    }

    pub(super) fn pending(&self, entry: &EntryId) -> Option<PendingEntry> {
        lock(&self.pending).entries.get(entry).cloned()
    }

    fn has_pending(&self) -> bool {
        !lock(&self.pending).order.is_empty()
    }
}

impl Ticket {
    /// Waits until the batch is durable, or has failed.
    pub(super) async fn settled(mut self) -> Result<(), StoreError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            // The task that waited for the disk is gone: the runtime is shutting down.
            Err(_) => {
                Err(StoreError::Unavailable { reason: "the service is shutting down".to_owned() })
            }
        }
    }
}

impl Pending {
    fn add(&mut self, number: u64, entries: Vec<(EntryId, PendingEntry)>) {
        for (id, entry) in entries {
            self.order.push_back((number, id.clone()));
            self.entries.insert(id, entry);
        }
    }

    fn forget_up_to(&mut self, number: u64) {
        while let Some((of, _)) = self.order.front()
            && *of <= number
        {
            if let Some((_, id)) = self.order.pop_front() {
                self.entries.remove(&id);
            }
        }
    }

    fn clear(&mut self) {
        self.order.clear();
        self.entries.clear();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks leaves whole state behind, so a panic elsewhere spoils nothing.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> SessionId {
        SessionId::from_stored(format!("s{number}"))
    }

    #[test]
    fn idle_desks_are_forgotten_and_held_ones_are_not() {
        let desks = Desks::default();
        let held = desks.desk(&id(0));
        for number in 1..DESKS_MAX * 3 {
            desks.desk(&id(number));
        }
        assert!(desks.len() <= DESKS_MAX, "{}", desks.len());
        assert!(Arc::ptr_eq(&held, &desks.desk(&id(0))));
    }

    #[tokio::test]
    async fn a_desk_with_a_batch_on_its_way_is_not_forgotten() {
        let desks = Desks::default();
        let desk = desks.desk(&id(0));
        let entry = EntryId::from_stored("e");
        let pending = PendingEntry { parent_id: None, timestamp: 1 };
        let (settling, ticket) = {
            let mut work = desk.work.lock().await;
            let settling = desk.accept(&mut work, vec![(entry.clone(), pending.clone())]);
            (settling, work.newest.clone().unwrap())
        };
        drop(desk);
        for number in 1..DESKS_MAX * 3 {
            desks.desk(&id(number));
        }
        let desk = desks.desk(&id(0));
        assert_eq!(desk.pending(&entry), Some(pending));
        desk.settle(settling, &Ok(()));
        assert_eq!(desk.pending(&entry), None);
        ticket.settled().await.unwrap();
    }
}
