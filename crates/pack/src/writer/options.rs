//! Options of a writer.

use crate::array::ArrayColumn;
use crate::options::{Annotated, DEFAULT_SPLIT, JpegLayout, PixelStore, Resize};
use crate::sample::{DescribedKeypoints, SampleSchema};
use crate::source::keypoints;
use crate::{Error, Options, Shards, sample};
use shardtool_decode::{FloatRange, Limits, Truncated};
use shardtool_format::BoxUnit;
use shardtool_format::manifest::{DType, Keypoints};
use std::path::PathBuf;

/// Options of a [`super::Writer`]. Start from [`WriterOptions::new`] and set what differs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WriterOptions {
    /// Folder of the dataset; created if it does not exist.
    pub destination: PathBuf,
    /// Name of the split. Default `train`.
    pub split: String,
    /// The samples' features, in addition to those of every record, and their types.
    pub features: Vec<(String, DType)>,
    /// The samples' arrays: features in addition to `features`.
    pub arrays: Vec<ArrayColumn>,
    /// Class names by id. Default: none; labels are then ids without names.
    pub classes: Vec<String>,
    /// Whether samples have labels. `Some(false)` with `classes`: the classes are those of objects, as in detection. Default: if there
    /// are classes.
    pub labels: Option<bool>,
    /// What the keypoints of objects are (`image/object/keypoints`). Default: not known.
    pub keypoints: Option<Keypoints>,
    /// Whether samples have images. Default: yes.
    pub images: bool,
    /// A shard ends after the record with which it reaches this many bytes. Default 256 MiB.
    pub shard_size: u64,
    /// Number of this writer's part, from 0, and number of parts. Default: the whole split, which
    /// [`super::Writer::finish`] commits; parts are committed by [`super::commit`].
    pub part: Option<(u32, u32)>,
    /// How pixels are stored. Default: unchanged image files, arrays as PNG.
    pub pixels: PixelStore,
    /// How JPEGs are stored. Default: unchanged.
    pub jpeg: JpegLayout,
    /// Shrinks larger images. Default: no.
    pub resize: Option<Resize>,
    /// Quality of images that are encoded as JPEG, 1 to 100. Default 90.
    pub quality: u8,
    /// Limits on the size of an image.
    pub limits: Limits,
    /// The range of floating-point samples (TIFF) that is scaled to 0 to 255 where pixels are decoded. Default: such
    /// images are rejected if their pixels are needed.
    pub float_range: Option<FloatRange>,
    /// As [`Options::strip_metadata`]. Default: image files are stored as they are.
    pub strip_metadata: bool,
    /// What happens to a JPEG that is cut. With [`Truncated::Fill`] its file is stored, and decoded where pixels are needed. Default:
    /// it is an error.
    pub truncated: Truncated,
    /// As [`Options::box_unit`].
    pub box_unit: Option<BoxUnit>,
    /// As [`Options::annotated`].
    pub annotated: Option<Annotated>,
    /// Writes JPEG entry points into the index (column `jpeg_entries`), so that a crop is decoded without the rows
    /// above it. Default: yes.
    pub entry_points: bool,
    /// Computes the SHA-256 of each shard for the manifest. Default: no.
    pub sha256: bool,
    /// Replaces the split, and what an unfinished writer with other options left. The old split is removed when all
    /// parts of the new one are finished.
    pub force: bool,
}

impl Default for WriterOptions {
    fn default() -> Self {
        let defaults = Options::default();
        WriterOptions {
            destination: defaults.destination,
            split: DEFAULT_SPLIT.to_owned(),
            features: vec![],
            arrays: vec![],
            classes: vec![],
            labels: None,
            keypoints: None,
            images: true,
            shard_size: 256 << 20,
            part: None,
            pixels: defaults.pixels,
            jpeg: defaults.jpeg,
            resize: defaults.resize,
            quality: defaults.quality,
            limits: defaults.limits,
            float_range: None,
            strip_metadata: false,
            truncated: Truncated::Error,
            box_unit: None,
            annotated: None,
            entry_points: defaults.entry_points,
            sha256: defaults.sha256,
            force: false,
        }
    }
}

impl WriterOptions {
    /// Adds features of these names and types.
    #[must_use]
    pub fn with_features<N: Into<String>>(mut self, features: impl IntoIterator<Item = (N, DType)>) -> Self {
        self.features.extend(features.into_iter().map(|(name, dtype)| (name.into(), dtype)));
        self
    }

    /// Sets the names of the classes, by id.
    #[must_use]
    pub fn with_classes<N: Into<String>>(self, classes: impl IntoIterator<Item = N>) -> Self {
        WriterOptions { classes: classes.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets whether samples have labels.
    #[must_use]
    pub fn with_labels(self, labels: bool) -> Self {
        WriterOptions { labels: Some(labels), ..self }
    }

    /// Sets what the keypoints of objects are.
    #[must_use]
    pub fn with_keypoints(self, keypoints: Keypoints) -> Self {
        WriterOptions { keypoints: Some(keypoints), ..self }
    }

    /// Returns the defaults for the folder of a dataset and a split.
    pub fn new(destination: impl Into<PathBuf>, split: &str) -> Self {
        WriterOptions { destination: destination.into(), split: split.to_owned(), ..WriterOptions::default() }
    }

    /// Checks ranges and names. Returns the options of a pack and the schema.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Name`].
    pub(super) fn check(&self) -> Result<(Options, SampleSchema), Error> {
        let options = Options {
            split: Some(self.split.clone()),
            arrays: self.arrays.clone(),
            shards: Shards::Size(self.shard_size),
            pixels: self.pixels,
            jpeg: self.jpeg,
            resize: self.resize,
            quality: self.quality,
            limits: self.limits,
            float_range: self.float_range,
            strip_metadata: self.strip_metadata,
            truncated: self.truncated,
            box_unit: self.box_unit,
            annotated: self.annotated,
            entry_points: self.entry_points,
            sha256: self.sha256,
            force: self.force,
            ..Options::new("", &self.destination)
        };
        options.check()?;
        if self.part.is_some_and(|(part, parts)| part >= parts || parts > 1_000_000) {
            return Err(Error::Option { option: "part", expected: "(I, N) with I < N, and N at most 1,000,000" });
        }
        let mut columns = self.features.clone();
        columns.extend(self.arrays.iter().flat_map(ArrayColumn::features));
        columns.sort_by(|a, b| a.0.cmp(&b.0));
        if columns.iter().any(|(name, _)| name.is_empty() || sample::is_written(name))
            || columns.windows(2).any(|pair| pair[0].0 == pair[1].0)
        {
            let expected = "different, non-empty names, not those of features that every record has";
            return Err(Error::Option { option: "features", expected });
        }
        let mut classes: Vec<_> = self.classes.iter().collect();
        classes.sort();
        if classes.windows(2).any(|pair| pair[0] == pair[1]) || classes.first().is_some_and(|name| name.is_empty()) {
            return Err(Error::Option { option: "classes", expected: "different, non-empty names" });
        }
        keypoints::check(self.keypoints.as_ref(), &columns)?;
        let labelled = self.labels.unwrap_or(!self.classes.is_empty());
        let keypoints = Box::new(DescribedKeypoints { known: self.keypoints.clone(), left_out: None });
        let schema = SampleSchema { classes: self.classes.clone(), images: self.images, labelled, columns, keypoints };
        Ok((options, schema))
    }
}
