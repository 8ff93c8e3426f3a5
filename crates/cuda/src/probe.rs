use crate::error::name;
use cudarc::driver::{DriverError, result, sys};
use libloading::Library;
use serde::Serialize;
use std::fmt;
use std::sync::OnceLock;
use thiserror::Error;

/// Why no device can be used: ordinary answers on machines without one.
#[derive(Debug, Error, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unavailable {
    /// The driver's library is not installed.
    #[error("no CUDA driver: {reason}")]
    NoDriver {
        /// The dynamic linker's answer.
        reason: String,
    },
    /// The driver is older than what the kernels were made for.
    #[error("the CUDA driver supports CUDA {}, and {} is needed: install driver 525 or newer", Version(*found), Version(*needed))]
    OldDriver {
        /// What it supports: 1000 × major + 10 × minor.
        found: i32,
        /// What is needed.
        needed: i32,
    },
    /// The driver could not start.
    #[error("the CUDA driver did not start: {name} ({code})")]
    NotStarted {
        /// The `CUresult`, as a number.
        code: u32,
        /// Its name.
        name: String,
    },
    /// The driver knows no device.
    #[error("the CUDA driver finds no device")]
    NoDevice,
    /// A device of that number is not there.
    #[error("no device cuda:{ordinal}: there are {devices}, counted from 0")]
    NoSuchDevice {
        /// What was asked for.
        ordinal: usize,
        /// How many there are.
        devices: usize,
    },
    /// The device is there and does not let us in.
    #[error("device cuda:{ordinal} cannot be used: {name} ({code}){}", if *code == BUSY { "; another process has it for itself" } else { "" })]
    Refused {
        /// Which device.
        ordinal: usize,
        /// The `CUresult`, as a number.
        code: u32,
        /// Its name.
        name: String,
    },
}

/// What the machine offers. Looking changes nothing, and never fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// CUDA version that the driver supports, 1000 × major + 10 × minor; `None` without a driver.
    pub driver: Option<i32>,
    /// Why no device can be used at all.
    pub unavailable: Option<Unavailable>,
    /// Devices, in the driver's order.
    pub devices: Vec<Found>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// N of `cuda:N`.
    pub ordinal: usize,
    /// As the driver names it.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Bytes of memory.
    pub total_bytes: u64,
    /// Bytes free now; `None` where the device does not let us in.
    pub free_bytes: Option<u64>,
    /// Why it cannot be used.
    pub refused: Option<Unavailable>,
}

/// The kernels' PTX is of ISA 8.0, which drivers understand since CUDA 12.0.
const NEEDED: i32 = 12_000;
/// `CUDA_ERROR_DEVICE_UNAVAILABLE`: exclusive or prohibited compute mode.
const BUSY: u32 = 46;

impl Probe {
    /// Looks at driver and devices. A device's free memory shows only in a context, so one is made on each for a moment.
    pub fn new() -> Self {
        let (driver, devices) = match start() {
            Ok((driver, devices)) => (driver, devices),
            Err((driver, unavailable)) => return Probe { driver, unavailable: Some(unavailable), devices: Vec::new() },
        };
        let devices = (0..devices).filter_map(|ordinal| look(ordinal).ok()).collect();
        Probe { driver: Some(driver), unavailable: None, devices }
    }
}

impl Default for Probe {
    fn default() -> Self {
        Self::new()
    }
}

/// Checks that device `ordinal` is there. Before this has succeeded nothing of cudarc may be called: it panics without a
/// driver.
pub(crate) fn check(ordinal: usize) -> Result<(), Unavailable> {
    let (_, devices) = start().map_err(|(_, unavailable)| unavailable)?;
    if ordinal >= devices { Err(Unavailable::NoSuchDevice { ordinal, devices }) } else { Ok(()) }
}

/// A refusal by a device, in words.
pub(crate) fn refused(ordinal: usize, error: DriverError) -> Unavailable {
    Unavailable::Refused { ordinal, code: error.0 as u32, name: name(error).into() }
}

/// Loads and starts the driver: its version and the number of devices. With a driver that cannot be used, its version
/// where that is known.
fn start() -> Result<(i32, usize), (Option<i32>, Unavailable)> {
    // Kept, so that the library stays loaded.
    static DRIVER: OnceLock<Result<Library, String>> = OnceLock::new();
    // SAFETY: loading the driver runs its initialisers, which is what every CUDA program does at its start.
    let library = DRIVER.get_or_init(|| unsafe { Library::new(LIBRARY) }.map_err(reason));
    if let Err(reason) = library {
        return Err((None, Unavailable::NoDriver { reason: reason.clone() }));
    }
    let mut driver = 0;
    let not_started = |e: DriverError| Unavailable::NotStarted { code: e.0 as u32, name: name(e).into() };
    // SAFETY: the library is loaded; the pointer is to a local variable. This call is allowed before cuInit.
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

/// The linker's own words, which libloading keeps below its own.
fn reason(error: libloading::Error) -> String {
    std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(windows)]
const LIBRARY: &str = "nvcuda.dll";
#[cfg(not(windows))]
const LIBRARY: &str = "libcuda.so.1";

fn look(ordinal: usize) -> Result<Found, DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(ordinal as i32)?;
    // SAFETY: the handle was just given by the driver.
    let (total, capability) = unsafe {
        let capability = (result::device::get_attribute(device, MAJOR)?, result::device::get_attribute(device, MINOR)?);
        (result::device::total_mem(device)?, capability)
    };
    let free = cudarc::driver::CudaContext::new(ordinal).and_then(|context| context.mem_get_info());
    Ok(Found {
        ordinal,
        name: result::device::get_name(device)?,
        capability,
        total_bytes: total as u64,
        free_bytes: free.ok().map(|(free, _)| free as u64),
        refused: free.err().map(|error| refused(ordinal, error)),
    })
}

/// A version as people write it.
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
            let mib = |bytes: u64| bytes >> 20;
            let (major, minor) = d.capability;
            write!(f, "\ncuda:{}  {}, compute {major}.{minor}, {} MiB", d.ordinal, d.name, mib(d.total_bytes))?;
            match (d.free_bytes, &d.refused) {
                (Some(free), _) => write!(f, ", {} MiB free", mib(free))?,
                (None, Some(refused)) => write!(f, ": {refused}")?,
                (None, None) => {}
            }
        }
        Ok(())
    }
}
