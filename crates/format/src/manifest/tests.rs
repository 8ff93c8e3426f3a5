//! Tests of manifests.

use super::{
    DIGITS, DType, Deleted, FeatureType, FilePart, Keypoints, Manifest, Purged, PurgedKeys, Shard, Split, TAIL, View,
    ViewShard,
};
use crate::Error;
use crate::checksum::{self, Sha256};
use crate::example::Message;

fn example() -> Manifest {
    let shard = |file: &str, records| Shard {
        file: file.to_owned(),
        records,
        bytes: 100,
        crc32c: 0xabc,
        index_bytes: 64,
        index_crc32c: u32::MAX,
        sha256: None,
        companions: Default::default(),
        foreign: Default::default(),
    };
    Manifest {
        classes: vec!["cat \"tom\"".to_owned(), "dög".to_owned()],
        features: vec![
            FeatureType { name: "image/class/label".to_owned(), dtype: DType::Int64 },
            FeatureType { name: "image/encoded".to_owned(), dtype: DType::Bytes },
        ],
        splits: vec![
            Split { name: "train".to_owned(), shards: vec![shard("train-00000.tfrecord", 3), shard("b", 4)] },
            Split { name: "validation".to_owned(), shards: vec![] },
        ],
        ..Manifest::new("test 1.0")
    }
}

/// Returns the manifest's bytes with `from` replaced and the CRC corrected.
fn forged(from: &str, to: &str) -> Vec<u8> {
    forged_of(&example(), from, to)
}

fn forged_of(manifest: &Manifest, from: &str, to: &str) -> Vec<u8> {
    let json = manifest.to_json();
    assert!(json.contains(from), "{from}");
    let (body, _) = json.split_at(json.len() - TAIL.1.len() - DIGITS);
    let body = body.replacen(from, to, 1);
    let crc = checksum::crc32c(format!("{body}00000000{}", TAIL.1).as_bytes());
    format!("{body}{crc:08x}{}", TAIL.1).into_bytes()
}

#[test]
fn parses_what_it_writes() {
    let json = example().to_json();
    assert_eq!(Manifest::parse(json.as_bytes()).unwrap(), example());
    assert_eq!(example().splits[0].records(), 7);
}

#[test]
fn detects_every_flipped_bit_and_every_truncation() {
    let good = example().to_json().into_bytes();
    for bit in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(matches!(Manifest::parse(&bad), Err(Error::ManifestCrc { .. })), "bit {bit}");
    }
    for cut in 0..good.len() {
        assert!(matches!(Manifest::parse(&good[..cut]), Err(Error::ManifestCrc { .. })), "cut {cut}");
    }
}

#[test]
fn refuses_invalid_manifests_with_the_right_error() {
    for (from, to, name) in [
        ("\"1.0\"", "\"2.0\"", "ManifestVersion"),
        ("\"shardtool\"", "\"tar\"", "ManifestVersion"),
        ("\"train-00000.tfrecord\"", "\"../train\"", "ManifestValue"),
        ("\"train-00000.tfrecord\"", "\"b\"", "ManifestValue"),
        ("\"train\"", "\"zebra\"", "ManifestValue"),
        ("\"train\"", "\"a/b\"", "ManifestValue"),
        ("\"dög\"", "\"cat \\\"tom\\\"\"", "ManifestValue"),
        ("00000abc", "00000ABC", "ManifestSyntax"),
        ("\"records\": 3", "\"records\": -3", "ManifestSyntax"),
        ("\"records\": 3", "\"records\": 9223372036854775807", "ManifestValue"),
        ("int64", "int32", "ManifestSyntax"),
        ("\"splits\"", "\"spoons\"", "ManifestSyntax"),
        ("\"1.0\"", "\"1\"", "ManifestVersion"),
        ("\"1.0\"", "\"1.\"", "ManifestVersion"),
        ("\"1.0\"", "\"1.00\"", "ManifestVersion"),
        ("\"1.0\"", "\"01.0\"", "ManifestVersion"),
        ("\"1.0\"", "\"1.0.0\"", "ManifestVersion"),
        ("\"1.0\"", "\"1.+1\"", "ManifestVersion"),
        ("\"1.0\"", "\"1.0\", \"requires\": 1", "ManifestSyntax"),
        ("\"1.0\"", "\"2.0\", \"requires\": 1", "ManifestSyntax"),
        ("\"1.0\"", "\"1.0\", \"requires\": [], \"requires\": []", "ManifestSyntax"),
        ("\"1.0\"", "\"1.0\", \"requires\": [\"time-travel\"]", "ManifestRequires"),
        ("\"1.0\",", "\"1.0\", \"requires\": [\"time-travel\"], \"splits\": 3,", "ManifestRequires"),
        ("\"1.0\"", "\"2.0\", \"requires\": [\"time-travel\"]", "ManifestVersion"),
        ("\"1.0\"", "\"1.0\", \"requires\": [\"sequence-example\", \"sequence-example\"]", "ManifestValue"),
        ("\"1.0\"", "\"1.0\", \"requires\": [\"b\", \"a\"]", "ManifestRequires"),
        ("\"1.0\"", "\"1.0\", \"x-a\": 1", "ManifestSyntax"),
        ("\"1.0\"", "\"1.0\", \"x-a\": \"1\", \"x-a\": \"1\"", "ManifestSyntax"),
        ("\"image/encoded\"", "\"image/other\"", "ManifestValue"),
        ("\"image/encoded\"", "\"image/class/label\"", "ManifestValue"),
        ("\"label\": \"image/class/label\"", "\"label\": \"image/encoded\"", "ManifestValue"),
        ("\"b\"", "\"Dataset.json\"", "ManifestValue"),
        ("00000abc\"", "00000abc\", \"sha256\": \"00\"", "ManifestSyntax"),
        ("00000abc\"", "00000abc\", \"sha256\": null", "ManifestSyntax"),
    ] {
        assert_eq!(Manifest::parse(&forged(from, to)).unwrap_err().damage().name(), name, "{from} -> {to}");
    }
}

#[test]
fn accepts_unknown_members_and_minor_versions() {
    assert_eq!(Manifest::parse(&forged("\"1.0\"", "\"1.7\"")).unwrap(), example());
    assert_eq!(Manifest::parse(&forged("\"image\":", "\"later\": [1, {}], \"image\":")).unwrap(), example());
}

#[test]
fn logical_types_are_written_as_1_1_and_ignored_if_unknown() {
    let mut manifest = example();
    manifest.features.push(FeatureType { name: "time".to_owned(), dtype: DType::Float64 });
    manifest.features.push(FeatureType { name: "visitor".to_owned(), dtype: DType::Uint64 });
    let json = manifest.to_json();
    assert!(json.contains("\"version\": \"1.1\""), "{json}");
    assert!(json.contains("    {\"name\": \"time\", \"type\": \"bytes\", \"logical\": \"float64\"},\n"), "{json}");
    assert!(json.contains("    {\"name\": \"visitor\", \"type\": \"bytes\", \"logical\": \"uint64\"}\n"), "{json}");
    assert_eq!(Manifest::parse(json.as_bytes()).unwrap(), manifest);
    let bytes = "\"image/encoded\", \"type\": \"bytes\"";
    let later = forged(bytes, "\"image/encoded\", \"type\": \"bytes\", \"logical\": \"decimal128\"");
    assert_eq!(Manifest::parse(&later).unwrap(), example());
    let int64 = "\"type\": \"int64\"";
    for wrong in [
        "\"type\": \"int64\", \"logical\": \"float64\"",
        "\"type\": \"float64\"",
        "\"type\": \"int64\", \"logical\": 1",
    ] {
        assert_eq!(Manifest::parse(&forged(int64, wrong)).unwrap_err().damage().name(), "ManifestSyntax", "{wrong}");
    }
}

#[test]
fn optional_members_have_one_place() {
    let mut manifest = example();
    manifest.requires = vec!["sequence-example".to_owned()];
    manifest.private =
        [("x-b", "1"), ("x-a", "tab\t\"")].map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    manifest.splits[0].shards[1].sha256 = Some(Sha256([0xab; 32]));
    let json = manifest.to_json();
    assert_eq!(Manifest::parse(json.as_bytes()).unwrap(), manifest);
    assert_eq!((manifest.message(), example().message()), (Message::SequenceExample, Message::Example));
    assert!(
        json.contains("  \"version\": \"1.0\",\n  \"requires\": [\"sequence-example\"],\n  \"created_by\""),
        "{json}"
    );
    assert!(json.contains("  ],\n  \"x-a\": \"tab\\t\\\"\",\n  \"x-b\": \"1\",\n  \"crc32c\""), "{json}");
    assert!(json.contains(&format!("\"ffffffff\", \"sha256\": \"{}\"}}\n", "ab".repeat(32))), "{json}");
}

#[test]
fn keypoints_have_names_pairs_and_lines() {
    let eyes = "  \"keypoints\": {\"names\": [\"nose\", \"left \\\"eye\\\"\", \"right eye\"], \"flip_index\": [0, 2, 1], \"skeleton\": [[0, 1], [2, 0]]},\n";
    let keypoints = Keypoints {
        names: ["nose", "left \"eye\"", "right eye"].map(String::from).into(),
        flip_index: vec![0, 2, 1],
        skeleton: vec![[0, 1], [2, 0]],
    };
    let manifest = Manifest { keypoints: Some(keypoints), ..example() };
    let json = manifest.to_json();
    assert!(json.contains("\"version\": \"1.1\"") && json.contains(&format!("  ],\n{eyes}  \"splits\"")), "{json}");
    assert_eq!(Manifest::parse(json.as_bytes()).unwrap(), manifest);
    let of = |value: &str| Manifest::parse(&forged("\"splits\":", &format!("\"keypoints\": {value}, \"splits\":")));
    let pair = of("{\"later\": 1, \"flip_index\": [1, 0]}").unwrap().keypoints.unwrap();
    assert_eq!((pair.count(), pair.names.len()), (2, 0));
    for (name, values) in [
        (
            "ManifestSyntax",
            ["null", "[]", "{\"names\": [1]}", "{\"flip_index\": [-1]}", "{\"names\": [\"a\"], \"skeleton\": [[0]]}"],
        ),
        (
            "ManifestValue",
            [
                "{}",
                "{\"names\": [\"a\", \"a\"]}",
                "{\"names\": [\"a\"], \"flip_index\": [1, 0]}",
                "{\"flip_index\": [1, 2, 0]}",
                "{\"names\": [\"a\", \"b\"], \"skeleton\": [[1, 2]]}",
            ],
        ),
        (
            "ManifestValue",
            [
                "{\"names\": []}",
                "{\"skeleton\": [[0, 1]]}",
                "{\"names\": [\"\"]}",
                "{\"flip_index\": [4]}",
                "{\"flip_index\": [0, 1], \"skeleton\": [[1, 1]]}",
            ],
        ),
    ] {
        for value in values {
            assert_eq!(of(value).unwrap_err().damage().name(), name, "{value}");
        }
    }
}

#[test]
fn accepts_private_members_anywhere_and_ignores_them_below_the_top() {
    let kept = forged("\"image\":", "\"x-\": \"\\u0041\", \"image\":");
    assert_eq!(Manifest::parse(&kept).unwrap().private["x-"], "A");
    let ignored = forged("\"records\": 3", "\"records\": 3, \"x-a\": 1, \"x-a\": 2");
    assert_eq!(Manifest::parse(&ignored).unwrap(), example());
    assert_eq!(Manifest::parse(&forged("\"1.0\"", "\"1.0\", \"requires\": []")).unwrap(), example());
}

/// The expected value follows from the definition: three u64/u64/u32 rows of 20 bytes.
#[test]
fn fingerprint_covers_counts_lengths_and_crcs() {
    let split = &example().splits[0];
    let mut bytes = vec![];
    for records in [3u64, 4] {
        bytes.extend([records.to_le_bytes(), 100u64.to_le_bytes()].concat());
        bytes.extend(0xabcu32.to_le_bytes());
    }
    assert_eq!(split.fingerprint(), checksum::crc32c(&bytes));
}

/// Version 2, with a view of three of the seven records, one of which is deleted, and with two purged keys.
fn with_views() -> Manifest {
    let part =
        |end: &str, offset, bytes| FilePart { file: format!("0123456789abcdef.{end}"), offset, bytes, crc32c: 7 };
    let rows = |rows, offset| Deleted { rows, bitmap: part("deleted", offset, 1) };
    let mut manifest = example().next_version(b"", "select");
    manifest.splits[0].shards[1].companions.deleted = Some(rows(1, 0));
    let versions = manifest.versions.as_mut().unwrap();
    let first = ViewShard { file: "train-00000.tfrecord".to_owned(), absent: None };
    let second = ViewShard { file: "b".to_owned(), absent: Some(rows(3, 1)) };
    let view = |name: &str, shards| View {
        name: name.to_owned(),
        split: "train".to_owned(),
        conditions: vec!["a<\"2\"".to_owned()],
        shards,
    };
    versions.views = vec![view("late", vec![second.clone()]), view("some", vec![first, second])];
    let keys = PurgedKeys { number: 2, list: part("purged", 0, 96) };
    versions.purged = Some(Purged { versions: vec![1], keys: Some(keys) });
    manifest
}

#[test]
fn views_are_written_read_and_are_splits() {
    let manifest = with_views();
    let read = Manifest::parse(manifest.to_json().as_bytes()).unwrap();
    assert_eq!(read, manifest);
    let split = |name: usize| read.of_view(&read.views()[name]).splits.remove(0);
    assert_eq!((split(0).records(), split(0).shards.len()), (1, 1));
    assert_eq!((split(1).records(), split(1).shards.len(), split(1).name), (4, 2, "some".to_owned()));
    assert_ne!(split(0).fingerprint(), split(1).fingerprint());
    assert_eq!(split(0).shards[0].companions.of_split, manifest.splits[0].shards[1].companions.deleted);
    assert_eq!(read.parts().count(), 4);
}

#[test]
fn refuses_views_and_purged_keys_that_cannot_be() {
    let (some, last) = ("\"name\": \"some\"", "\"versions\": [1]");
    let bitmap = "\"absent\": {\"rows\": 3";
    for (from, to) in [
        (some, "\"name\": \"train\""),
        (some, "\"name\": \"early\""),
        (some, "\"name\": \"late\""),
        (some, "\"name\": \"a/b\""),
        (some, "\"name\": \"_columns\""),
        ("\"split\": \"train\"", "\"split\": \"test\""),
        ("\"split\": \"train\"", "\"split\": \"validation\""),
        ("      {\"file\": \"b\", \"absent\"", "      {\"file\": \"c\", \"absent\""),
        (bitmap, "\"absent\": {\"rows\": 0"),
        (bitmap, "\"absent\": {\"rows\": 5"),
        (
            "      {\"file\": \"train-00000.tfrecord\"},\n      {\"file\": \"b\"",
            "      {\"file\": \"b\"},\n      {\"file\": \"b\"",
        ),
        ("\"offset\": 1, \"bytes\": 1", "\"offset\": 1, \"bytes\": 2"),
        (last, "\"versions\": []"),
        (last, "\"versions\": [0]"),
        (last, "\"versions\": [1, 1]"),
        (last, "\"versions\": [3]"),
        ("\"number\": 2, \"file\"", "\"number\": 3, \"file\""),
        (
            "\"number\": 2, \"file\": \"0123456789abcdef.purged\"",
            "\"number\": 2, \"file\": \"0123456789abcdef.deleted\"",
        ),
    ] {
        let result = Manifest::parse(&forged_of(&with_views(), from, to));
        assert!(matches!(result, Err(Error::ManifestValue { .. })), "{from} → {to}: {result:?}");
    }
    let untyped = forged_of(&with_views(), "\"split\": \"train\"", "\"split\": null");
    assert!(matches!(Manifest::parse(&untyped), Err(Error::ManifestSyntax { .. })));
}
