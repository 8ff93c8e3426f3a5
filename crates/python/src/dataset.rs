//! Datasets: what they hold, and their changes.

use crate::config::Size;
use crate::error;
use crate::opening::{Location, Opening, OpeningArguments, Sources, Version};
use crate::split::{Split, count, features};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use shardtool_read::{Cache, Options};
use std::path::PathBuf;

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

    /// What the keypoints of objects are; `None` if it is not known.
    #[getter]
    fn keypoints<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        crate::keypoints::described(py, self.dataset.manifest())
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

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, out, *, single_writer=False)")]
    fn clone<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        changes(slf, "clone", args, kwargs)
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

    #[pyo3(signature = (*args, **kwargs), text_signature = "($self, *, forget_keys=False, search=False, message=None, author=None, dry_run=False, single_writer=False)")]
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
