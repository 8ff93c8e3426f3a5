//! Converts a record to a dict.

use crate::error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyType};
use shardtool_format::example::Feature;
use shardtool_format::manifest::{DType, Manifest};
use shardtool_read::Record;

/// Returns an empty `shardtool.Record`.
fn new_record(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    Ok(CLASS.import(py, "shardtool.display", "Record")?.call0()?.cast_into()?)
}

/// Returns `{"key", "image", "label", "features"}`: image as stored or `None`, label as class id or `None`, all other features.
pub(crate) fn to_dict<'py>(py: Python<'py>, record: &Record, manifest: &Manifest) -> PyResult<Bound<'py, PyDict>> {
    let read = |e| error::read(py, e);
    let example = record.example().map_err(read)?;
    let dict = new_record(py)?;
    dict.set_item("key", String::from_utf8_lossy(&record.key().map_err(read)?))?;
    dict.set_item("image", record.image().map_err(read)?.map(|bytes| PyBytes::new(py, bytes)))?;
    let label = manifest.label.as_deref().and_then(|name| example.int64(name));
    dict.set_item("label", label.map(|stored| stored.wrapping_sub(manifest.label_offset)))?;
    let features = PyDict::new(py);
    for (name, feature) in example.features() {
        if manifest.image.as_deref() != Some(&**name) {
            features.set_item(name, value(py, feature, manifest.dtype(name))?)?;
        }
    }
    dict.set_item("features", features)?;
    record.check_readable().map_err(read)?;
    Ok(dict)
}

/// Returns a feature's value, of its type in the manifest, if there is one, else a list.
fn value<'py>(py: Python<'py>, feature: &Feature<'_>, dtype: Option<DType>) -> PyResult<Bound<'py, PyAny>> {
    let logical = match (feature, dtype) {
        (Feature::Bytes(list), Some(DType::Float64)) => list.numbers::<f64>().map(|all| PyList::new(py, all)),
        (Feature::Bytes(list), Some(DType::Uint64)) => list.numbers::<u64>().map(|all| PyList::new(py, all)),
        _ => None,
    };
    let list = match feature {
        _ if logical.is_some() => logical.expect("some")?,
        Feature::Empty => PyList::empty(py),
        Feature::Int64(list) => PyList::new(py, list.iter().collect::<Vec<_>>())?,
        Feature::Float(list) => PyList::new(py, list.iter().collect::<Vec<_>>())?,
        Feature::Bytes(list) => PyList::new(py, list.iter().map(|b| PyBytes::new(py, b)).collect::<Vec<_>>())?,
    };
    if list.len() == 1 { list.get_item(0) } else { Ok(list.into_any()) }
}
