//! A Python function to a step of a loader. Workers call it one at a time, holding Python's lock.

use crate::array::Memory;
use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shardtool_decode::{PixelFn, PixelsMut};
use std::sync::{Arc, Mutex, PoisonError};

/// What the function raised, by the text that the loader has of it: the loader itself knows only that a call failed, and
/// several workers may fail at once.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Vec<(String, PyErr)>>>);

impl Raised {
    fn set(&self, message: String, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((message, error));
    }

    /// Takes what was raised with this text, and forgets everything else.
    pub(crate) fn take(&self, message: &str) -> Option<PyErr> {
        let raised = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        raised.into_iter().find(|(text, _)| text == message).map(|(_, error)| error)
    }

    /// Forgets what was raised by calls for batches that were given up.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The loader's step that calls `function(image, seed)`: the image a u8 array `[H, W, 3]` of its own, the seed a number in
/// 0…2³² − 2 that belongs to sample and epoch. What it returns is the image then, or, with `None`, what it made of its
/// argument.
pub(crate) fn custom(function: Py<PyAny>, raised: Raised) -> PixelFn {
    Arc::new(move |mut pixels, random| {
        let seed = random.below(u64::from(u32::MAX));
        let done = Python::try_attach(|py| call(py, &function, &mut pixels, seed));
        let message = match done {
            Some(Ok(())) => return,
            Some(Err(error)) => {
                // The seed belongs to sample and epoch, and tells this call from others.
                let message = format!("the function of `transform` raised {error} (seed {seed})");
                raised.set(message.clone(), error);
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
        let message = format!(
            "the function of `transform` returned {} {:?}: expected uint8 {shape:?}, the size it was given",
            found.1, found.0
        );
        return Err(error::option(py, &message));
    }
    let bytes = array.call_method0("tobytes")?;
    pixels.data.copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(())
}
