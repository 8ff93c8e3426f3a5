//! Records that are not canonical but that every reader must accept.

use crate::bytes::example::{List, bytes, delimited, entry, floats, ints, text, varint};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;
use std::collections::BTreeMap;

fn features<const N: usize>(features: [(&str, List); N]) -> BTreeMap<String, List> {
    features.into_iter().map(|(name, list)| (name.to_owned(), list)).collect()
}

fn latin1(pixels: &[u8]) -> [(&'static str, List); 3] {
    [("image/key", bytes([b"latin1/\xe9.raw"])), ("image/format", text("raw")), ("image/encoded", bytes([pixels]))]
}

/// The split `foreign` of `mixed`.
pub(super) fn foreign() -> Vec<Sample> {
    let string = |text: &[u8]| delimited(1, &delimited(1, text));
    let value = |feature: &[u8]| delimited(2, feature);
    // Unsorted features, unpacked lists, a varint that is longer than necessary, one feature twice, one without a
    // list, unknown fields, and the features of the Example in two parts.
    let first = [
        entry("image/width", &delimited(3, &[0x08, 0x81, 0x00])),
        entry("image/height", &delimited(3, &[0x08, 2, 0x50, 9])),
        entry("image/key", &string(b"an earlier value")),
        entry("größe", &delimited(2, &[0x0d, 0, 0, 0x80, 0x3f])),
    ];
    let second = [
        entry("image/key", &string(b"latin1/\xe9.raw")),
        entry("image/format", &string(b"raw")),
        entry("image/encoded", &string(&[9, 8, 7, 6, 5, 4])),
        entry("image/class/label", &[delimited(3, &[0x0a, 0]), delimited(3, &[0x08, 0])].concat()),
        delimited(1, &delimited(1, b"caption")),
        delimited(9, b"unknown"),
    ];
    let unordered = [delimited(1, &first.concat()), vec![0x10, 1], delimited(1, &second.concat())].concat();
    let [key, format, encoded] = latin1(&[9, 8, 7, 6, 5, 4]);
    let label = ("image/class/label", ints([0]));
    let size = [("image/height", ints([2])), ("image/width", ints([1]))];
    let [height, width] = size;
    let found = features([key, format, encoded, label, height, width, ("größe", floats([1.0]))]);
    let unordered = Sample::stored(unordered, found).with_pixels(&[9, 8, 7, 6, 5, 4]);
    // The value before the name, a list of one kind replaced by one of another, and a key that is not unique.
    let key = [value(&string(b"latin1/\xe9.raw")), delimited(1, b"image/key")].concat();
    let label = [delimited(1, &delimited(1, b"two")), delimited(3, &[0x0a, 1, 2])].concat();
    let reversed = [
        delimited(1, &key),
        entry("image/class/label", &label),
        entry("image/encoded", &string(&[1, 2, 3])),
        entry("image/format", &string(b"raw")),
        entry("image/height", &delimited(3, &[0x0a, 1, 1])),
        entry("image/width", &delimited(3, &[0x0a, 1, 1])),
    ];
    let [key, format, encoded] = latin1(&[1, 2, 3]);
    let label = ("image/class/label", ints([2]));
    let found = features([key, format, encoded, label, ("image/height", ints([1])), ("image/width", ints([1]))]);
    vec![unordered, Sample::stored(delimited(1, &reversed.concat()), found).with_pixels(&[1, 2, 3])]
}

/// One accepted form per record.
pub(super) fn accepted() -> Dataset {
    let one = |entries: &[Vec<u8>]| delimited(1, &entries.concat());
    let string = |text: &[u8]| delimited(1, &delimited(1, text));
    let mut samples = vec![];
    let mut add = |data: Vec<u8>, found: &[(&str, List)]| {
        let found = found.iter().map(|(name, list)| (name.to_string(), list.clone())).collect();
        samples.push(Sample::stored(data, found));
    };
    let int = ints([1]).feature();
    // No features at all; an empty Features message; several of them.
    add(vec![], &[]);
    add(vec![0x0a, 0], &[]);
    add([one(&[entry("i", &int)]), vec![0x0a, 0]].concat(), &[("i", ints([1]))]);
    // Packed and unpacked numbers in one list, and an empty packed field.
    add(one(&[entry("i", &delimited(3, &[0x08, 1, 0x0a, 2, 2, 3, 0x0a, 0, 0x08, 4]))]), &[("i", ints([1, 2, 3, 4]))]);
    let mixed = [&[0x0d][..], &1f32.to_le_bytes(), &[0x0a, 8], &2f32.to_le_bytes(), &3f32.to_le_bytes()].concat();
    add(one(&[entry("f", &delimited(2, &mixed))]), &[("f", floats([1.0, 2.0, 3.0]))]);
    // The largest varint, in ten bytes; varints with superfluous bytes as tag, length and value.
    let ten = [&[0x0a, 10][..], &varint(u64::MAX)].concat();
    add(one(&[entry("i", &delimited(3, &ten))]), &[("i", ints([-1]))]);
    let long = [0x8a, 0x80, 0x00, 0x83, 0x00, 0x85, 0x80, 0x00];
    add(one(&[entry("i", &delimited(3, &long))]), &[("i", ints([5]))]);
    add(unknown_fields(), &[("b", bytes(["x"]))]);
    // Several keys and values in one Entry: the last of each is used.
    let several = [delimited(1, b"not this"), delimited(2, &int), delimited(1, b"b"), delimited(2, &string(b"last"))];
    add(one(&[delimited(1, &several.concat())]), &[("b", text("last"))]);
    // The last value has no list: a missing feature; so is a later Entry without a value.
    let emptied = [delimited(1, b"i"), delimited(2, &int), delimited(2, b"")];
    add(one(&[delimited(1, &emptied.concat())]), &[]);
    add(one(&[entry("i", &int), delimited(1, &delimited(1, b"i"))]), &[]);
    // Lists of one kind are joined, those of another replace what came before.
    let joined = [string(b"x"), delimited(1, b""), string(b""), string(b"y")].concat();
    add(one(&[entry("b", &joined)]), &[("b", bytes(["x", "", "y"]))]);
    let replaced = [ints([1, 2]).feature(), floats([0.5]).feature(), ints([3]).feature()].concat();
    add(one(&[entry("i", &replaced)]), &[("i", ints([3]))]);
    let emptied = [ints([1, 2]).feature(), delimited(2, b"")].concat();
    add(one(&[entry("f", &emptied)]), &[("f", floats([]))]);
    // Without a key, the name is empty.
    add(one(&[delimited(1, &delimited(2, &int))]), &[("", ints([1]))]);
    // Names that only differ in case or in Unicode's normalisation; the last of two equal ones is used.
    let names = [("é", ints([1])), ("e\u{301}", ints([2])), ("I", ints([3])), ("\u{10ffff}", ints([4]))];
    let mut entries: Vec<_> = names.iter().map(|(name, list)| entry(name, &list.feature())).collect();
    entries.insert(0, entry("I", &text("an earlier value").feature()));
    add(one(&entries), &names);
    let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    Dataset { image: None, label: None, ..dataset }
}

/// Unknown fields of each wire type and the largest field number, at every level. Their contents are not parsed. Field 1
/// of an Example, of Features and of an Entry with another wire type than 2 is an unknown field, too.
fn unknown_fields() -> Vec<u8> {
    let largest = [varint(((1 << 29) - 1) << 3 | 2), vec![2, 0xff, 0xff]].concat();
    let unknown = [&[0x10, 1, 0x19][..], &[7; 8], &[0x22, 1, 0xff, 0x2d], &[7; 4], &largest].concat();
    let list = [&unknown[..], &delimited(1, b"x")].concat();
    let other_types = [&[0x08, 9, 0x0d][..], &[7; 4], &[0x09], &[7; 8]].concat();
    let entry = [
        other_types.clone(),
        delimited(1, b"b"),
        vec![0x10, 3],
        delimited(2, &delimited(1, &list)),
        delimited(3, b"third"),
        delimited(7, b"\xff"),
    ];
    let features = [other_types.clone(), delimited(1, &entry.concat()), unknown.clone()].concat();
    [other_types, delimited(1, &features), unknown].concat()
}
