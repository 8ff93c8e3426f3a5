use crate::probe::Unavailable;
use cudarc::driver::DriverError;
use std::time::Duration;
use thiserror::Error;

/// Result of work on a device.
pub type Result<T> = std::result::Result<T, Error>;

/// Why batches do not reach the device.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No device can be used here: an ordinary answer, not a fault.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A name that is no device's.
    #[error("`{0}` names no device: expected `cuda`, or `cuda:N` with N counted from 0")]
    DeviceName(String),
    /// A call to the driver failed. Once a device is lost, every call does.
    #[error("the CUDA driver answered {name} ({code}) while {doing}")]
    Driver {
        /// What was being done.
        doing: &'static str,
        /// The `CUresult`, as a number.
        code: u32,
        /// Its name, such as `CUDA_ERROR_LAUNCH_FAILED`.
        name: Box<str>,
    },
    /// Device memory for one batch more is not to be had, and there is none yet to wait for.
    #[error("{0}; make the batches smaller or `device_memory_limit` larger, or free device memory elsewhere")]
    DeviceMemory(Shortage),
    /// The caller holds every batch that the device has room for.
    #[error(
        "the caller holds all {held} batches that the device has room for{}{}; drop batches sooner, or allow more \
         (`slots`, `device_memory_limit`)",
        if waited.as_millis() > 0 { format!(", and none came back within {waited:.1?}") } else { String::new() },
        shortage.as_ref().map(|s| format!(" ({s})")).unwrap_or_default()
    )]
    Held {
        /// Batches that the caller holds.
        held: usize,
        /// How long the call waited for one.
        waited: Duration,
        /// Why there are not more of them; `None` when `slots` is the reason.
        shortage: Option<Shortage>,
    },
    /// A batch that is not like the ones before it.
    #[error("a batch of {found:?} (N, H, W, channels) after batches of {expected:?}: all of a loader have one shape")]
    Shape {
        /// Of the first batch.
        expected: [usize; 4],
        /// Of this one.
        found: [usize; 4],
    },
    /// The loader makes no images, so there is nothing to upload.
    #[error("the loader makes no images: a device loader needs `Content::Images`")]
    NoImages,
    /// An option whose value cannot be used.
    #[error("`{option}` is {value}: expected {expected}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// What was given.
        value: f64,
        /// What can be used.
        expected: &'static str,
    },
    /// A stream that DLPack does not allow.
    #[error("DLPack stream {0}: expected 1 (legacy default), 2 (per thread), a handle above 2, or −1 (no waiting)")]
    Stream(i64),
    /// A batch has no column of that name on the device.
    #[error("the batch has no column `{name}` on the device; it has: {}", known.join(", "))]
    NoColumn {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Values were asked for as another type than they have.
    #[error("the values are {expected}, and were asked for as {found}")]
    Type {
        /// What they are.
        expected: &'static str,
        /// What was asked for.
        found: &'static str,
    },
    /// The thread that uploads ended in a panic, whose message stands on stderr.
    #[error("the upload thread panicked; its message stands on stderr")]
    Panicked,
    /// The operating system gives no thread.
    #[error("no thread for the uploads: {0}")]
    Thread(#[source] std::io::Error),
    /// The host side of loading failed.
    #[error(transparent)]
    Load(#[from] shardtool_load::Error),
}

impl From<shardtool_decode::OutputError> for Error {
    fn from(error: shardtool_decode::OutputError) -> Self {
        let shardtool_decode::OutputError { option, value, expected } = error;
        Error::Option { option, value, expected }
    }
}

/// Device memory that was asked for and not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a batch needs {needed} bytes on the device; {free} are free there, {held} are already held{}",
    limit.map(|l| format!(" of a limit of {l}")).unwrap_or_default()
)]
pub struct Shortage {
    /// Bytes that one batch more needs.
    pub needed: u64,
    /// Bytes free on the device.
    pub free: u64,
    /// Bytes that this loader holds there.
    pub held: u64,
    /// `device_memory_limit`, in bytes.
    pub limit: Option<u64>,
}

/// Names what was being done when the driver refused.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &'static str) -> Result<T>;
}

impl<T> Doing<T> for std::result::Result<T, DriverError> {
    fn doing(self, doing: &'static str) -> Result<T> {
        self.map_err(|error| Error::Driver { doing, code: error.0 as u32, name: name(error) })
    }
}

/// The name of a driver's answer. Taken from the bindings, not asked of the driver: that would need one.
pub(crate) fn name(error: DriverError) -> Box<str> {
    format!("{:?}", error.0).into()
}
