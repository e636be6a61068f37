//! Work that runs to completion even if its caller stops waiting.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bough_store::StoreError;
use tokio::runtime::Handle;

use crate::error::ServiceError;

/// Runs work in the task of the caller. If the caller drops it before its end, it continues in a task of its own.
pub(crate) fn run_to_completion<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> impl Future<Output = Result<T, E>>
where
    T: Send + 'static,
    E: From<BrokenOff> + Send + 'static,
{
    RunToCompletion { work: Some(Box::pin(work)) }
}

/// Work ended without an answer.
pub(crate) struct BrokenOff(String);

impl From<BrokenOff> for ServiceError {
    fn from(BrokenOff(why): BrokenOff) -> Self {
        Self::storage(why)
    }
}

impl From<BrokenOff> for StoreError {
    fn from(BrokenOff(reason): BrokenOff) -> Self {
        Self::Unavailable { reason }
    }
}

type Work<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

struct RunToCompletion<T: Send + 'static, E: Send + 'static> {
    /// `None` when it has ended.
    work: Option<Work<T, E>>,
}

impl<T: Send + 'static, E: From<BrokenOff> + Send + 'static> Future for RunToCompletion<T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Ready(Err(broken_off("it was asked for again after its end")));
        };
        // A panic in a rule ends this work and nothing else.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        let answer = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answer)) => answer,
            Err(panic) => Err(broken_off(panic_text(&*panic))),
        };
        self.work = None;
        Poll::Ready(answer)
    }
}

impl<T: Send + 'static, E: Send + 'static> Drop for RunToCompletion<T, E> {
    fn drop(&mut self) {
        // Without a runtime everything has ended anyway.
        if let (Some(work), Ok(runtime)) = (self.work.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

fn broken_off<E: From<BrokenOff>>(why: &str) -> E {
    BrokenOff(format!("the write was broken off: {why}")).into()
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn work_whose_caller_left_still_ends() {
        let (go_on, ended) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let (gate, end) = (Arc::clone(&go_on), Arc::clone(&ended));
        let work = run_to_completion(async move {
            gate.notified().await;
            end.store(true, Ordering::Release);
            Ok::<_, ServiceError>(())
        });
        let left = tokio::time::timeout(Duration::from_millis(1), work).await;
        assert!(left.is_err() && !ended.load(Ordering::Acquire));
        go_on.notify_one();
        while !ended.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_error_that_says_what_it_was() {
        let work = async { panic!("number {}", 7) };
        let error = run_to_completion::<(), ServiceError>(work).await.unwrap_err();
        assert!(error.to_string().contains("broken off: number 7"), "{error}");
    }
}
