//! Removes metadata from GIFs (GIF89a): comments, and application extensions but those of loops and of the colour profile.

use super::refused;
use crate::error::Error;
use crate::format::Format;

/// Application extensions that are copied: the number of loops, under two names, and the colour profile.
const KEPT: [&[u8; 11]; 3] = [b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012"];
const TRAILER: u8 = 0x3b;

/// Returns the GIF without metadata: its header, color tables, graphic controls and images. What follows the trailer is left out.
///
/// # Errors
/// [`Error::Truncated`] if a block is cut; [`Error::Header`] for bytes that begin no block; [`Error::Metadata`] for text that is drawn
/// on the image.
pub(super) fn strip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let truncated = || Error::Truncated { format: Format::Gif, offset: bytes.len(), expected: "the end of a block" };
    // The header, the logical screen descriptor, whose fifth byte has the size of the color table, and the table.
    let flags = *bytes.get(10).ok_or_else(truncated)?;
    let mut at = 13 + table_bytes(flags);
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(bytes.get(..at).ok_or_else(truncated)?);
    // Some encoders leave out the trailer.
    while let Some(&first) = bytes.get(at) {
        let (end, kept) = match first {
            TRAILER => {
                out.push(TRAILER);
                return Ok(out);
            }
            // Bytes between blocks.
            0 => (at + 1, false),
            0x21 => {
                let label = *bytes.get(at + 1).ok_or_else(truncated)?;
                let application = bytes.get(at + 3..).and_then(|rest| rest.first_chunk::<11>());
                let kept = match label {
                    0xf9 => true,
                    0xff => application.is_some_and(|name| KEPT.contains(&name)),
                    0x01 => return Err(refused(Format::Gif, "it has text that is drawn on the image")),
                    _ => false,
                };
                (sub_blocks(bytes, at + 2).ok_or_else(truncated)?, kept)
            }
            0x2c => {
                let flags = *bytes.get(at + 9).ok_or_else(truncated)?;
                // The descriptor, its color table, and the code size of LZW.
                (sub_blocks(bytes, at + 10 + table_bytes(flags) + 1).ok_or_else(truncated)?, true)
            }
            found => {
                let expected = "a block: an image, an extension or the trailer";
                return Err(Error::Header { format: Format::Gif, offset: at, expected, found: found.into() });
            }
        };
        if kept {
            out.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    Ok(out)
}

/// Returns the length of the color table that a descriptor announces.
fn table_bytes(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

/// Returns the end of the sub-blocks that begin at `at`: each is a length and as many bytes, and the last one is empty.
fn sub_blocks(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let len = usize::from(*bytes.get(at)?);
        at += 1 + len;
        if len == 0 {
            return Some(at);
        }
    }
}
