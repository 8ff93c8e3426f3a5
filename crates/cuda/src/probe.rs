use crate::error::name;
use cudarc::driver::{DriverError, result, sys};
use libloading::Library;
use serde::Serialize;
use std::fmt;
use std::sync::OnceLock;
use thiserror::Error;

/// Why no device can be used. This is ordinary on a machine without one.
#[derive(Debug, Error, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver's library is not installed.
    #[error("no CUDA driver: {reason}")]
    NoDriver {
        /// Message of the dynamic linker.
        reason: String,
    },
    /// The driver is too old for the kernels.
    #[error("the CUDA driver supports CUDA {}, and {} is needed: install driver 525 or newer", Version(*found), Version(*needed))]
    OldDriver {
        /// CUDA version that it supports: 1000 × major + 10 × minor.
        found: i32,
        /// CUDA version that is needed.
        needed: i32,
    },
    /// The driver could not be initialised.
    #[error("the CUDA driver did not start: {name} ({code})")]
    NotStarted {
        /// The `CUresult`, as a number.
        code: u32,
        /// Its name.
        name: String,
    },
    /// The driver finds no device.
    #[error("the CUDA driver finds no device")]
    NoDevice,
    /// The device number is not below the number of devices.
    #[error("no device cuda:{ordinal}: there are {devices}, counted from 0")]
    NoSuchDevice {
        /// The requested number.
        ordinal: usize,
        /// Number of devices.
        devices: usize,
    },
    /// The device exists, but its context could not be created.
    #[error("device cuda:{ordinal} cannot be used: {name} ({code}){}", if *code == BUSY { "; another process has it for its exclusive use" } else { "" })]
    Refused {
        /// Number of the device.
        ordinal: usize,
        /// The `CUresult`, as a number.
        code: u32,
        /// Its name.
        name: String,
    },
}

/// The CUDA driver and devices of this machine, or why no device can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Probe {
    /// CUDA version that the driver supports, 1000 × major + 10 × minor; `None` without a driver.
    pub driver: Option<i32>,
    /// Why no device can be used at all.
    pub unavailable: Option<Unavailable>,
    /// Devices, in the driver's order.
    pub devices: Vec<DeviceInfo>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// N of `cuda:N`.
    pub ordinal: usize,
    /// The driver's name for it.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Bytes of memory.
    pub total_bytes: u64,
    /// Bytes free now; `None` if the device cannot be used.
    pub free_bytes: Option<u64>,
    /// Why the device cannot be used; `None` if it can.
    pub refused: Option<Unavailable>,
}

/// PTX ISA 8.0, that of the kernels, needs CUDA 12.0.
const NEEDED: i32 = 12_000;
/// `CUDA_ERROR_DEVICE_UNAVAILABLE`: exclusive or prohibited compute mode.
const BUSY: u32 = 46;

impl Probe {
    /// Queries the driver and devices. Temporarily creates a context on each device, which reading its free memory
    /// needs.
    pub fn new() -> Self {
        let (driver, devices) = match load_driver() {
            Ok((driver, devices)) => (driver, devices),
            Err((driver, unavailable)) => return Probe { driver, unavailable: Some(unavailable), devices: Vec::new() },
        };
        let devices = (0..devices).filter_map(|ordinal| read_device(ordinal).ok()).collect();
        Probe { driver: Some(driver), unavailable: None, devices }
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}

/// Checks that device `ordinal` exists. cudarc panics without a driver, so nothing of it may be called before this
/// succeeded.
pub(crate) fn check(ordinal: usize) -> Result<(), Unavailable> {
    let (_, devices) = load_driver().map_err(|(_, unavailable)| unavailable)?;
    if ordinal >= devices { Err(Unavailable::NoSuchDevice { ordinal, devices }) } else { Ok(()) }
}

/// Returns the error of a device whose context could not be created.
pub(crate) fn refused(ordinal: usize, error: DriverError) -> Unavailable {
    Unavailable::Refused { ordinal, code: error.0 as u32, name: name(error).into() }
}

/// Loads and initialises the driver. Returns its CUDA version and the number of devices; in errors, the version if it
/// is known.
fn load_driver() -> Result<(i32, usize), (Option<i32>, Unavailable)> {
    // Static, so that the library stays loaded.
    static DRIVER: OnceLock<Result<Library, String>> = OnceLock::new();
    // SAFETY: loading the driver runs its initialisers, as every CUDA program does at its start.
    let library = DRIVER.get_or_init(|| unsafe { Library::new(LIBRARY) }.map_err(reason));
    if let Err(reason) = library {
        return Err((None, Unavailable::NoDriver { reason: reason.clone() }));
    }
    let mut driver = 0;
    let not_started = |e: DriverError| Unavailable::NotStarted { code: e.0 as u32, name: name(e).into() };
    // SAFETY: the library is loaded, so cudarc finds the function; the pointer is to a local variable. This call is
    // allowed before cuInit.
    unsafe { sys::cuDriverGetVersion(&mut driver) }.result().map_err(|e| (None, not_started(e)))?;
    if driver < NEEDED {
        return Err((Some(driver), Unavailable::OldDriver { found: driver, needed: NEEDED }));
    }
    let no_device = |e: DriverError| match e.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => Unavailable::NoDevice,
        _ => not_started(e),
    };
    result::init().map_err(|e| (Some(driver), no_device(e)))?;
    let devices = result::device::get_count().map_err(|e| (Some(driver), no_device(e)))?;
    if devices < 1 { Err((Some(driver), Unavailable::NoDevice)) } else { Ok((driver, devices as usize)) }
}

/// Returns the linker's message, which is the source of libloading's error.
fn reason(error: libloading::Error) -> String {
    std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

fn read_device(ordinal: usize) -> Result<DeviceInfo, DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(ordinal as i32)?;
    // SAFETY: the handle was just returned by the driver.
    let (total, capability) = unsafe {
        let capability = (result::device::get_attribute(device, MAJOR)?, result::device::get_attribute(device, MINOR)?);
        (result::device::total_mem(device)?, capability)
    };
    let free = cudarc::driver::CudaContext::new(ordinal).and_then(|context| context.mem_get_info());
    Ok(DeviceInfo {
        ordinal,
        name: result::device::get_name(device)?,
        capability,
        total_bytes: total as u64,
        free_bytes: free.ok().map(|(free, _)| free as u64),
        refused: free.err().map(|error| refused(ordinal, error)),
    })
}

/// Displays a CUDA version as `12.2`.
struct Version(i32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(unavailable) = &self.unavailable {
            return write!(f, "{unavailable}");
        }
        write!(f, "CUDA {}", Version(self.driver.unwrap_or(0)))?;
        for d in &self.devices {
            // As the command line writes sizes.
            let gigabytes = |bytes: u64| bytes as f64 / 1e9;
            let (major, minor) = d.capability;
            write!(f, "\ncuda:{}  {}, compute {major}.{minor}, {:.1} GB", d.ordinal, d.name, gigabytes(d.total_bytes))?;
            match (d.free_bytes, &d.refused) {
                (Some(free), _) => write!(f, ", {:.1} GB free", gigabytes(free))?,
                (None, Some(refused)) => write!(f, ": {refused}")?,
                (None, None) => {}
            }
        }
        Ok(())
    }
}
