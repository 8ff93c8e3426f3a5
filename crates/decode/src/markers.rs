//! The JPEG marker chain (ITU-T T.81, annex B): what stands before the first scan, and where the file ends.
//!
//! ```text
//! SOI | (FF.. marker, u16 length, payload)* | SOS header, entropy-coded bytes | more segments and scans | EOI
//! ```

use crate::error::Error;
use crate::format::Format;
use image::metadata::Orientation;

const SOI: u8 = 0xD8;
const EOI: u8 = 0xD9;
const SOS: u8 = 0xDA;
const APP1: u8 = 0xE1;

/// What the segments before the first scan say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Width as coded, in pixels, at least 1.
    pub(crate) width: u16,
    /// Height as coded, in pixels, at least 1.
    pub(crate) height: u16,
    /// Components: 1, 3 or 4.
    pub(crate) components: u8,
    /// EXIF orientation, 1 to 8; 1 where there is none.
    pub(crate) orientation: u8,
}

/// Reads the segments up to the first scan.
///
/// # Errors
/// Where the chain breaks, has no frame header, or announces what is not decoded here (arithmetic, lossless,
/// hierarchical, 12-bit, a height given after the scan).
pub(crate) fn header(bytes: &[u8]) -> Result<Header, Error> {
    let mut chain = Chain::new(bytes)?;
    let mut frame = None;
    let mut orientation = None;
    loop {
        let (marker, start, payload) = chain.segment("a start-of-scan marker")?;
        match marker {
            SOS => break,
            APP1 if orientation.is_none() => {
                orientation = payload.strip_prefix(b"Exif\0\0").map(exif_orientation);
            }
            0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) && frame.is_none() => {
                frame = Some(frame_header(marker, start, payload)?);
            }
            _ => {}
        }
    }
    let (width, height, components) = frame.ok_or(Error::Header {
        format: Format::Jpeg,
        offset: chain.at,
        expected: "a frame header (SOF) before the first scan",
        found: SOS.into(),
    })?;
    Ok(Header { width, height, components, orientation: orientation.unwrap_or(1) })
}

/// The length of the image in bytes, up to and with its end marker (EOI). Bytes may follow: cameras append previews and
/// depth maps, and every decoder ignores them. Walking the chain keeps the end of an embedded thumbnail from being
/// taken for the end of the image.
///
/// # Errors
/// [`Error::Truncated`] when the data ends first.
pub(crate) fn complete_len(bytes: &[u8]) -> Result<usize, Error> {
    const WANTED: &str = "an end-of-image marker";
    let mut chain = Chain::new(bytes)?;
    let mut in_scan = false;
    loop {
        let marker = if in_scan { chain.marker_in_scan(WANTED)? } else { chain.marker(WANTED)? };
        match marker {
            EOI => return Ok(chain.at),
            // Inside a scan only these are followed by a length; anything else there is damage that the decoder judges.
            0xC4 | 0xDA..=0xDD | 0xE0..=0xEF | 0xFE => {
                chain.payload(WANTED)?;
            }
            _ if !in_scan && !standalone(marker) => {
                chain.payload(WANTED)?;
            }
            _ => {}
        }
        in_scan |= marker == SOS;
    }
}

fn exif_orientation(tiff: &[u8]) -> u8 {
    Orientation::from_exif_chunk(tiff).map_or(1, Orientation::to_exif)
}

fn frame_header(marker: u8, offset: usize, payload: &[u8]) -> Result<(u16, u16, u8), Error> {
    let unsupported = |feature| Err(Error::Unsupported { format: Format::Jpeg, feature });
    let bad = |expected, found| Err(Error::Header { format: Format::Jpeg, offset, expected, found });
    match marker {
        0xC0..=0xC2 => {}
        0xC3 => return unsupported("lossless coding"),
        0xC5..=0xC7 => return unsupported("hierarchical coding"),
        _ => return unsupported("arithmetic coding"),
    }
    let &[precision, h1, h0, w1, w0, components, ..] = payload else {
        return bad("a frame header of at least 8 bytes", payload.len() as u64 + 2);
    };
    let (height, width) = (u16::from_be_bytes([h1, h0]), u16::from_be_bytes([w1, w0]));
    if precision != 8 {
        return unsupported("samples of other than 8 bits");
    }
    if height == 0 {
        return unsupported("its height given after the scan (DNL)");
    }
    if width == 0 {
        return bad("a width above 0", 0);
    }
    if !matches!(components, 1 | 3 | 4) {
        return bad("1, 3 or 4 components", components.into());
    }
    if payload.len() < 6 + 3 * usize::from(components) {
        return bad("3 bytes for each component in the frame header", payload.len() as u64 + 2);
    }
    Ok((width, height, components))
}

/// Markers without a length: TEM, RST0 to RST7, SOI.
fn standalone(marker: u8) -> bool {
    matches!(marker, 0x01 | 0xD0..=0xD7 | SOI)
}

/// A walk along the markers.
struct Chain<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chain<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        match bytes {
            [0xFF, SOI, ..] => Ok(Chain { bytes, at: 2 }),
            [a, b, ..] => Err(Error::Header {
                format: Format::Jpeg,
                offset: 0,
                expected: "a start-of-image marker (0xffd8)",
                found: u16::from_be_bytes([*a, *b]).into(),
            }),
            _ => Err(truncated(bytes, "a start-of-image marker")),
        }
    }

    /// The next marker; like every decoder, passes over stray bytes before it.
    fn marker(&mut self, wanted: &'static str) -> Result<u8, Error> {
        loop {
            let rest = &self.bytes[self.at..];
            let ff = memchr::memchr(0xFF, rest).ok_or_else(|| truncated(self.bytes, wanted))?;
            let fill = rest[ff..].iter().take_while(|&&b| b == 0xFF).count();
            let &marker = rest.get(ff + fill).ok_or_else(|| truncated(self.bytes, wanted))?;
            self.at += ff + fill + 1;
            if marker != 0 {
                return Ok(marker);
            }
        }
    }

    /// The next marker after entropy-coded bytes that is neither a restart nor stuffing.
    fn marker_in_scan(&mut self, wanted: &'static str) -> Result<u8, Error> {
        loop {
            let marker = self.marker(wanted)?;
            if !standalone(marker) {
                return Ok(marker);
            }
        }
    }

    /// The payload of the segment whose marker was just read.
    fn payload(&mut self, wanted: &'static str) -> Result<&'a [u8], Error> {
        let rest = &self.bytes[self.at..];
        let &[hi, lo, ..] = rest else { return Err(truncated(self.bytes, wanted)) };
        let len = usize::from(u16::from_be_bytes([hi, lo]));
        if len < 2 {
            return Err(Error::Header {
                format: Format::Jpeg,
                offset: self.at,
                expected: "a segment length of at least 2",
                found: len as u64,
            });
        }
        let payload = rest.get(2..len).ok_or_else(|| truncated(self.bytes, wanted))?;
        self.at += len;
        Ok(payload)
    }

    /// The next segment that has a length: marker, offset of the marker's last byte, payload.
    fn segment(&mut self, wanted: &'static str) -> Result<(u8, usize, &'a [u8]), Error> {
        loop {
            let marker = self.marker(wanted)?;
            let offset = self.at - 1;
            if marker == EOI {
                return Err(Error::Header { format: Format::Jpeg, offset, expected: wanted, found: EOI.into() });
            }
            if !standalone(marker) {
                return Ok((marker, offset, self.payload(wanted)?));
            }
        }
    }
}

fn truncated(bytes: &[u8], expected: &'static str) -> Error {
    Error::Truncated { format: Format::Jpeg, offset: bytes.len(), expected }
}
