//! Size and orientation of a JPEG of any kind, and where it ends: also of kinds that this crate does not decode.

use super::header::{FrameSize, frame_process};
use super::metadata::Metadata;
use super::segment::{self, APP1, EOI, SOS, is_standalone};
use crate::error::{Error, Result};

/// What a JPEG's segments before the first scan say about its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameInfo {
    /// Width in pixels as coded, at least 1.
    pub width: u32,
    /// Height in pixels as coded, at least 1.
    pub height: u32,
    /// Number of components: 1 (grey), 3 (colour) or 4 (CMYK or YCCK).
    pub components: u8,
    /// Orientation in EXIF or XMP, 1 to 8; 1 without.
    pub orientation: u8,
}

impl FrameInfo {
    /// Reads the segments of `jpeg` up to its first scan. In contrast to [`Header::parse`](crate::Header::parse) it accepts any
    /// tables and sampling factors, because it only reports sizes.
    ///
    /// # Errors
    /// [`Error::NotJpeg`], [`Error::Ends`] or [`Error::Segment`] for bytes that break the format; [`Error::Unsupported`] for
    /// arithmetic, lossless or hierarchical coding, other than 8-bit samples, or a height given after the scan.
    pub fn parse(jpeg: &[u8]) -> Result<FrameInfo> {
        segment::check_start(jpeg)?;
        let (mut at, mut frame, mut metadata) = (2, None, Metadata::default());
        loop {
            let s = segment::next_segment(jpeg, at)?;
            at = s.end;
            match s.marker {
                SOS => {
                    let (width, height, components) =
                        frame.ok_or_else(|| s.error("a frame header before the first scan", SOS))?;
                    return Ok(FrameInfo { width, height, components, orientation: metadata.orientation() });
                }
                EOI => return Err(s.error("a start-of-scan marker", EOI)),
                APP1 => metadata.add_app1(s.body),
                marker => {
                    if let Some(process) = frame_process(marker).filter(|_| frame.is_none()) {
                        process?;
                        let FrameSize { width, height, count, .. } = FrameSize::parse(&s)?;
                        if !matches!(count, 1 | 3 | 4) {
                            return Err(s.error("1, 3 or 4 components", count));
                        }
                        frame = Some((width, height, count));
                    }
                }
            }
        }
    }
}

/// Returns the length of an image in bytes, up to the end of its EOI marker. Bytes may follow: cameras append previews and
/// depth maps, which decoders ignore. The segments are followed one by one, so that the EOI of an embedded thumbnail is not
/// taken for that of the image.
///
/// # Errors
/// [`Error::NotJpeg`]; [`Error::Ends`] if the bytes end before the marker; [`Error::Segment`] for a length below 2.
pub fn complete_len(jpeg: &[u8]) -> Result<usize> {
    segment::check_start(jpeg)?;
    let ends = || Error::Ends { offset: jpeg.len(), expected: "an end-of-image marker" };
    let segment_end = |offset, marker| match segment::segment_at(jpeg, offset, marker) {
        Ok(segment) => Ok(segment.end),
        Err(Error::Ends { .. }) => Err(ends()),
        Err(error) => Err(error),
    };
    let (mut at, mut in_scan) = (2, false);
    loop {
        let (offset, marker) = segment::next_marker(jpeg, at).ok_or_else(ends)?;
        at = match marker {
            EOI => return Ok(offset + 2),
            // After a scan has begun, only these have a segment. Anything else is damage, which only decoding can judge.
            0xc4 | SOS..=0xdd | 0xe0..=0xef | 0xfe => segment_end(offset, marker)?,
            _ if in_scan || is_standalone(marker) => offset + 2,
            _ => segment_end(offset, marker)?,
        };
        in_scan |= marker == SOS;
    }
}
