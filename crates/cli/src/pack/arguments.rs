//! Arguments of `shardtool pack`.

use crate::choice::{self, choice};
use crate::entries::EntriesArgument;
use crate::float_range;
use crate::headings;
use shardtool_decode::{FloatRange, Truncated};
use shardtool_format::array::Codec;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    Annotated, ArrayColumn, BoxFormat, BoxUnit, JpegLayout, MemberKey, OnError, Options, Part, PixelStore, Resize,
    Shards, SourceKind, SplitNames,
};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Pack images into a dataset: class folders, a flat folder, a list, TFRecord, WebDataset, Parquet, MDS, or COCO
///
/// The kind of an archive (TFRecord, WebDataset tar, Parquet, Mosaic MDS) is detected from its content. SOURCE is then one
/// file, a folder of files, or a glob in quotes. All fields become features, and each file is written to separate shards.
///
/// A list is a CSV file with a header or a JSONL file; its column `path` names the images, `label` their class, `key`
/// their key, and all other columns become features. JPEG, PNG, WebP, GIF, BMP and TIFF files are stored unchanged
/// by default. To resume a killed pack, run the same command again; a complete split is left as it is.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of images, a list, or archives
    ///
    /// Also the URL of one list or archive in an object store.
    pub(super) source: PathBuf,
    /// Folder or URL of the dataset
    ///
    /// An existing dataset gets another split.
    pub(super) destination: PathBuf,
    /// Kind of SOURCE [default: from its content]
    #[arg(long, value_enum, value_name = "KIND", help_heading = headings::SOURCE)]
    from: Option<From>,
    /// Name of the split [default: from names, else train]
    ///
    /// If files or top folders of the source are named for splits, only those of this name are packed. Without it, each
    /// such name is a split.
    #[arg(long, value_name = "NAME", help_heading = headings::SPLITS)]
    pub(super) split: Option<String>,
    /// Whether names of files and top folders are splits
    #[arg(long, value_enum, default_value_t = NamesArgument::Auto, value_name = "HOW", help_heading = headings::SPLITS, hide_short_help = true)]
    splits: NamesArgument,
    /// Store an archive's field THEIRS as OURS
    ///
    /// OURS is image, label, key, class, or any feature. May be repeated.
    #[arg(long, value_parser = map, value_name = "OURS=THEIRS", help_heading = headings::SOURCE_FIELDS)]
    map: Vec<(String, String)>,
    /// Which members of a tar are one sample
    ///
    /// Members of one sample have the same name up to the first dot, or up to the last one [default: the first dot; refused
    /// where that may join samples].
    #[arg(long, value_enum, value_name = "DOT", help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    member_key: Option<Dot>,
    /// What to subtract from labels to get class ids
    ///
    /// For labels of an archive.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true, help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    label_offset: i64,
    /// Approximate size of a shard
    #[arg(long, value_parser = shardtool_load::parse_size, default_value = "256MiB", value_name = "SIZE", help_heading = headings::SPLITS)]
    shard_size: u64,
    /// Number of shards, instead of their size
    #[arg(long, value_name = "N", conflicts_with = "shard_size", help_heading = headings::SPLITS)]
    shards: Option<u64>,
    /// Seed of the order in which images are packed
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = headings::SPLITS, hide_short_help = true)]
    seed: u64,
    /// Keep the source's order
    #[arg(long, conflicts_with = "seed", help_heading = headings::SPLITS)]
    no_shuffle: bool,
    /// Class names, one per line: fixes class ids
    #[arg(long, value_name = "FILE", help_heading = headings::SOURCE_FIELDS)]
    classes: Option<PathBuf>,
    /// Type of a column, instead of the inferred one
    ///
    /// TYPE is int64, float (32 bits), float64, uint64 or bytes. NAME:file is for a list's column of file names: the bytes of each file become the
    /// feature (masks). NAME:frames is for a column that names the frames of a clip: a folder, or in JSONL a list of files.
    /// May be repeated.
    #[arg(long = "column", value_parser = column, value_name = "NAME:TYPE", help_heading = headings::SOURCE_FIELDS)]
    columns: Vec<(String, ColumnType)>,
    /// Store the .npy files that a column names
    ///
    /// Each file is stored as an array in chunks, such as 32x64x64 (`*` for a whole dimension; default: up to 512 KiB),
    /// coded by zstd, zstd:LEVEL or raw [default: zstd]. May be repeated.
    #[arg(long = "array", value_parser = array, value_name = "NAME[:CHUNK[:CODEC]]", help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    arrays: Vec<ArrayColumn>,
    /// Frames per second of clips: feature NAME/fps
    #[arg(long, value_name = "N", help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    fps: Option<f32>,
    /// Coordinates of boxes in `objects`
    #[arg(long, value_enum, default_value_t = Boxes::Xywh, help_heading = headings::BOXES, hide_short_help = true)]
    boxes: Boxes,
    /// Unit of the boxes and keypoints in `objects`
    ///
    /// [default: pixel, and boxes that are all at most 1 are refused]
    #[arg(long, value_name = "UNIT", help_heading = headings::BOXES, hide_short_help = true)]
    box_unit: Option<Unit>,
    /// Image that they refer to, with EXIF orientation
    ///
    /// [default: the one of `width` and `height`]
    #[arg(long, value_name = "IMAGE", help_heading = headings::BOXES, hide_short_help = true)]
    annotated: Option<Frame>,
    /// Images of a COCO file [default: its folder]
    #[arg(long, value_name = "FOLDER", help_heading = headings::SOURCE)]
    images: Option<PathBuf>,
    /// Shrink images to a shorter side of N pixels
    ///
    /// Images whose shorter side is at most N pixels are not resized. Resized images are encoded as JPEG.
    #[arg(long, value_name = "N", help_heading = headings::STORED)]
    resize_shorter: Option<u32>,
    /// Shrink images to a longer side of N pixels
    ///
    /// Images whose longer side is at most N pixels are not resized. Resized images are encoded as JPEG.
    #[arg(long, value_name = "N", conflicts_with = "resize_shorter", help_heading = headings::STORED)]
    max_side: Option<u32>,
    /// Quality of re-encoded images, 1 to 100
    #[arg(long, default_value_t = 90, value_name = "Q", help_heading = headings::STORED)]
    quality: u8,
    /// Range of floating-point samples
    ///
    /// Range of floating-point samples (TIFF) that is scaled to 0 to 255 where pixels are decoded [default: rejected].
    #[arg(long, value_parser = float_range::parse, value_name = "LOW,HIGH", allow_hyphen_values = true, help_heading = headings::STORED, hide_short_help = true)]
    float_range: Option<FloatRange>,
    /// Remove positions, thumbnails, serial numbers, texts
    ///
    /// Removes EXIF, XMP, IPTC, comments and all other metadata from JPEG, PNG, WebP, GIF, BMP and TIFF files, also from masks and
    /// other images of a sample. Orientation, colour profile and pixels stay. AVIF, HEIF, JPEG 2000 and JPEG XL in a container, from
    /// which metadata cannot be removed, are rejected.
    #[arg(long, help_heading = headings::STORED)]
    pub(super) strip_metadata: bool,
    /// What happens to a JPEG that is cut
    ///
    /// By default it is rejected. With `fill` its file is stored, and decoded to what libjpeg-turbo makes of it where pixels are
    /// needed: what is missing is grey. Loaders need the same option.
    #[arg(long, value_parser = choice::<Truncated>(), default_value = choice::default::<Truncated>(), value_name = "WHAT", help_heading = headings::STORED, hide_short_help = true)]
    truncated: Truncated,
    /// Keep JPEGs, or optimize losslessly
    ///
    /// Coefficients and pixels never change.
    #[arg(long, value_enum, default_value_t = Layout::Keep, value_name = "HOW", conflicts_with = "pixels", help_heading = headings::STORED)]
    jpeg: Layout,
    /// Store decoded RGB: raw, or raw-zstd[:LEVEL]
    #[arg(long, value_parser = pixels, value_name = "KIND", help_heading = headings::STORED)]
    pixels: Option<PixelStore>,
    #[command(flatten)]
    entries: EntriesArgument,
    /// Store the SHA-256 of each shard in the manifest
    ///
    /// `shardtool verify` checks it.
    #[arg(long, help_heading = headings::STORED, hide_short_help = true)]
    sha256: bool,
    /// Skip or fail at a bad input
    ///
    /// An input is bad if it cannot be packed.
    #[arg(long, value_enum, default_value_t = OnBadInput::Skip, value_name = "HOW", help_heading = headings::OUTPUT)]
    on_error: OnBadInput,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Publish a split without any records
    ///
    /// Without it, a split of which all inputs were rejected is an error.
    #[arg(long, help_heading = headings::OUTPUT, hide_short_help = true)]
    allow_empty: bool,
    /// Replace the split
    ///
    /// Replaces a complete split, or an interrupted pack of other inputs. The old split is removed before the new one is
    /// written.
    #[arg(long, help_heading = headings::OUTPUT)]
    force: bool,
    /// Compare files by length only when resuming
    ///
    /// Takes a file for the same input if its length is the same, although it was written again. Without it, contents are
    /// compared where times differ.
    #[arg(long, help_heading = headings::SOURCE, hide_short_help = true)]
    ignore_times: bool,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to DESTINATION.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
    /// Longest wait for a process that packs this split
    ///
    /// After the wait, what the other process packed is complete, or the command fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 21600, help_heading = headings::MACHINE, hide_short_help = true)]
    wait: u64,
    /// Write only the shards of part I of N
    ///
    /// These are the shards whose number modulo N is I (I from 0). `shardtool commit` completes the split once all parts
    /// are packed. Parts run on any machines, in any order, also twice.
    #[arg(long, value_name = "I/N", conflicts_with_all = ["force", "dry_run"], help_heading = headings::PARTS)]
    pub(super) part: Option<Part>,
    /// Write the plan of a pack in parts, no shard
    ///
    /// The plan has the listing of the source. With --force, the old split is removed.
    #[arg(long, conflicts_with_all = ["part", "dry_run"], help_heading = headings::PARTS)]
    pub(super) plan_only: bool,
    /// Print what would be packed, write nothing
    #[arg(long, help_heading = headings::OUTPUT)]
    pub(crate) dry_run: bool,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OnBadInput {
    /// List the input in rejected-<split>.jsonl, continue, exit with status 1
    Skip,
    /// Stop at the first such input, exit with status 1
    Fail,
}

/// Whether names of files and folders are those of splits.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum NamesArgument {
    /// If all of them are; refused where some are and others are not
    Auto,
    /// Yes: each top folder is a split, also if its name is not a known one
    Names,
    /// No: one split, and top folders are classes
    None,
}

impl NamesArgument {
    pub(crate) fn split_names(self) -> SplitNames {
        match self {
            NamesArgument::Auto => SplitNames::Auto,
            NamesArgument::Names => SplitNames::Names,
            NamesArgument::None => SplitNames::Ignored,
        }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Dot {
    /// `000.seg.png` is the field `seg.png` of the sample `000`, as WebDataset reads it
    FirstDot,
    /// `cam_0.05.jpg` is the field `jpg` of the sample `cam_0.05`
    LastDot,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Boxes {
    /// Left, top, width, height, as in COCO
    Xywh,
    /// Left, top, right, bottom, as in Pascal VOC
    Xyxy,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Unit {
    /// Pixels of the annotated image
    Pixel,
    /// Fractions of its width and height
    Fraction,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Frame {
    /// The image as coded, without its EXIF orientation
    Coded,
    /// The image as shown, with its EXIF orientation applied
    Upright,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Layout {
    /// Byte for byte
    Keep,
    /// Transcode losslessly: optimal Huffman tables, no metadata, one sequential scan instead of progressive ones, so that
    /// a crop decodes only its rows
    Optimize,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum From {
    /// Class folders, or a flat folder
    Folder,
    /// Folders of frames, each a clip, in class folders or without classes
    Clips,
    /// CSV with a header, or JSONL
    List,
    /// TFRecord files of tf.train.Example, also gzip or zlib
    Tfrecord,
    /// WebDataset tars, also .tar.gz and .tar.zst
    Webdataset,
    /// Parquet with images as Hugging Face lays them out, or as bytes
    Parquet,
    /// Mosaic MDS shards with their index.json
    Mds,
    /// A COCO annotation file
    Coco,
}

fn map(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(ours, theirs)| !ours.is_empty() && !theirs.is_empty());
    let (ours, theirs) = pair.ok_or("expected OURS=THEIRS, for example image=photo/bytes")?;
    Ok((ours.to_owned(), theirs.to_owned()))
}

#[derive(Clone, Copy)]
enum ColumnType {
    Values(DType),
    /// Paths of files whose bytes are the values.
    File,
    /// Folders of frames, or lists of their files.
    Frames,
}

fn column(text: &str) -> Result<(String, ColumnType), String> {
    let parse_type = |text: &str| match text {
        "file" => Some(ColumnType::File),
        "frames" => Some(ColumnType::Frames),
        text => DType::from_name(text).map(ColumnType::Values),
    };
    let parts = text.rsplit_once(':').and_then(|(name, text)| Some((name, parse_type(text)?)));
    let types = DType::ALL.map(|dtype| format!("NAME:{}", dtype.name())).join(", ");
    let (name, column_type) = parts.ok_or_else(|| format!("expected {types}, NAME:file or NAME:frames"))?;
    Ok((name.to_owned(), column_type))
}

fn array(text: &str) -> Result<ArrayColumn, String> {
    let mut parts = text.splitn(3, ':');
    let name = parts.next().filter(|name| !name.is_empty()).ok_or("expected NAME, NAME:CHUNK or NAME:CHUNK:CODEC")?;
    let mut column = ArrayColumn::new(name);
    for chunk in parts.next().filter(|chunk| !chunk.is_empty()).into_iter().flat_map(|chunk| chunk.split('x')) {
        column.chunk.push(match chunk {
            "*" => None,
            length => Some(
                length.parse().ok().filter(|length| *length > 0).ok_or("expected a CHUNK such as 32x64x64 or 1x*x*")?,
            ),
        });
    }
    match parts.next() {
        None | Some("zstd") => {}
        Some("raw") => column.codec = Codec::Raw,
        Some(codec) => {
            let level = codec.strip_prefix("zstd:").and_then(|level| level.parse().ok());
            column.level =
                level.filter(|level| (1..=22).contains(level)).ok_or("expected raw, zstd or zstd:LEVEL (1 to 22)")?;
        }
    }
    Ok(column)
}

fn pixels(text: &str) -> Result<PixelStore, String> {
    match text.split_once(':') {
        None if text == "raw" => Ok(PixelStore::Raw),
        // The default level of zstd.
        None if text == "raw-zstd" => Ok(PixelStore::RawZstd { level: 3 }),
        Some(("raw-zstd", level)) => {
            let level = level.parse().ok().filter(|level| (1..=22).contains(level));
            level.map(|level| PixelStore::RawZstd { level }).ok_or("zstd levels are 1 to 22".to_owned())
        }
        _ => Err("expected raw, raw-zstd or raw-zstd:LEVEL".to_owned()),
    }
}

impl Arguments {
    /// Returns an option that only a new split has, if it is given.
    pub(crate) fn option_of_a_new_split(&self) -> Option<&'static str> {
        let given = [(self.force, "--force"), (self.part.is_some(), "--part"), (self.plan_only, "--plan-only")];
        given.into_iter().find(|(given, _)| *given).map(|(_, option)| option)
    }

    /// Returns the options of the library.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(&self.source, &self.destination);
        options.split = self.split.clone();
        options.split_names = self.splits.split_names();
        options.from = self.from.map(|from| match from {
            From::Folder => SourceKind::Folder,
            From::Clips => SourceKind::Clips,
            From::List => SourceKind::List,
            From::Tfrecord => SourceKind::Tfrecord,
            From::Webdataset => SourceKind::Webdataset,
            From::Parquet => SourceKind::Parquet,
            From::Mds => SourceKind::Mds,
            From::Coco => SourceKind::Coco,
        });
        options.map = self.map.clone();
        options.member_key = self.member_key.map(|dot| match dot {
            Dot::FirstDot => MemberKey::FirstDot,
            Dot::LastDot => MemberKey::LastDot,
        });
        options.label_offset = self.label_offset;
        options.shards = self.shards.map_or(Shards::Size(self.shard_size), Shards::Count);
        options.seed = (!self.no_shuffle).then_some(self.seed);
        options.classes = self.classes.clone();
        for (name, column_type) in self.columns.iter().cloned() {
            match column_type {
                ColumnType::Values(kind) => options.columns.push((name, kind)),
                ColumnType::File => options.files.push(name),
                ColumnType::Frames => options.frames.push(name),
            }
        }
        options.arrays = self.arrays.clone();
        options.fps = self.fps;
        options.box_unit = self.box_unit.map(|unit| match unit {
            Unit::Pixel => BoxUnit::Pixel,
            Unit::Fraction => BoxUnit::Fraction,
        });
        options.annotated = self.annotated.map(|frame| match frame {
            Frame::Coded => Annotated::Coded,
            Frame::Upright => Annotated::Upright,
        });
        options.boxes = match self.boxes {
            Boxes::Xywh => BoxFormat::Xywh,
            Boxes::Xyxy => BoxFormat::Xyxy,
        };
        options.images = self.images.clone();
        options.resize = self.resize_shorter.map(Resize::Shorter).or(self.max_side.map(Resize::MaxSide));
        options.quality = self.quality;
        options.float_range = self.float_range;
        options.strip_metadata = self.strip_metadata;
        options.truncated = self.truncated;
        options.pixels = self.pixels.unwrap_or(PixelStore::Encoded);
        options.jpeg = match self.jpeg {
            Layout::Keep => JpegLayout::Keep,
            Layout::Optimize => JpegLayout::Optimize,
        };
        options.jobs = self.jobs.unwrap_or(options.jobs);
        options.allow_empty = self.allow_empty;
        options.force = self.force;
        options.ignore_times = self.ignore_times;
        options.single_writer = self.single_writer;
        options.wait = Duration::from_secs(self.wait);
        options.entry_points = self.entries.written();
        options.sha256 = self.sha256;
        options.on_error = match self.on_error {
            OnBadInput::Skip => OnError::Skip,
            OnBadInput::Fail => OnError::Fail,
        };
        options
    }
}
