//! Verification, with its report as a dict.

use crate::error;
use crate::process::interruptible;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use shardtool_decode::Truncated;
use shardtool_read::verify::{Finding, Options, Report, verify_shards as verify_shards_of};
use shardtool_read::{Dataset, Split};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Verifies a dataset and returns `{"shards", "good_records", "bytes", "damages", "unlisted", "filled"}`. Ctrl-C ends it after a few records.
#[pyfunction]
pub(crate) fn verify<'py>(
    py: Python<'py>,
    path: PathBuf,
    decode: bool,
    progress: bool,
    truncated: &str,
    sources: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let truncated = crate::config::truncated(py, truncated)?;
    let opening = shardtool_read::Options::default().with_sources(sources);
    let decodes = |dataset: Dataset| dataset.manifest().has_images() || dataset.manifest().has_arrays();
    if decode && Dataset::open(&path).is_ok_and(|dataset| !decodes(dataset)) {
        let message =
            format!("cannot decode {}: its records have no images or arrays; verify without `decode`", path.display());
        return Err(error::option(py, &message));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let work = move || match Dataset::open_with(&path, opening) {
        Ok(dataset) => dataset.check_sources().map(|()| check(&dataset, decode, truncated, progress, &stopped)),
        // A damaged manifest is a finding, not an error.
        Err(error) if error.is_damage() => Ok(Report::of_error(&error)),
        Err(error) => Err(error),
    };
    let report =
        interruptible(py, work, || stop.store(true, Ordering::Relaxed), |_| Ok(()))?.map_err(|e| error::read(py, e))?;
    report_to_dict(py, &report)
}

/// Verifies shards of a split, by their numbers, on one thread, and returns what [`verify`] does.
#[pyfunction]
pub(crate) fn verify_shards<'py>(
    py: Python<'py>,
    path: PathBuf,
    split: &str,
    shards: Vec<usize>,
    decode: bool,
    truncated: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let truncated = crate::config::truncated(py, truncated)?;
    let work = || {
        let dataset = Dataset::open(&path)?;
        dataset.check_sources()?;
        let split = dataset.split(split)?;
        let mut options = Options::default();
        options.decode = decode;
        options.truncated = truncated;
        let there: Vec<_> = shards.into_iter().filter(|shard| *shard < split.entry().shards.len()).collect();
        Ok(verify_shards_of(split, &there, &options))
    };
    report_to_dict(py, &py.detach(work).map_err(|e| error::read(py, e))?)
}

fn report_to_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("shards", report.shards)?;
    dict.set_item("good_records", report.good_records)?;
    dict.set_item("bytes", report.bytes)?;
    dict.set_item("unlisted", report.unlisted)?;
    dict.set_item("filled", report.filled)?;
    let damages = report
        .findings
        .iter()
        .map(|finding| to_dict(py, Some(finding.name()), finding))
        .collect::<PyResult<Vec<_>>>()?;
    dict.set_item("damages", PyList::new(py, damages)?)?;
    Ok(dict)
}

fn check(dataset: &Dataset, decode: bool, truncated: Truncated, progress: bool, stop: &AtomicBool) -> Report {
    let records = dataset.splits().iter().map(Split::len).sum();
    let bar = progress.then(|| shardtool_cli::Progress::new("verified", "records", records));
    let advance = |records, bytes| bar.iter().for_each(|bar| bar.advance(records, bytes));
    let mut options = Options::default();
    options.decode = decode;
    options.truncated = truncated;
    options.progress = Some(&advance);
    options.stop = Some(stop);
    let report = shardtool_read::verify::verify(dataset, &options);
    bar.iter().for_each(shardtool_cli::Progress::finish);
    report
}

/// Returns a finding as a dict.
pub(crate) fn to_dict<'py>(py: Python<'py>, name: Option<&str>, finding: &Finding) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", name)?;
    dict.set_item("shard", finding.file.to_string_lossy())?;
    dict.set_item("record", finding.record)?;
    dict.set_item("key", &finding.key)?;
    dict.set_item("offset", finding.offset)?;
    dict.set_item("expected", &finding.expected)?;
    dict.set_item("found", &finding.found)?;
    dict.set_item("message", &finding.message)?;
    Ok(dict)
}
