//! Reads the records of an existing shard in constant memory, through a sliding window over the file. Bytes that the device
//! cannot read are damage of the frames that they touch.

use crate::{Error, Problem};
use shardtool_format::Compression;
use shardtool_format::checksum;
use shardtool_format::frame::{self, Check, FOOTER_BYTES, HEADER_BYTES};
use shardtool_read::{self as read, Access, FileBytes};
use shardtool_store::REFETCHES;
use std::path::{Path, PathBuf};

/// Bytes per read, unless a record is larger.
const WINDOW: u64 = 1 << 20;

/// A shard that is open for reading.
pub(crate) struct Frames {
    path: PathBuf,
    file: FileBytes,
    /// A part of the file, and its offset.
    window: Vec<u8>,
    start: u64,
    /// Bytes before this offset cannot be read, so up to here frames are read without read-ahead.
    narrow: u64,
}

/// The frame at an offset of a shard.
pub(crate) enum FrameAt<'a> {
    /// A good record: its data and their CRC32C.
    Record(&'a [u8], u32),
    /// Damage, and the end of the frame if its length is valid.
    Damaged(Problem, Option<u64>),
}

impl Frames {
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = FileBytes::open(path, Access::Pread).map_err(Error::of_file)?;
        Ok(Frames { path: path.to_owned(), file, window: vec![], start: 0, narrow: 0 })
    }

    /// Returns the length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.len()
    }

    /// Returns the shard's file name.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the compression of the whole file, if any.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn compression(&mut self) -> Result<Option<Compression>, Error> {
        Ok(Compression::detect(self.view(0, HEADER_BYTES).map_err(Error::of_file)?))
    }

    /// Reads the frame at an offset before the end of the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn at(&mut self, offset: u64) -> Result<FrameAt<'_>, Error> {
        if self.file.object().is_some() {
            self.settle(offset)?;
        }
        self.frame(offset)
    }

    /// Requests bytes of a damaged frame again, until two answers are equal: the network may have changed one.
    fn settle(&mut self, offset: u64) -> Result<(), Error> {
        for _ in 0..REFETCHES {
            if matches!(self.frame(offset)?, FrameAt::Record(..)) {
                break;
            }
            let range = self.start..self.start + self.window.len() as u64;
            if range.is_empty() || !self.file.read_again(range, &mut self.window).map_err(Error::of_file)? {
                break;
            }
        }
        Ok(())
    }

    fn frame(&mut self, offset: u64) -> Result<FrameAt<'_>, Error> {
        let left = self.bytes() - offset;
        let header = match self.view(offset, HEADER_BYTES) {
            Ok(header) => header,
            Err(error) => return Self::unreadable(error, None),
        };
        let whole = match frame::whole_length(header, left, offset) {
            Ok(whole) => whole,
            Err(e) => return Ok(FrameAt::Damaged(e.into(), None)),
        };
        let end = Some(offset + whole);
        let frame = match self.view(offset, whole as usize) {
            Ok(frame) => frame,
            Err(error) => return Self::unreadable(error, end),
        };
        Ok(match frame::data(frame, offset, Check::Data) {
            Ok(data) => {
                let stored = frame.last_chunk::<FOOTER_BYTES>().expect("a whole frame");
                FrameAt::Record(data, checksum::unmask(u32::from_le_bytes(*stored)))
            }
            Err(e) => FrameAt::Damaged(e.into(), end),
        })
    }

    fn unreadable<'a>(error: read::Error, end: Option<u64>) -> Result<FrameAt<'a>, Error> {
        if error.is_unreadable() { Ok(FrameAt::Damaged(error.into(), end)) } else { Err(Error::of_file(error)) }
    }

    /// Returns the first offset at or after `from`, which is not 0, with a length that matches its CRC and a frame that
    /// fits the file, or the end of the file. Computes the CRC of eight bytes at each byte.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next_header(&mut self, from: u64) -> Result<u64, Error> {
        let mut frames = read::Frames::new(&self.file, &self.path);
        frames.seek(from - 1);
        Ok(if frames.resync().map_err(Error::of_file)? { frames.position() } else { self.bytes() })
    }

    /// Returns `length` bytes from `offset`, or fewer at the end of the file.
    fn view(&mut self, offset: u64, length: usize) -> Result<&[u8], read::Error> {
        let left = self.bytes() - offset;
        let length = left.min(length as u64);
        let inside = |start: u64, window: &[u8]| {
            offset.checked_sub(start).is_some_and(|skip| skip + length <= window.len() as u64)
        };
        if !inside(self.start, &self.window) {
            let ahead = if offset < self.narrow { length } else { left.min(length.max(WINDOW)) };
            let mut read = self.file.read_into(offset..offset + ahead, &mut self.window);
            if read.as_ref().is_err_and(read::Error::is_unreadable) && ahead > length {
                self.narrow = offset + ahead;
                read = self.file.read_into(offset..offset + length, &mut self.window);
            }
            self.start = offset;
            if let Err(error) = read {
                self.window.clear();
                return Err(error);
            }
        }
        Ok(&self.window[(offset - self.start) as usize..][..length as usize])
    }
}
