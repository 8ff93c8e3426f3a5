//! Checks everything that can be checked about a dataset or bare TFRecord files, and lists each damage: framing and both
//! CRCs of every record, the index against the records, whole files against the manifest. (The manifest against itself
//! is checked when the dataset is opened.)

mod image;
mod report;
mod rows;
mod shard;

pub use report::{Damage, Report};

use crate::{Access, Dataset};
use rayon::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// What to verify, besides everything.
#[derive(Default)]
pub struct Options<'a> {
    /// How the files are reached.
    pub access: Access,
    /// Whether every image is decoded as well, within the default limits.
    pub decode: bool,
    /// Called as work gets done, from several threads.
    pub progress: Option<&'a Progress<'a>>,
    /// Set by somebody else to end the work soon. The report then is of no use: it lacks what was not looked at, and names
    /// what was looked at in part.
    pub stop: Option<&'a AtomicBool>,
}

impl Options<'_> {
    fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Told of records and bytes that are done.
pub type Progress<'a> = dyn Fn(u64, u64) + Sync + 'a;

/// Verifies every shard of a dataset on all cores of the current rayon pool. Never stops at damage: the report lists all.
pub fn verify(dataset: &Dataset, options: &Options<'_>) -> Report {
    let work: Vec<_> = dataset.splits().iter().flat_map(|s| (0..s.entry().shards.len()).map(move |n| (s, n))).collect();
    let left = work.par_iter().filter(|_| !options.stopped());
    let reports = left.map(|(split, number)| shard::verify(split, *number, options));
    let mut report = reports.reduce(Report::default, Report::join);
    report.damages.sort_by(|a, b| (&a.file, a.offset, a.name).cmp(&(&b.file, b.offset, b.name)));
    report
}
