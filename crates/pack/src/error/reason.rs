//! Why one input is rejected, or one record not exported.

use super::{ArrayRefusal, fault};
use shardtool_format::manifest::DType;
use std::io;

/// An error of a library that this crate uses, such as a parser.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why an input cannot be packed, or a record not exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are not an image of a known format, or the image exceeds the limits.
    #[error(transparent)]
    Image(#[from] shardtool_decode::Error),
    /// Found by an earlier run of the same command, which completed the destination.
    #[error("{text}")]
    Earlier {
        /// What that run reported.
        text: String,
    },
    /// A sample that a program could not write.
    #[error("{text}")]
    Sample {
        /// What the program reports.
        text: String,
    },
    /// An empty file.
    #[error("an empty file: 0 bytes")]
    Empty,
    /// A symbolic link to it, or a folder on the way to it, cannot be followed.
    #[error("cannot be examined")]
    Stat(#[source] io::Error),
    /// The operating system cannot read it.
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    /// The file does not exist, or a symbolic link has no target.
    #[error("no such file, or a symbolic link without a target; restore it, or remove it from the source")]
    Missing,
    /// A file that an index cannot name, since it is not in the folder of the source.
    #[error(
        "{file} is not in {}, to which the names in an index are relative: write the index to a folder that both are in (`--out`), or pack \
         the source",
        folder.display()
    )]
    OutsideSource {
        /// The file.
        file: String,
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// A file whose name an index cannot hold.
    #[error(
        "an index holds no names with control characters, or of more than 4096 bytes; rename {file:?}, or pack the source"
    )]
    SourceName {
        /// The file.
        file: String,
    },
    /// A file that would not be opened without the user's word.
    #[error(transparent)]
    ForeignSource(Box<shardtool_read::Error>),
    /// A symbolic link to a folder that contains it.
    #[error("a symbolic link back to a folder that contains it; remove the link")]
    LinkLoop,
    /// A device, a socket, a pipe, or a folder in place of an image.
    #[error("not a regular file")]
    NotAFile,
    /// A file next to class folders.
    #[error("a file next to class folders has no class; move it into a class folder")]
    OutsideClass,
    /// A file named in one of the sample's columns.
    #[error("the file named in column `{column}`")]
    File {
        /// The column.
        column: String,
        /// What is wrong with the file.
        #[source]
        reason: Box<Reason>,
    },
    /// An array that cannot be stored.
    #[error(transparent)]
    Array(#[from] ArrayRefusal),
    /// A frame of a clip.
    #[error("frame `{file}`")]
    Frame {
        /// Its file name.
        file: String,
        /// What is wrong with it.
        #[source]
        reason: Box<Reason>,
    },
    /// A frame that is not like the first one of its clip.
    #[error("{found}, but the first frame is {expected}; decode all frames of a clip with the same size and format")]
    FrameDiffers {
        /// Size and format of the frame.
        found: String,
        /// Those of the first frame.
        expected: String,
    },
    /// A clip without a frame.
    #[error("a clip without a frame")]
    NoFrames,
    /// The frames of a clip changed after they were listed.
    #[error("its frames changed after they were listed; run the same command again")]
    FramesChanged,
    /// A file next to folders, in a source of clips.
    #[error("a file next to folders belongs to no clip; move it into a folder of frames")]
    OutsideClip,
    /// A clip next to class folders.
    #[error("a clip next to class folders has no class; move it into a class folder")]
    ClipOutsideClass,
    /// A row or sample without a label in a source with labels.
    #[error("it has no label, but other samples have one")]
    NoLabel,
    /// A sample of an archive without an image.
    #[error("no image among its fields{}; name the image's field: --map image=FIELD", listed(.fields))]
    NoImage {
        /// The fields that it has.
        fields: Vec<String>,
    },
    /// A label that is not a class id.
    #[error("label `{label}`{} is not a class id{}", minus(*.offset), if .label.starts_with('-') { "; if the samples have no \
        labels: --map label=none" } else { "" })]
    Label {
        /// The label as stored.
        label: String,
        /// What is subtracted from labels.
        offset: i64,
    },
    /// A class name that is not in the list of names.
    #[error("class `{class}` is not among the class names")]
    Class {
        /// The class.
        class: String,
    },
    /// A field whose type differs from its column's.
    #[error("`{column}` is not {}, the column's type", .expected.name())]
    Value {
        /// The column.
        column: String,
        /// Its type.
        expected: DType,
    },
    /// Two values of a sample have the same name, such as `a/b` and the member `b` of `a`.
    #[error("two values are named `{name}`: rename one, since a record has one feature of a name")]
    TwoValues {
        /// The name.
        name: String,
    },
    /// Objects of an image that cannot be converted to boxes.
    #[error("`{member}` of its objects: expected {expected}")]
    Objects {
        /// The member.
        member: String,
        /// What is expected.
        expected: &'static str,
    },
    /// Objects with another number of keypoints than the dataset describes.
    #[error("its objects have {found} keypoints each; those of the dataset have {expected}")]
    Points {
        /// Points of each object.
        found: i64,
        /// Points that are described.
        expected: usize,
    },
    /// A file of annotations, of Pascal VOC or YOLO, that says something else than it may.
    #[error("`{file}`{}: {problem}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Annotation {
        /// The file, from the folder of the source.
        file: String,
        /// Line, from 1.
        line: Option<u64>,
        /// What is wrong.
        problem: String,
    },
    /// A sample whose members are not next to each other in the tar.
    #[error(
        "its members are not adjacent in the tar, so that they are not one sample; write the members in the order of \
        their names (`tar --sort=name`)"
    )]
    NotAdjacent,
    /// An annotated size that is neither the image's size nor that of a copy.
    #[error(
        "its annotations are for an image of {} x {}, and it has {} x {} (as coded) or {} x {} (as shown): correct `width` and \
         `height`, or say which image its coordinates refer to with --annotated coded|upright",
        found.0, found.1, coded.0, coded.1, shown.0, shown.1
    )]
    AnnotatedSize {
        /// Width and height that the annotations give.
        found: (u32, u32),
        /// Those of the image as coded.
        coded: (u32, u32),
        /// Those of the image with its EXIF orientation applied.
        shown: (u32, u32),
    },
    /// An image with an EXIF orientation, whose annotations may refer to it as coded or as shown.
    #[error(
        "its EXIF orientation is {orientation}, and its boxes may refer to the image as coded or as shown: say \
         which with --annotated coded|upright, or give `width` and `height` of the annotated image"
    )]
    AnnotatedFrame {
        /// The orientation, 2 to 8.
        orientation: u32,
    },
    /// A panoptic map whose ids are not those of the segments.
    #[error(
        "in `image/panoptic`, the id {id} {problem}: correct the PNG, which codes ids as R + 256 G + 65,536 B, or `segments_info`"
    )]
    Segments {
        /// The id.
        id: i64,
        /// What is wrong.
        problem: &'static str,
    },
    /// A mask of an image with an EXIF orientation, which may show it as coded or as shown.
    #[error(
        "its EXIF orientation is {orientation}, and `{column}` may be a mask of the image as coded or as shown: if it is as coded, say so \
         with --annotated coded; else turn the mask, or the image's pixels, since masks are stored as they are"
    )]
    MaskFrame {
        /// The feature.
        column: String,
        /// The orientation, 2 to 8.
        orientation: u32,
    },
    /// Coordinates in another unit than the options say.
    #[error("`{column}`: {found}; say their unit with --box-unit pixel|fraction")]
    Unit {
        /// The feature.
        column: String,
        /// What they are.
        found: &'static str,
    },
    /// A box that is inverted, empty, not finite, or outside of the image.
    #[error(
        "box {number} of its objects, {corners:?} (left, top, right, bottom), {problem} of {width} x {height}: correct it, or \
        say its format with --boxes xywh|xyxy"
    )]
    BoxOutside {
        /// The object, from 0.
        number: usize,
        /// Left, top, right, bottom.
        corners: [f32; 4],
        /// What is wrong.
        problem: &'static str,
        /// Width of the annotated image.
        width: f64,
        /// Its height.
        height: f64,
    },
    /// A file that is not a mask of the sample's image.
    #[error(
        "`{column}` is not a mask of the image; expected a grey or palette PNG, or a grey TIFF, of the size of the image as coded, \
         and for `panoptic` an RGB PNG of ids. Give other bytes a name that does not end in `mask` or `panoptic`"
    )]
    Mask {
        /// The feature.
        column: String,
        /// What is wrong with it.
        source: shardtool_decode::Error,
    },
    /// Another image of a sample, such as a mask, or an array of its pixels, which would keep a size or orientation that its image loses.
    #[error(
        "`{column}` is an image or an array of its pixels, which would keep its size and orientation while the sample's image is resized or turned; \
         pack without resizing and raw pixels, and resize when loading"
    )]
    OldSize {
        /// The feature.
        column: String,
    },
    /// A field that occurs twice in one sample.
    #[error("it has the field `{field}` twice")]
    RepeatedField {
        /// The field.
        field: String,
    },
    /// A link in an archive that leads to nothing in it.
    #[error("`{member}` is a link to `{target}`, which is not a file of the archive; store the file itself")]
    Link {
        /// The path of the link.
        member: String,
        /// The path that it names.
        target: String,
    },
    /// A member of an archive that is neither a file nor a link.
    #[error("`{member}` is a device, a FIFO or a sparse file in the archive; store it as a plain file")]
    NoFile {
        /// The path of the member.
        member: String,
    },
    /// A field that is not JSON.
    #[error("field `{field}` is not JSON")]
    Json {
        /// The field.
        field: String,
        /// The parser's error.
        source: BoxError,
    },
    /// A damaged record, or one that is not an Example.
    #[error(transparent)]
    Record(#[from] shardtool_format::Error),
    /// A truncated archive.
    #[error(
        "truncated: the file ends at byte {found}, but the sample ends at byte {needed}; the rest of the file is lost"
    )]
    Truncated {
        /// Where the sample ends.
        needed: u64,
        /// Where the file ends.
        found: u64,
    },
    /// A header of a tar's member that exceeds the limit: a GNU long name or a pax header.
    #[error("a GNU long name or pax header of more than {limit} bytes; the rest of the file is lost")]
    LongHeader {
        /// The limit, in bytes.
        limit: u64,
    },
    /// A sample that exceeds the limit on an image's bytes.
    #[error("{bytes} bytes, more than the limit of {limit} for one sample")]
    SampleTooLong {
        /// Bytes of the sample.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An image of which the archive holds only the path.
    #[error("the file holds only the path `{path}` of the image; pack the image files, or embed them in the file")]
    Elsewhere {
        /// The path.
        path: String,
    },
    /// A damaged Parquet file.
    #[cfg(feature = "parquet")]
    #[error("the file is damaged; the rest of it is lost")]
    Parquet(#[source] BoxError),
    /// A Parquet file with a feature that this program does not read.
    #[cfg(feature = "parquet")]
    #[error(
        "the file is not damaged, but this program cannot read it; write it again with another compression, such as zstd"
    )]
    ParquetFeature(#[source] BoxError),
    /// A length in a TFRecord file that does not match its CRC: where the next record begins is not known.
    #[error("the rest of the file is lost with it: {}", rest(*.bytes, *.records))]
    LostRest {
        /// What is wrong with the length.
        #[source]
        damage: shardtool_format::Error,
        /// Bytes from there to the end of the file; `None` if it is compressed.
        bytes: Option<u64>,
        /// The records in these bytes that are not damaged, at least.
        records: Option<u64>,
    },
    /// A record of a dataset that cannot be read.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// Damage that verification found in a dataset.
    #[error("{}", .0.message)]
    Damaged(Box<shardtool_read::verify::Finding>),
    /// A record of a dataset without an image.
    #[error("it has no image")]
    WithoutImage,
    /// A key that is not a relative path, or leads out of the destination.
    #[error("key `{key}` is not a relative path inside OUT")]
    KeyOutside {
        /// The key.
        key: String,
    },
    /// A list of byte strings that are not UTF-8, in an export to a format that has only text.
    #[error("field `{field}` is a list of byte strings that are not UTF-8")]
    NoText {
        /// The field.
        field: String,
    },
    /// A number that JSON does not have, in an export to a format that has only JSON.
    #[error("field `{field}` is NaN or infinite, which JSON does not have: export to Parquet or TFRecord")]
    NotFinite {
        /// The field.
        field: String,
    },
    /// The file of an exported record cannot be created.
    #[error("its file cannot be created")]
    CreateFile(#[source] io::Error),
    /// A shard of which an index says something else.
    #[error("index.json says {listed} {what}, but the shard has {found}")]
    Listed {
        /// What is counted: `samples` or `bytes`.
        what: &'static str,
        /// Their number in the index.
        listed: u64,
        /// Their number in the shard.
        found: u64,
    },
    /// An archive whose offsets decrease.
    #[error(
        "the file is damaged: expected a sample at byte {at} or later, found offset {offset}; the rest of it is lost"
    )]
    Offset {
        /// The smallest valid offset.
        at: u64,
        /// The offset found.
        offset: u64,
    },
    /// A value that does not follow its column's encoding, or an image that cannot be converted.
    #[error("column `{column}`: not a valid `{encoding}` value, or an image that cannot be converted")]
    Encoding {
        /// The column.
        column: String,
        /// The encoding, as the archive names it.
        encoding: String,
    },
    /// A file name that is not UTF-8, so that it cannot be a key.
    #[error("its name is not UTF-8; rename it")]
    NotUtf8,
    /// The file changed after it was listed.
    #[error("the file changed: {listed} bytes when listed, {found} when read; run the same command again")]
    Changed {
        /// Bytes when it was listed.
        listed: u64,
        /// Bytes when it was read, at most one more than listed.
        found: u64,
    },
    /// The file was written again after it was listed, with the same length.
    #[error(
        "the file was written again after the plan was stored; plan again with --plan-only --force, or with --ignore-times if \
         only times have changed"
    )]
    WrittenAgain,
    /// An image that is too long for an index.
    #[error("an image of {bytes} bytes: a record holds fewer than 4 GiB")]
    TooLong {
        /// Bytes of the image.
        bytes: u64,
    },
}

/// The first fields of a sample, in parentheses.
fn listed(fields: &[String]) -> String {
    let shown: Vec<_> = fields.iter().take(12).map(|field| format!("`{field}`")).collect();
    if fields.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

fn rest(bytes: Option<u64>, records: Option<u64>) -> String {
    match (bytes, records) {
        (Some(bytes), Some(records)) => format!("{bytes} bytes, with at least {records} good records"),
        _ => "an unknown number of records, since the file is compressed".to_owned(),
    }
}

fn minus(offset: i64) -> String {
    if offset == 0 { String::new() } else { format!(" minus the offset {offset}") }
}

impl Reason {
    /// Returns the reason for an error of `stat`.
    pub(crate) fn of_stat(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Reason::Missing,
            _ => Reason::Stat(error),
        }
    }

    /// Returns the reason for an error of `open`.
    pub(crate) fn of_open(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Reason::Missing,
            _ => Reason::Unreadable(error),
        }
    }

    /// Returns the system's code if the reason is an error of the system.
    pub(super) fn system_code(&self) -> Option<i32> {
        match self {
            Reason::Stat(error) | Reason::CreateFile(error) => fault::of_name(error),
            Reason::Unreadable(error) => fault::of_file(error),
            #[cfg(feature = "parquet")]
            Reason::Parquet(error) => fault::of_file(&**error),
            // Unreadable bytes of a dataset cost their record, whatever the system says about them.
            Reason::Read(error) if !error.is_bad_sample() => fault::of_file(error),
            Reason::File { reason, .. } | Reason::Frame { reason, .. } => reason.system_code(),
            _ => None,
        }
    }
}
