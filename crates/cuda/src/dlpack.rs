//! Arrays for other frameworks, as DLPack lays them out: <https://dmlc.github.io/dlpack/latest/c_api.html>.

use crate::parts::Element;
use shardtool_decode::Dtype;
use shardtool_load::Batch;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

/// `kDLCPU`: host memory.
pub const CPU: i32 = 1;
/// `kDLCUDA`: memory of a CUDA device.
pub const CUDA: i32 = 2;

/// `DLDevice`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Device {
    /// `device_type`: [`CPU`] or [`CUDA`].
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
    /// Bits of a value.
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
    /// Where that is.
    pub device: Device,
    /// Number of dimensions.
    pub ndim: i32,
    /// Type of the values.
    pub dtype: DataType,
    /// `ndim` lengths.
    pub shape: *mut i64,
    /// `ndim` steps, counted in values.
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
    /// Ours.
    pub context: *mut c_void,
    /// Lets go of the array.
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`: what a capsule named `dltensor_versioned` points to.
#[repr(C)]
#[derive(Debug)]
pub struct Versioned {
    /// Major and minor: 1, 0.
    pub version: [u32; 2],
    /// Ours.
    pub context: *mut c_void,
    /// Lets go of the array.
    pub deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    /// Bit 0: read-only.
    pub flags: u64,
    /// The array.
    pub tensor: Tensor,
}

/// An array that is ready to leave, with what keeps its memory. Dropped, it lets go.
pub struct Exported {
    kept: Box<Kept>,
    data: *mut c_void,
    device: Device,
    dtype: DataType,
    read_only: bool,
}

/// What stays in place while a framework has the array.
struct Kept {
    shape: Vec<i64>,
    strides: Vec<i64>,
    /// Dropped to let go.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the pointer is an address kept valid by the owner, which is Send; nothing here belongs to a thread.
unsafe impl Send for Exported {}

impl Exported {
    /// # Safety
    /// `data` is the address, on `device`, of values of type `element` in the given shape, rows last, and stays valid while
    /// `owner` lives.
    pub(crate) unsafe fn new(
        owner: Box<dyn Any + Send + Sync>,
        data: *mut c_void,
        device: Device,
        element: Element,
        shape: &[usize],
    ) -> Self {
        let code = match element {
            Element::I64 => 0,
            Element::U8 => 1,
            Element::F32 | Element::Pixel(Dtype::F32 | Dtype::F16) => 2,
            Element::Pixel(Dtype::Bf16) => 4,
            Element::Bool => 6,
        };
        let dtype = DataType { code, bits: 8 * element.bytes() as u8, lanes: 1 };
        let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Exported { kept: Box::new(Kept { shape, strides, _owner: owner }), data, device, dtype, read_only: false }
    }

    /// The pixels of a host batch, u8 `[N, H, W, 3]`, read-only because the batch can be shared; `None` where it has none.
    pub fn of_host(batch: Arc<Batch>) -> Option<Self> {
        let (data, shape) = (batch.images()?.as_ptr(), batch.image_shape()?);
        let device = Device { kind: CPU, ordinal: 0 };
        // SAFETY: the batch's own pixels, in the shape that it gives, kept by the batch.
        let exported = unsafe { Exported::new(Box::new(batch), data as *mut c_void, device, Element::U8, &shape) };
        Some(Exported { read_only: true, ..exported })
    }

    /// Where the array is: the answer to `__dlpack_device__`.
    pub fn device(&self) -> Device {
        self.device
    }

    /// For a capsule named `dltensor`: what consumers take that ask for no version, or one below 1.0. Whoever takes the
    /// pointer calls its deleter once, on any thread.
    pub fn into_managed(self) -> *mut Managed {
        unsafe extern "C" fn delete(managed: *mut Managed) {
            // SAFETY: DLPack has the deleter called once, with the pointer that `into_managed` gave.
            drop(unsafe { Box::from_raw((*managed).context.cast::<Kept>()) });
            // SAFETY: as above; the box was made by `into_managed`.
            drop(unsafe { Box::from_raw(managed) });
        }
        let (tensor, context, _) = self.leave();
        Box::into_raw(Box::new(Managed { tensor, context, deleter: Some(delete) }))
    }

    /// For a capsule named `dltensor_versioned`: what consumers take that ask for version 1.0 or later. Whoever takes the
    /// pointer calls its deleter once, on any thread.
    pub fn into_versioned(self) -> *mut Versioned {
        unsafe extern "C" fn delete(versioned: *mut Versioned) {
            // SAFETY: DLPack has the deleter called once, with the pointer that `into_versioned` gave.
            drop(unsafe { Box::from_raw((*versioned).context.cast::<Kept>()) });
            // SAFETY: as above; the box was made by `into_versioned`.
            drop(unsafe { Box::from_raw(versioned) });
        }
        let (tensor, context, flags) = self.leave();
        Box::into_raw(Box::new(Versioned { version: [1, 0], context, deleter: Some(delete), flags, tensor }))
    }

    fn leave(self) -> (Tensor, *mut c_void, u64) {
        let Exported { mut kept, data, device, dtype, read_only } = self;
        let tensor = Tensor {
            data,
            device,
            ndim: kept.shape.len() as i32,
            dtype,
            shape: kept.shape.as_mut_ptr(),
            strides: kept.strides.as_mut_ptr(),
            byte_offset: 0,
        };
        (tensor, Box::into_raw(kept).cast(), read_only as u64)
    }
}
