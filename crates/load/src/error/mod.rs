//! Errors of a loader.
//!
//! | module | contents |
//! |---|---|
//! | this one | why a loader could not be created, or stopped |
//! | `bad_sample` | samples that could not be read or decoded |
//! | `array_problem`, `class_difference`, `stage_problem` | what is wrong with the configuration of arrays; classes that differ; stages that cannot be used |

mod array_problem;
mod bad_sample;
mod class_difference;
mod stage_problem;

pub use array_problem::ArrayProblem;
pub use bad_sample::{BadSample, SampleError};
pub use class_difference::ClassDifference;
pub use stage_problem::StageProblem;

use crate::budget::{MemoryPlan, Usage};
use crate::options::InvalidOptions;
use crate::units::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Result of loading.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a loader could not be created, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The dataset could not be opened or read, for a reason that is not a bad sample.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// Invalid order, source, replicas or resume state.
    #[error(transparent)]
    Order(#[from] shardtool_order::Error),
    /// No split was given.
    #[error("no split given: expected at least one")]
    NoSplits,
    /// The source covers a different number of samples than the splits have.
    #[error("the source covers {source_len} samples but the splits have {records}; rebuild it for these splits")]
    SourceLength {
        /// Samples that the source covers.
        source_len: u64,
        /// Records of the splits.
        records: u64,
    },
    /// Stages that cannot be used.
    #[error(transparent)]
    Stages(#[from] StageProblem),
    /// The ranks of a group are empty or repeat one.
    #[error("invalid ranks {ranks:?} of a group: expected at least one, without repeats")]
    Ranks {
        /// As given.
        ranks: Vec<u32>,
    },
    /// Options that contradict each other, whatever the dataset.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// A number of the configuration that must not be zero.
    #[error("`{option}` is 0: expected at least 1")]
    Zero {
        /// The option.
        option: &'static str,
    },
    /// A split has no such feature.
    #[error("{split} has no feature `{feature}`; it has: {}", known.join(", "))]
    NoFeature {
        /// The split, and its dataset.
        split: String,
        /// As requested.
        feature: String,
        /// The features of the dataset.
        known: Vec<String>,
    },
    /// A feature has different types in two splits.
    #[error(
        "feature `{feature}` is {} in {}, and {} in {}: leave it out of the columns, or pack the splits with one type",
        first.1, first.0, second.1, second.0
    )]
    Types {
        /// The feature.
        feature: String,
        /// A split, and the type there.
        first: (String, &'static str),
        /// Another split, and the type there.
        second: (String, &'static str),
    },
    /// One split has a label and another has none, or another feature holds it.
    #[error(
        "{} has {}, and {} has {}: load them with separate loaders, or pack them with labels of one name",
        first.0, label_feature(first.1.as_deref()), second.0, label_feature(second.1.as_deref())
    )]
    Labels {
        /// A split, and its label.
        first: (String, Option<String>),
        /// Another split, and its label.
        second: (String, Option<String>),
    },
    /// A split has no label.
    #[error("{split} has no label in its index")]
    NoLabel {
        /// The split, and its dataset.
        split: String,
    },
    /// The classes of two splits differ.
    #[error("{difference}")]
    Classes {
        /// The first difference.
        difference: ClassDifference,
    },
    /// A class of a split is not among the given ones.
    #[error("class {class:?} of {split} is not among the names in `classes`: add it there")]
    UnknownClass {
        /// The class.
        class: String,
        /// The split, and its dataset.
        split: String,
    },
    /// A column belongs to the objects, too.
    #[error(
        "`{feature}` belongs to the objects, which deliver it: leave the column out, or the feature out of `Objects`"
    )]
    TwoColumns {
        /// The feature.
        feature: String,
    },
    /// Some splits have ids of the classes of objects, others names.
    #[error(
        "{ids} has ids of the classes of objects, and {names} only their names: write both with ids, or load them apart"
    )]
    ObjectClasses {
        /// A split with ids.
        ids: String,
        /// A split with names.
        names: String,
    },
    /// Names of classes are given for objects that have ids.
    #[error(
        "`classes` of the objects is for names in `image/object/class/text`; their ids are mapped by `classes` of the loader"
    )]
    ObjectNames,
    /// Texts are names of classes, and the classes of the dataset are those of its images.
    #[error(
        "`{feature}` has names of classes, and the classes of {split} are those of its labels: say all names in the order of their ids \
         (`classes`; of objects also `Objects(classes=…)`)"
    )]
    OtherClasses {
        /// The feature.
        feature: String,
        /// The split.
        split: String,
    },
    /// Texts are names of classes, and no class has a name.
    #[error(
        "`{feature}` has names of classes, and the dataset does not say their ids: give the names in their order as `classes`"
    )]
    NoClassNames {
        /// The feature.
        feature: String,
    },
    /// A class is given twice.
    #[error("class {class:?} occurs twice in `classes`: each name once, in the order of their ids")]
    ClassTwice {
        /// The class.
        class: String,
    },
    /// Two views have one name.
    #[error("two views are named {name:?}: give each another name")]
    ViewName {
        /// The name.
        name: String,
    },
    /// Mixing needs labels, at least one transform, and classes.
    #[error("batches cannot be mixed: {reason}")]
    Mixing {
        /// What is missing.
        reason: &'static str,
    },
    /// Packing, and something that is not packed.
    #[error("samples cannot be packed: {reason}")]
    Packing {
        /// What does not fit.
        reason: &'static str,
    },
    /// Options of clips that contradict each other, or other options.
    #[error("clips cannot be delivered: {reason}")]
    Clip {
        /// What does not fit.
        reason: &'static str,
    },
    /// A label that is not one of the classes of mixed batches.
    #[error("label {label} of sample {id} is not a class: expected 0 to {}; give the number of classes of the dataset", classes - 1)]
    Class {
        /// The label.
        label: i64,
        /// The sample.
        id: i64,
        /// The number of classes.
        classes: u32,
    },
    /// Keypoints and the order of the mirrored ones do not fit.
    #[error("`flip_index`: {problem}")]
    FlipIndex {
        /// What is wrong.
        problem: String,
    },
    /// A resume state is inside an epoch with another batch transform, or another exchange of mirrored points.
    #[error(
        "the resume state is inside an epoch with another `{member}`: {state:08x}, and that of this run is {current}; give the loader that \
         of the state, change it at the start of an epoch, or remove the member {member:?} from the state to continue with that of this \
         run"
    )]
    StateTransform {
        /// The member of the state, which is the option's name.
        member: &'static str,
        /// The checksum in the state.
        state: u32,
        /// Checksum and description of what the run has, or `none`.
        current: String,
    },
    /// The keypoints of two splits are not the same.
    #[error(
        "the splits have different keypoints: {first}; {second}. If they are the same points, and only one dataset names them, say their \
         mirrored order (`flip_index`); otherwise load the splits apart"
    )]
    Keypoints {
        /// Those of the first.
        first: String,
        /// Those of the other.
        second: String,
    },
    /// A step takes boxes, and the configuration has none.
    #[error("`{step}` takes the boxes of each sample: add `Objects` to the fields")]
    NoBoxes {
        /// The name of the step.
        step: &'static str,
    },
    /// A step that is not defined for the pixel format of the images.
    #[error("`{step}` is not defined for pixels of {format}: leave it out, or load RGB of 8 bits")]
    PixelFormat {
        /// The name of the step.
        step: &'static str,
        /// The name of the format ([`shardtool_decode::PixelFormat::name`]).
        format: &'static str,
    },
    /// Another number of buckets has steps.
    #[error("{shapes} shapes have {steps} lists of steps: give each shape its own")]
    BucketSteps {
        /// Shapes of buckets.
        shapes: usize,
        /// Lists of steps.
        steps: usize,
    },
    /// No file for decoded images can be created.
    #[error("cannot create a file for decoded images in {}", folder.display())]
    DecodedCache {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The steps of a bucket give images another size than its shape.
    #[error(
        "the steps of bucket {number} give {} x {} pixels (width x height): expected its shape, {} x {}",
        found.0, found.1, expected.0, expected.1
    )]
    BucketSize {
        /// The bucket, from 0.
        number: usize,
        /// Width and height of the shape in pixels.
        expected: (u32, u32),
        /// Those of the steps' result.
        found: (u32, u32),
    },
    /// The index of a shard lacks what buckets or packed rows are made from.
    #[error("the index of {} has no column `{feature}`, from which buckets or packed rows are made", path.display())]
    NoIndexColumn {
        /// The shard.
        path: PathBuf,
        /// The feature.
        feature: String,
    },
    /// A column's layout does not fit the feature's type.
    #[error("feature `{feature}` holds {dtype}: it cannot be a column of {layout}")]
    Layout {
        /// The feature.
        feature: String,
        /// What it holds.
        dtype: &'static str,
        /// What was requested.
        layout: &'static str,
    },
    /// The first record of a split has a different number of values than the column takes, so every sample would be
    /// bad.
    #[error(
        "feature `{feature}` holds {found} values in the record `{key}` of {split}, but a column of this layout takes \
         {expected}: deliver one of its values with `draw`, all with `multi_hot` if they are class ids, or leave it out of the columns, and read it \
         from the records"
    )]
    Values {
        /// The feature.
        feature: String,
        /// Values that the column takes.
        expected: usize,
        /// Values of the record.
        found: usize,
        /// The record's key.
        key: String,
        /// The split.
        split: String,
    },
    /// A further image of the first record of a split is not of its kind.
    #[error("cannot load the further images of {split}")]
    FurtherImage {
        /// The split, and its dataset.
        split: String,
        /// What is wrong with the record.
        source: Box<SampleError>,
    },
    /// No record at the start of the splits has a further image that holds values, of which the first one gives the format.
    #[error("cannot load the further image `{feature}`: no record at the start of the splits has it")]
    NoFurtherImage {
        /// The feature.
        feature: String,
    },
    /// A configuration of arrays that contradicts itself or the arrays.
    #[error("cannot load array `{feature}`")]
    Array {
        /// The feature; empty if the group has none.
        feature: String,
        /// What is wrong.
        #[source]
        problem: ArrayProblem,
    },
    /// No record at the start of the splits has the arrays, which give types and shapes.
    #[error("cannot load arrays {}: the first record of split `{split}` does not have them, nor do the records after it", features.join(", "))]
    FirstArrays {
        /// The features.
        features: Vec<String>,
        /// The split.
        split: String,
        /// What is wrong with the first record.
        source: Box<SampleError>,
    },
    /// The configuration does not fit into its memory.
    #[error("not enough memory for the loader (use a smaller batch or image, or allow more memory): {0}")]
    Budget(Box<MemoryPlan>),
    /// An image needs more scratch than the batches leave in the budget.
    #[error(
        "decoding the {width}x{height} image of record {record} of {} needs {needed} bytes of scratch, but the batches leave \
         {allowed}: raise the memory budget by {} bytes, or pack with smaller images",
        shard.display(), needed - allowed
    )]
    Scratch {
        /// The shard.
        shard: PathBuf,
        /// Record in the shard, from 0.
        record: u64,
        /// Width in pixels, as coded.
        width: u32,
        /// Height in pixels, as coded.
        height: u32,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        allowed: u64,
    },
    /// The masks of an image's objects need more memory than the batches leave in the budget.
    #[error(
        "the masks of the {objects} objects of record {record} of {} need {needed} bytes, but the batches leave {allowed}: raise the          memory budget by {} bytes, deliver smaller images or batches, or drop small objects (`min_area`)",
        shard.display(), needed - allowed
    )]
    MaskScratch {
        /// The shard.
        shard: PathBuf,
        /// Record in the shard, from 0.
        record: u64,
        /// Objects that are left in the result.
        objects: usize,
        /// Bytes needed, with those that decoding the image takes.
        needed: u64,
        /// Bytes available.
        allowed: u64,
    },
    /// A chunk of an array, or a record that is not mapped, needs more memory than the batches leave in the budget.
    #[error(
        "decoding the arrays of record {record} of {} needs {needed} bytes (a chunk, and the record if its file is not \
         mapped), but the batches leave {allowed}: raise the memory budget by {} bytes, or store smaller chunks",
        shard.display(), needed - allowed
    )]
    ArrayScratch {
        /// The shard.
        shard: PathBuf,
        /// Record in the shard, from 0.
        record: u64,
        /// Bytes needed.
        needed: u64,
        /// Bytes available.
        allowed: u64,
    },
    /// The allocator failed.
    #[error("cannot allocate {bytes} bytes for a batch")]
    Alloc {
        /// Bytes requested.
        bytes: usize,
        /// The allocator's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A bad sample under [`OnBad::Error`](crate::OnBad::Error).
    #[error("bad sample: {0}")]
    BadSample(Arc<BadSample>),
    /// A bad sample whose substitutes are bad too.
    #[error("bad sample, and all {tried} substitutes tried are bad: {sample}")]
    NoSubstitute {
        /// The sample.
        sample: Arc<BadSample>,
        /// Substitutes tried.
        tried: u64,
    },
    /// More bad samples than allowed.
    #[error("{found} bad samples, `max_bad` allows {allowed}; the last one: {last}")]
    TooManyBad {
        /// Samples found bad.
        found: u64,
        /// `max_bad`.
        allowed: u64,
        /// The last one.
        last: Arc<BadSample>,
    },
    /// The user's function, or a decoder, panicked.
    #[error("a worker panicked on record {record} of {} (id {id}): {message}", shard.display())]
    Panic {
        /// The sample's id.
        id: u64,
        /// Its shard.
        shard: PathBuf,
        /// Record in the shard, from 0.
        record: u64,
        /// The message of the panic.
        message: String,
    },
    /// A batch could not be put together: its rows mixed, or what they hold gathered.
    #[error(
        "a worker panicked while it mixed or gathered the rows of the batch at position {position} of epoch {epoch}: {message}"
    )]
    BatchPanic {
        /// The epoch, from 0.
        epoch: u64,
        /// The number of positions of the epoch before the batch.
        position: u64,
        /// The message of the panic.
        message: String,
    },
    /// The consumer holds every batch that a given memory budget or the system's limit allows.
    #[error("no batch in {waited:.1?}: {}", starved(*held, *batches, usage.as_deref()))]
    Starved {
        /// Batches that the consumer holds.
        held: usize,
        /// Batches that the budget allows in memory.
        batches: usize,
        /// How long the consumer waited.
        waited: Duration,
        /// The limit that stopped a default budget from growing; `None` if the budget was given.
        usage: Option<Box<Usage>>,
    },
    /// The callback ended the wait for a batch. No batch is lost: the next call waits for the same batch.
    #[error("waiting for a batch was interrupted")]
    Interrupted,
    /// The loader has returned an error before.
    #[error("the loader stopped at its last error; load a state or start an epoch to continue")]
    Stopped,
    /// A thread could not be started.
    #[error("cannot start a worker thread")]
    Thread(#[source] std::io::Error),
}

fn starved(held: usize, batches: usize, usage: Option<&Usage>) -> String {
    match usage {
        None => format!(
            "the consumer holds {held} of {batches} batches that the given memory budget allows; release batches sooner, or \
             raise the budget"
        ),
        Some(Usage { limit, used }) => format!(
            "the consumer holds {held} batches, and another one would exceed 90 % of the memory limit ({} of {} in use, \
             {}); release batches sooner, or use smaller ones",
            Bytes(*used),
            Bytes(limit.bytes),
            limit.from
        ),
    }
}

/// Returns how a message describes the label of a split.
fn label_feature(label: Option<&str>) -> String {
    label.map_or_else(|| "no label".to_owned(), |feature| format!("the label `{feature}`"))
}
