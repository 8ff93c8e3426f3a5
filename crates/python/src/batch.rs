//! Converts a batch to a dict of arrays. Images, masks and arrays are not copied. The columns of a batch on the host are copied, a few
//! bytes per row.

use crate::array::{Half, Memory};
use crate::device::DeviceArray;
use crate::error;
use crate::process::Local;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use shardtool_cuda::{Column, DeviceBatch, Dtype, Output, Part};
use shardtool_decode::{Depth, LabelDtype};
use shardtool_format::array::ArrayDtype;
use shardtool_load::{Batch, ObjectRole, Pictures, Values};
use std::collections::HashMap;
use std::sync::Arc;

/// Names of arrays that are not features.
pub(crate) const IMAGE: &str = "image";
const LABEL: &str = "label";
pub(crate) const MASK: &str = "mask";
pub(crate) const PIXEL_MASK: &str = "pixel_mask";
/// Name of the dict of host arrays in a batch on a device.
const HOST: &str = "host";

/// A batch on the host or on a device.
pub(crate) enum Delivered {
    Host(Batch),
    Device(Box<DeviceBatch>),
}

impl Delivered {
    /// Returns `{"image", "label", "id", "valid", …}`, with other columns by their features' names.
    /// Ragged columns of `padded` become arrays: see `on_host`.
    pub(crate) fn into_dict<'py>(
        self,
        py: Python<'py>,
        label: Option<&str>,
        padded: &[(String, f64)],
    ) -> PyResult<Bound<'py, PyDict>> {
        match self {
            Delivered::Host(batch) => on_host(py, batch, label, padded),
            Delivered::Device(batch) => on_device(py, *batch, label, padded),
        }
    }
}

/// Returns the name of an array of images.
pub(crate) fn picture_name(feature: Option<&str>, view: &str) -> String {
    let name = feature.unwrap_or(IMAGE);
    if view.is_empty() { name.to_owned() } else { format!("{name}.{view}") }
}

/// Returns the name of a column.
fn column_name<'n>(feature: &'n str, role: Option<ObjectRole>, label: Option<&str>) -> &'n str {
    match role {
        Some(role) => role.name(),
        None if label == Some(feature) => LABEL,
        None => feature,
    }
}

/// All arrays of numbers are on the device; byte strings are on the host. `"host"` holds ids, `valid` and the columns of numbers on
/// the host as well, except those of `padded`.
fn on_device<'py>(
    py: Python<'py>,
    mut batch: DeviceBatch,
    label: Option<&str>,
    padded: &[(String, f64)],
) -> PyResult<Bound<'py, PyDict>> {
    let (dict, host) = (PyDict::new(py), PyDict::new(py));
    // Values are moved into the host's arrays, not copied.
    let rows = batch.take_rows();
    let (n, batch) = (batch.len(), Arc::new(Local::new(batch)));
    let mut names = HashMap::new();
    for Column { feature, values, width, role, .. } in rows.columns {
        let name = column_name(&feature, role, label).to_owned();
        if matches!(values, Values::Bytes { .. }) {
            dict.set_item(&name, column(py, values, n, 1, &[])?)?;
        } else if let Some(width) = width
            && !padded.iter().any(|(padded, _)| *padded == feature)
        {
            host.set_item(&name, column(py, values, n, width, &[])?)?;
        }
        names.insert(feature, name);
    }
    let ids = match rows.packed {
        None => Values::Int64(rows.ids),
        Some(packed) => Values::RaggedInt64 { offsets: packed.offsets, values: rows.ids },
    };
    host.set_item("id", column(py, ids, n, 1, &[])?)?;
    host.set_item("valid", Memory::from_vec(rows.valid, vec![n]).into_array(py)?)?;
    let masks = batch.parts().filter(|part| matches!(part, Part::Mask(_))).count();
    for part in batch.parts() {
        let (name, offsets) = match part {
            Part::Picture { feature, view } => (picture_name(feature, view), None),
            Part::Mask(feature) => (if masks == 1 { MASK } else { feature }.to_owned(), None),
            Part::PixelMask => (PIXEL_MASK.to_owned(), None),
            Part::Array(feature) => (feature.to_owned(), None),
            Part::Ids => ("id".to_owned(), Some(Part::SampleOffsets)),
            Part::Valid => ("valid".to_owned(), None),
            Part::Column(feature) => {
                (names.get(feature).map_or(feature, |name| name).to_owned(), Some(Part::Offsets(feature)))
            }
            Part::Tokens => ("seq_lens".to_owned(), Some(Part::SampleOffsets)),
            Part::SegmentIds => ("segment_ids".to_owned(), None),
            Part::PositionIds => ("position_ids".to_owned(), None),
            // Those of ragged arrays belong to them.
            _ => continue,
        };
        let array = |part| Bound::new(py, DeviceArray::new(&batch, part));
        match offsets.filter(|offsets| batch.shape(*offsets).is_ok()) {
            Some(offsets) => dict.set_item(name, ragged(py, array(offsets)?.into_any(), array(part)?.into_any())?)?,
            None => dict.set_item(name, array(part)?)?,
        }
    }
    dict.set_item(HOST, host)?;
    Ok(dict)
}

/// Ragged columns of `padded` become arrays `[N, length]`, of the bucket's length or that of a packed row.
fn on_host<'py>(
    py: Python<'py>,
    batch: Batch,
    label: Option<&str>,
    padded: &[(String, f64)],
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let rows = batch.len();
    let batch = Arc::new(Local::new(batch));
    for array in batch.pictures() {
        let Pictures { feature, view, buffer, pixel_format, output, .. } = array;
        let (first, shape, owner) = (buffer.as_ptr().as_ptr(), array.dimensions(), batch.clone());
        // SAFETY: the buffer holds the pixels, of this type and shape (`Batch::pictures`), aligned to 64 bytes, until the batch
        // is dropped. The batch was moved here, and Rust code no longer uses its pixels.
        #[expect(unsafe_code, reason = "writable memory of another owner")]
        let memory = unsafe {
            match output.map(Output::dtype) {
                None if pixel_format.depth == Depth::Sixteen => Memory::writable(first.cast::<u16>(), shape, owner),
                None => Memory::writable(first, shape, owner),
                Some(Dtype::F32) => Memory::writable(first.cast::<f32>(), shape, owner),
                Some(Dtype::F16) => Memory::writable(first.cast::<Half>(), shape, owner),
                // numpy has no bfloat16: the loaders of frameworks reinterpret these bits.
                Some(Dtype::Bf16) => Memory::writable(first.cast::<u16>(), shape, owner),
            }
        };
        dict.set_item(picture_name(feature, view), memory.into_array(py)?)?;
    }
    if !batch.records().is_empty() {
        dict.set_item(IMAGE, encoded(py, &batch)?)?;
    }
    let masks = batch.masks().collect::<Vec<_>>();
    let named = masks.iter().map(|mask| (if masks.len() == 1 { MASK } else { mask.feature }, mask));
    for (name, mask) in named.chain(batch.pixel_mask().iter().map(|mask| (PIXEL_MASK, mask))) {
        let (first, shape, owner) = (mask.buffer.as_ptr().as_ptr(), mask.shape.to_vec(), batch.clone());
        // SAFETY: as above, for the masks: of this type and shape.
        #[expect(unsafe_code, reason = "writable memory of another owner")]
        let memory = unsafe {
            match mask.dtype {
                LabelDtype::U8 => Memory::writable(first, shape, owner),
                LabelDtype::U16 => Memory::writable(first.cast::<u16>(), shape, owner),
                LabelDtype::I32 => Memory::writable(first.cast::<i32>(), shape, owner),
            }
        };
        dict.set_item(name, memory.into_array(py)?)?;
    }
    for array in batch.arrays() {
        let (feature, dtype) = (array.feature.to_owned(), array.dtype);
        let (first, shape, owner) = (array.buffer.as_ptr().as_ptr(), array.shape, batch.clone());
        // SAFETY: as above, for the arrays: of this type and shape.
        #[expect(unsafe_code, reason = "writable memory of another owner")]
        let memory = unsafe {
            match dtype {
                ArrayDtype::U8 => Memory::writable(first, shape, owner),
                ArrayDtype::I8 => Memory::writable(first.cast::<i8>(), shape, owner),
                // numpy has no bfloat16: its bits.
                ArrayDtype::U16 | ArrayDtype::Bf16 => Memory::writable(first.cast::<u16>(), shape, owner),
                ArrayDtype::I16 => Memory::writable(first.cast::<i16>(), shape, owner),
                ArrayDtype::U32 => Memory::writable(first.cast::<u32>(), shape, owner),
                ArrayDtype::I32 => Memory::writable(first.cast::<i32>(), shape, owner),
                ArrayDtype::U64 => Memory::writable(first.cast::<u64>(), shape, owner),
                ArrayDtype::I64 => Memory::writable(first.cast::<i64>(), shape, owner),
                ArrayDtype::F16 => Memory::writable(first.cast::<Half>(), shape, owner),
                ArrayDtype::F32 => Memory::writable(first.cast::<f32>(), shape, owner),
                ArrayDtype::F64 => Memory::writable(first.cast::<f64>(), shape, owner),
                // As bytes, since a stored byte other than 0 and 1 is no `bool`.
                ArrayDtype::Bool => Memory::writable(first, shape, owner),
            }
        };
        let array = memory.into_array(py)?;
        let is_bool = dtype == ArrayDtype::Bool;
        dict.set_item(feature, if is_bool { array.call_method1("view", ("?",))? } else { array })?;
    }
    let width = batch.row_length();
    for feature in batch.columns() {
        let name = column_name(feature, batch.column_role(feature), label);
        let Some(values) = batch.column(feature) else { continue };
        let fill = padded.iter().find(|(padded, _)| padded == feature).map(|(_, fill)| *fill);
        if let Some((fill, width)) = fill.zip(width)
            && let Some(array) = values.padded(width, fill)
        {
            dict.set_item(name, column(py, array, rows, width, &[])?)?;
            continue;
        }
        if let Values::RaggedUint8 { offsets, values } = values {
            let (item, owner) = (batch.column_item(feature), batch.clone());
            let group = item.iter().product::<usize>().max(1);
            let offsets: Vec<_> = offsets.iter().map(|offset| offset / group as i64).collect();
            let shape = [&[values.len() / group], &item[..]].concat();
            // SAFETY: as above, for the values of the column.
            #[expect(unsafe_code, reason = "writable memory of another owner")]
            let memory = unsafe { Memory::writable(values.as_ptr().as_ptr(), shape, owner) };
            let rows = vec![offsets.len()];
            let offsets = Memory::from_vec(offsets, rows).into_array(py)?;
            dict.set_item(name, ragged(py, offsets, memory.into_array(py)?)?)?;
            continue;
        }
        let (width, item) = (batch.column_width(feature).unwrap_or(1), batch.column_item(feature));
        dict.set_item(name, column(py, values.clone(), rows, width, &item)?)?;
    }
    dict.set_item("valid", Memory::from_vec(batch.valid().to_vec(), vec![rows]).into_array(py)?)?;
    let Some(packed) = batch.packed() else {
        dict.set_item("id", Memory::from_vec(batch.ids().to_vec(), vec![rows]).into_array(py)?)?;
        return Ok(dict);
    };
    for (name, values) in [("id", batch.ids()), ("seq_lens", packed.tokens)] {
        let values = Values::RaggedInt64 { offsets: packed.offsets.to_vec(), values: values.to_vec() };
        dict.set_item(name, column(py, values, rows, 1, &[])?)?;
    }
    for (name, values) in [("segment_ids", packed.segment_ids()), ("position_ids", packed.position_ids())] {
        dict.set_item(name, Memory::from_vec(values, vec![rows, packed.capacity]).into_array(py)?)?;
    }
    Ok(dict)
}

/// Returns a list of the images as stored; `None` in rows without a sample.
fn encoded<'py>(py: Python<'py>, batch: &Batch) -> PyResult<Bound<'py, PyList>> {
    let image = |record: &Option<shardtool_read::Record>| -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(record) = record else { return Ok(None) };
        let image = record.image().map_err(|e| error::read(py, e))?;
        let copy = image.map(|bytes| PyBytes::new(py, bytes));
        record.check_readable().map_err(|e| error::read(py, e))?;
        Ok(copy)
    };
    PyList::new(py, batch.records().iter().map(image).collect::<PyResult<Vec<_>>>()?)
}

/// Returns a `Ragged`.
fn ragged<'py>(py: Python<'py>, offsets: Bound<'py, PyAny>, values: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    py.import("shardtool.batches")?.getattr("Ragged")?.call1((offsets, values))
}

/// Returns a column's values as an array, a `Ragged`, or a list of byte strings. Those of a ragged column's values that belong
/// together are an array of shape `item`; `[]` if each is one of its own.
fn column<'py>(
    py: Python<'py>,
    values: Values,
    rows: usize,
    width: usize,
    item: &[usize],
) -> PyResult<Bound<'py, PyAny>> {
    let shape = || if width == 1 { vec![rows] } else { vec![rows, width] };
    let group = item.iter().product::<usize>().max(1);
    let ragged = |mut offsets: Vec<i64>, values: Memory| {
        let shape = vec![offsets.len()];
        offsets.iter_mut().for_each(|offset| *offset /= group as i64);
        ragged(py, Memory::from_vec(offsets, shape).into_array(py)?, values.into_array(py)?)
    };
    let items = |values: usize| [&[values / group], item].concat();
    match values {
        Values::Int64(values) => Memory::from_vec(values, shape()).into_array(py),
        Values::Float(values) => Memory::from_vec(values, shape()).into_array(py),
        Values::Float64(values) => Memory::from_vec(values, shape()).into_array(py),
        Values::Uint64(values) => Memory::from_vec(values, shape()).into_array(py),
        Values::RaggedInt64 { offsets, values } => {
            let shape = items(values.len());
            ragged(offsets, Memory::from_vec(values, shape))
        }
        Values::RaggedFloat64 { offsets, values } => {
            let shape = items(values.len());
            ragged(offsets, Memory::from_vec(values, shape))
        }
        Values::RaggedUint64 { offsets, values } => {
            let shape = items(values.len());
            ragged(offsets, Memory::from_vec(values, shape))
        }
        Values::RaggedFloat { offsets, values } => {
            let shape = items(values.len());
            ragged(offsets, Memory::from_vec(values, shape))
        }
        Values::RaggedUint8 { offsets, values } => {
            let shape = items(values.len());
            ragged(offsets, Memory::from_vec(values.to_vec(), shape))
        }
        Values::Bytes { offsets, values } => {
            let ends = offsets.iter().zip(&offsets[1..]);
            let strings = ends.map(|(start, end)| PyBytes::new(py, &values[*start as usize..*end as usize]));
            Ok(PyList::new(py, strings.collect::<Vec<_>>())?.into_any())
        }
        _ => unreachable!("values of a type without an array in Python"),
    }
}
