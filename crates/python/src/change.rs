//! Changes of a dataset: calls of the library with what `shardtool.changes` has checked.

use crate::error;
use crate::pack::PackOptions;
use crate::process::interruptible;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    AppendOptions, ChangeOptions, ChosenRecords, CloneOptions, ColumnChange, ColumnOptions, ColumnRows, ColumnSource,
    ColumnValues, CompactOptions, DeleteOptions, GcOptions, MissingRows, Progress, PurgeOptions, SelectOptions, Shards,
    Value,
};
use shardtool_read::Dataset;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What all changes have.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Change {
    message: Option<String>,
    author: Option<String>,
    dry_run: bool,
    single_writer: bool,
    sources: Vec<String>,
}

impl Change {
    fn options(self) -> ChangeOptions {
        let mut options = ChangeOptions::default();
        (options.message, options.author) = (self.message, self.author);
        (options.dry_run, options.single_writer) = (self.dry_run, self.single_writer);
        options.sources = self.sources;
        options
    }
}

/// Stops a change.
struct Stop(Arc<AtomicBool>);

impl Progress for Stop {
    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Calls a function of the library on another thread, until it ends or Ctrl-C.
fn watched<T: Send + 'static>(
    py: Python<'_>,
    call: impl FnOnce(&dyn Progress) -> Result<T, shardtool_pack::Error> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Stop(stop.clone());
    let done = interruptible(py, move || call(&stopped), || stop.store(true, Ordering::Relaxed), |_| Ok(()))?;
    done.map_err(|e| error::pack(py, e))
}

/// Deletes records. `kind` says what `values` are: `where`, `keys` or `ids`, as texts.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python, checked there")]
pub(crate) fn delete<'py>(
    py: Python<'py>,
    dataset: PathBuf,
    kind: &str,
    texts: Vec<String>,
    keys: Vec<Vec<u8>>,
    ids: Vec<u64>,
    splits: Vec<String>,
    ignore_unknown: bool,
    change: Change,
) -> PyResult<Bound<'py, PyDict>> {
    let mut options = DeleteOptions::new(chosen(kind, texts, keys, ids));
    (options.splits, options.ignore_unknown, options.change) = (splits, ignore_unknown, change.options());
    let deleted = watched(py, move |progress| shardtool_pack::delete(&dataset, &options, progress))?;
    let dict = PyDict::new(py);
    dict.set_item("version", deleted.version.map(|version| version.number))?;
    dict.set_item("records", deleted.records())?;
    dict.set_item("unknown", deleted.unknown)?;
    dict.set_item("repeated", deleted.repeated)?;
    Ok(dict)
}

fn chosen(kind: &str, texts: Vec<String>, keys: Vec<Vec<u8>>, ids: Vec<u64>) -> ChosenRecords {
    match kind {
        "where" => ChosenRecords::Where(texts),
        "keys" => ChosenRecords::Keys(keys),
        _ => ChosenRecords::Ids(ids),
    }
}

/// Makes a view. Returns the number of its records.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of the Python function")]
pub(crate) fn select(
    py: Python<'_>,
    dataset: PathBuf,
    name: String,
    kind: &str,
    texts: Vec<String>,
    keys: Vec<Vec<u8>>,
    ids: Vec<u64>,
    split: Option<String>,
    ignore_unknown: bool,
    replace: bool,
    change: Change,
) -> PyResult<u64> {
    let mut options = SelectOptions::new(chosen(kind, texts, keys, ids));
    (options.split, options.ignore_unknown) = (split, ignore_unknown);
    (options.replace, options.change) = (replace, change.options());
    let selected = watched(py, move |progress| shardtool_pack::select(&dataset, &name, &options, progress))?;
    Ok(selected.records)
}

/// Removes a view.
#[pyfunction]
pub(crate) fn remove_view(py: Python<'_>, dataset: PathBuf, name: String, change: Change) -> PyResult<Option<u64>> {
    let version = watched(py, move |_| shardtool_pack::remove_view(&dataset, &name, &change.options()))?;
    Ok(version.map(|version| version.number))
}

/// How rows become columns.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ColumnArguments {
    add: bool,
    splits: Vec<String>,
    missing: String,
    rows_of: Option<String>,
    names: Vec<String>,
    key: Option<String>,
    types: Vec<(String, String)>,
}

impl ColumnArguments {
    fn options(&self, change: ChangeOptions) -> ColumnOptions {
        let mut options = ColumnOptions::new(if self.add { ColumnChange::Add } else { ColumnChange::Replace });
        (options.splits, options.rows_of, options.change) = (self.splits.clone(), self.rows_of.clone(), change);
        options.missing = match &*self.missing {
            "null" => MissingRows::Null,
            "keep" => MissingRows::Keep,
            _ => MissingRows::Error,
        };
        options
    }
}

fn dtype(py: Python<'_>, name: &str) -> PyResult<DType> {
    DType::from_name(name).ok_or_else(|| error::option(py, &format!("no type `{name}`")))
}

/// Adds or replaces columns from a file.
#[pyfunction]
pub(crate) fn columns_of_file<'py>(
    py: Python<'py>,
    dataset: PathBuf,
    file: PathBuf,
    arguments: ColumnArguments,
    change: Change,
) -> PyResult<Bound<'py, PyDict>> {
    let mut source = ColumnSource::new(file);
    (source.key, source.names) = (arguments.key.clone(), arguments.names.clone());
    for (name, kind) in &arguments.types {
        source.types.push((name.clone(), dtype(py, kind)?));
    }
    let options = arguments.options(change.options());
    let changed = watched(py, move |progress| {
        let rows = shardtool_pack::column_rows(&source, &dataset, progress)?;
        shardtool_pack::change_columns(&dataset, &rows, &options, progress)
    })?;
    changed_to_dict(py, changed)
}

/// A column as flat values: the numbers as bytes in the machine's order, or byte strings; and how many of them each row has, -1 for
/// none.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct FlatColumn {
    name: String,
    dtype: String,
    numbers: Vec<u8>,
    strings: Vec<Vec<u8>>,
    counts: Vec<i64>,
}

impl FlatColumn {
    fn values(self, py: Python<'_>) -> PyResult<ColumnValues> {
        let dtype = dtype(py, &self.dtype)?;
        let width = if dtype == DType::Float { 4 } else { 8 };
        let found = if dtype == DType::Bytes { self.strings.len() } else { self.numbers.len() / width };
        let expected: usize = self.counts.iter().filter_map(|count| usize::try_from(*count).ok()).sum();
        if found != expected {
            let message = format!("column `{}` has {found} values for rows of {expected}", self.name);
            return Err(error::option(py, &message));
        }
        let (mut at, mut strings) = (0usize, self.strings.into_iter());
        let numbers = &self.numbers;
        let mut rows = Vec::with_capacity(self.counts.len());
        for count in self.counts {
            let Ok(count) = usize::try_from(count) else {
                rows.push(None);
                continue;
            };
            macro_rules! take {
                ($type:ty) => {{
                    let width = size_of::<$type>();
                    let part = numbers.get(at * width..(at + count) * width).unwrap_or_default();
                    at += count;
                    part.chunks_exact(width)
                        .map(|b| <$type>::from_le_bytes(b.try_into().expect("a whole number")))
                        .collect()
                }};
            }
            rows.push(Some(match dtype {
                DType::Int64 => Value::Int64(take!(i64)),
                DType::Float => Value::Float(take!(f32)),
                DType::Float64 => Value::Float64(take!(f64)),
                DType::Uint64 => Value::Uint64(take!(u64)),
                DType::Bytes => Value::Bytes(strings.by_ref().take(count).collect()),
            }));
        }
        Ok(ColumnValues { name: self.name, dtype, rows })
    }
}

/// Adds or replaces columns from values in memory.
#[pyfunction]
pub(crate) fn columns_of_values<'py>(
    py: Python<'py>,
    dataset: PathBuf,
    keys: Option<Vec<Vec<u8>>>,
    columns: Vec<FlatColumn>,
    arguments: ColumnArguments,
    change: Change,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = columns.into_iter().map(|column| column.values(py)).collect::<PyResult<_>>()?;
    let rows = ColumnRows { source: PathBuf::from("the given columns"), keys, columns };
    let options = arguments.options(change.options());
    let changed = watched(py, move |progress| shardtool_pack::change_columns(&dataset, &rows, &options, progress))?;
    changed_to_dict(py, changed)
}

fn changed_to_dict(py: Python<'_>, changed: shardtool_pack::ChangedColumns) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("version", changed.version.map(|version| version.number))?;
    let columns: Vec<_> = changed.columns.iter().map(|(name, dtype)| (name, dtype.name())).collect();
    dict.set_item("columns", columns)?;
    dict.set_item("matched", changed.matched)?;
    dict.set_item("missing", changed.missing)?;
    Ok(dict)
}

/// Drops columns.
#[pyfunction]
pub(crate) fn drop_columns(
    py: Python<'_>,
    dataset: PathBuf,
    names: Vec<String>,
    change: Change,
) -> PyResult<Option<u64>> {
    let options = change.options();
    let version = watched(py, move |_| shardtool_pack::drop_columns(&dataset, &names, &options))?;
    Ok(version.map(|version| version.number))
}

/// Names a version, or removes the name.
#[pyfunction]
pub(crate) fn tag(
    py: Python<'_>,
    dataset: PathBuf,
    name: String,
    version: Option<String>,
    remove: bool,
    change: Change,
) -> PyResult<Option<u64>> {
    let options = change.options();
    let made = watched(py, move |_| match remove {
        true => shardtool_pack::remove_tag(&dataset, &name, &options),
        false => shardtool_pack::tag(&dataset, &name, version.as_deref(), &options).map(|(_, made)| made),
    })?;
    Ok(made.map(|version| version.number))
}

/// Makes a dataset of the shards of a version of another one. Returns where the shards lie.
#[pyfunction]
pub(crate) fn clone(
    py: Python<'_>,
    dataset: PathBuf,
    version: Option<String>,
    out: PathBuf,
    single_writer: bool,
) -> PyResult<Vec<String>> {
    let mut options = CloneOptions::default();
    (options.single_writer, options.version) = (single_writer, version);
    Ok(watched(py, move |progress| shardtool_pack::clone(&dataset, &out, &options, progress))?.sources)
}

/// Returns to the contents of an earlier version.
#[pyfunction]
pub(crate) fn rollback(py: Python<'_>, dataset: PathBuf, version: String, change: Change) -> PyResult<Option<u64>> {
    let options = change.options();
    let made = watched(py, move |_| shardtool_pack::rollback(&dataset, &version, &options))?;
    Ok(made.1.map(|version| version.number))
}

/// Writes new shards of the newest version.
#[pyfunction]
pub(crate) fn compact(
    py: Python<'_>,
    dataset: PathBuf,
    splits: Vec<String>,
    shard_size: Option<u64>,
    strip_metadata: bool,
    change: Change,
) -> PyResult<Option<u64>> {
    let mut options = CompactOptions::default();
    options.strip_metadata = strip_metadata;
    (options.splits, options.change) = (splits, change.options());
    options.shards = shard_size.map_or(options.shards, Shards::Size);
    let compacted = watched(py, move |progress| shardtool_pack::compact(&dataset, &options, progress))?;
    Ok(compacted.version.map(|version| version.number))
}

/// Lists or removes files that no kept version names. Returns them, and the versions that are no longer kept.
#[pyfunction]
pub(crate) fn gc(
    py: Python<'_>,
    dataset: PathBuf,
    keep: Option<u64>,
    remove: bool,
) -> PyResult<(Vec<PathBuf>, Vec<u64>)> {
    let mut options = GcOptions::default();
    (options.keep, options.remove) = (keep, remove);
    let collected = watched(py, move |_| shardtool_pack::gc(&dataset, &options))?;
    Ok((collected.files, collected.versions))
}

/// Removes deleted records from all versions. Returns a dict.
#[pyfunction]
pub(crate) fn purge<'py>(
    py: Python<'py>,
    dataset: PathBuf,
    forget_keys: bool,
    search: bool,
    change: Change,
) -> PyResult<Bound<'py, PyDict>> {
    let mut options = PurgeOptions::default();
    (options.forget_keys, options.search, options.change) = (forget_keys, search, change.options());
    let purged = watched(py, move |progress| shardtool_pack::purge(&dataset, &options, progress))?;
    let dict = PyDict::new(py);
    let records = PyDict::new(py);
    purged.splits.iter().try_for_each(|(split, count)| records.set_item(split, count))?;
    dict.set_item("version", purged.version.map(|version| version.number))?;
    dict.set_item("records", records)?;
    dict.set_item("versions", purged.versions)?;
    dict.set_item("shards", purged.shards)?;
    dict.set_item("bytes", purged.bytes)?;
    dict.set_item("removed", texts(purged.removed))?;
    dict.set_item("links", texts(purged.links))?;
    dict.set_item("remembered", purged.remembered)?;
    dict.set_item("rejected", purged.rejected)?;
    dict.set_item("copies", purged.copies)?;
    dict.set_item("others", texts(purged.others))?;
    dict.set_item("keeps_versions", purged.keeps_versions)?;
    dict.set_item("found", purged.found.map(texts))?;
    Ok(dict)
}

fn texts(paths: Vec<PathBuf>) -> Vec<String> {
    paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Packs a source into further shards of splits.
#[pyfunction]
pub(crate) fn append<'py>(
    py: Python<'py>,
    options: PackOptions,
    replace: bool,
    add_classes: bool,
    change: Change,
) -> PyResult<Bound<'py, PyDict>> {
    let mut given = AppendOptions::new("", "");
    (given.pack, given.replace, given.add_classes) = (options.options(py)?, replace, add_classes);
    given.change = change.options();
    let appended = watched(py, move |progress| shardtool_pack::append(&given, progress))?;
    let dict = PyDict::new(py);
    dict.set_item("version", appended.version.map(|version| version.number))?;
    dict.set_item("records", appended.splits.iter().map(|split| split.records).sum::<u64>())?;
    dict.set_item("replaced", appended.splits.iter().map(|split| split.replaced).sum::<u64>())?;
    dict.set_item("rejected", appended.splits.iter().map(|split| split.rejected).sum::<u64>())?;
    dict.set_item("new_classes", appended.new_classes)?;
    dict.set_item("left_out", appended.left_out)?;
    Ok(dict)
}

/// Returns the versions of a dataset, the newest first, as dicts.
pub(crate) fn log<'py>(py: Python<'py>, dataset: &Dataset) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let versions = py.detach(|| dataset.log()).map_err(|e| error::read(py, e))?;
    let one = |version: shardtool_read::LoggedVersion| {
        let dict = PyDict::new(py);
        dict.set_item("version", version.number)?;
        dict.set_item("checksum", format!("{:08x}", version.checksum))?;
        dict.set_item("command", version.command)?;
        dict.set_item("message", version.message)?;
        dict.set_item("author", version.author)?;
        dict.set_item("tags", version.tags)?;
        dict.set_item("purged", version.purged)?;
        let splits = PyDict::new(py);
        version.splits.iter().try_for_each(|split| splits.set_item(&split.name, split.records))?;
        dict.set_item("records", splits)?;
        Ok(dict)
    };
    versions.into_iter().map(one).collect()
}
