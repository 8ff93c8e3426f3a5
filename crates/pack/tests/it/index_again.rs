//! A second index reads only what changed, and is equal to a first one.

use crate::index_source::{data, options, sources};
use crate::support::{chain, jpeg, put, snapshot};
use shardtool_format::Damage;
use shardtool_pack::{Options, index_source};
use shardtool_read::Dataset;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Lets all files below a folder be of an hour ago, so that their times say something.
fn age(folder: &Path) {
    for path in snapshot(folder).into_keys() {
        set_time(&folder.join(path), SystemTime::now() - Duration::from_secs(3600));
    }
}

fn set_time(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

/// Replaces the bytes of a file by as many others, and keeps its time: only who reads it notices.
fn replace_unnoticed(path: &Path) -> Vec<u8> {
    let (before, time) = (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    let other = jpeg(77, 10, 10);
    let mut bytes = before.clone();
    let middle = bytes.len() / 2;
    bytes[middle..].iter_mut().zip(other.iter().cycle()).for_each(|(byte, other)| *byte ^= other | 1);
    fs::write(path, bytes).unwrap();
    set_time(path, time);
    before
}

fn described(folder: &Path) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    let ours = |path: &Path| path.starts_with("_index") || path == Path::new("dataset.json");
    snapshot(folder).into_iter().filter(|(path, _)| ours(path)).collect()
}

#[test]
fn a_second_index_is_equal_to_a_first_one() {
    let temp = tempfile::tempdir().unwrap();
    for (kind, source) in sources(temp.path()) {
        let folder = if source.is_dir() { source.clone() } else { source.parent().unwrap().to_owned() };
        age(&folder);
        let index = || index_source(&options(kind, &source, Path::new("")), &[], &()).unwrap();
        index();
        match kind {
            "classes" => {
                // A class before the others: their ids change.
                put(&folder.join("ant/1.jpg"), &jpeg(500, 30, 20));
                put(&folder.join("cat/0001.jpg"), &jpeg(501, 31, 20));
                fs::remove_file(folder.join("dog/0002.jpg")).unwrap();
            }
            "splits" => put(&folder.join("val/cat/9.jpg"), &jpeg(502, 30, 20)),
            "flat" => put(&folder.join("9.jpg"), &jpeg(503, 30, 20)),
            "list" => {
                // A file of another column changes; the images stay.
                put(&folder.join("second/2.png"), &crate::support::encoded(900, image::ImageFormat::Png));
                let list = fs::read_to_string(&source).unwrap();
                put(&source, list.replace("long text", "longer text").as_bytes());
            }
            "tars" => put(&folder.join("set-00009.tar"), &fs::read(folder.join("set-00001.tar")).unwrap()),
            _ => continue,
        }
        assert!(!index().splits.iter().all(|split| split.already_complete), "{kind}");
        let again = described(&folder);
        let read = data(&Dataset::open(&folder).unwrap());
        fs::remove_file(folder.join("dataset.json")).unwrap();
        fs::remove_dir_all(folder.join("_index")).unwrap();
        for name in snapshot(&folder).into_keys().filter(|path| path.to_string_lossy().starts_with(".packed-")) {
            fs::remove_file(folder.join(name)).unwrap();
        }
        index();
        assert_eq!(described(&folder), again, "{kind}");
        assert_eq!(data(&Dataset::open(&folder).unwrap()), read, "{kind}");
    }
}

#[test]
fn what_did_not_change_is_not_read_and_a_time_is_no_proof() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("photos");
    for i in 0..50 {
        put(&source.join(format!("{}/{i:04}.jpg", ["cat", "dog"][i as usize % 2])), &jpeg(i, 24 + i % 5, 20));
    }
    age(&source);
    let plain = options("classes", &source, Path::new(""));
    let index = |options: &Options| index_source(options, &[], &()).unwrap();
    index(&plain);
    let first = data(&Dataset::open(&source).unwrap());
    // No file that is replaced behind the back of the times is read when another one is added.
    let replaced = ["cat/0040.jpg", "dog/0041.jpg", "cat/0006.jpg"].map(|name| source.join(name));
    let before = replaced.each_ref().map(|path| replace_unnoticed(path));
    put(&source.join("cat/new.jpg"), &jpeg(600, 30, 30));
    let indexed = index(&plain);
    assert_eq!((indexed.splits[0].split.records(), indexed.splits[0].rejected), (51, 0));
    let train = |set: &Path| Dataset::open(set).unwrap().split("train").unwrap().clone();
    let split = train(&source);
    let (mut good, mut damaged) = (0, vec![]);
    for id in 0..51 {
        match split.get(id) {
            Ok(record) => {
                let is_new = record.example().unwrap().bytes("image/key") == Some(b"cat/new.jpg");
                assert!(is_new || first["train"].iter().any(|known| known == record.data()));
                good += 1;
            }
            Err(error) => {
                // The CRC is that of the bytes that were known: other pixels are never delivered.
                assert_eq!(error.damage(), Some(Damage::DataCrc), "{error}");
                damaged.push(chain(&error));
            }
        }
    }
    assert_eq!((good, damaged.len()), (48, 3), "{damaged:?}");
    for path in &replaced {
        assert!(damaged.iter().any(|error| error.contains(path.to_str().unwrap())), "{path:?}: {damaged:?}");
    }
    // Touched, they are read.
    for path in &replaced {
        set_time(path, SystemTime::now() - Duration::from_secs(60));
    }
    let indexed = index(&plain);
    assert_eq!(indexed.splits[0].split.records() + indexed.splits[0].rejected, 51);
    let split = train(&source);
    assert!((0..split.len()).all(|id| split.get(id).is_ok()));
    // The bytes come back with a new time.
    for (path, bytes) in replaced.iter().zip(&before) {
        fs::write(path, bytes).unwrap();
    }
    index(&plain);
    let split = train(&source);
    assert!((0..51).all(|id| split.get(id).is_ok()));
    // Files that were written just now may be written again in the same tick: their times say nothing.
    let fresh = temp.path().join("fresh");
    put(&fresh.join("a/1.jpg"), &jpeg(1, 30, 20));
    let plain = options("classes", &fresh, Path::new(""));
    index(&plain);
    let mut bytes = fs::read(fresh.join("a/1.jpg")).unwrap();
    let end = bytes.len() - 10;
    bytes[end] ^= 1;
    let time = fs::metadata(fresh.join("a/1.jpg")).unwrap().modified().unwrap();
    fs::write(fresh.join("a/1.jpg"), bytes).unwrap();
    set_time(&fresh.join("a/1.jpg"), time);
    put(&fresh.join("a/2.jpg"), &jpeg(2, 30, 20));
    index(&plain);
    let split = train(&fresh);
    assert!((0..2).all(|id| split.get(id).is_ok()));
}

/// A fresh index of a source that has one already: its bytes.
fn anew(folder: &Path, options: &Options) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
    fs::remove_file(folder.join("dataset.json")).unwrap();
    fs::remove_dir_all(folder.join("_index")).unwrap();
    for name in snapshot(folder).into_keys().filter(|path| path.to_string_lossy().starts_with(".packed-")) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    index_source(options, &[], &()).unwrap();
    described(folder)
}

#[test]
fn images_that_other_options_accepted_are_checked_again() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("photos");
    for i in 0..4 {
        put(&source.join(format!("cat/{i}.jpg")), &jpeg(i, 60, 50));
    }
    let whole = fs::read(source.join("cat/2.jpg")).unwrap();
    put(&source.join("cat/2.jpg"), &whole[..whole.len() - 40]);
    age(&source);
    let plain = options("classes", &source, Path::new(""));
    let filled = with!(plain.clone(), truncated = shardtool_decode::Truncated::Fill);
    let counts = |options: &Options| {
        let indexed = index_source(options, &[], &()).unwrap();
        (indexed.splits[0].split.records(), indexed.splits[0].rejected)
    };
    assert_eq!(counts(&filled), (4, 0));
    assert_eq!(counts(&plain), (3, 1), "a cut image is rejected, though its time is the same");
    let again = described(&source);
    assert_eq!(again, anew(&source, &plain));
}

#[test]
fn a_file_of_zeros_as_long_as_an_image_is_not_taken_for_it() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("list");
    let mut list = "path,label,second\n".to_owned();
    for i in 0..4 {
        let image = jpeg(i, 40, 30);
        put(&folder.join(format!("{i}.jpg")), &image);
        put(&folder.join(format!("{i}.zero")), &vec![0; image.len()]);
        list += &format!("{i}.jpg,a,{i}.zero\n");
    }
    put(&folder.join("list.csv"), list.as_bytes());
    age(&folder);
    let plain = options("list", &folder.join("list.csv"), Path::new(""));
    index_source(&plain, &[], &()).unwrap();
    put(&folder.join("list.csv"), list.replace(",a,", ",b,").as_bytes());
    index_source(&plain, &[], &()).unwrap();
    let (again, read) = (described(&folder), data(&Dataset::open(&folder).unwrap()));
    assert_eq!(read["train"].len(), 4);
    assert_eq!(again, anew(&folder, &plain));
}

#[test]
fn a_file_of_times_that_is_none_is_ignored() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("photos");
    for i in 0..3 {
        put(&source.join(format!("cat/{i}.jpg")), &jpeg(i, 40, 30));
    }
    age(&source);
    let plain = options("classes", &source, Path::new(""));
    index_source(&plain, &[], &()).unwrap();
    let times = source.join(".packed-train.times");
    let first = fs::read(&times).unwrap();
    assert!(String::from_utf8(first.clone()).unwrap().lines().count() == 4);
    let fifo =
        || rustix::fs::mknodat(rustix::fs::CWD, &times, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let made: [&dyn Fn(); 4] = [
        &fifo,
        &|| std::os::unix::fs::symlink("/dev/zero", &times).unwrap(),
        &|| fs::write(&times, b"\xff no text").unwrap(),
        &|| fs::write(&times, [&first[..], b"no number\n"].concat()).unwrap(),
    ];
    for (number, make) in made.into_iter().enumerate() {
        fs::remove_file(&times).unwrap();
        make();
        put(&source.join(format!("cat/new-{number}.jpg")), &jpeg(70 + number as u32, 40, 30));
        let indexed = index_source(&plain, &[], &()).unwrap();
        assert_eq!(indexed.splits[0].split.records(), 4 + number as u64);
        let again = described(&source);
        assert_eq!(again, anew(&source, &plain), "{number}");
    }
}
