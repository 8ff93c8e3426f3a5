//! The sequence of markers and marker segments, without their meaning.

use memchr::memchr;

use crate::error::{Error, Result};

pub(crate) const SOI: u8 = 0xd8;
pub(crate) const EOI: u8 = 0xd9;
pub(crate) const SOS: u8 = 0xda;
pub(crate) const DQT: u8 = 0xdb;
pub(crate) const DRI: u8 = 0xdd;
pub(crate) const DHT: u8 = 0xc4;
pub(crate) const DAC: u8 = 0xcc;
/// Reserved for extensions, in the range of the frame headers.
pub(crate) const JPG: u8 = 0xc8;
pub(crate) const APP0: u8 = 0xe0;
pub(crate) const APP1: u8 = 0xe1;
pub(crate) const APP2: u8 = 0xe2;
pub(crate) const APP13: u8 = 0xed;
pub(crate) const APP14: u8 = 0xee;
const TEM: u8 = 0x01;

/// A marker with its segment.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    /// Second byte of the marker.
    pub marker: u8,
    /// Byte offset of the marker in the image.
    pub offset: usize,
    /// The bytes after the length; empty for markers without a segment.
    pub body: &'a [u8],
    /// Byte offset after the segment.
    pub end: usize,
}

impl Segment<'_> {
    /// Returns the error that this segment has `found` where the format requires `expected`.
    pub(crate) fn error(&self, expected: &'static str, found: impl Into<u64>) -> Error {
        Error::Segment { marker: self.marker, offset: self.offset, expected, found: found.into() }
    }
}

/// Checks that the bytes start with SOI.
pub(crate) fn check_start(jpeg: &[u8]) -> Result<()> {
    match jpeg {
        [0xff, SOI, ..] => Ok(()),
        _ => Err(Error::NotJpeg { found: jpeg[..jpeg.len().min(2)].to_vec() }),
    }
}

/// Whether the marker has no segment: TEM, RST0 to RST7, SOI and EOI.
pub(crate) fn is_standalone(marker: u8) -> bool {
    matches!(marker, TEM | 0xd0..=0xd7 | SOI | EOI)
}

/// Returns byte offset and second byte of the next marker at or after byte `from`. Skips other bytes, as libjpeg does: some
/// writers leave them between segments, and the pixels are complete.
pub(crate) fn next_marker(jpeg: &[u8], from: usize) -> Option<(usize, u8)> {
    let mut at = from;
    loop {
        at += memchr(0xff, jpeg.get(at..)?)?;
        while jpeg.get(at + 1) == Some(&0xff) {
            at += 1;
        }
        match *jpeg.get(at + 1)? {
            0 => at += 2,
            marker => return Some((at, marker)),
        }
    }
}

/// Returns the segment of `marker`, which is at byte `offset`.
///
/// # Errors
/// [`Error::Ends`] if the bytes end inside it, [`Error::Segment`] for a length below 2 of a segment that is read.
pub(crate) fn segment_at(jpeg: &[u8], offset: usize, marker: u8) -> Result<Segment<'_>> {
    if is_standalone(marker) {
        return Ok(Segment { marker, offset, body: &[], end: offset + 2 });
    }
    let ends = |expected| Error::Ends { offset: jpeg.len(), expected };
    let body = offset + 4;
    let length = jpeg.get(offset + 2..body).ok_or_else(|| ends("a segment's length"))?;
    let length = usize::from(be16(length, 0));
    // As libjpeg, which skips these segments.
    let skipped = matches!(marker, 0xdc | 0xe0..=0xef | 0xfe);
    if length < 2 && !skipped {
        return Err(Error::Segment { marker, offset, expected: "a length of at least 2", found: length as u64 });
    }
    let end = offset + 2 + length.max(2);
    let body = jpeg.get(body..end).ok_or_else(|| ends("the end of a segment"))?;
    Ok(Segment { marker, offset, body, end })
}

/// Returns the next marker at or after byte `from`, with its segment.
///
/// # Errors
/// [`Error::Ends`] if the bytes end before, [`Error::Segment`] for a length below 2.
pub(crate) fn next_segment(jpeg: &[u8], from: usize) -> Result<Segment<'_>> {
    let marker = next_marker(jpeg, from);
    let (offset, marker) = marker.ok_or(Error::Ends { offset: jpeg.len(), expected: "the next marker" })?;
    segment_at(jpeg, offset, marker)
}

/// Returns the byte offset after the entropy-coded data that start at `from`: that of the next marker other than RSTn, or the
/// length of the image.
pub(crate) fn end_of_scan(jpeg: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(step) = memchr(0xff, &jpeg[at..]) {
        at += step;
        match jpeg.get(at + 1) {
            Some(0 | 0xd0..=0xd7) => at += 2,
            Some(0xff) => at += 1,
            _ => return at,
        }
    }
    jpeg.len()
}

/// Appends a segment whose body consists of these parts, together at most 65,533 bytes.
pub(crate) fn write_segment(out: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
    let length = 2 + parts.iter().map(|p| p.len()).sum::<usize>();
    out.extend([0xff, marker]);
    out.extend((length as u16).to_be_bytes());
    parts.iter().for_each(|p| out.extend_from_slice(p));
}

/// Reads the big-endian u16 at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
