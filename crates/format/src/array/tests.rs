//! Tests of arrays.

use super::{ArrayError, ArrayFeatures, ArrayLayout, array_name};
use crate::Damage;
use crate::example::{Column, Example, encode};
use proptest::prelude::*;

fn layout<'a>(shape: &'a [i64], chunk: &'a [i64]) -> Result<ArrayLayout<'a>, ArrayError> {
    ArrayLayout::new(shape, chunk, b"u16", b"raw")
}

#[test]
fn describes_chunks_in_c_order() {
    let layout = layout(&[5, 7], &[2, 4]).unwrap();
    assert_eq!((layout.chunks(), layout.bytes()), (6, 70));
    let regions: Vec<Vec<_>> = (0..6).map(|number| layout.region(number).collect()).collect();
    let (rows, columns) = ([0..2, 2..4, 4..5], [0..4, 4..7]);
    let expected: Vec<_> = rows.iter().flat_map(|r| columns.iter().map(|c| vec![r.clone(), c.clone()])).collect();
    assert_eq!(regions, expected);
    assert_eq!((0..6).map(|number| layout.chunk_bytes(number)).collect::<Vec<_>>(), [16, 12, 16, 12, 8, 6]);
}

#[test]
fn refuses_impossible_layouts() {
    let damage = |shape: &[i64], chunk: &[i64]| layout(shape, chunk).map(|l| l.chunks()).map_err(|e| e.damage());
    let bad = Err(Damage::ImageDecode);
    assert_eq!((damage(&[], &[]), damage(&[1], &[1, 1]), damage(&[-1], &[1])), (bad, bad, bad));
    assert_eq!((damage(&[1], &[0]), damage(&[1], &[-1]), damage(&[3], &[i64::MIN])), (bad, bad, bad));
    // 2^62 elements of two bytes are 2^63 bytes; one more row is too many.
    assert_eq!(damage(&[1 << 31, 1 << 31], &[1 << 31, 1 << 31]), Ok(1));
    assert_eq!(damage(&[1 << 31, (1 << 31) + 1], &[1, 1]), bad);
    assert_eq!(damage(&[1], &[i64::MAX]), bad);
    assert_eq!(damage(&[i64::MAX, 0, i64::MAX], &[1, 1, 1]), Ok(0), "no elements");
    assert_eq!(ArrayLayout::new(&[1], &[1], b"U16", b"raw").unwrap_err(), ArrayError::Dtype { found: "U16".into() });
    assert_eq!(ArrayLayout::new(&[1], &[1], b"u8", b"").unwrap_err(), ArrayError::Codec { found: String::new() });
    let layout = layout(&[3], &[2]).unwrap();
    assert_eq!(layout.check_chunks(3).unwrap_err().damage(), Damage::PixelsLength);
    assert_eq!(layout.check_chunk(1, 4).unwrap_err().damage(), Damage::PixelsLength);
    assert_eq!((layout.check_chunks(2), layout.check_chunk(1, 2)), (Ok(()), Ok(())));
}

#[test]
fn a_name_with_all_four_members_is_an_array() {
    let features = [
        ("a", Column::Bytes(&[b"12"])),
        ("a/chunk", Column::Int64(&[2])),
        ("a/codec", Column::Bytes(&[b"raw"])),
        ("a/dtype", Column::Bytes(&[b"u8"])),
        ("a/shape", Column::Int64(&[2])),
    ];
    let found = |features: &[(&str, Column<'_>)]| {
        let mut data = vec![];
        encode(&mut features.to_vec(), &mut data);
        let example = Example::parse(&data).unwrap();
        let names: Vec<_> = example.features().iter().map(|(name, _)| name.to_string()).collect();
        let listed = names.iter().find_map(|name| array_name(name, |other| names.iter().any(|n| n == other)));
        let array = ArrayFeatures::of(&example, "a");
        assert!(array.is_none() || listed == Some("a"));
        array.map(|array| (array.chunk_count(), array.shape.single()))
    };
    assert_eq!(found(&features), Some((1, Some(2))));
    assert_eq!(found(&features[1..]), Some((0, Some(2))), "an array without chunks");
    for missing in 1..5 {
        let others: Vec<_> = features.iter().enumerate().filter(|(i, _)| *i != missing).map(|(_, f)| *f).collect();
        assert_eq!(found(&others), None);
        let mut floats = features;
        floats[missing].1 = Column::Float(&[1.0]);
        assert_eq!(found(&floats), None);
    }
    let mut numbers = features;
    numbers[0].1 = Column::Int64(&[1]);
    assert_eq!(found(&numbers), Some((0, Some(2))), "values of another type are no chunks");
}

proptest! {
    /// The chunks of an array cover each element once.
    #[test]
    fn chunks_partition_the_array(
        (shape, chunk) in (1..4usize).prop_flat_map(|d| (vec![0..6i64; d], vec![1..8i64; d])),
    ) {
        let layout = layout(&shape, &chunk).unwrap();
        let mut covered = vec![0; shape.iter().product::<i64>() as usize];
        let mut bytes = 0;
        for number in 0..layout.chunks() {
            let region: Vec<_> = layout.region(number).collect();
            prop_assert!(region.iter().zip(&chunk).all(|(r, c)| !r.is_empty() && r.end - r.start <= *c as u64));
            bytes += layout.chunk_bytes(number);
            for (at, count) in covered.iter_mut().enumerate() {
                let mut rest = at as u64;
                let inside = shape.iter().zip(&region).rev().all(|(length, range)| {
                    let index = rest % *length as u64;
                    rest /= *length as u64;
                    range.contains(&index)
                });
                *count += u32::from(inside);
            }
        }
        prop_assert!(covered.iter().all(|count| *count == 1));
        prop_assert_eq!(bytes, layout.bytes());
    }

    #[test]
    fn any_layout_is_checked_without_overflow(
        (shape, chunk) in (1..5usize).prop_flat_map(|d| (vec![any::<i64>().prop_map(|n| n >> (n & 63)); d], vec![any::<i64>().prop_map(|n| n >> (n & 63)); d])),
        number: u64,
    ) {
        if let Ok(layout) = layout(&shape, &chunk)
            && layout.chunks() > 0
        {
            let number = number % layout.chunks();
            prop_assert!(layout.chunk_bytes(number) <= layout.bytes());
            prop_assert!(layout.region(number).zip(&shape).all(|(range, length)| range.end <= *length as u64));
        }
    }
}
