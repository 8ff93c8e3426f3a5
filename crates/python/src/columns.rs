//! Converts columns of indexes to arrays: a view of one shard's index, or those of several shards concatenated.

use crate::array::{Memory, Number};
use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_format::index::{Element, Scalar};
use shardtool_format::manifest::DType;
use shardtool_read::{Shard, Split};
use std::sync::Arc;

/// The features of a split, or of one of its shards, that have at most one value per record, by name.
#[pyclass(frozen, mapping, module = "shardtool._shardtool")]
pub(crate) struct Columns {
    split: Split,
    shards: std::ops::Range<usize>,
    /// Arrays made before, by name.
    joined: Py<PyDict>,
}

impl Columns {
    pub(crate) fn new(py: Python<'_>, split: Split, shards: std::ops::Range<usize>) -> Self {
        Columns { split, shards, joined: PyDict::new(py).unbind() }
    }

    fn open(&self, py: Python<'_>, number: usize) -> PyResult<Arc<Shard>> {
        py.detach(|| self.split.shard(number)).map_err(|e| error::read(py, e))
    }

    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let Some(first) = self.shards.clone().next() else { return Ok(vec![]) };
        let shard = self.open(py, first)?;
        Ok(shard.indexed_features().into_iter().map(str::to_owned).collect())
    }

    /// Returns the buffers of a column of one shard, as `shardtool.columns.Buffers`; `None` if the shard has no such column.
    fn buffers<'py>(&self, py: Python<'py>, number: usize, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let shard = self.open(py, number)?;
        let manifest = self.split.manifest();
        // Of a feature that no shard stores, a shard without a column has no value.
        let absent =
            || manifest.dtype(name).filter(|_| manifest.stored_features().iter().all(|stored| stored.name != name));
        let parts = match shard.indexed_feature(name) {
            Some(Element::I64) => numbers::<i64>(&shard, name),
            Some(Element::F32) => numbers::<f32>(&shard, name),
            Some(Element::Bytes) => byte_strings(&shard, name),
            _ => match absent() {
                Some(dtype) => Ok(nulls(dtype, shard.records() as usize)),
                None => return Ok(None),
            },
        };
        let parts = parts.map_err(|e| error::read(py, e))?;
        let array = |part: Option<Memory>| part.map(|memory| memory.into_array(py)).transpose();
        let [validity, offsets, values] = parts;
        let logical = self.split.manifest().dtype(name).filter(|dtype| dtype.is_logical()).map(DType::name);
        let deleted = py.detach(|| self.split.deleted_rows(number)).map_err(|e| error::read(py, e))?;
        let deleted = deleted.map(|rows| Memory::from_vec(rows.as_bytes().to_vec(), vec![rows.as_bytes().len()]));
        let parts = (shard.records(), array(validity)?, array(offsets)?, array(values)?, logical, array(deleted)?);
        Ok(Some(py.import("shardtool.columns")?.getattr("Buffers")?.call1(parts)?))
    }

    /// Returns the buffers of a column in each shard.
    fn all_buffers<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let unknown = |shard: usize| {
            let file = self.split.shard_path(shard);
            let known = self.names(py).unwrap_or_default().join(", ");
            let message = format!(
                "the index of {} has no column `{name}`, since a record has several values or a long one; it has: {known}",
                file.display()
            );
            error::column(py, &message)
        };
        let buffers = self.shards.clone().map(|shard| self.buffers(py, shard, name)?.ok_or_else(|| unknown(shard)));
        let buffers = buffers.collect::<PyResult<Vec<_>>>()?;
        match &buffers[..] {
            [] => Err(error::column(py, &format!("the split has no shards, and so no column `{name}`"))),
            _ => Ok(buffers),
        }
    }
}

/// Validity, offsets and values of a column, as memory that keeps the shard.
type Parts = [Option<Memory>; 3];

fn numbers<T: Number + Scalar>(shard: &Arc<Shard>, name: &str) -> shardtool_read::Result<Parts> {
    // Checked before it is lent: errors of the first use can be reported.
    shard.feature::<T>(name)?;
    let lent = &Arc::new(shard.lend_index());
    Ok([
        Memory::shared::<u8, _, _>(lent, |s| Ok(s.feature::<T>(name)?.and_then(|c| c.validity())))?,
        None,
        Memory::shared::<T, _, _>(lent, |s| Ok(s.feature::<T>(name)?.map(|c| c.values())))?,
    ])
}

fn byte_strings(shard: &Arc<Shard>, name: &str) -> shardtool_read::Result<Parts> {
    shard.feature_bytes(name)?;
    let lent = &Arc::new(shard.lend_index());
    Ok([
        Memory::shared::<u8, _, _>(lent, |s| Ok(s.feature_bytes(name)?.and_then(|c| c.validity())))?,
        Memory::shared::<i64, _, _>(lent, |s| Ok(s.feature_bytes(name)?.map(|c| c.offsets())))?,
        Memory::shared::<u8, _, _>(lent, |s| Ok(s.feature_bytes(name)?.map(|c| c.values())))?,
    ])
}

/// Returns the buffers of a column without values.
fn nulls(dtype: DType, rows: usize) -> Parts {
    let zeros = |length: usize| vec![0u8; length];
    let validity = Some(Memory::from_vec(zeros(rows.div_ceil(8)), vec![rows.div_ceil(8)]));
    match dtype {
        DType::Int64 => [validity, None, Some(Memory::from_vec(vec![0i64; rows], vec![rows]))],
        DType::Float => [validity, None, Some(Memory::from_vec(vec![0f32; rows], vec![rows]))],
        DType::Bytes | DType::Float64 | DType::Uint64 => {
            let offsets = Memory::from_vec(vec![0i64; rows + 1], vec![rows + 1]);
            [validity, Some(offsets), Some(Memory::from_vec(zeros(0), vec![0]))]
        }
    }
}

#[pymethods]
impl Columns {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let joined = self.joined.bind(py);
        if let Some(array) = joined.get_item(name)? {
            return Ok(array);
        }
        let array = py.import("shardtool.columns")?.call_method1("array", (self.all_buffers(py, name)?,))?;
        joined.set_item(name, &array)?;
        Ok(array)
    }

    /// Returns a column as a `pyarrow.ChunkedArray` with one chunk per shard, without a copy.
    fn arrow<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        py.import("shardtool.columns")?.call_method1("arrow", (self.all_buffers(py, name)?,))
    }

    /// Returns columns, by default all, as a `pyarrow.Table`.
    #[pyo3(signature = (names=None, /))]
    fn table<'py>(&self, py: Python<'py>, names: Option<Vec<String>>) -> PyResult<Bound<'py, PyAny>> {
        let columns = PyDict::new(py);
        for name in names.map_or_else(|| self.names(py), Ok)? {
            columns.set_item(&name, self.all_buffers(py, &name)?)?;
        }
        py.import("shardtool.columns")?.call_method1("table", (columns,))
    }

    /// Returns all columns as a stream of Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.table(py, None)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.names(py)?.len())
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.names(py)?.iter().any(|known| known == name))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.names(py)?.into_pyobject(py)?.try_iter()?.into_any())
    }

    /// Returns the names of the columns.
    fn keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.names(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<columns {}>", self.names(py)?.join(", ")))
    }
}
