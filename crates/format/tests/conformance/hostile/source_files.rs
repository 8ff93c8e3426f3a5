//! Virtual shards: source files that are not there, are not those that were described, or must not be opened.

use super::virtual_shards::{changed, rename};
use super::{SECOND, SHARD, case, damage};
use crate::bytes::{frame, header};
use crate::dataset::{Dataset, Files};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::virtual_shards::{CAT_FILE, TAR, TEXTS, virtual_files, virtual_tar, virtual_versions};

/// The second shard of `virtual-tar`.
const SECOND_SHARD: &str = "train-00001.tfrecord";
/// Records of `virtual-tar` that have bytes of the tar: number in the split, file of the shard, row.
const IN_TAR: [(u64, &str, u64); 5] =
    [(0, SHARD, 0), (1, SHARD, 1), (3, SECOND_SHARD, 0), (4, SECOND_SHARD, 1), (5, SECOND_SHARD, 2)];

/// A dataset with its files changed after they were written.
fn files(
    name: &str,
    dataset: &Dataset,
    change: impl FnOnce(&mut Files),
    expect: impl FnOnce(Expected) -> Expected,
) -> Case {
    let mut files = dataset.files();
    change(&mut files);
    (name.to_owned(), files, expect(dataset.expected()))
}

/// Records that are lost, each with its finding.
fn lost(e: Expected, damage: &str, records: &[(u64, &str, u64)]) -> Expected {
    records
        .iter()
        .fold(e, |e, (record, file, row)| e.loses("train", *record, damage).finds(damage, file, Some(*row), None))
}

/// Both records of `virtual-files`, or one.
fn rows(e: Expected, damage: &str, rows: &[u64]) -> Expected {
    lost(e, damage, &rows.iter().map(|row| (*row, SHARD, *row)).collect::<Vec<_>>())
}

fn edit<'a>(files: &'a mut Files, name: &str) -> &'a mut Vec<u8> {
    files.get_mut(name).expect("a source file")
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = missing();
    cases.extend(lengths());
    cases.extend(bytes());
    cases.extend(names());
    cases.extend(sources());
    cases
}

fn missing() -> Vec<Case> {
    let (one, tar) = (virtual_files(), virtual_tar());
    let named = |name: &str, file: &str| {
        case(name, &changed(|shard| rename(shard, file.as_bytes())), |e| rows(e, "MissingSource", &[0]))
    };
    vec![
        files("MissingSource-file", &one, |f| drop(f.remove(CAT_FILE)), |e| rows(e, "MissingSource", &[0])),
        // Of two shards, without the record that has no bytes of it.
        files(
            "MissingSource-tar",
            &tar,
            |f| drop(f.remove(TAR)),
            |e| lost(e, "MissingSource", &IN_TAR).with_good(&[2]),
        ),
        files(
            "MissingSource-second-file",
            &tar,
            |f| drop(f.remove(TEXTS)),
            |e| lost(e, "MissingSource", &IN_TAR[1..2]).with_good(&[6]),
        ),
        // The files are asked for in the order of the frame.
        files(
            "MissingSource-before-length",
            &tar,
            |f| {
                f.remove(TEXTS);
                edit(f, TAR).push(0);
            },
            |e| {
                let e = lost(e, "MissingSource", &IN_TAR[1..2]);
                let e = lost(e, "SourceLength", &IN_TAR[..1]);
                lost(e, "SourceLength", &IN_TAR[2..]).with_good(&[2])
            },
        ),
        // Readers do not deliver a deleted row; verify checks it as the others.
        files(
            "MissingSource-deleted-row",
            &virtual_versions(),
            |f| drop(f.remove("1.raw")),
            |e| e.finds("MissingSource", SHARD, Some(1), None).with_good(&[2]),
        ),
        named("MissingSource-folder", "photos"),
        named("MissingSource-below-a-file", "photos/dog.raw/cat.raw"),
        named("MissingSource-two-dots-in-name", "..photos/cat..raw"),
        named("MissingSource-backslash", "photos\\cat.raw"),
        named("MissingSource-drive", "c:photos/cat.raw"),
        named("MissingSource-percent", "photos/%63at.raw"),
        named("MissingSource-name-too-long", &"a".repeat(300)),
    ]
}

fn lengths() -> Vec<Case> {
    let (one, tar) = (virtual_files(), virtual_tar());
    let first = |e: Expected| rows(e, "SourceLength", &[0]);
    let of_index =
        |name: &str, length: u8| case(name, &changed(|shard| shard.column("virtual_files").values[0] = length), first);
    vec![
        files("SourceLength-longer", &one, |f| edit(f, CAT_FILE).push(0), first),
        files("SourceLength-shorter", &one, |f| edit(f, CAT_FILE).truncate(11), first),
        files("SourceLength-empty", &one, |f| edit(f, CAT_FILE).clear(), first),
        // The bytes of all records are there.
        files(
            "SourceLength-tar-shorter",
            &tar,
            |f| edit(f, TAR).truncate(6143),
            |e| lost(e, "SourceLength", &IN_TAR).with_good(&[2]),
        ),
        files(
            "SourceLength-before-missing",
            &tar,
            |f| {
                edit(f, TEXTS).push(0);
                f.remove(TAR);
            },
            |e| {
                let e = lost(e, "SourceLength", &IN_TAR[1..2]);
                let e = lost(e, "MissingSource", &IN_TAR[..1]);
                lost(e, "MissingSource", &IN_TAR[2..]).with_good(&[2])
            },
        ),
        of_index("SourceLength-described-longer", 13),
        case(
            "SourceLength-described-much-longer",
            &changed(|shard| shard.column("virtual_files").values[7] = 0x80),
            first,
        ),
    ]
}

/// Files of the same length with other bytes.
fn bytes() -> Vec<Case> {
    let (one, tar) = (virtual_files(), virtual_tar());
    let shard = &tar.splits[1].1[1];
    let whole = frame(&shard.samples[1].data);
    let place = {
        let tar = &tar.files()[TAR];
        tar.windows(whole.len()).position(|part| part == whole).expect("the frame")
    };
    let second = (shard.samples[0].data.len() + 16) as u64;
    let third = second + whole.len() as u64;
    let damaged = |damage: &'static str, record: u64, row: u64, offset: u64| {
        move |e: Expected| {
            let e = e.loses("train", record, damage).finds(damage, SECOND_SHARD, Some(row), Some(offset));
            e.with_good(&[6])
        }
    };
    vec![
        files(
            "DataCrc-source",
            &one,
            |f| edit(f, "photos/dog.raw")[5] ^= 1,
            |e| e.loses("train", 1, "DataCrc").finds("DataCrc", SHARD, Some(1), Some(SECOND)),
        ),
        files(
            "DataCrc-source-second-range",
            &tar,
            |f| {
                let tar = edit(f, TAR);
                let at = tar.windows(3).rposition(|part| part == [9, 5, 7]).expect("the image");
                tar[at] ^= 0x80;
            },
            damaged("DataCrc", 5, 2, third),
        ),
        files(
            "DataCrc-source-footer",
            &tar,
            |f| {
                edit(f, TAR)[place + whole.len() - 1] ^= 1;
            },
            damaged("DataCrc", 4, 1, second),
        ),
        files("LengthCrc-source", &tar, |f| edit(f, TAR)[place] ^= 1, damaged("LengthCrc", 4, 1, second)),
        files(
            "TruncatedFrame-source",
            &tar,
            |f| {
                edit(f, TAR)[place..place + 12].copy_from_slice(&header(1 << 40));
            },
            damaged("TruncatedFrame", 4, 1, second),
        ),
    ]
}

/// Names that are no plain paths.
fn names() -> Vec<Case> {
    let named = |detail: &str, file: &str| {
        let name = format!("ForeignSource-{detail}");
        case(&name, &changed(|shard| rename(shard, file.as_bytes())), |e| rows(e, "ForeignSource", &[0]))
    };
    // The first file of record 1 is absent, but the name of its second one is looked at before.
    let mut second = virtual_tar();
    let shard = &mut second.splits[1].1[0];
    let files = &mut shard.column("virtual_files").values;
    let at = files.windows(TAR.len()).position(|part| part == TAR.as_bytes()).expect("the tar");
    files[at..at + 3].copy_from_slice(b"../");
    shard.reindex();
    vec![
        named("parent", "../cat.raw"),
        named("absolute", "/nonexistent-source/cat.raw"),
        named("parent-inside", "photos/../photos/cat.raw"),
        named("parent-last", "photos/.."),
        named("parent-only", ".."),
        named("dot", "./photos/cat.raw"),
        named("dot-inside", "photos/./cat.raw"),
        named("dot-only", "."),
        named("absolute-inside", "/photos/cat.raw"),
        named("slash", "/"),
        named("slash-last", "photos/cat.raw/"),
        named("two-slashes", "photos//cat.raw"),
        named("empty", ""),
        named("line-end", "photos/cat.raw\n"),
        named("zero", "photos/cat.raw\0"),
        named("escape", "photos/\u{1b}cat.raw"),
        named("delete", "photos/cat\u{7f}.raw"),
        named("c1-control", "photos/cat\u{9b}.raw"),
        self::files(
            "ForeignSource-before-missing",
            &second,
            |f| drop(f.remove(TEXTS)),
            |e| lost(e, damage("ForeignSource-before-missing"), &IN_TAR[..2]).with_good(&[5]),
        ),
    ]
}

/// Folders and stores that the user did not name.
fn sources() -> Vec<Case> {
    let source = |detail: &str, source: &'static str| {
        let dataset = changed(|shard| shard.foreign.as_mut().expect("a virtual shard").source = Some(source));
        case(&format!("ForeignSource-{detail}"), &dataset, |e| rows(e, "ForeignSource", &[0, 1]))
    };
    let mut device = changed(|shard| rename(shard, b"zero"));
    device.shard().foreign.as_mut().expect("a virtual shard").source = Some("/dev");
    // The record without ranges needs no source.
    let mut tar = virtual_tar();
    tar.splits[1].1[0].foreign.as_mut().expect("a virtual shard").source = Some("s3://bucket/prefix");
    vec![
        source("folder", "/nonexistent-source"),
        source("root", "/"),
        source("folder-with-slash", "/nonexistent-source/"),
        source("s3", "s3://bucket/prefix"),
        source("http", "http://127.0.0.1:9/"),
        source("https", "https://127.0.0.1:9/a@b"),
        source("file-url", "file:///nonexistent-source"),
        source("unknown-scheme", "x-y.z+1://host/a"),
        // Of a path, these are characters as all others.
        source("characters-of-urls", "/nonexistent@source/a?b#c"),
        source("4096-bytes", Box::leak(format!("s3://bucket/{}", "a".repeat(4096 - 12)).into_boxed_str())),
        case("ForeignSource-device", &device, |e| rows(e, "ForeignSource", &[0, 1])),
        case("ForeignSource-of-one-shard", &tar, |e| lost(e, "ForeignSource", &IN_TAR[..2]).with_good(&[5])),
    ]
}
