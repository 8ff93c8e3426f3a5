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
            // Keys that two archives have.
            "tars" => put(&folder.join("set-00009.tar"), &fs::read(folder.join("set-00001.tar")).unwrap()),
            kind if kind.starts_with("parquet") => {
                let file =
                    snapshot(&folder).into_iter().find(|(path, _)| path.extension().is_some_and(|e| e == "parquet"));
                put(&folder.join("train-another.parquet"), &file.unwrap().1);
            }
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
fn first_index(folder: &Path, options: &Options) -> std::collections::BTreeMap<PathBuf, Vec<u8>> {
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
    assert_eq!(again, first_index(&source, &plain));
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
    assert_eq!(again, first_index(&folder, &plain));
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
        assert_eq!(again, first_index(&source, &plain), "{number}");
    }
}

/// Samples of an image and a class, the first of which has no image if `incomplete`.
fn samples(first: u32, count: u32, incomplete: bool) -> Vec<u8> {
    let mut members = vec![];
    for i in first..first + count {
        if !(incomplete && i == first) {
            members.push((format!("{i:04}.jpg"), jpeg(i, 40 + i % 7, 30)));
        }
        members.push((format!("{i:04}.cls"), (i % 3).to_string().into_bytes()));
    }
    crate::support::tar(&members.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect::<Vec<_>>())
}

/// Changes a byte of the middle of an image in an archive, and keeps the archive's time.
fn damage_unnoticed(archive: &Path, image: &[u8]) {
    let (mut bytes, time) = (fs::read(archive).unwrap(), fs::metadata(archive).unwrap().modified().unwrap());
    let at = bytes.windows(image.len()).position(|window| window == image).unwrap() + image.len() / 2;
    bytes[at] ^= 1;
    fs::write(archive, bytes).unwrap();
    set_time(archive, time);
}

#[test]
fn archives_that_did_not_change_are_not_read() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tars");
    let numbers = |archive: usize| archive as u32 * 100;
    for (archive, name) in ["b", "c", "d", "e"].into_iter().enumerate() {
        put(&folder.join(format!("{name}.tar")), &samples(numbers(archive), 20, name == "e"));
    }
    age(&folder);
    // Each archive has several shards.
    let plain = with!(options("tars", &folder, Path::new("")), shards = shardtool_pack::Shards::Size(9_000));
    let index = || index_source(&plain, &[], &()).unwrap().splits.remove(0);
    let first = index();
    assert_eq!((first.split.records(), first.rejected), (79, 1));
    assert!(first.split.shards.len() > 8, "{}", first.split.shards.len());
    assert_eq!(fs::read_to_string(folder.join(".packed-train.times")).unwrap().lines().count(), 5);
    // The keys of damaged records, after an index.
    let damaged = || {
        let split = Dataset::open(&folder).unwrap().split("train").unwrap().clone();
        let failed = (0..split.len()).filter_map(|id| {
            let error = split.get(id).err()?;
            assert_eq!(error.damage(), Some(Damage::DataCrc), "{error}");
            let (shard, row) = split.locate(id).unwrap();
            Some(String::from_utf8(split.shard(shard).unwrap().key(row).unwrap().to_vec()).unwrap())
        });
        // Archives are in an order of their own.
        failed.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(damaged(), [""; 0]);
    damage_unnoticed(&folder.join("b.tar"), &jpeg(7, 40, 30));
    damage_unnoticed(&folder.join("d.tar"), &jpeg(219, 42, 30));
    // An archive before the others: their shards have other numbers now.
    put(&folder.join("a.tar"), &samples(900, 20, false));
    let added = index();
    assert_eq!((added.split.records(), added.rejected, added.resumed_shards), (99, 1, 0));
    assert_eq!(damaged(), ["0007", "0219"]);
    // Only its time is another: the index stays, and no other archive is read.
    set_time(&folder.join("c.tar"), SystemTime::now() - Duration::from_secs(60));
    let before = described(&folder);
    index();
    assert_eq!((described(&folder), damaged()), (before, vec!["0007".to_owned(), "0219".to_owned()]));
    // Replaced by one of the same length: it is read, and the others are not.
    let other = samples(numbers(1), 20, false);
    let image = jpeg(105, 40, 30);
    let at = other.windows(image.len()).position(|window| window == image).unwrap();
    let mut replaced = other.clone();
    replaced[at + image.len() / 2] ^= 1;
    put(&folder.join("c.tar"), &replaced);
    index();
    assert_eq!(damaged(), ["0007", "0219"]);
    // With their own times, they are described as they are now, as by a first index.
    for name in ["b.tar", "d.tar"] {
        set_time(&folder.join(name), SystemTime::now() - Duration::from_secs(60));
    }
    index();
    assert_eq!(damaged(), [""; 0]);
    let again = described(&folder);
    assert_eq!(again, first_index(&folder, &plain));
    // Another option makes other shards of all.
    damage_unnoticed(&folder.join("e.tar"), &jpeg(305, 44, 30));
    let plain = with!(plain.clone(), shards = shardtool_pack::Shards::Size(5_000));
    index_source(&plain, &[], &()).unwrap();
    assert_eq!(damaged(), [""; 0]);
    assert_eq!(described(&folder), first_index(&folder, &plain));
}

#[test]
fn a_second_index_that_was_stopped_anywhere_is_continued() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tars");
    for (archive, name) in ["b", "c", "d"].into_iter().enumerate() {
        put(&folder.join(format!("{name}.tar")), &samples(archive as u32 * 100, 12, name == "d"));
    }
    age(&folder);
    let plain = with!(options("tars", &folder, Path::new("")), shards = shardtool_pack::Shards::Size(9_000));
    index_source(&plain, &[], &()).unwrap();
    let first = snapshot(&folder);
    put(&folder.join("a.tar"), &samples(900, 12, false));
    set_time(&folder.join("a.tar"), SystemTime::now() - Duration::from_secs(60));
    index_source(&plain, &[], &()).unwrap();
    let expected = described(&folder);
    assert_eq!(expected, first_index(&folder, &plain));
    let mut stopped = 0;
    for steps in 0.. {
        // As after the first index, with the archive that is new.
        for path in snapshot(&folder).into_keys().filter(|path| !path.to_string_lossy().ends_with(".tar")) {
            fs::remove_file(folder.join(path)).unwrap();
        }
        first.iter().filter(|(path, _)| !path.to_string_lossy().ends_with(".tar")).for_each(|(path, bytes)| {
            put(&folder.join(path), bytes);
        });
        match index_source(&plain, &[], &crate::archives::Stopping(steps.into())) {
            Ok(_) => break,
            Err(error) => assert!(matches!(error, shardtool_pack::Error::Stopped), "{error}"),
        }
        stopped += 1;
        let indexed = index_source(&plain, &[], &()).unwrap().splits.remove(0);
        assert_eq!((indexed.split.records(), indexed.rejected), (47, 1), "stopped at step {steps}");
        assert_eq!(described(&folder), expected, "stopped at step {steps}");
    }
    assert!(stopped > 10, "{stopped}");
}

#[test]
fn labels_and_names_of_archives_are_compared_whatever_their_times_say() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("tars");
    let hour = SystemTime::now() - Duration::from_secs(3600);
    for (archive, name) in ["b", "c", "d"].into_iter().enumerate() {
        put(&folder.join(format!("{name}.tar")), &samples(archive as u32 * 100, 12, false));
    }
    age(&folder);
    let plain = with!(options("tars", &folder, Path::new("")), shards = shardtool_pack::Shards::Size(9_000));
    let index = || index_source(&plain, &[], &()).unwrap().splits.remove(0);
    let data = || data(&Dataset::open(&folder).unwrap()).remove("train").unwrap();
    index();
    let first = data();
    // A label lies in the index, since it is short: no reader would notice that it changed behind the time.
    let change = |from: u8, to: u8| {
        let mut bytes = fs::read(folder.join("c.tar")).unwrap();
        let name = bytes.windows(8).position(|window| window == b"0102.cls").unwrap();
        assert_eq!(std::mem::replace(&mut bytes[name + 512], to), from);
        fs::write(folder.join("c.tar"), &bytes).unwrap();
        set_time(&folder.join("c.tar"), hour);
    };
    // Alone, and beside an archive that is new.
    set_time(&folder.join("c.tar"), hour);
    index();
    change(b'0', b'2');
    assert!(!index().already_complete);
    assert_eq!(data().iter().zip(&first).filter(|(one, other)| one != other).count(), 1);
    assert_eq!(described(&folder), first_index(&folder, &plain));
    change(b'2', b'1');
    put(&folder.join("a.tar"), &samples(900, 3, false));
    index();
    assert_eq!(described(&folder), first_index(&folder, &plain));
    fs::remove_file(folder.join("a.tar")).unwrap();
    change(b'1', b'0');
    index();
    assert_eq!(data(), first);
    // Another name makes the same records, which lie elsewhere.
    fs::rename(folder.join("d.tar"), folder.join("dd.tar")).unwrap();
    assert!(!index().already_complete);
    assert_eq!(data(), first);
    assert!(index().already_complete);
}
