//! The classes of several splits: the argument `classes` of a loader.

use crate::array::Memory;
use crate::config::one_of;
use crate::dataset::Split;
use crate::error;
use pyo3::prelude::*;
use shardtool_load::Classes;

/// `"union"`, `"ids"`, or the names of the classes.
#[derive(FromPyObject)]
pub(crate) enum ClassesOption {
    Keyword(String),
    Names(Vec<String>),
}

const CLASSES: [(&str, Classes); 2] = [("union", Classes::Union), ("ids", Classes::Ids)];

/// Converts the argument.
pub(crate) fn resolve(py: Python<'_>, given: Option<ClassesOption>) -> PyResult<Classes> {
    match given {
        None => Ok(Classes::Equal),
        Some(ClassesOption::Names(names)) => Ok(Classes::Names(names)),
        Some(ClassesOption::Keyword(keyword)) => one_of(py, "classes", &keyword, &CLASSES),
    }
}

/// Returns the names of the classes that a loader of these splits delivers; empty if they have numbers only.
#[pyfunction]
#[pyo3(signature = (splits, classes, /))]
pub(crate) fn class_names(
    py: Python<'_>,
    splits: Vec<Py<Split>>,
    classes: Option<ClassesOption>,
) -> PyResult<Vec<String>> {
    let classes = resolve(py, classes)?;
    shardtool_load::class_names(&natives(&splits), &classes).map_err(|e| error::load(py, e))
}

/// Returns the class id of each sample of the splits, from the indexes; −1 for a record without a class.
#[pyfunction]
#[pyo3(signature = (splits, classes, /))]
pub(crate) fn labels<'py>(
    py: Python<'py>,
    splits: Vec<Py<Split>>,
    classes: Option<ClassesOption>,
) -> PyResult<Bound<'py, PyAny>> {
    let (classes, splits) = (resolve(py, classes)?, natives(&splits));
    let labels = py.detach(|| shardtool_load::labels(&splits, &classes)).map_err(|e| error::load(py, e))?;
    let shape = vec![labels.len()];
    Memory::from_vec(labels, shape).into_array(py)
}

fn natives(splits: &[Py<Split>]) -> Vec<shardtool_read::Split> {
    splits.iter().map(|split| split.get().split.clone()).collect()
}
