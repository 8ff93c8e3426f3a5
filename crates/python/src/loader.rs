//! The loader: iteration, state, statistics. It waits without the GIL.

use crate::batch::Delivered;
use crate::config::{Options, Place, Resolved};
use crate::error;
use crate::native_loader::ReplicaLoader;
use crate::split::Split;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use shardtool_cuda::{Error, ImageLoader};
use shardtool_load::{CheckedConfig, Config, Notice};
use shardtool_order::ResumeState;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The loader behind `shardtool.Loader`. It is bound to a replica, and starts its workers, when the first iteration begins.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Loader {
    resolved: Resolved,
    /// The process that bound the loader; 0 before that.
    process: AtomicU32,
    /// Locked only without the GIL, since its holder acquires the GIL to check for Ctrl-C.
    state: Mutex<State>,
    label: Option<String>,
}

enum State {
    /// Where the first iteration begins.
    Unbound(Option<ResumeState>),
    Bound(Inner),
    Closed,
}

struct Inner {
    /// One for each replica that this process serves, all with the same workers.
    replicas: Vec<ReplicaLoader>,
    /// Batches of the first replicas from a step that was interrupted while waiting.
    part: Vec<Option<Delivered>>,
    /// Where the replicas were bound.
    place: Place,
    /// Number of the current iteration; older ones end with an error.
    iteration: u64,
    /// Whether the next iteration continues at the current state, even inside an epoch.
    fresh: bool,
}

impl Inner {
    /// Returns the state of the consumer, which is that of the last replica: an interrupted step has not reached it.
    fn state(&self) -> ResumeState {
        self.replicas[self.replicas.len() - 1].state()
    }

    /// Returns whether the replicas are those of a process with this rank and world size.
    fn is_at(&self, place: Place) -> bool {
        (self.place.0, self.place.1) == (place.0, place.1)
    }

    /// Returns where the next iteration begins: in the next epoch, unless a state inside this one was loaded.
    fn resume_point(&self) -> ResumeState {
        match self.state() {
            at if at.p > 0 && !self.fresh => ResumeState { epoch: at.epoch + 1, p: 0, ..at },
            at => at,
        }
    }

    fn start_epoch(&mut self, epoch: u64) -> Result<(), Error> {
        self.part.clear();
        self.replicas.iter_mut().try_for_each(|replica| replica.start_epoch(epoch))
    }

    /// Returns a batch of each replica, or none at the end of an epoch, which all of them reach after the same step.
    fn next(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Vec<Delivered>, Error> {
        while let Some(replica) = self.replicas.get_mut(self.part.len()) {
            self.part.push(replica.next(interrupted)?);
        }
        Ok(self.part.drain(..).flatten().collect())
    }
}

/// Returns whether a notice is about what batches hold, and not about memory and files.
fn is_about_values(notice: &Notice) -> bool {
    use Notice::{BadSample, BadSamples, OtherTransform, UnmovedArray};
    matches!(notice, BadSample(_) | BadSamples { .. } | OtherTransform { .. } | UnmovedArray { .. })
}

fn replicas(resolved: &Resolved, config: &Config, ranks: &[u32]) -> Result<Vec<ReplicaLoader>, Error> {
    match &resolved.devices {
        None => Ok(shardtool_load::Loader::group(config, ranks)?.into_iter().map(ReplicaLoader::Host).collect()),
        Some((devices, on_device)) => {
            let group = ImageLoader::group(devices, on_device.clone(), config, ranks)?;
            Ok(group.into_iter().map(|loader| ReplicaLoader::Device(Box::new(loader))).collect())
        }
    }
}

impl Inner {
    fn new(
        resolved: &Resolved,
        config: &Config,
        ranks: &[u32],
        place: Place,
        at: Option<&ResumeState>,
    ) -> Result<Self, Error> {
        let mut replicas = replicas(resolved, config, ranks)?;
        if let Some(state) = at {
            replicas.iter_mut().try_for_each(|replica| replica.load_state(state))?;
        }
        Ok(Inner { part: Vec::with_capacity(replicas.len()), replicas, place, iteration: 0, fresh: true })
    }
}

impl Loader {
    /// Calls `f` with the state, without the GIL.
    fn with_state<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut State) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let process = self.process.load(Ordering::Acquire);
        if process != 0 && process != std::process::id() {
            return Err(error::forked(py));
        }
        let result = py.detach(|| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(*state, State::Closed) { None } else { Some(f(&mut state)) }
        });
        let result = result.ok_or_else(|| error::usage(py, "the loader is closed"))?;
        result.map_err(|error| match error {
            Error::Load(shardtool_load::Error::Panic { id, ref shard, record, ref message }) => {
                match self.resolved.raised.take(message) {
                    Some(raised) => {
                        let place = format!("record {record} of {} (id {id})", shard.display());
                        error::with_note(py, raised, &format!("raised by the function of the steps for {place}"))
                    }
                    None => error::device(py, error),
                }
            }
            error => error::device(py, error),
        })
    }

    /// Calls `f` with the bound loader; returns `None` if it is not bound.
    fn with_bound<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Inner) -> Result<T, Error> + Send,
    ) -> PyResult<Option<T>> {
        self.with_state(py, |state| match state {
            State::Bound(inner) => f(inner).map(Some),
            State::Unbound(_) | State::Closed => Ok(None),
        })
    }

    /// Calls `bound` if the loader is bound to a replica; otherwise `checked`, with the checked configuration and the position.
    fn at<T: Send>(
        &self,
        py: Python<'_>,
        place: Place,
        checked: impl FnOnce(&CheckedConfig, &mut Option<ResumeState>) -> Result<T, Error> + Send,
        bound: impl FnOnce(&mut Inner) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let (config, ranks) = self.resolved.bind(py, place)?;
        self.with_state(py, |state| match state {
            State::Unbound(at) => checked(&shardtool_load::Loader::check(&config, &ranks)?, at),
            State::Bound(inner) => bound(inner),
            State::Closed => Err(Error::Load(shardtool_load::Error::Stopped)),
        })
    }
}

#[pymethods]
impl Loader {
    #[new]
    fn new(py: Python<'_>, splits: Vec<Py<Split>>, options: Options) -> PyResult<Self> {
        let splits: Vec<_> = splits.iter().map(|split| split.get().split.clone()).collect();
        let label = splits.first().and_then(|split| split.manifest().label.clone());
        let resolved = options.resolve(py, splits)?;
        Ok(Loader { resolved, process: AtomicU32::new(0), state: Mutex::new(State::Unbound(None)), label })
    }

    /// Begins an iteration and returns its number. It continues at a state that was loaded or an epoch that was set, otherwise
    /// with the next epoch. The first iteration binds the loader to a replica, and starts its workers; a later one with another
    /// replica does so again.
    fn begin(&self, py: Python<'_>, place: Place) -> PyResult<u64> {
        // Drops exceptions of other workers in a step that was cancelled.
        self.resolved.raised.clear();
        let (config, ranks) = self.resolved.bind(py, place)?;
        self.with_state(py, |state| {
            let mut iteration = 0;
            if let State::Bound(inner) = state
                && !inner.is_at(place)
            {
                iteration = inner.iteration;
                // Ends its workers before those of the other replica start.
                *state = State::Unbound(Some(inner.resume_point()));
            }
            if let State::Unbound(at) = state {
                let mut inner = Inner::new(&self.resolved, &config, &ranks, place, at.as_ref())?;
                inner.iteration = iteration;
                *state = State::Bound(inner);
                self.process.store(std::process::id(), Ordering::Release);
            }
            let State::Bound(inner) = state else { return Err(Error::Load(shardtool_load::Error::Stopped)) };
            let at = inner.resume_point();
            if at.p == 0 {
                inner.start_epoch(at.epoch)?;
            }
            inner.fresh = false;
            inner.iteration += 1;
            Ok(inner.iteration)
        })
    }

    /// Names of the classes that batches deliver, by class id; empty if they have numbers only, or if no column holds class ids.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.resolved.classes.clone()
    }

    /// Returns the notices since the last call: whether each is about what batches hold, and its text.
    fn notices(&self, py: Python<'_>) -> PyResult<Vec<(bool, String)>> {
        let notices = self.with_bound(py, |inner| Ok(inner.replicas[0].notices()))?.unwrap_or_default();
        Ok(notices.iter().map(|notice| (is_about_values(notice), notice.to_string())).collect())
    }

    /// Returns the next batches of an iteration, one for each replica; none at the end of the epoch.
    fn next<'py>(&self, py: Python<'py>, iteration: u64) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut signal = None;
        let next = self.with_bound(py, |inner| {
            if inner.iteration != iteration {
                return Ok(None);
            }
            let interrupted = &mut || {
                signal = Python::attach(|py| py.check_signals()).err();
                signal.is_some()
            };
            inner.next(interrupted).map(Some)
        });
        match (next.map(Option::flatten), signal) {
            (_, Some(interrupt)) => Err(interrupt),
            (Ok(Some(batches)), None) => batches
                .into_iter()
                .map(|batch| batch.into_dict(py, self.label.as_deref(), &self.resolved.padded))
                .collect(),
            (Ok(None), None) => Err(error::usage(
                py,
                "this iteration ended when a new one began, a state was loaded or an epoch set: a loader has one at a time",
            )),
            (Err(error), None) => Err(error),
        }
    }

    /// Returns the state to resume from, as JSON.
    fn state(&self, py: Python<'_>, place: Place) -> PyResult<String> {
        let checked = |checked: &CheckedConfig, at: &mut Option<ResumeState>| Ok(at.unwrap_or(checked.state(0, 0)));
        Ok(self.at(py, place, checked, |inner| Ok(inner.state()))?.to_string())
    }

    /// Resumes from a state.
    fn load_state(&self, py: Python<'_>, place: Place, json: &str) -> PyResult<()> {
        let state = ResumeState::parse(json).map_err(|e| error::order(py, e))?;
        let checked = |checked: &CheckedConfig, at: &mut Option<ResumeState>| {
            checked.resume(&state)?;
            *at = Some(state);
            Ok(())
        };
        self.at(py, place, checked, |inner| {
            inner.part.clear();
            inner.replicas.iter_mut().try_for_each(|replica| replica.load_state(&state))?;
            (inner.fresh, inner.iteration) = (true, inner.iteration + 1);
            Ok(())
        })
    }

    /// Makes the next iteration this epoch: from a state that was loaded inside it, else from its beginning.
    fn set_epoch(&self, py: Python<'_>, place: Place, epoch: u64) -> PyResult<()> {
        let checked = |checked: &CheckedConfig, at: &mut Option<ResumeState>| {
            if at.is_none_or(|state| state.epoch != epoch) {
                *at = Some(checked.state(epoch, 0));
            }
            Ok(())
        };
        self.at(py, place, checked, |inner| {
            if !(inner.fresh && inner.state().epoch == epoch) {
                inner.start_epoch(epoch)?;
                (inner.fresh, inner.iteration) = (true, inner.iteration + 1);
            }
            Ok(())
        })
    }

    /// Returns the number of steps of the current epoch.
    fn len(&self, py: Python<'_>, place: Place) -> PyResult<usize> {
        let (config, ranks) = self.resolved.bind(py, place)?;
        self.at(
            py,
            place,
            |checked, at| {
                let epoch = at.map_or(0, |state| state.epoch);
                Ok(checked.steps_left(epoch, 0) as usize)
            },
            |inner| match inner.is_at(place) {
                true => Ok(inner.replicas[0].len() as usize),
                // Of the next epoch, which the replica of now begins.
                false => {
                    let checked = shardtool_load::Loader::check(&config, &ranks)?;
                    Ok(checked.steps_left(inner.resume_point().epoch, 0) as usize)
                }
            },
        )
    }

    /// Returns the number of steps of the current epoch that were delivered.
    fn steps_done(&self, py: Python<'_>, place: Place) -> PyResult<usize> {
        let (config, ranks) = self.resolved.bind(py, place)?;
        let checked = shardtool_load::Loader::check(&config, &ranks).map_err(|e| error::load(py, e))?;
        let left = |state: ResumeState, p| checked.steps_left(state.epoch, p);
        let p = |state: ResumeState| (left(state, 0) - left(state, state.p)) as usize;
        self.at(py, place, |_, at| Ok(at.map_or(0, p)), |inner| Ok(p(inner.state())))
    }

    /// Returns the statistics as JSON, and as Prometheus text.
    fn stats(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let stats = self.with_bound(py, |inner| {
            let stats = inner.replicas[0].stats();
            let mut json = stats.to_json();
            let devices: Vec<_> = inner.replicas.iter().filter_map(ReplicaLoader::device).collect();
            if !devices.is_empty() {
                // As the last member of the object.
                let devices = serde_json::Value::from(devices);
                json.truncate(json.len() - 1);
                json += &format!(",\"devices\":{devices}}}");
            }
            Ok((json, stats.to_prometheus()))
        })?;
        stats.ok_or_else(|| error::usage(py, "no iteration has begun: there are no statistics yet"))
    }

    /// Returns the bad samples so far, as dicts.
    fn bad_samples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let samples = self.with_bound(py, |inner| Ok(inner.replicas[0].bad_samples()))?.unwrap_or_default();
        let dicts = samples.iter().map(|sample| {
            let dict =
                crate::verify::to_dict(py, sample.error.damage().map(|damage| damage.name()), &error::finding(sample))?;
            dict.set_item("id", sample.id)?;
            Ok(dict)
        });
        PyList::new(py, dicts.collect::<PyResult<Vec<_>>>()?)
    }

    /// Ends the workers. Delivered batches stay valid.
    fn close(&self, py: Python<'_>) {
        if self.is_ours() {
            py.detach(|| {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let ended = std::mem::replace(&mut *state, State::Closed);
                drop(state);
                drop(ended);
            });
        }
    }
}

impl Loader {
    /// Returns whether this process may use and drop the bound loader. In a forked child its threads do not exist, and
    /// locks may stay held forever.
    fn is_ours(&self) -> bool {
        let process = self.process.load(Ordering::Acquire);
        process == 0 || process == std::process::id()
    }
}

impl Drop for Loader {
    /// Joins the workers without the GIL, since one of them may be waiting for it to call the user's function.
    fn drop(&mut self) {
        if self.is_ours() {
            Python::attach(|py| self.close(py));
        } else {
            let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::replace(state, State::Closed));
        }
    }
}
