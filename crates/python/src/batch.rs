//! A batch to a dict of arrays: the images without a copy, everything else (some bytes a row) copied.

use crate::array::Memory;
use crate::error;
use crate::process::Local;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use shardtool_load::{Batch, Values};
use std::sync::Arc;

/// Names by which users find what is not a feature.
const IMAGE: &str = "image";
const LABEL: &str = "label";

/// `{"image", "label", "id", "valid", …}`, the features of further columns by their names.
pub(crate) fn to_dict<'py>(py: Python<'py>, batch: Batch, label: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let rows = batch.len();
    let batch = Arc::new(Local::new(batch));
    if let (Some(shape), Some(buffer)) = (batch.image_shape(), batch.buffer()) {
        // The batch is ours alone, and nobody looks at its pixels any more except through this array.
        let memory = Memory::new(buffer.as_ptr().as_ptr(), shape.to_vec(), true, batch.clone());
        dict.set_item(IMAGE, memory.into_array(py)?)?;
    } else if !batch.records().is_empty() {
        dict.set_item(IMAGE, encoded(py, &batch)?)?;
    }
    for feature in batch.columns() {
        let name = if label == Some(feature) { LABEL } else { feature };
        if let Some(values) = batch.column(feature) {
            dict.set_item(name, column(py, values, rows, batch.column_width(feature).unwrap_or(1))?)?;
        }
    }
    dict.set_item("id", Memory::from_vec(batch.ids().to_vec(), vec![rows]).into_array(py)?)?;
    dict.set_item("valid", Memory::from_vec(batch.valid().to_vec(), vec![rows]).into_array(py)?)?;
    Ok(dict)
}

/// Images as stored; `None` in rows without a sample.
fn encoded<'py>(py: Python<'py>, batch: &Batch) -> PyResult<Bound<'py, PyList>> {
    let image = |record: &Option<shardtool_read::Record>| -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(record) = record else { return Ok(None) };
        let image = record.image().map_err(|e| error::read(py, e))?;
        Ok(image.map(|bytes| PyBytes::new(py, bytes)))
    };
    PyList::new(py, batch.records().iter().map(image).collect::<PyResult<Vec<_>>>()?)
}

fn column<'py>(py: Python<'py>, values: &Values, rows: usize, width: usize) -> PyResult<Bound<'py, PyAny>> {
    let shape = || if width == 1 { vec![rows] } else { vec![rows, width] };
    let ragged = |offsets: &Vec<i64>, values: Memory| {
        let offsets = Memory::from_vec(offsets.clone(), vec![offsets.len()]).into_array(py)?;
        py.import("shardtool.loader")?.getattr("Ragged")?.call1((offsets, values.into_array(py)?))
    };
    match values {
        Values::Int64(values) => Memory::from_vec(values.clone(), shape()).into_array(py),
        Values::Float(values) => Memory::from_vec(values.clone(), shape()).into_array(py),
        Values::RaggedInt64 { offsets, values } => {
            ragged(offsets, Memory::from_vec(values.clone(), vec![values.len()]))
        }
        Values::RaggedFloat { offsets, values } => {
            ragged(offsets, Memory::from_vec(values.clone(), vec![values.len()]))
        }
        Values::Bytes { offsets, values } => {
            let ends = offsets.iter().zip(&offsets[1..]);
            let strings = ends.map(|(start, end)| PyBytes::new(py, &values[*start as usize..*end as usize]));
            Ok(PyList::new(py, strings.collect::<Vec<_>>())?.into_any())
        }
    }
}
