//! Tests of Examples.

use super::{Column, Example, Feature, encode};
use crate::Error;
use crate::wire::put_delimited;
use proptest::prelude::*;

#[test]
fn accepts_unpacked_and_joined_lists_and_uses_the_last_duplicate() {
    let feature = |name: &[u8], lists: &[u8]| {
        let mut entry = vec![];
        put_delimited(1, name.len(), &mut entry);
        entry.extend_from_slice(name);
        put_delimited(2, lists.len(), &mut entry);
        entry.extend_from_slice(lists);
        let mut out = vec![];
        put_delimited(1, entry.len(), &mut out);
        [out, entry].concat()
    };
    // int64 list with two unpacked values (tag 0x08), then another int64 list with a packed one.
    let joined = feature(b"i", &[0x1a, 4, 0x08, 5, 0x08, 6, 0x1a, 3, 0x0a, 1, 7]);
    let replaced = feature(b"r", &[0x1a, 2, 0x08, 5, 0x0a, 3, 0x0a, 1, b'z']);
    let unpacked_float = feature(b"f", &[0x12, 5, 0x0d, 0, 0, 0x80, 0x3f]);
    let older = feature(b"d", &[0x1a, 2, 0x08, 1]);
    let newer = feature(b"d", &[0x1a, 2, 0x08, 2]);
    let features = [older, joined, replaced, unpacked_float, newer].concat();
    let mut data = vec![];
    put_delimited(1, features.len(), &mut data);
    data.extend(features);
    let example = Example::parse(&data).unwrap();
    let Some(Feature::Int64(list)) = example.get("i") else { panic!("i is int64") };
    assert_eq!(list.iter().collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!(example.bytes("r"), Some(&b"z"[..]));
    let Some(Feature::Float(list)) = example.get("f") else { panic!("f is float") };
    assert_eq!(list.single(), Some(1.0));
    assert_eq!(example.int64("d"), Some(2));
    assert_eq!(example.features().len(), 4);
}

#[test]
fn rejects_a_list_with_values_of_another_type() {
    // Entry "a" whose Int64List holds a 32-bit field.
    let data = [10, 14, 10, 12, 10, 1, b'a', 18, 7, 26, 5, 13, 0, 0, 0, 0];
    assert!(matches!(Example::parse(&data), Err(Error::MalformedExample { .. })));
}

proptest! {
    #[test]
    fn parses_random_bytes_without_panic(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(example) = Example::parse(&data) {
            example.features().iter().for_each(|(_, f)| { f.count(); });
        }
    }

    #[test]
    fn parses_what_it_writes(ints in proptest::collection::vec(any::<i64>(), 0..9),
                           floats in proptest::collection::vec(-1e9f32..1e9, 0..9),
                           strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..4)) {
        let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
        let mut data = vec![];
        encode(&mut [("s", Column::Bytes(&strings)), ("f", Column::Float(&floats)), ("é", Column::Int64(&ints))], &mut data);
        let example = Example::parse(&data).unwrap();
        let names: Vec<_> = example.features().iter().map(|(n, _)| &**n).collect();
        prop_assert_eq!(names, ["f", "s", "é"]);
        match (example.get("s"), example.get("f"), example.get("é")) {
            (Some(Feature::Bytes(s)), Some(Feature::Float(f)), Some(Feature::Int64(i))) => {
                prop_assert_eq!(s.iter().collect::<Vec<_>>(), strings);
                prop_assert_eq!(f.iter().collect::<Vec<_>>(), floats);
                prop_assert_eq!(i.iter().collect::<Vec<_>>(), ints);
            }
            other => prop_assert!(false, "{:?}", other),
        }
        for cut in 0..data.len() {
            let _ = Example::parse(&data[..cut]);
        }
    }
}
