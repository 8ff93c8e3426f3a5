//! TFRecord framing. A file is a sequence of frames and nothing else.
//!
//! ```text
//! +0   u64 length of data, little-endian
//! +8   u32 masked CRC32C of the eight length bytes
//! +12  data
//! +12+length  u32 masked CRC32C of data
//! ```

use crate::{Error, Result, checksum};

/// Bytes before the data: its length and the length's CRC.
pub const HEADER_BYTES: usize = 8 + 4;
/// Bytes after the data: its CRC.
pub const FOOTER_BYTES: usize = 4;
/// Bytes that framing adds to each record's data.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + FOOTER_BYTES;

/// Returns the header of a frame whose data has `length` bytes.
pub fn header(length: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    let (len, crc) = bytes.split_at_mut(8);
    len.copy_from_slice(&length.to_le_bytes());
    crc.copy_from_slice(&checksum::mask(checksum::crc32c(len)).to_le_bytes());
    bytes
}

/// Returns the footer of a frame whose data has the (unmasked) CRC32C `data_crc`.
pub fn footer(data_crc: u32) -> [u8; FOOTER_BYTES] {
    checksum::mask(data_crc).to_le_bytes()
}

/// Returns the length of a frame's data in bytes, from the frame's header. `offset` is where the frame begins in the
/// file, for errors.
///
/// # Errors
/// [`Error::LengthCrc`].
pub fn data_length(header: &[u8; HEADER_BYTES], offset: u64) -> Result<u64> {
    let (len, crc) = header.split_at(8);
    let expected = u32::from_le_bytes(crc.try_into().expect("four bytes"));
    let found = checksum::mask(checksum::crc32c(len));
    if expected != found {
        return Err(Error::LengthCrc { offset, expected, found });
    }
    Ok(u64::from_le_bytes(len.try_into().expect("eight bytes")))
}

/// Returns the length of a whole frame in bytes, header and footer included, and checks that the frame ends inside the
/// file. `start` holds the frame's first bytes, [`HEADER_BYTES`] or more of them unless the file ends before; `left` is
/// the number of bytes from the frame's start to the end of the file, and `offset` where the frame begins, for errors.
///
/// # Errors
/// [`Error::TruncatedFrame`], [`Error::LengthCrc`]. If fewer than [`HEADER_BYTES`] are left, the frame is truncated
/// whatever the bytes are; otherwise the CRC of the length is checked first.
pub fn whole_length(start: &[u8], left: u64, offset: u64) -> Result<u64> {
    let truncated = |needed| Error::TruncatedFrame { offset, needed, found: left };
    let header = start.first_chunk::<HEADER_BYTES>().ok_or(truncated(OVERHEAD_BYTES as u64))?;
    let whole = data_length(header, offset)?.saturating_add(OVERHEAD_BYTES as u64);
    if whole <= left { Ok(whole) } else { Err(truncated(whole)) }
}

/// Whether the CRC of a frame's data is checked. The CRC of the length is always checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Check {
    /// Checks it: the default everywhere.
    #[default]
    Data,
    /// Does not check the data.
    LengthOnly,
}

/// Returns the data of the frame at the start of `bytes`, which may continue after the frame. `offset` is where `bytes`
/// begin in the file, for errors.
///
/// # Errors
/// [`Error::TruncatedFrame`], [`Error::LengthCrc`], [`Error::DataCrc`].
///
/// ```
/// use shardtool_format::{checksum::crc32c, frame};
/// let mut file = frame::header(5).to_vec();
/// file.extend(b"hello");
/// file.extend(frame::footer(crc32c(b"hello")));
/// assert_eq!(file[..12], [5, 0, 0, 0, 0, 0, 0, 0, 0xea, 0xb2, 0x04, 0x3e]);
/// assert_eq!(frame::data(&file, 0, frame::Check::Data).unwrap(), b"hello");
/// ```
pub fn data(bytes: &[u8], offset: u64, check: Check) -> Result<&[u8]> {
    let whole = whole_length(bytes, bytes.len() as u64, offset)? as usize;
    let (data, footer) = bytes[HEADER_BYTES..whole].split_at(whole - OVERHEAD_BYTES);
    if check == Check::Data {
        check_footer(footer, checksum::crc32c(data), offset)?;
    }
    Ok(data)
}

/// Checks a frame's footer, the first four bytes of `footer`, against the (unmasked) CRC32C of its data. `offset` is
/// where the frame begins, for errors.
///
/// # Errors
/// [`Error::DataCrc`].
///
/// # Panics
/// If `footer` has fewer than four bytes.
pub fn check_footer(footer: &[u8], data_crc: u32, offset: u64) -> Result<()> {
    let expected = u32::from_le_bytes(*footer.first_chunk().expect("a whole footer"));
    let found = checksum::mask(data_crc);
    if expected == found { Ok(()) } else { Err(Error::DataCrc { offset, expected, found }) }
}

/// Finds the next frame after damage: returns the first position in `bytes` at which the CRC of a length matches and
/// the frame ends inside the file, which ends `left` bytes after the start of `bytes`. A false match has a probability
/// of about 2^-32 per byte; the CRC of the data rules it out.
pub fn resync(bytes: &[u8], left: u64) -> Option<usize> {
    bytes.windows(HEADER_BYTES).enumerate().position(|(at, header)| {
        let header = header.first_chunk().expect("a window is a header");
        let length = u64::from_le_bytes(*header.first_chunk().expect("eight bytes"));
        // The length is compared first because it is cheap and rules out almost every position.
        let fits = length.saturating_add((at + OVERHEAD_BYTES) as u64) <= left;
        fits && data_length(header, 0).is_ok()
    })
}

/// Returns whether `start` begins with a frame's header whose CRC matches.
pub fn begins(start: &[u8]) -> bool {
    start.first_chunk().is_some_and(|header| data_length(header, 0).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(data: &[u8]) -> Vec<u8> {
        let mut f = header(data.len() as u64).to_vec();
        f.extend_from_slice(data);
        f.extend_from_slice(&footer(checksum::crc32c(data)));
        f
    }

    #[test]
    fn detects_every_flipped_bit_and_every_truncation() {
        let good = framed(b"some bytes");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(data(&bad, 0, Check::Data).is_err(), "bit {bit}");
        }
        for cut in 0..good.len() {
            assert!(matches!(data(&good[..cut], 7, Check::Data), Err(Error::TruncatedFrame { offset: 7, .. })));
        }
    }

    #[test]
    fn returns_damaged_data_if_its_crc_is_not_checked() {
        let mut bad = framed(b"some bytes");
        bad[15] ^= 1;
        assert_eq!(data(&bad, 0, Check::LengthOnly).unwrap(), b"somd bytes");
        assert!(matches!(data(&bad, 0, Check::Data), Err(Error::DataCrc { .. })));
    }

    #[test]
    fn resync_finds_the_next_whole_frame() {
        let (a, b) = (framed(b"first"), framed(b"second"));
        let file = [&a[..], &b[..]].concat();
        let left = file.len() as u64;
        assert_eq!(resync(&file, left), Some(0));
        assert_eq!(resync(&file[1..], left - 1), Some(a.len() - 1));
        assert_eq!(resync(&file[1..], left - 2), None, "the frame does not fit");
        assert_eq!(resync(&file[a.len() + 1..], left), None);
        assert_eq!(resync(&[], 0), None);
    }

    #[test]
    fn reports_a_length_past_the_end_as_truncated() {
        let f = header(u64::MAX);
        assert!(matches!(data(&f, 0, Check::Data), Err(Error::TruncatedFrame { needed: u64::MAX, .. })));
    }

    /// The order of checks that the specification states for fewer than 16 bytes.
    #[test]
    fn checks_the_length_crc_if_a_whole_header_is_left() {
        for left in 0..HEADER_BYTES {
            assert!(matches!(whole_length(&[0xff; 16][..left], left as u64, 3), Err(Error::TruncatedFrame { .. })));
        }
        for left in HEADER_BYTES..OVERHEAD_BYTES {
            assert!(matches!(whole_length(&[0xff; 16][..left], left as u64, 3), Err(Error::LengthCrc { .. })));
            let truncated = whole_length(&header(0), left as u64, 3);
            assert!(matches!(truncated, Err(Error::TruncatedFrame { needed: 16, offset: 3, .. })));
        }
        assert_eq!(whole_length(&header(0), 16, 3).unwrap(), 16);
    }
}
