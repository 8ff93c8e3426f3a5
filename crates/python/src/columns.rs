//! Converts columns of indexes to arrays: a view of one shard's index, or those of several shards concatenated.

use crate::array::{Memory, Number};
use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use shardtool_format::index::{Column, Element, Scalar};
use shardtool_read::{Shard, Split};
use std::sync::Arc;

/// The scalar features of a split, or of one of its shards, by name.
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
        let names = shard.columns().iter().filter_map(Column::feature);
        Ok(names.map(str::to_owned).collect())
    }

    fn view<'py>(&self, py: Python<'py>, number: usize, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let shard = self.open(py, number)?;
        let column = shard.columns().iter().find(|column| column.feature() == Some(name));
        let memory = match column.map(|c| c.element()) {
            Some(Element::I64) => memory::<i64>(&shard, name),
            Some(Element::F32) => memory::<f32>(&shard, name),
            Some(Element::U32) => memory::<u32>(&shard, name),
            Some(Element::U64) => memory::<u64>(&shard, name),
            _ => return Ok(None),
        };
        let memory = memory.map_err(|e| error::read(py, e))?;
        memory.map(|memory| memory.into_array(py)).transpose()
    }
}

/// Returns a column of a shard's index as memory that keeps the shard.
fn memory<T: Number + Scalar>(shard: &Arc<Shard>, name: &str) -> shardtool_read::Result<Option<Memory>> {
    Memory::shared::<T, _, _>(shard, |shard| Ok(shard.feature::<T>(name)?.map(|column| column.values())))
}

#[pymethods]
impl Columns {
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let joined = self.joined.bind(py);
        if let Some(array) = joined.get_item(name)? {
            return Ok(array);
        }
        let unknown = |shard: usize| {
            let file = self.split.shard_path(shard);
            let known = self.names(py).unwrap_or_default().join(", ");
            let message =
                format!("`{name}` is not one number in every record of {}; the index has: {known}", file.display());
            error::column(py, &message)
        };
        let mut views = vec![];
        for shard in self.shards.clone() {
            views.push(self.view(py, shard, name)?.ok_or_else(|| unknown(shard))?);
        }
        let array = match &views[..] {
            [] => return Err(error::column(py, &format!("the split has no shards, and so no column `{name}`"))),
            [one] => one.clone(),
            _ => py.import("numpy")?.call_method1("concatenate", (views,))?,
        };
        joined.set_item(name, &array)?;
        Ok(array)
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
