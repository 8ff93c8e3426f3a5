//! Why one input cannot be packed, or one record not exported.

use shardtool_format::manifest::Kind;
use std::io;
use thiserror::Error as ThisError;

/// An input that cannot be packed, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct Rejection {
    /// The path from the source's root, or the key.
    pub input: String,
    /// Why.
    pub reason: Reason,
}

/// Why an input cannot be packed.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Reason {
    /// The bytes are no image that can be read, or one beyond the limits.
    #[error(transparent)]
    Image(#[from] shardtool_decode::Error),
    /// A file of no bytes.
    #[error("an empty file: 0 bytes")]
    Empty,
    /// The operating system refuses to read it.
    #[error("cannot be read: {0}")]
    Unreadable(io::Error),
    /// No such file, or a link that leads nowhere.
    #[error("no such file, or a symbolic link that leads nowhere; restore it, or remove it from the source")]
    Missing,
    /// Symbolic links that lead to a folder above themselves.
    #[error("a symbolic link back to a folder that contains it; remove the link")]
    LinkLoop,
    /// Not a file: a device, a socket, a pipe, or a folder where a list names an image.
    #[error("not a regular file")]
    NotAFile,
    /// A file beside class folders.
    #[error("a file beside class folders has no class; move it into one")]
    OutsideClass,
    /// A file that one of its columns names.
    #[error("the file of its column `{column}`: {reason}")]
    File {
        /// The column.
        column: String,
        /// What is wrong with the file.
        reason: Box<Reason>,
    },
    /// A row or sample without a label, where others have one.
    #[error("it has no label, though others have one")]
    NoLabel,
    /// A sample without an image, in an archive.
    #[error("no image among its fields{}; say which it is: --map image=FIELD", listed(.fields))]
    NoImage {
        /// The fields that it has.
        fields: Vec<String>,
    },
    /// A label that is no class id.
    #[error("its label `{label}`{} is not the id of a class", less(*.offset))]
    Label {
        /// The label as stored.
        label: String,
        /// What is subtracted from labels.
        offset: i64,
    },
    /// A class that none of the names is.
    #[error("its class `{class}` is not among the names of classes")]
    Class {
        /// The class.
        class: String,
    },
    /// A field that is not of its column's type.
    #[error("its `{column}` is not {}, the column's type", .expected.name())]
    Value {
        /// The column.
        column: String,
        /// Its type.
        expected: Kind,
    },
    /// Objects of an image that cannot become boxes.
    #[error("its `{member}` of objects: expected {expected}")]
    Objects {
        /// The member.
        member: String,
        /// What is expected.
        expected: &'static str,
    },
    /// A field that one sample has twice.
    #[error("it has the field `{field}` twice")]
    RepeatedField {
        /// The field.
        field: String,
    },
    /// A field that is not JSON.
    #[error("its field `{field}` is not JSON: {source}")]
    Json {
        /// The field.
        field: String,
        /// The parser's account.
        source: serde_json::Error,
    },
    /// A damaged record, or one that is no Example.
    #[error(transparent)]
    Record(#[from] shardtool_format::Error),
    /// An archive that ends too soon.
    #[error("the file ends at byte {found}, the sample at byte {needed}; what follows in it is lost")]
    Truncated {
        /// Where the sample ends.
        needed: u64,
        /// Where the file ends.
        found: u64,
    },
    /// A sample that is larger than the limit on an image's bytes.
    #[error("{bytes} bytes, more than the limit of {limit} for one sample")]
    SampleTooLong {
        /// Bytes of the sample.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An image that is not in its archive.
    #[error("its image is not in the file, only its path `{path}`; pack the images themselves, or embed them")]
    Elsewhere {
        /// The path.
        path: String,
    },
    /// A damaged Parquet file.
    #[cfg(feature = "parquet")]
    #[error("the file is damaged: {0}; what follows in it is lost")]
    Parquet(parquet::errors::ParquetError),
    /// A record of a dataset that cannot be read.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// A record of a dataset that holds no image.
    #[error("it holds no image")]
    WithoutImage,
    /// Bytes that are no text, where the other format has only text.
    #[error("its `{field}` is a list of bytes that are no text")]
    NoText {
        /// The field.
        field: String,
    },
    /// A name that the file system refuses.
    #[error("its file cannot be made: {0}")]
    Place(io::Error),
    /// An archive whose offsets go back.
    #[error("the file is damaged: a sample at byte {offset}, before byte {at}; what follows in it is lost")]
    Offset {
        /// Where the sample must begin, or later.
        at: u64,
        /// Where its offset says.
        offset: u64,
    },
    /// A value that is not of its column's encoding.
    #[error("its `{column}` is not of encoding `{encoding}`, or not one that an image can be made of")]
    Encoding {
        /// The column.
        column: String,
        /// The encoding, as the archive names it.
        encoding: String,
    },
    /// A name that no key can be made from.
    #[error("its name is not UTF-8; rename it")]
    NotUtf8,
    /// The file is not what was listed.
    #[error("{listed} bytes when listed, {found} when read: it changed meanwhile; run the same command again")]
    Changed {
        /// Bytes when it was listed.
        listed: u64,
        /// Bytes when it was read, at most one more than listed.
        found: u64,
    },
    /// An image that the index cannot describe.
    #[error("an image of {bytes} bytes: a record holds fewer than 4 GiB")]
    TooLong {
        /// Bytes of the image.
        bytes: u64,
    },
}

/// The first few of the fields that a sample has.
fn listed(fields: &[String]) -> String {
    let shown: Vec<_> = fields.iter().take(12).map(|field| format!("`{field}`")).collect();
    if fields.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) }
}

fn less(offset: i64) -> String {
    if offset == 0 { String::new() } else { format!(", less the offset {offset},") }
}

impl Reason {
    /// What an error of `stat` or `open` means.
    pub(crate) fn of_stat(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Reason::Missing,
            _ => Reason::Unreadable(error),
        }
    }
}
