//! JPEG 2000 (ITU-T T.800): size and channels from the SIZ segment of the codestream; with a palette (pclr box), the channels
//! of its colours.

use super::boxes::find;
use super::number;
use crate::format::Format;
use crate::image_info::ImageInfo;

/// Returns whether the colour specification of a container is CMYK (T.800, I.5.3.3: method 1, enumerated colour space 12).
#[cfg(feature = "jp2")]
pub(crate) fn is_cmyk(bytes: &[u8]) -> bool {
    let colr = find(bytes, b"jp2h").and_then(|header| find(header, b"colr"));
    colr.is_some_and(|colr| colr.first() == Some(&1) && number::<4>(colr, 3) == Some(12))
}

pub(super) fn read(bytes: &[u8]) -> Option<ImageInfo> {
    let (codestream, palette) = match bytes {
        [0xFF, 0x4F, ..] => (bytes, None),
        _ => {
            let pclr = find(bytes, b"jp2h").and_then(|header| find(header, b"pclr"));
            // u16 entries, u8 columns.
            (find(bytes, b"jp2c")?, pclr.and_then(|pclr| pclr.get(2).copied()))
        }
    };
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
