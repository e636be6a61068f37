//! The threads that commit. A commit waits for the disk, so several go on at once; but a thread that is
//! there already takes the next one sooner than another is woken, so as few as can do the work are kept
//! busy. More join when a commit has waited too long for one: when the disk is slow, or stands still.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use crate::limits::{COMMIT_THREADS_BUSY, COMMIT_THREADS_MAX, COMMIT_WAIT, COMMITTER_IDLE};
use crate::sync::lock;

type Commit = Box<dyn FnOnce() + Send>;

/// The threads and what they have to do. Dropping it lets them finish.
#[derive(Debug)]
pub(super) struct CommitPool {
    pool: Arc<Pool>,
    runtime: Handle,
}

#[derive(Debug, Default)]
struct Pool {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    due: VecDeque<Commit>,
    threads: usize,
    /// Threads that wait to be called.
    idle: usize,
    /// Of those, the ones that were called and have not come yet.
    called: usize,
    /// A task checks whether the commits that are due have waited too long.
    watched: bool,
    /// How many commits were taken up; it stands still when every thread waits for the disk.
    taken: u64,
    closed: bool,
}

impl State {
    /// Threads that have something to do, or are on their way to it.
    fn busy(&self) -> usize {
        self.threads - (self.idle - self.called)
    }

    /// A thread stops waiting. Returns whether it was not called.
    fn come(&mut self) -> bool {
        self.idle -= 1;
        if self.called == 0 {
            return true;
        }
        self.called -= 1;
        false
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl CommitPool {
    pub(super) fn new(runtime: Handle) -> Self {
        Self { pool: Arc::default(), runtime }
    }

    /// Sees to it that a commit is made.
    pub(super) fn commit(&self, commit: impl FnOnce() + Send + 'static) {
        let mut state = self.pool.state();
        state.due.push_back(Box::new(commit));
        if state.busy() < COMMIT_THREADS_BUSY {
            return self.pool.call_one(state);
        }
        if !std::mem::replace(&mut state.watched, true) {
            let seen = state.taken;
            drop(state);
            self.runtime.spawn(watch(Arc::clone(&self.pool), seen));
        }
    }
}

impl Drop for CommitPool {
    fn drop(&mut self) {
        self.pool.state().closed = true;
        self.pool.work.notify_all();
    }
}

/// Calls one thread more for every while in which no commit was taken up, until none is due.
async fn watch(pool: Arc<Pool>, mut seen: u64) {
    loop {
        tokio::time::sleep(COMMIT_WAIT).await;
        let mut state = pool.state();
        if state.due.is_empty() {
            state.watched = false;
            return;
        }
        if state.taken == seen {
            pool.call_one(state);
        } else {
            seen = state.taken;
        }
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Wakes a thread that has nothing to do, or starts one.
    fn call_one(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.idle > state.called {
            state.called += 1;
            drop(state);
            return self.work.notify_one();
        }
        if state.threads >= COMMIT_THREADS_MAX {
            return;
        }
        state.threads += 1;
        drop(state);
        let pool = Arc::clone(self);
        let started =
            std::thread::Builder::new().name("bough-commit".to_owned()).spawn(move || pool.serve());
        if started.is_err() {
            self.make_do();
        }
    }

    /// No thread could be started: with none at all, the calling thread commits.
    fn make_do(&self) {
        let mut state = self.state();
        state.threads -= 1;
        while state.threads == 0
            && let Some(commit) = state.due.pop_front()
        {
            drop(state);
            commit();
            state = self.state();
        }
    }

    /// Commits what is due, until there has been nothing for a while.
    fn serve(&self) {
        let mut state = self.state();
        loop {
            if let Some(commit) = state.due.pop_front() {
                state.taken += 1;
                drop(state);
                // A commit that panics takes its session with it, and no thread.
                drop(catch_unwind(AssertUnwindSafe(commit)));
                state = self.state();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (woken, waited) = self
                .work
                .wait_timeout(state, COMMITTER_IDLE)
                .unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if state.come() && waited.timed_out() && state.due.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use super::*;

    /// Longer than any machine needs.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn heard(ended: &Receiver<usize>, count: usize) {
        let mut numbers: Vec<usize> =
            (0..count).map(|_| ended.recv_timeout(PATIENCE).unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn commits_go_on_while_others_stand_still() {
        let commit_pool = CommitPool::new(Handle::current());
        // Every one of these waits for all the others: they go on only when each has a thread.
        let all = COMMIT_THREADS_BUSY * 3;
        let together = Arc::new(Barrier::new(all));
        let (end, ended) = channel();
        for number in 0..all {
            let (together, end) = (Arc::clone(&together), end.clone());
            commit_pool.commit(move || {
                together.wait();
                end.send(number).unwrap();
            });
        }
        heard(&ended, all);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn commits_that_follow_each_other_need_few_threads() {
        let commit_pool = CommitPool::new(Handle::current());
        let (end, ended) = channel();
        for number in 0..1_000 {
            let end = end.clone();
            commit_pool.commit(move || end.send(number).unwrap());
            assert_eq!(ended.recv_timeout(PATIENCE).unwrap(), number);
            let state = commit_pool.pool.state();
            // A few more than one, where the machine is slow to let them become idle.
            assert!(state.threads < COMMIT_THREADS_MAX / 4, "{} threads for one", state.threads);
            assert!(state.called <= state.idle, "{} called of {}", state.called, state.idle);
        }
    }

    #[test]
    fn a_thread_that_woke_is_no_longer_called() {
        let mut state = State { threads: 2, idle: 2, called: 1, ..State::default() };
        assert!(!state.come());
        assert_eq!((state.idle, state.called), (1, 0));
        assert!(state.come());
        assert_eq!((state.idle, state.called), (0, 0));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_commit_that_panics_takes_no_thread_with_it() {
        let commit_pool = CommitPool::new(Handle::current());
        for _ in 0..COMMIT_THREADS_MAX * 2 {
            commit_pool.commit(|| std::panic::resume_unwind(Box::new("a failing commit")));
        }
        let (end, ended) = channel();
        commit_pool.commit(move || end.send(0).unwrap());
        heard(&ended, 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn commits_that_are_due_run_after_the_pool_is_dropped() {
        let commit_pool = CommitPool::new(Handle::current());
        let (end, ended) = channel();
        for number in 0..100 {
            let end = end.clone();
            commit_pool.commit(move || end.send(number).unwrap());
        }
        drop(commit_pool);
        heard(&ended, 100);
    }
}
