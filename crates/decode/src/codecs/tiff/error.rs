//! Errors of a TIFF.

use crate::codecs::decoder_error;
use crate::error::Error;
use crate::format::Format;

/// Returns the error of a valid TIFF with a feature that is not supported.
pub(super) fn unsupported(feature: &'static str) -> Error {
    Error::Unsupported { format: Format::Tiff, feature }
}

/// Returns the error of data that a decoder refuses.
pub(super) fn damaged(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    decoder_error(Format::Tiff, source)
}
