use crate::error::{Error, Result};
use shardtool_decode::Output;
use std::time::Duration;

/// How batches are kept on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// What pixels become.
    pub output: Output,
    /// Batches that the device has room for at most, 2 or more: what the caller holds, one being uploaded, the rest ready
    /// ahead of it. Their memory is taken one by one, as they are needed.
    pub slots: usize,
    /// Bytes of device memory that this loader may take, a hard limit; `None`: what the device has.
    pub device_memory_limit: Option<u64>,
    /// Bytes of device memory kept from one epoch to the next. `None`: all. With a number nothing is uploaded ahead of the
    /// next epoch, and the rest goes back to the device at each end, for whoever works between epochs.
    pub retain_bytes: Option<u64>,
    /// What to do when the caller asks for a batch while it holds all that there is room for.
    pub on_exhausted: OnExhausted,
}

/// What to do when the caller asks for a batch while it holds all that there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExhausted {
    /// Wait that long for one to come back (from another thread, or a framework that lets go late), then err.
    Block(Duration),
    /// Err at once.
    Error,
}

impl Default for Config {
    /// Room for four batches, no limit, everything kept, and half a minute of patience.
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
        Ok(())
    }

    pub(crate) fn patience(&self) -> Duration {
        match self.on_exhausted {
            OnExhausted::Block(patience) => patience,
            OnExhausted::Error => Duration::ZERO,
        }
    }
}
