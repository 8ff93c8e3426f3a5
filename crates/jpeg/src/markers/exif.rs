//! The orientation in EXIF metadata (CIPA DC-008): the one home of this rule, for decoding and transcoding.

/// Returns the orientation, 1 to 8, in the body of an APP1 segment; `None` if the segment is not EXIF. A segment without a
/// valid orientation has 1.
pub(crate) fn orientation(body: &[u8]) -> Option<u8> {
    let tiff = body.strip_prefix(b"Exif\0\0")?;
    Some(tiff_orientation(tiff).unwrap_or(1))
}

/// Returns the first valid orientation (tag 0x0112, one SHORT) of the first directory of a TIFF file.
fn tiff_orientation(tiff: &[u8]) -> Option<u8> {
    let little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let b = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) })
    };
    let u32_at = |at: usize| {
        let b = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) })
    };
    let directory = u32_at(4)? as usize;
    let entries = usize::from(u16_at(directory)?);
    // A truncated directory ends the search.
    for at in (0..entries).map(|i| directory + 2 + 12 * i) {
        tiff.get(..at + 12)?;
        let (tag, kind, count, value) = (u16_at(at)?, u16_at(at + 2)?, u32_at(at + 4)?, u16_at(at + 8)?);
        if (tag, kind, count) == (0x0112, 3, 1) {
            return u8::try_from(value).ok().filter(|value| (1..=8).contains(value));
        }
    }
    None
}
