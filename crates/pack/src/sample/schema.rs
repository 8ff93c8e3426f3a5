//! What all samples of a split have in common, and which features their records have.

use super::DescribedKeypoints;
use serde::{Deserialize, Serialize};
use shardtool_format::array::array_name;
use shardtool_format::checksum::Crc32c;
use shardtool_format::manifest::{DType, FeatureType};
use shardtool_format::names;

/// Last parts of the names of features that describe an array.
const MEMBERS: [&str; 4] = ["shape", "chunk", "dtype", "codec"];

/// What all samples of a source have in common.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SampleSchema {
    /// Class names by id; empty if there are no classes, or classes have no names.
    pub(crate) classes: Vec<String>,
    /// Whether samples have images.
    pub(crate) images: bool,
    /// Whether samples have labels.
    pub(crate) labelled: bool,
    /// The source's own columns, in the order of [`super::ResolvedSample::values`].
    pub(crate) columns: Vec<(String, DType)>,
    /// What the keypoints of objects are.
    #[serde(default)]
    pub(crate) keypoints: Box<DescribedKeypoints>,
}

impl SampleSchema {
    /// Returns whether a column is that of an array's chunks, or describes an array.
    pub(crate) fn is_array_member(&self, name: &str) -> bool {
        let has = |name: &str| self.columns.iter().any(|(column, _)| column == name);
        let describes = |array: &str| array_name(&format!("{array}/codec"), has).is_some();
        describes(name)
            || name.rsplit_once('/').is_some_and(|(array, member)| MEMBERS.contains(&member) && describes(array))
    }

    /// Returns a CRC32C over the schema and everything that `visit` adds.
    pub(crate) fn crc(&self, visit: impl FnOnce(&mut dyn FnMut(&[u8]))) -> u32 {
        let mut crc = Crc32c::new();
        let mut text = |text: &[u8]| {
            crc.update(&(text.len() as u64).to_le_bytes());
            crc.update(text);
        };
        self.classes.iter().for_each(|class| text(class.as_bytes()));
        for (name, dtype) in &self.columns {
            text(name.as_bytes());
            text(dtype.name().as_bytes());
        }
        visit(&mut text);
        crc.value()
    }
}

/// Features of every record, in addition to the source's columns.
const ALWAYS: [(&str, DType); 8] = [
    (names::IMAGE_CHANNELS, DType::Int64),
    (names::IMAGE_ENCODED, DType::Bytes),
    (names::IMAGE_FILENAME, DType::Bytes),
    (names::IMAGE_FORMAT, DType::Bytes),
    (names::IMAGE_HEIGHT, DType::Int64),
    (names::IMAGE_KEY, DType::Bytes),
    (names::IMAGE_ORIENTATION, DType::Int64),
    (names::IMAGE_WIDTH, DType::Int64),
];
/// Features of labelled records.
const LABELLED: [(&str, DType); 2] = [(names::CLASS_LABEL, DType::Int64), (names::CLASS_TEXT, DType::Bytes)];

/// Returns whether pack writes a feature of this name itself.
pub(crate) fn is_written(name: &str) -> bool {
    ALWAYS.iter().chain(&LABELLED).any(|(written, _)| *written == name)
}

/// Returns the features of a source's records, in byte order of their names.
pub(crate) fn features(schema: &SampleSchema) -> Vec<FeatureType> {
    let labelled = LABELLED.iter().filter(|(name, _)| match *name {
        names::CLASS_TEXT => schema.labelled && !schema.classes.is_empty(),
        _ => schema.labelled,
    });
    let always = ALWAYS.iter().filter(|(name, _)| schema.images || *name == names::IMAGE_KEY);
    let fixed = always.chain(labelled).map(|(name, dtype)| ((*name).to_owned(), *dtype));
    let all = fixed.chain(schema.columns.iter().cloned());
    let mut features: Vec<_> = all.map(|(name, dtype)| FeatureType { name, dtype }).collect();
    features.sort_by(|a, b| a.name.cmp(&b.name));
    features
}
