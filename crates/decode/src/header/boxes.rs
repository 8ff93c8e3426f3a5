//! Boxes (ISO/IEC 14496-12, 4.2): u32 length including the header, 4-byte type, payload. After length 1 and the type follows
//! a u64 length; length 0 means up to the end.

use super::number;

/// Iterates over the boxes in `bytes`: type and payload. Ends at the first invalid box.
pub(super) fn boxes(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let kind: [u8; 4] = *rest.get(4..)?.first_chunk()?;
        let (header, len) = match number::<4>(rest, 0)? {
            0 => (8, rest.len()),
            1 => (16, usize::try_from(number::<8>(rest, 8)?).ok()?),
            len => (8, usize::try_from(len).ok()?),
        };
        // A truncated last box is read as far as it goes.
        let payload = rest.get(header..len.min(rest.len()))?;
        rest = &rest[len.min(rest.len())..];
        Some((kind, payload))
    })
}

/// Returns the payload of the first box of type `kind`.
pub(super) fn find<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes).find(|(found, _)| found == kind).map(|(_, payload)| payload)
}
