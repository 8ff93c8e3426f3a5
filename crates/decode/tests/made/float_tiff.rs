//! A TIFF of 32-bit floating-point grey samples. Also used by the tests of other crates.

/// Returns the file of an image of one row with the given samples.
pub(crate) fn float_tiff(samples: &[f32]) -> Vec<u8> {
    const TAGS: u16 = 9;
    let (short, long) = (3u16, 4u16);
    let data = 8 + 2 + u32::from(TAGS) * 12 + 4;
    let width = samples.len() as u32;
    let fields: [(u16, u16, u32); TAGS as usize] = [
        (256, long, width),
        (257, long, 1),
        (258, short, 32),
        (259, short, 1),
        (262, short, 1),
        (273, long, data),
        (277, short, 1),
        (279, long, 4 * width),
        (339, short, 3),
    ];
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    file.extend(TAGS.to_le_bytes());
    for (tag, kind, value) in fields {
        file.extend(tag.to_le_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(1u32.to_le_bytes());
        file.extend(value.to_le_bytes());
    }
    file.extend([0; 4]);
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    file
}
