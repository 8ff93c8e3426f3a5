//! The classes of several splits: the argument `classes` of a loader, as JSON.

use crate::array::Memory;
use crate::error;
use crate::json::parse;
use crate::split::Split;
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

fn natives(splits: &[Py<Split>]) -> Vec<shardtool_read::Split> {
    splits.iter().map(|split| split.get().split.clone()).collect()
}
