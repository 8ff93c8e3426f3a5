//! Scratch memory of decoders, admitted in bytes before an image is decoded.

use super::sync::{Condvar, Mutex};
use std::sync::PoisonError;

/// Bytes that all workers may use together. Waiting workers are served in order of arrival (a ticket lock), so that
/// small images cannot starve a large one. A worker must not wait for anything else while it holds bytes, so there is
/// no deadlock.
#[derive(Debug)]
pub struct ScratchPool {
    state: Mutex<Pool>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    most: u64,
    used: u64,
    /// The next ticket to hand out, and the next ticket to serve.
    tickets: (u64, u64),
}

/// Bytes held; returned when dropped.
#[derive(Debug)]
pub struct Admitted<'a> {
    pool: &'a ScratchPool,
    bytes: u64,
}

impl ScratchPool {
    /// Makes a pool of `most` bytes.
    pub fn new(most: u64) -> Self {
        ScratchPool { state: Mutex::new(Pool { most, ..Pool::default() }), freed: Condvar::new() }
    }

    /// Adds `bytes` to the pool.
    pub fn grow(&self, bytes: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).most += bytes;
    }

    /// Waits until `bytes` are free.
    ///
    /// # Errors
    /// The size of the pool, if it is smaller than `bytes`.
    pub fn admit(&self, bytes: u64) -> Result<Admitted<'_>, u64> {
        if bytes == 0 {
            return Ok(Admitted { pool: self, bytes });
        }
        let mut pool = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > pool.most {
            return Err(pool.most);
        }
        let ticket = pool.tickets.0;
        pool.tickets.0 += 1;
        while pool.tickets.1 != ticket || pool.used + bytes > pool.most {
            pool = self.freed.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        pool.tickets.1 += 1;
        pool.used += bytes;
        let others = pool.tickets.0 != pool.tickets.1;
        drop(pool);
        if others {
            self.freed.notify_all();
        }
        Ok(Admitted { pool: self, bytes })
    }
}

impl<'a> Admitted<'a> {
    /// Adds `bytes` if they are free and no other worker waits. Returns whether they were added.
    pub fn extend(&mut self, bytes: u64) -> bool {
        if bytes == 0 {
            return true;
        }
        let mut pool = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        let free = pool.tickets.0 == pool.tickets.1 && pool.used + bytes <= pool.most;
        if free {
            pool.used += bytes;
            self.bytes += bytes;
        }
        free
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut pool = self.pool.state.lock().unwrap_or_else(PoisonError::into_inner);
        pool.used -= self.bytes;
        let others = pool.tickets.0 != pool.tickets.1;
        drop(pool);
        if others {
            self.pool.freed.notify_all();
        }
    }
}
