use crate::error::{Doing, Error, Result};
use crate::probe;
use cudarc::driver::CudaContext;
use std::sync::Arc;

/// A device, ready for work, in the context that every user of the CUDA runtime in this process shares (PyTorch and JAX
/// among them).
#[derive(Debug, Clone)]
pub struct Device(Arc<CudaContext>);

impl Device {
    /// Opens a device by its name: `cuda:N`, or `cuda` for the first.
    ///
    /// # Errors
    /// [`Error::DeviceName`] for another name, and those of [`Device::open`].
    pub fn named(name: &str) -> Result<Self> {
        let ordinal = match name.split_once(':') {
            None if name == "cuda" => Some(0),
            // No sign and no space, which `parse` alone would let pass in part.
            Some(("cuda", n)) if n.bytes().all(|b| b.is_ascii_digit()) => n.parse().ok(),
            _ => None,
        };
        Self::open(ordinal.ok_or_else(|| Error::DeviceName(name.to_owned()))?)
    }

    /// Opens device `ordinal` (the N of `cuda:N`).
    ///
    /// # Errors
    /// [`Unavailable`](crate::Unavailable), with the reason, where there is no driver, no such device, or it is another's.
    pub fn open(ordinal: usize) -> Result<Self> {
        probe::check(ordinal)?;
        let context = CudaContext::new(ordinal).map_err(|error| probe::refused(ordinal, error))?;
        // SAFETY: everything made in this context is ordered by this crate's own events, so that cudarc's are not needed;
        // and what this crate hands out, it hands out after making the caller's stream wait.
        unsafe { context.disable_event_tracking() };
        Ok(Device(context))
    }

    /// The context, for other users of cudarc.
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.0
    }

    /// N of `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal()
    }

    /// Bytes of device memory: free now, and in all.
    ///
    /// # Errors
    /// When the driver refuses, as it does once the device is lost.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let (free, total) = self.0.mem_get_info().doing("asking for free memory")?;
        Ok((free as u64, total as u64))
    }
}
