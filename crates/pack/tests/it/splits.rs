//! Splits keep their names: by the names of files and top folders, in one command with one list of classes; refused where names
//! may be meant in two ways; a split without records is not published.

use crate::support::{chain, check, jpeg, manifest, put, rejected, snapshot, tar};
use shardtool_pack::{
    AdoptOptions, Error, Options, Part, Progress, SourceError, SourceKind, SplitNames, Step, adopt, commit_split, pack,
    pack_part, pack_splits, plan_splits, write_plans,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Made {
    _temp: tempfile::TempDir,
    source: PathBuf,
    set: PathBuf,
}

/// A folder `data` with these files; those that end in `.tar` are WebDataset shards of one image of the class `NAME`.
fn made(files: &[&str]) -> Made {
    let temp = tempfile::tempdir().unwrap();
    let source = temp.path().join("data");
    for (seed, file) in files.iter().enumerate() {
        let image = jpeg(seed as u32, 24, 20);
        let class = ["cat", "dog"][seed % 2];
        let bytes = match file.rsplit_once('.') {
            Some((_, "tar")) => tar(&[("a.jpg", &image), ("a.cls", class.as_bytes())]),
            Some((_, "txt")) => b"no image".to_vec(),
            _ => image,
        };
        put(&source.join(file), &bytes);
    }
    Made { source, set: temp.path().join("set"), _temp: temp }
}

impl Made {
    fn options(&self) -> Options {
        Options::new(&self.source, &self.set)
    }

    /// Names and record counts of the splits that a pack makes, which a plan lists before.
    fn packed(&self, options: &Options) -> Result<Vec<(String, u64)>, Error> {
        let planned: Vec<_> =
            plan_splits(options)?.iter().map(|plan| (plan.split().to_owned(), plan.images())).collect();
        let summaries = pack_splits(options, &())?;
        assert!(summaries.iter().all(|one| one.samples == one.split.records() + one.rejected));
        let found: Vec<_> = summaries.iter().map(|one| (one.split.name.clone(), one.split.records())).collect();
        assert_eq!(found, planned);
        found.iter().for_each(|(split, records)| assert_eq!(check(&self.set, split).len() as u64, *records));
        Ok(found)
    }

    fn refused(&self, options: &Options, parts: &[&str]) {
        let before = self.set.exists();
        let text = chain(&self.packed(options).unwrap_err());
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        assert_eq!(self.set.exists(), before, "{text}");
    }
}

fn splits(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|(split, records)| ((*split).to_owned(), *records)).collect()
}

#[test]
fn files_name_their_splits() {
    for (files, expected) in [
        (
            &["train-00000-of-00002.tar", "train-00001-of-00002.tar", "validation-00000-of-00001.tar"][..],
            &[("train", 2), ("validation", 1)][..],
        ),
        (&["x-train-0000.tar", "x-test-0000.tar", "x-test-0001.tar"], &[("test", 2), ("train", 1)]),
        (&["train2017.tar", "val2017.tar"], &[("train", 1), ("val", 1)]),
        (&["train_sft-00000-of-00001.tar", "train_gen-00000-of-00001.tar"], &[("train_gen", 1), ("train_sft", 1)]),
        (&["train/0.tar", "val/0.tar", "val/1.tar"], &[("train", 1), ("val", 2)]),
        (&["test-0.tar", "test-1.tar"], &[("test", 2)]),
        (&["0.tar", "1.tar"], &[("train", 2)]),
    ] {
        let made = made(files);
        assert_eq!(made.packed(&made.options()).unwrap(), splits(expected), "{files:?}");
        let none = with!(made.options(), split_names = SplitNames::Ignored, destination = made.set.join("../one"));
        if files.iter().all(|file| !file.contains('/')) {
            assert_eq!(pack(&none, &()).unwrap().split.name, "train");
        }
    }
}

#[test]
fn archives_of_several_splits_have_one_list_of_classes_and_types() {
    let temp = tempfile::tempdir().unwrap();
    let sample = |class: &str, json: &str| {
        tar(&[("a.jpg", &jpeg(1, 20, 20)), ("a.cls", class.as_bytes()), ("a.json", json.as_bytes())])
    };
    put(&temp.path().join("data/train-0.tar"), &sample("dog", r#"{"x": 1}"#));
    put(&temp.path().join("data/test-0.tar"), &sample("cat", r#"{"x": 0.5, "y": "z"}"#));
    pack_splits(&Options::new(temp.path().join("data"), temp.path().join("set")), &()).unwrap();
    let manifest = manifest(&temp.path().join("set"));
    assert_eq!(manifest.classes, ["cat", "dog"]);
    assert!(manifest.features.iter().any(|feature| feature.name == "x" && feature.dtype.name() == "float"));
    let label = |split| check(&temp.path().join("set"), split).into_values().next().unwrap().1;
    assert_eq!((label("train"), label("test")), (Some(1), Some(0)));
}

#[test]
fn a_given_split_takes_the_files_of_its_name() {
    let made = made(&["train-0.tar", "val-0.tar", "val-1.tar"]);
    let of = |split: &str| {
        with!(made.options(), split = Some(split.to_owned()), map = vec![("label".to_owned(), "none".to_owned())])
    };
    assert_eq!(made.packed(&of("val")).unwrap(), splits(&[("val", 2)]));
    // Another spelling of the same.
    assert_eq!(made.packed(&of("validation")).unwrap(), splits(&[("validation", 2)]));
    made.refused(&of("test"), &["no file is named for split test", "train, val", "*train*", "--splits none"]);
    made.refused(&of("mine"), &["train, val"]);
    // One file that the user names, and a name for files of one split.
    let one = with!(of("mine"), source = made.source.join("val-0.tar"));
    assert_eq!(made.packed(&one).unwrap(), splits(&[("mine", 1)]));
    let renamed = with!(of("small"), source = made.source.join("val-*.tar"));
    assert_eq!(made.packed(&renamed).unwrap(), splits(&[("small", 2)]));
    let all = with!(of("all"), split_names = SplitNames::Ignored);
    assert_eq!(made.packed(&all).unwrap(), splits(&[("all", 3)]));
}

#[test]
fn refuses_files_whose_split_is_in_doubt() {
    for (files, parts) in [
        (&["train-0.tar", "extra.tar"][..], &["extra.tar is named for no split", "*train*", "--splits none"][..]),
        (&["train_val.tar", "test.tar"], &["train_val.tar has the names of several splits (train, val)"]),
        (&["val-0.tar", "validation-0.tar"], &["two spellings", "val-0.tar", "validation-0.tar"]),
        (&["train2014.tar", "train2017.tar"], &["different years"]),
        (&["trainval.tar", "train.tar", "x.tar"], &["x.tar"]),
    ] {
        let made = made(files);
        made.refused(&made.options(), parts);
        let all = with!(made.options(), split_names = SplitNames::Ignored);
        assert_eq!(made.packed(&all).unwrap(), splits(&[("train", files.len() as u64)]));
    }
}

#[test]
fn top_folders_name_splits_with_one_list_of_classes() {
    let made = made(&[
        "train/cat/0.jpg",
        "train/dog/1.jpg",
        "train/emu/2.jpg",
        "val/cat/3.jpg",
        "val/emu/4.jpg",
        "readme.txt",
    ]);
    assert_eq!(made.packed(&made.options()).unwrap(), splits(&[("train", 3), ("val", 2)]));
    assert_eq!(manifest(&made.set).classes, ["cat", "dog", "emu"]);
    assert_eq!(check(&made.set, "val")["emu/4.jpg"].1, Some(2));
    let summaries = pack_splits(&made.options(), &()).unwrap();
    assert!(summaries.iter().all(|one| one.already_complete && one.left_out[0].starts_with("readme.txt")));
    // One after the other, the classes are the same.
    let other = made.set.join("../other");
    for split in ["val", "train"] {
        pack(&with!(made.options(), split = Some(split.to_owned()), destination = other.clone()), &()).unwrap();
    }
    let without_plans = |set: &Path| {
        let mut files = snapshot(set);
        files.retain(|path, _| !path.to_string_lossy().contains(".packed-"));
        files
    };
    assert_eq!(without_plans(&other), without_plans(&made.set));
    // The source itself is a folder of this name.
    let one = with!(made.options(), source = made.source.join("val"), destination = made.set.join("../val"));
    assert_eq!(pack(&one, &()).unwrap().split.name, "val");
}

#[test]
fn top_folders_may_be_clips_or_images_without_classes() {
    let flat = made(&["train/0.jpg", "test/1.jpg", "test/2.jpg"]);
    assert_eq!(flat.packed(&flat.options()).unwrap(), splits(&[("test", 2), ("train", 1)]));
    let clips = made(&["train/a/x/0.jpg", "val/b/y/0.jpg"]);
    let options = with!(clips.options(), from = Some(SourceKind::Clips));
    assert_eq!(pack_splits(&options, &()).unwrap().len(), 2);
    assert_eq!(manifest(&clips.set).classes, ["a", "b"]);
    let mixed = made(&["train/cat/0.jpg", "test/1.jpg"]);
    mixed.refused(&mixed.options(), &["some of the splits have class folders", "--split NAME"]);
}

#[test]
fn one_class_may_be_called_train() {
    for files in [
        &["bus/0.jpg", "car/1.jpg", "train/2.jpg"][..],
        &["test_tube/0.jpg", "bullet_train/1.jpg", "cat/2.jpg", "dog/3.jpg", "owl/4.jpg"],
    ] {
        let made = made(files);
        assert_eq!(made.packed(&made.options()).unwrap(), splits(&[("train", files.len() as u64)]));
        assert_eq!(manifest(&made.set).classes.len(), files.len());
    }
}

#[test]
fn refuses_folders_that_may_be_splits_or_classes() {
    for files in [
        &["train/0.jpg", "test/1.jpg", "extra/2.jpg"][..],
        &["cat/0.jpg", "dog/1.jpg", "test/2.jpg"],
        &["train/cat/0.jpg", "extra/cat/1.jpg"],
        &["train_images/0.jpg", "test_images/1.jpg", "sample/2.jpg"],
    ] {
        let made = made(files);
        made.refused(&made.options(), &["splits, or classes", "--splits names", "--splits none"]);
        let names = with!(made.options(), split_names = SplitNames::Names, destination = made.set.join("../names"));
        assert_eq!(pack_splits(&names, &()).unwrap().len(), made.source.read_dir().unwrap().count());
        let classes = with!(made.options(), split_names = SplitNames::Ignored);
        assert_eq!(made.packed(&classes).unwrap(), splits(&[("train", files.len() as u64)]));
    }
    let twice = made(&["trainA/0.jpg", "trainB/1.jpg", "testA/2.jpg"]);
    twice.refused(&twice.options(), &["trainA, trainB are all named for split train"]);
    let inner = made(&["bottle/train/0.jpg", "bottle/test/1.jpg", "cable/train/2.jpg"]);
    inner.refused(&inner.options(), &["hold folders test, train, which would be mixed", "--splits none"]);
}

#[test]
fn layouts_are_no_classes() {
    for files in [
        &["images/train/0.jpg", "images/val/1.jpg", "labels/train/0.txt"][..],
        &["Annotations/0.txt", "JPEGImages/0.jpg", "ImageSets/Main/a.txt"],
        &["VOC2012/JPEGImages/0.jpg", "VOC2012/SegmentationClass/0.jpg"],
        &["images/0.jpg", "masks/0.jpg"],
        &["annotations/instances_train2017.txt", "train2017/0.jpg", "val2017/1.jpg"],
        &["train/images/0.jpg", "train/labels/0.txt", "val/images/1.jpg"],
        &["cat/images/0.jpg", "cat/masks/0.jpg"],
    ] {
        let made = made(files);
        made.refused(
            &made.options(),
            &["layout", "--from folder"].map(|part| if files[0].starts_with("cat") { "--from folder" } else { part }),
        );
    }
    // The names of Cityscapes are known, and those of its files.
    let cityscapes = made(&["leftImg8bit/train/a/0.jpg", "gtFine/train/a/0.jpg"]);
    cityscapes.refused(&cityscapes.options(), &["no file matches", "leftImg8bit/**_leftImg8bit.png"]);
    let forced = made(&["images/0.jpg", "masks/1.jpg"]);
    pack(&with!(forced.options(), from = Some(SourceKind::Folder)), &()).unwrap();
    assert_eq!(manifest(&forced.set).classes, ["images", "masks"]);
}

#[test]
fn names_of_systems_and_empty_folders_are_no_classes() {
    let made = made(&[
        "cat/0.jpg",
        "dog/1.jpg",
        "__MACOSX/cat/._0.txt",
        "@eaDir/0.txt",
        "cat/Thumbs.db",
        "dog/Thumbs.db",
        ".ipynb_checkpoints/2.jpg",
    ]);
    fs::create_dir_all(made.source.join("aaa/deeper")).unwrap();
    put(&made.source.join("bbb/.DS_Store"), b"x");
    let summary = pack(&made.options(), &()).unwrap();
    assert_eq!((summary.split.records(), summary.rejected), (2, 0));
    assert_eq!(manifest(&made.set).classes, ["cat", "dog"]);
    let expected = [".ipynb_checkpoints", "@eaDir", "Thumbs.db (2 times)", "__MACOSX", "aaa (empty)", "bbb (empty)"];
    assert_eq!(summary.left_out, expected);
}

#[test]
fn nothing_accepted_is_not_published_and_the_cured_source_packs() {
    let list = |made: &Made| {
        put(&made.source.join("list.csv"), b"path,label\n0.jpg,cat\n");
        put(&made.source.join("0.jpg"), b"no image");
        made.source.join("list.csv")
    };
    type Source = fn(&Made) -> PathBuf;
    let sources: [(Source, &str); 3] = [
        (
            |made| {
                put(&made.source.join("cat/0.jpg"), b"no image");
                made.source.clone()
            },
            "cat/0.jpg",
        ),
        (
            |made| {
                put(&made.source.join("a.tar"), &tar(&[("a.jpg", b"no image"), ("a.cls", b"1")]));
                made.source.clone()
            },
            "a.tar:a",
        ),
        (|made| made.source.join("list.csv"), "0.jpg"),
    ];
    for (source, input) in sources {
        let made = made(&[]);
        if input == "0.jpg" {
            list(&made);
        }
        let options = with!(made.options(), source = source(&made));
        let error = pack(&options, &()).unwrap_err();
        assert!(matches!(&error, Error::Source(SourceError::NothingAccepted { .. })), "{error:?}");
        assert!(chain(&error).contains(input) && chain(&error).contains("--allow-empty"), "{}", chain(&error));
        assert!(!made.set.join("dataset.json").exists());
        let left: Vec<_> = snapshot(&made.set).into_keys().collect();
        assert!(left.is_empty(), "{left:?}");
        // In parts.
        pack_part(&options, Part::new(0, 1).unwrap(), &()).unwrap();
        let commit = shardtool_pack::CommitOptions::new(&made.set, "train");
        assert!(chain(&commit_split(&commit, &()).unwrap_err()).contains(input));
        let cured = if input == "a.tar:a" { tar(&[("a.jpg", &jpeg(1, 9, 9)), ("a.cls", b"1")]) } else { jpeg(1, 9, 9) };
        put(&made.source.join(if input == "a.tar:a" { "a.tar" } else { input }), &cured);
        assert_eq!(pack(&options, &()).unwrap().split.records(), 1);
    }
}

#[test]
fn an_empty_split_is_published_on_request() {
    let made = made(&["0.txt"]);
    let summary = pack(&with!(made.options(), allow_empty = true), &()).unwrap();
    assert_eq!((summary.samples, summary.rejected, summary.split.records()), (1, 1, 0));
    assert_eq!(rejected(&summary.rejected_file.unwrap()).len(), 1);
}

#[test]
fn one_split_without_records_publishes_none_and_the_other_is_kept() {
    let made = made(&["train/cat/0.jpg", "val/cat/1.txt"]);
    made.refused_after(&["split val", "cat/1.txt"]);
    put(&made.source.join("val/cat/1.txt"), &jpeg(7, 9, 9));
    let summaries = pack_splits(&made.options(), &()).unwrap();
    assert_eq!(summaries.iter().map(|one| one.resumed_shards).collect::<Vec<_>>(), [1, 0]);
}

impl Made {
    fn refused_after(&self, parts: &[&str]) {
        let text = chain(&pack_splits(&self.options(), &()).unwrap_err());
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        assert!(!self.set.join("dataset.json").exists());
    }
}

/// Stops after a number of steps.
struct StopAt(AtomicUsize);

impl Progress for StopAt {
    fn after(&self, _: Step) -> ControlFlow<()> {
        match self.0.fetch_sub(1, SeqCst) {
            1 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[test]
fn splits_are_published_together_and_an_interrupted_run_continues() {
    let files = ["train/cat/0.jpg", "train/dog/1.jpg", "val/dog/2.jpg"];
    let whole = made(&files);
    pack_splits(&whole.options(), &()).unwrap();
    let expected = snapshot(&whole.set);
    for step in 1.. {
        let made = made(&files);
        let stopped = pack_splits(&made.options(), &StopAt(AtomicUsize::new(step))).is_err();
        let named = made.set.join("dataset.json").exists().then(|| manifest(&made.set).splits.len());
        assert!(named.is_none_or(|splits| splits == 2), "step {step}: {named:?}");
        pack_splits(&made.options(), &()).unwrap();
        // The listing's times differ, so that plans do.
        let files = snapshot(&made.set);
        let shards = |files: &BTreeMap<PathBuf, Vec<u8>>| -> Vec<_> {
            files
                .iter()
                .filter(|(path, _)| !path.to_string_lossy().contains(".packed-"))
                .map(|(p, b)| (p.clone(), b.clone()))
                .collect()
        };
        assert_eq!(shards(&files), shards(&expected), "step {step}");
        assert_eq!(files.len(), expected.len());
        if !stopped {
            assert!(step > 8, "{step}");
            break;
        }
    }
}

#[test]
fn parts_of_several_splits_have_one_list_of_classes() {
    let made = made(&["train-0.tar", "test-0.tar"]);
    let plans = write_plans(&made.options(), &()).unwrap();
    assert_eq!(plans.iter().map(|(plan, _)| plan.split()).collect::<Vec<_>>(), ["test", "train"]);
    let part = |split: Option<&str>| {
        pack_part(&with!(made.options(), split = split.map(str::to_owned)), Part::new(0, 1).unwrap(), &())
    };
    assert!(chain(&part(None).unwrap_err()).contains("the splits test, train"));
    for split in ["train", "test"] {
        assert_eq!(part(Some(split)).unwrap().records, 1);
        commit_split(&shardtool_pack::CommitOptions::new(&made.set, split), &()).unwrap();
    }
    let once = with!(made.options(), destination = made.set.join("../once"));
    pack_splits(&once, &()).unwrap();
    assert_eq!(manifest(&made.set), manifest(&once.destination));
}

#[test]
fn index_takes_the_same_names() {
    let image = made(&["0.jpg"]);
    pack(&image.options(), &()).unwrap();
    let shard = fs::read(image.set.join("train-00000.tfrecord")).unwrap();
    let indexed = |names: &[&str], split: Option<&str>| {
        let temp = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| put(&temp.path().join(name), &shard));
        let files: Vec<_> = names.iter().map(|name| temp.path().join(name)).collect();
        let options = with!(AdoptOptions::default(), split = split.map(str::to_owned));
        let splits = adopt(&files, &options, &()).map_err(|error| chain(&error))?;
        Ok::<_, String>(splits.into_iter().map(|split| (split.name.clone(), split.records())).collect::<Vec<_>>())
    };
    let tfds = ["mnist-train.tfrecord-00000-of-00001", "mnist-test.tfrecord-00000-of-00001"];
    assert_eq!(indexed(&tfds, None).unwrap(), splits(&[("test", 1), ("train", 1)]));
    assert_eq!(indexed(&tfds, Some("test")).unwrap(), splits(&[("test", 1)]));
    assert_eq!(indexed(&["a.tfrecord", "b.tfrecord"], Some("val")).unwrap(), splits(&[("val", 2)]));
    assert_eq!(
        indexed(&["train_small-00000.tfrecord", "mine-00000.tfrecord"], None).unwrap(),
        splits(&[("mine", 1), ("train_small", 1)])
    );
    assert!(indexed(&["train.tfrecord", "b.tfrecord"], None).unwrap_err().contains("b.tfrecord is named for no split"));
}
