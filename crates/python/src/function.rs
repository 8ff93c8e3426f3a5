//! Converts a Python function to a step of a loader. Workers call it one at a time, holding the GIL.

use crate::array::Memory;
use crate::error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shardtool_decode::{Depth, PixelFn, PixelsMut};
use std::sync::{Arc, Mutex, PoisonError};

/// Exceptions that the function raised, by their messages. The loader reports only the message of one panic, and several
/// workers may fail at once.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Vec<(String, PyErr)>>>);

impl Raised {
    fn set(&self, message: String, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((message, error));
    }

    /// Removes and returns the exception with this message, and drops all others.
    pub(crate) fn take(&self, message: &str) -> Option<PyErr> {
        let raised = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        raised.into_iter().find(|(text, _)| text == message).map(|(_, error)| error)
    }

    /// Drops exceptions of calls for batches that were cancelled.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Returns the loader's step that calls `function(image, seed)`. `image` is an array `[H, W, C]` of u8 or u16, a copy; `seed` is a number
/// from 0 to 2³² − 2 that depends on seed, epoch and sample. The returned image replaces the image; if the function returns
/// `None`, it has changed its argument in place.
pub(crate) fn custom(function: Py<PyAny>, raised: Raised) -> PixelFn {
    Arc::new(move |mut pixels, random| {
        let seed = random.below(u64::from(u32::MAX));
        let done = Python::try_attach(|py| call(py, &function, &mut pixels, seed));
        let message = match done {
            Some(Ok(())) => return,
            Some(Err(error)) => {
                // The seed distinguishes the message from those for other samples.
                let message = format!("the function of the steps raised {error} (seed {seed})");
                raised.set(message.clone(), error);
                message
            }
            None => "the interpreter is shutting down".to_owned(),
        };
        // An error of the function is not a bad sample: it ends the run. `resume_unwind` prints no panic message, since the
        // exception has it.
        std::panic::resume_unwind(Box::new(message));
    })
}

fn call(py: Python<'_>, function: &Py<PyAny>, pixels: &mut PixelsMut<'_>, seed: u64) -> PyResult<()> {
    let format = pixels.format();
    let shape = vec![pixels.height() as usize, pixels.width() as usize, format.channels.count()];
    // A copy, since the function may keep its argument.
    let (memory, dtype) = match format.depth {
        Depth::Eight => (Memory::from_vec(pixels.data.to_vec(), shape.clone()), "uint8"),
        Depth::Sixteen => {
            let values = pixels.data.as_chunks().0.iter().map(|v| u16::from_le_bytes(*v)).collect();
            (Memory::from_vec(values, shape.clone()), "uint16")
        }
    };
    let image = memory.into_array(py)?;
    let returned = function.call1(py, (&image, seed))?.into_bound(py);
    let returned = if returned.is_none() { image } else { returned };
    let numpy = py.import("numpy")?;
    let array = numpy.call_method1("asarray", (&returned,))?;
    let found = (array.getattr("shape")?.extract::<Vec<usize>>()?, array.getattr("dtype")?.str()?.to_string());
    if found != (shape.clone(), dtype.to_owned()) {
        let message = format!(
            "the function of the steps returned {} {:?}: expected {dtype} {shape:?}, the size it was given",
            found.1, found.0
        );
        return Err(error::option(py, &message));
    }
    let bytes = array.call_method0("tobytes")?;
    pixels.data.copy_from_slice(bytes.cast::<PyBytes>()?.as_bytes());
    Ok(())
}
