//! Locks under which every change leaves whole state behind, so that a panic elsewhere spoils nothing.

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A value that is replaced as a whole; readers copy it.
#[derive(Debug, Default)]
pub(crate) struct Replaceable<T>(RwLock<T>);

impl<T: Clone> Replaceable<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    pub(crate) fn get(&self) -> T {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, value: T) {
        self.replace_with(|_| value);
    }

    /// Replaces the value by one that is made from it, and returns it.
    pub(crate) fn replace_with(&self, make: impl FnOnce(&T) -> T) -> T {
        let mut slot = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let value = make(&slot);
        std::mem::replace(&mut slot, value)
    }
}
