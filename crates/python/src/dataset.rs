//! Datasets, splits and shards.

use crate::columns::Columns;
use crate::config::{Size, one_of};
use crate::{arrow, error, record};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PySlice, PyTuple};
use shardtool_format::manifest::Manifest;
use shardtool_order::{EpochOrder, Order};
use shardtool_read::{Cache, Options};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What a dataset is opened with, also in another process.
#[derive(Clone)]
struct Opening {
    path: PathBuf,
    /// Folder and size in bytes.
    cache: Option<(PathBuf, u64)>,
    /// The version that is open, so that a process that opens it again has the same; `None` for bare files.
    version: Option<String>,
    /// Where source files of virtual shards may lie.
    sources: Vec<String>,
}

impl Opening {
    /// The arguments of `Dataset` and, after a name, of `_open_split`.
    fn arguments(&self) -> OpeningArguments {
        let (folder, size) = self.cache.clone().unzip();
        // As text: `pathlib` removes a slash of a URL.
        (self.path.clone().into_os_string(), folder, size, self.version.clone(), self.sources.clone())
    }
}

/// Where a dataset or shard lies: a path is a `pathlib.Path` in Python, and a URL, of whose slashes that keeps one, a `str`.
#[derive(IntoPyObject)]
enum Location {
    Path(PathBuf),
    Url(OsString),
}

impl Location {
    fn new(path: &Path) -> Self {
        match shardtool_store::is_url(path) {
            true => Location::Url(path.as_os_str().to_owned()),
            false => Location::Path(path.to_owned()),
        }
    }
}

/// Returns an image as HTML for a notebook, reduced to what a page has room for.
#[pyfunction]
#[pyo3(signature = (image, /))]
pub(crate) fn image_html(py: Python<'_>, image: &[u8]) -> String {
    py.detach(|| shardtool_view::image_html(image))
}

/// A dataset: a folder with a manifest, or bare TFRecord files.
#[pyclass(frozen, mapping, module = "shardtool._shardtool")]
pub(crate) struct Dataset {
    dataset: shardtool_read::Dataset,
    opening: Opening,
}

#[pymethods]
impl Dataset {
    #[new]
    #[pyo3(signature = (path, cache=None, cache_size=None, version=None, source=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        cache: Option<PathBuf>,
        cache_size: Option<Size>,
        version: Option<Version>,
        source: Option<Sources>,
    ) -> PyResult<Self> {
        let sources = source.map(Sources::texts).unwrap_or_default();
        let size = cache_size.map(|size| size.bytes(py, "cache_size")).transpose()?;
        if cache.is_none() && size.is_some() {
            return Err(error::option(py, "`cache_size` needs `cache`, the folder of the cache"));
        }
        let open = || {
            let mut options = Options::default().with_sources(sources.clone());
            options.version = version.map(Version::text);
            if let Some(folder) = &cache {
                let opened = Cache::open(folder, size);
                let io = |source| shardtool_read::Error::Io { action: "keep a cache in", path: folder.clone(), source };
                options = options.with_cache(opened.map_err(io)?);
            }
            let used = options.cache.as_ref().map(|cache| (cache.path().to_owned(), cache.size()));
            Ok((shardtool_read::Dataset::open_with(&path, options)?, used))
        };
        let (dataset, cache) = py.detach(open).map_err(|e| error::read(py, e))?;
        let path = dataset.path().to_owned();
        let bare = dataset.splits().iter().any(shardtool_read::Split::is_bare);
        let version = (!bare).then(|| dataset.version().to_string());
        Ok(Dataset { dataset, opening: Opening { path, cache, version, sources } })
    }

    /// Returns the split of that name.
    fn split(&self, py: Python<'_>, name: &str) -> PyResult<Split> {
        let split = self.dataset.split(name).map_err(|e| error::read(py, e))?;
        Ok(Split::new(py, self.opening.clone(), split.clone()))
    }

    /// Returns the split of that name, as [`Dataset::split`].
    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Split> {
        self.split(py, name)
    }

    fn __contains__(&self, name: &str) -> bool {
        self.dataset.split(name).is_ok()
    }

    fn __len__(&self) -> usize {
        self.dataset.splits().len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.splits().into_pyobject(py)?.try_iter()?.into_any())
    }

    /// Names of the splits.
    fn keys(&self) -> Vec<&str> {
        self.splits()
    }

    /// Names of the splits.
    #[getter]
    fn splits(&self) -> Vec<&str> {
        self.dataset.splits().iter().map(|s| s.name()).collect()
    }

    /// Names of the views.
    #[getter]
    fn views(&self) -> Vec<&String> {
        self.dataset.view_names().collect()
    }

    /// The path that the dataset was opened with; of a dataset in a store, the URL.
    #[getter]
    fn path(&self) -> Location {
        Location::new(self.dataset.path())
    }

    /// Class names, by class id; empty if classes have no names.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.dataset.manifest().classes.clone()
    }

    /// Type of each feature, by name: `int64`, `float`, `bytes`, `float64` or `uint64`.
    #[getter]
    fn features<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        features(py, self.dataset.manifest())
    }

    /// Number of the version that is open, from 1.
    #[getter]
    fn version(&self) -> u64 {
        self.dataset.version()
    }

    /// Checksum of the version's manifest, as eight hex digits.
    #[getter]
    fn checksum(&self) -> String {
        format!("{:08x}", self.dataset.checksum())
    }

    /// All versions that are kept, the newest first.
    fn log<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        crate::change::log(py, &self.dataset)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, version=None)")]
    fn at<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "at", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, *, where=None, keys=None, ids=None, split=None, ignore_unknown=False, message=None, author=None, dry_run=False, single_writer=False)")]
    fn delete<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "delete", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, source, *, split=None, names=None, key=None, columns=None, missing='error', rows_of=None, message=None, author=None, dry_run=False, single_writer=False)")]
    fn add_columns<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "add_columns", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, source, *, split=None, names=None, key=None, columns=None, missing='error', rows_of=None, message=None, author=None, dry_run=False, single_writer=False)")]
    fn replace_columns<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "replace_columns", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, names, *, message=None, author=None, dry_run=False, single_writer=False)")]
    fn drop_columns<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "drop_columns", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, name, version=None, *, remove=False, message=None, author=None, single_writer=False)")]
    fn tag<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "tag", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, version, *, message=None, author=None, dry_run=False, single_writer=False)")]
    fn rollback<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "rollback", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, *, split=None, shard_size=None, strip_metadata=False, message=None, author=None, dry_run=False, single_writer=False)")]
    fn compact<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "compact", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, source, *, replace=False, add_classes=False, message=None, author=None, dry_run=False, **pack)")]
    fn append<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "append", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, *, keep=None, remove=False)")]
    fn gc<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "gc", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, name, *, where=None, keys=None, ids=None, split=None, ignore_unknown=False, replace=False, message=None, author=None, dry_run=False, single_writer=False)")]
    fn select<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "select", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, name, *, message=None, author=None, dry_run=False, single_writer=False)")]
    fn remove_view<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "remove_view", args, kwargs)
    }

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, *, forget_keys=False, search=False, message=None, author=None, dry_run=False)")]
    fn purge<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "purge", args, kwargs)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, OpeningArguments) {
        (slf.get_type().into_any(), slf.get().opening.arguments())
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        py.detach(|| shardtool_view::dataset_html(&self.dataset))
    }

    fn __repr__(&self) -> String {
        let counts: Vec<_> = self.dataset.splits().iter().map(count).collect();
        format!("<shardtool.Dataset {:?}: {}>", self.dataset.path(), counts.join("; "))
    }
}

/// Calls a function of `shardtool.changes` with this dataset and arguments.
fn changes<'py>(
    dataset: &Bound<'py, Dataset>,
    function: &str,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = dataset.py();
    let all = PyTuple::new(py, [dataset.clone().into_any()])?.add(args)?;
    let module = py.import("shardtool.changes")?;
    module.getattr(function)?.call(all.cast::<PyTuple>()?, kwargs)
}

/// A version, as users name it.
#[derive(FromPyObject)]
enum Version {
    Number(u64),
    Name(String),
}

impl Version {
    fn text(self) -> String {
        match self {
            Version::Number(number) => number.to_string(),
            Version::Name(name) => name,
        }
    }
}

/// The argument `source`: one folder or URL, or several.
#[derive(FromPyObject)]
pub(crate) enum Sources {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl Sources {
    pub(crate) fn texts(self) -> Vec<String> {
        let all = match self {
            Sources::One(source) => vec![source],
            Sources::Several(sources) => sources,
        };
        all.into_iter().map(|source| source.to_string_lossy().into_owned()).collect()
    }
}

fn count(split: &shardtool_read::Split) -> String {
    format!("{} {} records in {} shards", split.name(), split.len(), split.entry().shards.len())
}

fn features<'py>(py: Python<'py>, manifest: &Manifest) -> PyResult<Bound<'py, PyDict>> {
    let features = PyDict::new(py);
    for feature in &manifest.features {
        features.set_item(&feature.name, feature.dtype.name())?;
    }
    Ok(features)
}

/// Path, name, folder and size of the cache.
/// The arguments that open a dataset again.
type OpeningArguments = (OsString, Option<PathBuf>, Option<u64>, Option<String>, Vec<String>);
type SplitArguments = (OsString, String, Option<PathBuf>, Option<u64>, Option<String>, Vec<String>);

/// A split: records numbered through all its shards, from 0.
#[pyclass(frozen, sequence, module = "shardtool._shardtool")]
pub(crate) struct Split {
    opening: Opening,
    pub(crate) split: shardtool_read::Split,
    columns: Py<Columns>,
}

impl Split {
    fn new(py: Python<'_>, opening: Opening, split: shardtool_read::Split) -> Self {
        let shards = 0..split.entry().shards.len();
        let columns = Py::new(py, Columns::new(py, split.clone(), shards)).expect("memory for a small object");
        Split { opening, split, columns }
    }

    /// Returns the number of a record; a negative one counts from the end.
    fn id(&self, py: Python<'_>, index: i64) -> PyResult<u64> {
        let len = self.split.len();
        let id = if index < 0 { len.checked_sub(index.unsigned_abs()) } else { Some(index.unsigned_abs()) };
        let id = id.filter(|id| *id < len);
        id.ok_or_else(|| error::out_of_range(py, &format!("record {index} of a split of {len}")))
    }

    fn record<'py>(&self, py: Python<'py>, id: u64) -> PyResult<Bound<'py, PyDict>> {
        let got = py.detach(|| self.split.get(id)).map_err(|e| error::read(py, e))?;
        record::to_dict(py, &got, self.split.manifest())
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
