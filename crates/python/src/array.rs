//! Memory of ours as numpy arrays, without a copy: by the array interface (numpy's manual, "The array interface
//! protocol", version 3), which needs no header of numpy's and no version of it.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::any::Any;

/// Memory that an array looks at; the array keeps it alive.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Memory {
    address: usize,
    shape: Vec<usize>,
    element: &'static str,
    writable: bool,
    _owner: Box<dyn Any + Send + Sync>,
}

/// A type of numbers that numpy knows.
pub(crate) trait Number: Copy + Send + Sync + 'static {
    /// numpy's name of it: byte order, kind, bytes.
    const ELEMENT: &'static str;
}

macro_rules! numbers {
    ($($rust:ty: $numpy:literal),*) => { $(impl Number for $rust { const ELEMENT: &'static str = $numpy; })* };
}
numbers!(u8: "|u1", bool: "|b1", u16: "<u2", u32: "<u4", u64: "<u8", i64: "<i8", f32: "<f4", Half: "<f2");

/// An IEEE half-precision number, as its bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Half(u16);

impl Memory {
    /// Looks at memory that `owner` keeps where it is.
    pub(crate) fn new<T: Number>(
        first: *const T,
        shape: Vec<usize>,
        writable: bool,
        owner: impl Any + Send + Sync,
    ) -> Self {
        Memory { address: first as usize, shape, element: T::ELEMENT, writable, _owner: Box::new(owner) }
    }

    /// Owns numbers.
    pub(crate) fn from_vec<T: Number>(mut numbers: Vec<T>, shape: Vec<usize>) -> Self {
        // Moving the vector leaves its elements where they are.
        Memory::new(numbers.as_mut_ptr(), shape, true, numbers)
    }

    /// The array.
    pub(crate) fn into_array(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if self.shape.contains(&0) {
            // An empty vector has no address that numpy would take.
            let shape = PyTuple::new(py, &self.shape)?;
            return py.import("numpy")?.call_method1("empty", (shape, self.element));
        }
        ASARRAY.import(py, "numpy", "asarray")?.call1((Bound::new(py, self)?,))
    }
}

#[pymethods]
impl Memory {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", self.element)?;
        interface.set_item("shape", PyTuple::new(py, &self.shape)?)?;
        interface.set_item("data", (self.address, !self.writable))?;
        Ok(interface)
    }
}

/// Reads numbers from the bytes of a little-endian array.
pub(crate) fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> PyResult<Vec<T>> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    match rest {
        [] => Ok(chunks.iter().map(|chunk| read(*chunk)).collect()),
        _ => Err(PyValueError::new_err(format!("{} bytes are no whole number of {N}-byte values", bytes.len()))),
    }
}
