//! A Python function to a step of a loader. Workers call it one at a time, holding Python's lock.

use crate::array::Memory;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shardtool_decode::{Custom, PixelsMut};
use std::sync::{Arc, Mutex, PoisonError};

/// What the function raised: the loader itself knows only that it did.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// What was raised first since this was last called.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The loader's step that calls `function(image, seed)`: the image a u8 array `[H, W, 3]` of its own, the seed a number in
/// 0…2³² − 2 that belongs to sample and epoch. What it returns is the image then, or, with `None`, what it made of its
/// argument.
pub(crate) fn custom(function: Py<PyAny>, raised: Raised) -> Custom {
    Arc::new(move |mut pixels, random| {
        let seed = random.below(u64::from(u32::MAX));
        let done = Python::try_attach(|py| call(py, &function, &mut pixels, seed));
        let message = match done {
            Some(Ok(())) => return,
            Some(Err(error)) => {
                let message = format!("the function of `transform` raised {error}");
                raised.set(error);
                message
            }
            None => "the interpreter ends".to_owned(),
        };
        // What the function does wrong is no bad sample, and ends the run. Without the message of a panic on stderr, since
        // the exception says it.
        std::panic::resume_unwind(Box::new(message));
    })
}

fn call(py: Python<'_>, function: &Py<PyAny>, pixels: &mut PixelsMut<'_>, seed: u64) -> PyResult<()> {
    let shape = vec![pixels.height() as usize, pixels.width() as usize, 3];
    // A copy, since the function may keep what it gets.
    let image = Memory::from_vec(pixels.data.to_vec(), shape.clone()).into_array(py)?;
    let returned = function.call1(py, (&image, seed))?.into_bound(py);
    let returned = if returned.is_none() { image } else { returned };
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (&returned,))?;
    let found = (array.getattr("shape")?.extract::<Vec<usize>>()?, array.getattr("dtype")?.str()?.to_string());
    if found != (shape.clone(), "uint8".to_owned()) {
        return Err(PyValueError::new_err(format!(
            "the function of `transform` returned {} {:?}: expected uint8 {shape:?}, the size it was given",
            found.1, found.0
        )));
    }
    let bytes = array.call_method0("tobytes")?;
    pixels.data.copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(())
}
