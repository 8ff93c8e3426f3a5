use crate::probe::Unavailable;
use cudarc::driver::DriverError;
use std::time::Duration;
use thiserror::Error;

/// Result of an operation on a device.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a batch could not be delivered on the device. `Display` is one link of the chain of sources.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No device can be used here. This is ordinary on a machine without one.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The name does not name a device.
    #[error("`{0}` names no device: expected `cuda`, or `cuda:N` with N counted from 0")]
    DeviceName(String),
    /// A call of the driver failed. After a device is lost, every call fails.
    #[error("CUDA driver error while {operation}: {name} ({code})")]
    Driver {
        /// The operation that failed.
        operation: &'static str,
        /// The `CUresult`, as a number.
        code: u32,
        /// Its name, such as `CUDA_ERROR_LAUNCH_FAILED`.
        name: Box<str>,
    },
    /// There is not enough device memory for a batch, and the loader has no batch to wait for.
    #[error("{0}; make the batches smaller or the limit of device memory larger, or free device memory elsewhere")]
    DeviceMemory(Shortage),
    /// The consumer holds every batch that has memory on the device.
    #[error(
        "the consumer holds all {held} batches that have memory on the device{}{}; drop batches sooner, or allow more \
         (`slots`, the limit of device memory)",
        if waited.as_millis() > 0 { format!(", and none was dropped within {waited:.1?}") } else { String::new() },
        shortage.as_ref().map(|s| format!(" ({s})")).unwrap_or_default()
    )]
    Exhausted {
        /// Batches that the consumer holds.
        held: usize,
        /// How long the call waited for one of them.
        waited: Duration,
        /// What limits the memory; `None` if `slots` is the limit.
        shortage: Option<Shortage>,
    },
    /// The device was to normalise images of a format for which it has no kernel.
    #[error("a device normalises RGB of 8 bits only: deliver images of the format {format} normalised, or as they are")]
    PixelFormat {
        /// The format.
        format: &'static str,
    },
    /// Images that the device was to normalise have another shape than `[…, H, W, 3]`, or no pixels.
    #[error("images have shape {found:?}, expected u8 […, H, W, 3] to normalise on the device")]
    Images {
        /// Shape of the images.
        found: Vec<usize>,
    },
    /// An array of a batch is not as many bytes as its shape says.
    #[error("an array of the batch has {found} bytes, expected {expected} from its shape")]
    ArrayBytes {
        /// Bytes of the values of that shape.
        expected: usize,
        /// Bytes of the array.
        found: usize,
    },
    /// A batch has other arrays than the same batch had before.
    #[error("a batch returned {found} arrays, and {expected} before")]
    Arrays {
        /// Arrays that it had.
        expected: usize,
        /// Arrays that it has.
        found: usize,
    },
    /// The way in which the device shall mix a batch does not fit its images.
    #[error(
        "batch is mixed as images of {found:?} (N, H, W), expected {}",
        expected.map_or("no mixing, as in the loader's first batch".to_owned(), |shape| format!("{shape:?}"))
    )]
    Mix {
        /// The shape of the batch; `None` if the loader's first batch was not mixed.
        expected: Option<[usize; 3]>,
        /// The shape of the images that are mixed.
        found: [usize; 3],
    },
    /// The loader delivers records, which stay on the host.
    #[error("records stay on the host: a device loader needs an image, a clip or columns")]
    Records,
    /// The value of an option is not valid.
    #[error("`{option}` is {value}: expected {expected}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// The value.
        value: f64,
        /// The valid values, in words.
        expected: &'static str,
    },
    /// A stream number that DLPack does not define.
    #[error("DLPack stream {0}: expected 1 (legacy default), 2 (per thread), a handle above 2, or −1 (no waiting)")]
    Stream(i64),
    /// A stream that does not belong to the primary context of the batch's device.
    #[error("the stream belongs to a context of cuda:{stream}, the batch to the primary context of cuda:{batch}")]
    StreamContext {
        /// Device number of the batch.
        batch: usize,
        /// Device number of the stream.
        stream: usize,
    },
    /// The target of a copy is too small.
    #[error("the target has {found} values, expected at least {needed}")]
    Room {
        /// Values of the array.
        needed: usize,
        /// Values of the target.
        found: usize,
    },
    /// A batch has no column of that name on the device.
    #[error("the batch has no column `{name}` on the device; it has: {}", known.join(", "))]
    NoColumn {
        /// The requested name.
        name: String,
        /// Names of its columns.
        known: Vec<String>,
    },
    /// A batch has no such array on the device.
    #[error("the batch has no array {part} on the device; it has: {}", known.join(", "))]
    NoPart {
        /// The requested array.
        part: String,
        /// Its arrays.
        known: Vec<String>,
    },
    /// An array was requested with another type than its values have.
    #[error("the values are {expected}, requested as {found}")]
    Type {
        /// Type of the values.
        expected: &'static str,
        /// The requested type.
        found: &'static str,
    },
    /// The upload thread panicked. The panic's message was printed on stderr.
    #[error("the upload thread panicked (message on stderr)")]
    Panicked,
    /// The upload thread could not be started.
    #[error("cannot start the upload thread")]
    Thread(#[source] std::io::Error),
    /// The host side of the loader failed.
    #[error(transparent)]
    Load(#[from] shardtool_load::Error),
}

impl From<shardtool_decode::OutputError> for Error {
    fn from(error: shardtool_decode::OutputError) -> Self {
        let shardtool_decode::OutputError { option, value, expected } = error;
        Error::Option { option, value, expected }
    }
}

/// A shortage of device memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a batch needs {needed} bytes on the device; {free} are free there, {held} are already held{}",
    limit.map(|l| format!(" of a limit of {l}")).unwrap_or_default()
)]
#[non_exhaustive]
pub struct Shortage {
    /// Bytes that one more batch needs.
    pub needed: u64,
    /// Bytes free on the device.
    pub free: u64,
    /// Bytes that this loader holds there.
    pub held: u64,
    /// `device_memory_limit`.
    pub limit: Option<u64>,
}

/// Adds the operation to an error of the driver.
pub(crate) trait During<T> {
    fn during(self, operation: &'static str) -> Result<T>;
}

impl<T> During<T> for std::result::Result<T, DriverError> {
    fn during(self, operation: &'static str) -> Result<T> {
        self.map_err(|error| Error::Driver { operation, code: error.0 as u32, name: name(error) })
    }
}

/// Returns the name of a driver's error code, from the bindings: `cuGetErrorName` needs a loaded driver.
pub(crate) fn name(error: DriverError) -> Box<str> {
    format!("{:?}", error.0).into()
}
