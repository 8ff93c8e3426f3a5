//! Records of `tf.train.SequenceExample`.

use crate::bytes::example::{List, bytes, delimited, entry, example, floats, ints, text};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;
use std::collections::BTreeMap;

/// Returns a list entry of FeatureLists: a name and one Feature per step.
pub(crate) fn list(name: &str, steps: &[Vec<u8>]) -> Vec<u8> {
    let steps: Vec<u8> = steps.iter().flat_map(|step| delimited(1, step)).collect();
    delimited(1, &[delimited(1, name.as_bytes()), delimited(2, &steps)].concat())
}

/// Returns a SequenceExample of a context and list entries.
pub(crate) fn record(context: &[(String, List)], lists: &[Vec<u8>]) -> Vec<u8> {
    [example(context), delimited(2, &lists.concat())].concat()
}

pub(crate) fn named<const N: usize>(features: [(&str, List); N]) -> BTreeMap<String, List> {
    features.into_iter().map(|(name, list)| (name.to_owned(), list)).collect()
}

pub(crate) fn context<const N: usize>(features: [(&str, List); N]) -> Vec<(String, List)> {
    named(features).into_iter().collect()
}

fn dataset(requires: Vec<&'static str>, samples: Vec<Sample>) -> Dataset {
    let dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    Dataset { requires, image: None, ..dataset }
}

/// Context and lists, steps without values, lists without values, and accepted forms that are not canonical.
pub(super) fn sequence() -> Dataset {
    let steps = |lists: &[List]| lists.iter().map(List::feature).collect::<Vec<_>>();
    let (long, short) = ([5; 300], [6; 20]);
    let given = context([("image/key", text("a")), ("image/class/label", ints([1]))]);
    let first = record(
        &given,
        &[
            list("frames", &steps(&[bytes([long]), bytes([short])])),
            list("scores", &steps(&[floats([0.5, 1.0]), floats([]), floats([2.0])])),
            list("ids", &steps(&[ints([1]), ints([2, 3])])),
        ],
    );
    let first = Sample::stored(
        first,
        named([
            ("image/key", text("a")),
            ("image/class/label", ints([1])),
            ("frames", bytes([&long[..], &short])),
            ("frames/lengths", ints([1, 1])),
            ("scores", floats([0.5, 1.0, 2.0])),
            ("scores/lengths", ints([2, 0, 1])),
            ("ids", ints([1, 2, 3])),
            ("ids/lengths", ints([1, 2])),
        ]),
    );
    // Steps without a list or without values give no type; a list without steps has no lengths.
    let empty = Sample::stored(
        record(&[], &[list("ids", &[vec![], ints([]).feature(), floats([]).feature()]), list("scores", &[])]),
        named([("ids/lengths", ints([0, 0, 0])), ("scores/lengths", ints([]))]),
    );
    // No context at all; no lists at all; nothing.
    let lists = delimited(2, &list("ids", &steps(&[ints([9])])));
    let no_context = Sample::stored(lists, named([("ids", ints([9])), ("ids/lengths", ints([1]))]));
    let no_lists = Sample::new([("image/class/label", ints([2]))]);
    let nothing = Sample::stored(vec![], named([]));
    let samples = vec![first, empty, no_context, no_lists, nothing, accepted()];
    dataset(vec!["sequence-example"], samples)
}

/// Forms that are not canonical: see the records of `accepted-forms`.
fn accepted() -> Sample {
    let step = |feature: &[u8]| delimited(1, feature);
    let unknown = [&[0x19][..], &[7; 8], &[0x22, 1, 0xff, 0x2d], &[7; 4]].concat();
    let other_types = [&[0x08, 9, 0x0d][..], &[7; 4]].concat();
    // A step whose first list is replaced by one of another kind; an empty list of another kind gives no type.
    let replaced = [floats([4.0]).feature(), ints([4]).feature()].concat();
    let steps =
        [step(&replaced), step(&floats([]).feature()), step(&[0x1a, 2, 0x08, 5]), unknown.clone(), other_types.clone()];
    let entry_of_list = [
        delimited(2, b""),
        other_types.clone(),
        delimited(1, b"earlier name"),
        delimited(2, &step(&ints([1]).feature())),
        delimited(1, b"ids"),
        delimited(2, &steps.concat()),
        unknown.clone(),
    ];
    let twice =
        [list("scores", &[floats([1.0]).feature()]), list("scores", &[floats([2.0]).feature(), vec![]])].concat();
    let lists = [other_types.clone(), delimited(1, &entry_of_list.concat()), unknown.clone()].concat();
    let data = [
        delimited(2, &twice),
        other_types,
        delimited(1, &entry("image/key", &text("b").feature())),
        delimited(2, &lists),
        unknown,
        delimited(1, &entry("image/class/label", &ints([3]).feature())),
    ];
    let features = named([
        ("image/key", text("b")),
        ("image/class/label", ints([3])),
        ("ids", ints([4, 5])),
        ("ids/lengths", ints([1, 0, 1])),
        ("scores", floats([2.0])),
        ("scores/lengths", ints([1, 0])),
    ]);
    Sample::stored(data.concat(), features)
}

/// Records with a field 2 in a dataset that does not require `sequence-example`: an unknown field.
pub(super) fn not_required() -> Dataset {
    let given = context([("image/class/label", ints([1]))]);
    let lists = list("ids", &[ints([1]).feature()]);
    let samples = vec![
        Sample::stored(record(&given, &[lists]), given.iter().cloned().collect()),
        Sample::stored([example(&given), delimited(2, b"\xff\xff")].concat(), given.iter().cloned().collect()),
    ];
    dataset(vec![], samples)
}
