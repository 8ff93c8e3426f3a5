//! Invalid input and failing disks: the message names the cause, and no partial file is left.

use crate::resume::child;
use crate::support::{chain, check, class_folders, jpeg, names, put, rejected};
use shardtool_format::manifest::DType;
use shardtool_pack::{DestinationError, ListError, SourceError};
use shardtool_pack::{Error, Options, Progress, Shards, Step, pack};
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn temp() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("photos"), temp.path().join("set"));
    (temp, source, destination)
}

/// Packs, and expects an error and that the destination was not created.
fn refused(options: &Options) -> Error {
    let error = pack(options, &()).expect_err("an error");
    assert!(!options.destination.exists(), "{error}");
    error
}

fn says(error: &Error, parts: &[&str]) {
    let text = chain(&error);
    parts.iter().for_each(|part| assert!(text.contains(part), "`{part}` in: {text}"));
}

/// Packs good images and this bad one; returns why it was rejected.
fn reject(put_bad: impl FnOnce(&Path)) -> Vec<(String, String)> {
    let (_temp, source, destination) = temp();
    class_folders(&source, 2);
    put_bad(&source);
    let summary = pack(&Options::new(&source, &destination), &()).unwrap();
    assert_eq!(check(&destination, "train").len(), 6);
    let found = rejected(&summary.rejected_file.unwrap());
    assert_eq!(summary.rejected, found.len() as u64);
    found
}

fn reason(put_bad: impl FnOnce(&Path)) -> String {
    let found = reject(put_bad);
    assert_eq!((found.len(), &*found[0].0), (1, "cat/bad.jpg"), "{found:?}");
    found[0].1.clone()
}

#[test]
fn refuses_a_missing_source() {
    let (_temp, source, destination) = temp();
    let error = refused(&Options::new(&source, &destination));
    assert!(matches!(error, Error::Source(SourceError::NotFound { .. })));
    says(&error, &["no such file or folder", "photos"]);
}

#[test]
fn refuses_an_empty_folder() {
    let (_temp, source, destination) = temp();
    fs::create_dir(&source).unwrap();
    put(&source.join(".hidden.jpg"), &jpeg(1, 9, 9));
    says(&refused(&Options::new(&source, &destination)), &["photos", "nothing to pack", "hidden"]);
}

#[test]
fn refuses_a_file_of_unknown_format() {
    let (temp, ..) = temp();
    let source = temp.path().join("photo.jpg");
    put(&source, &jpeg(1, 9, 9));
    says(&refused(&Options::new(&source, temp.path().join("set"))), &["photo.jpg", ".csv", ".jsonl"]);
}

#[test]
fn rejects_an_empty_file() {
    assert!(reason(|source| put(&source.join("cat/bad.jpg"), b"")).contains("0 bytes"));
}

#[test]
fn rejects_text_named_jpg() {
    let reason = reason(|source| put(&source.join("cat/bad.jpg"), b"Dear diary, today"));
    assert!(reason.contains("not an image"), "{reason}");
}

#[test]
fn rejects_truncated_jpegs() {
    let whole = jpeg(1, 60, 60);
    for cut in [whole.len() - 1, whole.len() / 2, 100, 3] {
        let reason = reason(|source| put(&source.join("cat/bad.jpg"), &whole[..cut]));
        assert!(reason.contains("truncated jpeg"), "{reason}");
    }
}

#[test]
fn rejects_an_image_beyond_the_limits() {
    let mut bomb = jpeg(1, 60, 60);
    let sof = bomb.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    bomb[sof + 5..sof + 9].fill(0xff);
    let reason = reason(|source| put(&source.join("cat/bad.jpg"), &bomb));
    assert!(reason.contains("65535x65535") && reason.contains("max_pixels"), "{reason}");
}

#[test]
fn rejects_a_dangling_link() {
    let reason = reason(|source| symlink("/nowhere/at/all.jpg", source.join("cat/bad.jpg")).unwrap());
    assert!(reason.contains("without a target"), "{reason}");
}

#[test]
fn rejects_loops_of_links() {
    let found = reject(|source| {
        symlink("..", source.join("cat/up")).unwrap();
        symlink("self", source.join("cat/self")).unwrap();
    });
    let inputs: Vec<_> = found.iter().map(|(input, _)| &**input).collect();
    assert_eq!(inputs, ["cat/self", "cat/up"], "{found:?}");
    assert!(found[1].1.contains("link back"), "{found:?}");
}

#[test]
fn follows_links() {
    let (temp, source, destination) = temp();
    class_folders(&temp.path().join("elsewhere"), 2);
    fs::create_dir(&source).unwrap();
    symlink(temp.path().join("elsewhere/cat"), source.join("lion")).unwrap();
    fs::create_dir(source.join("dog")).unwrap();
    symlink("../../elsewhere/dog/0001.jpg", source.join("dog/1.jpg")).unwrap();
    pack(&Options::new(&source, &destination), &()).unwrap();
    let found = check(&destination, "train");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["dog/1.jpg", "lion/0000.jpg", "lion/0001.jpg"]);
}

#[test]
fn rejects_files_next_to_class_folders_and_names_that_are_not_utf8() {
    let found = reject(|source| {
        put(&source.join("loose.jpg"), &jpeg(1, 9, 9));
        put(&source.join("cat").join(OsStr::from_bytes(b"\xff.jpg")), &jpeg(1, 9, 9));
        put(&source.join(OsStr::from_bytes(b"caf\xe9")).join("x.jpg"), &jpeg(1, 9, 9));
    });
    let inputs: Vec<_> = found.iter().map(|(input, _)| &**input).collect();
    assert_eq!(inputs, ["caf\u{fffd}", "cat/\u{fffd}.jpg", "loose.jpg"]);
    assert!(found[0].1.contains("not UTF-8") && found[1].1.contains("rename"), "{found:?}");
    assert!(found[2].1.contains("class"), "{found:?}");
}

#[test]
fn fails_if_the_destination_cannot_be_written() {
    let (temp, source, _) = temp();
    class_folders(&source, 1);
    put(&temp.path().join("file"), b"in the way");
    for destination in [temp.path().join("file"), temp.path().join("file/below"), "/proc/shardtool-test".into()] {
        let error = pack(&Options::new(&source, &destination), &()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        says(&error, &[destination.to_str().unwrap()]);
    }
    assert_eq!(fs::read(temp.path().join("file")).unwrap(), b"in the way");
}

#[test]
fn refuses_a_destination_inside_the_source() {
    let (_temp, source, _) = temp();
    class_folders(&source, 1);
    let error = refused(&Options::new(&source, source.join("data/set")));
    assert!(matches!(error, Error::Source(SourceError::ContainsDestination { .. })), "{error}");
}

#[test]
fn continues_after_a_full_disk() {
    let (_temp, source, destination) = temp();
    class_folders(&source, 40);
    let options = with!(Options::new(&source, &destination), shards = Shards::Count(3));
    let bytes: u64 = shardtool_pack::plan(&options).unwrap().source_bytes();
    // A shard is a third of all; the limit is a quarter, in blocks of 1,024 bytes.
    let output = child(&source, &destination, 3, &format!("trap '' XFSZ; ulimit -f {}; ", bytes / 4 / 1024));
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("cannot write") && text.contains("make room"), "{text}");
    assert_eq!(names(&destination), [".pack-train.json"], "no shard, no temporary file");
    assert_eq!(pack(&options, &()).unwrap().split.records(), 120, "continues when there is room");
}

#[test]
fn refuses_invalid_lists() {
    let (temp, ..) = temp();
    put(&temp.path().join("a.jpg"), &jpeg(1, 9, 9));
    put(&temp.path().join("b.jpg"), &jpeg(2, 9, 9));
    let of = |name: &str, text: &[u8], columns: &[(String, DType)]| {
        let list = temp.path().join(name);
        fs::write(&list, text).unwrap();
        refused(&with!(Options::new(&list, temp.path().join("set")), columns = columns.to_vec()))
    };
    let csv = |text: &str| of("list.csv", text.as_bytes(), &[]);
    let twice = csv("path\na.jpg\nb.jpg\na.jpg\n");
    assert!(
        matches!(&twice, Error::List(ListError::DuplicateKey { key, lines: (2, 4), .. }) if key == "a.jpg"),
        "{twice}"
    );
    says(&twice, &["list.csv", "lines 2 and 4", "column `key`"]);
    says(&csv("path,n\na.jpg,1\nb.jpg,one\n"), &["line 3", "column `n`", "`one` is bytes", "line 2", "n:bytes"]);
    says(
        &of("list.jsonl", b"{\"path\":\"a.jpg\",\"n\":\"x\"}\n{\"path\":\"b.jpg\",\"n\":1}\n", &[]),
        &["line 2", "int64"],
    );
    says(&of("list.jsonl", b"{\"path\":\"a.jpg\",\"n\":[1,{}]}\n", &[]), &["line 1", "neither a number"]);
    says(&of("list.jsonl", b"{\"path\":\"a.jpg\"}\nnot json\n", &[]), &["line 2", "not a JSON object"]);
    let declared = [("n".to_owned(), DType::Int64)];
    says(&of("list.csv", b"path,n\na.jpg,1.5\n", &declared), &["line 2", "`1.5` is not int64"]);
    says(&of("list.csv", b"path\na.jpg\n", &declared), &["column `n`", "no such column"]);
    says(&csv("file\na.jpg\n"), &["column `path`"]);
    says(&csv("path,path\na.jpg,a.jpg\n"), &["twice"]);
    says(&csv("path,n\na.jpg\n"), &["list.csv", "not a CSV file"]);
    says(&of("list.csv", b"path,n\na.jpg,\xff\n", &[]), &["list.csv", "UTF-8"]);
    says(&csv("path,image/width\na.jpg,3\n"), &["image/width", "rename the column"]);
    says(&csv("path,label\na.jpg,0.5\n"), &["label", "not floats"]);
    says(&csv("path,label\na.jpg,-1\n"), &["line 2", "class id from 0"]);
    says(&csv("path\n"), &["nothing to pack"]);
    says(&csv("path\nnowhere.jpg\n"), &["nothing to pack", "nowhere.jpg", "no such file"]);
}

#[test]
fn rejects_rows_that_cannot_be_packed() {
    let (temp, _, destination) = temp();
    put(&temp.path().join("a.jpg"), &jpeg(1, 9, 9));
    let list = temp.path().join("list.csv");
    fs::write(&list, "path,label,key\na.jpg,cat,1\na.jpg,,2\nnowhere.jpg,cat,3\n.,cat,4\n").unwrap();
    let summary = pack(&Options::new(&list, &destination), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (1, 3));
    let found = rejected(&summary.rejected_file.unwrap());
    let reasons: Vec<_> = found.iter().map(|(input, reason)| (&**input, &reason[..12])).collect();
    assert_eq!(reasons, [("2", "it has no la"), ("nowhere.jpg", "no such file"), (".", "not a regula")]);
}

#[test]
fn refuses_options_out_of_range() {
    let (_temp, source, destination) = temp();
    class_folders(&source, 1);
    let options = Options::new(&source, &destination);
    says(&refused(&with!(options.clone(), split = Some("a/b".to_owned()))), &["a/b"]);
    says(&refused(&with!(options.clone(), shards = Shards::Count(0))), &["number of shards"]);
    says(&refused(&with!(options.clone(), quality = 0)), &["quality", "1 to 100"]);
    says(&refused(&with!(options, columns = vec![("n".to_owned(), DType::Int64)])), &["`n`", "folder"]);
}

#[test]
fn never_overwrites_unknown_files() {
    let (_temp, source, destination) = temp();
    class_folders(&source, 1);
    put(&destination.join("train-00007.tfrecord"), b"precious");
    for force in [false, true] {
        let error = pack(&with!(Options::new(&source, &destination), force = force), &()).unwrap_err();
        assert!(matches!(error, Error::Destination(DestinationError::InTheWay { .. })), "{error}");
        says(&error, &["train-00007.tfrecord", "move it"]);
    }
    assert_eq!(fs::read(destination.join("train-00007.tfrecord")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(&destination).unwrap().count(), 1, "no other file is written");
}

#[test]
fn keeps_a_damaged_manifest() {
    let (_temp, source, destination) = temp();
    class_folders(&source, 1);
    put(&destination.join("dataset.json"), b"{}");
    says(&pack(&Options::new(&source, &destination), &()).unwrap_err(), &["dataset.json", "repair"]);
    assert_eq!(fs::read(destination.join("dataset.json")).unwrap(), b"{}");
}

#[test]
fn refuses_a_second_pack_of_the_same_split() {
    struct Second(Options);
    impl Progress for Second {
        fn after(&self, step: Step) -> ControlFlow<()> {
            if step == Step::Plan {
                let error = pack(&self.0, &()).unwrap_err();
                assert!(matches!(error, Error::Destination(DestinationError::Locked { .. })), "{error}");
            }
            ControlFlow::Continue(())
        }
    }
    let (_temp, source, destination) = temp();
    class_folders(&source, 1);
    let options = Options::new(&source, &destination);
    pack(&options, &Second(options.clone())).unwrap();
}
