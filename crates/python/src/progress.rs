//! Progress of a long call: as a bar on the terminal, or passed to a Python function, which shows it in a notebook.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a running call: units of work, and bytes.
#[derive(Default)]
pub(crate) struct Counts {
    total: AtomicU64,
    done: AtomicU64,
    bytes: AtomicU64,
}

impl Counts {
    pub(crate) fn set_total(&self, units: u64) {
        self.total.store(units, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, units: u64, bytes: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Calls `function(done, total, bytes)`, if there is one.
    pub(crate) fn report(&self, py: Python<'_>, function: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(function) = function else { return Ok(()) };
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        function.call1(py, (get(&self.done), get(&self.total), get(&self.bytes))).map(drop)
    }
}
