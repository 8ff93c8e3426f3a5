//! A writer produces the bytes of a pack, after any interruption, in any number of parts and threads.

use crate::support::{chain, check, class_folders, names, picture, records, snapshot};
use shardtool_format::example::Example;
use shardtool_format::manifest::DType;
use shardtool_pack::{
    Committed, Error, Image, Label, Options, PixelArray, PixelStore, Progress, Sample, SampleProblem, Shards, Step,
    Value, Writer, WriterOptions, commit_parts, pack,
};
use shardtool_pack::{DestinationError, WriterError};
use std::collections::BTreeMap;
use std::fs;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const CLASSES: [&str; 3] = ["cat", "dog", "emu"];

/// Photographs in class folders with a list that gives each a weight and tags, in the list's order.
struct Photos {
    _temp: tempfile::TempDir,
    root: PathBuf,
    samples: Vec<(String, Vec<u8>)>,
}

impl Photos {
    fn new(each: u32) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().to_owned();
        class_folders(&root.join("photos"), each);
        let mut samples = vec![];
        let mut list = String::new();
        for i in 0..each {
            for class in CLASSES {
                let key = format!("photos/{class}/{i:04}.jpg");
                let row = serde_json::json!({
                    "path": key, "label": class, "weight": i as f32 / 4.0, "tags": ["a", class], "boxes": [i, i + 1],
                });
                list += &format!("{row}\n");
                samples.push((key.clone(), fs::read(root.join(&key)).unwrap()));
            }
        }
        fs::write(root.join("list.jsonl"), list).unwrap();
        Photos { _temp: temp, root, samples }
    }

    fn options(&self, name: &str) -> WriterOptions {
        with!(
            WriterOptions::new(self.root.join(name), "train"),
            features = vec![
                ("weight".to_owned(), DType::Float),
                ("tags".to_owned(), DType::Bytes),
                ("boxes".to_owned(), DType::Int64),
            ],
            classes = CLASSES.map(str::to_owned).to_vec()
        )
    }

    fn write(&self, writer: &Writer, i: usize) -> Result<bool, Error> {
        let (key, image) = &self.samples[i];
        let class = key.split('/').nth(1).unwrap();
        let number = (i / 3) as i64;
        writer.write(&Sample {
            key,
            image: Some(Image::File(image)),
            label: Some(Label::Name(class)),
            values: vec![
                ("weight", Value::Float(vec![number as f32 / 4.0])),
                ("tags", Value::Bytes(vec![b"a".to_vec(), class.into()])),
                ("boxes", Value::Int64(vec![number, number + 1])),
            ],
        })
    }

    /// Writes samples; returns how many were not written before.
    fn write_all(&self, writer: &Writer, samples: Range<usize>) -> usize {
        samples.filter(|i| self.write(writer, *i).unwrap()).count()
    }

    fn written(&self, options: &WriterOptions) -> Committed {
        let writer = Writer::open(options).unwrap();
        self.write_all(&writer, 0..self.samples.len());
        writer.finish().unwrap().unwrap()
    }
}

/// The data of all records of a split, in order.
fn data(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = vec![];
    for shard in &crate::support::manifest(folder).split("train").unwrap().shards {
        let file = fs::read(folder.join(&shard.file)).unwrap();
        found.extend(records(&file).into_iter().map(|(_, data)| data.to_vec()));
    }
    found
}

/// All files except the plan file, which differs between a writer and a pack.
fn shown(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = snapshot(folder);
    all.remove(Path::new(".packed-train.json")).expect("a kept plan");
    assert!(all.keys().all(|path| !path.to_str().unwrap().starts_with('.')), "{:?}", all.keys());
    all
}

#[test]
fn writes_the_files_of_a_pack() {
    let photos = Photos::new(8);
    let packed = photos.root.join("packed");
    let list = photos.root.join("list.jsonl");
    pack(&with!(Options::new(list, &packed), seed = None, shards = Shards::Count(1)), &()).unwrap();
    let one = photos.options("one");
    let committed = photos.written(&one);
    assert_eq!((committed.split.records(), committed.classes, committed.already_complete), (24, 3, false));
    // Shards, indexes and manifest, byte for byte.
    assert!(shown(&one.destination) == shown(&packed));
    // With small shards, compares only the records.
    let many = with!(photos.options("many"), shard_size = 4000);
    assert!(photos.written(&many).split.shards.len() > 3);
    assert!(data(&many.destination) == data(&packed));
    assert_eq!(check(&many.destination, "train").len(), 24);
}

#[test]
fn continues_by_key_after_any_interruption() {
    let photos = Photos::new(6);
    let options = with!(photos.options("whole"), shard_size = 3000);
    photos.written(&options);
    let expected = snapshot(&options.destination);
    let mut kept = 0;
    for stop in 0..photos.samples.len() {
        let options = with!(options.clone(), destination = photos.root.join(format!("stopped-{stop}")));
        let writer = Writer::open(&options).unwrap();
        (0..stop).for_each(|i| assert!(photos.write(&writer, i).unwrap()));
        // Like a killed process: an unfinished shard is left under its temporary name.
        if stop % 2 == 0 {
            drop(writer)
        } else {
            writer.abandon()
        }
        assert!(!options.destination.join("dataset.json").exists());
        let writer = Writer::open(&options).unwrap();
        let written = photos.write_all(&writer, 0..photos.samples.len());
        kept += photos.samples.len() - written;
        let committed = writer.finish().unwrap().unwrap();
        assert_eq!(committed.resumed_shards > 0, written < photos.samples.len(), "{stop}");
        assert!(snapshot(&options.destination) == expected, "stopped at {stop}");
    }
    assert!(kept > 50, "finished shards are kept: {kept}");
}

#[test]
fn complete_split_accepts_only_its_keys() {
    let photos = Photos::new(3);
    let options = photos.options("set");
    let first = photos.written(&options);
    let before = snapshot(&options.destination);
    assert_eq!(photos.written(&options), with!(first, already_complete = true));
    let writer = Writer::open(&options).unwrap();
    let other = Sample { key: "other", image: None, label: None, values: vec![] };
    let error = writer.write(&other).unwrap_err();
    assert!(
        matches!(&error, Error::Writer(WriterError::Sample { problem, .. }) if matches!(**problem, SampleProblem::Complete)),
        "{error}"
    );
    let refused = |options: WriterOptions, expected: &str| {
        let error = chain(&Writer::open(&options).expect_err("other options"));
        assert!(error.contains(expected), "{error}");
    };
    refused(with!(options.clone(), quality = 70), "different quality: 90 before, 70 now");
    refused(with!(options.clone(), classes = vec![], labels = Some(true)), "different classes: 3 before, 0 now");
    let error = pack(&Options::new(photos.root.join("list.jsonl"), &options.destination), &()).unwrap_err();
    assert!(chain(&error).contains("different format: \"shardtool-writer\" before"), "{error}");
    assert!(snapshot(&options.destination) == before);
    // Replaced by force.
    let forced = with!(options.clone(), force = true, shard_size = 2000, quality = 70);
    assert!(photos.written(&forced).split.shards.len() > 1);
    assert_eq!(check(&options.destination, "train").len(), 9);
}

#[test]
fn parts_are_joined_in_order() {
    let photos = Photos::new(8);
    let whole = photos.options("whole");
    photos.written(&whole);
    let options = |part| with!(photos.options("parts"), part = Some((part, 3)), shard_size = 3000);
    let destination = options(0).destination;
    let missing = |expected: &[u32]| match commit_parts(&destination, "train", false, &()).unwrap_err() {
        Error::Writer(WriterError::PartsMissing { missing, parts: 3, .. }) => assert_eq!(missing, expected),
        other => panic!("{other}"),
    };
    assert!(matches!(
        commit_parts(&destination, "train", false, &()),
        Err(Error::Writer(WriterError::NothingToCommit { .. }))
    ));
    for part in [2, 0, 1] {
        let writer = Writer::open(&options(part)).unwrap();
        assert!(matches!(Writer::open(&options(part)), Err(Error::Destination(DestinationError::Locked { .. }))));
        let third = part as usize * 8..part as usize * 8 + 8;
        third.for_each(|i| assert!(photos.write(&writer, i).unwrap()));
        if part == 0 {
            missing(&[0, 1]);
        }
        assert_eq!(writer.finish().unwrap(), None);
        assert!(matches!(writer.finish(), Err(Error::Writer(WriterError::Closed))));
    }
    let committed = commit_parts(&destination, "train", false, &()).unwrap();
    assert!(committed.split.shards.len() > 3);
    assert!(data(&destination) == data(&whole.destination));
    assert_eq!(check(&destination, "train").len(), 24);
    let again = commit_parts(&destination, "train", false, &()).unwrap();
    assert_eq!(again, with!(committed, already_complete = true));
}

#[test]
fn refuses_parts_with_other_options_or_common_keys() {
    let photos = Photos::new(3);
    let options = |part, n| with!(photos.options("parts"), part = Some((part, n)));
    let write = |options: &WriterOptions, range: Range<usize>| {
        let writer = Writer::open(options).unwrap();
        photos.write_all(&writer, range);
        writer.finish().unwrap();
    };
    let destination = options(0, 2).destination;
    let commit = || commit_parts(&destination, "train", false, &()).unwrap_err();
    write(&options(0, 2), 0..5);
    write(&options(1, 2), 4..9);
    let error = commit();
    assert!(
        matches!(&error, Error::Writer(WriterError::PartsKey { key, parts: (0, 1), .. }) if *key == photos.samples[4].0),
        "{error}"
    );
    let staged = destination.join(".write-train/part-00001-of-00002");
    fs::remove_dir_all(&staged).unwrap();
    write(&with!(options(1, 2), quality = 80), 5..9);
    assert!(chain(&commit()).contains("different quality: 90 before, 80 now"));
    write(&with!(options(1, 2), force = true), 5..9);
    write(&options(2, 3), 0..0);
    assert!(chain(&commit()).contains("different parts: 2 before, 3 now"));
    fs::remove_dir_all(destination.join(".write-train/part-00002-of-00003")).unwrap();
    assert_eq!(commit_parts(&destination, "train", false, &()).unwrap().split.records(), 9);
}

#[test]
fn continues_a_commit_stopped_at_any_step() {
    struct Stop(AtomicUsize);
    impl Progress for Stop {
        fn after(&self, _: Step) -> ControlFlow<()> {
            if self.0.fetch_sub(1, SeqCst) == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    let photos = Photos::new(3);
    let parts = |name: &str, force| {
        for part in 0..2 {
            let options = with!(photos.options(name), part = Some((part, 2)), shard_size = 2500, force = force);
            let writer = Writer::open(&options).unwrap();
            let samples = part as usize * 5..(part as usize * 5 + 5).min(9);
            photos.write_all(&writer, samples);
            writer.finish().unwrap();
        }
    };
    parts("whole", false);
    commit_parts(&photos.root.join("whole"), "train", false, &()).unwrap();
    let expected = snapshot(&photos.root.join("whole"));
    for force in [false, true] {
        let mut stops = 0;
        for at in 0.. {
            let name = format!("set-{force}-{at}");
            let destination = photos.root.join(&name);
            if force {
                let old = with!(photos.options(&name), shard_size = 900);
                photos.written(&old);
            }
            parts(&name, force);
            match commit_parts(&destination, "train", force, &Stop(AtomicUsize::new(at))) {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, Error::Stopped), "{error}"),
            }
            stops += 1;
            commit_parts(&destination, "train", force, &()).unwrap();
            assert!(snapshot(&destination) == expected, "{force} {at}: {:?}", names(&destination));
        }
        assert!(stops >= 7, "{stops}");
    }
}

#[test]
fn threads_write_every_sample_once() {
    let photos = Photos::new(16);
    let options = with!(photos.options("set"), shard_size = 4000);
    let writer = Writer::open(&options).unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, SeqCst);
                    if i >= photos.samples.len() {
                        return;
                    }
                    assert!(photos.write(&writer, i).unwrap());
                }
            });
        }
    });
    writer.finish().unwrap();
    let found = check(&options.destination, "train");
    assert_eq!(found.len(), 48);
    photos.samples.iter().for_each(|(key, image)| assert!(found[key].0 == *image, "{key}"));
}

#[test]
fn refuses_a_bad_sample_and_accepts_the_next() {
    let photos = Photos::new(2);
    let writer = Writer::open(&photos.options("set")).unwrap();
    let good = &photos.samples[0].1;
    let sample = Sample { key: "k", image: Some(Image::File(good)), label: Some(Label::Id(1)), values: vec![] };
    let refused = |sample: Sample<'_>, expected: &str| {
        let error = chain(&writer.write(&sample).unwrap_err());
        assert!(error.starts_with("sample `k`: ") && error.contains(expected), "{error}");
    };
    refused(Sample { image: None, ..sample.clone() }, "it has no image");
    refused(Sample { image: Some(Image::File(b"text")), ..sample.clone() }, "not an image");
    refused(Sample { image: Some(Image::File(&good[..200])), ..sample.clone() }, "");
    refused(Sample { label: None, ..sample.clone() }, "no label");
    refused(Sample { label: Some(Label::Id(3)), ..sample.clone() }, "`3` is not among the 3 classes");
    refused(Sample { label: Some(Label::Name("yak")), ..sample.clone() }, "`yak` is not among the 3 classes");
    let with = |name, value| Sample { values: vec![(name, value)], ..sample.clone() };
    refused(with("wieght", Value::Float(vec![1.0])), "`wieght` is not among the writer's features");
    refused(with("weight", Value::Bytes(vec![])), "`weight` is not float");
    assert!(writer.write(&with("weight", Value::Int64(vec![2]))).unwrap());
    refused(sample.clone(), "written before");
    assert_eq!(writer.finish().unwrap().unwrap().split.records(), 1);
    let destination = photos.root.join("set");
    let stored = data(&destination);
    assert_eq!(Example::parse(&stored[0]).unwrap().get("weight").unwrap().count(), 1);
}

#[test]
fn arrays_are_stored_without_loss() {
    let temp = tempfile::tempdir().unwrap();
    let pixels = picture(5, 31, 17).into_raw();
    let stored = |name: &str, store: PixelStore, jpeg: bool, array: &[u8], channels: u8| {
        let options = with!(WriterOptions::new(temp.path().join(name), "train"), pixels = store);
        let writer = Writer::open(&options).unwrap();
        let image = PixelArray::new(array, 31, 17, channels, jpeg).map(Image::Pixels);
        writer.write(&Sample { key: "a", image, label: None, values: vec![] }).unwrap();
        writer.finish().unwrap();
        let record = data(&options.destination).remove(0);
        let example = Example::parse(&record).unwrap();
        let number = |name| example.int64(name).unwrap();
        assert_eq!((number("image/width"), number("image/height")), (31, 17));
        let format = String::from_utf8(example.bytes("image/format").unwrap().to_vec()).unwrap();
        (format, number("image/channels"), example.bytes("image/encoded").unwrap().to_vec())
    };
    let (format, channels, png) = stored("png", PixelStore::Encoded, false, &pixels, 3);
    assert_eq!((&*format, channels), ("png", 3));
    assert!(image::load_from_memory(&png).unwrap().into_rgb8().into_raw() == pixels);
    let (format, channels, raw) = stored("raw", PixelStore::Raw, false, &pixels, 3);
    assert!((&*format, channels) == ("raw", 3) && raw == pixels);
    let (format, ..) = stored("zstd", PixelStore::RawZstd { level: 3 }, false, &pixels, 3);
    assert_eq!(format, "raw-zstd");
    let (format, ..) = stored("jpeg", PixelStore::Encoded, true, &pixels, 3);
    assert_eq!(format, "jpeg");
    let grey = &pixels[..31 * 17];
    let (format, channels, png) = stored("grey", PixelStore::Encoded, false, grey, 1);
    assert!(
        (&*format, channels) == ("png", 1) && image::load_from_memory(&png).unwrap().into_luma8().into_raw() == grey
    );
    let (.., raw) = stored("grey raw", PixelStore::Raw, false, grey, 1);
    assert!(raw.chunks(3).zip(grey).all(|(rgb, value)| rgb == [*value; 3]));
    assert!(
        PixelArray::new(&pixels, 31, 16, 3, false).is_none() && PixelArray::new(&pixels, 31, 17, 5, false).is_none()
    );
}

#[test]
fn writes_samples_without_images() {
    let temp = tempfile::tempdir().unwrap();
    let options = with!(
        WriterOptions::new(temp.path().join("set"), "train"),
        images = false,
        features = vec![("text".to_owned(), DType::Bytes), ("score".to_owned(), DType::Float)]
    );
    let writer = Writer::open(&options).unwrap();
    for i in 0..5 {
        let values = vec![
            ("text", Value::Bytes(vec![format!("line {i}").into_bytes()])),
            ("score", Value::Float(vec![i as f32])),
        ];
        writer.write(&Sample { key: &i.to_string(), image: None, label: None, values }).unwrap();
    }
    writer.finish().unwrap();
    let manifest = crate::support::manifest(&options.destination);
    assert_eq!(manifest.image, None);
    let features: Vec<_> = manifest.features.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(features, ["image/key", "score", "text"]);
    assert_eq!(check(&options.destination, "train").len(), 5);
}

#[test]
fn columns_and_conditions_of_a_split_are_those_of_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let features = [("size", DType::Int64), ("score", DType::Float), ("exact", DType::Float64), ("big", DType::Uint64)];
    let options = WriterOptions::new(folder.path(), "train").with_features(features).with_labels(true);
    let writer = Writer::open(&with!(options, images = false, shard_size = 400)).unwrap();
    for number in 0..40i64 {
        let key = format!("{number:02}");
        let mut sample = Sample::new(&key).with_label(number % 3).with_value("exact", Value::Float64(vec![0.1]));
        // The first shards have no record with a size, some records have none, and some have two.
        let sizes = [vec![], vec![number], vec![number, 1]];
        sample = sample.with_value("size", sizes[if number < 20 { 0 } else { number as usize % 3 }].clone());
        sample = sample.with_value("big", Value::Uint64(vec![u64::MAX - number as u64]));
        writer.write(&sample).unwrap();
    }
    writer.finish().unwrap();
    let dataset = shardtool_read::Dataset::open(folder.path()).unwrap();
    let split = dataset.split("train").unwrap();
    assert!(split.entry().shards.len() > 3);
    let size = |number: i64| (number >= 20 && number % 3 == 1).then_some(number);
    assert_eq!(split.column::<i64>("size").unwrap().unwrap(), (0..40).map(size).collect::<Vec<_>>());
    assert_eq!(split.column::<f64>("exact").unwrap().unwrap(), vec![Some(0.1); 40]);
    let big: Vec<_> = (0..40).map(|number| Some(u64::MAX - number)).collect();
    assert_eq!(split.column::<u64>("big").unwrap().unwrap(), big);
    assert_eq!(split.column::<f32>("score").unwrap().unwrap(), vec![None; 40], "no record has it");
    assert!(split.column::<f32>("size").unwrap().is_none() && split.column::<i64>("other").unwrap().is_none());
    let matching = split.matching(["size>=30", "image/class/label=1"]).unwrap();
    assert_eq!(matching, (30..40).filter(|number| number % 3 == 1).collect::<Vec<u64>>());
    assert!(chain(&split.matching(["size~3"]).unwrap_err()).contains("size~3"));
    assert!(matches!(split.shard(1_000), Err(shardtool_read::Error::NoShard { number: 1_000, .. })));
    let keys: Vec<_> = split.records(38..u64::MAX).map(|record| record.unwrap().key().unwrap().into_owned()).collect();
    assert_eq!(keys, [b"38", b"39"]);

    // A manifest that claims more records than its shards have is an error, not an allocation.
    let path = folder.path().join("dataset.json");
    let mut manifest = shardtool_format::manifest::Manifest::parse(&fs::read(&path).unwrap()).unwrap();
    manifest.splits[0].shards[0].records = 1 << 60;
    fs::write(&path, manifest.to_json()).unwrap();
    let dataset = shardtool_read::Dataset::open(folder.path()).unwrap();
    let error = dataset.split("train").unwrap().column::<i64>("size").unwrap_err();
    assert!(
        matches!(error, shardtool_read::Error::RecordCount { .. } | shardtool_read::Error::IndexMismatch { .. }),
        "{error:?}"
    );
}
