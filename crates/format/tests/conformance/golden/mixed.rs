//! Several image formats, and datasets by other programs or a later version.

use super::foreign::foreign;
use super::tiny::tiny;
use super::{Case, case};
use crate::bytes::example::{List, bytes, floats, ints, text};
use crate::bytes::index::{self, Column, Header};
use crate::bytes::{manifest, zstd};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;

macro_rules! source {
    ($name:literal) => {
        include_bytes!(concat!("../../../../../fixtures/sources/", $name))
    };
}
pub(super) use source;

pub(super) struct Image<'a> {
    pub(super) file: &'a str,
    pub(super) format: &'a str,
    pub(super) size: [i64; 2],
    pub(super) channels: i64,
    pub(super) orientation: i64,
    pub(super) encoded: &'a [u8],
}

pub(super) const COLOUR: Image<'_> = Image {
    file: "colour.jpg",
    format: "jpeg",
    size: [17, 24],
    channels: 3,
    orientation: 1,
    encoded: source!("colour.jpg"),
};
pub(super) const GREY: Image<'_> = Image {
    file: "grey.jpg",
    format: "jpeg",
    size: [16, 9],
    channels: 1,
    orientation: 1,
    encoded: source!("grey.jpg"),
};
const TURNED: Image<'_> = Image {
    file: "progressive-turned.jpg",
    format: "jpeg",
    size: [8, 16],
    channels: 3,
    orientation: 6,
    encoded: source!("progressive-turned.jpg"),
};
const ALPHA: Image<'_> = Image {
    file: "alpha.png",
    format: "png",
    size: [4, 5],
    channels: 4,
    orientation: 1,
    encoded: source!("alpha.png"),
};

const CLASSES: [&str; 3] = ["a \"quoted\" \\ class", "a class of no record", "grüne Äpfel"];

impl Image<'_> {
    /// A record with all conventional features, and `more`.
    fn record(&self, class: i64, more: Vec<(&str, List)>) -> Sample {
        let name = CLASSES[class as usize];
        let mut features = vec![
            ("image/encoded", bytes([self.encoded])),
            ("image/format", text(self.format)),
            ("image/height", ints([self.size[0]])),
            ("image/width", ints([self.size[1]])),
            ("image/channels", ints([self.channels])),
            ("image/orientation", ints([self.orientation])),
            ("image/class/label", ints([class])),
            ("image/class/text", text(name)),
            ("image/filename", text(self.file)),
        ];
        let key = format!("{name}/{}", self.file);
        features.push(("image/key", text(&key)));
        Sample::new(features.into_iter().chain(more))
    }
}

/// Several image formats, an empty shard, a split without shards, ragged and absent features, names beyond ASCII,
/// and a split of records as other writers write them.
pub(super) fn mixed() -> Dataset {
    let raw: Vec<u8> = (0..2 * 3 * 3).map(|i| i * 14).collect();
    let zst = zstd::Frame::of(&raw).bytes();
    let raw_image = Image { file: "raw", format: "raw", size: [2, 3], channels: 3, orientation: 1, encoded: &raw };
    let zst_image = Image { file: "raw.zst", format: "raw-zstd", encoded: &zst, ..raw_image };
    let train_0 = vec![
        COLOUR.record(
            0,
            vec![
                ("größe", floats([0.5])),
                ("objects/box", floats([0.0, 0.25, 0.5, 1.0, 0.125, 0.125, 0.75, 0.75])),
                ("objects/label", ints([7, i64::MIN])),
                ("caption", bytes(["one", "", "zwölf"])),
            ],
        ),
        GREY.record(
            2,
            vec![
                ("größe", floats([-0.0])),
                ("objects/box", floats([])),
                ("objects/label", ints([])),
                ("caption", bytes::<&str>([])),
            ],
        ),
        TURNED.record(
            2,
            vec![("größe", List::Float(vec![1])), ("objects/box", floats([0.5; 4])), ("objects/label", ints([-1]))],
        ),
    ];
    let train_2 = vec![
        ALPHA.record(0, vec![("größe", floats([f32::MAX])), ("objects/label", ints([i64::MAX]))]),
        raw_image.record(2, vec![("größe", floats([1.5])), ("objects/label", ints([300]))]).with_pixels(&raw),
        zst_image.record(2, vec![("größe", floats([2.5])), ("objects/label", ints([-300]))]).with_pixels(&raw),
    ];
    let validation = vec![COLOUR.record(2, vec![("größe", floats([3.5]))])];
    let train = [train_0, vec![], train_2].into_iter().enumerate();
    let train = train.map(|(number, samples)| Shard::new("train", number, samples)).collect();
    Dataset {
        classes: CLASSES.to_vec(),
        ..Dataset::new(vec![
            ("foreign", vec![Shard::new("foreign", 0, foreign())]),
            ("none", vec![]),
            ("train", train),
            ("validation", vec![Shard::new("validation", 0, validation)]),
        ])
    }
}

/// Adopted files: other feature names for image and label, classes from 1, keys in some records.
pub(super) fn adopted() -> Dataset {
    let samples = vec![
        Sample::new([("jpg", bytes([COLOUR.encoded])), ("cls", ints([1])), ("image/filename", text("a.jpg"))]),
        Sample::new([("jpg", bytes([GREY.encoded])), ("cls", ints([2]))]),
        Sample::new([("jpg", bytes(["one", "two"])), ("cls", ints([0]))]),
    ];
    let shard = Shard::named("photos-00000-of-00001", Some("jpg"), samples);
    Dataset { image: Some("jpg"), label: Some("cls"), label_offset: 1, ..Dataset::new(vec![("photos", vec![shard])]) }
}

/// Records that are not Examples.
pub(super) fn opaque() -> Dataset {
    let samples = [b"anything at all".to_vec(), vec![], vec![0xff; 40]].map(Sample::opaque).into();
    let shard = Shard::named("records.tfrecord", None, samples);
    Dataset { image: None, label: None, opaque: true, ..Dataset::new(vec![("train", vec![shard])]) }
}

/// `tiny` as a later minor version might write it: with members, columns and an optional flag that this version does
/// not know.
pub(super) fn later_minor() -> Case {
    let mut dataset = tiny();
    let shard = dataset.shard();
    shard.columns.truncate(4);
    let expected = dataset.expected().without(|line| line.get("column").is_none());
    let shard = dataset.shard();
    shard.columns.insert(0, Column::variable("from_the_future", &[Some("abc"), None]));
    shard.columns.push(Column::fixed("x-private", index::F32, vec![0; 8]));
    let header = Header { minor: 7, optional_flags: 0x8000_0080, ..shard.header() };
    shard.index = index::file(&header, &shard.columns);
    let mut files = dataset.files();
    let text = &files["dataset.json"];
    let text = manifest::replace(text, "\"1.0\",\n", b"\"1.7\",\n  \"later\": [1, {\"a\": null}],\n");
    let text = manifest::replace(&text, "\"type\": \"int64\"}", b"\"type\": \"int64\", \"unit\": \"class\"}");
    files.insert("dataset.json".to_owned(), text);
    let (name, files, _) = case("later-minor", &dataset, files);
    (name, files, expected)
}
