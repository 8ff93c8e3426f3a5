//! Processes and signals: objects that a forked child must not use, and Ctrl-C while Rust code runs.

use pyo3::prelude::*;
use std::ops::Deref;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A value whose threads belong to this process. In a forked child those threads do not exist, and locks may stay
/// held forever, so there the value is neither used nor dropped.
pub(crate) struct Local<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Local<T> {
    pub(crate) fn new(value: T) -> Self {
        Local { value: Some(value), process: std::process::id() }
    }

    /// Returns whether this process created the value.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }
}

impl<T> Deref for Local<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("taken only by `drop`")
    }
}

impl<T> Drop for Local<T> {
    fn drop(&mut self) {
        if !self.is_ours() {
            std::mem::forget(self.value.take());
        }
    }
}

/// How often signals are checked and progress is reported.
const INTERVAL: Duration = Duration::from_millis(100);

/// Runs `work` on another thread and waits for it without the GIL. Every 100 ms, checks for signals and calls
/// `report`. If either raises (`KeyboardInterrupt` on Ctrl-C), calls `stop`, waits for the work to end, and
/// returns that exception. Calls `report` once more at the end, and returns its exception if it raises.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl Fn(),
    report: impl Fn(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let thread = std::thread::Builder::new().name("shardtool-work".to_owned()).spawn(move || {
        // After an exception the receiver is gone.
        let _ = sender.send(work());
    })?;
    loop {
        let answer;
        (answer, receiver) = py.detach(move || (receiver.recv_timeout(INTERVAL), receiver));
        match answer {
            Ok(value) => return report(py).map(|()| value),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(exception) = py.check_signals().and_then(|()| report(py)) {
                    stop();
                    py.detach(|| drop(thread.join()));
                    return Err(exception);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let Err(panic) = py.detach(|| thread.join()) else { unreachable!("the thread sends before it ends") };
                std::panic::resume_unwind(panic);
            }
        }
    }
}
