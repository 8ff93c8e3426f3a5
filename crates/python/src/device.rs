//! Options of devices, and arrays on a device, exported through DLPack and the CUDA array interface (version 3).

use crate::error;
use crate::json::parse;
use crate::process::Local;
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use shardtool_cuda::dlpack::{CUDA, Managed, Versioned};
use shardtool_cuda::{Config, Device, DeviceBatch, Element, OnExhausted, Part, PartOf};
use shardtool_load::Devices;
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;

/// Opens the devices that a JSON text names, and returns how batches are uploaded. `padded` are the columns that become arrays of rows
/// of one length.
pub(crate) fn open(
    py: Python<'_>,
    json: &str,
    load: &shardtool_load::Config,
    padded: &[(String, f64)],
) -> PyResult<(Vec<Device>, Config)> {
    let options: Devices = parse(py, json)?;
    // Before a device is opened, since it may be missing.
    if let Some(pixels) = load.pixels() {
        pixels.normalization().map_err(|e| error::load(py, e.into()))?;
    }
    let mut config = Config::default();
    (config.slots, config.device_memory_limit) = (options.slots, options.memory_limit);
    config.padded = padded.to_vec();
    config.on_exhausted = OnExhausted::Block(load.prefetch.starve_after);
    let open = |name: &String| py.detach(|| Device::named(name)).map_err(|e| error::device(py, e));
    Ok((options.devices.iter().map(open).collect::<PyResult<_>>()?, config))
}

/// An array on a device. It keeps its batch alive, as do the arrays that frameworks make from it.
#[pyclass(frozen, module = "shardtool._shardtool")]
pub(crate) struct DeviceArray {
    batch: Arc<Local<DeviceBatch>>,
    part: PartOf<String>,
}

impl DeviceArray {
    pub(crate) fn new(batch: &Arc<Local<DeviceBatch>>, part: Part<'_>) -> Self {
        DeviceArray { batch: batch.clone(), part: part.to_owned() }
    }

    fn batch(&self) -> PyResult<&DeviceBatch> {
        if self.batch.is_ours() { Ok(&self.batch) } else { Err(Python::attach(error::forked)) }
    }

    fn extents(&self, py: Python<'_>) -> PyResult<&[usize]> {
        self.batch()?.shape(self.part.borrowed()).map_err(|e| error::device(py, e))
    }

    fn element(&self, py: Python<'_>) -> PyResult<Element> {
        self.batch()?.element(self.part.borrowed()).map_err(|e| error::device(py, e))
    }

    fn place(&self) -> PyResult<String> {
        Ok(format!("cuda:{}", self.batch()?.ordinal()))
    }
}

#[pymethods]
impl DeviceArray {
    /// The array's shape.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.extents(py)?)
    }

    /// Type of its values: `float16`, `int64` ...
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.element(py)?.name())
    }

    /// The device: `cuda:N`.
    #[getter]
    fn device(&self) -> PyResult<String> {
        self.place()
    }

    /// `kDLCUDA`, and N of `cuda:N`.
    fn __dlpack_device__(&self) -> PyResult<(i32, usize)> {
        Ok((CUDA, self.batch()?.ordinal()))
    }

    /// Returns a DLPack capsule. `stream` waits for the array; its memory is reused only after the work that is queued there
    /// when the array is deleted. `None` and 1 are the legacy default stream, 2 the per-thread default stream, larger numbers
    /// are handles; −1 means that the caller synchronises its work itself.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<i64>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batch = self.batch()?;
        if copy == Some(true) {
            return Err(PyBufferError::new_err("arrays of a batch are exported without a copy: copy the result"));
        }
        if let Some(device) = dl_device.filter(|device| *device != (CUDA, batch.ordinal() as i32)) {
            let place = self.place()?;
            return Err(PyBufferError::new_err(format!("the array is on {place}, but {device:?} was requested")));
        }
        // SAFETY: DLPack requires that handles are streams of this device that live as long as the array, and a process has
        // one primary context per device.
        #[expect(unsafe_code, reason = "a stream's handle comes as a number")]
        let exported = unsafe { batch.export(self.part.borrowed(), stream.unwrap_or(1)) };
        let exported = exported.map_err(|e| error::device(py, e))?;
        if max_version.is_some_and(|version| version >= (1, 0)) {
            capsule(py, exported.into_versioned(), VERSIONED, release_versioned)
        } else {
            capsule(py, exported.into_managed(), MANAGED, release_managed)
        }
    }

    /// Describes the array for the CUDA array interface, whose consumers synchronise with the stream in it. The interface has
    /// no bfloat16.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let typestr = match self.element(py)? {
            Element::U8 => "|u1",
            Element::I8 => "|i1",
            Element::U16 => "<u2",
            Element::I16 => "<i2",
            Element::U32 => "<u4",
            Element::I32 => "<i4",
            Element::U64 => "<u8",
            Element::I64 => "<i8",
            Element::F16 => "<f2",
            Element::F32 => "<f4",
            Element::F64 => "<f8",
            Element::Bool | Element::StoredBool => "|b1",
            // bfloat16, and types that later versions of the crate may add.
            other => {
                let message = format!("the CUDA array interface has no {}: use DLPack", other.name());
                return Err(PyAttributeError::new_err(message));
            }
        };
        let address = self.batch()?.address(self.part.borrowed()).map_err(|e| error::device(py, e))?;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("typestr", typestr)?;
        interface.set_item("shape", PyTuple::new(py, self.extents(py)?)?)?;
        interface.set_item("strides", py.None())?;
        interface.set_item("data", (address, false))?;
        // The legacy default stream, which waits for the array.
        interface.set_item("stream", 1)?;
        Ok(interface)
    }

    /// Raises `TypeError`, since numpy would make an array of one object.
    #[pyo3(signature = (*_arguments, **_options))]
    fn __array__(&self, _arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let place = self.place()?;
        Err(PyTypeError::new_err(format!("the array is on {place}: pass it to a framework through DLPack")))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.extents(py)?[0])
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<{} {:?} on {}>", self.dtype(py)?, self.extents(py)?, self.place()?))
    }
}

const MANAGED: &CStr = c_str!("dltensor");
const VERSIONED: &CStr = c_str!("dltensor_versioned");

/// Returns a capsule that deletes its tensor if no consumer has taken it.
fn capsule<'py, T>(
    py: Python<'py>,
    tensor: *mut T,
    name: &'static CStr,
    release: pyo3::ffi::PyCapsule_Destructor,
) -> PyResult<Bound<'py, PyCapsule>> {
    let tensor = NonNull::new(tensor).expect("made from a box").cast();
    // SAFETY: the tensor lives until its deleter is called: by the consumer that takes it and, as DLPack requires, renames
    // the capsule, or else by `release`. The name is static.
    #[expect(unsafe_code, reason = "capsules hold pointers")]
    unsafe {
        PyCapsule::new_with_pointer_and_destructor(py, tensor, name, Some(release))
    }
}

#[expect(unsafe_code, reason = "capsules hold pointers")]
unsafe extern "C" fn release_managed(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: Python calls this with the capsule. If it still has its name, no consumer has taken the tensor, which is then
    // as `into_managed` returned it.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, MANAGED.as_ptr()) == 1 {
            let tensor = pyo3::ffi::PyCapsule_GetPointer(capsule, MANAGED.as_ptr()).cast::<Managed>();
            if let Some(deleter) = (*tensor).deleter {
                deleter(tensor);
            }
        }
    }
}

#[expect(unsafe_code, reason = "capsules hold pointers")]
unsafe extern "C" fn release_versioned(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: as above, of `into_versioned`.
    unsafe {
        if pyo3::ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            let tensor = pyo3::ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast::<Versioned>();
            if let Some(deleter) = (*tensor).deleter {
                deleter(tensor);
            }
        }
    }
}
