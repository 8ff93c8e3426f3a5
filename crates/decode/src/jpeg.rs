//! The one place where JPEG bytes become pixels.

use crate::decode::decode_with_library;
use crate::error::Error;
use crate::format::Format;
use crate::limits::Limits;
use crate::markers;
use crate::pixels::Pixels;

/// Decodes a whole JPEG. One cut short is refused: the library would fill the rest with grey and say nothing.
pub(crate) fn decode(bytes: &[u8], limits: &Limits, pixels: &mut Pixels) -> Result<(), Error> {
    let header = markers::header(bytes)?;
    limits.check(Format::Jpeg, header.width.into(), header.height.into(), 3)?;
    markers::complete_len(bytes)?;
    decode_with_library(Format::Jpeg, bytes, limits, pixels)
}
