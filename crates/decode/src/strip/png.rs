//! Removes metadata from PNGs (PNG, third edition): all ancillary chunks but those that say how the pixels are shown.

use super::refused;
use crate::error::Error;
use crate::format::Format;
use crate::metadata;
use flate2::Crc;
use shardtool_jpeg::exif_of_orientation;

const SIGNATURE: usize = 8;

/// Chunks that are copied: those of the pixels, of colour and transparency, of density, and of the frames of an animation.
const KEPT: [&[u8; 4]; 18] = [
    b"IHDR", b"PLTE", b"IDAT", b"tRNS", b"cICP", b"mDCV", b"cLLI", b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"sBIT",
    b"bKGD", b"hIST", b"pHYs", b"acTL", b"fcTL", b"fdAT",
];

/// Returns the PNG without metadata. An orientation other than 1 stays, in the chunk `eXIf`; what follows `IEND` is left out.
///
/// # Errors
/// [`Error::Truncated`] if a chunk before `IEND` is cut; [`Error::Metadata`] for critical chunks that are not known.
pub(super) fn strip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let truncated = || Error::Truncated { format: Format::Png, offset: bytes.len(), expected: "an IEND chunk" };
    let (signature, mut rest) = bytes.split_at_checked(SIGNATURE).ok_or_else(truncated)?;
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(signature);
    loop {
        // u32 length, type, data, u32 CRC (section 5.3).
        let (head, _) = rest.split_first_chunk::<8>().ok_or_else(truncated)?;
        let [length @ .., k0, k1, k2, k3] = *head;
        let kind = [k0, k1, k2, k3];
        if kind == *b"IEND" {
            push(&mut out, b"IEND", &[]);
            return Ok(out);
        }
        let len = u32::from_be_bytes(length) as usize;
        let (chunk, after) = len.checked_add(12).and_then(|len| rest.split_at_checked(len)).ok_or_else(truncated)?;
        rest = after;
        match KEPT.contains(&&kind) {
            true => out.extend_from_slice(chunk),
            // Of an ancillary chunk, the first letter is small (section 5.4).
            false if kind[0].is_ascii_lowercase() => {}
            false => return Err(refused(Format::Png, "it has a critical chunk that PNG does not define")),
        }
        if kind == *b"IHDR"
            && let Some(exif) = exif_of_orientation(metadata::png(bytes).orientation())
        {
            push(&mut out, b"eXIf", &exif);
        }
    }
}

/// Appends a chunk.
fn push(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let mut crc = Crc::new();
    crc.update(kind);
    crc.update(data);
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    out.extend_from_slice(kind);
    out.extend_from_slice(data);
    out.extend_from_slice(&crc.sum().to_be_bytes());
}
