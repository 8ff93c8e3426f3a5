//! Exports arrays to other frameworks in the structs of DLPack: <https://dmlc.github.io/dlpack/latest/c_api.html>.

use crate::part::Element;
use std::any::Any;
use std::ffi::c_void;
use std::fmt;

/// `kDLCUDA`: memory of a CUDA device.
pub const CUDA: i32 = 2;

/// `DLDevice`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// `device_type`: [`CUDA`].
    pub kind: i32,
    /// `device_id`.
    pub ordinal: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataType {
    /// 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool.
    pub code: u8,
    /// Bits of one value.
    pub bits: u8,
    /// Always 1.
    pub lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct Tensor {
    /// Address of the first value.
    pub data: *mut c_void,
    /// Where the values lie.
    pub device: Device,
    /// Number of dimensions.
    pub ndim: i32,
    /// Type of the values.
    pub dtype: DataType,
    /// `ndim` lengths.
    pub shape: *mut i64,
    /// `ndim` strides, in values.
    pub strides: *mut i64,
    /// Always 0.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: what a capsule named `dltensor` points to.
#[repr(C)]
#[derive(Debug)]
pub struct Managed {
    /// The array.
    pub tensor: Tensor,
    /// Data of `deleter`.
    pub context: *mut c_void,
    /// Releases the array.
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`: what a capsule named `dltensor_versioned` points to.
#[repr(C)]
#[derive(Debug)]
pub struct Versioned {
    /// Major and minor: 1, 0.
    pub version: [u32; 2],
    /// Data of `deleter`.
    pub context: *mut c_void,
    /// Releases the array.
    pub deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    /// Always 0: neither read-only nor copied.
    pub flags: u64,
    /// The array.
    pub tensor: Tensor,
}

/// An array that is ready to be passed to a framework, and the owner of its memory. Dropping it releases the memory.
pub struct Exported {
    kept: Box<Kept>,
    data: *mut c_void,
    device: Device,
    dtype: DataType,
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exported").finish_non_exhaustive()
    }
}

/// What the structs of DLPack point to until their deleter is called.
struct Kept {
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Keeps the memory of the values.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: `data` is an address that the owner, which is `Send`, keeps valid (`Exported::new`); the rest is `Send`
// itself.
unsafe impl Send for Exported {}

impl Exported {
    /// # Safety
    /// `data` is the address, on `device`, of values of type `element` in the given shape, in C order, and stays valid
    /// while `owner` lives.
    pub(crate) unsafe fn new(
        owner: Box<dyn Any + Send + Sync>,
        data: *mut c_void,
        device: Device,
        element: Element,
        shape: &[usize],
    ) -> Self {
        let code = match element {
            Element::I8 | Element::I16 | Element::I32 | Element::I64 => 0,
            Element::U8 | Element::U16 | Element::U32 | Element::U64 => 1,
            Element::F16 | Element::F32 | Element::F64 => 2,
            Element::Bf16 => 4,
            Element::Bool | Element::StoredBool => 6,
        };
        let dtype = DataType { code, bits: 8 * element.bytes() as u8, lanes: 1 };
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Exported { kept: Box::new(Kept { shape, strides, _owner: owner }), data, device, dtype }
    }

    /// Returns where the array lies, as `__dlpack_device__` does.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns the struct for a capsule named `dltensor`: for consumers that request no version, or one below 1.0. The
    /// consumer calls its deleter once, on any thread.
    pub fn into_managed(self) -> *mut Managed {
        unsafe extern "C" fn delete(managed: *mut Managed) {
            // SAFETY: DLPack requires that the deleter is called once, with the pointer that `into_managed` returned;
            // `context` is the `Kept` that `into_tensor` turned into a pointer.
            drop(unsafe { Box::from_raw((*managed).context.cast::<Kept>()) });
            // SAFETY: as above; the box was made by `into_managed`.
            drop(unsafe { Box::from_raw(managed) });
        }
        let (tensor, context) = self.into_tensor();
        Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(delete) }))
    }

    /// Returns the struct for a capsule named `dltensor_versioned`: for consumers that request version 1.0 or later.
    /// The consumer calls its deleter once, on any thread.
    pub fn into_versioned(self) -> *mut Versioned {
        unsafe extern "C" fn delete(versioned: *mut Versioned) {
            // SAFETY: DLPack requires that the deleter is called once, with the pointer that `into_versioned` returned;
            // `context` is the `Kept` that `into_tensor` turned into a pointer.
            drop(unsafe { Box::from_raw((*versioned).context.cast::<Kept>()) });
            // SAFETY: as above; the box was made by `into_versioned`.
            drop(unsafe { Box::from_raw(versioned) });
        }
        let (tensor, context) = self.into_tensor();
        Box::into_raw(Box::new(Versioned { version: [1, 0], context, deleter: Some(delete), flags: 0, tensor }))
    }

    /// Returns the tensor, and the pointer to what it points to.
    fn into_tensor(self) -> (Tensor, *mut c_void) {
        let Exported { mut kept, data, device, dtype } = self;
        let tensor = Tensor {
            data,
            device,
            ndim: kept.shape.len() as i32,
            dtype,
            shape: kept.shape.as_mut_ptr(),
            strides: kept.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (tensor, Box::into_raw(kept).cast())
    }
}
