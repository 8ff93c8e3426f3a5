//! The sequence of marker segments: where each starts and what it holds, and nothing of what it means.

use crate::error::{Error, Result};

pub(crate) const SOI: u8 = 0xd8;
pub(crate) const EOI: u8 = 0xd9;
pub(crate) const SOS: u8 = 0xda;
pub(crate) const DQT: u8 = 0xdb;
pub(crate) const DNL: u8 = 0xdc;
pub(crate) const DRI: u8 = 0xdd;
pub(crate) const DHT: u8 = 0xc4;
pub(crate) const DAC: u8 = 0xcc;
pub(crate) const APP0: u8 = 0xe0;
pub(crate) const APP1: u8 = 0xe1;
pub(crate) const APP14: u8 = 0xee;
pub(crate) const TEM: u8 = 0x01;

/// One marker with what belongs to it.
#[derive(Clone, Copy)]
pub(crate) struct Segment<'a> {
    /// Second byte of the marker.
    pub marker: u8,
    /// Where the marker is, in bytes from the start of the image.
    pub offset: usize,
    /// What follows the length; empty for markers that stand alone.
    pub body: &'a [u8],
    /// Byte after the segment.
    pub end: usize,
}

impl Segment<'_> {
    /// The error that this segment has `found` where the format asks for `expected`.
    pub(crate) fn error(&self, expected: &'static str, found: impl Into<u64>) -> Error {
        Error::Segment { marker: self.marker, offset: self.offset, expected, found: found.into() }
    }
}

/// Checks that the bytes start as a JPEG does.
pub(crate) fn check_start(jpeg: &[u8]) -> Result<()> {
    match jpeg {
        [0xff, SOI, ..] => Ok(()),
        _ => Err(Error::NotJpeg { found: jpeg[..jpeg.len().min(2)].to_vec() }),
    }
}

/// The next segment at or after byte `from`. Bytes that are no marker are passed over, as libjpeg does: some writers
/// leave them between segments, and the pixels are whole.
pub(crate) fn next(jpeg: &[u8], from: usize) -> Result<Segment<'_>> {
    let ends = |expected| Error::Ends { offset: jpeg.len(), expected };
    let mut at = from;
    loop {
        let rest = jpeg.get(at..).unwrap_or(&[]);
        at += memchr::memchr(0xff, rest).ok_or_else(|| ends("the next marker"))?;
        while jpeg.get(at + 1) == Some(&0xff) {
            at += 1;
        }
        let marker = *jpeg.get(at + 1).ok_or_else(|| ends("the next marker"))?;
        let (offset, body) = (at, at + 4);
        match marker {
            0 => at += 2,
            SOI | EOI | TEM | 0xd0..=0xd7 => return Ok(Segment { marker, offset, body: &[], end: at + 2 }),
            _ => {
                let length = jpeg.get(at + 2..body).ok_or_else(|| ends("a segment's length"))?;
                let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                let end = at + 2 + length;
                if length < 2 {
                    return Err(Error::Segment {
                        marker,
                        offset,
                        expected: "a length of at least 2",
                        found: length as u64,
                    });
                }
                let body = jpeg.get(body..end).ok_or_else(|| ends("the end of a segment"))?;
                return Ok(Segment { marker, offset, body, end });
            }
        }
    }
}

/// The byte after the entropy-coded data that start at `from`: the next marker that is no restart, or the end.
pub(crate) fn end_of_scan(jpeg: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(step) = memchr::memchr(0xff, &jpeg[at..]) {
        at += step;
        match jpeg.get(at + 1) {
            Some(0 | 0xd0..=0xd7) => at += 2,
            Some(0xff) => at += 1,
            _ => return at,
        }
    }
    jpeg.len()
}

/// Big-endian u16 at `at`.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
