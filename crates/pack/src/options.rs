//! Options of a pack.

use crate::Error;
use crate::array::ArrayColumn;
use crate::index_writer::IndexOptions;
use crate::virtual_source::VirtualSource;
use shardtool_decode::{self as decode, FloatRange, Format, Limits, Truncated};
use shardtool_format::manifest::{DType, Keypoints};
use shardtool_format::names;
use shardtool_format::{BoxFormat, BoxUnit};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a pack. Start from [`Options::new`] and set what differs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// A folder of class folders, a flat folder, a list (CSV with a header, or JSONL), or archives of other formats: a
    /// file, a folder of them, or a glob.
    pub source: PathBuf,
    /// The kind of the source. Default: detected from its content.
    pub from: Option<SourceKind>,
    /// Field names of archives, as pairs of the name to store (`image`, `label`, `key`, `class`, or any feature) and
    /// the archive's name. Of files that belong together by their names, the features (and `image`) with the patterns of the files that
    /// they hold, such as `masks/**_mask.png`: `*` matches text without `/`, `**` for any text, `.*` at the end for any extension,
    /// and the files of a sample have the same texts in their place.
    pub map: Vec<(String, String)>,
    /// Which members of a tar are one sample. Default: those with the same name up to the first dot, as WebDataset reads them;
    /// refused where that may join several samples.
    pub member_key: Option<MemberKey>,
    /// Offset that is subtracted from an archive's labels to get class ids. Default 0.
    pub label_offset: i64,
    /// Folder of the dataset, or its URL in a store; created if it does not exist.
    pub destination: PathBuf,
    /// Name of the split. If files or top folders of the source are named for splits, only those of this name are packed.
    /// Default: each of these names its own split; if there are none, `train`.
    pub split: Option<String>,
    /// Whether names of files and folders are those of splits. Default: refused where both may be meant.
    pub split_names: SplitNames,
    /// Size or number of shards. Default 256 MiB each.
    pub shards: Shards,
    /// Seed of the order in which images are packed, or `None` for the source's own order. Default 0.
    pub seed: Option<u64>,
    /// Number of threads. Default: the CPUs available to this process. Does not change any written byte.
    pub jobs: NonZeroUsize,
    /// File of class names, one per line, that fixes class ids. Default: the source's own names in byte order.
    pub classes: Option<PathBuf>,
    /// Declared types of columns; others are inferred.
    pub columns: Vec<(String, DType)>,
    /// Columns of a list that name files, relative to the list's folder. The feature holds the bytes of the file, such
    /// as a segmentation mask.
    pub files: Vec<String>,
    /// Columns of a list that name files of arrays, relative to the list's folder: `.npy`, PFM, `.flo`, `.dpt`, or PNG and TIFF, whose
    /// pixels are the elements.
    pub arrays: Vec<ArrayColumn>,
    /// Columns of a list that name the frames of a clip: a folder of frames, or in JSONL a list of files. The feature has one
    /// value per frame, and `NAME/format` is the format of all of them.
    pub frames: Vec<String>,
    /// Frames per second of the clips, which becomes the feature `NAME/fps`. Default: no such feature.
    pub fps: Option<f32>,
    /// Format of the boxes in `objects`. Default: left, top, width, height in pixels.
    pub boxes: BoxFormat,
    /// Number of the first pixel in coordinates of Pascal VOC: 1, as its own files count, with right and bottom edges that belong to the
    /// box; or 0, where the numbers are edges. Default 1.
    pub first_pixel: u8,
    /// Unit of the boxes and keypoints in `objects`; `None` is pixels, and refuses boxes that are all at most 1.
    pub box_unit: Option<BoxUnit>,
    /// The image that they refer to, if it has an EXIF orientation; `None` is the one whose size the columns `width` and `height`
    /// give, and refuses the image if these do not decide.
    pub annotated: Option<Annotated>,
    /// What the keypoints of objects are, where the source does not say it. Default: not known.
    pub keypoints: Option<Keypoints>,
    /// The folder of a COCO file's images. Default: the file's folder.
    pub images: Option<PathBuf>,
    /// How pixels are stored. Default: unchanged image files.
    pub pixels: PixelStore,
    /// How JPEGs are stored. Default: unchanged.
    pub jpeg: JpegLayout,
    /// Shrinks larger images. Default: no.
    pub resize: Option<Resize>,
    /// Quality of images that are re-encoded as JPEG, 1 to 100. Default 90.
    pub quality: u8,
    /// Limits on the size of an image.
    pub limits: Limits,
    /// The range of floating-point samples (TIFF) that is scaled to 0 to 255 where pixels are decoded. Default: such
    /// images are rejected if their pixels are needed.
    pub float_range: Option<FloatRange>,
    /// Removes metadata from all images of a record, as [`shardtool_decode::strip_metadata`] does: positions, serial numbers, thumbnails,
    /// texts. The orientation, the colour profile and the pixels stay. Images of which it cannot be removed are rejected. Default:
    /// files are stored as they are.
    pub strip_metadata: bool,
    /// What happens to a JPEG that is cut. With [`Truncated::Fill`] its file is stored, and decoded where pixels are needed; loaders need
    /// the same option. Default: it is rejected.
    pub truncated: Truncated,
    /// What to do with rejected inputs. Default: list them and continue.
    pub on_error: OnError,
    /// Publishes a split although all of its inputs were rejected. Default: no.
    pub allow_empty: bool,
    /// Replaces the split, or an interrupted pack of other inputs or options. The old split is removed before the new
    /// one is written, since both have the same file names.
    pub force: bool,
    /// Writes JPEG entry points into the index (column `jpeg_entries`), so that a crop is decoded without the rows
    /// above it. Default: yes.
    pub entry_points: bool,
    /// Computes the SHA-256 of each shard for the manifest. Default: no.
    pub sha256: bool,
    /// Takes a file for the same input if its length is the same, although it was written again. Default: contents are compared
    /// where times differ.
    pub ignore_times: bool,
    /// Writes to a store that does not compare versions of objects: nothing else may write to the destination. Default: no.
    pub single_writer: bool,
    /// How long to wait for another process that packs the same split, such as another rank of the same program; what it packed
    /// is then found complete. Not with `force`. Default: 0.
    pub wait: Duration,
    /// Describes the source in virtual shards, which are not stored, and leaves it where it is ([`crate::index_source`]).
    pub(crate) virtual_source: Option<VirtualSource>,
    /// Whether the dataset's list of classes may be the beginning of the split's.
    pub(crate) grows: bool,
    /// The float64 features of the dataset: numbers in text are then not rounded to float32.
    pub(crate) wide: Vec<String>,
    /// Whether samples of an archive may be without an image, as rows of columns are.
    pub(crate) images_optional: bool,
}

/// The quality of images that are encoded as JPEG.
pub(crate) const DEFAULT_QUALITY: u8 = 90;

/// The split of a source that names none.
pub(crate) const DEFAULT_SPLIT: &str = "train";

/// Whether names of files and folders are those of splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SplitNames {
    /// If all of them are. Refused where some are and others are not.
    #[default]
    Auto,
    /// Yes: each top folder is a split, also if its name is not a known one.
    Names,
    /// No: lists that lie among the images name those of each split, whatever folders are named. For images and files that belong to them
    /// by their names.
    Lists,
    /// No: the source is one split, and top folders are classes.
    Ignored,
}

/// Which members of a tar are one sample: those whose paths are the same up to this dot of the last part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKey {
    /// The first dot; the rest of the name is the field, such as `seg.png`.
    FirstDot,
    /// The last dot; the extension is the field.
    LastDot,
}

impl MemberKey {
    /// Returns the name used in options.
    pub fn name(self) -> &'static str {
        match self {
            MemberKey::FirstDot => "first-dot",
            MemberKey::LastDot => "last-dot",
        }
    }
}

/// Kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// A folder of class folders, or of images.
    Folder,
    /// Folders of frames, each a clip, in class folders or without classes.
    Clips,
    /// CSV with a header, or JSONL.
    List,
    /// TFRecord files of `tf.train.Example`, plain or compressed with gzip or zlib.
    Tfrecord,
    /// tar files of WebDataset samples, plain or compressed with gzip or zstd.
    Webdataset,
    /// Parquet files in Hugging Face's layout, or with plain binary columns.
    Parquet,
    /// A folder of Mosaic MDS shards with its `index.json`.
    Mds,
    /// A COCO annotation file.
    Coco,
    /// A folder of Pascal VOC: `JPEGImages`, `Annotations` with a file of XML for each image, and `ImageSets`.
    Voc,
    /// A folder of YOLO as Ultralytics lays it out: `images`, `labels` with a text file for each image, and `data.yaml`; or that file.
    Yolo,
    /// A folder of images and of files that belong to them by their names: masks, depths, flow. [`Options::map`] has a pattern for each.
    Pairs,
}

impl Annotated {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Annotated::Coded => "coded",
            Annotated::Upright => "upright",
        }
    }
}

/// The image that coordinates refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Annotated {
    /// The image as it is coded, without its EXIF orientation.
    Coded,
    /// The image as it is shown, with its EXIF orientation applied.
    Upright,
}

/// Size or number of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shards {
    /// About this many bytes of source files per shard.
    Size(u64),
    /// This many shards of about the same size.
    Count(u64),
}

impl Shards {
    /// Returns the text that plans and records have.
    pub(crate) fn describe(self) -> String {
        match self {
            Shards::Size(bytes) => format!("of {bytes} bytes"),
            Shards::Count(count) => count.to_string(),
        }
    }
}

/// How pixels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PixelStore {
    /// Unchanged image files, or JPEG if they are resized.
    Encoded,
    /// Height × width × 3 bytes RGB, upright.
    Raw,
    /// One zstd frame of the raw pixels.
    RawZstd {
        /// Compression level, 1 to 22.
        level: i32,
    },
}

/// How JPEGs are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JpegLayout {
    /// Byte for byte.
    Keep,
    /// Losslessly transcoded to one sequential scan with optimal Huffman tables and no metadata except JFIF, Adobe and
    /// the EXIF orientation, if that is smaller or the image had several scans (progressive). Coefficients, and so
    /// pixels, stay the same.
    Optimize,
}

/// Shrinks larger images, keeping the aspect ratio; smaller ones are unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resize {
    /// Resizes the shorter side to this many pixels.
    Shorter(u32),
    /// Resizes the longer side to this many pixels.
    MaxSide(u32),
}

/// What to do with rejected inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnError {
    /// List them and continue.
    Skip,
    /// Stop at the first one with [`Error::Rejected`].
    Fail,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            source: PathBuf::new(),
            destination: PathBuf::new(),
            from: None,
            map: vec![],
            member_key: None,
            label_offset: 0,
            split: None,
            split_names: SplitNames::default(),
            shards: Shards::Size(256 << 20),
            seed: Some(0),
            jobs: default_jobs(),
            classes: None,
            columns: vec![],
            files: vec![],
            arrays: vec![],
            frames: vec![],
            fps: None,
            boxes: BoxFormat::Xywh,
            first_pixel: 1,
            box_unit: None,
            annotated: None,
            keypoints: None,
            images: None,
            pixels: PixelStore::Encoded,
            jpeg: JpegLayout::Keep,
            resize: None,
            quality: DEFAULT_QUALITY,
            limits: Limits::default(),
            float_range: None,
            strip_metadata: false,
            truncated: Truncated::Error,
            on_error: OnError::Skip,
            allow_empty: false,
            force: false,
            entry_points: true,
            sha256: false,
            ignore_times: false,
            single_writer: false,
            wait: Duration::ZERO,
            grows: false,
            wide: vec![],
            virtual_source: None,
            images_optional: false,
        }
    }
}

impl Options {
    /// Returns the defaults for a source and the folder of a dataset.
    pub fn new(source: impl Into<PathBuf>, destination: impl Into<PathBuf>) -> Self {
        Options { source: source.into(), destination: destination.into(), ..Options::default() }
    }

    /// Returns the name of the split: of one pack, once it is decided.
    pub(crate) fn split(&self) -> &str {
        self.split.as_deref().unwrap_or(DEFAULT_SPLIT)
    }

    /// Returns what is written about each shard.
    pub(crate) fn index(&self) -> IndexOptions {
        IndexOptions { entry_points: self.entry_points, sha256: self.sha256 }
    }

    /// Returns whether an image is cut.
    ///
    /// # Errors
    /// [`Reason`](crate::Reason) if it is, and no JPEG that [`truncated`](Self::truncated) accepts.
    pub(crate) fn is_cut(&self, image: &[u8]) -> Result<bool, decode::Error> {
        match decode::check_complete(image) {
            Ok(()) => Ok(false),
            Err(decode::Error::Truncated { format: Format::Jpeg, .. }) if self.truncated == Truncated::Fill => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Checks ranges and names.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Name`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        names::check_split_name(self.split())?;
        let wrong = |option, expected| Err(Error::Option { option, expected });
        match (self.shards, self.resize, self.pixels) {
            (Shards::Size(0), ..) => wrong("shard size", "at least one byte"),
            (Shards::Count(0 | 1_000_001..), ..) => wrong("number of shards", "1 to 1,000,000"),
            (_, Some(Resize::Shorter(0) | Resize::MaxSide(0)), _) => wrong("size to resize to", "at least one pixel"),
            (.., PixelStore::RawZstd { level }) if !(1..=22).contains(&level) => wrong("zstd level", "1 to 22"),
            (.., PixelStore::Raw | PixelStore::RawZstd { .. }) if self.jpeg == JpegLayout::Optimize => {
                wrong("JPEG layout", "images stored as files, not as pixels")
            }
            _ if !self.arrays.iter().all(|array| (1..=22).contains(&array.level)) => {
                wrong("zstd level of an array", "1 to 22")
            }
            _ if self
                .arrays
                .iter()
                .enumerate()
                .any(|(at, array)| self.arrays[..at].iter().any(|a| a.name == array.name)) =>
            {
                wrong("array", "each feature once, as an array or as flow")
            }
            _ if self.arrays.iter().any(|array| array.chunk.contains(&Some(0))) => {
                wrong("chunk of an array", "lengths of at least 1")
            }
            _ if self.first_pixel > 1 => wrong("first pixel", "0 or 1"),
            _ if !(1..=100).contains(&self.quality) => wrong("JPEG quality", "1 to 100"),
            _ => self.check_clips(),
        }
    }

    /// Checks the options about clips.
    fn check_clips(&self) -> Result<(), Error> {
        let wrong = |option, expected| Err(Error::Option { option, expected });
        let clips = self.from == Some(SourceKind::Clips) || !self.frames.is_empty();
        match self.fps {
            Some(_) if !clips => wrong("fps", "clips as the source, or a column of frames"),
            Some(fps) if !(fps > 0.0 && fps.is_finite()) => wrong("fps", "a number above 0"),
            _ if clips && (self.resize.is_some() || self.pixels != PixelStore::Encoded) => {
                wrong("size or pixels", "frames, which are stored byte for byte; resize them when they are decoded")
            }
            _ if clips && self.jpeg == JpegLayout::Optimize => {
                wrong("JPEG layout", "images; frames are stored byte for byte")
            }
            _ => Ok(()),
        }
    }
}

/// Returns the number of CPUs available to this process.
pub(crate) fn default_jobs() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
