//! Batches on a CUDA device. u8 pixels are copied from pinned memory to the device, mixed there (MixUp, CutMix, mosaics)
//! if the loader does that, and normalised to f32, f16 or bf16, ahead of the consumer. All other arrays of numbers are made on the
//! host and uploaded with them; byte strings stay there. The consumer's stream waits for the upload, not its thread. The driver is
//! loaded at run time; on a machine without one, [`Probe`] and [`Device::open`] report that.
//!
//! | item | responsibility |
//! |---|---|
//! | [`Probe`] | finds the driver, the devices, and what they support |
//! | [`Device`] | an opened device |
//! | [`PinnedAlloc`] | host memory that a loader's workers write and the device copies from |
//! | [`Feed`], [`HostBatch`], [`HostArray`] | source of host batches: a loader, or a custom one; large arrays, row data, and how to mix rows |
//! | [`Config`], [`Output`] | normalisation and limits of device memory |
//! | [`DeviceLoader`] | the upload thread, and `next_batch` |
//! | [`ImageLoader`] | a dataset's loader and a [`DeviceLoader`] in one, with states and statistics; several devices |
//! | [`DeviceBatch`], [`Part`], [`View`] | a batch on the device and its arrays: views for users of cudarc, DLPack for everyone else |
//!
//! Internal modules, in the order of the data: `feed` (host batches), `upload` (copies, mixing and normalisation),
//! `row_data` (columns and ids as bytes), `kernel` (`kernel.cu`, which mixes and normalises), `part` (names and types of arrays),
//! `layout` (where arrays lie in a slot), `slot` (device memory of one batch), `reuse` (when memory may be written again),
//! `exchange` (hand-over of slots between the upload thread and the consumer), `memory` (allocation and limits).
//!
//! `unsafe` is confined to calls of the driver and to DLPack: `memory`, `kernel`, `upload`, `batch`, `view`, `dlpack`,
//! and one function of `probe`.

mod batch;
mod config;
mod device;
pub mod dlpack;
mod error;
mod exchange;
mod feed;
mod images;
mod kernel;
mod layout;
mod loader;
mod memory;
mod part;
mod probe;
mod reuse;
mod row_data;
mod slot;
mod upload;
mod view;

/// Locks that `exchange` uses; `tests/model.rs` replaces them with loom's.
mod sync {
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
}

/// The CUDA bindings whose streams and contexts this crate takes and returns; use this re-export, so that the versions
/// agree.
pub use cudarc;

pub use batch::DeviceBatch;
pub use config::{Config, OnExhausted};
pub use device::Device;
pub use error::{Error, Result, Shortage};
pub use feed::{Column, Feed, HostArray, HostBatch, PackedRows, Rows};
pub use images::ImageLoader;
pub use loader::{DeviceLoader, MemoryUse};
pub use memory::PinnedAlloc;
pub use part::{Element, Part, PartOf, Value};
pub use probe::{DeviceInfo, Probe, Unavailable};
pub use shardtool_decode::{Dtype, Layout, Output};
pub use view::View;
