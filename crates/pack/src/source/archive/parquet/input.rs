//! The bytes of a Parquet file, read by position.

use super::places::Places;
use crate::input;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// An open file of known length. (The library's own implementation for `File` reads the length again and again, and treats
/// an error as length 0.)
pub(super) struct Input {
    file: Arc<input::Input>,
    length: u64,
    places: Arc<Places>,
}

impl Input {
    /// Reads a file, and tells `places` where its bytes lie.
    ///
    /// # Errors
    /// Those of reading the file's length.
    pub(super) fn new(file: input::Input, places: Arc<Places>) -> io::Result<Self> {
        Ok(Input { length: file.length()?, file: Arc::new(file), places })
    }
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Input {
    type T = BufReader<Position>;

    fn get_read(&self, start: u64) -> Result<BufReader<Position>> {
        Ok(BufReader::new(Position { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Before memory is allocated: the length is the file's claim.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            let text = format!("{length} bytes at {start} of a file of {} bytes", self.length);
            return Err(ParquetError::EOF(text));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        let bytes = Bytes::from(bytes);
        self.places.set_read(start, &bytes);
        Ok(bytes)
    }
}

/// Reads a file from a position on.
pub(super) struct Position {
    file: Arc<input::Input>,
    at: u64,
}

impl Read for Position {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
