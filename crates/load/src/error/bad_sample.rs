//! Samples that could not be read or decoded, and what is wrong with them.

use shardtool_format::{Chain, Damage};
use std::fmt;
use std::path::PathBuf;

/// A sample that could not be read or decoded. Its text names the record, the file, the key and the cause.
#[non_exhaustive]
pub struct BadSample {
    /// Its id, which counts through the loader's splits.
    pub id: u64,
    /// Its shard.
    pub shard: PathBuf,
    /// Record in the shard, from 0.
    pub record: u64,
    /// Its key, if it can be read and is not empty.
    pub key: Option<Vec<u8>>,
    /// What is wrong with it.
    pub error: SampleError,
}

impl fmt::Display for BadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} of {} (id {}", self.record, self.shard.display(), self.id)?;
        if let Some(key) = &self.key {
            write!(f, ", key `{}`", String::from_utf8_lossy(key))?;
        }
        write!(f, "): {}", Chain(&self.error))
    }
}

impl fmt::Debug for BadSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BadSample")
            .field("id", &self.id)
            .field("shard", &self.shard)
            .field("record", &self.record)
            .field("key", &self.key.as_ref().map(|key| String::from_utf8_lossy(key)))
            .field("error", &self.error)
            .finish()
    }
}

impl std::error::Error for BadSample {}

/// What is wrong with a sample.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The record is damaged.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// The image cannot be decoded.
    #[error(transparent)]
    Decode(#[from] shardtool_decode::Error),
    /// The record has no image.
    #[error("the record has no image")]
    NoImage,
    /// A label that its split has no name for, where labels are mapped by name.
    #[error("label {label} has no name: its split names {classes} classes")]
    Class {
        /// The class id in the split.
        label: i64,
        /// Number of names.
        classes: usize,
    },
    /// A text that is the name of no class.
    #[error("feature `{feature}` has {name:?}, which is not among the names of the classes")]
    ClassName {
        /// The feature.
        feature: String,
        /// The text.
        name: String,
    },
    /// The record has no label map.
    #[error("feature `{feature}` of the record has no label map")]
    NoMask {
        /// The feature.
        feature: String,
    },
    /// The label map cannot be decoded.
    #[error("label map `{feature}`")]
    Mask {
        /// The feature.
        feature: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// Nothing can be drawn from what an object covers.
    #[error("object {object} of the record: its mask cannot be drawn from `{feature}`: {problem}")]
    Segmentation {
        /// The feature.
        feature: String,
        /// The number of the object in its record, from 0.
        object: usize,
        /// What is wrong with its text.
        problem: String,
    },
    /// A class id of a record is outside those of its column.
    #[error("`{feature}` of the record holds the class id {id}; expected 0 to {}, as `multi_hot` has {classes} classes", classes - 1)]
    MultiHot {
        /// The feature.
        feature: String,
        /// The class id.
        id: i64,
        /// Number of classes.
        classes: usize,
    },
    /// The record lacks one of its further images.
    #[error("feature `{feature}` of the record has no image")]
    NoFurtherImage {
        /// The feature.
        feature: String,
    },
    /// A further image cannot be decoded, or has another size than the record's image.
    #[error("image `{feature}`")]
    FurtherImage {
        /// The feature.
        feature: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// A further image of unstated kind that may hold values, which steps would mix or shorten.
    #[error(
        "image `{feature}` is {found}, which often holds depths, ids or labels, and its values would be mixed or shortened: give its \
         `kind` in `FurtherImage`: \"values\", which move by nearest neighbour and stay as they are, or \"color\""
    )]
    FurtherKind {
        /// The feature.
        feature: String,
        /// What it is ([`shardtool_decode::StoredSamples::may_be_values`]).
        found: &'static str,
    },
    /// A further image that holds values has other samples than the first one, or some whose values cannot be taken as they are.
    #[error(
        "image `{feature}` holds \"values\" (`FurtherImage`) and is {}: expected {}, as PNG or TIFF",
        found.unwrap_or("of a kind whose values are not kept"),
        expected.map_or_else(|| "integers of 8 or 16 bits".to_owned(), |expected| format!("{expected}, as in the first record"))
    )]
    FurtherFormat {
        /// The feature.
        feature: String,
        /// The name of the first record's format ([`shardtool_decode::PixelFormat::name`]); `None` for the first record itself.
        expected: Option<&'static str>,
        /// The name of its format, or which of its samples are not delivered as they are stored
        /// ([`shardtool_decode::StoredSamples::changed`]); `None` if no format keeps its values.
        found: Option<&'static str>,
    },
    /// The record has no array of this name.
    #[error(
        "feature `{feature}` of the record is not an array: `{feature}/shape`, `/chunk`, `/dtype` or `/codec` is missing"
    )]
    NoArray {
        /// The feature.
        feature: String,
    },
    /// The features that describe an array have another type or number of values.
    #[error("shape, chunk, dtype or codec of array `{feature}` has another type or number of values")]
    ArrayFeatures {
        /// The feature.
        feature: String,
    },
    /// An array has too many dimensions.
    #[error("array `{feature}` has {found} dimensions; at most {allowed} are supported")]
    ArrayDimensions {
        /// The feature.
        feature: String,
        /// Dimensions of the array.
        found: usize,
        /// What is supported.
        allowed: usize,
    },
    /// An array has another type than the first one.
    #[error("array `{feature}` is of {found}, but the first record's is of {expected}")]
    ArrayDtype {
        /// The feature.
        feature: String,
        /// The type of the first record's.
        expected: &'static str,
        /// The type of this one.
        found: &'static str,
    },
    /// An array has another shape than the first one, where the crop does not give the length.
    #[error(
        "array `{feature}` has shape {found:?}, but rows hold {}, as the first record has it: give a crop for dimensions \
         whose length differs between records",
        any_length(expected)
    )]
    ArrayShape {
        /// The feature.
        feature: String,
        /// The lengths that are the same in all records; `None` for any length.
        expected: Vec<Option<u64>>,
        /// The shape of this one.
        found: Vec<u64>,
    },
    /// An array is smaller than the crop, and no padding is given.
    #[error(
        "array `{feature}` has shape {found:?}, smaller than the crop {crop:?}: use a smaller crop, or give a pad value"
    )]
    ArraySmall {
        /// The feature.
        feature: String,
        /// The shape of the array.
        found: Vec<u64>,
        /// The shape of a row.
        crop: Vec<u64>,
    },
    /// Arrays of one record that share their geometry have different shapes.
    #[error("array `{feature}` has shape {found:?}, but `{other}`, which gets the same crop, has {expected:?}")]
    ArrayShapes {
        /// The feature.
        feature: String,
        /// The shape of the array.
        found: Vec<u64>,
        /// The first feature of the group.
        other: String,
        /// Its shape.
        expected: Vec<u64>,
    },
    /// Ragged arrays of one record have different lengths.
    #[error("array `{feature}` has {found} elements, but `{other}` of the same group has {expected}")]
    ArrayLengths {
        /// The feature.
        feature: String,
        /// The length of the array.
        found: u64,
        /// The first feature of the group.
        other: String,
        /// Its length.
        expected: u64,
    },
    /// An array that follows the geometry of the image has another size.
    #[error(
        "array `{feature}` is {} x {} (height x width), but the image is {} x {}, whose geometry it follows (`image_axes`): scale it \
         to the image before it is packed",
        found[0], found[1], expected[0], expected[1]
    )]
    ArrayImageSize {
        /// The feature.
        feature: String,
        /// Height and width of the array.
        found: [u64; 2],
        /// Height and width of the stored image.
        expected: [u64; 2],
    },
    /// Disparities of an image whose rows become columns.
    #[error(
        "disparities `{feature}` of an image that its EXIF orientation turns by a quarter: they are distances along a row, which becomes \
         a column; turn the pixels of both before they are packed"
    )]
    Disparity {
        /// The feature.
        feature: String,
    },
    /// A surface normal is longer than a unit vector.
    #[error(
        "surface normals `{feature}`: one has the length {length:.2}, expected 1, or 0 where it is not known; divide them by their \
         length before they are packed; of floats from 0 to 1, take 2 x - 1 first"
    )]
    Normal {
        /// The feature.
        feature: String,
        /// Its length.
        length: f64,
    },
    /// An array cannot be decoded.
    #[error("array `{feature}`")]
    Array {
        /// The feature.
        feature: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// The record has no frames of a clip.
    #[error("feature `{feature}` of the record has no frames")]
    NoFrames {
        /// The feature.
        feature: String,
    },
    /// A frame of a clip cannot be decoded, or has another size than the others.
    #[error("frame {number} of `{feature}`")]
    Frame {
        /// The feature.
        feature: String,
        /// The frame's number, from 0.
        number: usize,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// The stored bytes of a frame are damaged.
    #[error("frame {number} of `{feature}`")]
    FrameBytes {
        /// The feature.
        feature: String,
        /// The frame's number, from 0.
        number: usize,
        /// What is wrong with them.
        source: Box<shardtool_read::Error>,
    },
    /// Raw pixels without a size.
    #[error("pixels are stored raw, and feature `{feature}` does not give their size")]
    RawSize {
        /// The feature that is missing or out of range.
        feature: &'static str,
    },
    /// A feature has a different number of values than its column takes.
    #[error(
        "feature `{feature}` holds {found} values, but its column takes {expected}: `draw` delivers one of several values, and `multi_hot` all if they are class ids"
    )]
    Values {
        /// The feature.
        feature: String,
        /// Values that the column takes.
        expected: usize,
        /// Values of the record.
        found: usize,
    },
    /// Boxes that are to be fractions of the image, and can only be pixels.
    #[error(
        "`{feature}` holds {number}, and fractions of the image were expected: if its boxes are pixels, say so with `unit` in `Objects`"
    )]
    BoxUnit {
        /// The feature.
        feature: String,
        /// The first such coordinate.
        number: f32,
    },
    /// A feature has a different type than in the manifest.
    #[error("feature `{feature}` has a different type than in the manifest")]
    Type {
        /// The feature.
        feature: String,
    },
}

/// Returns a shape in which `*` means any length.
fn any_length(shape: &[Option<u64>]) -> String {
    let lengths = shape.iter().map(|length| length.map_or("*".to_owned(), |length| length.to_string()));
    format!("[{}]", lengths.collect::<Vec<_>>().join(", "))
}

impl SampleError {
    /// Returns the kind of damage, as named in `format-spec.md`. Returns `None` if no stored byte is damaged: a record
    /// without an image, or a feature of another type or count than the loader needs, is not damage.
    pub fn damage(&self) -> Option<Damage> {
        match self {
            SampleError::Read(error) => error.damage(),
            SampleError::FrameBytes { source: error, .. } => error.damage(),
            SampleError::Decode(error)
            | SampleError::Mask { source: error, .. }
            | SampleError::FurtherImage { source: error, .. }
            | SampleError::Array { source: error, .. }
            | SampleError::Frame { source: error, .. } => Some(error.damage()),
            SampleError::ArrayFeatures { .. } => Some(Damage::ImageDecode),
            SampleError::RawSize { .. } => Some(Damage::PixelsLength),
            SampleError::NoImage
            | SampleError::Class { .. }
            | SampleError::ClassName { .. }
            | SampleError::NoMask { .. }
            | SampleError::NoFurtherImage { .. }
            | SampleError::Segmentation { .. }
            | SampleError::MultiHot { .. }
            | SampleError::FurtherKind { .. }
            | SampleError::FurtherFormat { .. }
            | SampleError::NoArray { .. }
            | SampleError::ArrayDimensions { .. }
            | SampleError::ArrayDtype { .. }
            | SampleError::ArrayShape { .. }
            | SampleError::ArraySmall { .. }
            | SampleError::ArrayShapes { .. }
            | SampleError::ArrayLengths { .. }
            | SampleError::ArrayImageSize { .. }
            | SampleError::Disparity { .. }
            | SampleError::Normal { .. }
            | SampleError::NoFrames { .. }
            | SampleError::Values { .. }
            | SampleError::BoxUnit { .. }
            | SampleError::Type { .. } => None,
        }
    }
}
