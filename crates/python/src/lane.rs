//! One replica's way to its batches: in host memory, or on a device.

use crate::batch::Delivered;
use shardtool_cuda::{Error, ImageLoader, Result};
use shardtool_load::{BadSample, Loader, Notice, Stats};
use shardtool_order::ResumeState;
use std::sync::Arc;

pub(crate) enum Lane {
    Host(Loader),
    Device(Box<ImageLoader>),
}

impl Lane {
    pub(crate) fn next(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Delivered>> {
        match self {
            Lane::Host(loader) => Ok(loader.next_batch_unless(interrupted)?.map(Delivered::Host)),
            Lane::Device(loader) => Ok(loader.next_batch_unless(interrupted)?.map(Delivered::Device)),
        }
    }

    pub(crate) fn state(&self) -> ResumeState {
        match self {
            Lane::Host(loader) => loader.state(),
            Lane::Device(loader) => loader.state(),
        }
    }

    pub(crate) fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        match self {
            Lane::Host(loader) => {
                loader.start_epoch(epoch);
                Ok(())
            }
            Lane::Device(loader) => loader.start_epoch(epoch),
        }
    }

    pub(crate) fn load_state(&mut self, state: &ResumeState) -> Result<()> {
        match self {
            Lane::Host(loader) => loader.load_state(state).map_err(Error::from),
            Lane::Device(loader) => loader.load_state(state),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Lane::Host(loader) => loader.len(),
            Lane::Device(loader) => loader.len(),
        }
    }

    /// Of all replicas that are served by the same workers.
    pub(crate) fn stats(&self) -> Stats {
        match self {
            Lane::Host(loader) => loader.stats(),
            Lane::Device(loader) => loader.stats(),
        }
    }

    pub(crate) fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        match self {
            Lane::Host(loader) => loader.bad_samples(),
            Lane::Device(loader) => loader.bad_samples(),
        }
    }

    /// What happened since the last call and a person should hear of.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        match self {
            Lane::Host(loader) => loader.notices(),
            Lane::Device(loader) => loader.notices(),
        }
    }

    /// The device's side of the statistics: bytes on the device, bytes pinned, batches uploaded ahead and held.
    pub(crate) fn device(&self) -> Option<serde_json::Value> {
        let Lane::Device(loader) = self else { return None };
        let (memory, (ready, held)) = (loader.memory(), loader.batches());
        Some(serde_json::json!({
            "device": format!("cuda:{}", loader.ordinal()), "device_bytes": memory.device, "pinned_bytes": memory.pinned,
            "batches_ready": ready, "batches_held": held,
        }))
    }
}
