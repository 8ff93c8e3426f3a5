//! Arguments of `shardtool pack`.

use super::source_arguments::SourceArguments;
use crate::entries::EntriesArgument;
use crate::float_range;
use crate::headings;
use shardtool_decode::FloatRange;
use shardtool_pack::{JpegLayout, Options, Part, PixelStore, Resize, SplitNames};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Pack images into a dataset: class folders, a flat folder, a list, archives, COCO, Pascal VOC, YOLO or images with masks
///
/// The kind of an archive (TFRecord, WebDataset tar, Parquet, Mosaic MDS) is detected from its content. SOURCE is then one
/// file, a folder of files, or a glob in quotes. All fields become features, and each file is written to separate shards.
///
/// A list is a CSV file with a header or a JSONL file; its column `path` names the images, `label` their class, `key`
/// their key, and all other columns become features. JPEG, PNG, WebP, GIF, BMP and TIFF files are stored unchanged
/// by default. To resume a killed pack, run the same command again; a complete split is left as it is.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Folder of images, a list, annotations, or archives
    ///
    /// Also the URL of one list or archive in an object store.
    pub(super) source: PathBuf,
    /// Folder or URL of the dataset
    ///
    /// An existing dataset gets another split.
    pub(super) destination: PathBuf,
    #[command(flatten)]
    from: SourceArguments,
    /// Name of the split [default: from names, else train]
    ///
    /// If files or top folders of the source are named for splits, only those of this name are packed. Without it, each
    /// such name is a split.
    #[arg(long, value_name = "NAME", help_heading = headings::SPLITS)]
    pub(super) split: Option<String>,
    /// Whether names of files and top folders are splits
    #[arg(long, value_enum, default_value_t = NamesArgument::Auto, value_name = "HOW", help_heading = headings::SPLITS, hide_short_help = true)]
    splits: NamesArgument,
    /// What to subtract from labels to get class ids
    ///
    /// For labels of an archive that are numbers. Their names move along.
    #[arg(long, default_value_t = 0, value_name = "N", allow_negative_numbers = true, help_heading = headings::SOURCE_FIELDS, hide_short_help = true)]
    label_offset: i64,
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
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", help_heading = headings::MACHINE)]
    jobs: Option<NonZeroUsize>,
    /// Replace the split
    ///
    /// Replaces a complete split, or an interrupted pack of other inputs. The old split is removed before the new one is
    /// written.
    #[arg(long, help_heading = headings::OUTPUT)]
    force: bool,
    /// Write to a store without versions of objects
    ///
    /// For a store that does not compare versions of objects: nothing else may write to DESTINATION.
    #[arg(long, help_heading = headings::MACHINE, hide_short_help = true)]
    single_writer: bool,
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

/// Whether names of files and folders are those of splits.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum NamesArgument {
    /// If all of them are; refused where some are and others are not
    Auto,
    /// Yes: each top folder is a split, also if its name is not a known one
    Names,
    /// No: lists of images, such as train.txt among the files of images with masks or depths, whatever folders are named
    Lists,
    /// No: one split, and top folders are classes
    None,
}

impl NamesArgument {
    pub(crate) fn split_names(self) -> SplitNames {
        match self {
            NamesArgument::Auto => SplitNames::Auto,
            NamesArgument::Names => SplitNames::Names,
            NamesArgument::Lists => SplitNames::Lists,
            NamesArgument::None => SplitNames::Ignored,
        }
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Layout {
    /// Byte for byte
    Keep,
    /// Transcode losslessly: optimal Huffman tables, no metadata, one sequential scan instead of progressive ones, so that
    /// a crop decodes only its rows
    Optimize,
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
        self.from.apply(&mut options);
        options.split = self.split.clone();
        options.split_names = self.splits.split_names();
        options.label_offset = self.label_offset;
        options.resize = self.resize_shorter.map(Resize::Shorter).or(self.max_side.map(Resize::MaxSide));
        options.quality = self.quality;
        options.float_range = self.float_range;
        options.strip_metadata = self.strip_metadata;
        options.pixels = self.pixels.unwrap_or(PixelStore::Encoded);
        options.jpeg = match self.jpeg {
            Layout::Keep => JpegLayout::Keep,
            Layout::Optimize => JpegLayout::Optimize,
        };
        options.jobs = self.jobs.unwrap_or(options.jobs);
        options.force = self.force;
        options.single_writer = self.single_writer;
        options.entry_points = self.entries.written();
        options.sha256 = self.sha256;
        options
    }
}
