//! Processes and signals: what a forked child must leave alone, and Ctrl-C while Rust code works.

use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A value that threads of this process stand behind. In a child made by `fork` those threads do not exist, and locks may
/// be held for ever: there it is never used, nor dropped.
pub(crate) struct Local<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Local<T> {
    pub(crate) fn new(value: T) -> Self {
        Local { value: Some(value), process: std::process::id() }
    }

    /// Whether this is the process that made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("taken only when it is dropped")
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(self.value.take());
        }
    }
}

/// How often to look for Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Does long work on a thread of its own while this one, which has let go of Python, looks for Ctrl-C; calls `stop` then,
/// and waits for the work to end, which it does soon.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl Fn(),
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().name("shardtool-work".to_owned()).spawn(move || {
        // Nobody listens any more after Ctrl-C.
        let _ = sender.send(work());
    })?;
    loop {
        let answer;
        (answer, receiver) = py.detach(move || (receiver.recv_timeout(LOOK), receiver));
        match answer {
            Ok(value) => return Ok(value),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    stop();
                    py.detach(|| drop(thread.join()));
                    return Err(interrupt);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let Err(panic) = py.detach(|| thread.join()) else { unreachable!("the thread sends before it ends") };
                std::panic::resume_unwind(panic);
            }
        }
    }
}
