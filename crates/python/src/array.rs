//! Exposes memory owned by Rust as numpy arrays, without a copy, through the array interface (numpy's manual, "The array
//! interface protocol", version 3), which needs no numpy headers and works with every version of numpy.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::any::Any;
use std::sync::Arc;

/// Memory that a numpy array refers to. The array keeps this object alive, and thereby the owner of the memory.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct Memory {
    /// Address of `shape` numbers of type `element` in C order, valid while `_owner` lives.
    address: usize,
    shape: Vec<usize>,
    element: &'static str,
    writable: bool,
    _owner: Box<dyn Any + Send + Sync>,
}

/// A number type that numpy supports.
pub(crate) trait Number: Copy + Send + Sync + 'static {
    /// The type in numpy's array interface: byte order, kind, bytes.
    const ELEMENT: &'static str;
}

macro_rules! numbers {
    ($($rust:ty: $numpy:literal),*) => { $(impl Number for $rust { const ELEMENT: &'static str = $numpy; })* };
}
numbers!(
    u8: "|u1", bool: "|b1", i8: "|i1", u16: "<u2", i16: "<i2", u32: "<u4", i32: "<i4", u64: "<u8", i64: "<i8", f32: "<f4",
    f64: "<f8", Half: "<f2"
);

/// An IEEE half-precision number, as its bits.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Half(u16);

impl Memory {
    /// Returns writable memory that `owner` keeps alive.
    ///
    /// # Safety
    /// `first` is the address of as many initialised numbers of type `T` as `shape` says, in C order. They stay there while
    /// `owner` lives, and meanwhile are neither read nor written except through the array.
    #[expect(unsafe_code, reason = "numpy takes an address")]
    pub(crate) unsafe fn writable<T: Number>(first: *mut T, shape: Vec<usize>, owner: impl Any + Send + Sync) -> Self {
        Memory { address: first as usize, shape, element: T::ELEMENT, writable: true, _owner: Box::new(owner) }
    }

    /// Returns read-only memory: the numbers of type `T` whose bytes `bytes` borrows from `owner`; `None` if `bytes` does.
    ///
    /// The bytes stay valid without further conditions: they are borrowed from the target of the `Arc`, which is neither
    /// moved nor mutably borrowed while this object holds it.
    pub(crate) fn shared<T: Number, O: Any + Send + Sync, E>(
        owner: &Arc<O>,
        bytes: impl for<'a> FnOnce(&'a O) -> Result<Option<&'a [u8]>, E>,
    ) -> Result<Option<Self>, E> {
        let view = |bytes: &[u8]| Memory {
            address: bytes.as_ptr() as usize,
            shape: vec![bytes.len() / size_of::<T>()],
            element: T::ELEMENT,
            writable: false,
            _owner: Box::new(owner.clone()),
        };
        Ok(bytes(owner)?.map(view))
    }

    /// Returns writable memory that owns its numbers.
    pub(crate) fn from_vec<T: Number>(mut numbers: Vec<T>, shape: Vec<usize>) -> Self {
        assert_eq!(numbers.len(), shape.iter().product::<usize>(), "as many numbers as the shape says");
        let first = numbers.as_mut_ptr();
        // SAFETY: the vector has that many numbers, as checked; moving it into the owner leaves them where they are, and
        // nothing uses the vector before it is dropped.
        #[expect(unsafe_code, reason = "numpy takes an address")]
        unsafe {
            Memory::writable(first, shape, numbers)
        }
    }

    /// Converts to an array.
    pub(crate) fn into_array(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        static ASARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if self.shape.contains(&0) {
            // numpy rejects the dangling address of an empty vector.
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
///
/// # Errors
/// `ValueError` if the bytes are not a whole number of values.
pub(crate) fn numbers<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> PyResult<Vec<T>> {
    let (chunks, rest) = bytes.as_chunks::<N>();
    match rest {
        [] => Ok(chunks.iter().map(|chunk| read(*chunk)).collect()),
        _ => Err(PyValueError::new_err(format!("expected a multiple of {N} bytes, found {}", bytes.len()))),
    }
}
