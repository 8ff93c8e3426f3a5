//! Encoders written from the specifications of their formats, apart from the code that they test.

pub(crate) mod crc;
pub(crate) mod deflate;
pub(crate) mod example;
pub(crate) mod index;
pub(crate) mod manifest;
pub(crate) mod zstd;

use crc::{crc32c, masked};

/// Returns a frame of a TFRecord file.
pub(crate) fn frame(data: &[u8]) -> Vec<u8> {
    [&header(data.len() as u64)[..], data, &masked(crc32c(data)).to_le_bytes()].concat()
}

/// Returns the first twelve bytes of a frame.
pub(crate) fn header(length: u64) -> [u8; 12] {
    let length = length.to_le_bytes();
    let mut header = [0; 12];
    header[..8].copy_from_slice(&length);
    header[8..].copy_from_slice(&masked(crc32c(&length)).to_le_bytes());
    header
}
