//! Size, orientation and end of a JPEG, by the marker parser of `shardtool_jpeg`, with this crate's errors.

use shardtool_jpeg::{self as jpeg, Feature, FrameInfo};

use crate::error::Error;
use crate::format::Format;

/// Reads the segments up to the first scan.
///
/// # Errors
/// [`Error::Truncated`] or [`Error::Header`] for bytes that break the format, [`Error::Unsupported`] for arithmetic, lossless
/// or hierarchical coding, other than 8-bit samples, or a height given after the scan.
pub(crate) fn header(bytes: &[u8]) -> Result<FrameInfo, Error> {
    FrameInfo::parse(bytes).map_err(|error| match converted(error) {
        Error::Truncated { format, offset, .. } => {
            Error::Truncated { format, offset, expected: "a start-of-scan marker" }
        }
        error => error,
    })
}

/// Returns the length of the image in bytes, up to the end of its end-of-image marker. Bytes may follow.
///
/// # Errors
/// [`Error::Truncated`] if the bytes end before the marker, [`Error::Header`] if the segments are damaged.
pub(crate) fn complete_len(bytes: &[u8]) -> Result<usize, Error> {
    jpeg::complete_len(bytes).map_err(converted)
}

fn converted(error: jpeg::Error) -> Error {
    let format = Format::Jpeg;
    match error {
        jpeg::Error::NotJpeg { found } => match found[..] {
            [a, b] => Error::Header {
                format,
                offset: 0,
                expected: "a start-of-image marker (0xffd8)",
                found: u16::from_be_bytes([a, b]).into(),
            },
            _ => Error::Truncated { format, offset: found.len(), expected: "a start-of-image marker" },
        },
        jpeg::Error::Ends { offset, expected } => Error::Truncated { format, offset, expected },
        jpeg::Error::Segment { offset, expected, found, .. } => Error::Header { format, offset, expected, found },
        jpeg::Error::Unsupported(feature) => Error::Unsupported { format, feature: feature_name(feature) },
        source => Error::Jpeg { source },
    }
}

fn feature_name(feature: Feature) -> &'static str {
    match feature {
        Feature::Arithmetic => "arithmetic coding",
        Feature::Lossless => "lossless or hierarchical coding",
        Feature::Precision(_) => "samples of other than 8 bits",
        Feature::Height => "its height given after the scan (DNL)",
        _ => "an unknown frame header",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::metadata::Orientation;

    /// A JPEG of one pixel's headers with `exif` as its APP1 segment.
    fn jpeg_with(exif: &[u8]) -> Vec<u8> {
        let mut jpeg = b"\xff\xd8\xff\xe1".to_vec();
        jpeg.extend((exif.len() as u16 + 8).to_be_bytes());
        jpeg.extend(b"Exif\0\0");
        jpeg.extend(exif);
        jpeg.extend(b"\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0");
        jpeg
    }

    /// The orientation of a JPEG is that of the other formats, which the `image` crate reads, for valid and invalid EXIF.
    #[test]
    fn orientation_equals_that_of_the_image_crate() {
        let mut seen = [0; 9];
        let mut state = 1u64;
        for round in 0..20_000 {
            let mut random = |n: u64| {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state >> 33) % n
            };
            let little = random(2) == 0;
            let short = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
            let long = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
            let mut exif = if little { b"II*\0".to_vec() } else { b"MM\0*".to_vec() };
            exif.extend([&long(8)[..], &short(2)].concat());
            for tag in [0x0100 + random(0x20) as u16, 0x0112] {
                exif.extend(
                    [&short(tag)[..], &short(3 + random(20) as u16 / 19), &long(1 + random(20) as u32 / 19)].concat(),
                );
                exif.extend([&short(random(10) as u16)[..], &[0, 0]].concat());
            }
            match round % 4 {
                0 => exif.truncate(random(exif.len() as u64 + 1) as usize),
                1 => {
                    let at = random(exif.len() as u64) as usize;
                    exif[at] = random(256) as u8;
                }
                _ => {}
            }
            let expected = Orientation::from_exif_chunk(&exif).map_or(1, Orientation::to_exif);
            assert_eq!(header(&jpeg_with(&exif)).unwrap().orientation, expected, "{exif:02x?}");
            seen[usize::from(expected)] += 1;
        }
        assert!(seen[1..].iter().all(|&n| n > 500), "{seen:?}");
    }
}
