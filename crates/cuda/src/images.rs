use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::Result;
use crate::loader::{DeviceLoader, Memory};
use crate::memory::PinnedAlloc;
use shardtool_load::{BadSample, Content, Loader, Monitor, Notice, Stats};
use shardtool_order::ResumeState;
use std::sync::Arc;

/// A dataset's loader whose batches end on a device: a [`Loader`] behind a [`DeviceLoader`], with epochs, states and
/// statistics as the caller sees them, whatever was uploaded ahead.
pub struct ImageLoader {
    inner: DeviceLoader<Loader>,
    monitor: Monitor,
    steps: u64,
    ordinal: usize,
    /// After the last batch that the caller got.
    state: ResumeState,
    /// What comes next begins an epoch, or goes on from a state.
    at_start: bool,
}

impl ImageLoader {
    /// A loader of `load`'s replica on `device`. Batches travel as u8 in pinned memory, whatever
    /// [`shardtool_load::Config::alloc`] and [`shardtool_load::Images::output`] say.
    ///
    /// # Errors
    /// Those of [`Loader::new`] and [`DeviceLoader::new`].
    pub fn new(device: &Device, config: Config, load: &shardtool_load::Config) -> Result<Self> {
        let mut group = Self::group(std::slice::from_ref(device), config, load, &[load.replica.rank()])?;
        Ok(group.remove(0))
    }

    /// Loaders for several replicas of one process, replica `ranks[i]` on `devices[i]`, fed by one set of workers
    /// ([`Loader::group`]). Limits of `config` are each one's own.
    ///
    /// # Errors
    /// As [`ImageLoader::new`]; [`shardtool_load::Error::Ranks`] where there are not as many devices as ranks.
    pub fn group(
        devices: &[Device],
        config: Config,
        load: &shardtool_load::Config,
        ranks: &[u32],
    ) -> Result<Vec<Self>> {
        let (Some(first), true) = (devices.first(), devices.len() == ranks.len()) else {
            return Err(shardtool_load::Error::Ranks { ranks: ranks.to_vec() }.into());
        };
        // Every context of the process sees it as pinned.
        let pinned = PinnedAlloc::new(first);
        let mut load = shardtool_load::Config { alloc: Arc::new(pinned.clone()), ..load.clone() };
        if let Content::Images(images) = &mut load.content {
            images.output = None;
        }
        let loaders = Loader::group(&load, ranks)?;
        let on_device = |(loader, device): (Loader, &Device)| {
            let (monitor, steps, state) = (loader.monitor(), loader.len(), loader.state());
            let inner = DeviceLoader::with_pinned(device, config.clone(), pinned.clone(), |_| Ok(loader))?;
            Ok(ImageLoader { inner, monitor, steps, ordinal: device.ordinal(), state, at_start: true })
        };
        loaders.into_iter().zip(devices).map(on_device).collect()
    }

    /// The next batch; `None` at an epoch's end, after which the next epoch begins. See [`DeviceLoader::next_batch`].
    ///
    /// # Errors
    /// As there.
    pub fn next_batch(&mut self) -> Result<Option<DeviceBatch>> {
        self.next_batch_unless(&mut || false)
    }

    /// The same; while it waits, `interrupted` is asked every tenth of a second whether to stop waiting.
    ///
    /// # Errors
    /// As [`DeviceLoader::next_batch_unless`].
    pub fn next_batch_unless(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<DeviceBatch>> {
        let batch = self.inner.next_batch_unless(interrupted)?;
        self.at_start = batch.is_none();
        self.state = batch.as_ref().and_then(|batch| batch.rows().state_after).unwrap_or(self.state);
        Ok(batch)
    }

    /// Goes to the beginning of an epoch. What was uploaded ahead is kept where it is that epoch's.
    ///
    /// # Errors
    /// [`Error::Panicked`](crate::Error::Panicked) when the host's loader was lost in a panic.
    pub fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        if self.at_start && (self.state.epoch, self.state.p) == (epoch, 0) {
            return Ok(());
        }
        self.change(|loader| {
            loader.start_epoch(epoch);
            Ok(())
        })
    }

    /// The state to resume from: counts what the caller got, not what was uploaded ahead.
    pub fn state(&self) -> ResumeState {
        self.state
    }

    /// Goes on from a state. See [`Loader::load_state`].
    ///
    /// # Errors
    /// As there, and as [`ImageLoader::start_epoch`].
    pub fn load_state(&mut self, state: &ResumeState) -> Result<()> {
        self.change(|loader| loader.load_state(state))
    }

    fn change(&mut self, change: impl FnOnce(&mut Loader) -> shardtool_load::Result<()>) -> Result<()> {
        let state = self.inner.with_feed(|loader| change(loader).map(|()| loader.state()))?;
        match state {
            Ok(state) => {
                (self.state, self.at_start) = (state, true);
                Ok(())
            }
            Err(error) => {
                // The upload thread has ended, and what was ahead is gone: the loader goes back to where the caller is.
                let back = self.state;
                self.inner.with_feed(|loader| loader.load_state(&back))??;
                Err(error.into())
            }
        }
    }

    /// Steps of an epoch, the same for every replica.
    #[expect(clippy::len_without_is_empty, reason = "an epoch without a step is refused")]
    pub fn len(&self) -> u64 {
        self.steps
    }

    /// What the host's side did so far, for all replicas that its workers serve; the caller that it speaks of is the
    /// upload thread.
    pub fn stats(&self) -> Stats {
        self.monitor.stats()
    }

    /// The bad samples of this run so far, each once.
    pub fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        self.monitor.bad_samples()
    }

    /// Takes what happened on the host's side since the last call and a person should hear of.
    pub fn notices(&self) -> Vec<Notice> {
        self.monitor.notices()
    }

    /// Bytes held now; pinned ones are those of all replicas of its group.
    pub fn memory(&self) -> Memory {
        self.inner.memory()
    }

    /// Ends the uploads that run ahead of the caller, and tells the most bytes that were held on the device at once.
    pub fn finish(self) -> u64 {
        self.inner.finish()
    }

    /// Batches that are uploaded ahead, and batches that the caller holds.
    pub fn batches(&self) -> (usize, usize) {
        self.inner.batches()
    }

    /// N of `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }
}
