//! Detects truncated files, such as interrupted downloads, without decoding.

use crate::error::Error;
use crate::format::Format;
use crate::markers;
use crate::sniff::sniff;

/// Checks that an image reaches its end, by reading the bytes once at memory speed, without decoding.
///
/// A JPEG must have its end marker, a PNG its `IEND` chunk and a WebP the length in its header. Bytes after the end are
/// allowed. A JPEG that lacks only its last two bytes, the end marker, is refused as well, because only decoding could show
/// that all other data are present. Other formats are not checked: their decoders detect truncation.
///
/// # Errors
/// [`Error::Truncated`] if the end is missing; [`Error::Header`] if the markers of a JPEG are damaged before it.
pub fn check_complete(bytes: &[u8]) -> Result<(), Error> {
    match sniff(bytes).ok_or_else(|| Error::unknown(bytes))? {
        Format::Jpeg => markers::complete_len(bytes).map(drop),
        Format::Png => png(bytes),
        Format::WebP => webp(bytes),
        _ => Ok(()),
    }
}

/// After the 8-byte signature a PNG has chunks: u32 length, 4-byte type, payload, u32 CRC. `IEND` is the last.
fn png(bytes: &[u8]) -> Result<(), Error> {
    let mut rest = bytes.get(8..);
    while let Some([l3, l2, l1, l0, kind @ ..]) = rest {
        if kind.starts_with(b"IEND") {
            return Ok(());
        }
        let len = u32::from_be_bytes([*l3, *l2, *l1, *l0]) as usize;
        rest = len.checked_add(8).and_then(|n| kind.get(n..));
    }
    Err(Error::Truncated { format: Format::Png, offset: bytes.len(), expected: "an IEND chunk" })
}

/// A WebP begins with `RIFF` and the u32 length of everything after these 8 bytes.
fn webp(bytes: &[u8]) -> Result<(), Error> {
    match bytes {
        [_, _, _, _, a, b, c, d, rest @ ..] if rest.len() >= u32::from_le_bytes([*a, *b, *c, *d]) as usize => Ok(()),
        _ => Err(Error::Truncated {
            format: Format::WebP,
            offset: bytes.len(),
            expected: "as many bytes as its RIFF header announces",
        }),
    }
}
