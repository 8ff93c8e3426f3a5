//! Existing TFRecord files become a dataset, in place or through links.

use crate::support::{chain, check, class_folders, jpeg, manifest, names, put, snapshot};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Column, encode};
use shardtool_format::frame;
use shardtool_format::index::Index;
use shardtool_format::manifest::DType;
use shardtool_pack::{AdoptOptions, Compression, Conventions, Error, Options, Progress, Step, adopt, pack};
use shardtool_pack::{DestinationError, ShardError};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub(crate) fn framed(data: &[u8]) -> Vec<u8> {
    [&frame::header(data.len() as u64)[..], data, &frame::footer(crc32c(data))].concat()
}

pub(crate) fn example(mut features: Vec<(&str, Column<'_>)>) -> Vec<u8> {
    let mut out = vec![];
    encode(&mut features, &mut out);
    out
}

/// Records with other conventions: `jpeg`, `class` from 1.
fn theirs(path: &Path, labels: &[i64]) -> PathBuf {
    let mut file = vec![];
    for label in labels {
        let name = format!("name{label}");
        file.extend(framed(&example(vec![
            ("jpeg", Column::Bytes(&[&jpeg(*label as u32, 20, 20)])),
            ("class", Column::Int64(&[*label])),
            ("image/class/text", Column::Bytes(&[name.as_bytes()])),
            ("weights", Column::Float(&[0.5, 1.5])),
        ])));
    }
    put(path, &file);
    path.to_owned()
}

fn conventions() -> AdoptOptions {
    let conventions =
        with!(Conventions::default(), image = "jpeg".to_owned(), label = "class".to_owned(), label_offset = 1);
    with!(AdoptOptions::default(), conventions = conventions)
}

#[test]
fn adopts_in_place_with_other_conventions() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let files = [
        theirs(&at("train-00001-of-00002"), &[3, 1]),
        theirs(&at("train-00000-of-00002"), &[1, 5, 3]),
        theirs(&at("validation-00000-of-00001"), &[1]),
    ];
    let before: Vec<_> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    let splits = adopt(&files, &conventions(), &()).unwrap();
    assert_eq!(splits.iter().map(|s| (&*s.name, s.records())).collect::<Vec<_>>(), [("train", 5), ("validation", 1)]);
    assert_eq!(splits[0].shards[0].file, "train-00000-of-00002");
    assert_eq!(files.iter().map(|file| fs::read(file).unwrap()).collect::<Vec<_>>(), before);
    let manifest = manifest(temp.path());
    assert_eq!((manifest.image.as_deref(), manifest.label.as_deref()), (Some("jpeg"), Some("class")));
    assert_eq!((manifest.label_offset, manifest.splits.len()), (1, 2));
    assert_eq!(manifest.classes, ["name1", "class-1", "name3", "class-3", "name5"]);
    let index = fs::read(at("_index/train-00000-of-00002.index")).unwrap();
    let columns = Index::parse(&index).unwrap();
    let column = |name| columns.position(name).unwrap();
    let keys: Vec<_> = columns.variable(column("key")).unwrap().iter().flatten().map(<[u8]>::to_vec).collect();
    assert_eq!(keys[2], b"train-00000-of-00002#2");
    let lengths = columns.fixed::<u32>(column("image_length")).unwrap();
    assert_eq!(lengths.get(1), Some(jpeg(5, 20, 20).len() as u32));
    let labels = columns.fixed::<i64>(column("feature:class")).unwrap();
    assert_eq!(labels.iter().flatten().collect::<Vec<_>>(), [1, 5, 3], "as stored");
    assert!(columns.position("feature:weights").is_none(), "two numbers per record are not a scalar");
}

#[test]
fn adopts_through_links() {
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (temp.path().join("a/x-00000.tfrecord"), temp.path().join("b/x-00001.tfrecord"));
    let files = [theirs(&a, &[1]), theirs(&b, &[2, 3])];
    let scattered = adopt(&files, &conventions(), &()).unwrap_err();
    assert!(matches!(scattered, Error::Shard(ShardError::Scattered { .. })), "{scattered}");
    let out = temp.path().join("out");
    let options = with!(conventions(), out = Some(out.clone()), split = Some("all".to_owned()));
    let splits = adopt(&files, &options, &()).unwrap();
    assert_eq!((splits.len(), splits[0].records()), (1, 3));
    assert_eq!(fs::read_link(out.join("x-00001.tfrecord")).unwrap(), b.canonicalize().unwrap());
    assert_eq!(names(&temp.path().join("a")), ["x-00000.tfrecord"], "no file is written next to them");
}

#[test]
fn index_equals_that_of_pack() {
    let temp = tempfile::tempdir().unwrap();
    let (source, set) = (temp.path().join("photos"), temp.path().join("set"));
    class_folders(&source, 5);
    pack(&Options::new(&source, &set), &()).unwrap();
    let packed = snapshot(&set);
    fs::remove_file(set.join("dataset.json")).unwrap();
    fs::remove_dir_all(set.join("_index")).unwrap();
    adopt(&[set.join("train-00000.tfrecord")], &AdoptOptions::default(), &()).unwrap();
    assert!(packed == snapshot(&set));
    assert_eq!(check(&set, "train").len(), 15);
    let again = adopt(&[set.join("train-00000.tfrecord")], &AdoptOptions::default(), &()).unwrap();
    assert_eq!(again, manifest(&set).splits, "the same files are the same dataset");
    let other = with!(AdoptOptions::default(), entry_points = false);
    let again = adopt(&[set.join("train-00000.tfrecord")], &other, &()).unwrap_err();
    assert!(matches!(again, Error::Destination(DestinationError::AlreadyIndexed { .. })), "{again}");
    let renamed = with!(AdoptOptions::default(), split = Some("b".to_owned()));
    let again = adopt(&[set.join("train-00000.tfrecord")], &renamed, &()).unwrap_err();
    assert!(matches!(again, Error::Destination(DestinationError::InTheWay { .. })), "{again}");
    assert!(packed == snapshot(&set));
}

/// An error after the manifest is in place removes nothing that it names.
#[test]
fn error_after_the_manifest_leaves_a_dataset_that_the_next_run_completes() {
    struct Stop(Step);
    impl Progress for Stop {
        fn after(&self, step: Step) -> ControlFlow<()> {
            if step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let files = [theirs(&at("train-00000.tfrecord"), &[1, 2]), theirs(&at("validation-00000.tfrecord"), &[1])];
    adopt(&files, &conventions(), &Stop(Step::Index)).unwrap_err();
    assert_eq!(names(temp.path()), ["train-00000.tfrecord", "validation-00000.tfrecord"]);
    adopt(&files, &conventions(), &Stop(Step::Manifest)).unwrap_err();
    let expected = snapshot(temp.path());
    assert_eq!(manifest(temp.path()).splits.len(), 2, "the manifest names all splits or none");
    assert_eq!(adopt(&files, &conventions(), &()).unwrap().len(), 2);
    assert!(snapshot(temp.path()) == expected);
    fs::write(at("train-00000.tfrecord"), framed(&example(vec![]))).unwrap();
    let changed = adopt(&files, &conventions(), &()).unwrap_err();
    assert!(matches!(changed, Error::Destination(DestinationError::AlreadyIndexed { .. })), "{changed}");
    assert!(chain(&changed).contains("shardtool repair"), "{changed}");
}

#[test]
fn adopts_opaque_records() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("blobs.tfrecord");
    put(&file, &[framed(b"\xff\xff\xff"), framed(b""), framed(&example(vec![]))].concat());
    let splits = adopt(std::slice::from_ref(&file), &AdoptOptions::default(), &()).unwrap();
    assert_eq!(splits[0].records(), 3);
    let manifest = manifest(temp.path());
    assert_eq!((manifest.image, manifest.label, manifest.features.len()), (None, None, 0));
}

#[test]
fn compressed_files_are_refused_with_the_command_that_converts_them() {
    let temp = tempfile::tempdir().unwrap();
    for (start, kind, command) in [
        (*b"\x1f\x8b\x08\0", Compression::Gzip, "gzip -dc"),
        (*b"\x78\x9c\x01\x02", Compression::Zlib, "zlib.decompress"),
    ] {
        let file = temp.path().join("train-00000.tfrecord");
        put(&file, &[&start[..], &[7; 60]].concat());
        let error = adopt(std::slice::from_ref(&file), &AdoptOptions::default(), &()).unwrap_err();
        assert!(matches!(error, Error::Shard(ShardError::Compressed { kind: found, .. }) if found == kind), "{error}");
        assert!(chain(&error).contains(command), "{error}");
    }
    // A record of 0x8b1f bytes begins like a gzip file.
    let file = temp.path().join("train-00000.tfrecord");
    put(&file, &framed(&[0xff; 0x8b1f]));
    assert_eq!(fs::read(&file).unwrap()[..2], [0x1f, 0x8b]);
    adopt(&[file], &AdoptOptions::default(), &()).unwrap();
}

#[test]
fn reports_damage_and_differing_types_and_leaves_no_file() {
    let temp = tempfile::tempdir().unwrap();
    let good = theirs(&temp.path().join("train-00000.tfrecord"), &[1, 2]);
    let refused = |bytes: &[u8]| {
        let bad = temp.path().join("train-00001.tfrecord");
        put(&bad, bytes);
        let error = adopt(&[good.clone(), bad.clone()], &conventions(), &()).unwrap_err();
        let left = names(temp.path());
        assert_eq!(left, ["train-00000.tfrecord", "train-00001.tfrecord"], "{error}");
        assert!(!temp.path().join("_index").exists(), "{error}");
        error
    };
    let mut flipped = fs::read(&good).unwrap();
    let last = flipped.len() - 30;
    flipped[last] ^= 4;
    let error = refused(&flipped);
    assert!(
        matches!(&error, Error::Shard(ShardError::Record { record: 1, shard, .. }) if shard.ends_with("00001.tfrecord")),
        "{error}"
    );
    assert!(chain(&error).contains("data CRC"), "{error}");
    assert!(matches!(refused(&flipped[..40]), Error::Shard(ShardError::Record { record: 0, .. })));
    assert!(matches!(refused(&framed(b"\xff\xff\xff")), Error::Shard(ShardError::Record { record: 0, .. })));
    let error = refused(&framed(&example(vec![("class", Column::Float(&[1.0]))])));
    let Error::Shard(ShardError::FeatureType { feature, first, second }) = &error else { panic!("{error}") };
    assert_eq!((&**feature, first.2, second.2), ("class", DType::Int64, DType::Float));
}
