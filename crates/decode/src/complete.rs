//! Whether the bytes reach the end that their format announces: what a download cut short does not.

use crate::error::Error;
use crate::format::{Format, sniff};
use crate::markers;

/// Refuses an image whose data is cut short, without decoding it: one pass over the bytes at the speed of memory.
///
/// JPEG is followed to its end marker, PNG to its `IEND` chunk, WebP to the length in its header; bytes after the end
/// are allowed. A JPEG that lacks nothing but its last two bytes is refused as well: what is missing before them cannot
/// be told without decoding. GIF, BMP and TIFF pass as they are, their decoders find what is missing.
///
/// # Errors
/// [`Error::Truncated`], or what breaks the walk along the file.
pub fn check_complete(bytes: &[u8]) -> Result<(), Error> {
    match sniff(bytes).ok_or_else(|| Error::unknown(bytes))? {
        Format::Jpeg => markers::complete_len(bytes).map(drop),
        Format::Png => png(bytes),
        Format::WebP => webp(bytes),
        _ => Ok(()),
    }
}

/// Chunks follow the 8-byte signature: u32 length, 4-byte type, payload, u32 CRC; `IEND` is the last.
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

/// `RIFF`, u32 length of everything after it.
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
