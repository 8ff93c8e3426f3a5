//! An encoded image whose header is parsed, so that planning its memory and decoding it parse it only once.

use shardtool_jpeg as jpeg;

use crate::error::Error;
use crate::format::Format;
use crate::markers;
use crate::sniff::sniff;

/// An encoded image. If it is a JPEG, its header is parsed. About 1.5 KiB; borrows the bytes.
#[derive(Clone, Debug)]
pub struct EncodedImage<'a> {
    bytes: &'a [u8],
    format: Option<Format>,
    jpeg: Option<jpeg::ParsedImage<'a>>,
}

impl<'a> EncodedImage<'a> {
    /// Detects the format and parses the header of a JPEG. An image of an unknown format is an error
    /// only when it is decoded.
    ///
    /// # Errors
    /// [`Error::Jpeg`] if the header of a JPEG is damaged, [`Error::Unsupported`] if it is of a kind that is not decoded.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let format = sniff(bytes);
        let jpeg = match format {
            Some(Format::Jpeg) => Some(jpeg::ParsedImage::parse(bytes, &unlimited()).map_err(refused)?),
            _ => None,
        };
        Ok(EncodedImage { bytes, format, jpeg })
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The detected format.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// The parsed image, if it is a JPEG.
    pub(crate) fn jpeg(&self) -> Option<&jpeg::ParsedImage<'a>> {
        self.jpeg.as_ref()
    }
}

/// Limits of our decoder that no image exceeds: this crate checks its own [`Limits`](crate::Limits), whose error names the option to raise.
pub(crate) fn unlimited() -> jpeg::Limits {
    jpeg::Limits::default().with_pixels(u64::MAX)
}

/// Returns the error of a JPEG that our decoder refuses: [`Error::Unsupported`] or [`Error::Jpeg`].
pub(crate) fn refused(error: jpeg::Error) -> Error {
    match error {
        jpeg::Error::Unsupported(_) => markers::converted(error),
        source => Error::Jpeg { source },
    }
}
