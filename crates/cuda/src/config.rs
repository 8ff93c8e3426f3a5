use crate::error::{Error, Result};
use shardtool_decode::{Output, PixelFormat};
use std::time::Duration;

/// Options of a device loader.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Type, layout and normalisation of the images.
    pub output: Output,
    /// Largest number of batches that have memory on the device, at least 2: those that the consumer holds, one being
    /// uploaded, and those that are ready. Memory is allocated batch by batch, when it is needed.
    pub slots: usize,
    /// Limit in bytes of the device memory of this loader, never exceeded. `None`: all that is free.
    pub device_memory_limit: Option<u64>,
    /// Bytes of device memory that are kept from one epoch to the next. `None`: all of it. If given, the loader does
    /// not upload ahead of the next epoch, and frees the rest at the end of each epoch for other users of the device.
    pub retain_bytes: Option<u64>,
    /// What happens if the consumer requests a batch while it holds all that have memory.
    pub on_exhausted: OnExhausted,
}

/// What happens if the consumer requests a batch while it holds all that have memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExhausted {
    /// Wait this long for one of them to be dropped, by another thread or a framework that frees late; then return an
    /// error.
    Block(Duration),
    /// Return an error at once.
    Error,
}

impl Default for Config {
    /// Memory for four batches, no limit, all memory kept, and a wait of at most 30 s.
    fn default() -> Self {
        Config {
            output: Output::default(),
            slots: 4,
            device_memory_limit: None,
            retain_bytes: None,
            on_exhausted: OnExhausted::Block(Duration::from_secs(30)),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<()> {
        if self.slots < 2 {
            return Err(Error::Option { option: "slots", value: self.slots as f64, expected: "2 or more" });
        }
        if self.output.pixel_format() != PixelFormat::RGB8 {
            return Err(Error::OnHost { option: self.output.pixel_format().name() });
        }
        Ok(())
    }

    /// Returns how long to wait for a consumer that holds every batch.
    pub(crate) fn longest_wait(&self) -> Duration {
        match self.on_exhausted {
            OnExhausted::Block(time) => time,
            OnExhausted::Error => Duration::ZERO,
        }
    }
}
