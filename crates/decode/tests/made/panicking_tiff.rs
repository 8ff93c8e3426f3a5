//! A TIFF of 40x20 pixels with which the `tiff` crate panics: planar tiles of 16x16, where the crate does not recognise that
//! the last row of tiles of the second plane extends beyond the image. Our TIFF reader leaves 16-bit CMYK to that crate.
//! Also used by the tests of other crates.

/// Returns the bytes of the file.
pub(crate) fn panicking_tiff() -> Vec<u8> {
    const TILES: u32 = 4 * 2 * 3;
    const TILE_BYTES: u32 = 16 * 16 * 2;
    const TAGS: u16 = 11;
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    let values = 8 + 2 + u32::from(TAGS) * 12 + 4;
    let (counts, data) = (values + 4 * TILES, values + 8 * TILES);
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend(TAGS.to_le_bytes());
    let fields: [(u16, u16, u32, u32); TAGS as usize] = [
        (256, LONG, 1, 40),
        (257, LONG, 1, 20),
        (258, SHORT, 1, 16),
        (259, SHORT, 1, 1),
        (262, SHORT, 1, 5),
        (277, SHORT, 1, 4),
        (284, SHORT, 1, 2),
        (322, LONG, 1, 16),
        (323, LONG, 1, 16),
        (324, LONG, TILES, values),
        (325, LONG, TILES, counts),
    ];
    for (tag, kind, count, value) in fields {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(count.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.extend((0..TILES).flat_map(|tile| (data + TILE_BYTES * tile).to_le_bytes()));
    file.extend((0..TILES).flat_map(|_| TILE_BYTES.to_le_bytes()));
    file.extend((0..TILE_BYTES * TILES).map(|i| i as u8));
    file
}
