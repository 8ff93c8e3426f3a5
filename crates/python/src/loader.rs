//! The loader: iteration, state, statistics. Waiting happens without Python's lock.

use crate::batch::Delivered;
use crate::config::{Options, Settled};
use crate::dataset::Split;
use crate::error;
use crate::function::Raised;
use crate::lane::Lane;
use crate::process::Local;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use shardtool_cuda::{Error, ImageLoader};
use shardtool_order::ResumeState;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Workers and their queue; `shardtool.Loader` is what users see.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Loader {
    /// `None` once closed. Locked only while this thread has let go of Python's lock, since its holder takes that lock to
    /// look for Ctrl-C.
    inner: Local<Mutex<Option<Inner>>>,
    label: Option<String>,
    raised: Raised,
}

struct Inner {
    /// One for each replica that this process serves, all fed by the same workers.
    lanes: Vec<Lane>,
    /// What the first lanes have delivered of a step in which waiting was interrupted.
    part: Vec<Option<Delivered>>,
    /// Which iteration is going on; an older one ends with an error.
    iteration: u64,
    /// Whether the next iteration goes on where the loader stands, even inside an epoch.
    fresh: bool,
}

impl Inner {
    /// Where the caller stands: the last lane is the one that an interrupted step did not reach.
    fn state(&self) -> ResumeState {
        self.lanes[self.lanes.len() - 1].state()
    }

    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error> {
        self.part.clear();
        self.lanes.iter_mut().try_for_each(|lane| lane.start_epoch(epoch))
    }

    /// A batch of each lane; none at the epoch's end, which comes for all of them after the same step.
    fn next(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Vec<Delivered>, Error> {
        while let Some(lane) = self.lanes.get_mut(self.part.len()) {
            self.part.push(lane.next(interrupted)?);
        }
        Ok(self.part.drain(..).flatten().collect())
    }
}

fn lanes(settled: &Settled) -> Result<Vec<Lane>, Error> {
    let Settled { config, ranks, devices, .. } = settled;
    match devices {
        None => Ok(shardtool_load::Loader::group(config, ranks)?.into_iter().map(Lane::Host).collect()),
        Some((devices, on_device)) => {
            let group = ImageLoader::group(devices, on_device.clone(), config, ranks)?;
            Ok(group.into_iter().map(|loader| Lane::Device(Box::new(loader))).collect())
        }
    }
}

impl Loader {
    fn with<T: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut Inner) -> Result<T, Error> + Send) -> PyResult<T> {
        if !self.inner.is_ours() {
            return Err(error::forked());
        }
        let result = py.detach(|| self.lock().as_mut().map(f));
        let result = result.ok_or_else(|| PyRuntimeError::new_err("the loader is closed"))?;
        result.map_err(|error| match error {
            Error::Load(shardtool_load::Error::Panic { .. }) => {
                self.raised.take().unwrap_or_else(|| error::device(py, error))
            }
            error => error::device(py, error),
        })
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
        let settled = options.settle(py, splits)?;
        let lanes = py.detach(|| lanes(&settled)).map_err(|e| error::device(py, e))?;
        let inner = Inner { part: Vec::with_capacity(lanes.len()), lanes, iteration: 0, fresh: true };
        Ok(Loader { inner: Local::new(Mutex::new(Some(inner))), label, raised: settled.raised })
    }

    /// Begins an iteration and gives its number: goes on where a state was loaded or an epoch set, else the next epoch.
    fn begin(&self, py: Python<'_>) -> PyResult<u64> {
        // What other workers raised in a step that was given up.
        self.raised.take();
        self.with(py, |inner| {
            let state = inner.state();
            if state.p == 0 {
                inner.start_epoch(state.epoch)?;
            } else if !inner.fresh {
                inner.start_epoch(state.epoch + 1)?;
            }
            inner.fresh = false;
            inner.iteration += 1;
            Ok(inner.iteration)
        })
    }

    /// The next batches of an iteration, one for each replica; none at the epoch's end.
    fn next<'py>(&self, py: Python<'py>, iteration: u64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut signal = None;
        let next = self.with(py, |inner| {
            if inner.iteration != iteration {
                return Ok(None);
            }
            let interrupted = &mut || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            };
            inner.next(interrupted).map(Some)
        });
        match (next, signal) {
            (_, Some(interrupt)) => Err(interrupt),
            (Ok(Some(batches)), None) => {
                batches.into_iter().map(|batch| batch.into_dict(py, self.label.as_deref())).collect()
            }
            (Ok(None), None) => Err(PyRuntimeError::new_err(
                "this iteration ended when a new one began, a state was loaded or an epoch set: a loader has one at a time",
            )),
            (Err(error), None) => Err(error),
        }
    }

    /// The state to resume from, as JSON.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |inner| Ok(inner.state().to_string()))
    }

    /// Goes on from a state.
    fn load_state(&self, py: Python<'_>, json: &str) -> PyResult<()> {
        let state = ResumeState::parse(json).map_err(|e| error::order(py, e))?;
        self.with(py, |inner| {
            inner.part.clear();
            inner.lanes.iter_mut().try_for_each(|lane| lane.load_state(&state))?;
            (inner.fresh, inner.iteration) = (true, inner.iteration + 1);
            Ok(())
        })
    }

    /// The next iteration is this epoch: from where a state was loaded inside it, else from its beginning.
    fn set_epoch(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |inner| {
            if !(inner.fresh && inner.state().epoch == epoch) {
                inner.start_epoch(epoch)?;
                (inner.fresh, inner.iteration) = (true, inner.iteration + 1);
            }
            Ok(())
        })
    }

    /// Steps of a whole epoch.
    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |inner| Ok(inner.lanes[0].len() as usize))
    }

    /// Statistics as JSON, and as Prometheus text.
    fn stats(&self, py: Python<'_>) -> PyResult<(String, String)> {
        self.with(py, |inner| {
            let stats = inner.lanes[0].stats();
            let mut json = stats.to_json();
            let devices: Vec<_> = inner.lanes.iter().filter_map(Lane::device).collect();
            if !devices.is_empty() {
                json["devices"] = devices.into();
            }
            Ok((json.to_string(), stats.to_prometheus()))
        })
    }

    /// The bad samples so far, as dicts.
    fn bad_samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let samples = self.with(py, |inner| Ok(inner.lanes[0].bad_samples()))?;
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

impl Drop for Loader {
    /// Joins the workers without Python's lock, which one of them may be waiting for to call the user's function.
    fn drop(&mut self) {
        if self.inner.is_ours() {
            Python::attach(|py| self.close(py));
        }
    }
}
