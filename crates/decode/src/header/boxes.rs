//! Boxes (ISO/IEC 14496-12, 4.2): u32 length with the header, 4 bytes of type, payload. Length 1 is followed by a u64
//! length; 0 means up to the end.

use super::number;

/// The boxes in `bytes`, each its type and its payload. Ends at the first that does not fit.
pub(super) fn boxes(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let kind: [u8; 4] = *rest.get(4..)?.first_chunk()?;
        let (header, len) = match number::<4>(rest, 0)? {
            0 => (8, rest.len()),
            1 => (16, usize::try_from(number::<8>(rest, 8)?).ok()?),
            len => (8, usize::try_from(len).ok()?),
        };
        // A last box cut short is read as far as it reaches.
        let payload = rest.get(header..len.min(rest.len()))?;
        rest = &rest[len.min(rest.len())..];
        Some((kind, payload))
    })
}

/// The payload of the first box of a type.
pub(super) fn find<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes).find(|(found, _)| found == kind).map(|(_, payload)| payload)
}
