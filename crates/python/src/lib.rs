//! Beside the command line at the end of the data's way: the Python module. Only conversions between Python and the Rust
//! crates; what users see around them (configuration as dataclasses, pickling, torch and jax) is in `python/shardtool`.
//!
//! | module | what it converts |
//! |---|---|
//! | `error` | errors of all crates to the exceptions of `shardtool.errors` |
//! | `spelling` | options in messages, as Python spells them |
//! | `array` | memory of ours to numpy arrays, without a copy |
//! | `dataset` | datasets, splits, shards |
//! | `record` | a record to a dict |
//! | `columns` | columns of indexes to arrays |
//! | `config` | keyword arguments to a loader's configuration |
//! | `function` | a Python function to a step of a loader |
//! | `device` | options of devices; arrays that lie on one |
//! | `lane` | one replica's batches, in host memory or on a device |
//! | `loader` | the loader: iteration, state, statistics |
//! | `batch` | a batch to a dict of arrays |
//! | `process` | what a forked child must leave alone; Ctrl-C |
//! | `pack`, `verify` | the two long calls, with progress |
//! | `writer` | samples of a program to a split |
//! | `command` | the command line inside the wheel |
#![deny(unsafe_code)]

mod array;
mod batch;
mod columns;
mod command;
mod config;
mod dataset;
mod device;
mod error;
mod function;
mod lane;
mod loader;
mod pack;
mod process;
mod progress;
mod record;
mod spelling;
mod verify;
mod writer;

use pyo3::prelude::*;

/// What `shardtool` is made of; private: import `shardtool` instead.
#[pymodule]
mod _shardtool {
    #[pymodule_export]
    use crate::array::Memory;
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::command::run;
    #[pymodule_export]
    use crate::config::launch;
    #[pymodule_export]
    use crate::dataset::{Dataset, Shard, Split};
    #[pymodule_export]
    use crate::device::DeviceArray;
    #[pymodule_export]
    use crate::loader::Loader;
    #[pymodule_export]
    use crate::pack::pack;
    #[pymodule_export]
    use crate::verify::verify;
    #[pymodule_export]
    use crate::writer::{Writer, commit};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Silences the panic message of image decoders: the exception or the bad sample that names the image is enough.
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        shardtool_decode::silence_decoder_panics();
        Ok(())
    }
}
