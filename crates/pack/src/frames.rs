//! Reads the records of an existing shard in constant memory, through a sliding window over the file.

use crate::Error;
use shardtool_format as format;
use shardtool_format::Compression;
use shardtool_format::checksum;
use shardtool_format::frame::{self, Check, FOOTER_BYTES, HEADER_BYTES};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes per read, unless a record is larger.
const WINDOW: usize = 1 << 20;

/// A shard that is open for reading.
pub(crate) struct Frames {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// A part of the file, and its offset.
    window: Vec<u8>,
    start: u64,
}

/// The frame at an offset of a shard.
pub(crate) enum FrameAt<'a> {
    /// A good record: its data and their CRC32C.
    Record(&'a [u8], u32),
    /// Damage, and the end of the frame if its length is valid.
    Damaged(format::Error, Option<u64>),
}

impl Frames {
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::io("read", path))?;
        let bytes = file.metadata().map_err(Error::io("read", path))?.len();
        Ok(Frames { path: path.to_owned(), file, bytes, window: vec![], start: 0 })
    }

    /// Returns the length of the file.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
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
        Ok(Compression::detect(self.view(0, HEADER_BYTES)?))
    }

    /// Reads the frame at an offset before the end of the file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn at(&mut self, offset: u64) -> Result<FrameAt<'_>, Error> {
        let left = self.bytes - offset;
        let whole = match frame::whole_length(self.view(offset, HEADER_BYTES)?, left, offset) {
            Ok(whole) => whole,
            Err(e) => return Ok(FrameAt::Damaged(e, None)),
        };
        let frame = self.view(offset, whole as usize)?;
        Ok(match frame::data(frame, offset, Check::Data) {
            Ok(data) => {
                let stored = frame.last_chunk::<FOOTER_BYTES>().expect("a whole frame");
                FrameAt::Record(data, checksum::unmask(u32::from_le_bytes(*stored)))
            }
            Err(e) => FrameAt::Damaged(e, Some(offset + whole)),
        })
    }

    /// Returns the first offset at or after `from` with a length that matches its CRC and a frame that fits the file,
    /// or the end of the file. Computes the CRC of eight bytes at each byte.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn next_header(&mut self, from: u64) -> Result<u64, Error> {
        let end = self.bytes;
        let mut offset = from;
        while offset < end {
            let view = self.view(offset, WINDOW)?;
            if let Some(at) = frame::resync(view, end - offset) {
                return Ok(offset + at as u64);
            }
            match (view.len() + 1).checked_sub(HEADER_BYTES) {
                Some(passed) if passed > 0 => offset += passed as u64,
                _ => break,
            }
        }
        Ok(end)
    }

    /// Returns `length` bytes from `offset`, or fewer at the end of the file.
    fn view(&mut self, offset: u64, length: usize) -> Result<&[u8], Error> {
        let length = (self.bytes - offset).min(length as u64) as usize;
        let inside = |start: u64, window: &[u8]| {
            offset.checked_sub(start).is_some_and(|skip| skip + length as u64 <= window.len() as u64)
        };
        if !inside(self.start, &self.window) {
            let wanted = (self.bytes - offset).min(length.max(WINDOW) as u64) as usize;
            self.window.resize(wanted, 0);
            self.file.read_exact_at(&mut self.window, offset).map_err(|e| self.shrunk(e))?;
            self.start = offset;
        }
        Ok(&self.window[(offset - self.start) as usize..][..length])
    }

    fn shrunk(&self, e: io::Error) -> Error {
        Error::io("read", &self.path)(e)
    }
}
