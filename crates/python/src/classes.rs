//! The classes of several splits: the argument `classes` of a loader, as JSON.

use crate::array::{Memory, numbers};
use crate::error;
use crate::json::parse;
use crate::split::Split;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shardtool_load::Classes;

/// Returns the names of the classes that a loader of these splits delivers; empty if they have numbers only.
#[pyfunction]
#[pyo3(signature = (splits, classes, /))]
pub(crate) fn class_names(py: Python<'_>, splits: Vec<Py<Split>>, classes: &str) -> PyResult<Vec<String>> {
    let classes = parse::<Classes>(py, classes)?;
    shardtool_load::class_names(&natives(&splits), &classes).map_err(|e| error::load(py, e))
}

/// Returns the class id of each sample of the splits, from the indexes; −1 for a record without a class.
#[pyfunction]
#[pyo3(signature = (splits, classes, /))]
pub(crate) fn labels<'py>(py: Python<'py>, splits: Vec<Py<Split>>, classes: &str) -> PyResult<Bound<'py, PyAny>> {
    let (classes, splits) = (parse::<Classes>(py, classes)?, natives(&splits));
    let labels = py.detach(|| shardtool_load::labels(&splits, &classes)).map_err(|e| error::load(py, e))?;
    let shape = vec![labels.len()];
    Memory::from_vec(labels, shape).into_array(py)
}

/// Returns for each sample the rarest of its labels, −1 without any: `labels` are those of all samples and `lengths` how many each
/// has, as 64-bit numbers.
#[pyfunction]
#[pyo3(signature = (labels, lengths, /))]
pub(crate) fn rarest_labels<'py>(py: Python<'py>, labels: &[u8], lengths: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (labels, lengths) = (numbers(labels, i64::from_le_bytes)?, numbers(lengths, u64::from_le_bytes)?);
    let found = py.detach(|| {
        let mut rest = &labels[..];
        let samples: Option<Vec<&[i64]>> = lengths.iter().map(|length| rest.split_off(..*length as usize)).collect();
        Some(shardtool_order::rarest_labels(samples?.into_iter()))
    });
    let found = found.ok_or_else(|| PyValueError::new_err("the lengths add up to more than the labels"))?;
    let shape = vec![found.len()];
    Memory::from_vec(found, shape).into_array(py)
}

fn natives(splits: &[Py<Split>]) -> Vec<shardtool_read::Split> {
    splits.iter().map(|split| split.get().split.clone()).collect()
}
