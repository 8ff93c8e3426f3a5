//! A pack from beginning to end, in an order that survives a kill at any point: plan file, each shard followed by its
//! index, list of rejected inputs, manifest; then the plan file is kept for the complete split.

mod archive_shards;
mod file_shards;
mod index_source;
mod same_content;
mod target;

pub use index_source::{IndexedAs, IndexedSource, index_source, indexed_as, source_kind};
pub(crate) use target::{Remaining, Target, complete};

use crate::commit::Directory;
use crate::error::{DestinationError, SourceError};
use crate::known_shards::KnownShards;
use crate::place::{Place, StoreFolder};
use crate::plan::{self, Work, stoppable_plans};
use crate::progress::{Progress, Step, after};
use crate::record::optimize::Optimized;
use crate::shard_writer::{self, Counts};
use crate::source::archive::SurveyedFile;
use crate::split::files;
use crate::split::manifest_store;
use crate::split::plan_file::{PlanFile, Stage};
use crate::virtual_source::VirtualSource;
use crate::{Error, JpegLayout, OnError, Options, Plan, purged_keys, rejects, source_times, wait};
use shardtool_format::manifest::{Shard, Split};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The result of a pack.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The split, as the manifest names it.
    pub split: Split,
    /// Number of samples in the source: those of the split, and the rejected ones.
    pub samples: u64,
    /// Number of rejected inputs.
    pub rejected: u64,
    /// The list of rejected inputs, if there are any.
    pub rejected_file: Option<PathBuf>,
    /// The folder, list or names of archives that became this split.
    pub inputs: Vec<String>,
    /// Files and folders of the source that no split takes.
    pub left_out: Vec<String>,
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
    /// Number of records whose image, or a frame of a clip, is cut or damaged, and was packed as [`Options::truncated`] says. Excludes
    /// those of resumed shards.
    pub truncated: u64,
    /// Number of records with at least one image that was converted to PNG, because its format is not stored: their own image, a frame
    /// of a clip, a mask or another file. Excludes those of resumed shards, and of shards that an index takes over from the one before.
    pub converted: u64,
    /// Number of records from whose images this run removed metadata, as [`Options::strip_metadata`] says. Excludes those of resumed shards.
    pub stripped: u64,
    /// Number of records whose image had samples of 16 bits, or alpha, and is stored as RGB of 8 bits, because it was resized or stored
    /// as pixels. Excludes those of resumed shards.
    pub reduced: u64,
}

impl Summary {
    /// Returns the summary of a split whose shards are files that existed before.
    pub fn of_shards(split: Split, classes: u64) -> Self {
        Summary {
            samples: split.records(),
            source_bytes: split.bytes(),
            with_images: true,
            classes,
            inputs: split.shards.iter().map(|shard| shard.file.clone()).collect(),
            split,
            rejected: 0,
            rejected_file: None,
            left_out: vec![],
            resumed_shards: 0,
            already_complete: false,
            optimized: None,
            truncated: 0,
            converted: 0,
            stripped: 0,
            reduced: 0,
        }
    }
}

/// Packs a source into the splits that its files or top folders are named for, else into one. All of them are published at
/// once, in byte order of their names, with class ids in common. After a run was killed or stopped, the next call with the same
/// source and options continues it.
///
/// # Errors
/// As [`pack()`], except for [`SourceError::SeveralSplits`].
pub fn pack_splits(options: &Options, progress: &dyn Progress) -> Result<Vec<Summary>, Error> {
    pack_some(options, progress, Ok)
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
    let one = |plans| Ok(vec![plan::only(plans, options, Plan::split)?]);
    plan::only(pack_some(options, progress, one)?, options, |summary| &summary.split.name)
}

/// Packs those of a source's splits that `choose` returns.
fn pack_some(
    options: &Options,
    progress: &dyn Progress,
    choose: impl Fn(Vec<Plan>) -> Result<Vec<Plan>, Error>,
) -> Result<Vec<Summary>, Error> {
    let destination = shardtool_store::local_path(&options.destination);
    let options = &Options { destination, ..options.clone() };
    let plans = choose(stoppable_plans(options, progress)?)?;
    match shardtool_store::is_url(&options.destination) {
        true => pack_into::<StoreFolder>(options, plans, progress),
        false => pack_into::<Directory>(options, plans, progress),
    }
}

/// A split whose shards are finished.
struct PackedSplit<P: Place> {
    target: Target<P>,
    /// Whether the manifest names it already.
    named: bool,
    resumed: usize,
    rejected: u64,
    counts: Counts,
}

fn pack_into<P: Place>(options: &Options, plans: Vec<Plan>, progress: &dyn Progress) -> Result<Vec<Summary>, Error> {
    let splits: Vec<_> = plans.into_iter().map(|plan| (plan.options(options), plan)).collect();
    let progress = &AllSplits::new(progress);
    refuse_purged::<P>(options, &splits)?;
    // Of each split, either the summary of a complete one, or what is to be published.
    let mut packed = vec![];
    for (options, plan) in &splits {
        packed.push(match write_split::<P>(options, plan, progress)? {
            Written::Complete(split) => (split.clone(), Some(already_complete::<P>(options, plan, split)?), None),
            Written::Shards(split, shards) => (split, None, Some(shards)),
        });
    }
    let unnamed = packed.iter().filter(|(.., shards)| shards.as_ref().is_some_and(|shards| !shards.named));
    let unnamed: Vec<_> = unnamed.map(|(split, ..)| split.clone()).collect();
    if let Some(target) = packed.iter().find_map(|(.., shards)| Some(&shards.as_ref()?.target))
        && !unnamed.is_empty()
    {
        let manifest = manifest_store::of_schema(splits[0].1.schema());
        manifest_store::add_splits(target.files().place(), &manifest, &unnamed)?;
        after(progress, Step::Manifest)?;
    }
    let mut summaries = vec![];
    for ((options, plan), (split, complete, shards)) in splits.iter().zip(packed) {
        let Some(PackedSplit { target, resumed, rejected, counts, .. }) = shards else {
            summaries.extend(complete);
            continue;
        };
        target.keep_plan(PlanFile::new(options, plan, Stage::Packing), &split, progress)?;
        let rejected_file = target.files().path(&target.files().rejected());
        summaries.push(Summary {
            resumed_shards: resumed as u64,
            already_complete: false,
            optimized: (options.jpeg == JpegLayout::Optimize).then_some(counts.optimized),
            truncated: counts.truncated,
            converted: counts.converted,
            stripped: counts.stripped,
            reduced: counts.reduced,
            ..summary(plan, split, rejected, rejected_file)
        });
    }
    Ok(summaries)
}

/// The shards of a split that no manifest names.
pub(crate) struct PackedShards<P: Place> {
    pub(crate) place: P,
    /// The split that these shards would be, under the name that their files have.
    pub(crate) split: Split,
    pub(crate) rejected: u64,
    target: Target<P>,
}

impl<P: Place> PackedShards<P> {
    /// Returns the list of rejected inputs, if there are any.
    pub(crate) fn rejected_file(&self) -> Option<PathBuf> {
        let files = self.target.files();
        (self.rejected > 0).then(|| files.path(&files.rejected()))
    }

    /// Removes all that was written, since no version will name it.
    pub(crate) fn discard(&self) {
        // What stays, `gc` removes.
        let _ = self.target.abandon();
    }

    /// Removes the plan: a version names the shards.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish(&self) -> Result<(), Error> {
        self.place.remove(&self.target.files().plan())
    }
}

/// Refuses purged keys that are known before the source is read.
fn refuse_purged<P: Place>(options: &Options, splits: &[(Options, Plan)]) -> Result<(), Error> {
    let Some(place) = P::open(&options.destination)? else { return Ok(()) };
    let Some(manifest) = place.manifest()? else { return Ok(()) };
    let purged = purged_keys::read(&place, &manifest)?;
    let keys = splits.iter().filter_map(|(_, plan)| plan.keys()).flatten().map(str::as_bytes);
    purged_keys::refuse_keys(&options.destination, purged.as_ref(), keys)
}

/// Packs a split, and does not add it to the manifest.
///
/// # Errors
/// As [`pack()`].
pub(crate) fn write_split_shards<P: Place>(
    options: &Options,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<PackedShards<P>, Error> {
    match write_split::<P>(options, plan, progress)? {
        Written::Shards(split, PackedSplit { target, rejected, .. }) => {
            Ok(PackedShards { place: target.files().place().clone(), split, rejected, target })
        }
        Written::Complete(split) => Err(Error::Destination(DestinationError::SplitExists {
            destination: options.destination.clone(),
            split: split.name,
        })),
    }
}

/// What [`write_split`] made or found.
enum Written<P: Place> {
    Complete(Split),
    Shards(Split, PackedSplit<P>),
}

/// Writes the shards of a split, and its list of rejected inputs.
///
/// # Errors
/// As [`pack_splits`]; [`SourceError::NothingAccepted`], which leaves nothing behind.
fn write_split<P: Place>(options: &Options, plan: &Plan, progress: &dyn Progress) -> Result<Written<P>, Error> {
    if let Some(split) = complete::<P>(options, plan, progress)? {
        target::remove_left_lock::<P>(options);
        return Ok(Written::Complete(split));
    }
    let target = wait::until_free(options, progress, || Target::<P>::new(options))?;
    // Before an old split is removed.
    let known = KnownShards::of(target.files(), options, plan)?;
    match target.prepare(options, plan, progress)? {
        Remaining::Nothing(split) => Ok(Written::Complete(split)),
        Remaining::PlanFile(split) => {
            let rejected = rejects::count(target.files().place(), &target.files().rejected())?;
            let (resumed, counts) = (split.shards.len(), Counts::default());
            Ok(Written::Shards(split, PackedSplit { target, named: true, resumed, rejected, counts }))
        }
        Remaining::Shards => {
            let known = known.finish(target.files())?;
            let all: Vec<_> = (0..plan.shard_count()).collect();
            let (shard_writer::Written { shards, counts }, resumed) =
                write_shards(options, plan, &target, &all, progress)?;
            let foreign = options.virtual_source.as_ref().map(|source| source.foreign.clone()).unwrap_or_default();
            let shards = shards.into_iter().map(|(_, shard)| Shard { foreign: foreign.clone(), ..shard }).collect();
            let split = Split { name: options.split().to_owned(), shards };
            target.files().sync()?;
            if let Some(source) = &options.virtual_source {
                let times = source_times(options, plan, source, &split.shards);
                target.files().place().publish(&target.files().times(), times.as_bytes())?;
            }
            let listed = rejects::to_json_lines(plan.rejected());
            let rejected = target.publish_rejected(&listed, plan.shard_count())?;
            if split.records() == 0 && !options.allow_empty {
                return Err(nothing_accepted(&options.source, &target, rejected)?);
            }
            after(progress, Step::Rejected)?;
            let resumed = resumed.saturating_sub(known);
            Ok(Written::Shards(split, PackedSplit { target, named: false, resumed, rejected, counts }))
        }
    }
}

/// Returns the times of the files that these shards describe.
fn source_times(options: &Options, plan: &Plan, source: &VirtualSource, shards: &[Shard]) -> String {
    match &plan.work {
        Work::Files(work) => {
            let images = work.listing.entries.iter().map(|entry| (work.listing.relative_path(entry), entry.version));
            source_times::text(images, shards, source_times::of_images(options), source.began)
        }
        Work::Archives(work) => {
            let named = work.archives.files.iter().filter_map(|SurveyedFile { file, crc, .. }| {
                let name = source.name(&file.path, file.size).ok()?;
                Some((source_times::archive_name(&name.name, *crc), file.version()))
            });
            let named: Vec<_> = named.collect();
            let conventions =
                source_times::of_archives(&work.archives, options, &PlanFile::new(options, plan, Stage::Packing));
            let files = named.iter().map(|(name, version)| (&**name, *version));
            source_times::text(files, shards, conventions, source.began)
        }
    }
}

/// Removes what was written of a split without records, and returns the error that says why none was accepted.
pub(crate) fn nothing_accepted<P: Place>(source: &Path, target: &Target<P>, rejected: u64) -> Result<Error, Error> {
    let list = target.files().place().read(&target.files().rejected())?.unwrap_or_default();
    target.abandon()?;
    let path = source.to_owned();
    Ok(Error::Source(match rejects::first(&list) {
        Some((input, reason)) => {
            SourceError::NothingAccepted { path, split: target.files().split().to_owned(), rejected, input, reason }
        }
        None => SourceError::Empty { path, rejected: None },
    }))
}

/// The progress of several splits as that of one run: the totals of all that have begun.
struct AllSplits<'a> {
    progress: &'a dyn Progress,
    total: Mutex<(u64, u64)>,
}

impl<'a> AllSplits<'a> {
    fn new(progress: &'a dyn Progress) -> Self {
        AllSplits { progress, total: Mutex::default() }
    }
}

impl Progress for AllSplits<'_> {
    fn total(&self, images: u64, bytes: u64) {
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        *total = (total.0 + images, total.1 + bytes);
        self.progress.total(total.0, total.1);
    }

    fn done(&self, images: u64, bytes: u64) {
        self.progress.done(images, bytes);
    }

    fn waiting(&self, waited: Duration, holder: &DestinationError) {
        self.progress.waiting(waited, holder);
    }

    fn after(&self, step: Step) -> ControlFlow<()> {
        self.progress.after(step)
    }

    fn stopped(&self) -> bool {
        self.progress.stopped()
    }
}

/// Returns the summary of a split that was complete before.
///
/// # Errors
/// [`Error::RejectedBefore`] under [`OnError::Fail`], [`Error::Io`].
fn already_complete<P: Place>(options: &Options, plan: &Plan, split: Split) -> Result<Summary, Error> {
    let name = files::rejected_file(options.split());
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
        samples: plan.samples(),
        inputs: plan.inputs().to_vec(),
        left_out: plan.left_out().to_vec(),
        rejected,
        rejected_file: (rejected > 0).then_some(rejected_file),
        source_bytes: plan.source_bytes(),
        with_images: plan.schema().images,
        classes: plan.classes().len() as u64,
        resumed_shards: 0,
        already_complete: true,
        optimized: None,
        truncated: 0,
        converted: 0,
        stripped: 0,
        reduced: 0,
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
) -> Result<(shard_writer::Written, usize), Error> {
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
    Ok((shard_writer::Written { shards: shards.into_iter().collect(), counts: written.counts }, resumed))
}

/// Fails if a finished shard has rejected inputs, for `--on-error fail`.
fn first_reject<P: Place>(target: &Target<P>, shard: usize) -> Result<(), Error> {
    match target.rejects(shard)? {
        0 => Ok(()),
        _ => Err(Error::RejectedBefore { path: target.files().path(&target.files().shard_rejects(shard)) }),
    }
}
