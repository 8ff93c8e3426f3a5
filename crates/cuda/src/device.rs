use crate::error::{During, Error, Result};
use crate::probe;
use cudarc::driver::CudaContext;
use std::sync::Arc;

/// A CUDA device, opened in its primary context: the one that all users of the CUDA runtime in this process share,
/// PyTorch and JAX among them.
#[derive(Debug, Clone)]
pub struct Device(Arc<CudaContext>);

impl Device {
    /// Opens a device by its name: `cuda:N` with N counted from 0, or `cuda` for the first one.
    ///
    /// # Errors
    /// [`Error::DeviceName`] for any other name, and the errors of [`Device::open`].
    pub fn named(name: &str) -> Result<Self> {
        let ordinal = match name.split_once(':') {
            None if name == "cuda" => Some(0),
            // `parse` alone would accept a sign.
            Some(("cuda", n)) if n.bytes().all(|b| b.is_ascii_digit()) => n.parse().ok(),
            _ => None,
        };
        Self::open(ordinal.ok_or_else(|| Error::DeviceName(name.to_owned()))?)
    }

    /// Opens device number `ordinal`, the N of `cuda:N`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the driver or the device does not exist, or if another process has exclusive use of it.
    pub fn open(ordinal: usize) -> Result<Self> {
        probe::check(ordinal)?;
        let context = CudaContext::new(ordinal).map_err(|error| probe::refused(ordinal, error))?;
        Ok(Device(context))
    }

    /// Returns the context, for callers that use cudarc themselves.
    ///
    /// cudarc's event tracking is on, so that its own slices are ordered between streams. Batches are ordered by the
    /// events of this crate: see [`DeviceBatch::view`](crate::DeviceBatch::view).
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.0
    }

    /// Returns the device number, the N of `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal()
    }

    /// Returns the device's memory in bytes: free now, and total.
    ///
    /// # Errors
    /// [`Error::Driver`] if the call fails, as every call does once the device is lost.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let (free, total) = self.0.mem_get_info().during("reading the amount of free device memory")?;
        Ok((free as u64, total as u64))
    }
}
