//! Everything that can be wrong with an image, a limit or a request.

use crate::format::Format;

/// What is wrong with an image, or with what was asked of it. The caller adds which image it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bad data: the first bytes belong to no format that is read here.
    #[error("not an image: {} bytes beginning [{}]; expected JPEG, PNG, WebP, GIF, BMP or TIFF", .len, hex(.start))]
    UnknownFormat {
        /// Length of the data in bytes.
        len: usize,
        /// The first bytes, at most eight.
        start: Vec<u8>,
    },
    /// Bad data: the bytes end before the image does.
    #[error("truncated {format}: the data ends at byte {offset}, expected {expected}")]
    Truncated {
        /// Format told by the first bytes.
        format: Format,
        /// Length of the data in bytes.
        offset: usize,
        /// What should have followed.
        expected: &'static str,
    },
    /// Bad data: a header that contradicts its format.
    #[error("bad {format}: found {found:#x} at byte {offset}, expected {expected}")]
    Header {
        /// Format told by the first bytes.
        format: Format,
        /// Where the wrong value begins, in bytes.
        offset: usize,
        /// What should have stood there.
        expected: &'static str,
        /// What stands there.
        found: u64,
    },
    /// Bad data: an image without pixels.
    #[error("{format} of {width}x{height} pixels; expected at least 1x1")]
    Empty {
        /// Format of the image.
        format: Format,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// A valid file that uses a feature which is not decoded here.
    #[error("{format} with {feature} is not supported; convert it to 8-bit baseline JPEG or PNG")]
    Unsupported {
        /// Format of the image.
        format: Format,
        /// The feature.
        feature: &'static str,
    },
    /// A limit: the image is larger than allowed. Nothing was allocated for it.
    #[error("{format} of {width}x{height}: {needed} {kind} exceed the limit of {allowed}; raise `{}` if it is meant", .kind.name())]
    Limit {
        /// Format of the image.
        format: Format,
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Which limit.
        kind: LimitKind,
        /// What the image needs.
        needed: u64,
        /// What is allowed.
        allowed: u64,
    },
    /// Bad data, found by the decoder of that format.
    #[error("bad {format}: {source}")]
    Decoder {
        /// Format of the image.
        format: Format,
        /// The decoder's own account.
        source: image::ImageError,
    },
}

impl Error {
    /// The error for bytes of no known format.
    pub(crate) fn unknown(bytes: &[u8]) -> Self {
        Error::UnknownFormat { len: bytes.len(), start: bytes[..bytes.len().min(8)].to_vec() }
    }
}

/// Which of the [`Limits`](crate::Limits) an image exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitKind {
    /// `max_pixels`: width times height.
    Pixels,
    /// `max_side`: the longer side, in pixels.
    Side,
    /// `max_bytes`: memory to decode, in bytes.
    Bytes,
}

impl LimitKind {
    /// The field of [`Limits`](crate::Limits) it stands for.
    pub fn name(self) -> &'static str {
        match self {
            LimitKind::Pixels => "max_pixels",
            LimitKind::Side => "max_side",
            LimitKind::Bytes => "max_bytes",
        }
    }
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            LimitKind::Pixels => "pixels",
            LimitKind::Side => "pixels along a side",
            LimitKind::Bytes => "bytes to decode",
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ")
}
