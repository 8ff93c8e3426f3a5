use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::exchange::{Delivery, Exchange, NoBatch};
use crate::feed::Feed;
use crate::memory::{DeviceMemory, PinnedAlloc, Usage};
use crate::slot::SlotExchange;
use crate::upload::Uploader;
use shardtool_order::ResumeState;
use std::fmt;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Delivers batches on a device. Its upload thread takes batches from the feed, uploads and normalises them ahead of
/// the consumer, within the memory limit.
pub struct DeviceLoader<F: Feed> {
    exchange: Arc<SlotExchange>,
    config: Config,
    pinned: PinnedAlloc,
    device_usage: Arc<Usage>,
    uploads: Uploads<F>,
    delivered: Option<ResumeState>,
}

impl<F: Feed> fmt::Debug for DeviceLoader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceLoader").finish_non_exhaustive()
    }
}

/// The upload thread, or its state while it does not run.
enum Uploads<F: Feed> {
    Running(JoinHandle<Work<F>>),
    Stopped(Box<Work<F>>),
    /// The upload thread panicked, and its state is lost.
    Lost,
}

struct Work<F: Feed> {
    feed: F,
    uploader: Uploader<F::Batch>,
}

/// Bytes that a device loader holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// On the device: staging buffers and slots.
    pub device: u64,
    /// Pinned on the host: batches allocated by the loader's [`PinnedAlloc`], and the row data being uploaded.
    pub pinned: u64,
}

impl<F: Feed> DeviceLoader<F> {
    /// Creates a loader on `device`. `make` creates the feed; batches in memory of the allocator that it is given are
    /// copied asynchronously. Uploads start with the first [`DeviceLoader::next_batch`].
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Driver`], and those of `make`.
    pub fn new(device: &Device, config: Config, make: impl FnOnce(&PinnedAlloc) -> Result<F>) -> Result<Self> {
        Self::with_pinned(device, config, PinnedAlloc::new(device), make)
    }

    /// As [`DeviceLoader::new`], with the caller's allocator.
    ///
    /// # Errors
    /// As [`DeviceLoader::new`].
    pub fn with_pinned(
        device: &Device,
        config: Config,
        pinned: PinnedAlloc,
        make: impl FnOnce(&PinnedAlloc) -> Result<F>,
    ) -> Result<Self> {
        config.check()?;
        let exchange = Arc::new(Exchange::new(config.slots));
        let device_memory = DeviceMemory::new(device, config.device_memory_limit);
        let device_usage = device_memory.usage();
        let uploader = Uploader::new(device, config.clone(), pinned.clone(), device_memory, exchange.clone())?;
        let feed = make(&pinned)?;
        let uploads = Uploads::Stopped(Box::new(Work { feed, uploader }));
        Ok(DeviceLoader { exchange, config, pinned, device_usage, uploads, delivered: None })
    }

    /// Returns the next batch, or `None` at the end of an epoch, after which the next epoch begins. The host waits
    /// until a batch is loaded, not until it is uploaded: the streams that use the batch do that.
    ///
    /// # Errors
    /// [`Error::Exhausted`] if the consumer holds every batch that has memory; [`Error::DeviceMemory`];
    /// [`Error::Driver`]; and those of the feed. The next call continues if that is possible.
    pub fn next_batch(&mut self) -> Result<Option<DeviceBatch>> {
        self.next_batch_unless(&mut || false)
    }

    /// As [`DeviceLoader::next_batch`]; while it waits, calls `interrupted` every 100 ms, and stops waiting once that
    /// returns true.
    ///
    /// # Errors
    /// As [`DeviceLoader::next_batch`]; [`shardtool_load::Error::Interrupted`], after which the next call waits for the
    /// same batch.
    pub fn next_batch_unless(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<DeviceBatch>> {
        self.start()?;
        let no_batch = |reason| match reason {
            NoBatch::Exhausted { held, waited, why } => Error::Exhausted { held, waited, shortage: why },
            NoBatch::Interrupted => Error::Load(shardtool_load::Error::Interrupted),
        };
        match self.exchange.take(self.config.longest_wait(), interrupted).map_err(no_batch)? {
            Delivery::Batch(batch) => {
                self.delivered.clone_from(&batch.rows().state_after);
                Ok(Some(batch))
            }
            Delivery::EpochEnd => Ok(None),
            Delivery::Failed(error) => {
                self.stop();
                Err(error)
            }
        }
    }

    /// Returns the state to resume from after the last batch that [`DeviceLoader::next_batch`] returned, not counting
    /// those uploaded ahead; `None` before the first one, and for feeds without states.
    pub fn state(&self) -> Option<&ResumeState> {
        self.delivered.as_ref()
    }

    /// Stops uploading, drops the batches ahead of the consumer, and calls `change`, which may move the feed to another
    /// epoch or state.
    ///
    /// # Errors
    /// [`Error::Panicked`] if the upload thread panicked, and lost the feed.
    pub fn with_feed<T>(&mut self, change: impl FnOnce(&mut F) -> T) -> Result<T> {
        self.delivered = None;
        self.stop().map(|work| change(&mut work.feed)).ok_or(Error::Panicked)
    }

    /// Returns the bytes held now.
    pub fn memory(&self) -> MemoryUse {
        MemoryUse { device: self.device_usage.now(), pinned: self.pinned.bytes() }
    }

    /// Ends the upload thread, and returns the peak number of bytes held on the device.
    pub fn finish(mut self) -> u64 {
        self.stop();
        self.device_usage.peak()
    }

    /// Returns the number of batches that are uploaded ahead, and of those that the consumer holds.
    pub fn batches(&self) -> (usize, usize) {
        self.exchange.counts()
    }

    fn start(&mut self) -> Result<()> {
        self.uploads = match std::mem::replace(&mut self.uploads, Uploads::Lost) {
            Uploads::Stopped(work) => {
                let exchange = self.exchange.clone();
                let thread = Builder::new().name("shardtool-upload".into());
                let spawned = thread.spawn(move || work.run(&exchange));
                Uploads::Running(spawned.map_err(Error::Thread)?)
            }
            Uploads::Lost => return Err(Error::Panicked),
            running => running,
        };
        Ok(())
    }

    /// Ends the thread and returns its state, unless a panic lost it.
    fn stop(&mut self) -> Option<&mut Work<F>> {
        self.uploads = match std::mem::replace(&mut self.uploads, Uploads::Lost) {
            Uploads::Running(thread) => {
                self.exchange.stop();
                let ended = thread.join();
                drop(self.exchange.clear(true));
                ended.map_or(Uploads::Lost, |work| Uploads::Stopped(Box::new(work)))
            }
            other => other,
        };
        match &mut self.uploads {
            Uploads::Stopped(work) => Some(work),
            _ => None,
        }
    }
}

impl<F: Feed> Drop for DeviceLoader<F> {
    fn drop(&mut self) {
        self.stop();
        self.exchange.stop();
        drop(self.exchange.clear(false));
    }
}

impl<F: Feed> Work<F> {
    fn run(mut self, exchange: &SlotExchange) -> Self {
        let _reports = ReportPanic(exchange);
        loop {
            match self.step(exchange) {
                Ok(true) => {}
                Ok(false) => return self,
                Err(error) => {
                    exchange.fail(error);
                    return self;
                }
            }
        }
    }

    /// Uploads one batch, or ends an epoch; returns false if the consumer is gone.
    fn step(&mut self, exchange: &SlotExchange) -> Result<bool> {
        self.uploader.free_staging()?;
        if exchange.stopped() {
            return Ok(false);
        }
        match self.feed.next_batch()? {
            Some(batch) => match self.uploader.upload(batch)? {
                Some(batch) => Ok(exchange.publish(batch).is_ok()),
                None => Ok(false),
            },
            None => {
                exchange.end_epoch();
                self.uploader.end_epoch();
                Ok(true)
            }
        }
    }
}

/// Reports a panic of the upload thread to the consumer.
struct ReportPanic<'a>(&'a SlotExchange);

impl Drop for ReportPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Panicked);
        }
    }
}
