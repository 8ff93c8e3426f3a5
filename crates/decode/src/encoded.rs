//! An encoded image whose header is parsed, so that planning its memory and decoding it parse it only once.

use shardtool_jpeg as jpeg;

use crate::error::Error;
use crate::format::Format;
use crate::markers;
use crate::sniff::sniff;

/// An encoded image. If it is a JPEG that our decoder reads, its header is parsed. About 1.5 KiB; borrows the bytes.
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
    /// [`Error::Jpeg`] if the header of a JPEG is damaged.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let format = sniff(bytes);
        let jpeg = match format {
            Some(Format::Jpeg) => supported(bytes, jpeg::ParsedImage::parse(bytes, &unlimited()))?,
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

    /// The parsed JPEG, if our decoder reads it.
    pub(crate) fn jpeg(&self) -> Option<&jpeg::ParsedImage<'a>> {
        self.jpeg.as_ref()
    }
}

/// Limits of our decoder that no image exceeds: this crate checks its own [`Limits`](crate::Limits), whose error names the option to raise.
pub(crate) fn unlimited() -> jpeg::Limits {
    jpeg::Limits::default().with_pixels(u64::MAX)
}

/// Returns `None` for the JPEGs that the `image` crate decodes in place of ours: complete ones of four components (CMYK, YCCK) whose
/// first scan has all of them. It decodes others that ours does not read to wrong pixels, so they are refused by name.
///
/// # Errors
/// [`Error::Unsupported`], [`Error::Jpeg`].
pub(crate) fn supported<T>(bytes: &[u8], result: jpeg::Result<T>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(jpeg::Error::Unsupported(jpeg::Feature::Components(4))) => {
            match markers::has_four_complete_components(bytes) {
                true => Ok(None),
                false => Err(Error::Unsupported { format: Format::Jpeg, feature: "CMYK in separate or missing scans" }),
            }
        }
        Err(error @ jpeg::Error::Unsupported(_)) => Err(markers::converted(error)),
        Err(source) => Err(Error::Jpeg { source }),
    }
}
