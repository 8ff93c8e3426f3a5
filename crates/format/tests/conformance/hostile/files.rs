//! Files that are missing, or are not the ones that the manifest names.

use super::{INDEX, SECOND, SHARD, case, changed, damage, no_records};
use crate::bytes::crc::{crc32c, sum};
use crate::bytes::example::{ints, text};
use crate::bytes::{frame, header, manifest};
use crate::dataset::{Dataset, Files, Shard};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::tiny::{CAT, cat, dog, record, tiny, with};
use crate::sample::Sample;
use serde_json::{Value, json};

/// `tiny` with its files changed after they were written.
fn files(name: &str, change: impl FnOnce(&mut Files), expect: impl FnOnce(Expected) -> Expected) -> Case {
    let mut files = tiny().files();
    change(&mut files);
    (name.to_owned(), files, expect(tiny().expected()))
}

/// `tiny` with its shard changed; the manifest and the index describe another one.
fn shard(name: &str, change: impl FnOnce(&mut Vec<u8>), expect: impl FnOnce(Expected) -> Expected) -> Case {
    files(name, |files| change(files.get_mut(SHARD).expect("the shard")), expect)
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = vec![
        // The index of a missing shard may be read all the same.
        files(
            "MissingShard-train",
            |f| drop(f.remove(SHARD)),
            |e| {
                let of_index = |line: &&Value| line.get("column").or(line.get("lookup")).is_some();
                let of_index: Vec<_> =
                    e.read.iter().filter(of_index).map(|line| json!({"any": [line, null]})).collect();
                let mut e = no_records(e, "MissingShard").finds("MissingShard", SHARD, None, None);
                e.read.extend(of_index);
                e
            },
        ),
        files(
            "MissingIndex-train",
            |f| drop(f.remove(INDEX)),
            |e| no_records(e, "MissingIndex").finds("MissingIndex", INDEX, None, None),
        ),
    ];
    cases.extend(lengths());
    cases.extend(crcs());
    cases.extend(counts());
    cases.extend(several_shards());
    cases
}

fn lengths() -> Vec<Case> {
    let longer = |e: Expected| e.finds("ShardLength", SHARD, None, None);
    let shorter = |e: Expected| longer(e.loses("train", 1, "ShardLength"));
    let second = SECOND as usize;
    vec![
        shard("ShardLength-longer", |b| b.extend(frame(b"")), longer),
        shard("ShardLength-longer-no-frame", |b| b.extend([0xff; 5]), longer),
        shard("ShardLength-longer-by-a-record", |b| b.extend(frame(&cat().data)), longer),
        shard("ShardLength-shorter", |b| b.truncate(second), shorter),
        shard("ShardLength-shorter-in-data", |b| b.truncate(second + 100), shorter),
        shard("ShardLength-shorter-in-header", |b| b.truncate(second + 6), shorter),
        shard("ShardLength-shorter-by-a-byte", |b| b.truncate(b.len() - 1), shorter),
        shard("ShardLength-empty", |b| b.clear(), |e| shorter(e.loses("train", 0, "ShardLength"))),
        shard(
            "ShardLength-longer-and-last-frame",
            |b| {
                b[second..][..12].copy_from_slice(&header(1 << 40));
                b.extend(frame(b""));
            },
            |e| longer(e.loses("train", 1, "TruncatedFrame")),
        ),
        longer_with_a_damaged_frame(),
    ]
}

/// A file that is too long, and a frame in its middle that claims to end behind it: another length does not explain that.
fn longer_with_a_damaged_frame() -> Case {
    let samples = (0..5).map(|i| with(&format!("{i}.raw"), i, vec![])).collect();
    let mut dataset = Dataset::new(vec![("train", vec![Shard::new("train", 0, samples)])]);
    let shard = dataset.shard();
    let offset = shard.samples[..2].iter().map(|sample| sample.data.len() as u64 + 16).sum::<u64>();
    shard.bytes[offset as usize..][..12].copy_from_slice(&header(1 << 40));
    shard.reindex();
    let mut files = dataset.files();
    files.get_mut(SHARD).expect("the shard").push(0xff);
    let expected = dataset.expected().loses("train", 2, "TruncatedFrame").finds("ShardLength", SHARD, None, None);
    let expected = expected.finds("TruncatedFrame", SHARD, Some(2), Some(offset));
    ("ShardLength-longer-and-a-frame".to_owned(), files, expected)
}

/// Files with the right length, and parts with matching CRCs.
fn crcs() -> Vec<Case> {
    // The same record with one pixel of another colour.
    let painted = || {
        let pixels = [&[254][..], &CAT[1..]].concat();
        Sample::new(record("cat/0.png", 0, "raw", (2, 2), &pixels)).with_pixels(&pixels)
    };
    let delivered = |e: Expected| {
        e.record("train", 0, |line| {
            let mut line = line.clone();
            let pixels = [&[254][..], &CAT[1..]].concat();
            line["data"] = json!(sum(&painted().data));
            line["image"] = json!(sum(&pixels));
            line["pixels"] = json!(sum(&pixels));
            line["features"]["image/encoded"]["values"] = json!([sum(&pixels)]);
            line
        })
    };
    let paint = |b: &mut Vec<u8>| *b = [frame(&painted().data), frame(&dog().data)].concat();
    let with_sha256 = |change: &dyn Fn(&mut Files)| {
        let dataset = changed(|dataset| dataset.shard().sha256 = true);
        let mut files = dataset.files();
        change(&mut files);
        files
    };
    let fewer = changed(|dataset| {
        dataset.shard().columns.truncate(4);
        dataset.shard().reindex();
    });
    let index = fewer.files()[INDEX].clone();
    let without_features = |e: Expected| e.without(|line| line.get("column").is_none());
    let other_digits = |f: &mut Files| {
        let text = f["dataset.json"].clone();
        let at = text.windows(11).position(|w| w == b"\"sha256\": \"").expect("a SHA-256") + 11;
        let digit = if text[at] == b'0' { b'1' } else { b'0' };
        f.insert("dataset.json".to_owned(), manifest::forge(&text, |body| body[at] = digit));
    };
    let sha256 = |e: Expected| e.finds("ShardSha256", SHARD, None, None);
    vec![
        shard("ShardCrc-other-pixels", paint, |e| delivered(e).finds("ShardCrc", SHARD, None, None)),
        // The CRC explains the SHA-256; so does any finding in the shard.
        (
            "ShardCrc-and-sha256".to_owned(),
            with_sha256(&|f| paint(f.get_mut(SHARD).expect("the shard"))),
            delivered(tiny().expected()).finds("ShardCrc", SHARD, None, None),
        ),
        (
            "DataCrc-and-sha256".to_owned(),
            with_sha256(&|f| f.get_mut(SHARD).expect("the shard")[100] ^= 1),
            tiny().expected().loses("train", 0, "DataCrc").finds("DataCrc", SHARD, Some(0), Some(0)),
        ),
        ("ShardSha256-manifest".to_owned(), with_sha256(&other_digits), sha256(tiny().expected())),
        files(
            "IndexCrc-fewer-columns",
            |f| drop(f.insert(INDEX.to_owned(), index)),
            |e| without_features(e).finds("IndexCrc", INDEX, None, None),
        ),
        in_manifest("IndexCrc-length", "\"index_bytes\": 1216", "\"index_bytes\": 1217", |e| {
            e.finds("IndexCrc", INDEX, None, None)
        }),
        in_manifest("IndexCrc-manifest", "\"index_crc32c\": \"", "\"index_crc32c\": \"00000000\", \"was\": \"", |e| {
            e.finds("IndexCrc", INDEX, None, None)
        }),
    ]
}

/// `tiny` with its manifest changed, and its CRC corrected.
fn in_manifest(name: &str, from: &str, to: &str, expect: impl FnOnce(Expected) -> Expected) -> Case {
    files(
        name,
        |f| {
            let text = manifest::replace(&f["dataset.json"], from, to.as_bytes());
            f.insert("dataset.json".to_owned(), text);
        },
        expect,
    )
}

/// Manifest, index and frames do not agree on the number of records.
fn counts() -> Vec<Case> {
    let two = tiny();
    let (bytes, crc) = (two.splits[0].1[0].bytes.len() as u64, crc32c(&two.splits[0].1[0].bytes));
    let fingerprint = |records: u64| {
        let numbers = [&records.to_le_bytes()[..], &bytes.to_le_bytes(), &crc.to_le_bytes()].concat();
        format!("{:08x}", crc32c(&numbers))
    };
    let with_count = |mut e: Expected, records: u64| {
        e.read[0] = json!({"split": "train", "records": records, "fingerprint": fingerprint(records)});
        e.read.retain(|line| line["record"].as_u64().is_none_or(|record| record < records));
        let lost = |record: u64| json!({"split": "train", "record": record, "error": "RecordCount"});
        e.read.extend((2..records).map(lost));
        (0..records.min(2)).fold(e.without_index(), |e, record| e.loses("train", record, "RecordCount"))
    };
    let of_index = |e: Expected| e.finds("RecordCount", INDEX, None, None);
    // Three frames, and two rows in index and manifest. The last record seems to be longer than it is.
    let mut more = tiny();
    more.shard().bytes.extend(frame(&cat().data));
    more.shard().reindex();
    // An index of the first record only.
    let mut fewer = tiny();
    fewer.shard().index = Shard::new("train", 0, vec![cat()]).with_shard_of(&tiny()).index;
    let fewer_rows = case("RecordCount-index", &fewer, |e| {
        let e = no_records(e, "RecordCount");
        of_index(e)
    });
    vec![
        in_manifest("RecordCount-manifest", "\"records\": 2", "\"records\": 3", |e| of_index(with_count(e, 3))),
        in_manifest("RecordCount-manifest-fewer", "\"records\": 2", "\"records\": 1", |e| of_index(with_count(e, 1))),
        fewer_rows,
        case("RecordCount-frames", &more, |e| {
            e.may_lose("train", 1, &["IndexMismatch"]).finds("RecordCount", SHARD, None, None)
        }),
    ]
}

impl Shard {
    /// Rebuilds the index with the length and CRC of another dataset's shard.
    fn with_shard_of(mut self, dataset: &Dataset) -> Self {
        self.bytes = dataset.splits[0].1[0].bytes.clone();
        self.reindex();
        self
    }
}

/// Three shards of two records, with a key of the first shard in the last one, too. One of them is damaged.
fn several_shards() -> Vec<Case> {
    let sample = |key: &str| Sample::new([("image/key", text(key)), ("n", ints([1]))]);
    let keys = [["a", "b"], ["c", "d"], ["e", "a"]];
    let dataset = || {
        let shards =
            keys.iter().enumerate().map(|(n, keys)| Shard::new("train", n, keys.iter().map(|k| sample(k)).collect()));
        Dataset { image: None, label: None, ..Dataset::new(vec![("train", shards.collect())]) }
    };
    let path = |n: usize| (format!("train-{n:05}.tfrecord"), format!("_index/train-{n:05}.tfrecord.index"));
    // Shard `n` is not opened: its records, its column and its keys are lost.
    let unopened = |e: Expected, n: usize, error: &str| {
        let e = e.loses("train", 2 * n as u64, error).loses("train", 2 * n as u64 + 1, error);
        let mut e = e.without(|line| line["column"].is_null() || line["shard"] != n);
        let hex = |key: &str| format!("{:02x}", key.as_bytes()[0]);
        e.read.retain(|line| line["lookup"].is_null());
        let mut first: Vec<(String, usize)> = vec![];
        for (shard, keys) in keys.iter().enumerate().filter(|(shard, _)| *shard != n) {
            for (row, key) in keys.iter().enumerate() {
                if !first.iter().any(|(known, _)| *known == hex(key)) {
                    first.push((hex(key), 2 * shard + row));
                }
            }
        }
        let line = |(key, record): (String, usize)| json!({"split": "train", "lookup": key, "record": record});
        e.read.extend(first.into_iter().map(line).collect::<Vec<Value>>());
        e
    };
    let files = |name: &str, n: usize, change: &dyn Fn(&mut Files), index: bool| {
        let mut files = dataset().files();
        change(&mut files);
        let file = if index { path(n).1 } else { path(n).0 };
        let expected = unopened(dataset().expected(), n, damage(name)).finds(damage(name), &file, None, None);
        (name.to_owned(), files, expected)
    };
    let frame_of = |name: &str, n: usize, at: usize| {
        let mut dataset = dataset();
        let shard = &mut dataset.splits[0].1[n];
        shard.bytes[at] ^= 1;
        shard.reindex();
        let record = 2 * n as u64;
        case(name, &dataset, |e| {
            e.loses("train", record, damage(name)).finds(damage(name), &path(n).0, Some(0), Some(0))
        })
    };
    vec![
        {
            let (name, files, mut expected) =
                files("MissingShard-first-of-three", 0, &|f| drop(f.remove(&path(0).0)), false);
            let all = dataset().expected().read;
            let other = |line: &Value| line["shard"] == 0 || line["lookup"] == "61" || line["lookup"] == "62";
            let own = expected.read.iter().find(|line| line["lookup"] == "61").cloned();
            expected.read.retain(|line| line["lookup"] != "61");
            expected.read.extend(all.into_iter().filter(other).map(|line| match line["lookup"] == "61" {
                true => json!({"any": [line, own]}),
                false => json!({"any": [line, null]}),
            }));
            (name, files, expected)
        },
        files("MissingIndex-second-of-three", 1, &|f| drop(f.remove(&path(1).1)), true),
        files("IndexHeaderCrc-last-of-three", 2, &|f| f.get_mut(&path(2).1).expect("the index")[63] ^= 1, true),
        // The files of two shards are exchanged.
        {
            let mut files = dataset().files();
            let (a, b) = (path(0).1, path(1).1);
            let (first, second) = (files[&a].clone(), files[&b].clone());
            files.insert(a.clone(), second);
            files.insert(b.clone(), first);
            let expected = unopened(dataset().expected(), 0, "IndexMismatch");
            let mut expected = expected.loses("train", 2, "IndexMismatch").loses("train", 3, "IndexMismatch");
            expected.read.retain(|line| line["column"].is_null() || line["shard"] == 2);
            expected.read.retain(|line| line["lookup"].is_null());
            expected.read.push(json!({"split": "train", "lookup": "65", "record": 4}));
            expected.read.push(json!({"split": "train", "lookup": "61", "record": 5}));
            let expected = expected.finds("IndexMismatch", &a, None, None).finds("IndexMismatch", &b, None, None);
            ("IndexMismatch-indexes-exchanged".to_owned(), files, expected)
        },
        frame_of("DataCrc-second-of-three", 1, 20),
        frame_of("LengthCrc-last-of-three", 2, 0),
    ]
}
