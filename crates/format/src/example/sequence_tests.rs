//! Tests of SequenceExamples: bytes made by hand from the wire format, and a model of the rules.

use super::{Example, Feature, Message, has_feature_lists};
use crate::Error;
use crate::wire::{put_delimited, put_varint};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Values of a feature.
#[derive(Debug, Clone, PartialEq)]
enum Values {
    Bytes(Vec<Vec<u8>>),
    Float(Vec<f32>),
    Int64(Vec<i64>),
}

fn values(feature: Feature<'_>) -> Option<Values> {
    Some(match feature {
        Feature::Empty => return None,
        Feature::Bytes(list) => Values::Bytes(list.iter().map(<[u8]>::to_vec).collect()),
        Feature::Float(list) => Values::Float(list.iter().collect()),
        Feature::Int64(list) => Values::Int64(list.iter().collect()),
    })
}

/// Written by hand: context `id` = 7; list `frames` of three steps with 2, 0 and 1 byte strings; list `t` of two steps, the
/// first of which has an empty list of another type and an unknown field.
const RECORD: &[u8] = &[
    0x0a, 13, // field 1, context: Features
    0x0a, 11, // entry
    0x0a, 2, b'i', b'd', // key
    0x12, 5, 0x1a, 3, 0x0a, 1, 7, // value: Int64List, packed 7
    0x12, 55, // field 2: FeatureLists
    0x0a, 29, // entry
    0x0a, 6, b'f', b'r', b'a', b'm', b'e', b's', // key
    0x12, 19, // value: FeatureList
    0x0a, 8, 0x0a, 6, 0x0a, 1, b'x', 0x0a, 1, b'y', // step: BytesList of two
    0x0a, 0, // step: no list
    0x0a, 5, 0x0a, 3, 0x0a, 1, b'z', // step: BytesList of one
    0x0a, 22, // entry, value before key
    0x12, 17, // value: FeatureList
    0x0a, 2, 0x12, 0, // step: empty FloatList
    0x10, 5, // unknown field of FeatureList
    0x0a, 9, 0x1a, 2, 0x08, 4, 0x1a, 3, 0x0a, 1, 9, // step: two Int64Lists, one unpacked
    0x0a, 1, b't', // key
];

#[test]
fn parses_bytes_made_by_hand() {
    let example = Example::parse_sequence(RECORD).unwrap();
    let found: Vec<_> = example.features().iter().map(|(name, feature)| (&**name, values(*feature).unwrap())).collect();
    let expected = [
        ("frames", Values::Bytes(vec![b"x".to_vec(), b"y".to_vec(), b"z".to_vec()])),
        ("frames/lengths", Values::Int64(vec![2, 0, 1])),
        ("id", Values::Int64(vec![7])),
        ("t", Values::Int64(vec![4, 9])),
        ("t/lengths", Values::Int64(vec![0, 2])),
    ];
    assert_eq!(found, expected);
    let Some(Feature::Bytes(frames)) = example.get("frames") else { panic!("frames are bytes") };
    let second = super::range_within(RECORD, frames.iter().nth(1).unwrap());
    assert_eq!(second.map(|range| &RECORD[range]), Some(&b"y"[..]), "values are part of the record");
    assert_eq!((frames.single(), example.int64("id"), example.get("t").unwrap().count()), (None, Some(7), 2));
    let names: Vec<_> = Message::Example.parse(RECORD).unwrap().features().iter().map(|(n, _)| n.clone()).collect();
    assert_eq!(names, ["id"], "field 2 of an Example is an unknown field");
    assert!(has_feature_lists(RECORD) && !has_feature_lists(&RECORD[..15]) && !has_feature_lists(&[0x12, 0]));
    for cut in 0..RECORD.len() {
        if cut != 0 && cut != 15 {
            assert!(Example::parse_sequence(&RECORD[..cut]).is_err(), "cut at {cut}");
        }
    }
}

/// One step of a feature list, or a context feature: the joined lists of its Feature message.
#[derive(Debug, Clone)]
struct Step(Vec<Values>);

impl Step {
    /// The values of the last type, as protobuf libraries have them.
    fn values(&self) -> Option<Values> {
        let mut lists = self.0.iter().cloned();
        let first = lists.next()?;
        Some(lists.fold(first, |joined, list| match (joined, list) {
            (Values::Bytes(a), Values::Bytes(b)) => Values::Bytes([a, b].concat()),
            (Values::Float(a), Values::Float(b)) => Values::Float([a, b].concat()),
            (Values::Int64(a), Values::Int64(b)) => Values::Int64([a, b].concat()),
            (_, list) => list,
        }))
    }

    fn encode(&self) -> Vec<u8> {
        let list = |values: &Values| match values {
            Values::Bytes(values) => (1, values.iter().flat_map(|value| delimited(1, value)).collect()),
            // The first half is packed, the others are not.
            Values::Float(values) => {
                let (packed, single) = values.split_at(values.len() / 2);
                let packed: Vec<u8> = packed.iter().flat_map(|value| value.to_le_bytes()).collect();
                let single = single.iter().flat_map(|value| [&[0x0d][..], &value.to_le_bytes()].concat());
                (2, [delimited(1, &packed), single.collect()].concat())
            }
            Values::Int64(values) => {
                let (packed, single) = values.split_at(values.len() / 2);
                let varint = |tag: &[u8], value: &i64| {
                    let mut out = tag.to_vec();
                    put_varint(*value as u64, &mut out);
                    out
                };
                let packed: Vec<u8> = packed.iter().flat_map(|value| varint(&[], value)).collect();
                let single = single.iter().flat_map(|value| varint(&[0x08], value));
                (3, [delimited(1, &packed), single.collect()].concat())
            }
        };
        self.0.iter().flat_map(|values| delimited(list(values).0, &list(values).1)).collect()
    }
}

fn count(values: &Option<Values>) -> usize {
    match values {
        None => 0,
        Some(Values::Bytes(values)) => values.len(),
        Some(Values::Float(values)) => values.len(),
        Some(Values::Int64(values)) => values.len(),
    }
}

/// The features of a record by the rules, or `None` if it is malformed.
fn model(context: &[(String, Step)], lists: &[(String, Vec<Step>)]) -> Option<BTreeMap<String, Option<Values>>> {
    let mut found: Vec<(String, Option<Values>)> = vec![];
    let context: BTreeMap<_, _> = context.iter().cloned().collect();
    found.extend(context.into_iter().map(|(name, step)| (name, step.values())));
    let join = |steps: &[Step]| {
        let full: Vec<_> = steps.iter().map(Step::values).filter(|values| count(values) > 0).flatten().collect();
        let one_type = full.windows(2).all(|w| std::mem::discriminant(&w[0]) == std::mem::discriminant(&w[1]));
        one_type.then(|| Step(full).values())
    };
    let joined: Vec<_> = lists.iter().map(|(name, steps)| Some((name, join(steps)?, steps))).collect::<Option<_>>()?;
    let joined: BTreeMap<_, _> = joined.into_iter().map(|(name, values, steps)| (name, (values, steps))).collect();
    for (name, (values, steps)) in joined {
        let lengths = steps.iter().map(|step| count(&step.values()) as i64).collect();
        found.push((name.clone(), values));
        found.push((format!("{name}/lengths"), Some(Values::Int64(lengths))));
    }
    let number = found.len();
    let found: BTreeMap<_, _> = found.into_iter().collect();
    (found.len() == number).then_some(found)
}

fn delimited(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    put_delimited(field, bytes.len(), &mut out);
    out.extend_from_slice(bytes);
    out
}

fn entry(name: &str, value: &[u8]) -> Vec<u8> {
    delimited(1, &[delimited(1, name.as_bytes()), delimited(2, value)].concat())
}

/// The record, with context and lists each in two messages.
fn encode(context: &[(String, Step)], lists: &[(String, Vec<Step>)]) -> Vec<u8> {
    let context: Vec<_> = context.iter().map(|(name, step)| entry(name, &step.encode())).collect();
    let list = |steps: &[Step]| steps.iter().flat_map(|step| delimited(1, &step.encode())).collect::<Vec<_>>();
    let lists: Vec<_> = lists.iter().map(|(name, steps)| entry(name, &list(steps))).collect();
    let (a, b) = context.split_at(context.len() / 2);
    let (c, d) = lists.split_at(lists.len() / 2);
    [delimited(2, &c.concat()), delimited(1, &a.concat()), delimited(1, &b.concat()), delimited(2, &d.concat())]
        .concat()
}

fn lists(types: std::ops::Range<u8>) -> impl Strategy<Value = Values> {
    (types, vec(any::<i64>(), 0..3)).prop_map(|(dtype, numbers)| match dtype {
        0 => Values::Bytes(numbers.iter().map(|n| n.to_le_bytes()[..(*n as usize) % 9].to_vec()).collect()),
        1 => Values::Float(numbers.iter().map(|n| *n as f32).collect()),
        _ => Values::Int64(numbers),
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Mostly steps of one type, since those of several are malformed.
    let step = |types| vec(lists(types), 0..3).prop_map(Step);
    prop_oneof![vec(step(0..1), 0..5), vec(step(1..2), 0..5), vec(step(2..3), 0..5), vec(step(0..3), 0..4)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn parses_as_the_model_says(
        context in vec(("[abc]|a/lengths", vec(lists(0..3), 0..3).prop_map(Step)), 0..3),
        lists in vec(("[cde]|c/lengths", steps()), 0..3),
    ) {
        let data = encode(&context, &lists);
        match (Example::parse_sequence(&data), model(&context, &lists)) {
            (Ok(example), Some(expected)) => {
                let found: BTreeMap<_, _> =
                    example.features().iter().map(|(name, feature)| (name.to_string(), values(*feature))).collect();
                prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
                prop_assert_eq!(found.len(), example.features().len());
                for (name, values) in &found {
                    prop_assert_eq!(count(values), example.get(name).unwrap().count());
                    prop_assert_eq!(values, &expected[name], "{}", name);
                }
                prop_assert_eq!(has_feature_lists(&data), !lists.is_empty());
            }
            (Err(Error::MalformedExample { .. }), None) => {}
            (found, expected) => prop_assert!(false, "{found:?}, {expected:?}"),
        }
        prop_assert!(Example::parse(&data).is_ok());
    }

    #[test]
    fn parses_random_bytes_without_panic(data in vec(any::<u8>(), 0..200), from in 0..100usize, to in 0..100usize) {
        let mut record = RECORD.to_vec();
        record.splice(from.min(RECORD.len())..(from + to).min(RECORD.len()).max(from.min(RECORD.len())), data);
        if let Ok(example) = Example::parse_sequence(&record) {
            example.features().iter().for_each(|(_, feature)| { feature.count(); });
            prop_assert!(Example::parse(&record).is_ok());
        }
    }
}
