//! A pack from beginning to end, in an order that survives a kill at any point: plan file, each shard followed by its
//! index, list of rejected inputs, manifest; then the plan file is kept for the complete split.

mod archive_shards;
mod file_shards;
mod target;

pub(crate) use target::{Remaining, Target, complete};

use crate::commit::Directory;
use crate::place::{Place, StoreFolder};
use crate::plan::{Work, stoppable_plan};
use crate::progress::{Progress, Step, after};
use crate::record::optimize::Optimized;
use crate::shard_writer::Written;
use crate::split::files;
use crate::split::manifest_store;
use crate::split::plan_file::{PlanFile, Stage};
use crate::{Error, JpegLayout, OnError, Options, Plan, rejects};
use shardtool_format::manifest::{Shard, Split};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The result of a pack.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The split, as the manifest names it.
    pub split: Split,
    /// Number of rejected inputs.
    pub rejected: u64,
    /// The list of rejected inputs, if there are any.
    pub rejected_file: Option<PathBuf>,
    /// Bytes of the sources' files, rejected ones included.
    pub source_bytes: u64,
    /// Whether records have images.
    pub with_images: bool,
    /// Number of named classes.
    pub classes: u64,
    /// Number of shards that an interrupted run had finished.
    pub resumed_shards: u64,
    /// Whether the split was complete before; then this run wrote nothing.
    pub already_complete: bool,
    /// Statistics of transcoding JPEGs, if it was requested and shards were written. Excludes images of resumed shards.
    pub optimized: Option<Optimized>,
}

/// Packs a source into a split of a dataset. After a run was killed or stopped, the next call with the same source and
/// options continues it and produces the same bytes. If the split is complete, writes nothing and returns it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// use shardtool_pack::{Options, Shards, pack};
///
/// // A list without a column `path`: its rows are the samples. Folders of images are packed in the same way.
/// let list = folder.path().join("reviews.csv");
/// std::fs::write(&list, "text,label\nvery good,positive\ntoo long,negative\n")?;
/// let mut options = Options::new(&list, folder.path().join("dataset"));
/// options.shards = Shards::Count(1);
/// let summary = pack(&options, &())?;
/// assert_eq!((summary.split.records(), summary.classes), (2, 2));
/// assert!(pack(&options, &())?.already_complete);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Errors of options, source or destination, and [`Error::Io`]. No incomplete file is left under its final
/// name; finished shards are kept for the next run.
pub fn pack(options: &Options, progress: &dyn Progress) -> Result<Summary, Error> {
    let destination = shardtool_store::local_path(&options.destination);
    match shardtool_store::is_url(&destination) {
        true => pack_into::<StoreFolder>(options, progress),
        false if destination == options.destination => pack_into::<Directory>(options, progress),
        false => pack_into::<Directory>(&Options { destination, ..options.clone() }, progress),
    }
}

fn pack_into<P: Place>(options: &Options, progress: &dyn Progress) -> Result<Summary, Error> {
    let plan = stoppable_plan(options, progress)?;
    if let Some(split) = complete::<P>(options, &plan)? {
        return already_complete::<P>(options, &plan, split);
    }
    let target = Target::<P>::new(options)?;
    let rejected_file = target.files().path(&target.files().rejected());
    let (split, resumed, rejected, optimized) = match target.prepare(options, &plan, progress)? {
        Remaining::Nothing(split) => return already_complete::<P>(options, &plan, split),
        Remaining::PlanFile(split) => {
            let resumed = split.shards.len();
            (split, resumed, rejects::count(target.files().place(), &target.files().rejected())?, Optimized::default())
        }
        Remaining::Shards => {
            let all: Vec<_> = (0..plan.shard_count()).collect();
            let (Written { shards, optimized }, resumed) = write_shards(options, &plan, &target, &all, progress)?;
            let shards = shards.into_iter().map(|(_, shard)| shard).collect();
            let split = Split { name: options.split.clone(), shards };
            target.files().sync()?;
            let listed = rejects::to_json_lines(plan.rejected());
            let rejected = target.publish_rejected(&listed, plan.shard_count())?;
            after(progress, Step::Rejected)?;
            let manifest = manifest_store::of_schema(plan.schema());
            manifest_store::add_splits(target.files().place(), &manifest, std::slice::from_ref(&split))?;
            after(progress, Step::Manifest)?;
            (split, resumed, rejected, optimized)
        }
    };
    target.keep_plan(PlanFile::new(options, &plan, Stage::Packing), &split, progress)?;
    Ok(Summary {
        resumed_shards: resumed as u64,
        already_complete: false,
        optimized: (options.jpeg == JpegLayout::Optimize).then_some(optimized),
        ..summary(&plan, split, rejected, rejected_file)
    })
}

/// Returns the summary of a split that was complete before.
///
/// # Errors
/// [`Error::RejectedBefore`] under [`OnError::Fail`], [`Error::Io`].
fn already_complete<P: Place>(options: &Options, plan: &Plan, split: Split) -> Result<Summary, Error> {
    let name = files::rejected_file(&options.split);
    let path = options.destination.join(&name);
    let rejected = match P::open(&options.destination)? {
        Some(place) => rejects::count(&place, Path::new(&name))?,
        None => 0,
    };
    if rejected > 0 && options.on_error == OnError::Fail {
        return Err(Error::RejectedBefore { path });
    }
    Ok(summary(plan, split, rejected, path))
}

/// Returns the summary of a run that found the split complete.
fn summary(plan: &Plan, split: Split, rejected: u64, rejected_file: PathBuf) -> Summary {
    Summary {
        split,
        rejected,
        rejected_file: (rejected > 0).then_some(rejected_file),
        source_bytes: plan.source_bytes(),
        with_images: plan.schema().images,
        classes: plan.classes().len() as u64,
        resumed_shards: 0,
        already_complete: true,
        optimized: None,
    }
}

/// Writes those of the shards with these ascending numbers that are unfinished. Returns the shards in order, and how many
/// were finished before. In a pack in parts, those that another process finished meanwhile are not among them.
pub(crate) fn write_shards<P: Place>(
    options: &Options,
    plan: &Plan,
    target: &Target<P>,
    numbers: &[usize],
    progress: &dyn Progress,
) -> Result<(Written, usize), Error> {
    let counts: Vec<_> = numbers.iter().map(|shard| (*shard, plan.sample_count(*shard))).collect();
    match numbers.len() == plan.shard_count() {
        // Rejected archives are among these bytes.
        true => progress.total(plan.images(), plan.source_bytes()),
        false => progress.total(counts.iter().map(|(_, c)| c.images).sum(), counts.iter().map(|(_, c)| c.bytes).sum()),
    }
    let planned: Vec<_> = counts.iter().map(|(shard, count)| (*shard, count.images)).collect();
    let finished = target.finished(&planned, options.sha256)?;
    let mut shards: BTreeMap<usize, Shard> = BTreeMap::new();
    for ((shard, count), line) in counts.into_iter().zip(finished) {
        let Some(line) = line else { continue };
        if options.on_error == OnError::Fail {
            first_reject(target, shard)?;
        }
        progress.done(count.images, count.bytes);
        shards.insert(shard, line);
    }
    let resumed = shards.len();
    let left: Vec<_> = numbers.iter().copied().filter(|shard| !shards.contains_key(shard)).collect();
    let written = match &plan.work {
        Work::Files(plan) => file_shards::write(options, plan, target, progress, &left)?,
        Work::Archives(archives) => {
            let mut skipped = vec![true; plan.shard_count()];
            left.iter().for_each(|shard| skipped[*shard] = false);
            archive_shards::write(options, archives, target, progress, &skipped)?
        }
    };
    shards.extend(written.shards);
    Ok((Written { shards: shards.into_iter().collect(), optimized: written.optimized }, resumed))
}

/// Fails if a finished shard has rejected inputs, for `--on-error fail`.
fn first_reject<P: Place>(target: &Target<P>, shard: usize) -> Result<(), Error> {
    match target.rejects(shard)? {
        0 => Ok(()),
        _ => Err(Error::RejectedBefore { path: target.files().path(&target.files().shard_rejects(shard)) }),
    }
}
