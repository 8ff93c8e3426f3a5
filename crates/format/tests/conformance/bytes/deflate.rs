//! Compressed files of one stored block.

/// Returns a gzip file (RFC 1952).
pub(crate) fn gzip(content: &[u8]) -> Vec<u8> {
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    [&header[..], &stored(content), &crc32(content).to_le_bytes(), &(content.len() as u32).to_le_bytes()].concat()
}

/// Returns a zlib stream (RFC 1950). `level` is the second byte: 01, 5e, 9c or da.
pub(crate) fn zlib(content: &[u8], level: u8) -> Vec<u8> {
    [&[0x78, level][..], &stored(content), &adler32(content).to_be_bytes()].concat()
}

fn stored(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a small fixture");
    [&[1][..], &length.to_le_bytes(), &(!length).to_le_bytes(), content].concat()
}

/// The CRC of gzip: another polynomial than CRC32C.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (b + a) % 65_521)
    });
    b << 16 | a
}
