//! Shapes of buckets.

use crate::error;
use pyo3::prelude::*;
use std::num::NonZeroU32;

/// Returns height and width of the shapes of at most `cells` squares of `step` pixels.
#[pyfunction]
pub(crate) fn shapes_within(py: Python<'_>, step: u32, cells: u32, ratio: u32) -> PyResult<Vec<(u32, u32)>> {
    let [step, cells, ratio] = [step, cells, ratio].map(|n| at_least_one(py, "buckets", n));
    let shapes = shardtool_order::shapes_within(step?, cells?, ratio?).map_err(|e| error::order(py, e))?;
    Ok(shapes.iter().map(|shape| (shape.height.get(), shape.width.get())).collect())
}

fn at_least_one(py: Python<'_>, option: &'static str, n: u32) -> PyResult<NonZeroU32> {
    NonZeroU32::new(n).ok_or_else(|| error::load(py, shardtool_load::Error::Zero { option }))
}
