//! Packed data equal their source: bytes, labels, columns, order, formats and splits.

#[path = "../../../decode/tests/made/float_tiff.rs"]
mod float_tiff;

use crate::support::{chain, check, class_folders, encoded, jpeg, manifest, names, put, records, rejected, snapshot};
use float_tiff::float_tiff;
use shardtool_decode::FloatRange;
use shardtool_format::example::{Example, Feature};
use shardtool_format::manifest::DType;
use shardtool_pack::{DestinationError, SourceError};
use shardtool_pack::{Difference, Error, OnError, Options, PixelStore, Resize, Shards, pack, plan};
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

fn folders(each: u32) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("photos"), temp.path().join("data/set"));
    class_folders(&source, each);
    (temp, source, destination)
}

fn jobs(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).unwrap()
}

#[test]
fn keeps_every_byte_and_label() {
    let (_temp, source, destination) = folders(20);
    put(&source.join("cat/deep/er/x.jpg"), &jpeg(77, 30, 30));
    put(&source.join(".hidden/x.jpg"), b"no image");
    put(&source.join("cat/.hidden.jpg"), b"no image");
    fs::create_dir(source.join("zebra")).unwrap();
    let summary = pack(&with!(Options::new(&source, &destination), shards = Shards::Count(4)), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected, summary.split.shards.len()), (61, 0, 4));
    assert_eq!(manifest(&destination).classes, ["cat", "dog", "emu"]);
    assert_eq!(summary.left_out, [".hidden", ".hidden.jpg", "zebra (empty)"]);
    let found = check(&destination, "train");
    assert_eq!(found.len(), 61);
    for (key, (image, label)) in &found {
        assert_eq!(*image, fs::read(source.join(key)).unwrap(), "{key}");
        assert_eq!(*label, Some(["cat", "dog", "emu"].iter().position(|c| key.starts_with(c)).unwrap() as i64));
    }
    let files = names(&destination);
    assert_eq!(files.len(), 1 + 4 + 4 + 1, "{files:?}");
}

#[test]
fn writes_the_same_bytes_for_any_number_of_threads() {
    let (temp, source, _) = folders(30);
    put(&source.join("dog/broken.jpg"), b"text");
    let pack_with = |n: usize, pixels, resize| {
        let destination = temp.path().join(format!("{n}"));
        let shards = Shards::Size(20_000);
        let options = with!(
            Options::new(&source, &destination),
            jobs = jobs(n),
            shards = shards,
            pixels = pixels,
            resize = resize
        );
        assert_eq!(pack(&options, &()).unwrap().rejected, 1);
        let files = snapshot(&destination);
        fs::remove_dir_all(&destination).unwrap();
        files
    };
    for (pixels, resize) in [
        (PixelStore::Encoded, None),
        (PixelStore::Encoded, Some(Resize::MaxSide(24))),
        (PixelStore::RawZstd { level: 3 }, Some(Resize::Shorter(16))),
    ] {
        let one = pack_with(1, pixels, resize);
        assert!(one.len() > 6, "several shards");
        assert!(one == pack_with(4, pixels, resize));
        assert!(one == pack_with(7, pixels, resize));
    }
}

#[test]
fn seed_determines_the_order_and_none_keeps_it() {
    let (temp, source, _) = folders(30);
    let order = |seed: Option<u64>, name: &str| {
        let destination = temp.path().join(name);
        pack(&with!(Options::new(&source, &destination), seed = seed), &()).unwrap();
        let file = fs::read(destination.join("train-00000.tfrecord")).unwrap();
        let key = |data| Example::parse(data).unwrap().bytes("image/key").unwrap().to_vec();
        records(&file).into_iter().map(|(_, data)| key(data)).collect::<Vec<_>>()
    };
    let (plain, zero, one) = (order(None, "plain"), order(Some(0), "zero"), order(Some(1), "one"));
    assert!(plain.is_sorted());
    assert!(plain != zero && zero != one);
    let permutation = shardtool_order::pack_permutation(1, plain.len() as u64).unwrap();
    let expected: Vec<_> = (0..plain.len()).map(|i| plain[permutation.forward(i as u64) as usize].clone()).collect();
    assert_eq!(one, expected);
}

#[test]
fn shards_have_about_the_same_size_and_may_be_empty() {
    let (temp, source, _) = folders(40);
    let options = with!(Options::new(&source, temp.path().join("a")), shards = Shards::Size(30_000));
    let planned = plan(&options).unwrap();
    let sizes: Vec<_> = planned.shards().map(|s| s.source_bytes).collect();
    assert_eq!(sizes.len() as u64, planned.source_bytes().div_ceil(30_000));
    assert_eq!(sizes.iter().sum::<u64>(), planned.source_bytes());
    let largest = snapshot(&source).values().map(Vec::len).max().unwrap() as u64;
    let mean = planned.source_bytes() / sizes.len() as u64;
    assert!(sizes.iter().all(|size| size.abs_diff(mean) <= largest), "{sizes:?} about {mean}");
    assert!(!temp.path().join("a").exists(), "a plan writes nothing");
    let options = with!(Options::new(&source, temp.path().join("b")), shards = Shards::Count(500));
    let summary = pack(&options, &()).unwrap();
    assert_eq!((summary.split.shards.len(), summary.split.records()), (500, 120));
    assert!(summary.split.shards.iter().any(|s| s.records == 0));
    assert_eq!(check(&temp.path().join("b"), "train").len(), 120);
}

#[test]
fn detects_formats_from_content() {
    use image::ImageFormat::{Bmp, Gif, Png, Tiff, WebP};
    let temp = tempfile::tempdir().unwrap();
    let (source, destination) = (temp.path().join("flat"), temp.path().join("set"));
    for (format, name) in [(Png, "png"), (WebP, "webp"), (Gif, "gif"), (Bmp, "bmp"), (Tiff, "tiff")] {
        put(&source.join(format!("{name}.jpg")), &encoded(3, format));
    }
    put(&source.join("jpeg.png"), &jpeg(3, 20, 10));
    pack(&Options::new(&source, &destination), &()).unwrap();
    let file = fs::read(destination.join("train-00000.tfrecord")).unwrap();
    for (_, data) in records(&file) {
        let example = Example::parse(data).unwrap();
        let key = std::str::from_utf8(example.bytes("image/key").unwrap()).unwrap();
        let format = std::str::from_utf8(example.bytes("image/format").unwrap()).unwrap();
        assert_eq!(key.split('.').next(), Some(format));
        assert_eq!(example.bytes("image/encoded").unwrap(), fs::read(source.join(key)).unwrap());
        let number = |name| example.int64(name).unwrap();
        assert_eq!((number("image/width"), number("image/height"), number("image/orientation")), (20, 10, 1));
        assert_eq!(example.bytes("image/filename").unwrap(), key.as_bytes());
        assert!(example.get("image/class/label").is_none() && example.get("image/class/text").is_none());
    }
    let manifest = manifest(&destination);
    assert_eq!((manifest.label, manifest.classes.len()), (None, 0));
    assert!(manifest.features.iter().all(|f| !f.name.starts_with("image/class")));
}

#[test]
fn raw_pixels_equal_decoded_pixels() {
    let (temp, source, _) = folders(2);
    let raw = |pixels, name: &str| {
        let destination = temp.path().join(name);
        pack(&with!(Options::new(&source, &destination), pixels = pixels, seed = None), &()).unwrap();
        fs::read(destination.join("train-00000.tfrecord")).unwrap()
    };
    let (plain, packed) = (raw(PixelStore::Raw, "raw"), raw(PixelStore::RawZstd { level: 5 }, "zstd"));
    for ((_, plain), (_, packed)) in records(&plain).into_iter().zip(records(&packed)) {
        let (plain, packed) = (Example::parse(plain).unwrap(), Example::parse(packed).unwrap());
        let key = std::str::from_utf8(plain.bytes("image/key").unwrap()).unwrap();
        let (w, h) = (plain.int64("image/width").unwrap() as usize, plain.int64("image/height").unwrap() as usize);
        let pixels = plain.bytes("image/encoded").unwrap();
        let expected = image::open(source.join(key)).unwrap().to_rgb8();
        assert_eq!((w as u32, h as u32), expected.dimensions());
        // The reference decoder's inverse DCT rounds differently for JPEG; other formats are exact.
        let allowed = if key.ends_with(".jpg") { 3 } else { 0 };
        assert_eq!(pixels.len(), expected.len());
        assert!(pixels.iter().zip(expected.as_raw()).all(|(a, b)| a.abs_diff(*b) <= allowed), "{key}");
        assert_eq!(
            (plain.bytes("image/format"), packed.bytes("image/format")),
            (Some(&b"raw"[..]), Some(&b"raw-zstd"[..]))
        );
        assert_eq!(zstd::decode_all(packed.bytes("image/encoded").unwrap()).unwrap(), pixels);
    }
}

#[test]
fn floating_point_pixels_are_scaled_by_the_range_of_the_options() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("flat");
    put(&source.join("depth.tif"), &float_tiff(&[-1.0, 0.5, 1.0, 9.0]));
    let destination = temp.path().join("set");
    let raw = with!(Options::new(&source, &destination), pixels = PixelStore::Raw, seed = None);
    let float_range = FloatRange::new(0.0, 1.0);
    pack(&with!(raw.clone(), float_range = float_range), &()).unwrap();
    let packed = check(&destination, "train");
    assert_eq!(packed["depth.tif"].0, [[0; 3], [128; 3], [255; 3], [255; 3]].concat());

    let summary = pack(&with!(raw, force = true, allow_empty = true), &()).unwrap();
    let found = rejected(&summary.rejected_file.unwrap());
    assert!(found.len() == 1 && found[0].1.contains("`float_range`"), "{found:?}");
}

#[test]
fn resizing_never_enlarges() {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("flat");
    put(&source.join("large.jpg"), &jpeg(1, 90, 60));
    put(&source.join("small.jpg"), &jpeg(2, 20, 15));
    let sizes = |resize, name: &str| {
        let destination = temp.path().join(name);
        pack(&with!(Options::new(&source, &destination), resize = Some(resize), seed = None), &()).unwrap();
        let file = fs::read(destination.join("train-00000.tfrecord")).unwrap();
        let read = |data| {
            let example = Example::parse(data).unwrap();
            let image = example.bytes("image/encoded").unwrap();
            let decoded = image::load_from_memory(image).unwrap();
            let size = (example.int64("image/width").unwrap() as u32, example.int64("image/height").unwrap() as u32);
            assert_eq!((decoded.width(), decoded.height()), size);
            (size, image.to_vec())
        };
        records(&file).into_iter().map(|(_, data)| read(data)).collect::<Vec<_>>()
    };
    let shorter = sizes(Resize::Shorter(30), "shorter");
    let longer = sizes(Resize::MaxSide(30), "longer");
    assert_eq!((shorter[0].0, longer[0].0), ((45, 30), (30, 20)));
    assert_eq!(shorter[1].1, fs::read(source.join("small.jpg")).unwrap(), "small images stay as they are");
}

#[test]
fn columns_of_lists_become_features() {
    let temp = tempfile::tempdir().unwrap();
    let (list, destination) = (temp.path().join("list.csv"), temp.path().join("set"));
    put(&temp.path().join("a.jpg"), &jpeg(1, 30, 20));
    put(&temp.path().join("sub/b.jpg"), &jpeg(2, 30, 20));
    let text = "path,label,key,score,count,note\n\
                a.jpg,zebra,first,0.5,3,\"one, two\"\n\
                a.jpg,cat,second,2,4,7\n\
                sub/b.jpg,cat,third,-1e3,,\n";
    fs::write(&list, text).unwrap();
    let options = with!(Options::new(&list, &destination), seed = None);
    assert_eq!(pack(&options, &()).unwrap().split.records(), 3);
    let manifest = manifest(&destination);
    assert_eq!(manifest.classes, ["cat", "zebra"]);
    let kind = |name: &str| manifest.features.iter().find(|f| f.name == name).unwrap().dtype;
    assert_eq!((kind("score"), kind("count"), kind("note")), (DType::Float, DType::Int64, DType::Bytes));
    let found = check(&destination, "train");
    assert_eq!(found.keys().collect::<Vec<_>>(), ["first", "second", "third"]);
    assert_eq!((found["first"].1, found["second"].1), (Some(1), Some(0)));
    assert_eq!(found["first"].0, found["second"].0);
    let file = fs::read(destination.join("train-00000.tfrecord")).unwrap();
    let third = Example::parse(records(&file)[2].1).unwrap();
    let Some(Feature::Float(score)) = third.get("score") else { panic!("{third:?}") };
    assert_eq!(score.single(), Some(-1000.0));
    assert_eq!(third.get("count").map(|f| f.count()), Some(0), "an empty cell has no value");
    let index = fs::read(destination.join("_index/train-00000.tfrecord.index")).unwrap();
    let index = shardtool_format::index::Index::parse(&index).unwrap();
    let columns: Vec<_> = index.columns().iter().map(|column| column.name().to_owned()).collect();
    let sizes = ["image/channels", "image/class/label", "image/height", "image/orientation", "image/width"];
    let features = ["count"].into_iter().chain(sizes).chain(["note", "score"]);
    let scalars = features.map(|name| format!("feature:{name}"));
    let always = ["record_offset", "image_offset", "image_length", "key"].map(str::to_owned);
    let entries = ["jpeg_entries".to_owned()];
    let expected: Vec<_> = always.into_iter().chain(scalars).chain(entries).collect();
    assert_eq!(columns, expected);
    let at = |name| index.position(name).unwrap();
    let counts = index.fixed::<i64>(at("feature:count")).unwrap();
    assert_eq!(counts.iter().collect::<Vec<_>>(), [Some(3), Some(4), None], "an empty cell is null");
    let notes = index.variable(at("feature:note")).unwrap();
    assert_eq!(notes.iter().collect::<Vec<_>>(), [Some(&b"one, two"[..]), Some(b"7"), None]);
    let first = Example::parse(records(&file)[0].1).unwrap();
    assert_eq!((first.int64("count"), first.bytes("note")), (Some(3), Some(&b"one, two"[..])));
}

#[test]
fn json_lists_may_hold_several_values() {
    let temp = tempfile::tempdir().unwrap();
    let (list, destination) = (temp.path().join("list.jsonl"), temp.path().join("set"));
    put(&temp.path().join("a.jpg"), &jpeg(1, 30, 20));
    put(&temp.path().join("b.jpg"), &jpeg(2, 30, 20));
    let text = "{\"path\": \"a.jpg\", \"label\": 7, \"boxes\": [1, 2.5], \"tags\": [\"x\", \"yz\"], \"day\": true}\n\n\
                {\"path\": \"b.jpg\", \"label\": 0, \"boxes\": [], \"tags\": null, \"extra\": \"only here\"}\n";
    fs::write(&list, text).unwrap();
    pack(&with!(Options::new(&list, &destination), seed = None), &()).unwrap();
    assert!(manifest(&destination).classes.is_empty(), "integer labels have no names");
    assert_eq!(check(&destination, "train")["a.jpg"].1, Some(7));
    let file = fs::read(destination.join("train-00000.tfrecord")).unwrap();
    let examples: Vec<_> = records(&file).into_iter().map(|(_, data)| Example::parse(data).unwrap()).collect();
    let floats = |e: &Example<'_>| match e.get("boxes") {
        Some(Feature::Float(list)) => list.iter().collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!((floats(&examples[0]), examples[1].get("boxes").unwrap().count()), (vec![1.0, 2.5], 0));
    let Some(Feature::Bytes(tags)) = examples[0].get("tags") else { panic!("{examples:?}") };
    assert_eq!(tags.iter().collect::<Vec<_>>(), [&b"x"[..], b"yz"]);
    assert_eq!((examples[0].int64("day"), examples[1].bytes("extra")), (Some(1), Some(&b"only here"[..])));
}

#[test]
fn adds_a_split_and_refuses_one_with_other_classes() {
    let (temp, source, destination) = folders(5);
    pack(&Options::new(&source, &destination), &()).unwrap();
    let validation = |source: &Path| with!(Options::new(source, &destination), split = Some("validation".to_owned()));
    let (same, other) = (temp.path().join("same"), temp.path().join("other"));
    class_folders(&same, 2);
    class_folders(&other, 2);
    fs::rename(other.join("emu"), other.join("fox")).unwrap();
    let before = snapshot(&destination);
    let refused = pack(&validation(&other), &()).unwrap_err();
    let Error::Destination(DestinationError::Incompatible {
        difference: Difference::Classes { missing, added }, ..
    }) = &refused
    else {
        panic!("{refused}")
    };
    assert_eq!((&missing[..], &added[..]), (&["emu".to_owned()][..], &["fox".to_owned()][..]));
    assert!(chain(&refused).contains("--classes"), "{refused}");
    assert!(before == snapshot(&destination), "the dataset is unchanged");
    pack(&validation(&same), &()).unwrap();
    assert_eq!((check(&destination, "train").len(), check(&destination, "validation").len()), (15, 6));
    let flat = temp.path().join("flat");
    put(&flat.join("a.jpg"), &jpeg(1, 20, 20));
    let test = with!(Options::new(&flat, &destination), split = Some("test".to_owned()));
    assert!(matches!(pack(&test, &()).unwrap_err(), Error::Destination(DestinationError::Incompatible { .. })));
}

#[test]
fn a_file_of_classes_fixes_their_ids() {
    let (temp, source, destination) = folders(2);
    let classes = temp.path().join("classes.txt");
    fs::write(&classes, "emu\ndog\ncat\nyak\n").unwrap();
    let options = with!(Options::new(&source, &destination), classes = Some(classes.clone()));
    pack(&options, &()).unwrap();
    assert_eq!(check(&destination, "train")["emu/0000.jpg"].1, Some(0));
    fs::write(&classes, "emu\ndog\n").unwrap();
    let refused = pack(&with!(options.clone(), split = Some("b".to_owned())), &()).unwrap_err();
    assert!(matches!(&refused, Error::Source(SourceError::UnknownClass { class, .. }) if class == "cat"), "{refused}");
    fs::write(&classes, "emu\nemu\n").unwrap();
    assert!(matches!(pack(&options, &()).unwrap_err(), Error::Source(SourceError::ClassesFile { line: 2, .. })));
}

#[test]
fn replaces_a_complete_split_by_force() {
    let (_temp, source, destination) = folders(5);
    let options = with!(Options::new(&source, &destination), shards = Shards::Count(5));
    pack(&options, &()).unwrap();
    fs::remove_file(source.join("cat/0000.jpg")).unwrap();
    put(&source.join("cat/bad.jpg"), b"bad");
    pack(&with!(options, force = true, shards = Shards::Count(2)), &()).unwrap();
    assert_eq!(check(&destination, "train").len(), 14);
    assert_eq!(names(&destination).len(), 1 + 2 + 2 + 1 + 1, "{:?}", names(&destination));
    assert_eq!(rejected(&destination.join("rejected-train.jsonl")).len(), 1);
}

#[test]
fn fails_on_the_first_rejected_input() {
    let (_temp, source, destination) = folders(3);
    put(&source.join("dog/bad.jpg"), b"bad");
    let options = with!(Options::new(&source, &destination), on_error = OnError::Fail);
    let Error::Rejected(rejection) = pack(&options, &()).unwrap_err() else { panic!() };
    assert_eq!(rejection.input, "dog/bad.jpg");
    assert_eq!(names(&destination), [".pack-train.json"]);
    let summary = pack(&with!(options, on_error = OnError::Skip), &()).unwrap();
    assert_eq!((summary.rejected, summary.split.records()), (1, 9));
}

/// The real photographs: every byte comes back.
#[test]
fn photographs_come_back() {
    let shared =
        std::env::var("SHARDTOOL_SHARED").unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").to_owned());
    let source = Path::new(&shared).join("data/imagenet-sample");
    if !source.is_dir() {
        println!("skipped: no photographs at {}", source.display());
        return;
    }
    let temp = tempfile::tempdir().unwrap();
    let options = with!(Options::new(&source, temp.path().join("set")), shards = Shards::Size(16 << 20));
    let summary = pack(&options, &()).unwrap();
    let found = check(&options.destination, "train");
    assert_eq!(found.len() as u64 + summary.rejected, snapshot(&source).len() as u64);
    for (key, (image, _)) in found {
        assert!(image == fs::read(source.join(&key)).unwrap(), "{key}");
    }
}
