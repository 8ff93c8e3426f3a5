//! What to pack, where to, and how.

use crate::Error;
use shardtool_decode::{FloatRange, Limits};
use shardtool_format::manifest::Kind;
use shardtool_format::names;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What to pack, where to, and how. Plain data: start from [`Options::new`] and set what differs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// A folder of class folders, a flat folder, or a list: CSV with a header, or JSONL. Or archives of other formats:
    /// a file, a folder of them, or a glob.
    pub source: PathBuf,
    /// What the source is, instead of what its content tells.
    pub from: Option<SourceKind>,
    /// Fields of archives under other names: ours, theirs. Ours may be `image`, `label`, `key`, `class`, or any feature.
    pub map: Vec<(String, String)>,
    /// What to subtract from an archive's labels to get class ids. Default 0.
    pub label_offset: i64,
    /// Folder of the dataset; made if it is not there.
    pub destination: PathBuf,
    /// Name of the split. Default `train`.
    pub split: String,
    /// How large shards are, or how many. Default 256 MiB each.
    pub shards: Shards,
    /// Seed of the order in which images are packed, or `None` for the source's own order. Default 0.
    pub seed: Option<u64>,
    /// Threads. Default: the processors that this process may use. Never changes a byte of what is written.
    pub jobs: NonZeroUsize,
    /// File of class names, one a line, that fixes class ids. Default: the source's own names in byte order.
    pub classes: Option<PathBuf>,
    /// Types of columns that are not to be inferred.
    pub columns: Vec<(String, Kind)>,
    /// Columns of a list that name files, relative to the list's folder: a record's feature holds the bytes of its file
    /// (segmentation masks, for instance).
    pub files: Vec<String>,
    /// How boxes of `objects` are written in the source. Default: left, top, width, height in pixels.
    pub boxes: BoxFormat,
    /// The folder that a COCO file's images lie in. Default: the file's own.
    pub images: Option<PathBuf>,
    /// How pixels are stored. Default: image files as they are.
    pub pixels: PixelStore,
    /// How JPEGs are laid out. Default: as they are.
    pub jpeg: JpegLayout,
    /// Make larger images smaller. Default: no.
    pub resize: Option<Resize>,
    /// Quality of images that are encoded again as JPEG, 1 to 100. Default 90.
    pub quality: u8,
    /// How large an image may be.
    pub limits: Limits,
    /// The range of floating-point samples (TIFF) that is scaled to 0 to 255 where pixels are decoded. Default: such images
    /// are rejected if their pixels are needed.
    pub float_range: Option<FloatRange>,
    /// What to do with an input that cannot be packed. Default: go on without it.
    pub on_error: OnError,
    /// Replace the split, or an interrupted pack of other inputs or options.
    pub force: bool,
    /// Writes JPEG entry points into the index (column `jpeg_entries`), so that a crop is decoded without the rows above
    /// it. Default: yes.
    pub entry_points: bool,
}

/// Kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// A folder of class folders, or of images.
    Folder,
    /// CSV with a header, or JSONL.
    List,
    /// TFRecord files of `tf.train.Example`, plain or compressed with gzip or zlib.
    Tfrecord,
    /// tar files of WebDataset samples, plain or compressed with gzip or zstd.
    Webdataset,
    /// Parquet files, as Hugging Face lays out images, or with plain binary columns.
    Parquet,
    /// A folder of Mosaic MDS shards with its `index.json`.
    Mds,
    /// A COCO annotation file.
    Coco,
}

/// How the boxes of a source are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum BoxFormat {
    /// Remaining, top, width, height in pixels, as in COCO.
    #[default]
    Xywh,
    /// Remaining, top, right, bottom in pixels, as in Pascal VOC.
    Xyxy,
}

impl BoxFormat {
    /// Its name in options.
    pub fn name(self) -> &'static str {
        match self {
            BoxFormat::Xywh => "xywh",
            BoxFormat::Xyxy => "xyxy",
        }
    }
}

/// How large shards are, or how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shards {
    /// About this many bytes of source files each; as many shards as that takes.
    Size(u64),
    /// This many, of about the same size.
    Count(u64),
}

/// How pixels are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PixelStore {
    /// Image files as they are, or as JPEG where they are resized.
    Encoded,
    /// Height × width × 3 bytes RGB, upright.
    Raw,
    /// One zstd frame of the same.
    RawZstd {
        /// Level of compression, 1 to 22.
        level: i32,
    },
}

/// How JPEGs are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JpegLayout {
    /// Byte for byte as they are.
    Keep,
    /// In one sequential scan with the best Huffman tables and no metadata but JFIF, Adobe and the EXIF orientation, where
    /// that is smaller or where the image had several scans (progressive). Coefficients, and so pixels, stay the same.
    Optimize,
}

/// Makes larger images smaller; never a smaller one larger. The aspect ratio stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resize {
    /// The shorter side becomes at most this many pixels.
    Shorter(u32),
    /// The longer side becomes at most this many pixels.
    MaxSide(u32),
}

/// What to do with an input that cannot be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// List it, and go on.
    Skip,
    /// Stop with [`Error::Rejected`].
    Fail,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            source: PathBuf::new(),
            destination: PathBuf::new(),
            from: None,
            map: vec![],
            label_offset: 0,
            split: "train".to_owned(),
            shards: Shards::Size(256 << 20),
            seed: Some(0),
            jobs: default_jobs(),
            classes: None,
            columns: vec![],
            files: vec![],
            boxes: BoxFormat::default(),
            images: None,
            pixels: PixelStore::Encoded,
            jpeg: JpegLayout::Keep,
            resize: None,
            quality: 90,
            limits: Limits::default(),
            float_range: None,
            on_error: OnError::Skip,
            force: false,
            entry_points: true,
        }
    }
}

impl Options {
    /// Returns the defaults for a source and the folder of a dataset.
    pub fn new(source: impl Into<PathBuf>, destination: impl Into<PathBuf>) -> Self {
        Options { source: source.into(), destination: destination.into(), ..Options::default() }
    }

    /// Checks ranges and names.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Name`].
    pub(crate) fn check(&self) -> Result<(), Error> {
        names::check_split_name(&self.split)?;
        let wrong = |option, expected| Err(Error::Option { option, expected });
        match (self.shards, self.resize, self.pixels) {
            (Shards::Size(0), ..) => wrong("shard size", "at least one byte"),
            (Shards::Count(0 | 1_000_001..), ..) => wrong("number of shards", "1 to 1,000,000"),
            (_, Some(Resize::Shorter(0) | Resize::MaxSide(0)), _) => wrong("size to resize to", "at least one pixel"),
            (.., PixelStore::RawZstd { level }) if !(1..=22).contains(&level) => wrong("zstd level", "1 to 22"),
            (.., PixelStore::Raw | PixelStore::RawZstd { .. }) if self.jpeg == JpegLayout::Optimize => {
                wrong("JPEG layout", "images stored as files, not as pixels")
            }
            _ if !(1..=100).contains(&self.quality) => wrong("JPEG quality", "1 to 100"),
            _ => Ok(()),
        }
    }
}

/// Processors that this process may use.
pub(crate) fn default_jobs() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}
