//! JPEG 2000 (ITU-T T.800): size and channels from the SIZ segment of the codestream; with a palette (pclr box), the channels
//! of its colours.

use super::boxes::find;
use super::number;
use crate::format::Format;
use crate::image_info::ImageInfo;

/// What a file says about its colours, and what decides whether they can be decoded.
#[cfg(feature = "jp2")]
pub(crate) struct Color {
    /// The enumerated colour space of a container (T.800, I.5.3.3: method 1); `None` for a profile, or without a
    /// container.
    pub(crate) enumerated: Option<u64>,
    /// Whether the second or third component has fewer samples than the first.
    pub(crate) chroma_subsampled: bool,
    /// Whether the file is a codestream without a container.
    pub(crate) bare: bool,
    /// Width and height of the image, of which a component may have only a part of the samples.
    pub(crate) size: (u32, u32),
    /// Whether blocks are coded by the high-throughput coder of T.814 (HTJ2K).
    pub(crate) high_throughput: bool,
}

/// Reads what a file says about its colours.
#[cfg(feature = "jp2")]
pub(crate) fn color(bytes: &[u8]) -> Color {
    let colr = find(bytes, b"jp2h").filter(|_| !is_bare(bytes)).and_then(|header| find(header, b"colr"));
    let enumerated = colr.filter(|colr| colr.first() == Some(&1)).and_then(|colr| number::<4>(colr, 3));
    // Three bytes for each component, from byte 42: bits, and the distances of samples across and down.
    let steps = |codestream: &[u8], i: usize| number::<2>(codestream, 43 + 3 * i);
    let chroma_subsampled = codestream(bytes).is_some_and(|codestream| {
        number::<2>(codestream, 40).is_some_and(|components| components >= 3)
            && [1, 2].iter().any(|i| steps(codestream, *i) != steps(codestream, 0))
    });
    let size = read(bytes).map_or((0, 0), |info| (info.width, info.height));
    let high_throughput = codestream(bytes).is_some_and(is_high_throughput);
    Color { enumerated, chroma_subsampled, bare: is_bare(bytes), size, high_throughput }
}

/// Returns whether the capabilities of a codestream (CAP segment, T.800, A.5.2) include those of T.814, part 15.
#[cfg(feature = "jp2")]
fn is_high_throughput(codestream: &[u8]) -> bool {
    let mut at = 2;
    // Segments of a marker, a length and data, up to the first tile (SOT).
    while let (Some(marker), Some(len)) = (number::<2>(codestream, at), number::<2>(codestream, at + 2)) {
        match marker {
            0xFF50 => return number::<4>(codestream, at + 4).is_some_and(|parts| parts & 1 << (32 - 15) != 0),
            0xFF90 => break,
            _ => at += 2 + len as usize,
        }
    }
    false
}

/// Returns the codestream, of a container the first one without a palette.
#[cfg(feature = "jp2")]
pub(crate) fn codestream_without_palette(bytes: &[u8]) -> Option<&[u8]> {
    let palette = find(bytes, b"jp2h").and_then(|header| find(header, b"pclr"));
    codestream(bytes).filter(|_| palette.is_none())
}

fn is_bare(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xFF, 0x4F])
}

/// Returns the codestream: the file itself, or that in a container.
fn codestream(bytes: &[u8]) -> Option<&[u8]> {
    if is_bare(bytes) { Some(bytes) } else { find(bytes, b"jp2c") }
}

pub(super) fn read(bytes: &[u8]) -> Option<ImageInfo> {
    let codestream = codestream(bytes)?;
    let header = if is_bare(bytes) { None } else { find(bytes, b"jp2h") };
    // Of a palette: u16 entries, u8 columns.
    let palette = header.and_then(|header| find(header, b"pclr")?.get(2).copied());
    // SOC, SIZ, u16 length, u16 capabilities, then u32: width, height, and the offsets of both.
    if codestream.get(..4)? != [0xFF, 0x4F, 0xFF, 0x51] {
        return None;
    }
    let field = |i: usize| number::<4>(codestream, 8 + 4 * i);
    let side = |end: u64, start: u64| u32::try_from(end.checked_sub(start)?).ok();
    let (width, height) = (side(field(0)?, field(2)?)?, side(field(1)?, field(3)?)?);
    let components = number::<2>(codestream, 40)?;
    let channels = palette.map_or(components, u64::from).clamp(1, 4) as u8;
    Some(ImageInfo { format: Format::Jp2, width, height, channels, orientation: 1 })
}
