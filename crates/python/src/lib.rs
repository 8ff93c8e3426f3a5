//! The native part of the Python module: conversions between Python and the Rust crates. The interface around them
//! (dataclasses, pickling, loaders of torch and jax) is in `python/shardtool`.
//!
//! | module | responsibility |
//! |---|---|
//! | `error` | converts errors of all crates to the exceptions of `shardtool.errors` |
//! | `spelling` | replaces command-line flags in messages by keyword arguments |
//! | `array` | exposes memory owned by Rust as numpy arrays, without a copy |
//! | `opening` | what a dataset is opened with |
//! | `dataset`, `split` | datasets; splits and shards |
//! | `record` | converts a record to a dict |
//! | `arrow` | records as the buffers of Arrow arrays |
//! | `columns` | columns of indexes as arrays |
//! | `json` | options as JSON, with errors that name the option |
//! | `keypoints` | what keypoints are, to and from Python |
//! | `config` | a loader's configuration, of JSON and what JSON cannot hold |
//! | `names` | the names of a batch's members, none of them twice |
//! | `classes`, `buckets` | classes of several splits; shapes of buckets |
//! | `function` | a Python function as a step of a loader |
//! | `transform` | applies steps to an image in memory |
//! | `device` | options of devices; arrays on a device |
//! | `native_loader` | the loader of one replica, on the host or on a device |
//! | `loader` | the loader: iteration, state, statistics |
//! | `batch` | converts a batch to a dict of arrays |
//! | `process` | objects that a forked child must not use; Ctrl-C |
//! | `progress` | progress of long calls |
//! | `change` | changes of a dataset |
//! | `pack`, `verify` | long calls, with progress and Ctrl-C |
//! | `writer` | writes samples of a program to a split |
//! | `task` | writes a split with the tasks of an engine |
//! | `command` | the command line in the wheel |
#![deny(unsafe_code)]

mod array;
mod arrow;
mod batch;
mod buckets;
mod change;
mod classes;
mod columns;
mod command;
mod config;
mod dataset;
mod device;
mod error;
mod function;
mod json;
mod keypoints;
mod loader;
mod names;
mod native_loader;
mod opening;
mod pack;
mod process;
mod progress;
mod record;
mod spelling;
mod split;
mod task;
mod transform;
mod verify;
mod writer;

use pyo3::prelude::*;

/// The native part of `shardtool`; private: import `shardtool` instead.
#[pymodule]
mod _shardtool {
    #[pymodule_export]
    use crate::array::Memory;
    #[pymodule_export]
    use crate::buckets::shapes_within;
    #[pymodule_export]
    use crate::change::{
        append, clone, columns_of_file, columns_of_values, compact, delete, drop_columns, gc, purge, remove_view,
        rollback, select, tag,
    };
    #[pymodule_export]
    use crate::classes::{class_names, labels, rarest_labels};
    #[pymodule_export]
    use crate::columns::Columns;
    #[pymodule_export]
    use crate::command::run;
    #[pymodule_export]
    use crate::config::launch;
    #[pymodule_export]
    use crate::dataset::{Dataset, image_html};
    #[pymodule_export]
    use crate::device::DeviceArray;
    #[pymodule_export]
    use crate::keypoints::{check_keypoints, flip_index};
    #[pymodule_export]
    use crate::loader::Loader;
    #[pymodule_export]
    use crate::pack::{index, pack, pack_part, source_kind, write_plans};
    #[pymodule_export]
    use crate::split::{Shard, Split};
    #[pymodule_export]
    use crate::task::{TaskWrite, TaskWriter, new_write_id};
    #[pymodule_export]
    use crate::transform::{apply_operations, preview};
    #[pymodule_export]
    use crate::verify::{verify, verify_shards};
    #[pymodule_export]
    use crate::writer::{Writer, commit};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Silences panic messages of image decoders, since an exception or a bad sample names the image. An environment variable that
    /// names no vector instructions is an error at once.
    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        shardtool_host::simd::check_simd()
            .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
        shardtool_decode::silence_decoder_panics();
        Ok(())
    }
}
