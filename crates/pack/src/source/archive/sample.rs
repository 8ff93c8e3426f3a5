//! What a reader hands on: one sample, or why it cannot be had.

use crate::sample::Values;
use crate::{Error, Reason};
use std::borrow::Cow;

/// One sample as its archive has it.
pub(crate) struct Sample<'a> {
    /// Its name in the archive, where samples have names.
    pub(crate) key: Option<Cow<'a, str>>,
    /// The image's file; empty where it was not wanted, `None` where there is none.
    pub(crate) image: Option<&'a [u8]>,
    /// All other fields.
    pub(crate) fields: Vec<(Cow<'a, str>, Values)>,
}

/// A sample and where it stands.
pub(crate) struct VisitedSample<'a> {
    /// From 0 in its file.
    pub(crate) number: u64,
    /// Where it begins in the file, in uncompressed bytes.
    pub(crate) at: u64,
    /// How many uncompressed bytes it takes.
    pub(crate) bytes: u64,
    pub(crate) sample: Result<Sample<'a>, Reason>,
}

/// Takes the samples of a file, in order.
pub(crate) trait SampleVisitor {
    /// Whether the sample at uncompressed byte `at` is wanted whole: then its checksums are checked and its image is
    /// read. Else its fields are enough.
    fn wants_image(&self, at: u64) -> bool;

    /// # Errors
    /// What ends the reading.
    fn item(&mut self, item: VisitedSample<'_>) -> Result<(), Error>;
}
