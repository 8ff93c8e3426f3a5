//! The runtime and the clients of a process.
//!
//! They belong to a process id. A forked child has no threads of its parent's runtime, and locks that were held during the
//! `fork` stay locked there; so a child starts everything again, and never uses, drops or waits for its parent's.

use crate::client::{self, Client, Purpose};
use crate::url::Url;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// Requests of a process that are under way at once.
const IN_FLIGHT: usize = 64;

pub(crate) struct Process {
    id: u32,
    runtime: Runtime,
    clients: Mutex<HashMap<(String, Purpose), Client>>,
    pub(crate) permits: Semaphore,
}

/// The process that first used a store, or the last of its descendants in this address space. Never freed.
static CURRENT: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

impl Process {
    /// Returns the runtime and the clients of this process, and starts them on first use.
    ///
    /// # Errors
    /// If the runtime's threads cannot be started.
    pub(crate) fn current() -> io::Result<&'static Process> {
        let id = std::process::id();
        let found = CURRENT.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from `Box::into_raw` below, and what it points to is never freed or changed.
        if let Some(process) = unsafe { found.as_ref() }
            && process.id == id
        {
            return Ok(process);
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 4);
        let runtime =
            Builder::new_multi_thread().worker_threads(threads).thread_name("shardtool-store").enable_all().build()?;
        let clients = Mutex::new(HashMap::new());
        let made = Box::into_raw(Box::new(Process { id, runtime, clients, permits: Semaphore::new(IN_FLIGHT) }));
        match CURRENT.compare_exchange(found, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above. What `found` points to belongs to the parent process, and is leaked.
            Ok(_) => Ok(unsafe { &*made }),
            Err(_) => {
                // Another thread of this process was faster.
                // SAFETY: `made` comes from `Box::into_raw` and was not published.
                let made = unsafe { Box::from_raw(made) };
                made.runtime.shutdown_background();
                Process::current()
            }
        }
    }

    /// Runs a future on the runtime.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(future);
    }

    /// Runs what may wait, for a disk say, on a thread of its own.
    pub(crate) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        drop(self.runtime.spawn_blocking(work));
    }

    /// Returns the client for the root of a URL, and creates it on first use.
    ///
    /// # Errors
    /// `InvalidInput` if the environment's settings contradict each other.
    pub(crate) fn client(&self, url: &Url, purpose: Purpose) -> io::Result<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (url.root.clone(), purpose);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let client = client::connect(url, purpose)?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}
