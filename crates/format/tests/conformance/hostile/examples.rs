//! Records with matching CRCs that are not Examples.

use super::{SHARD, case, changed, damage};
use crate::bytes::example::{List, bytes, delimited, entry, floats, ints, text};
use crate::bytes::frame;
use crate::dataset::{Dataset, Shard};
use crate::golden::Case;
use crate::golden::sequence::{context, list, record};
use crate::golden::tiny::{cat, dog};
use crate::sample::Sample;

/// A case of `tiny` with other data in its first record. The index is that of the good record.
fn first(name: &str, data: &[u8]) -> Case {
    let dataset = changed(|dataset| {
        let shard = dataset.shard();
        shard.bytes = [frame(data), frame(&dog().data)].concat();
        shard.column("record_offset").values[8..].copy_from_slice(&(data.len() as u64 + 16).to_le_bytes());
        shard.reindex();
    });
    case(name, &dataset, malformed(name))
}

fn malformed(name: &str) -> impl FnOnce(crate::expected::Expected) -> crate::expected::Expected {
    let damage = damage(name).to_owned();
    move |e| e.loses("train", 0, &damage).finds(&damage, SHARD, Some(0), Some(0))
}

/// The first record of `tiny`, followed by these bytes.
fn followed(name: &str, bytes: &[u8]) -> Case {
    first(name, &[&cat().data[..], bytes].concat())
}

/// The first record of `tiny` with one further Feature, of these bytes.
fn feature(name: &str, bytes: &[u8]) -> Case {
    followed(name, &delimited(1, &entry("z", bytes)))
}

/// The first record of `tiny`, with some of its bytes replaced.
fn edited(name: &str, from: &[u8], to: &[u8]) -> Case {
    let mut data = cat().data;
    let at = data.windows(from.len()).position(|window| window == from).expect("part of the record");
    data.splice(at..at + from.len(), to.iter().copied());
    first(name, &data)
}

pub(super) fn all() -> Vec<Case> {
    let length = cat().data.len();
    let mut cases = vec![
        edited("MalformedExample-group", &[0x0a, 0xa1], &[0x0b, 0xa1]),
        edited("MalformedExample-field-too-long", &[0x0a, 0xa1, 0x01], &[0x0a, 0xe1, 0x01]),
        first("MalformedExample-varint", &vec![0xff; length]),
        edited("MalformedExample-name-not-utf8", b"image/format", b"\xffmage/format"),
        edited("MalformedExample-type", &[0x1a, 3, 0x0a, 1, 2, 0x0a, 0x1a], &[0x12, 3, 0x0a, 1, 2, 0x0a, 0x1a]),
        followed("MalformedExample-wire-3", &[0x1b]),
        followed("MalformedExample-wire-4", &[0x1c]),
        followed("MalformedExample-wire-6", &[0x1e, 0]),
        followed("MalformedExample-wire-7", &[0x1f, 0]),
        followed("MalformedExample-field-number-0", &[0x02, 0]),
        followed("MalformedExample-field-number-too-large", &[0x82, 0x80, 0x80, 0x80, 0x10, 0]),
        followed("MalformedExample-unfinished-tag", &[0x80]),
        followed("MalformedExample-tag-only", &[0x10]),
        followed("MalformedExample-four-bytes", &[0x25, 1, 2, 3]),
        followed("MalformedExample-eight-bytes", &[0x21, 1, 2, 3, 4, 5, 6, 7]),
        followed("MalformedExample-length-huge", &[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        feature(
            "MalformedExample-varint-over-64-bits",
            &delimited(3, &[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
        ),
        feature(
            "MalformedExample-varint-of-eleven-bytes",
            &delimited(3, &[0x08, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0]),
        ),
        feature("MalformedExample-packed-varint-unfinished", &delimited(3, &delimited(1, &[1, 0x81]))),
        feature("MalformedExample-packed-floats", &delimited(2, &delimited(1, &[0; 6]))),
        feature("MalformedExample-feature-field-4", &delimited(4, b"")),
        feature("MalformedExample-feature-number", &[0x18, 1]),
        feature("MalformedExample-double-in-floats", &delimited(2, &[&[0x09][..], &[0; 8]].concat())),
        feature("MalformedExample-varint-in-floats", &delimited(2, &[0x08, 1])),
        feature("MalformedExample-float-in-integers", &delimited(3, &[0x0d, 0, 0, 0, 0])),
        feature("MalformedExample-number-in-bytes", &delimited(1, &[0x08, 1])),
        feature("MalformedExample-value-past-list", &delimited(1, &[0x0a, 2, 7])),
        // Parts that are replaced by later ones, or skipped as the same feature again.
        feature("MalformedExample-replaced-list", &[delimited(2, &[0x08, 1]), ints([1]).feature()].concat()),
        followed("MalformedExample-replaced-value", &{
            let values = [delimited(1, b"z"), delimited(2, &[0x20, 1]), delimited(2, &ints([1]).feature())];
            delimited(1, &delimited(1, &values.concat()))
        }),
        followed("MalformedExample-replaced-name", &{
            let keys = [delimited(1, b"\xff"), delimited(1, b"z"), delimited(2, &ints([1]).feature())];
            delimited(1, &delimited(1, &keys.concat()))
        }),
        followed(
            "MalformedExample-replaced-feature",
            &delimited(1, &[entry("z", &[0x20, 1]), entry("z", &ints([1]).feature())].concat()),
        ),
        followed("MalformedExample-name-half-a-character", &delimited(1, &entry_of(b"\xed\xa0\x80", &ints([1])))),
    ];
    cases.extend(sequences());
    cases
}

fn entry_of(name: &[u8], list: &List) -> Vec<u8> {
    delimited(1, &[delimited(1, name), delimited(2, &list.feature())].concat())
}

/// Records of a dataset that requires `sequence-example`. The first one is malformed.
fn sequences() -> Vec<Case> {
    let given = |name: &str| context([("image/key", text(name)), ("label", ints([1]))]);
    let good = |name: &str| Sample::new(given(name));
    let sequence = |name: &str, data: Vec<u8>| {
        let shard = Shard::named(SHARD, None, vec![good("a"), good("b")]);
        let split = vec![("train", vec![shard])];
        let dataset =
            Dataset { requires: vec!["sequence-example"], image: None, label: Some("label"), ..Dataset::new(split) };
        let mut dataset = dataset;
        let shard = dataset.shard();
        shard.bytes = [frame(&data), frame(&good("b").data)].concat();
        shard.column("record_offset").values[8..].copy_from_slice(&(data.len() as u64 + 16).to_le_bytes());
        shard.reindex();
        case(name, &dataset, malformed(name))
    };
    let with = |name: &str, lists: &[Vec<u8>]| sequence(name, record(&given("a"), lists));
    let (int, float) = (ints([1]).feature(), floats([1.0]).feature());
    let label = ("label/lengths", ints([1]));
    let both = context([("image/key", text("a")), ("label", ints([1])), label]);
    vec![
        with("MalformedExample-steps-of-two-types", &[list("z", &[int.clone(), vec![], float.clone()])]),
        with("MalformedExample-list-in-context", &[list("label", std::slice::from_ref(&int))]),
        sequence("MalformedExample-lengths-in-context", record(&both, &[list("label", std::slice::from_ref(&int))])),
        sequence("MalformedExample-empty-list-in-context", {
            let both = context([("image/key", text("a")), ("label", ints([1])), ("z/lengths", ints([1]))]);
            record(&both, &[list("z", &[])])
        }),
        with(
            "MalformedExample-list-of-lengths",
            &[list("z", std::slice::from_ref(&int)), list("z/lengths", std::slice::from_ref(&int))],
        ),
        with(
            "MalformedExample-list-name",
            &[list("z", std::slice::from_ref(&int)), {
                delimited(1, &[delimited(1, b"\xff"), delimited(2, &delimited(1, &int))].concat())
            }],
        ),
        with("MalformedExample-step", &[list("z", &[[0x20, 1].to_vec()])]),
        with("MalformedExample-replaced-step", &[list("z", &[[0x20, 1].to_vec()]), list("z", &[int])]),
        sequence("MalformedExample-feature-lists", [&good("a").data[..], &delimited(2, &[0x0a, 9, 1])].concat()),
        sequence("MalformedExample-feature-list", {
            let list = delimited(1, &[delimited(1, b"z"), delimited(2, &[0x0b])].concat());
            record(&given("a"), &[list])
        }),
        with("MalformedExample-step-of-bytes", &[list("z", &[bytes(["a"]).feature(), float])]),
    ]
}
