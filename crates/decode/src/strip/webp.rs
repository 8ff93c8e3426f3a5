//! Removes metadata from WebPs (RFC 9649): all chunks but those of the pixels, of the colour profile, and of an animation.

use super::refused;
use crate::error::Error;
use crate::format::Format;
use crate::metadata;
use shardtool_jpeg::exif_of_orientation;

/// Bytes of `RIFF`, the length and `WEBP`.
const HEADER: usize = 12;
/// Bytes of an `ANMF` chunk before the chunks of its frame (section 2.7.1.1).
const FRAME_HEADER: usize = 16;
/// Flags of `VP8X` (section 2.7.1).
const EXIF_FLAG: u8 = 0x08;
const XMP_FLAG: u8 = 0x04;

/// Returns the WebP without metadata. An orientation other than 1 stays, in the chunk `EXIF`; what follows the length in the header is
/// left out.
///
/// # Errors
/// [`Error::Truncated`] if a chunk is cut; [`Error::Metadata`] for a file that is longer than the format allows.
pub(super) fn strip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let truncated = || Error::Truncated {
        format: Format::WebP,
        offset: bytes.len(),
        expected: "as many bytes as its RIFF header and its chunks announce",
    };
    let len = bytes.get(4..).and_then(|rest| rest.first_chunk()).ok_or_else(truncated)?;
    let end = (u32::from_le_bytes(*len) as usize).checked_add(8).ok_or_else(truncated)?;
    let body = bytes.get(HEADER..end).ok_or_else(truncated)?;
    let exif = exif_of_orientation(metadata::webp(bytes).orientation());
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(&bytes[..HEADER]);
    for (kind, data) in chunks(body).ok_or_else(truncated)? {
        match kind {
            b"VP8X" if !data.is_empty() => {
                let mut header = data.to_vec();
                header[0] &= !(EXIF_FLAG | XMP_FLAG);
                header[0] |= if exif.is_some() { EXIF_FLAG } else { 0 };
                push(&mut out, kind, &header);
            }
            b"VP8 " | b"VP8L" | b"ALPH" | b"ICCP" | b"ANIM" => push(&mut out, kind, data),
            b"ANMF" => {
                let (header, frame) = data.split_at_checked(FRAME_HEADER).ok_or_else(truncated)?;
                let mut kept = header.to_vec();
                for (kind, data) in chunks(frame).ok_or_else(truncated)? {
                    if matches!(kind, b"VP8 " | b"VP8L" | b"ALPH") {
                        push(&mut kept, kind, data);
                    }
                }
                push(&mut out, kind, &kept);
            }
            _ => {}
        }
    }
    if let Some(exif) = exif {
        push(&mut out, b"EXIF", &exif);
    }
    let len = u32::try_from(out.len() - 8).map_err(|_| refused(Format::WebP, "it is longer than 4 GiB"))?;
    out[4..8].copy_from_slice(&len.to_le_bytes());
    Ok(out)
}

/// Returns type and data of each chunk; `None` if one is cut. The byte of padding after the last one may be missing.
fn chunks(mut rest: &[u8]) -> Option<Vec<(&[u8; 4], &[u8])>> {
    let mut chunks = vec![];
    while !rest.is_empty() {
        let (kind, after) = rest.split_first_chunk()?;
        let (len, after) = after.split_first_chunk()?;
        let len = u32::from_le_bytes(*len) as usize;
        let (data, after) = after.split_at_checked(len)?;
        rest = after.get(len % 2..).unwrap_or_default();
        chunks.push((kind, data));
    }
    Some(chunks)
}

/// Appends a chunk, with a byte of padding after an odd length.
fn push(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend_from_slice(kind);
    out.extend_from_slice(&(data.len() as u32).to_le_bytes());
    out.extend_from_slice(data);
    out.resize(out.len() + data.len() % 2, 0);
}
