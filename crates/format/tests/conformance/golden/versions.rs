//! Changed datasets: deleted rows, and features whose values lie in companions.

use super::tiny::with;
use crate::bytes::example::{List, bytes, delimited, entry, floats, ints, text};
use crate::bytes::index::{Column, F32, I64};
use crate::dataset::{Dataset, Shard};
use crate::sample::Sample;
use crate::version::{Change, Companion, Deleted, Part, Version};

/// Files of companions.
pub(crate) const BITMAPS: &str = "00000000000000d1.deleted";
pub(crate) const FIRST: &str = "0123456789abcdef.columns";
pub(crate) const SECOND: &str = "fedcba9876543210.columns";

/// The records in the shards, as version 1 has them.
fn first_version() -> Dataset {
    let old = |value: &str| ("old", text(value));
    let first = vec![
        with("a", 0, vec![("n", ints([1])), old("x")]),
        with("b", 1, vec![("n", ints([2])), old("y")]),
        with("c", 2, vec![("n", ints([3])), old("x")]),
    ];
    let second = vec![
        not_canonical(with("d", 0, vec![("n", ints([4]))])),
        with("e", 1, vec![old("z"), ("score", floats([2.5]))]),
    ];
    let shards = vec![Shard::new("train", 0, first), Shard::new("train", 1, second)];
    Dataset { classes: vec!["cat", "dog", "fox"], ..Dataset::new(vec![("train", shards)]) }
}

/// The same features in another form: entries out of order, an unknown field, and a feature without a list.
fn not_canonical(Sample { features, pixels, .. }: Sample) -> Sample {
    let features = features.expect("an Example");
    let mut entries: Vec<Vec<u8>> = features.iter().rev().map(|(name, list)| entry(name, &list.feature())).collect();
    entries.push(entry("none", &[]));
    entries.push(delimited(9, b"unknown"));
    Sample { pixels, ..Sample::stored(delimited(1, &entries.concat()), features) }
}

/// A column `encoded:NAME`.
fn encoded(name: &str, rows: &[Option<List>]) -> Column {
    Column::variable(name, &rows.iter().map(|row| row.as_ref().map(List::feature)).collect::<Vec<_>>())
}

/// The caption of record `a`: longer than a column of an index would have.
fn long() -> String {
    "a long caption ".repeat(20)
}

/// Version 3: row `b` is deleted (version 2), then `cap` and `when` added, class labels, `n` and `score` replaced, `old` dropped.
/// `score` has a companion for the first shard only: the second has what is stored.
pub(crate) fn versions() -> Dataset {
    let mut dataset = first_version();
    let version = Version::after(&dataset, "delete");
    (dataset.requires, dataset.version) = (vec!["versions"], Some(version));
    let shard = dataset.shard();
    shard.deleted = Some(Deleted::new(shard, BITMAPS, 0, &[1]));
    let version = Version::after(&dataset, "column replace");
    dataset.version = Some(Version {
        given: vec![("message", "captions \"by hand\""), ("author", "ada")],
        tags: vec![("Paper", 1), ("labels.v2", 3), ("paper", 2)],
        columns: vec![
            ("cap", Change::Column("bytes")),
            ("image/class/label", Change::Column("int64")),
            ("n", Change::Column("int64")),
            ("old", Change::Dropped),
            ("score", Change::Column("float")),
            ("when", Change::Column("bytes")),
        ],
        ..version
    });
    dataset.logical = vec![("when", "uint64")];
    let [first, second] = &mut dataset.splits[0].1[..] else { panic!("two shards") };
    let long = long();
    let int = |n: i64| Some(n.to_le_bytes());
    let float = |x: f32| Some(x.to_le_bytes());
    let columns = vec![
        Column::variable("feature:cap", &[Some(&long[..]), Some("of b"), Some("")]),
        Column::nullable("feature:image/class/label", I64, &[int(2), int(1), int(0)]),
        Column::nullable("feature:n", I64, &[int(-10), int(20), None]),
        Column::nullable("feature:score", F32, &[float(0.5), float(0.25), float(-0.0)]),
    ];
    // A gap between two companions.
    let mut offset = 64;
    for column in columns {
        let companion = Companion::new(first, FIRST, offset, column);
        offset += companion.part.bytes.len() + 128;
        first.companions.push(companion);
    }
    let row = |key, label, n: Option<i64>, cap: &str, score| {
        let n = n.map(|n| ("n", ints([n])));
        let more = [Some(("cap", text(cap))), n, Some(("score", floats([score])))];
        recorded(key, label, more.into_iter().flatten().collect())
    };
    first.rows =
        Some(vec![Some(row("a", [0, 2], Some(-10), &long, 0.5)), None, Some(row("c", [2, 0], None, "", -0.0))]);
    let columns = vec![
        Column::variable("feature:cap", &[None, Some("grüne Äpfel")]),
        encoded("encoded:n", &[Some(ints([7, 8])), Some(ints([]))]),
        encoded("encoded:when", &[Some(bytes([7u64.to_le_bytes(), u64::MAX.to_le_bytes()])), None]),
    ];
    let mut offset = 0;
    for column in columns {
        let companion = Companion::new(second, SECOND, offset, column);
        offset += companion.part.bytes.len();
        second.companions.push(companion);
    }
    let when = bytes([7u64.to_le_bytes(), u64::MAX.to_le_bytes()]);
    second.rows = Some(vec![
        Some(recorded("d", [0, 0], vec![("n", ints([7, 8])), ("when", when)])),
        Some(recorded("e", [1, 1], vec![("n", ints([])), ("cap", text("grüne Äpfel")), ("score", floats([2.5]))])),
    ]);
    dataset
}

/// A record of version 3. `labels` are the label in the shard, which is also in the pixels, and that of the version.
fn recorded(key: &str, labels: [i64; 2], more: Vec<(&str, List)>) -> Sample {
    let Sample { features, pixels, .. } = with(key, labels[0], more);
    let mut features = features.expect("an Example");
    features.insert("image/class/label".to_owned(), ints([labels[1]]));
    Sample { pixels, ..Sample::new(features) }
}

/// Deleted rows only: records are what the shards hold, canonical or not. Rows across a byte, all rows of a shard, none, and a
/// split without companions; keys of rows, and a key that a deleted row and a record have.
pub(crate) fn deleted_rows() -> Dataset {
    let keyed = |key: &str| Sample::new([("image/key", text(key)), ("n", ints([1]))]);
    let mut first: Vec<Sample> = (0..9).map(|n| Sample::new([("n", ints([n]))])).collect();
    first.extend([keyed("twice"), not_canonical(keyed("other")), keyed("twice")]);
    let second = vec![keyed("gone"), keyed("twice")];
    let third = vec![keyed("gone"), keyed("last")];
    let mut shards: Vec<Shard> =
        [first, second, third].into_iter().enumerate().map(|(n, samples)| Shard::new("train", n, samples)).collect();
    let test = vec![Shard::new("test", 0, vec![keyed("kept")])];
    let before =
        Dataset { image: None, label: None, ..Dataset::new(vec![("test", test.clone()), ("train", shards.clone())]) };
    let version = Version::after(&before, "delete");
    for (number, offset, rows) in [(0, 5, &[0, 2, 7, 8, 9][..]), (1, 3, &[0, 1])] {
        let shard = &mut shards[number];
        shard.deleted = Some(Deleted::new(shard, BITMAPS, offset, rows));
        let live = |(row, sample): (usize, &Sample)| (!rows.contains(&row)).then(|| sample.clone());
        shard.rows = Some(shard.samples.iter().enumerate().map(live).collect());
    }
    let splits = vec![("test", test), ("train", shards)];
    Dataset { requires: vec!["versions"], version: Some(version), splits, ..before }
}

/// A column in the first of two shards, and nothing dropped: records of the second shard are what it holds.
pub(crate) fn one_column() -> Dataset {
    let keyed = |key: &str, n: i64| Sample::new([("image/key", text(key)), ("n", ints([n]))]);
    let second = not_canonical(keyed("c", 3));
    let shards = vec![Shard::new("train", 0, vec![keyed("a", 1), keyed("b", 2)]), Shard::new("train", 1, vec![second])];
    let mut dataset = Dataset { image: None, label: None, ..Dataset::new(vec![("train", shards)]) };
    let version = Version::after(&dataset, "column replace");
    dataset.requires = vec!["versions"];
    dataset.version = Some(Version { columns: vec![("n", Change::Column("int64"))], ..version });
    let shard = dataset.shard();
    let column = Column::nullable("feature:n", I64, &[Some(i64::MIN.to_le_bytes()), None]);
    shard.companions = vec![Companion::new(shard, FIRST, 0, column)];
    shard.rows = Some(vec![Some(keyed("a", i64::MIN)), Some(Sample::new([("image/key", text("b"))]))]);
    dataset
}

/// The only feature is dropped: no shard has a companion, and records are Examples without features.
pub(crate) fn dropped() -> Dataset {
    let samples = vec![Sample::new([("n", ints([1]))]), Sample::new([("n", ints([2]))])];
    let shard = Shard::new("train", 0, samples);
    let mut dataset = Dataset { image: None, label: None, ..Dataset::new(vec![("train", vec![shard])]) };
    let version = Version::after(&dataset, "column drop");
    dataset.requires = vec!["versions"];
    dataset.version = Some(Version { columns: vec![("n", Change::Dropped)], ..version });
    let empty = || Some(Sample::new(Vec::<(String, List)>::new()));
    dataset.shard().rows = Some(vec![empty(), empty()]);
    dataset
}

/// A record was purged: both versions name the shard that was written without it, and the key lies in a list that readers ignore.
pub(crate) fn purged() -> Dataset {
    let keyed = |key: &str, n: i64| Sample::new([("image/key", text(key)), ("n", ints([n]))]);
    let shard = Shard::named("train-0123456789012345-00000.tfrecord", None, vec![keyed("a", 1), keyed("c", 3)]);
    let mut dataset = Dataset { image: None, label: None, ..Dataset::new(vec![("train", vec![shard])]) };
    let list = Part { file: "00000000000000aa.purged", offset: 0, bytes: (0..64).collect() };
    let version = Version::after(&dataset, "purge");
    dataset.requires = vec!["versions"];
    dataset.version = Some(Version { purged: Some(("[1]", 1, list)), ..version });
    dataset
}
