//! Reads Portable Float Map files, in which depths, disparities and flow are distributed (Middlebury, FlyingThings3D):
//!
//! ```text
//! Pf            PF: three channels
//! 640 480       width, height
//! -1.0          negative: little-endian; its amount is left out, as readers of these datasets do
//! elements      float32, from the bottom row to the top one
//! ```

use super::{Array, bytes_of};
use crate::error::ArrayRefusal;
use shardtool_format::array::ArrayDtype;
use std::borrow::Cow;

/// Bytes of the header, at most.
const HEADER: usize = 256;

/// Returns whether a file begins as a Portable Float Map.
pub(super) fn is(file: &[u8]) -> bool {
    matches!(file, [b'P', b'F' | b'f', next, ..] if next.is_ascii_whitespace())
}

/// Parses a file to `[H, W]` float32, or `[H, W, 3]`, the top row first.
///
/// # Errors
/// [`ArrayRefusal::Pfm`], [`ArrayRefusal::Length`], [`ArrayRefusal::TooLarge`].
pub(super) fn parse(file: &[u8]) -> Result<Array<'_>, ArrayRefusal> {
    let wrong = |problem| ArrayRefusal::Pfm { problem };
    let mut words = [""; 4];
    let mut at = 0;
    for word in &mut words {
        let header = &file[..file.len().min(HEADER)];
        let begin = at + header[at..].iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
        let length = header[begin..].iter().position(u8::is_ascii_whitespace);
        let end = begin + length.ok_or(wrong("it ends in the header"))?;
        *word = std::str::from_utf8(&header[begin..end]).map_err(|_| wrong("its header is not text"))?;
        // One space after the last word.
        at = end + 1;
    }
    let [kind, width, height, scale] = words;
    let side = |text: &str| text.parse::<u32>().ok().filter(|side| *side > 0);
    let (width, height) = side(width).zip(side(height)).ok_or(wrong("width and height are not whole numbers"))?;
    let scale: f64 = scale
        .parse()
        .ok()
        .filter(|scale: &f64| scale.is_finite() && *scale != 0.0)
        .ok_or(wrong("the third line is not a number whose sign says the order of bytes"))?;
    let mut shape = vec![u64::from(height), u64::from(width)];
    shape.extend((kind == "PF").then_some(3));
    let (expected, data) = (bytes_of(&shape, 4)?, &file[at..]);
    if data.len() as u64 != expected {
        return Err(ArrayRefusal::Length { expected, found: data.len() as u64 });
    }
    let row = data.len() / height as usize;
    let mut elements: Vec<u8> = data.chunks_exact(row).rev().flatten().copied().collect();
    if scale > 0.0 {
        elements.as_chunks_mut::<4>().0.iter_mut().for_each(|element| element.reverse());
    }
    Ok(Array { shape, dtype: ArrayDtype::F32, data: Cow::Owned(elements) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, values: &[[u8; 4]]) -> Vec<u8> {
        [header.as_bytes(), &values.concat()].concat()
    }

    fn floats(array: &Array<'_>) -> Vec<f32> {
        array.data.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
    }

    #[test]
    fn rows_are_turned_upside_down_and_both_byte_orders_read() {
        let values = [1.0f32, 2.0, 3.0, 4.0];
        let little = file("Pf\n2 2\n-0.0039\n", &values.map(f32::to_le_bytes));
        let big = file("Pf 2 2 1.0\n", &values.map(f32::to_be_bytes));
        for file in [little, big] {
            let array = parse(&file).unwrap();
            assert_eq!((array.shape.clone(), floats(&array)), (vec![2, 2], vec![3.0, 4.0, 1.0, 2.0]));
        }
        let colour = file("PF\n1 2\n-1\n", &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0].map(f32::to_le_bytes));
        let array = parse(&colour).unwrap();
        assert_eq!((array.shape.clone(), floats(&array)), (vec![2, 1, 3], vec![4.0, 5.0, 6.0, 1.0, 2.0, 3.0]));
        // An element that begins with a byte of white space.
        let spaces = file("Pf\n1 1\n-1\n", &[[b' ', b'\n', b' ', 0x40]]);
        assert_eq!(parse(&spaces).unwrap().data[..], [b' ', b'\n', b' ', 0x40]);
    }

    #[test]
    fn damaged_files_are_refused() {
        for bytes in [
            &b"Pf\n"[..],
            b"Pf\n2",
            b"Pf\n2 2\n",
            b"Pf\n-2 2\n-1\n",
            b"Pf\n0 2\n-1\n",
            b"Pf\n2 2\nlittle\n",
            b"Pf\n1 1\nnan\n1234",
            b"Pf\n1 1\n0\n1234",
        ] {
            assert!(matches!(parse(bytes), Err(ArrayRefusal::Pfm { .. })), "{bytes:?}");
        }
        assert!(matches!(parse(b"Pf\n2 2\n-1\n123"), Err(ArrayRefusal::Length { expected: 16, found: 3 })));
        let longest = b"PF\n4294967295 4294967295\n-1\n";
        assert!(matches!(parse(longest), Err(ArrayRefusal::TooLarge)));
        assert!(!is(b"Pfx") && !is(b"PF") && is(b"PF\n"));
    }
}
