//! The item that a format's reader delivers: a sample, or the reason why it is lost.

use crate::sample::Values;
use crate::{Error, Reason};
use std::borrow::Cow;

/// One sample as stored in its archive.
pub(crate) struct Sample<'a> {
    /// Its name in the archive, if samples have names.
    pub(crate) key: Option<Cow<'a, str>>,
    /// The image file; empty if it was not requested, `None` if the sample has no image.
    pub(crate) image: Option<&'a [u8]>,
    /// The name of the image's file, if only that identifies its format (TGA).
    pub(crate) image_name: Option<&'a str>,
    /// A hash of the names of its members, if it consists of members of a tar; otherwise 0.
    pub(crate) members: u64,
    /// All other fields.
    pub(crate) fields: Vec<(Cow<'a, str>, Values)>,
    /// Byte strings of the sample that lie in the file as they are.
    pub(crate) stored: Vec<StoredValue<'a>>,
}

/// A byte string, and where it lies in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredValue<'a> {
    pub(crate) bytes: &'a [u8],
    /// The parts of it that lie in the file, in order.
    pub(crate) parts: Vec<StoredPart>,
}

/// Bytes that lie in a file as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredPart {
    /// Offset in the value.
    pub(crate) at: usize,
    pub(crate) length: usize,
    /// Offset in the file.
    pub(crate) offset: u64,
}

impl<'a> StoredValue<'a> {
    /// Makes a value that lies in one piece at an offset.
    pub(crate) fn whole(offset: u64, bytes: &'a [u8]) -> Self {
        StoredValue { bytes, parts: vec![StoredPart { at: 0, length: bytes.len(), offset }] }
    }
}

/// A sample and its position in the file.
pub(crate) struct VisitedSample<'a> {
    /// Number of the sample in its file, from 0.
    pub(crate) number: u64,
    /// Position in the file, in uncompressed bytes.
    pub(crate) at: u64,
    /// Length in uncompressed bytes.
    pub(crate) bytes: u64,
    pub(crate) sample: Result<Sample<'a>, Reason>,
}

/// Receives the samples of a file, in order.
pub(crate) trait SampleVisitor {
    /// Returns whether the sample at uncompressed byte `at` is needed with its image. If not, the reader may skip the
    /// image and the checksums.
    fn needs_image(&self, at: u64) -> bool;

    /// Returns whether it is needed where byte strings lie in the file. If not, the reader may leave it out.
    fn needs_places(&self) -> bool;

    /// Receives a sample.
    ///
    /// # Errors
    /// Any error ends the reading.
    fn item(&mut self, item: VisitedSample<'_>) -> Result<(), Error>;
}
