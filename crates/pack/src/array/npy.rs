//! Reads `.npy` files ("NEP 1: a simple file format for NumPy arrays", and `numpy.lib.format` for versions 2 and 3):
//!
//! ```text
//! \x93NUMPY, major version, minor version, length of the header (u16 in version 1, else u32), header, elements
//! {'descr': '<f4', 'fortran_order': False, 'shape': (32, 64, 64), }
//! ```

use super::Array;
use crate::error::ArrayRefusal;
use shardtool_decode::{ArrayBox, Limits, decode_array_box_of};
use shardtool_format::array::{ArrayDtype, ArrayLayout};
use std::borrow::Cow;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Parses a file. Elements in Fortran order or big-endian are reordered.
///
/// # Errors
/// [`ArrayRefusal::Npy`], [`ArrayRefusal::Dtype`], [`ArrayRefusal::Length`].
pub(crate) fn parse(file: &[u8]) -> Result<Array<'_>, ArrayRefusal> {
    let wrong = |problem| ArrayRefusal::Npy { problem };
    let rest = file.strip_prefix(MAGIC).ok_or(wrong("it does not begin with `\\x93NUMPY`"))?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or(wrong("it ends in the header"))?;
    let (length, rest) = match version {
        [1, _] => rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_le_bytes(*length)), rest)),
        [2 | 3, _] => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        _ => return Err(wrong("its version is not 1, 2 or 3")),
    }
    .ok_or(wrong("it ends in the header"))?;
    let (header, data) = rest.split_at_checked(length).ok_or(wrong("it ends in the header"))?;
    let header = std::str::from_utf8(header).map_err(|_| wrong("its header is not text"))?;
    let Header { descr, fortran, shape } =
        Header::parse(header).ok_or(wrong("its header is not a dict of `descr`, `fortran_order` and `shape`"))?;
    let (dtype, big_endian) = dtype(descr).ok_or_else(|| ArrayRefusal::Dtype { found: descr.to_owned() })?;
    let elements = shape.iter().try_fold(dtype.bytes() as u64, |bytes, length| bytes.checked_mul(*length));
    // A dimension of length 0 makes the product 0, however long the others are.
    let expected = if shape.contains(&0) { 0 } else { elements.ok_or(ArrayRefusal::TooLarge)? };
    if data.len() as u64 != expected {
        return Err(ArrayRefusal::Length { expected, found: data.len() as u64 });
    }
    let mut data = Cow::Borrowed(data);
    if big_endian {
        data.to_mut().chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    if fortran && shape.len() > 1 {
        data = Cow::Owned(to_c_order(&data, &shape, dtype)?);
    }
    Ok(Array { shape, dtype, data })
}

/// Reorders the elements of an array in Fortran order, which is the transposed array in C order.
fn to_c_order(data: &[u8], shape: &[u64], dtype: ArrayDtype) -> Result<Vec<u8>, ArrayRefusal> {
    let stored: Vec<i64> = shape.iter().rev().map(|length| *length as i64).collect();
    let chunk: Vec<i64> = stored.iter().map(|length| (*length).max(1)).collect();
    let layout = ArrayLayout::new(&stored, &chunk, dtype.name().as_bytes(), b"raw")?;
    let mut whole = ArrayBox::contiguous(vec![0; shape.len()], shape.to_vec());
    whole.size.reverse();
    whole.strides.reverse();
    let mut out = vec![0; data.len()];
    let chunks = || (!data.is_empty()).then_some(data).into_iter();
    decode_array_box_of(&layout, &whole, chunks, &Limits::default(), &mut vec![], &mut out)?;
    Ok(out)
}

/// Returns the type of a `descr` such as `<f4`, and whether its elements are big-endian.
fn dtype(descr: &str) -> Option<(ArrayDtype, bool)> {
    let (order, name) = descr.split_at_checked(1)?;
    let dtype = match name {
        "u1" => ArrayDtype::U8,
        "i1" => ArrayDtype::I8,
        "u2" => ArrayDtype::U16,
        "i2" => ArrayDtype::I16,
        "u4" => ArrayDtype::U32,
        "i4" => ArrayDtype::I32,
        "u8" => ArrayDtype::U64,
        "i8" => ArrayDtype::I64,
        "f2" => ArrayDtype::F16,
        "f4" => ArrayDtype::F32,
        "f8" => ArrayDtype::F64,
        "b1" => ArrayDtype::Bool,
        _ => return None,
    };
    match order {
        "<" | "|" | "=" => Some((dtype, false)),
        ">" => Some((dtype, true)),
        _ => None,
    }
}

struct Header<'a> {
    descr: &'a str,
    fortran: bool,
    shape: Vec<u64>,
}

impl<'a> Header<'a> {
    /// Parses a Python dict with these three members, as numpy writes it.
    fn parse(text: &'a str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (name, value) = string(rest)?;
            let value = value.trim_start().strip_prefix(':')?.trim_start();
            rest = match name {
                // A list is a structured type, which is refused by its text.
                "descr" if value.starts_with('[') => {
                    let end = value.rfind(']')? + 1;
                    descr = Some(&value[..end]);
                    &value[end..]
                }
                "descr" => {
                    let (found, rest) = string(value)?;
                    descr = Some(found);
                    rest
                }
                "fortran_order" => {
                    let found = [("True", true), ("False", false)];
                    let (word, flag) = found.into_iter().find(|(word, _)| value.starts_with(word))?;
                    fortran = Some(flag);
                    &value[word.len()..]
                }
                "shape" => {
                    let (inside, rest) = value.strip_prefix('(')?.split_once(')')?;
                    let lengths = inside.split(',').map(str::trim).filter(|length| !length.is_empty());
                    shape = Some(lengths.map(|length| length.parse().ok()).collect::<Option<_>>()?);
                    rest
                }
                _ => return None,
            };
            rest = rest.trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        }
        Some(Header { descr: descr?, fortran: fortran?, shape: shape? })
    }
}

/// Splits a quoted string off the start.
fn string(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file of version 1 with this header, padded as numpy does.
    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{header:<117}\n");
        let mut file = [&MAGIC[..], &[1, 0], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
        file.extend_from_slice(data);
        file
    }

    #[test]
    fn reads_what_numpy_writes() {
        let array =
            file("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
        let found = parse(&array).unwrap();
        assert_eq!((found.shape, found.dtype), (vec![2, 3], ArrayDtype::I16));
        assert!(matches!(found.data, Cow::Borrowed([1, 0, 2, ..])));
        let one = file("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", &[1, 0, 1]);
        assert_eq!(parse(&one).unwrap().shape, [3]);
        let scalar = file("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &[0; 8]);
        assert_eq!(parse(&scalar).unwrap().shape, [0; 0]);
        let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (0, 5), }\n";
        let version =
            |version: u8| [&MAGIC[..], &[version, 0], &(header.len() as u32).to_le_bytes(), header.as_bytes()].concat();
        assert_eq!(parse(&version(2)).unwrap().shape, [0, 5]);
        assert_eq!(parse(&version(3)).unwrap().data.len(), 0);
        assert!(matches!(parse(&version(4)), Err(ArrayRefusal::Npy { .. })));
    }

    #[test]
    fn reorders_fortran_order_and_big_endian() {
        // numpy.asfortranarray([[1, 2, 3], [4, 5, 6]], '>u2') stores 1, 4, 2, 5, 3, 6.
        let data = [0, 1, 0, 4, 0, 2, 0, 5, 0, 3, 0, 6];
        let fortran = file("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3), }", &data);
        assert_eq!(&parse(&fortran).unwrap().data[..], [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
        let empty = file("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 0, 3), }", &[]);
        assert_eq!(parse(&empty).unwrap().data.len(), 0);
    }

    #[test]
    fn refuses_other_types_and_lengths() {
        let refused = |descr: &str, shape: &str, bytes: usize| {
            let header = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
            parse(&file(&header, &vec![0; bytes])).unwrap_err()
        };
        for descr in ["'<c8'", "'|O'", "'<U3'", "'<M8[ns]'", "[('a', '<f4'), ('b', '<i2')]", "'?x'", "''"] {
            assert!(matches!(refused(descr, "(1,)", 4), ArrayRefusal::Dtype { .. }), "{descr}");
        }
        let length = refused("'<f4'", "(2, 2)", 15);
        assert!(matches!(length, ArrayRefusal::Length { expected: 16, found: 15 }));
        assert!(matches!(refused("'<f4'", "(4611686018427387904, 4)", 0), ArrayRefusal::TooLarge));
        assert!(matches!(refused("'<f4'", "(-1,)", 0), ArrayRefusal::Npy { .. }));
        for bytes in
            [&b""[..], b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", b"GIF89a"]
        {
            assert!(matches!(parse(bytes), Err(ArrayRefusal::Npy { .. })), "{bytes:?}");
        }
    }

    #[test]
    fn damaged_files_are_refused_without_panic() {
        let good = file("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", &[7; 12]);
        let mut parsed = 0;
        for at in 0..good.len() {
            let _ = parse(&good[..at]);
            for byte in [0, b'9', b',', b'\'', b'(', b')', b'[', 0xc3, 0xff] {
                let mut damaged = good.clone();
                damaged[at] = byte;
                // What is accepted has as many bytes as its shape says.
                if let Ok(array) = parse(&damaged) {
                    parsed += 1;
                    assert_eq!(
                        array.data.len() as u64,
                        array.shape.iter().product::<u64>() * array.dtype.bytes() as u64
                    );
                }
            }
        }
        assert!(parsed > 100, "other elements and padding are accepted: {parsed}");
    }
}
