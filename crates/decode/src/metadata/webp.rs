//! Metadata of WebP: the chunks `EXIF` and `XMP ` of an extended file, whose header says that they are there (RFC 9649, 2.7).

use std::borrow::Cow;

use super::Metadata;

/// Returns the metadata of a WebP.
pub(crate) fn metadata(bytes: &[u8]) -> Metadata<'_> {
    let flags = match bytes.get(12..).and_then(|rest| chunks(rest).next()) {
        Some((b"VP8X", &[flags, ..])) => flags,
        _ => 0,
    };
    let find = |flag: u8, wanted: &[u8; 4]| {
        let mut chunks = chunks(&bytes[12..]).filter(|(kind, _)| flags & flag != 0 && *kind == wanted);
        chunks.next().map(|(_, data)| Cow::Borrowed(data))
    };
    match flags {
        0 => Metadata::default(),
        _ => Metadata { exif: find(0x08, b"EXIF"), xmp: find(0x04, b"XMP ") },
    }
}

/// Iterates over the complete chunks: type, u32 length, data, and a byte of padding after an odd length.
pub(crate) fn chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (kind, after) = rest.split_first_chunk()?;
        let (len, after) = after.split_first_chunk()?;
        let len = u32::from_le_bytes(*len) as usize;
        let data = after.get(..len)?;
        rest = after.get(len + len % 2..).unwrap_or_default();
        Some((kind, data))
    })
}
