//! After `load` in the data's way: batches of u8 pixels travel from pinned memory to a CUDA device, and become normalised
//! f32, f16 or bf16 there, while the host goes on and the consumer's stream, not its thread, waits. The driver is found at
//! run time; without one, [`Probe`] and [`Device::open`] say so.
//!
//! | module | its job |
//! |---|---|
//! | [`Probe`] | is there a driver, which devices, what can they do |
//! | [`Device`] | one device, opened |
//! | [`PinnedAlloc`] | memory that a loader's workers write and the device copies from |
//! | [`Feed`] | where host batches come from: a loader, or the caller's own |
//! | [`Config`], [`Output`] | what pixels become, how much memory that may take |
//! | [`DeviceLoader`] | the upload thread, and `next_batch` |
//! | [`ImageLoader`] | a dataset's loader and the above in one, with states and statistics; several devices |
//! | [`DeviceBatch`] | a batch on the device: views for other users of cudarc, DLPack for everyone else |
//! | `ring`, `exchange`, `slot`, `kernel` | the uploads, who has which slot, its events, the normalisation |
//!
//! `unsafe` stands where memory and kernels are handed to the driver: `memory`, `kernel`, `ring`, `batch`, `dlpack`, and two
//! calls in `device` and `probe`.

mod batch;
mod config;
mod device;
pub mod dlpack;
mod error;
mod exchange;
mod feed;
mod images;
mod kernel;
mod loader;
mod memory;
mod parts;
mod probe;
mod ring;
mod slot;

/// What `exchange` locks and waits with.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}

pub use batch::DeviceBatch;
pub use config::{Config, OnExhausted};
pub use device::Device;
pub use error::{Error, Result, Shortage};
pub use feed::{Feed, HostBatch, Rows};
pub use images::ImageLoader;
pub use loader::{DeviceLoader, Memory};
pub use memory::PinnedAlloc;
pub use parts::{Element, Part, Value};
pub use probe::{Found, Probe, Unavailable};
pub use shardtool_decode::{Dtype, Layout, Output};
