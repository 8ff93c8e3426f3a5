//! CRC32C (RFC 7143, appendix A.4), bit by bit.

/// Returns the CRC32C of bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

/// Returns a CRC as frames store it.
pub(crate) fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Returns `CRC:LENGTH`, the form of bytes in expected results.
pub(crate) fn sum(bytes: &[u8]) -> String {
    format!("{:08x}:{}", crc32c(bytes), bytes.len())
}
