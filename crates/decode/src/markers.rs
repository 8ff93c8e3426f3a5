//! Size, orientation and end of a JPEG, by the marker parser of `shardtool_jpeg`, with this crate's errors.

use shardtool_jpeg::{self as jpeg, Feature, FrameInfo};

use crate::error::Error;
use crate::format::Format;

/// Reads the segments up to the first scan.
///
/// # Errors
/// [`Error::Truncated`] or [`Error::Header`] for bytes that break the format, [`Error::Unsupported`] for arithmetic, lossless
/// or hierarchical coding, other than 8-bit samples, or a height given after the scan.
pub(crate) fn header(bytes: &[u8]) -> Result<FrameInfo, Error> {
    FrameInfo::parse(bytes).map_err(|error| match converted(error) {
        Error::Truncated { format, offset, .. } => {
            Error::Truncated { format, offset, expected: "a start-of-scan marker" }
        }
        error => error,
    })
}

/// Returns the length of the image in bytes, up to the end of its end-of-image marker. Bytes may follow.
///
/// # Errors
/// [`Error::Truncated`] if the bytes end before the marker, [`Error::Header`] if the segments are damaged.
pub(crate) fn complete_len(bytes: &[u8]) -> Result<usize, Error> {
    jpeg::complete_len(bytes).map_err(converted)
}

pub(crate) fn converted(error: jpeg::Error) -> Error {
    let format = Format::Jpeg;
    match error {
        jpeg::Error::NotJpeg { found } => match found[..] {
            [a, b] => Error::Header {
                format,
                offset: 0,
                expected: "a start-of-image marker (0xffd8)",
                found: u16::from_be_bytes([a, b]).into(),
            },
            _ => Error::Truncated { format, offset: found.len(), expected: "a start-of-image marker" },
        },
        jpeg::Error::Ends { offset, expected } => Error::Truncated { format, offset, expected },
        jpeg::Error::Segment { offset, expected, found, .. } => Error::Header { format, offset, expected, found },
        jpeg::Error::Unsupported(feature) => Error::Unsupported { format, feature: feature_name(feature) },
        source => Error::Jpeg { source },
    }
}

fn feature_name(feature: Feature) -> &'static str {
    match feature {
        Feature::Arithmetic => "arithmetic coding",
        Feature::Lossless => "lossless or hierarchical coding",
        Feature::Precision(_) => "samples of other than 8 bits",
        Feature::Height => "its height given after the scan (DNL)",
        Feature::Components(_) => "a number of components other than one, three and four",
        Feature::Sampling => "sampling factors that do not divide each other",
        Feature::McuBlocks => "more than 10 blocks in an MCU",
        _ => "an unknown frame header",
    }
}
