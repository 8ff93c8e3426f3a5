//! Assigns samples to shards, from the shuffled listing and the sizes of the inputs, before any image is opened. A
//! rejected image therefore moves no other image, and an interrupted pack can be continued.

use crate::error::SourceError;
use crate::progress::Progress;
use crate::sample::SampleSchema;
use crate::source::archive::{Archives, SampleCount, SurveyedFile};
use crate::source::{self, Listing, NamedSource, Source};
use crate::{Error, OnError, Options, Rejection, Shards, place, sample};
use shardtool_format::manifest::FeatureType;
use shardtool_format::names;
use shardtool_order::{Permutation, pack_permutation};
use std::fmt;
use std::ops::Range;

/// The plan of a pack of one split.
pub struct Plan {
    pub(crate) work: Work,
    pub(crate) split: String,
    inputs: Vec<String>,
    left_out: Vec<String>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").finish_non_exhaustive()
    }
}

/// Which samples go to which shard.
pub(crate) enum Work {
    Files(FilePlan),
    Archives(ArchivePlan),
}

/// One image or row per entry, in any order.
pub(crate) struct FilePlan {
    pub(crate) listing: Listing,
    /// Maps positions to entries; `None` for the source's order.
    order: Option<Permutation>,
    /// The end of each shard, as a position.
    ends: Vec<usize>,
    pub(crate) totals: Totals,
}

/// What is known of a whole source of single files or rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) images: u64,
    pub(crate) bytes: u64,
    /// As [`Plan::source_crc`].
    pub(crate) crc: u32,
}

/// Archives, each with its own shards; only the order of archives is shuffled.
pub(crate) struct ArchivePlan {
    pub(crate) archives: Box<Archives>,
    pub(crate) shard_size: u64,
    order: Option<Permutation>,
    /// The end of each file's shards, in packing order.
    ends: Vec<usize>,
}

/// A shard of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedShard {
    /// Its file name.
    pub file: String,
    /// Number of images, rejected ones included.
    pub images: u64,
    /// Bytes of their files.
    pub source_bytes: u64,
}

/// Lists the source and plans the shards of each of its splits, in byte order of their names. Writes nothing and opens no
/// image.
///
/// # Errors
/// Those of options and sources; [`Error::Rejected`] under [`OnError::Fail`]. The destination is only checked by
/// [`crate::pack()`].
pub fn plan_splits(options: &Options) -> Result<Vec<Plan>, Error> {
    stoppable_plans(options, &())
}

/// As [`plan_splits()`], of a source that is one split.
///
/// # Errors
/// Those of [`plan_splits()`], and [`SourceError::SeveralSplits`].
pub fn plan(options: &Options) -> Result<Plan, Error> {
    stoppable_plan(options, &())
}

/// As [`plan()`], but `progress` can stop it.
///
/// # Errors
/// Those of [`plan()`], and [`Error::Stopped`].
pub(crate) fn stoppable_plan(options: &Options, progress: &dyn Progress) -> Result<Plan, Error> {
    only(stoppable_plans(options, progress)?, options, |plan| plan.split())
}

/// Returns the only one of several results, each of the split with this name.
///
/// # Errors
/// [`SourceError::SeveralSplits`].
pub(crate) fn only<T>(mut all: Vec<T>, options: &Options, split: impl Fn(&T) -> &str) -> Result<T, Error> {
    match all.len() {
        1 => Ok(all.swap_remove(0)),
        _ => Err(Error::Source(SourceError::SeveralSplits {
            path: options.source.clone(),
            splits: all.iter().map(|one| split(one).to_owned()).collect(),
        })),
    }
}

/// As [`plan_splits()`], but `progress` can stop it.
///
/// # Errors
/// Those of [`plan_splits()`], and [`Error::Stopped`].
pub(crate) fn stoppable_plans(options: &Options, progress: &dyn Progress) -> Result<Vec<Plan>, Error> {
    options.check()?;
    place::check_writable(&options.destination)?;
    let options = &Options { wide: source::known_types::wide(options)?, ..options.clone() };
    let mut splits = source::list_splits(options, progress)?;
    source::known_types::take(&mut splits, options)?;
    let plan = |NamedSource { split, source, inputs, left_out }| {
        names::check_split_name(&split)?;
        let work = match source {
            Source::Files(mut listing) => {
                if options.on_error == OnError::Fail && !listing.rejected.is_empty() {
                    return Err(Error::Rejected(Box::new(listing.rejected.swap_remove(0))));
                }
                let order = order(options, listing.entries.len());
                Work::Files(FilePlan::new(listing, order, options.shards)?)
            }
            Source::Archives(archives) => Plan::of_archives(archives, options),
        };
        Ok(Plan { work, split, inputs, left_out })
    };
    splits.into_iter().map(plan).collect()
}

fn order(options: &Options, inputs: usize) -> Option<Permutation> {
    options.seed.map(|seed| pack_permutation(seed, inputs as u64).expect("fewer than 2^63 inputs"))
}

impl FilePlan {
    fn new(listing: Listing, order: Option<Permutation>, shards: Shards) -> Result<Self, Error> {
        let (count, total) = (listing.entries.len(), listing.bytes());
        let shards = match shards {
            Shards::Count(count) => count,
            Shards::Size(size) => total.div_ceil(size).max(1),
        };
        if shards > 1_000_000 {
            return Err(Error::Option { option: "shard size", expected: "one that makes at most 1,000,000 shards" });
        }
        let totals = Totals { images: count as u64, bytes: total, crc: listing.crc() };
        let mut plan = FilePlan { listing, order, ends: vec![0; shards as usize], totals };
        // An entry that begins at byte b of all sources in packing order belongs to shard ⌊b · shards ÷ total⌋.
        let mut begin = 0u64;
        for position in 0..count {
            let shard = u128::from(begin) * u128::from(shards) / u128::from(total.max(1));
            plan.ends[(shard as usize).min(shards as usize - 1)] = position + 1;
            begin += plan.listing.entries[plan.entry(position)].bytes();
        }
        let mut end = 0;
        for shard_end in &mut plan.ends {
            end = end.max(*shard_end);
            *shard_end = end;
        }
        Ok(plan)
    }

    /// Makes the plan of some of the shards. `listing` has their entries, in packing order; `ends` are those of all shards,
    /// where the others have no entries.
    pub(crate) fn of_part(listing: Listing, ends: Vec<usize>, totals: Totals) -> Self {
        FilePlan { listing, order: None, ends, totals }
    }

    /// Returns the entry at a position of the packing order.
    pub(crate) fn entry(&self, position: usize) -> usize {
        at(&self.order, position)
    }

    /// Returns the positions of a shard.
    pub(crate) fn positions(&self, shard: usize) -> Range<usize> {
        between(&self.ends, shard)
    }
}

impl ArchivePlan {
    fn new(archives: Box<Archives>, order: Option<Permutation>, shards: Shards) -> Self {
        let shard_size = match shards {
            Shards::Size(size) => size,
            Shards::Count(_) => unreachable!("archives are listed for a size of shards"),
        };
        let mut end = 0;
        let ends = (0..archives.files.len()).map(|position| {
            end += archives.files[at(&order, position)].shards.len();
            end
        });
        let ends = ends.collect();
        ArchivePlan { archives, shard_size, order, ends }
    }

    /// Returns the file at a position of the packing order.
    pub(crate) fn file_at(&self, position: usize) -> &SurveyedFile {
        &self.archives.files[at(&self.order, position)]
    }

    /// Returns the shards of the file at a position.
    pub(crate) fn shards_at(&self, position: usize) -> Range<usize> {
        between(&self.ends, position)
    }

    /// Returns the number of samples of a shard, rejected ones included, and their bytes.
    pub(crate) fn sample_count(&self, shard: usize) -> SampleCount {
        let position = self.ends.partition_point(|end| *end <= shard);
        self.file_at(position).shards[shard - self.shards_at(position).start]
    }
}

/// Returns the index at a position of the packing order.
fn at(order: &Option<Permutation>, position: usize) -> usize {
    order.as_ref().map_or(position, |order| order.forward(position as u64) as usize)
}

fn between(ends: &[usize], i: usize) -> Range<usize> {
    let start = if i == 0 { 0 } else { ends[i - 1] };
    start..ends[i]
}

impl FilePlan {
    /// Returns the number of shards.
    pub(crate) fn shards(&self) -> usize {
        self.ends.len()
    }
}

impl Plan {
    /// Returns whether single files or rows were listed by another process, and only those of some shards are known.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(&self.work, Work::Files(plan) if plan.listing.stored)
    }

    /// Returns whether labels of the source are ids that refer to the source's list of classes.
    pub(crate) fn has_class_ids(&self) -> bool {
        matches!(self.work, Work::Archives(_))
    }

    /// Plans the shards of surveyed archives.
    pub(crate) fn of_archives(archives: Box<Archives>, options: &Options) -> Work {
        let order = order(options, archives.files.len());
        Work::Archives(ArchivePlan::new(archives, order, options.shards))
    }

    /// Makes a plan of what another process listed for a split.
    pub(crate) fn of_stored(work: Work, split: &str) -> Self {
        Plan { work, split: split.to_owned(), inputs: vec![], left_out: vec![] }
    }

    /// Returns the options of this split.
    pub(crate) fn options(&self, options: &Options) -> Options {
        Options { split: Some(self.split.clone()), ..options.clone() }
    }

    /// Returns the name of the split.
    pub fn split(&self) -> &str {
        &self.split
    }

    /// Returns the folder, list or names of archives that become this split.
    pub fn inputs(&self) -> &[String] {
        &self.inputs
    }

    /// Returns texts about the files and folders of the source that no split takes: files of other splits, names that systems write, empty
    /// folders.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    pub(crate) fn schema(&self) -> &SampleSchema {
        match &self.work {
            Work::Files(plan) => &plan.listing.schema,
            Work::Archives(plan) => &plan.archives.schema,
        }
    }

    /// Returns the keys of the samples; `None` if they are known when an archive is read.
    pub(crate) fn keys(&self) -> Option<impl Iterator<Item = &str>> {
        match &self.work {
            Work::Files(plan) => Some(plan.listing.entries.iter().map(|entry| &*entry.key)),
            Work::Archives(_) => None,
        }
    }

    pub(crate) fn shard_count(&self) -> usize {
        match &self.work {
            Work::Files(plan) => plan.ends.len(),
            Work::Archives(plan) => plan.ends.last().copied().unwrap_or(0),
        }
    }

    /// Returns the samples of a shard, and their bytes.
    pub(crate) fn sample_count(&self, shard: usize) -> SampleCount {
        match &self.work {
            Work::Files(plan) => {
                let positions = plan.positions(shard);
                let bytes = |position| plan.listing.entries[plan.entry(position)].bytes();
                SampleCount { images: positions.len() as u64, bytes: positions.map(bytes).sum() }
            }
            Work::Archives(plan) => plan.sample_count(shard),
        }
    }

    /// Returns the number of images to pack.
    pub fn images(&self) -> u64 {
        match &self.work {
            Work::Files(plan) => plan.totals.images,
            Work::Archives(plan) => plan.archives.files.iter().flat_map(|file| &file.shards).map(|s| s.images).sum(),
        }
    }

    /// Returns the number of samples in the source: the images to pack, and the rejected inputs.
    pub fn samples(&self) -> u64 {
        self.images() + self.rejected().len() as u64
    }

    /// Returns the bytes of the source's files.
    pub fn source_bytes(&self) -> u64 {
        match &self.work {
            Work::Files(plan) => plan.totals.bytes,
            Work::Archives(plan) => plan.archives.files.iter().map(|file| file.file.size).sum(),
        }
    }

    /// Returns the class names by id; empty if there are none.
    pub fn classes(&self) -> &[String] {
        &self.schema().classes
    }

    /// Returns the features of every record, in byte order of their names.
    pub fn features(&self) -> Vec<FeatureType> {
        sample::features(self.schema())
    }

    /// Returns the inputs that were rejected without opening images.
    pub fn rejected(&self) -> &[Rejection] {
        match &self.work {
            Work::Files(plan) => &plan.listing.rejected,
            Work::Archives(_) => &[],
        }
    }

    /// Returns a CRC32C over everything that determines the packed bytes, so that a resumed pack can detect a changed
    /// source.
    pub(crate) fn source_crc(&self) -> u32 {
        match &self.work {
            Work::Files(plan) => plan.totals.crc,
            Work::Archives(plan) => plan.archives.crc(),
        }
    }

    /// Returns the shards.
    pub fn shards(&self) -> impl Iterator<Item = PlannedShard> {
        (0..self.shard_count()).map(move |shard| {
            let SampleCount { images, bytes } = self.sample_count(shard);
            PlannedShard { file: names::shard_file(&self.split, shard), images, source_bytes: bytes }
        })
    }
}
