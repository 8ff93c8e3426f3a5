//! What the keypoints of objects are, between Python and the crates.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shardtool_format::manifest::{self, Keypoints, Manifest};

/// `shardtool.Keypoints`.
#[derive(FromPyObject)]
pub(crate) struct KeypointsOption {
    names: Vec<String>,
    flip_index: Vec<usize>,
    skeleton: Vec<(usize, usize)>,
}

impl KeypointsOption {
    pub(crate) fn into_keypoints(self) -> Keypoints {
        let skeleton = self.skeleton.into_iter().map(|(a, b)| [a, b]).collect();
        Keypoints { names: self.names, flip_index: self.flip_index, skeleton }
    }
}

/// Returns what a dataset says of its keypoints, as `shardtool.Keypoints`; `None` if it says nothing.
pub(crate) fn described<'py>(py: Python<'py>, manifest: &Manifest) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(Keypoints { names, flip_index, skeleton }) = &manifest.keypoints else { return Ok(None) };
    let class = py.import("shardtool.keypoints")?.getattr("Keypoints")?;
    class.call1((names.clone(), flip_index.clone(), skeleton.clone())).map(Some)
}

/// Checks `shardtool.Keypoints`.
#[pyfunction]
#[pyo3(signature = (keypoints, /))]
pub(crate) fn check_keypoints(keypoints: KeypointsOption) -> PyResult<()> {
    keypoints.into_keypoints().problem().map_or(Ok(()), |problem| Err(PyValueError::new_err(problem)))
}

/// Returns the number that each point has in a mirrored object, by the names.
#[pyfunction]
#[pyo3(signature = (names, /))]
pub(crate) fn flip_index(names: Vec<String>) -> PyResult<Vec<usize>> {
    manifest::flip_index(&names).map_err(|error| PyValueError::new_err(error.to_string()))
}
