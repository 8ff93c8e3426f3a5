//! Manifests with values that cannot be.

use super::manifest_json::{replaced, with_manifest};
use super::{changed, refused};
use crate::bytes::example::ints;
use crate::dataset::{Dataset, Shard};
use crate::golden::Case;
use crate::golden::tiny::dog;
use crate::sample::Sample;

pub(super) fn all() -> Vec<Case> {
    let mut cases = names();
    cases.extend(files());
    cases.extend(features());
    cases.extend(splits());
    cases
}

/// Names of splits.
fn names() -> Vec<Case> {
    let split = |detail: &str, name: &str| {
        replaced(&format!("ManifestValue-split-{detail}"), "\"name\": \"train\"", format!("\"name\": \"{name}\""))
    };
    vec![
        split("name", "a/b"),
        split("empty", ""),
        split("leading-dot", ".train"),
        split("leading-dash", "-train"),
        split("too-long", &"a".repeat(101)),
        split("space", "a b"),
        split("not-ascii", "ä"),
        split("line-end", "train\\n"),
        split("device", "con"),
        split("device-with-extension", "Lpt0.a"),
    ]
}

/// File names of shards.
fn files() -> Vec<Case> {
    let file = |detail: &str, name: &str| {
        let name = format!("\"{name}\"");
        replaced(&format!("ManifestValue-{detail}"), "\"train-00000.tfrecord\"", name)
    };
    vec![
        file("shard-folder", "../train-00000.tfrecord"),
        file("shard-dots", ".."),
        file("shard-dot", "."),
        file("shard-absolute", "/dev/zero"),
        file("file-empty", ""),
        file("file-backslash", "a\\\\b"),
        file("file-colon", "a:b"),
        file("file-control", "a\\u0000b"),
        file("file-unit-separator", "a\\u001fb"),
        file("file-delete", "a\\u007fb"),
        file("file-c1-control", "a\u{9f}b"),
        file("file-leading-dot", ".a"),
        file("file-trailing-dot", "a."),
        file("file-trailing-space", "a "),
        file("file-manifest", "Dataset.JSON"),
        file("file-index-folder", "_INDEX"),
        file("file-rejected", "rejected-train.jsonl"),
        file("file-rejected-case", "REJECTED-.Jsonl"),
        file("file-device", "CON"),
        file("file-device-prn", "prn"),
        file("file-device-aux", "aux.tfrecord"),
        file("file-device-nul", "Nul.tar.gz"),
        file("file-device-conin", "conin$"),
        file("file-device-conout", "CONOUT$.x"),
        file("file-device-com", "com9.tfrecord"),
        file("file-device-com0", "COM0"),
        file("file-device-lpt", "LPT1.tfrecord"),
        file("file-device-superscript", "com¹"),
        file("file-device-superscript-three", "Lpt³.x"),
        file("file-device-space", "aux  .tfrecord"),
    ]
}

/// Features, classes, image and label.
fn features() -> Vec<Case> {
    let (image, label) = ("\"image\": \"image/encoded\"", "\"label\": \"image/class/label\"");
    let opaque = |name: &str, member: &str| {
        let shard = Shard::named("a", None, vec![Sample::opaque(vec![1])]);
        let dataset = Dataset { image: None, label: None, opaque: true, ..Dataset::new(vec![("a", vec![shard])]) };
        let mut files = dataset.files();
        let null = format!("\"{member}\": null");
        let text =
            crate::bytes::manifest::replace(&files["dataset.json"], &null, format!("\"{member}\": \"a\"").as_bytes());
        files.insert("dataset.json".to_owned(), text);
        refused(name, files)
    };
    vec![
        replaced("ManifestValue-image-absent", image, "\"image\": \"image\""),
        replaced("ManifestValue-image-number", image, "\"image\": \"image/height\""),
        replaced("ManifestValue-label-absent", label, "\"label\": \"\""),
        replaced("ManifestValue-label-bytes", label, "\"label\": \"image/key\""),
        opaque("ManifestValue-image-of-opaque", "image"),
        opaque("ManifestValue-label-of-opaque", "label"),
        replaced("ManifestValue-class-twice", "\"dog\"", "\"cat\""),
        replaced("ManifestValue-features-unsorted", "\"image/class/label\", \"type\"", "\"z\", \"type\""),
        replaced(
            "ManifestValue-feature-twice",
            "{\"name\": \"image/width\"",
            "{\"name\": \"image/key\", \"type\": \"bytes\"}, {\"name\": \"image/width\"",
        ),
        // In byte order the first is less, in UTF-16 code units the second.
        replaced(
            "ManifestValue-features-in-utf16-order",
            "{\"name\": \"image/width\", \"type\": \"int64\"}",
            "{\"name\": \"image/width\", \"type\": \"int64\"}, {\"name\": \"\u{10000}\", \"type\": \"bytes\"}, \
             {\"name\": \"\u{ffff}\", \"type\": \"bytes\"}",
        ),
        replaced(
            "ManifestValue-requires-twice",
            "\"version\": \"1.0\",\n",
            "\"version\": \"1.0\",\n  \"requires\": [\"sequence-example\", \"sequence-example\"],\n",
        ),
    ]
}

/// Splits and shards.
fn splits() -> Vec<Case> {
    let twice = changed(|dataset| {
        let shards = &mut dataset.splits[0].1;
        shards.push(shards[0].clone());
    });
    let other = || Shard::new("b", 0, vec![dog()]);
    let order = changed(|dataset| dataset.splits.push(("Train", vec![other()])));
    let equal = changed(|dataset| dataset.splits.push(("train", vec![other()])));
    let in_two_splits = changed(|dataset| {
        let shards = dataset.splits[0].1.clone();
        dataset.splits.push(("validation", shards));
    });
    let half = |n: i64| Shard::new("train", n as usize, vec![Sample::new([("n", ints([n]))])]);
    let large = Dataset { image: None, label: None, ..Dataset::new(vec![("train", vec![half(0), half(1)])]) };
    let mut large = large.files();
    for _ in 0..2 {
        let from = "\"records\": 1,";
        let text = crate::bytes::manifest::replace(&large["dataset.json"], from, b"\"records\": 4611686018427387904,");
        large.insert("dataset.json".to_owned(), text);
    }
    vec![
        refused("ManifestValue-shard-twice", twice.files()),
        refused("ManifestValue-shard-in-two-splits", in_two_splits.files()),
        refused("ManifestValue-splits-unsorted", order.files()),
        refused("ManifestValue-split-twice", equal.files()),
        replaced("ManifestValue-too-many-records", "\"records\": 2", "\"records\": 18446744073709551615"),
        replaced("ManifestValue-2-to-the-63rd-records", "\"records\": 2", "\"records\": 9223372036854775808"),
        refused("ManifestValue-too-many-records-in-two-shards", large),
        refused("ManifestValue-no-shards-of-a-bad-name", {
            let text = changed(|dataset| dataset.splits.insert(0, ("", vec![]))).files();
            with_manifest(text["dataset.json"].clone())
        }),
    ]
}
