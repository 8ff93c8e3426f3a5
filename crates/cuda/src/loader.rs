use crate::batch::DeviceBatch;
use crate::config::Config;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::exchange::{Delivery, Empty, Exchange};
use crate::feed::Feed;
use crate::memory::{Account, Held, PinnedAlloc};
use crate::ring::Ring;
use crate::slot::SlotExchange;
use shardtool_order::ResumeState;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Batches on a device. A thread of its own takes batches from the feed, uploads and normalises them ahead of the caller,
/// within the memory that was allowed.
pub struct DeviceLoader<F: Feed> {
    exchange: Arc<SlotExchange>,
    config: Config,
    pinned: PinnedAlloc,
    device_bytes: Arc<Held>,
    uploads: Uploads<F>,
    delivered: Option<ResumeState>,
}

/// The upload thread, or what it works with while it does not run.
enum Uploads<F: Feed> {
    Running(JoinHandle<Work<F>>),
    Resting(Box<Work<F>>),
    Lost,
}

struct Work<F: Feed> {
    feed: F,
    ring: Ring<F::Batch>,
}

/// Bytes that a device loader holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// On the device: stages and slots.
    pub device: u64,
    /// Pinned on the host: the feed's batches made by the loader's [`PinnedAlloc`], and what travels beside the pixels.
    pub pinned: u64,
}

impl<F: Feed> DeviceLoader<F> {
    /// A loader on `device`. `make` makes the feed; batches whose memory comes from the allocator it is given are copied
    /// without the host's waiting. Nothing is uploaded before the first [`DeviceLoader::next_batch`].
    ///
    /// # Errors
    /// [`Error::Option`], what `make` answers, and errors of the driver.
    pub fn new(device: &Device, config: Config, make: impl FnOnce(&PinnedAlloc) -> Result<F>) -> Result<Self> {
        Self::with_pinned(device, config, PinnedAlloc::new(device), make)
    }

    /// The same with an allocator of the caller's choice.
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
        let account = Account::new(device, config.device_memory_limit);
        let device_bytes = account.held();
        let ring = Ring::new(device, config.clone(), pinned.clone(), account, exchange.clone())?;
        let feed = make(&pinned)?;
        let uploads = Uploads::Resting(Box::new(Work { feed, ring }));
        Ok(DeviceLoader { exchange, config, pinned, device_bytes, uploads, delivered: None })
    }

    /// The next batch; `None` at an epoch's end, after which the next epoch begins. The host waits only while no batch was
    /// loaded yet; the upload itself is waited for by the streams that use the batch.
    ///
    /// # Errors
    /// [`Error::Held`] when the caller holds every batch that there is room for; [`Error::DeviceMemory`]; those of the feed
    /// and of the driver. The call after an error goes on where that can be done.
    pub fn next_batch(&mut self) -> Result<Option<DeviceBatch>> {
        self.next_batch_unless(&mut || false)
    }

    /// The same; while it waits, `interrupted` is asked every tenth of a second whether to stop waiting.
    ///
    /// # Errors
    /// As [`DeviceLoader::next_batch`]; [`shardtool_load::Error::Interrupted`], after which the next call waits for the
    /// same batch.
    pub fn next_batch_unless(&mut self, interrupted: &mut dyn FnMut() -> bool) -> Result<Option<DeviceBatch>> {
        self.start()?;
        let empty = |empty| match empty {
            Empty::Starved { held, waited, why } => Error::Held { held, waited, shortage: why },
            Empty::Interrupted => Error::Load(shardtool_load::Error::Interrupted),
        };
        match self.exchange.take(self.config.patience(), interrupted).map_err(empty)? {
            Delivery::Batch(batch) => {
                self.delivered.clone_from(&batch.rows().state_after);
                Ok(Some(batch))
            }
            Delivery::EpochEnd => Ok(None),
            Delivery::Failed(error) => {
                self.halt();
                Err(error)
            }
        }
    }

    /// The state to resume from after the last batch that [`DeviceLoader::next_batch`] gave, whatever was uploaded ahead of it;
    /// `None` before the first, and for feeds without states.
    pub fn state(&self) -> Option<&ResumeState> {
        self.delivered.as_ref()
    }

    /// Stops uploading, throws away what was ahead of the caller, and lets `change` set the feed somewhere else (to a
    /// state, an epoch).
    ///
    /// # Errors
    /// [`Error::Panicked`] when the feed was lost in a panic.
    pub fn with_feed<T>(&mut self, change: impl FnOnce(&mut F) -> T) -> Result<T> {
        self.delivered = None;
        self.halt().map(|work| change(&mut work.feed)).ok_or(Error::Panicked)
    }

    /// Bytes held now.
    pub fn memory(&self) -> Memory {
        Memory { device: self.device_bytes.now(), pinned: self.pinned.bytes() }
    }

    /// Ends the uploads that run ahead of the caller, and tells the most bytes that were held on the device at once.
    pub fn finish(mut self) -> u64 {
        self.halt();
        self.device_bytes.most()
    }

    /// Batches that are uploaded ahead, and batches that the caller holds.
    pub fn batches(&self) -> (usize, usize) {
        self.exchange.counts()
    }

    fn start(&mut self) -> Result<()> {
        self.uploads = match std::mem::replace(&mut self.uploads, Uploads::Lost) {
            Uploads::Resting(work) => {
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

    /// Ends the thread; what it worked with, unless that was lost in a panic.
    fn halt(&mut self) -> Option<&mut Work<F>> {
        self.uploads = match std::mem::replace(&mut self.uploads, Uploads::Lost) {
            Uploads::Running(thread) => {
                self.exchange.stop();
                let ended = thread.join();
                drop(self.exchange.clear(true));
                ended.map_or(Uploads::Lost, |work| Uploads::Resting(Box::new(work)))
            }
            other => other,
        };
        match &mut self.uploads {
            Uploads::Resting(work) => Some(work),
            _ => None,
        }
    }
}

impl<F: Feed> Drop for DeviceLoader<F> {
    fn drop(&mut self) {
        self.halt();
        self.exchange.stop();
        drop(self.exchange.clear(false));
    }
}

impl<F: Feed> Work<F> {
    fn run(mut self, exchange: &SlotExchange) -> Self {
        let _alarm = Alarm(exchange);
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

    /// One batch; false when the consumer went away.
    fn step(&mut self, exchange: &SlotExchange) -> Result<bool> {
        self.ring.make_way()?;
        if exchange.stopped() {
            return Ok(false);
        }
        match self.feed.next_batch()? {
            Some(batch) => match self.ring.upload(batch)? {
                Some(batch) => Ok(exchange.publish(batch).is_ok()),
                None => Ok(false),
            },
            None => {
                exchange.end_epoch();
                self.ring.rest();
                Ok(true)
            }
        }
    }
}

/// Wakes the consumer when the upload thread panics.
struct Alarm<'a>(&'a SlotExchange);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Panicked);
        }
    }
}
