//! Removes metadata from image files without decoding them, and finds positions and thumbnails in them.
//!
//! What is kept is a list in each format, so that kinds of metadata which are not known are removed, too.
//!
//! | module | format |
//! |---|---|
//! | `png` | PNG |
//! | `webp` | WebP |
//! | `tiff` | TIFF and BigTIFF |
//! | `ranges` | byte ranges of a TIFF that are kept or removed |
//! | `gif` | GIF |
//! | `bmp` | BMP |
//!
//! JPEGs are stripped by `shardtool_jpeg`.

mod bmp;
mod gif;
mod png;
mod ranges;
mod tiff;
mod webp;

use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::probe::probe;
use crate::sniff::sniff;
use crate::{markers, metadata};
use shardtool_jpeg as jpeg;
use std::borrow::Cow;

/// Returns an image file without its metadata: EXIF except the orientation, positions, serial numbers, thumbnails, XMP, IPTC, texts
/// and comments, and whatever else pixels, colour profile, density and animation do not need. Coded pixels are copied byte for byte.
/// Returns the bytes themselves if there is nothing to remove.
///
/// JPEG, PNG, WebP, GIF, BMP and TIFF are stripped; a bare JPEG XL codestream has no metadata.
///
/// # Errors
/// [`Error::Metadata`] if the metadata cannot be removed: of AVIF, HEIF, JPEG 2000 and JPEG XL in a container, and of files in which
/// it cannot be separated from pixels. [`Error::UnknownFormat`], [`Error::Truncated`], [`Error::Header`] for bytes that break their format.
pub fn strip_metadata(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    let format = sniff(bytes).ok_or_else(|| Error::unknown(bytes))?;
    let stripped = match format {
        Format::Jpeg => jpeg::strip_metadata(bytes).map_err(markers::converted)?,
        Format::Png => png::strip(bytes)?,
        Format::WebP => webp::strip(bytes)?,
        Format::Gif => gif::strip(bytes)?,
        Format::Bmp => bmp::strip(bytes)?,
        Format::Tiff => tiff::strip(bytes)?,
        Format::Jxl if bytes.starts_with(&[0xff, 0x0a]) => return Ok(Cow::Borrowed(bytes)),
        Format::Avif | Format::Heif | Format::Jxl | Format::Jp2 => {
            return Err(refused(format, "this program does not rewrite files of this format"));
        }
        Format::Raw | Format::RawZstd => return Ok(Cow::Borrowed(bytes)),
    };
    if stripped == bytes {
        return Ok(Cow::Borrowed(bytes));
    }
    // Size, channels and orientation must be the same for a reader.
    let limits = Limits::default();
    match probe(bytes, &limits) {
        Ok(before) if probe(&stripped, &limits).ok() != Some(before) => {
            Err(refused(format, "its size or orientation depends on them"))
        }
        _ => Ok(Cow::Owned(stripped)),
    }
}

/// What the metadata of an image have that may identify people and places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmbeddedMetadata {
    /// A latitude or a longitude, in EXIF or XMP.
    pub position: bool,
    /// A smaller copy of the image, which may show what the image does not show any more.
    pub thumbnail: bool,
}

/// Finds positions and thumbnails in the metadata of a JPEG, PNG, WebP or TIFF, by its headers. Other formats have none that is found,
/// and damaged metadata counts as far as it can be read.
pub fn embedded_metadata(bytes: &[u8]) -> EmbeddedMetadata {
    let (metadata, thumbnail) = match sniff(bytes) {
        Some(Format::Jpeg) => jpeg::embedded_metadata(bytes),
        Some(Format::Png) => (metadata::png(bytes), false),
        Some(Format::WebP) => (metadata::webp(bytes), false),
        Some(Format::Tiff) => {
            return EmbeddedMetadata {
                position: tiff::metadata(bytes).has_position(),
                thumbnail: tiff::has_thumbnail(bytes),
            };
        }
        _ => return EmbeddedMetadata::default(),
    };
    EmbeddedMetadata { position: metadata.has_position(), thumbnail: thumbnail || metadata.has_thumbnail() }
}

/// Returns the error that the metadata of an image cannot be removed.
fn refused(format: Format, problem: &'static str) -> Error {
    Error::Metadata { format, problem }
}
