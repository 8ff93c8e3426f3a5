//! The loader: iteration, state, statistics. Waiting happens without Python's lock.

use crate::config::Options;
use crate::dataset::Split;
use crate::process::Local;
use crate::{batch, error};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use shardtool_load::Error;
use shardtool_order::ResumeState;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Workers and their queue; `shardtool.Loader` is what users see.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Loader {
    /// `None` once closed. Locked only while this thread has let go of Python's lock, since its holder takes that lock to
    /// look for Ctrl-C.
    inner: Local<Mutex<Option<Inner>>>,
    label: Option<String>,
}

struct Inner {
    loader: shardtool_load::Loader,
    /// Which iteration is going on; an older one ends with an error.
    iteration: u64,
    /// Whether the next iteration goes on where the loader stands, even inside an epoch.
    fresh: bool,
}

impl Loader {
    fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut Inner) -> Result<T, Error> + Send) -> PyResult<T> {
        if !self.inner.is_ours() {
            return Err(error::forked());
        }
        let result = py.detach(|| self.lock().as_mut().map(f));
        let result = result.ok_or_else(|| PyRuntimeError::new_err("the loader is closed"))?;
        result.map_err(|e| error::load(py, e))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Inner>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Loader {
    #[new]
    fn new(py: Python<'_>, splits: Vec<Py<Split>>, options: Options) -> PyResult<Self> {
        let splits: Vec<_> = splits.iter().map(|split| split.get().split.clone()).collect();
        let label = splits.first().and_then(|split| split.manifest().label.clone());
        let config = options.config(py, splits)?;
        let loader = py.detach(|| shardtool_load::Loader::new(&config)).map_err(|e| error::load(py, e))?;
        let inner = Inner { loader, iteration: 0, fresh: true };
        Ok(Loader { inner: Local::new(Mutex::new(Some(inner))), label })
    }

    /// Begins an iteration and gives its number: goes on where a state was loaded or an epoch set, else the next epoch.
    fn begin(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |inner| {
            let state = inner.loader.state();
            if state.p == 0 {
                inner.loader.start_epoch(state.epoch);
            } else if !inner.fresh {
                inner.loader.start_epoch(state.epoch + 1);
            }
            inner.fresh = false;
            inner.iteration += 1;
            Ok(inner.iteration)
        })
    }

    /// The next batch of an iteration, `None` at the epoch's end.
    fn next<'py>(&self, py: Python<'py>, iteration: u64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let mut signal = None;
        let next = self.with(py, |inner| {
            if inner.iteration != iteration {
                return Ok(None);
            }
            let interrupted = &mut || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            };
            inner.loader.next_batch_unless(interrupted).map(Some)
        });
        match (next, signal) {
            (_, Some(interrupt)) => Err(interrupt),
            (Ok(Some(Some(delivered))), None) => Ok(Some(batch::to_dict(py, delivered, self.label.as_deref())?)),
            (Ok(Some(None)), None) => Ok(None),
            (Ok(None), None) => Err(PyRuntimeError::new_err(
                "this iteration ended when a new one began, a state was loaded or an epoch set: a loader has one at a time",
            )),
            (Err(error), None) => Err(error),
        }
    }

    /// The state to resume from, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |inner| Ok(inner.loader.state().to_string()))
    }

    /// Goes on from a state.
    fn load_state(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        let state = ResumeState::parse(json).map_err(|e| error::order(py, e))?;
        self.with(py, |inner| {
            inner.loader.load_state(&state)?;
            (inner.fresh, inner.iteration) = (true, inner.iteration + 1);
            Ok(())
        })
    }

    /// The next iteration is this epoch: from where a state was loaded inside it, else from its beginning.
    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |inner| {
            if !(inner.fresh && inner.loader.state().epoch == epoch) {
                inner.loader.start_epoch(epoch);
                (inner.fresh, inner.iteration) = (true, inner.iteration + 1);
            }
            Ok(())
        })
    }

    /// Steps of a whole epoch.
    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |inner| Ok(inner.loader.len() as usize))
    }

    /// Statistics as JSON, and as Prometheus text.
    fn stats(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.with(py, |inner| {
            let stats = inner.loader.stats();
            Ok((stats.to_json().to_string(), stats.to_prometheus()))
        })
    }

    /// The bad samples so far, as dicts.
    fn bad_samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let samples = self.with(py, |inner| Ok(inner.loader.bad_samples()))?;
        let dicts = samples.iter().map(|sample| {
            let dict = crate::verify::to_dict(py, &error::found_in(sample))?;
            dict.set_item("id", sample.id)?;
            Ok(dict)
        });
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// Ends the workers; batches that were delivered stay valid.
    fn close(&self, py: Python<'_>) {
        if self.inner.is_ours() {
            py.detach(|| drop(self.lock().take()));
        }
    }
}
