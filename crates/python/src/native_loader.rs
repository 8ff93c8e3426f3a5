//! The loader of one replica, which delivers its batches in host memory or on a device.

use crate::batch::Delivered;
use shardtool_cuda::{Error, ImageLoader, Result};
use shardtool_load::{BadSample, Loader, Notice, Stats};
use shardtool_order::ResumeState;
use std::sync::Arc;

pub(crate) enum ReplicaLoader {
    Host(Loader),
    Device(Box<ImageLoader>),
}

impl ReplicaLoader {
    pub(crate) fn next(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<Delivered>> {
        match self {
            ReplicaLoader::Host(loader) => Ok(loader.next_batch_unless(interrupted)?.map(Delivered::Host)),
            ReplicaLoader::Device(loader) => {
                Ok(loader.next_batch_unless(interrupted)?.map(|batch| Delivered::Device(Box::new(batch))))
            }
        }
    }

    pub(crate) fn state(&self) -> ResumeState {
        match self {
            ReplicaLoader::Host(loader) => loader.state(),
            ReplicaLoader::Device(loader) => loader.state(),
        }
    }

    pub(crate) fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        match self {
            ReplicaLoader::Host(loader) => {
                loader.start_epoch(epoch);
                Ok(())
            }
            ReplicaLoader::Device(loader) => loader.start_epoch(epoch),
        }
    }

    pub(crate) fn load_state(&mut self, state: &ResumeState) -> Result<()> {
        match self {
            ReplicaLoader::Host(loader) => loader.load_state(state).map_err(Error::from),
            ReplicaLoader::Device(loader) => loader.load_state(state),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            ReplicaLoader::Host(loader) => loader.len(),
            ReplicaLoader::Device(loader) => loader.len(),
        }
    }

    /// Returns the statistics of all replicas that the same workers serve.
    pub(crate) fn stats(&self) -> Stats {
        match self {
            ReplicaLoader::Host(loader) => loader.stats(),
            ReplicaLoader::Device(loader) => loader.stats(),
        }
    }

    pub(crate) fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        match self {
            ReplicaLoader::Host(loader) => loader.bad_samples(),
            ReplicaLoader::Device(loader) => loader.bad_samples(),
        }
    }

    /// Returns the notices to the user since the last call.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        match self {
            ReplicaLoader::Host(loader) => loader.notices(),
            ReplicaLoader::Device(loader) => loader.notices(),
        }
    }

    /// Returns the device's statistics: bytes on the device, bytes pinned, batches uploaded ahead and held.
    pub(crate) fn device(&self) -> Option<serde_json::Value> {
        let ReplicaLoader::Device(loader) = self else { return None };
        let (memory, (ready, held)) = (loader.memory(), loader.batches());
        Some(serde_json::json!({
            "device": format!("cuda:{}", loader.ordinal()), "device_bytes": memory.device, "pinned_bytes": memory.pinned,
            "batches_ready": ready, "batches_held": held,
        }))
    }
}
