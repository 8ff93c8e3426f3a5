//! Arguments that say what a source is and how it is read, for `pack`, `append` and `index`.

use super::keypoints;
use crate::choice::{self, choice};
use crate::headings;
use shardtool_decode::Truncated;
use shardtool_format::array::Codec;
use shardtool_format::manifest::{DType, Keypoints};
use shardtool_format::{BoxFormat, BoxUnit};
use shardtool_pack::{Annotated, ArrayColumn, MemberKey, OnError, Options, Shards, SourceKind};
use std::path::PathBuf;
use std::time::Duration;

/// What a source is, and how it is read.
#[derive(clap::Args)]
pub(crate) struct SourceArguments {
    /// Kind of SOURCE [default: from its content]
    #[arg(long, value_enum, value_name = "KIND", help_heading = headings::SOURCE)]
    from: Option<From>,
    /// Store an archive's field THEIRS as OURS
    ///
    /// OURS is image, label, key, class, or any feature. In a folder of files that belong together by their names, OURS is
    /// image or a feature, and THEIRS a pattern: `--map image='images/**.jpg' --map mask='masks/**_mask.png'`. `*` matches text without `/`, `**` for
    /// any, `.*` at the end for any extension, and the files of a sample have the same texts in their place. May be
    /// repeated.
    #[arg(long, value_parser = map, value_name = "OURS=THEIRS", help_heading = headings::SOURCE_FIELDS)]
    map: Vec<(String, String)>,
    /// Which members of a tar are one sample
    ///
    /// Members of one sample have the same name up to the first dot, or up to the last one [default: the first dot; refused
    /// where that may join samples].
    #[arg(long, value_enum, value_name = "DOT", help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    member_key: Option<Dot>,
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
    /// NAME:flow is for a column of files of optical flow (.flo, PFM, KITTI's PNG, .npy), which is stored as an array
    /// [height, width, 2]. May be repeated.
    #[arg(long = "column", value_parser = column, value_name = "NAME:TYPE", help_heading = headings::SOURCE_FIELDS)]
    columns: Vec<(String, ColumnType)>,
    /// Store the arrays in the files that a column names
    ///
    /// Files are .npy, PFM, .flo, .dpt, or PNG and TIFF, whose pixels are the elements (depths, disparities). Each is stored as an array in chunks, such as 32x64x64 (`*` for a whole dimension; default: up to 512 KiB),
    /// coded by zstd, zstd:LEVEL or raw [default: zstd]. May be repeated.
    #[arg(long = "array", value_parser = array, value_name = "NAME[:CHUNK[:CODEC]]", help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    arrays: Vec<ArrayColumn>,
    /// Frames per second of clips: feature NAME/fps
    #[arg(long, value_name = "N", help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    fps: Option<f32>,
    /// Coordinates of boxes in `objects`
    #[arg(long, value_enum, default_value_t = Boxes::Xywh, help_heading = headings::BOXES, hide_short_help = true)]
    boxes: Boxes,
    /// Number of the first pixel in boxes of Pascal VOC
    ///
    /// 1, as its own files count, with right and bottom pixels that belong to the box; or 0, as some tools write, where the
    /// numbers are edges. [default: 1, and boxes with a 0 are refused]
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u8).range(0..=1), help_heading = headings::BOXES, hide_short_help = true)]
    first_pixel: u8,
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
    /// Names of keypoints: a JSON file
    ///
    /// An object of `names`, `flip_index` (the number of each point in a mirrored object) and `skeleton` (pairs of numbers from 0 that a
    /// line joins), of which names or `flip_index` must be there. [default: as a COCO file or the data.yaml of YOLO says, else as the
    /// dataset says that the split is added to]
    #[arg(long, value_name = "FILE", value_parser = keypoints::read, help_heading = headings::BOXES, hide_short_help = true)]
    keypoints: Option<Keypoints>,
    /// Images of a COCO file [default: its folder]
    #[arg(long, value_name = "FOLDER", help_heading = headings::SOURCE)]
    images: Option<PathBuf>,
    /// What happens to a JPEG that is cut
    ///
    /// By default it is rejected. With `fill` its file is stored, and decoded to what libjpeg-turbo makes of it where pixels are
    /// needed: what is missing is grey. Loaders need the same option.
    #[arg(long, value_parser = choice::<Truncated>(), default_value = choice::default::<Truncated>(), value_name = "WHAT", help_heading = headings::STORED, hide_short_help = true)]
    truncated: Truncated,
    /// Skip or fail at a bad input
    ///
    /// An input is bad if it cannot be packed.
    #[arg(long, value_enum, default_value_t = OnBadInput::Skip, value_name = "HOW", help_heading = headings::OUTPUT)]
    on_error: OnBadInput,
    /// Publish a split without any records
    ///
    /// Without it, a split of which all inputs were rejected is an error.
    #[arg(long, help_heading = headings::OUTPUT, hide_short_help = true)]
    allow_empty: bool,
    /// Compare files by length only when resuming
    ///
    /// Takes a file for the same input if its length is the same, although it was written again. Without it, contents are
    /// compared where times differ.
    #[arg(long, help_heading = headings::SOURCE, hide_short_help = true)]
    ignore_times: bool,
    /// Longest wait for a process that packs this split
    ///
    /// After the wait, what the other process packed is complete, or the command fails.
    #[arg(long, value_name = "SECONDS", default_value_t = 21600, help_heading = headings::MACHINE, hide_short_help = true)]
    wait: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OnBadInput {
    /// List the input in rejected-<split>.jsonl, continue, exit with status 1
    Skip,
    /// Stop at the first such input, exit with status 1
    Fail,
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
    /// Centre, width, height, as in YOLO
    Cxcywh,
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
    /// Pascal VOC: JPEGImages, Annotations, ImageSets
    Voc,
    /// YOLO of Ultralytics: data.yaml, or its folder
    Yolo,
    /// Images and files of the same names: masks, depths, flow
    Pairs,
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
    /// Files of optical flow.
    Flow,
}

fn column(text: &str) -> Result<(String, ColumnType), String> {
    let parse_type = |text: &str| match text {
        "file" => Some(ColumnType::File),
        "frames" => Some(ColumnType::Frames),
        "flow" => Some(ColumnType::Flow),
        text => DType::from_name(text).map(ColumnType::Values),
    };
    let parts = text.rsplit_once(':').and_then(|(name, text)| Some((name, parse_type(text)?)));
    let types = DType::ALL.map(|dtype| format!("NAME:{}", dtype.name())).join(", ");
    let (name, column_type) = parts.ok_or_else(|| format!("expected {types}, NAME:file, NAME:frames or NAME:flow"))?;
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

impl SourceArguments {
    /// Returns the kind of the source, if it is given.
    pub(crate) fn kind(&self) -> Option<SourceKind> {
        self.from.map(|from| match from {
            From::Folder => SourceKind::Folder,
            From::Clips => SourceKind::Clips,
            From::List => SourceKind::List,
            From::Tfrecord => SourceKind::Tfrecord,
            From::Webdataset => SourceKind::Webdataset,
            From::Parquet => SourceKind::Parquet,
            From::Mds => SourceKind::Mds,
            From::Coco => SourceKind::Coco,
            From::Voc => SourceKind::Voc,
            From::Yolo => SourceKind::Yolo,
            From::Pairs => SourceKind::Pairs,
        })
    }

    /// Sets the options of the library.
    pub(crate) fn apply(&self, options: &mut Options) {
        options.from = self.kind();
        options.map = self.map.clone();
        options.member_key = self.member_key.map(|dot| match dot {
            Dot::FirstDot => MemberKey::FirstDot,
            Dot::LastDot => MemberKey::LastDot,
        });
        options.shards = self.shards.map_or(Shards::Size(self.shard_size), Shards::Count);
        options.seed = (!self.no_shuffle).then_some(self.seed);
        options.classes = self.classes.clone();
        options.arrays = self.arrays.clone();
        for (name, column_type) in self.columns.iter().cloned() {
            match column_type {
                ColumnType::Values(kind) => options.columns.push((name, kind)),
                ColumnType::File => options.files.push(name),
                ColumnType::Frames => options.frames.push(name),
                ColumnType::Flow => options.arrays.push(ArrayColumn::of_flow(name)),
            }
        }
        options.fps = self.fps;
        options.first_pixel = self.first_pixel;
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
            Boxes::Cxcywh => BoxFormat::Cxcywh,
        };
        options.keypoints = self.keypoints.clone();
        options.images = self.images.clone();
        options.truncated = self.truncated;
        options.allow_empty = self.allow_empty;
        options.ignore_times = self.ignore_times;
        options.wait = Duration::from_secs(self.wait);
        options.on_error = match self.on_error {
            OnBadInput::Skip => OnError::Skip,
            OnBadInput::Fail => OnError::Fail,
        };
    }
}
