//! AVIF and HEIF (ISO/IEC 23008-12): size, channels and orientation of the primary item, from its properties.
//!
//! ```text
//! ftyp: brands | meta: pitm (primary item), iprp: ipco (properties), ipma (which item has which of them)
//! ```

use super::boxes::{boxes, find};
use super::number;
use crate::format::Format;
use crate::image_info::ImageInfo;

/// Returns AVIF or HEIF from the brands of the file type box, `None` for other brands.
pub(crate) fn brand(bytes: &[u8]) -> Option<Format> {
    if bytes.get(4..8)? != b"ftyp" {
        return None;
    }
    let len = number::<4>(bytes, 0)?.clamp(8, 256) as usize;
    let brands = bytes[8..len.min(bytes.len())].chunks_exact(4).enumerate().filter(|(i, _)| *i != 1);
    let mut heif = false;
    for (_, brand) in brands {
        match brand {
            b"avif" | b"avis" => return Some(Format::Avif),
            b"heic" | b"heix" | b"heim" | b"heis" | b"hevc" | b"hevx" | b"mif1" | b"msf1" => heif = true,
            _ => {}
        }
    }
    heif.then_some(Format::Heif)
}

pub(super) fn read(format: Format, bytes: &[u8]) -> Option<ImageInfo> {
    // `meta`, `pitm` and `ipma` begin with a version and flags.
    let meta = find(bytes, b"meta")?.get(4..)?;
    let pitm = find(meta, b"pitm")?;
    let primary = if pitm.first()? == &0 { number::<2>(pitm, 4)? } else { number::<4>(pitm, 4)? };
    let iprp = find(meta, b"iprp")?;
    let properties: Vec<_> = boxes(find(iprp, b"ipco")?).collect();
    let (mut size, mut planes, mut angle, mut mirror) = (None, 3, 0, None);
    for index in associations(find(iprp, b"ipma")?, primary)? {
        let Some((kind, payload)) = index.checked_sub(1).and_then(|i| properties.get(i)) else { continue };
        match kind {
            b"ispe" => size = Some((number::<4>(payload, 4)?, number::<4>(payload, 8)?)),
            b"pixi" => planes = *payload.get(4)?,
            b"irot" => angle = payload.first()? & 3,
            b"imir" => mirror = Some(payload.first()? & 1),
            _ => {}
        }
    }
    let (width, height) = size?;
    let alpha = properties.iter().any(|(kind, payload)| {
        kind == b"auxC"
            && payload.get(4..).is_some_and(|urn| {
                urn.starts_with(b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha")
                    || urn.starts_with(b"urn:mpeg:hevc:2015:auxid:1")
            })
    });
    let channels = if planes == 1 { 1 } else { 3 } + u8::from(alpha);
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    Some(ImageInfo { format, width, height, channels, orientation: orientation(angle, mirror) })
}

/// Returns the properties of an item as indices from 1.
fn associations(ipma: &[u8], item: u64) -> Option<Vec<usize>> {
    let (version, wide) = (*ipma.first()?, ipma.get(3)? & 1 == 1);
    let mut at = 8;
    for _ in 0..number::<4>(ipma, 4)? {
        let id = if version == 0 { number::<2>(ipma, at)? } else { number::<4>(ipma, at)? };
        at += if version == 0 { 2 } else { 4 };
        let count = usize::from(*ipma.get(at)?);
        at += 1;
        let width = if wide { 2 } else { 1 };
        if id == item {
            // The highest bit says whether the property is essential.
            let index = |i| match wide {
                true => number::<2>(ipma, at + 2 * i).map(|n| n & 0x7FFF),
                false => number::<1>(ipma, at + i).map(|n| n & 0x7F),
            };
            return (0..count).map(|i| index(i).map(|n| n as usize)).collect();
        }
        at += count * width;
    }
    Some(vec![])
}

/// Returns the EXIF orientation of an image that is rotated anticlockwise by `angle` quarter turns, then flipped: top to bottom
/// by axis 0, left to right by axis 1.
fn orientation(angle: u8, mirror: Option<u8>) -> u8 {
    match (angle, mirror) {
        (0, None) => 1,
        (1, None) => 8,
        (2, None) => 3,
        (_, None) => 6,
        (0, Some(0)) | (2, Some(1)) => 4,
        (0, Some(_)) | (2, Some(_)) => 2,
        (1, Some(0)) | (3, Some(1)) => 5,
        (_, Some(_)) => 7,
    }
}
