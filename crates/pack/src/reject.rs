//! Inputs that cannot be packed: one line of JSON each, with the reason.

use crate::Error;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use thiserror::Error as ThisError;

/// An input that cannot be packed, and why.
#[derive(Debug)]
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
    /// A row of a labelled list without a label.
    #[error("the list gives it no label, though it labels others")]
    NoLabel,
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

impl Reason {
    /// What an error of `stat` or `open` means.
    pub(crate) fn of_stat(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Reason::Missing,
            _ => Reason::Unreadable(error),
        }
    }
}

/// The rejections as JSON lines: `{"input": …, "reason": …}`.
pub(crate) fn to_json_lines(rejections: &[Rejection]) -> Vec<u8> {
    let mut out = vec![];
    for Rejection { input, reason } in rejections {
        let text = |text: &str| serde_json::Value::from(text);
        writeln!(out, "{{\"input\": {}, \"reason\": {}}}", text(input), text(&reason.to_string())).expect("into a Vec");
    }
    out
}

/// How many rejections a file lists; 0 where there is no such file.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn count(file: &Path) -> Result<u64, Error> {
    match File::open(file) {
        Ok(file) => Ok(BufReader::new(file).split(b'\n').count() as u64),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(Error::io("read", file)(e)),
    }
}
