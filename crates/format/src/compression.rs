//! Compression of a whole TFRecord file, detected from its first bytes.

use std::fmt;

use crate::frame;

/// How a TFRecord file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952), TensorFlow's `GZIP`.
    Gzip,
    /// zlib (RFC 1950), TensorFlow's `ZLIB`.
    Zlib,
}

impl Compression {
    /// Detects the compression of a file from its first bytes: `start` holds [`frame::HEADER_BYTES`] or more, or the whole
    /// file. Returns `None` for a file that begins with a valid frame header, since a length may begin with the same
    /// two bytes as a compressed file.
    ///
    /// ```
    /// use shardtool_format::{Compression, frame};
    /// assert_eq!(Compression::detect(b"\x78\x9c and deflated data"), Some(Compression::Zlib));
    /// assert_eq!(Compression::detect(&frame::header(0x9c78)), None);
    /// ```
    pub fn detect(start: &[u8]) -> Option<Self> {
        match start {
            _ if frame::begins(start) => None,
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            // The four headers of a 32 KiB window without a preset dictionary.
            [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some(Compression::Zlib),
            _ => None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zlib => "zlib",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every zlib header that the specification names, and those that it does not.
    #[test]
    fn detects_the_compressions_of_the_specification() {
        for second in 0..=255 {
            let zlib = [0x01, 0x5e, 0x9c, 0xda].contains(&second).then_some(Compression::Zlib);
            assert_eq!(Compression::detect(&[0x78, second, 0, 0]), zlib, "{second:02x}");
        }
        assert_eq!(Compression::detect(&[0x1f, 0x8b]), Some(Compression::Gzip));
        assert_eq!(Compression::detect(&[0x1f]), None);
        assert_eq!(Compression::detect(&frame::header(0x8b1f)), None);
    }
}
