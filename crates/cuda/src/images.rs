use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::loader::{DeviceLoader, MemoryUse};
use crate::memory::PinnedAlloc;
use shardtool_decode::PixelFormat;
use shardtool_load::{BadSample, Field, Loader, Monitor, Notice, PixelDtype, Stats};
use shardtool_order::ResumeState;
use std::sync::Arc;

/// A dataset's loader that delivers its batches on a device: a [`Loader`] behind a [`DeviceLoader`]. Epochs, states and
/// statistics count the batches that the consumer received, not those uploaded ahead.
#[derive(Debug)]
pub struct ImageLoader {
    inner: DeviceLoader<Loader>,
    monitor: Monitor,
    steps: u64,
    ordinal: usize,
    /// After the last batch that the consumer received.
    state: ResumeState,
    /// The next batch is the first of an epoch, or the first after a state was loaded.
    at_start: bool,
}

impl ImageLoader {
    /// Creates a loader of `load`'s replica on `device`. Batches are copied from pinned memory, regardless of
    /// [`shardtool_load::Config::alloc`]. RGB images of 8 bits are copied as u8 and normalised on the device; if rows are mixed
    /// ([`shardtool_load::Config::batch_transform`]), the device does it, with the values that the host's u8 batches have. Grey and
    /// 16-bit images are mixed and normalised by the workers, with equal values. Both are as [`shardtool_load::Pixels`] says,
    /// regardless of [`Config::output`] and [`Config::raw`]: float32, NCHW, if it says nothing.
    ///
    /// # Errors
    /// Those of [`Loader::new`] and [`DeviceLoader::new`]; [`Error::Records`].
    pub fn new(device: &Device, config: Config, load: &shardtool_load::Config) -> Result<Self> {
        let mut group = Self::group(std::slice::from_ref(device), config, load, &[load.replica.rank()])?;
        Ok(group.remove(0))
    }

    /// Creates loaders for several replicas of one process, replica `ranks[i]` on `devices[i]`, with one set of workers
    /// ([`Loader::group`]). Limits of `config` apply to each of them.
    ///
    /// # Errors
    /// As [`ImageLoader::new`]; [`shardtool_load::Error::Ranks`] if the number of devices and of ranks differ.
    pub fn group(
        devices: &[Device],
        config: Config,
        load: &shardtool_load::Config,
        ranks: &[u32],
    ) -> Result<Vec<Self>> {
        let (Some(first), true) = (devices.first(), devices.len() == ranks.len()) else {
            return Err(shardtool_load::Error::Ranks { ranks: ranks.to_vec() }.into());
        };
        // Portable pinned memory: it is pinned for the contexts of all devices.
        let pinned = PinnedAlloc::new(first);
        let mut load = load.clone();
        load.alloc = Arc::new(pinned.clone());
        let mut config = config;
        if load.fields.iter().any(|field| matches!(field, Field::Record)) {
            return Err(Error::Records);
        }
        if let Some(pixels) = load.pixels_mut() {
            config.raw = pixels.dtype == Some(PixelDtype::Uint16);
            config.output = pixels.normalization().map_err(shardtool_load::Error::from)?;
            let on_device = !config.raw && pixels.format() == PixelFormat::RGB8;
            if !config.raw && pixels.dtype.is_none() {
                pixels.dtype = Some(PixelDtype::Float32);
            }
            load.defer_pixels = on_device;
        }
        let loaders = Loader::group(&load, ranks)?;
        let on_device = |(loader, device): (Loader, &Device)| {
            let (monitor, steps, state) = (loader.monitor(), loader.len(), loader.state());
            let inner = DeviceLoader::with_pinned(device, config.clone(), pinned.clone(), |_| Ok(loader))?;
            Ok(ImageLoader { inner, monitor, steps, ordinal: device.ordinal(), state, at_start: true })
        };
        loaders.into_iter().zip(devices).map(on_device).collect()
    }

    /// Returns the next batch, or `None` at the end of an epoch, after which the next epoch begins. See
    /// [`DeviceLoader::next_batch`].
    ///
    /// # Errors
    /// As [`DeviceLoader::next_batch`].
    pub fn next_batch(&mut self) -> Result<Option<DeviceBatch>> {
        self.next_batch_unless(&mut || false)
    }

    /// As [`ImageLoader::next_batch`]; while it waits, calls `interrupted` every 100 ms, and stops waiting once that
    /// returns true.
    ///
    /// # Errors
    /// As [`DeviceLoader::next_batch_unless`].
    pub fn next_batch_unless(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<DeviceBatch>> {
        let batch = self.inner.next_batch_unless(interrupted)?;
        self.at_start = batch.is_none();
        self.state = batch.as_ref().and_then(|batch| batch.rows().state_after).unwrap_or(self.state);
        Ok(batch)
    }

    /// Moves to the beginning of an epoch. Batches uploaded ahead are kept if they belong to that epoch's beginning.
    ///
    /// # Errors
    /// [`Error::Panicked`](crate::Error::Panicked) if the upload thread panicked, and lost the host's loader.
    pub fn start_epoch(&mut self, epoch: u64) -> Result<()> {
        if self.at_start && (self.state.epoch, self.state.p) == (epoch, 0) {
            return Ok(());
        }
        self.change(|loader| {
            loader.start_epoch(epoch);
            Ok(())
        })
    }

    /// Returns the state to resume from. It counts the batches that the consumer received, not those uploaded ahead.
    pub fn state(&self) -> ResumeState {
        self.state
    }

    /// Resumes from a state. See [`Loader::load_state`].
    ///
    /// # Errors
    /// As [`Loader::load_state`] and [`ImageLoader::start_epoch`].
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
                // The upload thread has ended and the batches ahead are dropped: the loader returns to the consumer's
                // state.
                let back = self.state;
                self.inner.with_feed(|loader| loader.load_state(&back))??;
                Err(error.into())
            }
        }
    }

    /// Returns the number of steps of an epoch, the same for every replica.
    #[expect(clippy::len_without_is_empty, reason = "a loader whose epoch has no step cannot be created")]
    pub fn len(&self) -> u64 {
        self.steps
    }

    /// Returns the statistics of the host loader, for all replicas that its workers serve. Its consumer is the upload
    /// thread.
    pub fn stats(&self) -> Stats {
        self.monitor.stats()
    }

    /// Returns the bad samples of this run so far, each once.
    pub fn bad_samples(&self) -> Vec<Arc<BadSample>> {
        self.monitor.bad_samples()
    }

    /// Returns and removes the host loader's notices since the last call.
    pub fn notices(&self) -> Vec<Notice> {
        self.monitor.notices()
    }

    /// Returns the bytes held now; pinned bytes are those of all replicas of its group.
    pub fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }

    /// Ends the upload thread, and returns the peak number of bytes held on the device.
    pub fn finish(self) -> u64 {
        self.inner.finish()
    }

    /// Returns the number of batches that are uploaded ahead, and of those that the consumer holds.
    pub fn batches(&self) -> (usize, usize) {
        self.inner.batches()
    }

    /// Returns the device number, the N of `cuda:N`.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }
}
