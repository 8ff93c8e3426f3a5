use crate::error::{Error, Result};
use shardtool_decode::Output;
use std::time::Duration;

/// Options of a device loader.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Type, layout and normalisation of the images. Its pixel format is that of the images.
    pub output: Output,
    /// Delivers images as the host has them, u8 or u16 `[N, H, W, C]`, instead of as `output` says.
    pub raw: bool,
    /// Ragged columns that become arrays of rows of one length, with what follows the values of a row: in batches whose rows have
    /// a length ([`HostBatch::row_length`](crate::HostBatch::row_length)).
    pub padded: Vec<(String, f64)>,
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
            raw: false,
            padded: vec![],
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
        Ok(())
    }

    /// Returns how images are normalised; `None` if they are not.
    pub(crate) fn normalization(&self) -> Option<&Output> {
        Some(&self.output).filter(|_| !self.raw)
    }

    /// Returns how long to wait for a consumer that holds every batch.
    pub(crate) fn longest_wait(&self) -> Duration {
        match self.on_exhausted {
            OnExhausted::Block(time) => time,
            OnExhausted::Error => Duration::ZERO,
        }
    }
}
