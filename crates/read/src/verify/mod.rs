//! Checks everything that can be checked about a dataset or bare TFRecord files, and lists each damage: framing and both
//! CRCs of every record, the index against the records, and whole files against the manifest. (Opening the dataset checks
//! the manifest itself.)

#[cfg(feature = "decode")]
mod array;
#[cfg(feature = "decode")]
mod image;
mod quick;
mod record_errors;
mod report;
mod rows;
mod shard;
mod virtual_frames;

pub use quick::{QuickReport, quick};
pub use report::{Finding, Report};

use crate::{Access, Dataset, Split};
use rayon::prelude::*;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options of [`verify()`].
#[derive(Default)]
#[non_exhaustive]
pub struct Options<'a> {
    /// How the files are read.
    pub access: Access,
    /// Whether every image and every array is decoded as well, within the default limits.
    #[cfg(feature = "decode")]
    pub decode: bool,
    /// Whether decoding finds a cut or damaged JPEG, or counts it apart.
    #[cfg(feature = "decode")]
    pub truncated: shardtool_decode::Truncated,
    /// Called with the numbers of records and bytes checked since the last call, from several threads.
    pub progress: Option<&'a Progress<'a>>,
    /// Memory in bytes for reading one shard of a store, between 1 MiB and 16 MiB; default: 16 MiB. As many shards are read
    /// at once as the rayon pool has threads.
    pub shard_bytes: Option<u64>,
    /// Cancellation flag, set by another thread. The report of a cancelled run is incomplete.
    pub stop: Option<&'a AtomicBool>,
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

impl Options<'_> {
    fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// A callback that takes the numbers of records and bytes checked since its last call.
pub type Progress<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// Verifies every shard of a dataset on all threads of the current rayon pool. Continues after damage; the report lists
/// all of it.
pub fn verify(dataset: &Dataset, options: &Options<'_>) -> Report {
    let shards: Vec<_> =
        dataset.splits().iter().flat_map(|s| (0..s.entry().shards.len()).map(move |n| (s, n))).collect();
    let left = shards.par_iter().filter(|_| !options.stopped());
    let reports = left.map(|(split, number)| shard::verify(split, *number, options));
    let mut report = reports.reduce(Report::default, Report::join);
    for view in dataset.view_names().filter_map(|name| dataset.view(name)) {
        for number in 0..view.entry().shards.len() {
            view.deleted_rows(number).err().into_iter().for_each(|error| report.add(error));
        }
    }
    report.sort();
    report
}

/// Verifies one shard of a split, as [`verify()`] does.
///
/// # Panics
/// If `number` is not below the number of shards.
pub fn verify_shard(split: &Split, number: usize, options: &Options<'_>) -> Report {
    let mut report = shard::verify(split, number, options);
    report.sort();
    report
}

/// Verifies shards of a split one after the other on this thread, as [`verify()`] does.
///
/// # Panics
/// If a number is not below the number of shards.
pub fn verify_shards(split: &Split, numbers: &[usize], options: &Options<'_>) -> Report {
    let reports = numbers.iter().map(|number| shard::verify(split, *number, options));
    let mut report = reports.fold(Report::default(), Report::join);
    report.sort();
    report
}
