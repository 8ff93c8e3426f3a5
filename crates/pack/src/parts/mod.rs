//! A pack in parts, by any number of processes on any machines, which share only the destination: each writes some of the
//! shards of one plan, and a commit puts the manifest in place once all are there.
//!
//! | module | responsibility |
//! |---|---|
//! | `planned` | the file from which a commit knows the planned shards |
//! | `stored` | the listing of the source, so that parts need not list it |
//! | `committing` | checks all shards, and names them in the manifest |
//! | `status` | which shards of an unfinished pack are finished, and who is writing |
//! | `clean` | removes what killed processes left |

mod clean;
mod committing;
mod planned;
mod status;
mod stored;

pub use clean::{Cleaned, clean};
pub use committing::{CommitOptions, CommittedSplit, commit_split};
pub use status::{SplitStatus, Unfinished, status};

use crate::commit::Directory;
use crate::pack::{Remaining, Target, complete, write_shards};
use crate::place::{Place, StoreFolder};
use crate::plan::{self, stoppable_plan, stoppable_plans};
use crate::progress::Progress;
use crate::record::optimize::Optimized;
use crate::shard_writer::Written;
use crate::source;
use crate::split::files::unfinished_splits;
use crate::{Error, JpegLayout, Options, Plan};
use planned::Planned;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// One part of a pack: the shards whose number modulo `count` is `number`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    number: u32,
    count: NonZeroU32,
}

impl Part {
    /// Returns part `number` of `count`; `None` if the number is not below the count.
    pub fn new(number: u32, count: u32) -> Option<Self> {
        NonZeroU32::new(count).filter(|_| number < count).map(|count| Part { number, count })
    }

    /// Returns the shards of this part, of `shards` in total.
    fn shards(self, shards: usize) -> Vec<usize> {
        (self.number as usize..shards).step_by(self.count.get() as usize).collect()
    }
}

impl FromStr for Part {
    type Err = &'static str;

    /// Parses `I/N`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let numbers =
            text.split_once('/').and_then(|(number, count)| Some((number.parse().ok()?, count.parse().ok()?)));
        let part = numbers.and_then(|(number, count)| Part::new(number, count));
        part.ok_or("expected I/N, part I of N counted from 0, such as 0/8 to 7/8")
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// The result of packing a part.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PackedPart {
    /// Name of the split.
    pub split: String,
    /// Number of the plan's shards.
    pub planned_shards: u64,
    /// Number of this part's shards.
    pub shards: u64,
    /// Of these, those that an earlier attempt, or another one at the same time, had finished.
    pub resumed_shards: u64,
    /// Records of this part's shards, as far as this attempt saw them.
    pub records: u64,
    /// Bytes of these shards.
    pub bytes: u64,
    /// Inputs of this part's shards that were rejected.
    pub rejected: u64,
    /// Whether the split was committed already; then nothing was written.
    pub already_complete: bool,
    /// Statistics of transcoding JPEGs, if it was requested and shards were written.
    pub optimized: Option<Optimized>,
    /// Number of records whose image, or a frame of a clip, is cut or damaged, and was packed as [`Options::truncated`] says.
    pub truncated: u64,
    /// Number of records with at least one image that this attempt converted to PNG, because its format is not stored: their own image,
    /// a frame of a clip, a mask or another file.
    pub converted: u64,
    /// Number of records from whose images this attempt removed metadata, as [`Options::strip_metadata`] says.
    pub stripped: u64,
    /// Number of records whose image had samples of 16 bits, or alpha, and is stored by this attempt as RGB of 8 bits, because it was
    /// resized or stored as pixels.
    pub reduced: u64,
}

/// Writes the shards of one part of a pack. A part may be run again at any time, also on several machines at once: all write
/// the same bytes, and shards that exist are skipped. [`commit_split`] completes the split.
///
/// # Errors
/// As [`crate::pack()`]; [`DestinationError::OtherPlan`](crate::DestinationError) if other parts have another source or other
/// options.
pub fn pack_part(options: &Options, part: Part, progress: &dyn Progress) -> Result<PackedPart, Error> {
    refuse_force(options)?;
    match shardtool_store::local_path(&options.destination) {
        url if shardtool_store::is_url(&url) => pack_part_into::<StoreFolder>(options, part, progress),
        destination => pack_part_into::<Directory>(&Options { destination, ..options.clone() }, part, progress),
    }
}

fn pack_part_into<P: Place>(options: &Options, part: Part, progress: &dyn Progress) -> Result<PackedPart, Error> {
    let (options, plan) = match planned_before::<P>(options, part)? {
        Some(planned) => planned,
        None => {
            let split = match &options.split {
                Some(split) => split.clone(),
                None => plan::only(source::names_of_splits(options)?, options, String::as_str)?,
            };
            let options = Options { split: Some(split), ..options.clone() };
            let plan = stoppable_plan(&options, progress)?;
            (options, plan)
        }
    };
    let options = &options;
    let numbers = part.shards(plan.shard_count());
    let mut packed = PackedPart {
        split: options.split().to_owned(),
        planned_shards: plan.shard_count() as u64,
        shards: numbers.len() as u64,
        resumed_shards: numbers.len() as u64,
        records: 0,
        bytes: 0,
        rejected: 0,
        already_complete: true,
        optimized: None,
        truncated: 0,
        converted: 0,
        stripped: 0,
        reduced: 0,
    };
    if complete::<P>(options, &plan, progress)?.is_some() {
        return Ok(packed);
    }
    let target = Target::<P>::join(options)?;
    let planned = match plan.is_stored() {
        true => None,
        false => Some(Planned::of(&plan).to_json()),
    };
    let Some(target) = target.prepare_part(options, &plan, planned.as_deref(), progress)? else {
        return Ok(packed);
    };
    let (Written { shards, counts }, resumed) = write_shards(options, &plan, &target, &numbers, progress)?;
    target.files().sync()?;
    for (number, line) in &shards {
        packed.records += line.records;
        packed.bytes += line.bytes;
        packed.rejected += plan.sample_count(*number).images.saturating_sub(line.records);
    }
    let elsewhere = numbers.len() - shards.len();
    packed.resumed_shards = (resumed + elsewhere) as u64;
    packed.already_complete = false;
    packed.optimized = (options.jpeg == JpegLayout::Optimize).then_some(counts.optimized);
    (packed.truncated, packed.converted) = (counts.truncated, counts.converted);
    (packed.stripped, packed.reduced) = (counts.stripped, counts.reduced);
    Ok(packed)
}

/// Returns the plan of this source that another process has stored: of the given split, else of the only unfinished one.
fn planned_before<P: Place>(options: &Options, part: Part) -> Result<Option<(Options, Plan)>, Error> {
    let split = match &options.split {
        Some(split) => Some(split.clone()),
        None => {
            let mut unfinished = unfinished_splits(&options.destination);
            unfinished.pop().filter(|_| unfinished.is_empty())
        }
    };
    let Some(split) = split else { return Ok(None) };
    let options = Options { split: Some(split), ..options.clone() };
    Ok(stored::read::<P>(&options, part)?.map(|plan| (options, plan)))
}

/// Writes the plan of a pack in parts, with the listing of the source, which the parts then need not list, and no shard.
/// Returns the plan, and whether the split is complete already. With
/// [`Options::force`], removes the old split.
///
/// # Errors
/// As [`crate::pack()`].
pub fn write_plan(options: &Options, progress: &dyn Progress) -> Result<(Plan, bool), Error> {
    plan::only(write_plans(options, progress)?, options, |(plan, _)| plan.split())
}

/// As [`write_plan`], for each split of a source. Each split is packed in parts and committed separately.
///
/// # Errors
/// As [`crate::pack_splits()`].
pub fn write_plans(options: &Options, progress: &dyn Progress) -> Result<Vec<(Plan, bool)>, Error> {
    let destination = shardtool_store::local_path(&options.destination);
    let options = &Options { destination, ..options.clone() };
    let write = match shardtool_store::is_url(&options.destination) {
        true => write_plan_into::<StoreFolder>,
        false => write_plan_into::<Directory>,
    };
    let plans = stoppable_plans(options, progress)?.into_iter();
    plans.map(|plan| write(&plan.options(options), plan, progress)).collect()
}

fn write_plan_into<P: Place>(options: &Options, plan: Plan, progress: &dyn Progress) -> Result<(Plan, bool), Error> {
    if complete::<P>(options, &plan, progress)?.is_some() {
        return Ok((plan, true));
    }
    let planned = Planned::of(&plan).to_json();
    if options.force {
        let target = Target::<P>::new(options)?;
        if let Remaining::Nothing(_) = target.prepare(options, &plan, progress)? {
            return Ok((plan, true));
        }
    }
    let target = Target::<P>::join(options)?.prepare_part(options, &plan, Some(&planned), progress)?;
    if let Some(target) = &target {
        stored::write(target.files(), options, &plan, &planned)?;
    }
    Ok((plan, target.is_none()))
}

/// Parts do not remove the old split: each would remove what others wrote.
fn refuse_force(options: &Options) -> Result<(), Error> {
    match options.force {
        true => Err(Error::Option { option: "--force", expected: "it with --plan-only, before the first part runs" }),
        false => Ok(()),
    }
}
