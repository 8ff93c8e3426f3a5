//! Writing a split with the tasks of an engine, such as Ray: one shard for each attempt of a task, and a commit that names one of
//! each task.

use crate::error;
use crate::process::Local;
use crate::writer::{ImageArgument, LabelArgument, Options, SampleArguments, ValuesArgument, committed_to_dict};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_format::checksum::Sha256;
use shardtool_format::manifest::{DType, Shard};
use shardtool_pack::{TaskOptions, TaskShard};
use std::sync::{Mutex, MutexGuard, PoisonError};

fn task_options(py: Python<'_>, options: Options, write: &str, single_writer: bool) -> PyResult<TaskOptions> {
    let mut options = TaskOptions::new(options.options(py)?, write);
    options.single_writer = single_writer;
    Ok(options)
}

/// Returns a new id for the tasks of one write.
#[pyfunction]
pub(crate) fn new_write_id() -> String {
    shardtool_pack::new_write_id()
}

/// Writes the shard of one attempt of a task.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct TaskWriter {
    /// `None` once it is finished or abandoned.
    writer: Local<Mutex<Option<shardtool_pack::TaskWriter>>>,
    array_jpeg: bool,
}

impl TaskWriter {
    fn writer(&self) -> PyResult<MutexGuard<'_, Option<shardtool_pack::TaskWriter>>> {
        match self.writer.is_ours() {
            true => Ok(self.writer.lock().unwrap_or_else(PoisonError::into_inner)),
            false => Err(PyRuntimeError::new_err("this writer belongs to the process that opened it")),
        }
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("the writer of this task is finished")
}

#[pymethods]
impl TaskWriter {
    #[new]
    fn new(py: Python<'_>, options: Options, write: &str, task: u64, single_writer: bool) -> PyResult<Self> {
        let array_jpeg = options.array_jpeg();
        let options = task_options(py, options, write, single_writer)?;
        let writer = py.detach(|| shardtool_pack::TaskWriter::open(&options, task)).map_err(|e| error::pack(py, e))?;
        Ok(TaskWriter { writer: Local::new(Mutex::new(Some(writer))), array_jpeg })
    }

    /// Adds features, by name and type, that the samples written from now on may have.
    fn add_features(&self, py: Python<'_>, features: Vec<(String, String)>) -> PyResult<()> {
        let kinds = DType::ALL.map(|kind| (kind.name(), kind));
        let mut typed = vec![];
        for (name, kind) in features {
            typed.push((name, crate::config::one_of(py, "features", &kind, &kinds)?));
        }
        let mut writer = self.writer()?;
        writer.as_mut().ok_or_else(closed)?.add_features(typed).map_err(|e| error::pack(py, e))
    }

    /// Writes a sample, whose values are as those of `Writer.write`.
    fn write(
        &self,
        py: Python<'_>,
        key: &str,
        image: Option<ImageArgument>,
        label: Option<LabelArgument>,
        values: Vec<(String, String, ValuesArgument)>,
    ) -> PyResult<()> {
        let mut writer = self.writer()?;
        let writer = writer.as_mut().ok_or_else(closed)?;
        let sample = SampleArguments { key, image, label, values };
        sample.with(py, self.array_jpeg, |sample| py.detach(|| writer.write(sample)))?.map_err(|e| error::pack(py, e))
    }

    /// Adds a sample that cannot be written to the list of rejected inputs.
    fn reject(&self, input: &str, reason: &str) -> PyResult<()> {
        self.writer()?.as_mut().ok_or_else(closed)?.reject(input, reason);
        Ok(())
    }

    /// Makes the shard durable. Returns its line in the manifest, its task and its number of rejected samples, as a dict.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let writer = self.writer()?.take().ok_or_else(closed)?;
        let TaskShard { task, shard, rejected } = py.detach(|| writer.finish()).map_err(|e| error::pack(py, e))?;
        let dict = PyDict::new(py);
        dict.set_item("task", task)?;
        dict.set_item("rejected", rejected)?;
        dict.set_item("file", shard.file)?;
        dict.set_item("records", shard.records)?;
        dict.set_item("bytes", shard.bytes)?;
        dict.set_item("crc32c", shard.crc32c)?;
        dict.set_item("index_bytes", shard.index_bytes)?;
        dict.set_item("index_crc32c", shard.index_crc32c)?;
        dict.set_item("sha256", shard.sha256.map(|digest| digest.to_string()))?;
        Ok(dict)
    }

    /// Drops the shard and removes its file.
    fn abandon(&self, py: Python<'_>) {
        if let Ok(mut writer) = self.writer() {
            let writer = writer.take();
            py.detach(|| drop(writer));
        }
    }
}

/// What [`TaskWriter::finish`] returns.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ShardArgument {
    task: u64,
    rejected: u64,
    file: String,
    records: u64,
    bytes: u64,
    crc32c: u32,
    index_bytes: u64,
    index_crc32c: u32,
    sha256: Option<String>,
}

impl From<ShardArgument> for TaskShard {
    fn from(shard: ShardArgument) -> Self {
        let ShardArgument { task, rejected, file, records, bytes, crc32c, index_bytes, index_crc32c, sha256 } = shard;
        let sha256 = sha256.as_deref().and_then(Sha256::parse);
        let companions = Default::default();
        let shard = Shard {
            file,
            records,
            bytes,
            crc32c,
            index_bytes,
            index_crc32c,
            sha256,
            companions,
            foreign: Default::default(),
        };
        TaskShard { task, shard, rejected }
    }
}

/// A split that tasks write, in the process that begins and commits it.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct TaskWrite {
    begun: Local<shardtool_pack::TaskWrite>,
    write: String,
    single_writer: bool,
}

#[pymethods]
impl TaskWrite {
    #[new]
    fn new(py: Python<'_>, options: Options, write: String, single_writer: bool) -> PyResult<Self> {
        let options = task_options(py, options, &write, single_writer)?;
        let begun = py.detach(|| shardtool_pack::TaskWrite::begin(&options)).map_err(|e| error::pack(py, e))?;
        Ok(TaskWrite { begun: Local::new(begun), write, single_writer })
    }

    /// Commits the shards of the tasks, and returns a summary as a dict. `options` have the features of all tasks.
    fn commit<'py>(
        &self,
        py: Python<'py>,
        options: Options,
        shards: Vec<ShardArgument>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let options = task_options(py, options, &self.write, self.single_writer)?;
        let shards = shards.into_iter().map(TaskShard::from).collect();
        let done = py.detach(|| self.begun.commit(&options, shards, &())).map_err(|e| error::pack(py, e))?;
        committed_to_dict(py, done)
    }

    /// Removes the files of all attempts that the manifest does not name.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.begun.abandon()).map_err(|e| error::pack(py, e))
    }
}
