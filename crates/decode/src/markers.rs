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

/// Returns whether the first scan of a JPEG has all of its four components, and its scans together have all bits of all of their
/// coefficients.
pub(crate) fn has_four_complete_components(bytes: &[u8]) -> bool {
    let mut scans = Scans { bytes, at: 2 };
    let Some(first) = scans.next().filter(|scan| scan.components.len() == 4) else { return false };
    let ids = first.components.clone();
    // Whether the lowest bit of each coefficient was met.
    let mut complete = [[false; 64]; 4];
    for scan in std::iter::once(first).chain(scans).filter(|scan| scan.low == 0) {
        for (_, complete) in ids.iter().zip(&mut complete).filter(|(id, _)| scan.components.contains(id)) {
            let (start, end) = (usize::from(scan.band.0), usize::from(scan.band.1));
            complete.iter_mut().take(end + 1).skip(start).for_each(|met| *met = true);
        }
    }
    complete.iter().flatten().all(|met| *met)
}

/// A scan of a JPEG.
struct ScanSegment {
    /// Identifiers of its components.
    components: Vec<u8>,
    /// The first and the last of its coefficients.
    band: (u8, u8),
    /// The lowest of their bits.
    low: u8,
}

/// The scans of a JPEG, as far as its segments lead to them.
struct Scans<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Iterator for Scans<'_> {
    type Item = ScanSegment;

    fn next(&mut self) -> Option<ScanSegment> {
        const SOS: u8 = 0xda;
        loop {
            let rest = self.bytes.get(self.at..)?;
            match *rest.first_chunk()? {
                [0xff, marker @ (0x01..=0xcf | 0xd8..=0xfe)] => {
                    let segment = rest.get(2..)?;
                    let length = usize::from(u16::from_be_bytes(*segment.first_chunk()?)).max(2);
                    self.at += 2 + length;
                    if marker == SOS {
                        let (count, rest) = segment.get(2..length)?.split_first()?;
                        let (components, parameters) = rest.split_at_checked(2 * usize::from(*count))?;
                        let [start, end, bits] = *parameters.first_chunk()?;
                        let components = components.iter().step_by(2).copied().collect();
                        return Some(ScanSegment { components, band: (start, end.min(63)), low: bits & 15 });
                    }
                }
                // Fill bytes, restart markers, and entropy-coded data.
                _ => self.at += 1,
            }
        }
    }
}

pub(crate) fn converted(error: jpeg::Error) -> Error {
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
        Feature::Components(_) => "a number of components other than one, three and four",
        Feature::Sampling => "sampling factors that do not divide each other",
        Feature::McuBlocks => "more than 10 blocks in an MCU",
        Feature::Incomplete => "progressive scans of which some are missing",
        _ => "an unknown frame header",
    }
}
