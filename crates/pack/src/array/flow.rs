//! Reads the files of optical flow of Middlebury (`.flo`), and those of depths of MPI Sintel (`.dpt`), which begin in the same way:
//!
//! ```text
//! PIEH                       202021.25 as float32
//! width, height              int32
//! elements                   float32: in .flo two for each pixel, to the right and down; in .dpt one
//! ```
//!
//! All numbers are little-endian.

use super::{Array, bytes_of};
use crate::error::ArrayRefusal;
use shardtool_format::array::ArrayDtype;
use std::borrow::Cow;

const MAGIC: &[u8; 4] = b"PIEH";

/// Returns whether a file begins as one of flow.
pub(super) fn is(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

/// Parses a file to `[H, W, 2]` float32, or `[H, W]` of a file of depths, as the extension of its name says, and else its length.
///
/// # Errors
/// [`ArrayRefusal::Flow`], [`ArrayRefusal::Length`].
pub(super) fn parse<'f>(file: &'f [u8], name: &str) -> Result<Array<'f>, ArrayRefusal> {
    let number = |at: usize| file.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes));
    let (Some(width @ 1..), Some(height @ 1..)) = (number(4), number(8)) else { return Err(ArrayRefusal::Flow) };
    let (shape, data) = ([height.into(), width.into()], &file[12..]);
    let one = bytes_of(&shape, 4)?;
    let found = data.len() as u64;
    let two = one.checked_mul(2).ok_or(ArrayRefusal::TooLarge)?;
    // Half of a flow is as long as depths.
    let expected = match name.rsplit('.').next() {
        Some(end) if end.eq_ignore_ascii_case("flo") => two,
        Some(end) if end.eq_ignore_ascii_case("dpt") => one,
        _ if found == one => one,
        _ => two,
    };
    if found != expected {
        return Err(ArrayRefusal::Length { expected, found });
    }
    let shape = if expected == two { [&shape[..], &[2]].concat() } else { shape.to_vec() };
    Ok(Array { shape, dtype: ArrayDtype::F32, data: Cow::Borrowed(data) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: [u32; 2], bytes: usize) -> Vec<u8> {
        [&MAGIC[..], &size[0].to_le_bytes(), &size[1].to_le_bytes(), &vec![7; bytes]].concat()
    }

    #[test]
    fn the_length_says_how_many_values_a_pixel_has() {
        assert_eq!(202_021.25f32.to_le_bytes(), *MAGIC);
        assert_eq!(parse(&file([3, 2], 48), "a").unwrap().shape, [2, 3, 2]);
        assert_eq!(parse(&file([3, 2], 24), "a.DPT").unwrap().shape, [2, 3]);
        for bytes in [0, 23, 25, 47, 49, 72] {
            assert!(
                matches!(parse(&file([3, 2], bytes), "a"), Err(ArrayRefusal::Length { expected: 48, .. })),
                "{bytes}"
            );
        }
        // One that is cut in the middle.
        assert!(matches!(parse(&file([3, 2], 24), "a.flo"), Err(ArrayRefusal::Length { expected: 48, found: 24 })));
        assert!(matches!(parse(&file([3, 2], 48), "a.dpt"), Err(ArrayRefusal::Length { expected: 24, found: 48 })));
        for damaged in [&b"PIEH"[..], b"PIEH\x01\0\0\0\x01\0", &file([0, 2], 0), &file([2, 0], 0)] {
            assert!(matches!(parse(damaged, "a.flo"), Err(ArrayRefusal::Flow)));
        }
        assert!(matches!(parse(&file([u32::MAX; 2], 8), "a"), Err(ArrayRefusal::TooLarge)));
    }
}
