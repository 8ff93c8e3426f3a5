//! Packs archives of other formats: every byte, label and field is kept, for any number of threads, after any stop, and
//! with any damage. What other libraries write is tested in `crates/cli/tests/with_formats.py`.

use crate::support::{chain, check, jpeg, manifest, put, records, rejected, snapshot, tar};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{self, Column, Example, Feature};
use shardtool_format::frame;
use shardtool_format::manifest::DType;
use shardtool_pack::SourceError;
use shardtool_pack::{Error, OnError, Options, Progress, Shards, SourceKind, Step, index_source, pack, plan};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A frame built from the format's definition, without the crate under test.
fn framed(data: &[u8]) -> Vec<u8> {
    let masked = |bytes: &[u8]| crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes();
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &masked(&length), data, &masked(data)].concat()
}

fn record(features: &mut [(&str, Column<'_>)]) -> Vec<u8> {
    let mut data = vec![];
    example::encode(features, &mut data);
    framed(&data)
}

/// A TFRecord file of others: `n` images, labels from 1, class names, a float, a list, and a field now and then.
fn theirs(first: u32, n: u32) -> Vec<u8> {
    let one = |i: u32| {
        let (image, name) = (jpeg(i, 20 + i % 9, 30), format!("{i:05}.jpg"));
        let class = [["cat", "dog", "emu"][i as usize % 3].as_bytes()];
        let (label, boxes) = ([1 + i64::from(i % 3)], [i as f32, 0.5]);
        let (image, name, odd) = ([&image[..]], [name.as_bytes()], [b"odd".as_slice(), b"one"]);
        let mut features = vec![
            ("photo", Column::Bytes(&image)),
            ("image/filename", Column::Bytes(&name)),
            ("image/class/label", Column::Int64(&label)),
            ("image/class/text", Column::Bytes(&class)),
            ("image/height", Column::Int64(&[-7])),
            ("boxes", Column::Float(&boxes)),
        ];
        if i % 2 == 1 {
            features.push(("odd", Column::Bytes(&odd)));
        }
        record(&mut features)
    };
    (first..first + n).map(one).collect::<Vec<_>>().concat()
}

fn theirs_options(source: &Path, destination: &Path) -> Options {
    with!(Options::new(source, destination), map = vec![("image".to_owned(), "photo".to_owned())], label_offset = 1)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(vec![], Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(vec![], Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A WebDataset shard: `.jpg`, `.cls`, `.json`, and a field with two extensions.
fn web(first: u32, n: u32) -> Vec<u8> {
    let mut members = vec![];
    for i in first..first + n {
        members.push((format!("a.b/{i:06}.jpg"), jpeg(i, 20 + i % 9, 30)));
        members.push((format!("a.b/{i:06}.cls"), (i % 3).to_string().into_bytes()));
        let json =
            format!(r#"{{"caption": "no. {i}", "score": {}, "size": [{i}, 2], "none": null}}"#, f64::from(i) / 2.0);
        members.push((format!("a.b/{i:06}.json"), json.into_bytes()));
        members.push((format!("a.b/{i:06}.seg.PNG"), vec![i as u8; 5]));
    }
    tar(&members.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect::<Vec<_>>())
}

struct Folder {
    _temp: tempfile::TempDir,
    source: PathBuf,
    destination: PathBuf,
}

fn folder(files: &[(&str, &[u8])]) -> Folder {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("theirs"), temp.path().join("set"));
    files.iter().for_each(|(name, bytes)| put(&source.join(name), bytes));
    Folder { _temp: temp, source, destination }
}

fn examples(folder: &Path) -> Vec<Vec<u8>> {
    let mut all = vec![];
    for shard in &manifest(folder).split("train").unwrap().shards {
        let file = fs::read(folder.join(&shard.file)).unwrap();
        all.extend(records(&file).into_iter().map(|(_, data)| data.to_vec()));
    }
    all
}

fn kinds(folder: &Path) -> BTreeMap<String, DType> {
    manifest(folder).features.into_iter().map(|f| (f.name, f.dtype)).collect()
}

#[test]
fn a_bad_length_says_how_much_is_lost() {
    let file = theirs(0, 9);
    let third: usize = records(&file)[3].0 as usize;
    let mut damaged = file.clone();
    damaged[third + 9] ^= 1;
    let reason = |bytes: &[u8]| {
        let Folder { _temp, source, destination } = folder(&[("a.tfrecord", bytes)]);
        let summary = pack(&theirs_options(&source, &destination), &()).unwrap();
        assert_eq!((summary.split.records(), summary.samples), (3, 4));
        rejected(&summary.rejected_file.unwrap()).swap_remove(0).1
    };
    let text = reason(&damaged);
    assert!(text.contains(&format!("{} bytes, with at least 5 good records", file.len() - third)), "{text}");
    assert!(reason(&gzip(&damaged)).contains("an unknown number of records"));
}

/// Appends a member of another type than a file.
fn special(out: &mut tar::Builder<Vec<u8>>, kind: tar::EntryType, name: &str, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(0o644);
    out.append_link(&mut header, name, target).unwrap();
}

#[test]
fn links_in_a_tar_are_resolved_or_rejected_by_name() {
    use tar::EntryType::{Fifo, Link, Symlink};
    let mut out = tar::Builder::new(vec![]);
    let file = |out: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        out.append_data(&mut header, name, bytes).unwrap();
    };
    let (first, last) = (jpeg(1, 30, 20), jpeg(2, 20, 30));
    let long = format!("{}/first.jpg", "folder".repeat(30));
    file(&mut out, &long, &first);
    file(&mut out, &long.replace("jpg", "cls"), b"5");
    special(&mut out, Link, "./hard.jpg", &long);
    special(&mut out, Link, "hard.cls", &long.replace("jpg", "cls"));
    special(&mut out, Symlink, "a/b/soft.jpg", "../.././hard.jpg");
    file(&mut out, "a/b/soft.cls", b"6");
    special(&mut out, Symlink, "ahead.jpg", "last.jpg");
    file(&mut out, "ahead.cls", b"7");
    for (name, target) in [
        ("nowhere.jpg", "nothing.jpg"),
        ("out.jpg", "../last.jpg"),
        ("absolute.jpg", "/last.jpg"),
        ("loop.jpg", "pool.jpg"),
        ("pool.jpg", "loop.jpg"),
    ] {
        special(&mut out, Symlink, name, target);
    }
    special(&mut out, Fifo, "pipe.jpg", "x");
    file(&mut out, "last.jpg", &last);
    file(&mut out, "last.cls", b"8");
    let plain = out.into_inner().unwrap();
    for (name, bytes) in [("a.tar", plain.clone()), ("a.tar.gz", gzip(&plain))] {
        let folder = folder(&[(name, &bytes)]);
        let summary = pack(&Options::new(&folder.source, &folder.destination), &()).unwrap();
        let first_key = long.strip_suffix(".jpg").unwrap().to_owned();
        let expected = [
            (first_key, first.clone(), 5),
            ("./hard".to_owned(), first.clone(), 5),
            ("a/b/soft".to_owned(), first.clone(), 6),
            ("ahead".to_owned(), last.clone(), 7),
            ("last".to_owned(), last.clone(), 8),
        ];
        let found = check(&folder.destination, "train");
        let found: Vec<_> =
            found.iter().map(|(key, (image, label))| (key.trim_start_matches("./"), image, *label)).collect();
        let mut expected: Vec<_> =
            expected.iter().map(|(key, image, label)| (key.trim_start_matches("./"), image, Some(*label))).collect();
        expected.sort();
        let mut found = found;
        found.sort();
        assert_eq!(found, expected, "{name}");
        let rejects = rejected(&summary.rejected_file.unwrap());
        let expected = [
            ["`nowhere.jpg`", "`nothing.jpg`"],
            ["`out.jpg`", "`../last.jpg`"],
            ["`absolute.jpg`", "`/last.jpg`"],
            ["`loop.jpg`", "`pool.jpg`"],
            ["`pool.jpg`", "`loop.jpg`"],
            ["`pipe.jpg`", "a FIFO"],
        ];
        assert_eq!(rejects.len(), expected.len(), "{rejects:?}");
        for ((_, reason), parts) in rejects.iter().zip(expected) {
            assert!(parts.iter().all(|part| reason.contains(part)), "{parts:?} in: {reason}");
        }
    }
}

#[test]
fn keeps_every_field_of_a_tfrecord() {
    let (plain, more) = (theirs(0, 30), theirs(30, 20));
    for (name, file) in [("a.tfrecord", plain.clone()), ("a.tfrecord.gz", gzip(&plain)), ("a.zlib", zlib(&plain))] {
        let extension = Path::new(name).extension().unwrap().to_str().unwrap();
        let second = format!("b.{extension}");
        let Folder { _temp, source, destination } =
            folder(&[(name, &file), (&second, &more), ("README.md", b"about"), ("c.txt", b"")]);
        let options = theirs_options(&source, &destination);
        let summary = pack(&options, &()).unwrap();
        assert_eq!((summary.split.records(), summary.rejected), (50, 0), "{name}");
        assert_eq!(manifest(&destination).classes, ["cat", "dog", "emu"]);
        let kinds = kinds(&destination);
        assert_eq!(
            (kinds["boxes"], kinds["odd"], kinds["image/class/label"]),
            (DType::Float, DType::Bytes, DType::Int64)
        );
        assert!(!kinds.contains_key("photo"));
        let found = check(&destination, "train");
        for i in 0..50u32 {
            let (image, label) = &found[&format!("{i:05}.jpg")];
            assert!(*image == jpeg(i, 20 + i % 9, 30));
            assert_eq!(*label, Some(i64::from(i % 3)));
        }
        for data in examples(&destination) {
            let example = Example::parse(&data).unwrap();
            let i: u32 = std::str::from_utf8(&example.bytes("image/key").unwrap()[..5]).unwrap().parse().unwrap();
            let (Some(Feature::Float(boxes)), Some(Feature::Bytes(odd))) = (example.get("boxes"), example.get("odd"))
            else {
                panic!("types")
            };
            assert_eq!(boxes.iter().collect::<Vec<_>>(), [i as f32, 0.5]);
            let expected: &[&[u8]] = if i % 2 == 1 { &[b"odd", b"one"] } else { &[] };
            assert_eq!(odd.iter().collect::<Vec<_>>(), expected);
            assert_eq!(example.int64("image/height"), Some(30), "measured, not copied");
        }
    }
}

#[test]
fn keeps_every_field_of_a_webdataset() {
    let plain = web(0, 25);
    let zstd = zstd::encode_all(&plain[..], 1).unwrap();
    for (name, file) in [("a-000.tar", plain.clone()), ("a-000.tar.gz", gzip(&plain)), ("a-000.tar.zst", zstd)] {
        let Folder { _temp, source, destination } = folder(&[(name, &file)]);
        let one = Options::new(source.join(name), &destination);
        let summary = pack(&one, &()).unwrap();
        assert_eq!((summary.split.records(), summary.rejected), (25, 0), "{name}");
        let kinds = kinds(&destination);
        let of = |name: &str| kinds.get(name).copied();
        assert_eq!(of("caption"), Some(DType::Bytes));
        assert_eq!((of("score"), of("size"), of("none")), (Some(DType::Float), Some(DType::Int64), None));
        let found = check(&destination, "train");
        for data in examples(&destination) {
            let example = Example::parse(&data).unwrap();
            let key = std::str::from_utf8(example.bytes("image/key").unwrap()).unwrap();
            let i: u32 = key.strip_prefix("a.b/").unwrap().parse().unwrap();
            let (image, label) = &found[key];
            assert!(*image == jpeg(i, 20 + i % 9, 30));
            assert_eq!(*label, Some(i64::from(i % 3)));
            assert_eq!(example.bytes("caption"), Some(format!("no. {i}").as_bytes()));
            assert_eq!(example.bytes("seg.png"), Some(&[i as u8; 5][..]));
            let Some(Feature::Float(score)) = example.get("score") else { panic!("score is float") };
            assert_eq!(score.single(), Some(i as f32 / 2.0));
        }
    }
}

#[test]
fn samples_go_to_shards_by_their_position() {
    let files: Vec<_> = (0..5).map(|f| theirs(f * 20, 20)).collect();
    let names: Vec<_> = (0..5).map(|f| format!("x-{f}")).collect();
    let all: Vec<_> = names.iter().zip(&files).map(|(name, file)| (name.as_str(), &file[..])).collect();
    let Folder { _temp, source, destination } = folder(&all);
    let size = files[0].len() as u64 / 3;
    let options = with!(theirs_options(&source, &destination), shards = Shards::Size(size));
    let planned = plan(&options).unwrap();
    pack(&options, &()).unwrap();
    let order = shardtool_order::pack_permutation(0, 5).unwrap();
    let mut expected = vec![];
    for position in 0..5 {
        let (first, file) = (order.forward(position) as u32 * 20, &files[order.forward(position) as usize]);
        let mut shards = vec![vec![]; (file.len() as u64).div_ceil(size) as usize];
        let last = shards.len() - 1;
        for (i, (offset, _)) in records(file).into_iter().enumerate() {
            shards[((offset / size) as usize).min(last)].push(format!("{:05}.jpg", first + i as u32));
        }
        expected.extend(shards);
    }
    let shards = manifest(&destination).split("train").unwrap().shards.clone();
    let found = shards.iter().map(|shard| {
        let file = fs::read(destination.join(&shard.file)).unwrap();
        let key = |data: &[u8]| {
            String::from_utf8(Example::parse(data).unwrap().bytes("image/key").unwrap().to_vec()).unwrap()
        };
        records(&file).into_iter().map(|(_, data)| key(data)).collect::<Vec<_>>()
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    let images: Vec<_> = planned.shards().map(|shard| shard.images).collect();
    assert_eq!(images, expected.iter().map(|keys| keys.len() as u64).collect::<Vec<_>>());
}

/// Stops at the n-th step.
pub(crate) struct Stopping(pub(crate) AtomicUsize);

impl Progress for Stopping {
    fn after(&self, _: Step) -> ControlFlow<()> {
        let left = self.0.fetch_update(SeqCst, SeqCst, |left| Some(left.saturating_sub(1))).unwrap();
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn writes_the_same_bytes_for_any_threads_and_after_any_stop() {
    let mut cut = web(40, 20);
    cut.truncate(cut.len() * 2 / 3);
    let (one, two) = (web(0, 20), gzip(&web(20, 20)));
    let Folder { _temp, source, destination } = folder(&[("0.tar", &one), ("1.tar", &cut), ("2.tar", &two)]);
    let options = with!(Options::new(&source, &destination), shards = Shards::Size(9_000));
    let with = |jobs: usize| with!(options.clone(), jobs = NonZeroUsize::new(jobs).unwrap());
    assert_eq!(pack(&with(1), &()).unwrap().rejected, 1);
    let expected = snapshot(&destination);
    assert!(expected.len() > 12, "several shards");
    for jobs in [2, 5] {
        fs::remove_dir_all(&destination).unwrap();
        pack(&with(jobs), &()).unwrap();
        assert!(snapshot(&destination) == expected, "{jobs} threads");
    }
    let mut stopped = 0;
    for n in 0.. {
        fs::remove_dir_all(&destination).unwrap();
        match pack(&with(2), &Stopping(AtomicUsize::new(n))) {
            Err(Error::Stopped) => stopped += 1,
            other => {
                other.unwrap();
                break;
            }
        }
        let finished: Vec<_> = snapshot(&destination).into_keys().filter(|p| p.starts_with("_index")).collect();
        let summary = pack(&with(3), &()).unwrap();
        let finished = finished.iter().filter(|path| path.extension().is_some_and(|e| e == "index")).count() as u64;
        // The last steps come when the split is complete.
        let resumed = summary.already_complete || summary.resumed_shards == finished;
        assert!(resumed, "stopped after {n} steps: {summary:?}, {finished}");
        assert!(snapshot(&destination) == expected, "stopped after {n} steps");
    }
    assert!(stopped > 10);
}

/// A run may be stopped at any sample: while archives are surveyed (40 samples), and while they are packed.
#[test]
fn run_stopped_at_any_sample_resumes_to_the_same_bytes() {
    struct StopAtSample(AtomicUsize);
    impl Progress for StopAtSample {
        fn stopped(&self) -> bool {
            self.0.fetch_update(SeqCst, SeqCst, |left| Some(left.saturating_sub(1))).unwrap() == 0
        }
    }
    let Folder { _temp, source, destination } = folder(&[("0.tar", &web(0, 20)), ("1.tar", &web(20, 20))]);
    let options = with!(Options::new(&source, &destination), shards = Shards::Size(9_000));
    pack(&options, &()).unwrap();
    let expected = snapshot(&destination);
    for samples in [0, 39, 41, 70] {
        fs::remove_dir_all(&destination).unwrap();
        let stopped = pack(&options, &StopAtSample(AtomicUsize::new(samples))).unwrap_err();
        assert!(matches!(stopped, Error::Stopped), "{stopped}");
        // A run that is stopped while it surveys has not begun to write.
        assert!(samples >= 40 || !destination.join("_index").exists(), "stopped after {samples} samples");
        fs::create_dir_all(&destination).unwrap();
        pack(&options, &()).unwrap();
        assert!(snapshot(&destination) == expected, "stopped after {samples} samples");
    }
}

#[test]
fn keys_are_unique() {
    let image = jpeg(1, 20, 20);
    let same = tar(&[("x.jpg", &image), ("y.jpg", &image), ("x.jpg", &image)]);
    let Folder { _temp, source, destination } = folder(&[("a.tar", &same), ("b.tar", &same)]);
    pack(&Options::new(&source, &destination), &()).unwrap();
    let keys: Vec<_> = check(&destination, "train").into_keys().collect();
    let expected = ["x#a.tar#0", "x#a.tar#2", "x#b.tar#0", "x#b.tar#2", "y#a.tar#1", "y#b.tar#1"];
    assert_eq!(keys, expected);
}

#[test]
fn assigns_class_ids_by_name_and_from_a_file() {
    let image = jpeg(1, 20, 20);
    let by_name =
        tar(&[("1.jpg", &image), ("1.cls", b"owl\n"), ("2.jpg", &image), ("2.cls", b"ant"), ("3.jpg", &image)]);
    let Folder { _temp, source, destination } = folder(&[("a.tar", &by_name)]);
    let options = Options::new(&source, &destination);
    let summary = pack(&options, &()).unwrap();
    assert_eq!(manifest(&destination).classes, ["ant", "owl"]);
    let label = |folder: &Path, key: &str| check(folder, "train")[key].1;
    assert_eq!((label(&destination, "1"), label(&destination, "2")), (Some(1), Some(0)));
    assert_eq!(rejected(&summary.rejected_file.unwrap())[0].0, "a.tar:3");
    let classes = source.parent().unwrap().join("classes.txt");
    fs::write(&classes, "owl\nant\nbee\n").unwrap();
    pack(&with!(options.clone(), classes = Some(classes.clone()), force = true), &()).unwrap();
    assert_eq!((label(&destination, "1"), label(&destination, "2")), (Some(0), Some(1)));
    fs::write(&classes, "owl\n").unwrap();
    let refused = pack(&with!(options, classes = Some(classes), force = true), &()).unwrap_err();
    assert!(matches!(refused, Error::Source(SourceError::UnknownClass { .. })), "{refused}");
}

#[test]
fn reports_differing_types_and_accepts_a_declared_one() {
    let image = jpeg(1, 20, 20);
    let mixed = tar(&[("1.jpg", &image), ("1.json", br#"{"n": 3}"#), ("2.jpg", &image), ("2.json", br#"{"n": "x"}"#)]);
    let Folder { _temp, source, destination } = folder(&[("a.tar", &mixed)]);
    let options = Options::new(&source, &destination);
    let message = chain(&pack(&options, &()).unwrap_err());
    assert!(message.contains("`n` is int64 in sample 0 of a.tar, and bytes in sample 1"), "{message}");
    assert!(message.contains("--column n:bytes"), "{message}");
    let given = |kind| with!(options.clone(), columns = vec![("n".to_owned(), kind)], force = true);
    assert_eq!(pack(&given(DType::Bytes), &()).unwrap().split.records(), 2);
    let summary = pack(&given(DType::Int64), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (1, 1));
    assert!(rejected(&summary.rejected_file.unwrap())[0].1.contains("`n` is not int64"));
}

#[test]
fn reports_labels_of_two_types_and_accepts_a_declared_one() {
    let image = jpeg(1, 20, 20);
    let mixed = tar(&[("1.jpg", &image), ("1.cls", b"7"), ("2.jpg", &image), ("2.cls", b"owl")]);
    let Folder { _temp, source, destination } = folder(&[("a.tar", &mixed)]);
    let options = Options::new(&source, &destination);
    let message = chain(&pack(&options, &()).unwrap_err());
    assert!(message.contains("`label` is int64") && message.contains("--column label:bytes"), "{message}");
    let given = |kind| with!(options.clone(), columns = vec![("label".to_owned(), kind)], force = true);
    pack(&given(DType::Bytes), &()).unwrap();
    assert_eq!(manifest(&destination).classes, ["7", "owl"]);
    let summary = pack(&given(DType::Int64), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (1, 1));
    assert!(rejected(&summary.rejected_file.unwrap())[0].1.contains("`owl` is not a class id"));
    assert_eq!(check(&destination, "train")["1"].1, Some(7));
}

#[test]
fn loses_only_damaged_samples_and_never_panics() {
    let image = jpeg(1, 20, 20);
    let mut flipped = theirs(0, 10);
    let third = records(&flipped)[3].0 as usize;
    flipped[third + 40] ^= 1;
    let huge = [frame::header(1 << 60).to_vec(), vec![0; 100]].concat();
    let opaque = [theirs(0, 2), framed(b"no example")].concat();
    let mut no_header = theirs(0, 5);
    let second = records(&no_header)[2].0 as usize;
    no_header[second] ^= 1;
    let mut gz = gzip(&theirs(0, 5));
    gz.truncate(gz.len() - 30);
    let mut long = tar(&[("0.jpg", &image), ("1.jpg", &image)]);
    // The second member says that it is 8 GiB long.
    let at = 512 + image.len().next_multiple_of(512);
    long[at + 124..at + 136].copy_from_slice(b"77777777777\0");
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes().copy_from_slice(&long[at..at + 512]);
    header.set_cksum();
    long[at..at + 512].copy_from_slice(header.as_bytes());
    let twice = tar(&[("0.jpg", &image), ("0.jpg", &image), ("1.jpg", &image)]);
    let outside = tar(&[("../../x.jpg", &image), ("/etc/y.jpg", &image), ("no-image.txt", b"text")]);
    let json = tar(&[("0.jpg", &image), ("0.json", b"{"), ("1.jpg", &image)]);
    let bomb = gzip(&[web(0, 2), vec![0; 64 << 20]].concat());
    for (name, file, good, bad, words) in [
        ("flipped.tfrecord", flipped, 9, 1, "CRC"),
        ("huge.tfrecord", [theirs(0, 2), huge].concat(), 2, 1, "1152921504606846992"),
        ("opaque.tfrecord", opaque, 2, 1, "Example"),
        ("header.tfrecord", no_header, 2, 1, "CRC"),
        ("cut.tfrecord", theirs(0, 5)[..3000].to_vec(), 3, 1, "bytes"),
        ("cut.gz", gz, 4, 1, ""),
        ("long.tar", long, 1, 1, "ends at byte"),
        ("twice.tar", twice, 1, 1, "`jpg` twice"),
        ("outside.tar", outside, 2, 1, "no image among its fields (`txt`)"),
        ("json.tar", json, 1, 1, "not JSON"),
        ("bomb.tar.gz", bomb, 2, 0, ""),
    ] {
        let Folder { _temp, source, destination } = folder(&[(name, &file)]);
        let mut options = Options::new(source.join(name), &destination);
        options.map = if name.contains(".t") && name.ends_with("rd") || name == "cut.gz" {
            vec![("image".to_owned(), "photo".to_owned())]
        } else {
            vec![]
        };
        let summary = pack(&options, &()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(summary.rejected, bad, "{name}");
        assert!(summary.split.records() <= good && summary.split.records() + 1 >= good, "{name}: {summary:?}");
        if let Some(file) = &summary.rejected_file {
            let found = rejected(file);
            assert!(found[0].1.contains(words), "{name}: {found:?}");
        }
        check(&destination, "train");
        if bad > 0 {
            let fail = with!(options, on_error = OnError::Fail, destination = destination.with_extension("f"));
            assert!(matches!(pack(&fail, &()), Err(Error::Rejected(_))), "{name}");
        }
    }
}

#[test]
fn survives_any_cut_and_any_flip() {
    let files = [("t", theirs(0, 3)), ("w", web(0, 3)), ("z", gzip(&web(0, 3)))];
    for (name, file) in files {
        for i in 0..24 {
            let at = file.len() * i / 24;
            let mut flipped = file.clone();
            flipped[at] ^= 0x55;
            for damaged in [file[..at].to_vec(), flipped] {
                let Folder { _temp, source, destination } = folder(&[(name, &damaged)]);
                let from = if name == "t" { SourceKind::Tfrecord } else { SourceKind::Webdataset };
                let options = with!(Options::new(&source, &destination), from = Some(from));
                let options = with!(
                    options,
                    map = vec![("image".to_owned(), if name == "t" { "photo" } else { "jpg" }.to_owned())]
                );
                match pack(&options, &()) {
                    Ok(_) => drop(check(&destination, "train")),
                    Err(error) => assert!(!chain(&error).is_empty()),
                }
            }
        }
    }
}

#[test]
fn rejects_hostile_mds_indexes_and_shards() {
    let image = jpeg(1, 20, 20);
    let sample = |label: i64| [&(image.len() as u32).to_le_bytes()[..], &image, &label.to_le_bytes()].concat();
    let samples = [sample(4), sample(5)];
    let begin = 4 + 4 * 3;
    let ends = [begin, begin + samples[0].len(), begin + samples.concat().len()].map(|n| (n as u32).to_le_bytes());
    let shard = [&2u32.to_le_bytes()[..], &ends.concat(), &samples.concat()].concat();
    let index = |names: &str, encodings: &str, basename: &str| {
        format!(
            r#"{{"version": 2, "shards": [{{"format": "mds", "compression": null, "column_names": {names},
            "column_encodings": {encodings}, "column_sizes": [null, 8], "samples": 2,
            "raw_data": {{"basename": "{basename}", "bytes": {}}}, "zip_data": null}}]}}"#,
            shard.len()
        )
    };
    let good = index(r#"["image", "label"]"#, r#"["jpeg", "int"]"#, "s.mds");
    let run = |index: &str, shard: &[u8]| {
        let Folder { _temp, source, destination } = folder(&[("index.json", index.as_bytes()), ("s.mds", shard)]);
        let summary =
            pack(&with!(Options::new(&source, &destination), from = Some(SourceKind::Mds), allow_empty = true), &());
        summary.map(|summary| (summary.split.records(), summary.rejected, check(&destination, "train")))
    };
    let (records, bad, found) = run(&good, &shard).unwrap();
    assert_eq!((records, bad), (2, 0));
    assert_eq!(found["s.mds#1"], (image.clone(), Some(5)));
    // Lies about a good shard cost nothing else, and are reported.
    for (truth, lie) in [("\"samples\": 2", "\"samples\": 3"), ("\"bytes\": ", "\"bytes\": 1")] {
        assert!(good.contains(truth));
        let Folder { _temp, source, destination } =
            folder(&[("index.json", good.replace(truth, lie).as_bytes()), ("s.mds", &shard)]);
        let summary =
            pack(&with!(Options::new(&source, &destination), from = Some(SourceKind::Mds), allow_empty = true), &())
                .unwrap();
        assert_eq!((summary.split.records(), summary.rejected), (2, 1));
        let reason = &rejected(&summary.rejected_file.unwrap())[0].1;
        assert!(reason.starts_with("index.json says"), "{reason}");
    }
    for (index, words) in [
        (good.replace("s.mds", "../s.mds"), "separator"),
        (good.replace("\"int\"", "\"complex\""), "unknown encoding"),
        (good.replace("[null, 8]", "[8]"), "differ"),
        (good.replace("\"mds\"", "\"xsv\""), "expected `mds`"),
        ("{".to_owned(), "EOF"),
    ] {
        let error = chain(&run(&index, &shard).unwrap_err());
        assert!(error.contains(words), "{error}");
    }
    for cut in 0..shard.len() {
        if cut % 37 == 0 {
            let (records, bad, _) = run(&good, &shard[..cut]).unwrap();
            assert!(records < 2 && bad == 1, "{cut}: {records} {bad}");
        }
    }
    for at in 0..begin {
        let mut flipped = shard.clone();
        flipped[at] ^= 0x81;
        run(&good, &flipped)
            .map(drop)
            .unwrap_or_else(|e| assert!(matches!(e, Error::Source(SourceError::Empty { .. })), "{e}"));
    }
}

#[test]
fn refuses_other_files_and_names_the_known_formats() {
    let Folder { _temp, source, destination } = folder(&[("x.bin", b"nothing known")]);
    let refused = |options: &Options| chain(&pack(options, &()).unwrap_err());
    assert!(refused(&Options::new(source.join("x.bin"), &destination)).contains("--from KIND"));
    assert!(refused(&Options::new(source.join("nowhere-*"), &destination)).contains("no such file"));
    let tars = folder(&[("a.tar", &web(0, 3)), ("b.tar", &web(3, 3))]);
    let count = with!(Options::new(&tars.source, &destination), shards = Shards::Count(3));
    assert!(refused(&count).contains("its own shards"));
    put(&tars.source.join("photo.jpg"), &jpeg(1, 20, 20));
    let globbed = Options::new(tars.source.join("[b]*.tar"), &destination);
    assert_eq!(pack(&globbed, &()).unwrap().split.records(), 3);
}

#[test]
fn archives_next_to_other_data_are_refused_and_what_is_no_data_is_named() {
    let Folder { _temp, source, destination } = folder(&[("a.tar", &web(0, 3)), ("b.tar", &web(3, 3))]);
    let to = |name: &str| destination.with_extension(name);
    put(&source.join("README.md"), b"about");
    put(&source.join("docs/more.txt"), b"about");
    // Damaged, and not another kind.
    put(&source.join("c.tar"), b"not a tar");
    let packed = pack(&Options::new(&source, to("one")), &()).unwrap();
    assert_eq!((packed.samples, packed.split.records(), packed.rejected), (7, 6, 1));
    assert_eq!(packed.left_out, ["README.md, docs: next to the tars"]);
    let framed = framed(b"hello");
    for (name, bytes, from, records) in [
        ("photo.jpg", jpeg(1, 20, 20), SourceKind::Folder, 0),
        ("class/photo.jpg", jpeg(1, 20, 20), SourceKind::Folder, 1),
        ("nested/d.tar", web(9, 2), SourceKind::Folder, 0),
        ("x.tfrecord", framed, SourceKind::Tfrecord, 0),
    ] {
        put(&source.join(name), &bytes);
        for kind in ["pack", "index"] {
            let error = match kind {
                "pack" => pack(&Options::new(&source, to("mixed")), &()).map(drop),
                _ => index_source(&Options::new(&source, ""), &[], &()).map(drop),
            };
            let error = chain(&error.unwrap_err());
            let first = name.split('/').next().unwrap();
            for part in ["3 tars", first, "--from webdataset", &format!("--from {}", from_name(from))] {
                assert!(error.contains(part), "{kind}: {error}");
            }
        }
        assert!(!to("mixed").exists() && !source.join("dataset.json").exists());
        // With --from it packs one kind, and names the others.
        let out = to(&name.replace(['/', '.'], "-"));
        let tars = with!(Options::new(&source, &out), from = Some(SourceKind::Webdataset));
        let packed = pack(&tars, &()).unwrap();
        assert_eq!(packed.split.records(), 6);
        assert!(packed.left_out[0].contains(name.split('/').next().unwrap()), "{:?}", packed.left_out);
        if records > 0 {
            let images = with!(Options::new(&source, out.with_extension("images")), from = Some(from));
            let packed = pack(&images, &()).unwrap();
            assert_eq!(packed.split.records(), records);
            assert!(packed.rejected >= 3, "the tars are named");
        }
        fs::remove_file(source.join(name)).unwrap();
    }
    // Class folders hold no archives.
    let nested = folder(&[("README.md", b"about"), ("data/a.tar", &web(0, 3))]);
    let error = chain(&pack(&Options::new(&nested.source, to("nested")), &()).unwrap_err());
    assert!(error.contains("tars lie in") && error.contains("data"), "{error}");
}

fn from_name(kind: SourceKind) -> &'static str {
    if kind == SourceKind::Tfrecord { "tfrecord" } else { "folder" }
}

#[test]
#[cfg(feature = "parquet")]
fn survives_any_cut_and_any_flip_of_a_parquet_file() {
    let Folder { _temp, source, destination } = folder(&[("a.tar", &web(0, 5))]);
    pack(&Options::new(&source, &destination), &()).unwrap();
    let out = destination.with_extension("out");
    let options =
        with!(shardtool_pack::ExportOptions::new(shardtool_pack::ExportKind::Parquet), jobs = NonZeroUsize::MIN);
    shardtool_pack::export(shardtool_read::Dataset::open(&destination).unwrap().splits(), &out, &options, &()).unwrap();
    let file = fs::read(out.join("train-00000-of-00001.parquet")).unwrap();
    let again = |damaged: &[u8]| {
        let Folder { _temp, source, destination } = folder(&[("a.parquet", damaged)]);
        let packed = pack(
            &with!(Options::new(&source, &destination), from = Some(SourceKind::Parquet), allow_empty = true),
            &(),
        );
        packed.map(|summary| (summary.rejected, check(&destination, "train").len()))
    };
    assert_eq!(again(&file).unwrap(), (0, 5));
    assert_eq!(again(&file[..file.len() / 2]).unwrap(), (1, 0));
    // Damages every byte of the footer, which holds lengths and types, and some of the pages.
    let footer = file.len() - 8 - u32::from_le_bytes(*file[file.len() - 8..].first_chunk().unwrap()) as usize;
    for at in (0..footer).step_by(footer / 20).chain((footer..file.len()).step_by(9)) {
        let mut flipped = file.clone();
        flipped[at] ^= 0x55;
        if let Err(error) = again(&flipped) {
            assert!(!chain(&error).is_empty());
        }
    }
}
