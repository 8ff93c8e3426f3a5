//! Splits and shards.

use crate::columns::Columns;
use crate::config::one_of;
use crate::opening::{Location, Opening};
use crate::{arrow, error, record};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice, PyTuple};
use shardtool_format::manifest::Manifest;
use shardtool_order::{EpochOrder, Order};
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments that open a split again.
type SplitArguments = (OsString, String, Option<PathBuf>, Option<u64>, Option<String>, Vec<String>);

/// A split: records numbered through all its shards, from 0.
#[pyclass(frozen, sequence, module = "shardtool._shardtool")]
pub(crate) struct Split {
    opening: Opening,
    pub(crate) split: shardtool_read::Split,
    columns: Py<Columns>,
    /// Names of the classes, which all records share.
    classes: PyOnceLock<Py<PyTuple>>,
}

impl Split {
    pub(crate) fn new(py: Python<'_>, opening: Opening, split: shardtool_read::Split) -> Self {
        let shards = 0..split.entry().shards.len();
        let columns = Py::new(py, Columns::new(py, split.clone(), shards)).expect("memory for a small object");
        Split { opening, split, columns, classes: PyOnceLock::new() }
    }

    /// Returns the number of a record; a negative one counts from the end.
    fn id(&self, py: Python<'_>, index: i64) -> PyResult<u64> {
        let len = self.split.len();
        let id = if index < 0 { len.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) };
        let id = id.filter(|id| *id < len);
        id.ok_or_else(|| error::out_of_range(py, &format!("record {index} of a split of {len}")))
    }

    fn record<'py>(&self, py: Python<'py>, id: u64) -> PyResult<Bound<'py, PyDict>> {
        // What the record's parts need of the version, they take from its columns: it is parsed once.
        let read = || {
            let (shard, row) = self.split.locate(id)?;
            self.split.shard(shard)?.record(row, vec![])
        };
        let got = py.detach(read).map_err(|e| error::read(py, e))?;
        let dict = record::to_dict(py, &got, self.split.manifest())?;
        let names = || Ok::<_, PyErr>(PyTuple::new(py, &self.split.manifest().classes)?.unbind());
        dict.setattr("classes", self.classes.get_or_try_init(py, names)?)?;
        Ok(dict)
    }
}

#[pymethods]
impl Split {
    fn __len__(&self) -> usize {
        self.split.len() as usize
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = index.cast::<PySlice>() {
            let found = slice.indices(self.split.len() as isize)?;
            let ids = (0..found.slicelength).map(|i| found.start + i as isize * found.step);
            let records = ids.map(|id| self.record(py, id as u64)).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, records)?.into_any());
        }
        if let Ok(key) = index.extract::<String>() {
            return Ok(self.record(py, self.find(py, &key)?)?.into_any());
        }
        let Ok(index) = index.extract::<i64>() else {
            let message = format!("a split has records by number, slice or key, found {}", index.repr()?);
            return Err(error::option_type(py, &message));
        };
        Ok(self.record(py, self.id(py, index)?)?.into_any())
    }

    /// Returns the number of the first record with this key.
    fn find(&self, py: Python<'_>, key: &str) -> PyResult<u64> {
        let found = py.detach(|| self.split.find(key.as_bytes())).map_err(|e| error::read(py, e))?;
        found.ok_or_else(|| {
            error::no_key(py, &format!("no record of split `{}` has the key {key:?}", self.split.name()))
        })
    }

    /// The split's name.
    #[getter]
    fn name(&self) -> &str {
        self.split.name()
    }

    /// Returns values of a bytes feature of a record: those with the numbers `which`, or all.
    #[pyo3(signature = (index, feature, which=None))]
    fn values<'py>(
        &self,
        py: Python<'py>,
        index: i64,
        feature: &str,
        which: Option<Vec<usize>>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let id = self.id(py, index)?;
        let read = py.detach(|| self.split.values(id, feature, which.as_deref()));
        match read.map_err(|e| error::read(py, e))? {
            Some(values) => Ok(values.iter().map(|value| PyBytes::new(py, value)).collect()),
            None => {
                let message = format!("record {id} does not have the values {which:?} of a bytes feature `{feature}`");
                Err(error::column(py, &message))
            }
        }
    }

    /// Returns the records from `start` to `end`, but no more once their images have `limit` bytes, as the buffers of Arrow
    /// arrays. `images` is "none", "encoded" or "decoded"; `columns` are features, and whether a row is a list.
    fn arrow_buffers<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        end: u64,
        limit: u64,
        images: &str,
        columns: Vec<(String, bool)>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let images = one_of(py, "images", images, &arrow::IMAGES)?;
        arrow::read(py, &self.split, arrow::Rows { start, end, bytes: limit }, images, columns)
    }

    /// The path that the dataset was opened with; of a dataset in a store, the URL.
    #[getter]
    fn path(&self) -> Location {
        Location::new(&self.opening.path)
    }

    /// What the keypoints of objects are; `None` if it is not known.
    #[getter]
    fn keypoints<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        crate::keypoints::described(py, self.split.manifest())
    }

    /// Class names, by class id; empty if classes have no names.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.split.manifest().classes.clone()
    }

    /// Number of classes: of their names; without names, one more than the largest class id in the indexes.
    #[getter]
    fn num_classes(&self, py: Python<'_>) -> PyResult<usize> {
        let named = self.split.manifest().classes.len();
        if named > 0 || self.split.manifest().label.is_none() {
            return Ok(named);
        }
        let splits = [self.split.clone()];
        let labels = py.detach(|| shardtool_load::labels(&splits, &shardtool_load::Classes::Equal));
        let largest = labels.map_err(|e| error::load(py, e))?.into_iter().max().unwrap_or(-1);
        Ok(usize::try_from(largest.saturating_add(1)).unwrap_or(0))
    }

    /// Type of each feature, by name: `int64`, `float`, `bytes`, `float64` or `uint64`.
    #[getter]
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        features(py, self.split.manifest())
    }

    /// Returns pictures of `n` records for a notebook: from record `start` on; with a seed, from position `start` on of what
    /// a loader with that seed delivers in its first epoch.
    #[pyo3(signature = (n=12, *, start=0, seed=None))]
    fn show<'py>(&self, py: Python<'py>, n: u64, start: u64, seed: Option<u64>) -> PyResult<Bound<'py, PyAny>> {
        let len = self.split.len();
        let positions = start.min(len)..start.saturating_add(n).min(len);
        let order = match seed {
            None => Order::Sequential,
            Some(_) => Order::Shuffled,
        };
        let order = EpochOrder::new(order, len, seed.unwrap_or(0), 0).map_err(|e| error::option(py, &e.to_string()))?;
        let ids: Vec<u64> = positions.map(|position| order.at(position)).collect();
        let html = py.detach(|| shardtool_view::records_html(&self.split, &ids));
        py.import("shardtool.display")?.getattr("Html")?.call1((html,))
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        py.detach(|| shardtool_view::split_html(&self.split))
    }

    /// Name of the feature that holds the class, if there is one.
    #[getter]
    fn label(&self) -> Option<&str> {
        self.split.manifest().label.as_deref()
    }

    /// Subtracted from a stored label to get the class id.
    #[getter]
    fn label_offset(&self) -> i64 {
        self.split.manifest().label_offset
    }

    /// Number of the dataset's version, from 1.
    #[getter]
    fn version(&self) -> u64 {
        self.split.manifest().version_number()
    }

    /// Identifies the records: eight hex digits.
    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:08x}", self.split.entry().fingerprint())
    }

    /// The features with at most one value per record, as arrays `[len]`, from the index.
    #[getter]
    fn columns(&self, py: Python<'_>) -> Py<Columns> {
        self.columns.clone_ref(py)
    }

    /// The shards, in order.
    #[getter]
    fn shards<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let shards = (0..self.split.entry().shards.len()).map(|number| Shard { split: self.split.clone(), number });
        PyList::new(py, shards.map(|shard| Bound::new(py, shard)).collect::<PyResult<Vec<_>>>()?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, SplitArguments)> {
        let open = py.import("shardtool")?.getattr("_open_split")?;
        let (path, cache, size, version, sources) = self.opening.arguments();
        Ok((open, (path, self.split.name().to_owned(), cache, size, version, sources)))
    }

    fn __repr__(&self) -> String {
        format!(
            "<shardtool.Split {} of {:?}, fingerprint {}>",
            count(&self.split),
            self.opening.path,
            self.fingerprint()
        )
    }
}

/// One shard of a split.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Shard {
    split: shardtool_read::Split,
    number: usize,
}

#[pymethods]
impl Shard {
    fn __len__(&self) -> usize {
        self.split.entry().shards[self.number].live_records() as usize
    }

    /// The shard's path; of a dataset in a store, its URL.
    #[getter]
    fn path(&self) -> Location {
        Location::new(&self.split.shard_path(self.number))
    }

    /// The shard's length in bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.split.entry().shards[self.number].bytes
    }

    /// The scalar features as arrays `[len]`, as stored: views of the index, read-only.
    #[getter]
    fn columns(&self, py: Python<'_>) -> Columns {
        Columns::new(py, self.split.clone(), self.number..self.number + 1)
    }

    fn __repr__(&self) -> String {
        format!(
            "<shardtool.Shard {:?}: {} records, {} bytes>",
            self.split.shard_path(self.number),
            self.__len__(),
            self.bytes()
        )
    }
}

/// Returns the name of a split, and how many records and shards it has.
pub(crate) fn count(split: &shardtool_read::Split) -> String {
    format!("{} {} records in {} shards", split.name(), split.len(), split.entry().shards.len())
}

/// Returns the type of each feature by its name.
pub(crate) fn features<'py>(py: Python<'py>, manifest: &Manifest) -> PyResult<Bound<'py, PyDict>> {
    let features = PyDict::new(py);
    for feature in &manifest.features {
        features.set_item(&feature.name, feature.dtype.name())?;
    }
    Ok(features)
}
