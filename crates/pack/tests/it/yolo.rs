//! YOLO: labels, splits and classes are those that Ultralytics reads, each image is a record or named, and what it would change without
//! a word is rejected.

use crate::annotations::oriented;
use crate::nested::{Found, features};
use crate::support::{chain, jpeg, manifest, put, rejected};
use shardtool_pack::{
    Annotated, IndexedAs, Options, Resize, SourceKind, SplitNames, Summary, index_source, indexed_as, pack_splits,
    source_kind,
};
use shardtool_read::{Dataset, Options as ReadOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const YAML: &str = "train: images/train\nval: images/val\nnames:\n  0: person\n  1: dog\n";

pub(crate) struct Made(tempfile::TempDir);

impl Made {
    /// Images of 40 × 20.
    pub(crate) fn new(images: &[&str]) -> Self {
        let made = Made(tempfile::tempdir().unwrap());
        for (seed, name) in images.iter().enumerate() {
            made.put(name, &jpeg(seed as u32, 40, 20));
        }
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        put(&self.path(&format!("yolo/{name}")), bytes);
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path("yolo"), self.path("set"))
    }

    pub(crate) fn packed(&self, options: &Options) -> Vec<Summary> {
        let _ = fs::remove_dir_all(self.path("set"));
        let summaries = pack_splits(options, &()).unwrap();
        assert!(summaries.iter().all(|one| one.samples == one.split.records() + one.rejected));
        summaries
    }

    pub(crate) fn refused(&self, options: &Options, parts: &[&str]) {
        let _ = fs::remove_dir_all(self.path("set"));
        let text = chain(&pack_splits(options, &()).unwrap_err());
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        assert!(!self.path("set").exists(), "{text}");
    }
}

pub(crate) fn counts(summaries: &[Summary]) -> BTreeMap<&str, (u64, u64)> {
    summaries.iter().map(|one| (one.split.name.as_str(), (one.split.records(), one.rejected))).collect()
}

pub(crate) fn has(left_out: &[String], part: &str) {
    assert!(left_out.iter().any(|text| text.contains(part)), "{part}: {left_out:?}");
}

fn floats(numbers: &[f64]) -> Found {
    Found::Float(numbers.iter().map(|number| *number as f32).collect())
}

fn texts(texts: &[&str]) -> Found {
    Found::Bytes(texts.iter().map(|text| (*text).to_owned()).collect())
}

#[test]
fn boxes_polygons_and_classes_are_those_of_the_labels() {
    let made = Made::new(&["images/train/a.jpg", "images/train/b.jpg", "images/train/sub/c.jpg", "images/val/d.jpg"]);
    made.put(
        "data.yaml",
        format!("{YAML}nc: 2\nflip_idx: [0]\ndownload: https://example.org/a.zip\nlicense: x\n").as_bytes(),
    );
    // Centre 0.5, 0.25; half of the width and height.
    made.put("labels/train/a.txt", b"1 0.5 0.25 0.5 0.25\n\n0  1.0 1 0.5 0.5 \n");
    // A triangle, and an oriented box, which is a polygon of four points.
    made.put("labels/train/b.txt", b"0 0.1 0.2 0.5 0.9 0.3 0.4\n1 0 0 1 0 1 0.5 0 0.5\n");
    made.put("labels/train/orphan.txt", b"0 0.5 0.5 1 1\n");
    made.put("labels/val/d.txt", b"");
    let summaries = made.packed(&made.options());
    assert_eq!(counts(&summaries), BTreeMap::from([("train", (3, 0)), ("val", (1, 0))]));
    assert_eq!(manifest(&made.path("set")).classes, ["person", "dog"]);
    let all = features(&made.path("set"));
    let a = &all["images/train/a.jpg"];
    assert_eq!(a["image/object/bbox"], floats(&[0.25, 0.125, 0.75, 0.375, 0.75, 0.75, 1.25, 1.25]));
    assert_eq!(a["image/object/class/label"], Found::Int(vec![1, 0]));
    assert_eq!(a["image/object/segmentation"], texts(&["null", "null"]));
    let b = &all["images/train/b.jpg"];
    assert_eq!(b["image/object/bbox"], floats(&[0.1, 0.2, 0.5, 0.9, 0.0, 0.0, 1.0, 0.5]));
    // Pixels of 40 × 20, as COCO's polygons.
    let polygons = ["[[4.0,4.0,20.0,18.0,12.0,8.0]]", "[[0.0,0.0,40.0,0.0,40.0,10.0,0.0,10.0]]"];
    assert_eq!(b["image/object/segmentation"], texts(&polygons));
    let c = &all["images/train/sub/c.jpg"];
    assert_eq!((&c["image/object/class/label"], &c["image/object/bbox"]), (&Found::Int(vec![]), &floats(&[])));
    for part in [
        "split train: 1 of 3 images have no file of labels; they are packed as background",
        "`flip_idx`, without `kpt_shape`",
        "`download`, which is not run",
        "`license` of data.yaml",
        "1 files of labels without an image in any split: labels/train/orphan.txt",
    ] {
        has(&summaries[0].left_out, part);
    }
    // What is smaller has the same fractions, and polygons in its pixels.
    let half = with!(made.options(), resize = Some(Resize::Shorter(10)));
    made.packed(&half);
    let small = &features(&made.path("set"))["images/train/b.jpg"];
    assert_eq!(small["image/object/bbox"], b["image/object/bbox"]);
    assert_eq!(
        small["image/object/segmentation"],
        texts(&["[[2.0,2.0,10.0,9.0,6.0,4.0]]", "[[0.0,0.0,20.0,0.0,20.0,5.0,0.0,5.0]]"])
    );
}

#[test]
fn keypoints_have_the_shape_of_the_file() {
    let made = Made::new(&["images/train/a.jpg", "images/train/b.jpg"]);
    let yaml = |shape: &str| format!("train: images/train\nnames: [person]\nkpt_shape: {shape}\n");
    made.put("data.yaml", yaml("[2, 3]").as_bytes());
    made.put("labels/train/a.txt", b"0 0.5 0.5 1 1 0.25 0.5 2 0 0 0\n0 0.5 0.5 0.5 0.5 0.125 0.75 1 1 1 2\n");
    let summary = made.packed(&made.options()).remove(0);
    assert_eq!((summary.split.records(), summary.rejected), (2, 0));
    let all = features(&made.path("set"));
    let a = &all["images/train/a.jpg"];
    let points = [0.25, 0.5, 2.0, 0.0, 0.0, 0.0, 0.125, 0.75, 1.0, 1.0, 1.0, 2.0];
    assert_eq!(a["image/object/keypoints"], floats(&points));
    assert_eq!(a["image/object/keypoints/shape"], Found::Int(vec![2, 2, 3]));
    assert_eq!(all["images/train/b.jpg"]["image/object/keypoints/shape"], Found::Int(vec![0, 2, 3]));
    // Without a visibility they count as labelled.
    made.put("data.yaml", yaml("[3, 2]").as_bytes());
    made.put("labels/train/a.txt", b"0 0.5 0.5 1 1 0.25 0.5 0 0 0.75 1\n");
    made.packed(&made.options());
    let points = [0.25, 0.5, 1.0, 0.0, 0.0, 1.0, 0.75, 1.0, 1.0];
    assert_eq!(features(&made.path("set"))["images/train/a.jpg"]["image/object/keypoints"], floats(&points));
    made.put("labels/train/a.txt", b"0 0.5 0.5 1 1 0.25 0.5\n");
    let summary = made.packed(&made.options()).remove(0);
    assert!(rejected(&summary.rejected_file.unwrap())[0].1.contains("7 numbers, expected 11"));
    for shape in ["17", "[17]", "[17, 4]", "[0, 3]"] {
        made.put("data.yaml", yaml(shape).as_bytes());
        made.refused(&made.options(), &["`kpt_shape` is the number of keypoints"]);
    }
}

#[test]
fn labels_that_ultralytics_would_change_or_drop_are_rejected_by_file_and_line() {
    for (labels, part) in [
        (&b"0 0.5 0.5 0.5 0.5\n2 0.5 0.5 0.5 0.5"[..], "line 2: class 2, but there are 2 classes"),
        (b"0.5 0.5 0.5 0.5 0.5", "line 1: `0.5` is not the id of a class"),
        (b"-1 0.5 0.5 0.5 0.5", "line 1: `-1` is not the id of a class"),
        (b"dog 0.5 0.5 0.5 0.5", "line 1: `dog` is not a number"),
        (b"0 0.5 nan 0.5 0.5", "`nan` is not a number"),
        (b"0 0.5 1.01 0.5 0.5", "`1.01` is not a fraction of the image"),
        (b"0 0.5 -0.1 0.5 0.5", "`-0.1` is not a fraction of the image"),
        (b"0 20 10 40 20", "`20` is not a fraction of the image"),
        (b"0 0.5 0.5 0.5", "4 numbers, expected 5"),
        // As a prediction with its confidence.
        (b"0 0.5 0.5 0.5 0.5 0.9", "6 numbers, expected 5"),
        (b"0 0.1 0.2 0.5 0.9 0.3 0.4 0.5", "8 numbers, expected 5"),
        (b"0 0.1 0.2 0.5 0.9 0.3 0.4\n0 0.5 0.5 0.5 0.5", "line 2: a box, and line 1 is a polygon"),
        (b"0 0.5 0.5 0 0.5", "no width or no height"),
        (b"\xff", "line 1: not UTF-8"),
    ] {
        let made = Made::new(&["images/train/a.jpg", "images/train/b.jpg"]);
        made.put("data.yaml", YAML.replace("val: images/val\n", "").as_bytes());
        made.put("labels/train/a.txt", b"0 0.5 0.5 0.5 0.5\n");
        made.put("labels/train/b.txt", labels);
        let summary = made.packed(&made.options()).remove(0);
        assert_eq!((summary.samples, summary.rejected), (2, 1), "{part}");
        let (input, reason) = rejected(&summary.rejected_file.unwrap()).remove(0);
        assert!(input == "images/train/b.jpg" && reason.contains(part), "{part}: {reason}");
    }
    let made = Made::new(&["images/train/a.jpg"]);
    made.put("data.yaml", YAML.replace("val: images/val\n", "").as_bytes());
    made.put("labels/train/a.txt", b"0 0.5 0.5 0.5 0.5\n0 0.5 0.5 0.50 0.5\n");
    let summary = made.packed(&made.options()).remove(0);
    has(&summary.left_out, "1 lines of labels occur twice in their file: both are kept");
    assert_eq!(features(&made.path("set"))["images/train/a.jpg"]["image/object/class/label"], Found::Int(vec![0, 0]));
}

#[test]
fn a_turned_image_is_asked_about() {
    let made = Made::new(&["images/train/a.jpg"]);
    made.put("data.yaml", YAML.replace("val: images/val\n", "").as_bytes());
    // 40 × 20 as coded, 20 × 40 as shown.
    made.put("images/train/b.jpg", &oriented(40, 20, 6));
    for name in ["a", "b"] {
        made.put(&format!("labels/train/{name}.txt"), b"0 0.25 0.125 0.5 0.25\n");
    }
    let summary = made.packed(&made.options()).remove(0);
    assert!(rejected(&summary.rejected_file.unwrap())[0].1.contains("--annotated coded|upright"));
    made.packed(&with!(made.options(), annotated = Some(Annotated::Coded)));
    assert_eq!(features(&made.path("set"))["images/train/b.jpg"]["image/object/bbox"], floats(&[0.0, 0.0, 0.5, 0.25]));
    // The left half and upper quarter as shown are the left quarter and lower half as coded.
    made.packed(&with!(made.options(), annotated = Some(Annotated::Upright)));
    assert_eq!(features(&made.path("set"))["images/train/b.jpg"]["image/object/bbox"], floats(&[0.0, 0.5, 0.25, 1.0]));
}

#[test]
fn layouts_of_other_tools_are_found() {
    let label = b"0 0.5 0.5 0.5 0.5\n";
    let two = BTreeMap::from([("train", (1, 0)), ("val", (1, 0))]);
    let of = |files: &[&str]| {
        let made = Made::new(files);
        for file in files {
            let labels = file.replace("images/", "labels/").replace(".jpg", ".txt");
            made.put(&labels, label);
        }
        made
    };
    let made = of(&["images/train2017/a.jpg", "images/val2017/b.jpg"]);
    made.put("classes.txt", b"person\ndog\n");
    assert_eq!(counts(&made.packed(&made.options())), two);
    assert_eq!(manifest(&made.path("set")).classes, ["person", "dog"]);
    // Roboflow, whose file names folders above that do not exist.
    let made = of(&["train/images/a.jpg", "valid/images/b.jpg"]);
    let summaries = made.packed(&made.options());
    assert_eq!(counts(&summaries), BTreeMap::from([("train", (1, 0)), ("valid", (1, 0))]));
    has(&summaries[0].left_out, "no names of classes");
    made.put("data.yaml", b"train: ../train/images\nval: ../valid/images\nnc: 1\nnames: ['dog']\n");
    assert_eq!(counts(&made.packed(&made.options())), two);
    assert_eq!(manifest(&made.path("set")).classes, ["dog"]);
    // A test set that does not exist is named, where Ultralytics ignores it.
    made.put("data.yaml", b"train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnames: ['dog']\n");
    let summaries = made.packed(&made.options());
    assert_eq!(counts(&summaries), two);
    has(&summaries[0].left_out, "the images of test: no such folder or list: ../test/images");
    let one = with!(Options::new(made.path("yolo/valid"), made.path("set")), classes = None);
    assert_eq!(counts(&made.packed(&one)), BTreeMap::from([("valid", (1, 0))]));
    // Both layouts in one folder.
    let both = of(&["train/images/a.jpg", "images/b.jpg"]);
    both.refused(&both.options(), &["it holds images and labels, and so do train: which are the data?"]);
    // Folders without splits.
    let made = of(&["images/a.jpg", "images/b.jpg"]);
    made.put("notes/x.md", b"x");
    has(&made.packed(&made.options())[0].left_out, "notes: not of YOLO");
    assert_eq!(counts(&made.packed(&made.options())), BTreeMap::from([("train", (2, 0))]));
    let val = with!(made.options(), split = Some("val".to_owned()));
    assert_eq!(counts(&made.packed(&val)), BTreeMap::from([("val", (2, 0))]));
    // A list, next to the folder that `path` names.
    made.put("train.txt", b"./images/a.jpg\nimages/b.jpg\n./images/none.jpg\n");
    put(&made.path("coco.yaml"), b"path: yolo # of the file\ntrain: train.txt\nnames: [a]\n");
    let listed = Options::new(made.path("coco.yaml"), made.path("set"));
    let summary = made.packed(&listed).remove(0);
    assert_eq!((summary.samples, summary.rejected), (3, 1));
    assert!(rejected(&summary.rejected_file.unwrap())[0].1.contains("no such file"));
    // A folder of a machine that is not this one: the folder of the file has the images.
    made.put("data.yaml", b"path: /content/none\ntrain: [images]\nnames: [a]\n");
    assert_eq!(counts(&made.packed(&made.options())), BTreeMap::from([("train", (2, 0))]));
}

#[test]
fn splits_share_no_image_and_doubts_are_asked_about() {
    let made = Made::new(&["images/train/a.jpg", "images/val/b.jpg"]);
    for name in ["train/a", "val/b"] {
        made.put(&format!("labels/{name}.txt"), b"0 0.5 0.5 0.5 0.5\n");
    }
    made.put("data.yaml", YAML.as_bytes());
    let of = |split: &str| with!(made.options(), split = Some(split.to_owned()));
    let summaries = made.packed(&of("validation"));
    assert_eq!(counts(&summaries), BTreeMap::from([("validation", (1, 0))]));
    has(&summaries[0].left_out, "train: of other splits");
    made.refused(&of("test"), &["no list of images for split test, but lists for train, val"]);
    let all = with!(made.options(), split_names = SplitNames::Ignored);
    assert_eq!(counts(&made.packed(&all)), BTreeMap::from([("train", (2, 0))]));
    // As coco8.yaml and coco128.yaml are sometimes written.
    for (yaml, parts) in [
        (
            "train: images/train\nval: images/train\nnames: [a]\n",
            &["a.jpg is in the split train and in the split val", "--split NAME"][..],
        ),
        (
            "train: images/train\nval: images/none\nnames: [a]\n",
            &["the images of val: no such folder or list: images/none"],
        ),
        (
            "train: images/none\nval: images/val\nnames: [a]\n",
            &["the images of train: no such folder or list: images/none"],
        ),
        ("train: images/none\nnames: [a]\npath: where\n", &["neither", "where", "images/none", "correct `path`"]),
        ("train: https://example.org/a.txt\nnames: [a]\n", &["https://example.org/a.txt, which is not fetched"]),
        ("train: images/train\nnc: 3\nnames: [a, b]\n", &["`nc` is 3, but `names` has 2"]),
        ("train: images/train\nnames: {0: a, 2: b}\n", &["a mapping of all ids from 0"]),
        ("train: images/train\nnames: [a, a]\n", &["two classes have the name `a`"]),
        ("train: {a: b}\nnames: [a]\n", &["`train` is a path or a list of paths"]),
    ] {
        made.put("data.yaml", yaml.as_bytes());
        made.refused(&made.options(), parts);
    }
    // A damaged file is an error, although the folders alone are a layout.
    made.put("data.yaml", b"train: images/train\nnames: *a\n");
    made.refused(&made.options(), &["data.yaml", "line 2"]);
    made.put("data.yaml", YAML.as_bytes());
    made.put("other.yaml", YAML.as_bytes());
    made.refused(&made.options(), &["data.yaml, other.yaml each describe a dataset"]);
    fs::remove_file(made.path("yolo/other.yaml")).unwrap();
    fs::remove_dir_all(made.path("yolo/labels")).unwrap();
    made.refused(&made.options(), &["no image has a file of labels; expected, for example, labels/train/a.txt"]);
    let forced = with!(Options::new(made.path("yolo/images/val"), made.path("set")), from = Some(SourceKind::Yolo));
    made.refused(&forced, &["expected data.yaml, or the folders images and labels"]);
}

#[test]
fn an_index_has_the_records_of_a_pack() {
    let made = Made::new(&["images/train/a.jpg", "images/train/b.jpg", "images/val/c.jpg"]);
    made.put("data.yaml", YAML.as_bytes());
    made.put("labels/train/a.txt", b"1 0.5 0.25 0.5 0.25\n");
    made.put("labels/train/b.txt", b"1 0.5 0.25 0.5\n");
    for source in ["yolo", "yolo/data.yaml"] {
        assert_eq!(source_kind(&made.path(source)).unwrap(), Some(SourceKind::Yolo));
        assert_eq!(indexed_as(&made.path(source), None).unwrap(), IndexedAs::VirtualShards);
        let options = |destination: PathBuf| Options::new(made.path(source), destination);
        let packed = made.packed(&options(made.path("set")));
        let indexed = index_source(&options(PathBuf::new()), &[], &()).unwrap();
        assert_eq!(indexed.dataset, made.path("yolo"));
        let of = |all: &[Summary]| -> Vec<_> {
            all.iter().map(|one| (one.samples, one.rejected, one.split.fingerprint())).collect()
        };
        assert_eq!(of(&indexed.splits), of(&packed));
        assert_eq!(counts(&packed), BTreeMap::from([("train", (1, 1)), ("val", (1, 0))]));
        let read = ReadOptions::default().with_sources([made.path("yolo").to_str().unwrap().to_owned()]);
        let (place, set) =
            (Dataset::open_with(made.path("yolo"), read).unwrap(), Dataset::open(made.path("set")).unwrap());
        for split in 0..2 {
            assert_eq!(place.splits()[split].get(0).unwrap().data(), set.splits()[split].get(0).unwrap().data());
        }
    }
}

#[test]
fn a_file_is_in_one_split_however_its_path_is_written() {
    let images = ["images/train/a.jpg", "images/train/b.jpg", "images/val/c.jpg"];
    let lists = [("images/val/../train/a.jpg\n", ""), ("images//train/a.jpg\n", ""), ("link/a.jpg\n", "link")];
    for (list, link) in lists {
        let made = Made::new(&images);
        made.put("labels/train/a.txt", b"0 0.5 0.5 0.2 0.2\n");
        made.put("data.yaml", b"train: images/train\nval: val.txt\nnames: [owl]\n");
        made.put("val.txt", list.as_bytes());
        if !link.is_empty() {
            std::os::unix::fs::symlink(made.path("yolo/images/train"), made.path("yolo").join(link)).unwrap();
        }
        made.refused(&made.options(), &["split train", "split val", "a model would be tested"]);
        made.put("val.txt", b"images/val/c.jpg\n");
        assert_eq!(counts(&made.packed(&made.options())), BTreeMap::from([("train", (2, 0)), ("val", (1, 0))]));
    }
}

#[test]
fn names_of_classes_stay_those_of_the_labels() {
    let made = Made::new(&["images/train/a.jpg"]);
    made.put("labels/train/a.txt", b"0 0.5 0.5 0.2 0.2\n");
    made.put("data.yaml", b"train: images/train\nnames: [owl, cat]\n");
    let classes = made.path("classes.txt");
    let mut options = made.options();
    options.classes = Some(classes.clone());
    put(&classes, b"cat\nowl\n");
    made.refused(&options, &["--classes has other names", "another order"]);
    put(&classes, b"owl\ncat\n");
    made.packed(&options);
    assert_eq!(manifest(&made.path("set")).classes, ["owl", "cat"]);
    // Without data.yaml, the number of a line is the id.
    fs::remove_file(made.path("yolo/data.yaml")).unwrap();
    for wrong in ["owl\n\ncat\n", "owl\nowl\n"] {
        made.put("classes.txt", wrong.as_bytes());
        made.refused(&made.options(), &["classes.txt", "an empty line, or a name twice"]);
    }
    made.put("classes.txt", b"owl\ncat\n\n");
    made.packed(&made.options());
}

#[test]
fn a_list_that_is_no_regular_file_is_refused_without_waiting() {
    let made = Made::new(&["images/train/a.jpg"]);
    made.put("data.yaml", b"train: train.txt\nnames: [owl]\n");
    let list = made.path("yolo/train.txt");
    rustix::fs::mknodat(rustix::fs::CWD, &list, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    made.refused(&made.options(), &["train.txt", "not a regular file"]);
}
