//! Samples as they are packed, from any source.

mod clip;
mod keypoints;
mod numbers;
mod schema;
mod values;

pub(crate) use clip::{FORMAT_SUFFIX, FPS_SUFFIX, FrameFiles, ListedClip, natural_order};
pub(crate) use keypoints::DescribedKeypoints;
pub(crate) use numbers::{Conflict, Number, Numbers, fits_float32};
pub(crate) use schema::{SampleSchema, features, is_written};
pub(crate) use values::{ListedFile, Values};

/// A sample without its image: its label is a class id, its values have the types of the columns.
pub(crate) struct ResolvedSample {
    pub(crate) key: String,
    pub(crate) label: Option<i64>,
    pub(crate) values: Vec<Values>,
}
