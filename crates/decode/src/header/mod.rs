//! Headers of AVIF, HEIF, JPEG XL and JPEG 2000, read in every build. `pack` needs headers only, so it does not depend on
//! the decoder features.
//!
//! | module | content |
//! |---|---|
//! | `boxes` | the boxes of these files |
//! | `heif` | AVIF and HEIF: size, channels and orientation of the primary item |
//! | `jxl` | JPEG XL: size and channels, in a container or bare |
//! | `jp2` | JPEG 2000: size and channels, in a container or bare |

mod boxes;
mod heif;
mod jp2;
mod jxl;

pub(crate) use heif::brand;
#[cfg(feature = "jp2")]
pub(crate) use jp2::{codestream_without_palette as jp2_codestream, color as jp2_color};
#[cfg(feature = "jxl")]
pub(crate) use jxl::codestream as jxl_codestream;

use crate::error::Error;
use crate::format::Format;
use crate::image_info::ImageInfo;
use crate::limits::Limits;

/// Reads the header of one of these formats and checks the limits. Returns `None` for other formats.
pub(crate) fn probe(format: Format, bytes: &[u8], limits: &Limits) -> Option<Result<ImageInfo, Error>> {
    let (info, expected) = match format {
        Format::Avif | Format::Heif => (heif::read(format, bytes), "a primary image with its size (ispe)"),
        Format::Jxl => (jxl::read(bytes), "a JPEG XL codestream header"),
        Format::Jp2 => (jp2::read(bytes), "a JPEG 2000 codestream header (SIZ)"),
        _ => return None,
    };
    let info = info.ok_or(Error::Truncated { format, offset: bytes.len(), expected });
    Some(info.and_then(|info| limits.check(format, info.width, info.height, 3).map(|()| info)))
}

/// Reads the big-endian integer of `N` bytes at `at`.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field: &[u8; N] = bytes.get(at..)?.first_chunk()?;
    Some(field.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}
