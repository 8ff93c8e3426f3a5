//! Memory of the loaders of this process: the sum of their budgets, and the bytes that their batches occupy now.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Budgets of all loaders of this process, in bytes.
static RESERVED: Mutex<u64> = Mutex::new(0);

/// Returns the budgets of all loaders of this process, in bytes.
pub(crate) fn reserved() -> u64 {
    *RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The budget of one loader; released when dropped.
pub(crate) struct Reservation(AtomicU64);

impl Reservation {
    pub(crate) fn new(bytes: u64) -> Self {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        Reservation(AtomicU64::new(bytes))
    }

    /// Reserves `bytes` more.
    pub(crate) fn grow(&self, bytes: u64) {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) += bytes;
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *RESERVED.lock().unwrap_or_else(PoisonError::into_inner) -= *self.0.get_mut();
    }
}

/// Bytes of batches that the loaders of this process have in memory: part of their budgets, and of the process's
/// anonymous memory.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// Returns the bytes of batches that the loaders of this process have in memory.
pub(crate) fn live() -> u64 {
    LIVE.load(Ordering::Relaxed)
}

/// Counts the memory of a batch while it exists.
pub(crate) struct Live(u64);

impl Live {
    pub(crate) fn new(bytes: u64) -> Self {
        LIVE.fetch_add(bytes, Ordering::Relaxed);
        Live(bytes)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(self.0, Ordering::Relaxed);
    }
}
