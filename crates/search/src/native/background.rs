//! Work that no caller waits for.
//!
//! Indexing takes as much of a processor as it gets. On a machine that is busy with appends it would take that from those who
//! append, so it runs on a thread that the system prefers least.

use crate::SearchError;

/// How much less the system prefers such a thread than others, on Linux's scale from 0 to 19. At 19 it would hardly run on a
/// machine that is always busy.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Runs work on a thread of its own with a low priority, where the system has priorities of threads.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SearchError> + Send + 'static,
) -> Result<T, SearchError> {
    let (send, done) = tokio::sync::oneshot::channel();
    std::thread::Builder::new().name("bough-index".to_owned()).spawn(move || {
        lower_priority();
        drop(send.send(work()));
    })?;
    done.await.unwrap_or_else(|_| {
        Err(SearchError::Unavailable { reason: "the work on the index was given up".to_owned() })
    })
}

#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux this is about the calling thread alone. Without it, indexing is as quick as everything else.
    rustix::process::setpriority_process(None, NICENESS).ok();
}

#[cfg(not(target_os = "linux"))]
const fn lower_priority() {}
