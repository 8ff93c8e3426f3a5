//! The frames of a TFRecord file in order, found by their headers alone.

use crate::bytes::FileBytes;
use crate::{Error, Result};
use shardtool_format as format;
use shardtool_format::{Compression, frame};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

/// Iterates over the byte ranges of a file's frames and reads their headers only. Ends after an error;
/// [`Frames::resync`] continues after the damage.
#[derive(Debug)]
pub struct Frames<'a> {
    bytes: &'a FileBytes,
    path: &'a Path,
    at: u64,
    count: u64,
    failed: bool,
}

/// Bytes that [`Frames::resync`] searches first, and at most at a time: the next frame is near more often than not.
const WINDOW: Range<u64> = 1 << 14..1 << 20;

/// Bytes that [`Frames::resync`] skips if they cannot be read: what a system with small pages reads at once. (With larger
/// pages, their parts are skipped one after the other.)
const BLOCK: u64 = 4096;

impl<'a> Frames<'a> {
    /// Starts at the beginning of the file. `path` is for errors.
    pub fn new(bytes: &'a FileBytes, path: &'a Path) -> Self {
        Frames { bytes, path, at: 0, count: 0, failed: false }
    }

    /// Returns the offset of the next frame or, after an error, of the damage.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Continues at offset `at`, which is the start of a frame.
    pub fn seek(&mut self, at: u64) {
        (self.at, self.failed) = (at, false);
    }

    /// Finds the next frame after the damage and continues there. Skips blocks that cannot be read. Returns `false` if no
    /// frame follows.
    ///
    /// # Errors
    /// [`Error::Unreadable`] for errors of the system that concern the whole file.
    pub fn resync(&mut self) -> Result<bool> {
        const HEADER: u64 = frame::HEADER_BYTES as u64;
        let len = self.bytes.len();
        // Before `narrow` lies a block that cannot be read, and only the blocks of one header are read at a time.
        let (mut from, mut narrow, mut window) = (self.at + 1, 0, WINDOW.start);
        while from < len {
            // A header is enough to find a frame, so a window may be shorter than the frame.
            let end = if from < narrow { (from + HEADER).next_multiple_of(BLOCK) } else { from + window };
            let end = end.min(len);
            match self.bytes.with(from..end, |window| frame::resync(window, len - from).ok_or(())) {
                Ok(Ok(found)) => {
                    self.seek(from + found as u64);
                    return Ok(true);
                }
                Ok(Err(())) if end == len => break,
                Ok(Err(())) => (from, window) = (end - HEADER + 1, WINDOW.end.min(2 * window)),
                Err(Error::Unreadable { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) if !error.is_unreadable() => return Err(error),
                Err(_) if from < narrow => from = (from + 1).next_multiple_of(BLOCK),
                Err(_) => narrow = end,
            }
        }
        Ok(false)
    }

    fn frame(&self) -> Result<Range<u64>> {
        let (offset, left) = (self.at, self.bytes.len() - self.at);
        let header = offset..offset + left.min(frame::HEADER_BYTES as u64);
        let length = self.bytes.with(header, |header| {
            frame::whole_length(header, left, offset).map_err(|source| (compression(&source, header), source))
        });
        match length.map_err(|error| error.of_record(self.count, || None))? {
            Ok(length) => Ok(offset..offset + length),
            Err((Some(compression), _)) => Err(Error::CompressedRecords { path: self.path.to_owned(), compression }),
            Err((None, source)) => Err(self.damaged(source)),
        }
    }

    fn damaged(&self, source: format::Error) -> Error {
        Error::Record { path: self.path.to_owned(), record: self.count, key: None, source }
    }
}

/// Returns how a file is compressed as a whole, if that explains the damage of its first frame, whose header is given.
pub(crate) fn compression(damage: &format::Error, header: &[u8]) -> Option<Compression> {
    matches!(damage, format::Error::LengthCrc { offset: 0, .. }).then(|| Compression::detect(header)).flatten()
}

impl Iterator for Frames<'_> {
    type Item = Result<Range<u64>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.at >= self.bytes.len() {
            return None;
        }
        let frame = self.frame();
        match &frame {
            Ok(range) => (self.at, self.count) = (range.end, self.count + 1),
            Err(_) => self.failed = true,
        }
        Some(frame)
    }
}
