//! Repairs PNGs whose palette (PLTE) has a wrong length, so that they decode as in Pillow: the whole colours are used, and indices
//! without a colour are black. The `png` crate refuses such lengths, or panics.

use std::borrow::Cow;

use flate2::Crc;

const SIGNATURE: usize = 8;
/// Bytes of the most colours.
const LONGEST: usize = 3 * 256;
/// The colour type of palettes (PNG, table 11.1), which follows length, name, sides and depth of the first chunk.
const INDEXED: u8 = 3;
const COLOR_TYPE: usize = SIGNATURE + 8 + 9;

/// Returns the file with its palette cut to whole colours. An image that is not indexed needs no palette, so one of a wrong length
/// is removed. A palette whose CRC does not match stays, and is refused.
pub(crate) fn repaired(bytes: &[u8]) -> Cow<'_, [u8]> {
    let Some((start, data)) = palette(bytes) else { return Cow::Borrowed(bytes) };
    let indexed = bytes.get(COLOR_TYPE) == Some(&INDEXED);
    let kept = data.len() / 3 * 3;
    let (head, after) = (&bytes[..start], &bytes[start + 12 + data.len()..]);
    match (indexed, data.len()) {
        (_, 3..=LONGEST) if kept == data.len() => Cow::Borrowed(bytes),
        (true, 3..) if kept <= LONGEST => Cow::Owned([head, &chunk(&data[..kept]), after].concat()),
        (true, _) => Cow::Borrowed(bytes),
        (false, _) => Cow::Owned([head, after].concat()),
    }
}

/// Returns where the palette's chunk begins, and its data, if their CRC is right.
fn palette(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut at = SIGNATURE;
    loop {
        let (length, rest) = bytes.get(at..)?.split_first_chunk()?;
        let (name, rest) = rest.split_first_chunk::<4>()?;
        let (data, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        match name {
            b"IDAT" => return None,
            b"PLTE" => return (rest.first_chunk()? == &crc(data)).then_some((at, data)),
            _ => at += 12 + data.len(),
        }
    }
}

fn crc(data: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(b"PLTE");
    crc.update(data);
    crc.sum().to_be_bytes()
}

fn chunk(data: &[u8]) -> Vec<u8> {
    [&(data.len() as u32).to_be_bytes(), &b"PLTE"[..], data, &crc(data)].concat()
}
