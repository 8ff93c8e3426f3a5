//! Pascal VOC: boxes and splits are those of its files, each image is a record or named, and what may be meant in two ways is refused.

use crate::nested::{Found, features};
use crate::support::{chain, check, jpeg, manifest, put, rejected};
use shardtool_pack::{
    Error, IndexedAs, Options, SourceKind, SplitNames, Summary, index_source, indexed_as, pack_splits, source_kind,
};
use shardtool_read::{Dataset, Options as ReadOptions};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

pub(crate) struct Made(tempfile::TempDir);

impl Made {
    /// Images of 40 × 20, `a` with annotations.
    pub(crate) fn new(images: &[&str]) -> Self {
        let made = Made(tempfile::tempdir().unwrap());
        for (seed, name) in images.iter().enumerate() {
            put(&made.path(&format!("voc/JPEGImages/{name}.jpg")), &jpeg(seed as u32, 40, 20));
        }
        made.annotate("a", &object("dog", [11, 6, 30, 15].map(f64::from), ""));
        made
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn annotate(&self, name: &str, members: &str) {
        let size = "<size><width>40</width><height>20</height><depth>3</depth></size>";
        self.xml(name, &format!("<annotation><filename>{name}.jpg</filename>{size}{members}</annotation>"));
    }

    pub(crate) fn xml(&self, name: &str, text: &str) {
        put(&self.path(&format!("voc/Annotations/{name}.xml")), text.as_bytes());
    }

    pub(crate) fn set(&self, name: &str, lines: &str) {
        put(&self.path(&format!("voc/ImageSets/Main/{name}.txt")), lines.as_bytes());
    }

    pub(crate) fn options(&self) -> Options {
        Options::new(self.path("voc"), self.path("set"))
    }

    pub(crate) fn packed(&self) -> Vec<Summary> {
        pack_splits(&self.options(), &()).unwrap()
    }

    pub(crate) fn refused(&self, options: &Options, parts: &[&str]) {
        let text = chain(&pack_splits(options, &()).unwrap_err());
        parts.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        assert!(!self.path("set").exists(), "{text}");
    }

    /// Packs one image whose annotations are wrong, next to a good one; returns the reason.
    pub(crate) fn reason(&self, options: &Options) -> String {
        let summary = pack_splits(options, &()).unwrap().remove(0);
        assert_eq!((summary.samples, summary.rejected, summary.split.records()), (2, 1, 1));
        let mut reasons = rejected(&summary.rejected_file.unwrap());
        assert_eq!(reasons[0].0, "b.jpg");
        reasons.remove(0).1
    }
}

pub(crate) fn object(name: &str, [xmin, ymin, xmax, ymax]: [f64; 4], members: &str) -> String {
    format!(
        "<object><name>{name}</name>{members}<bndbox><xmax>{xmax}</xmax><xmin>{xmin}</xmin><ymax>{ymax}</ymax>\
         <ymin>{ymin}</ymin></bndbox></object>"
    )
}

/// Split → number of records.
pub(crate) fn counts(summaries: &[Summary]) -> BTreeMap<&str, u64> {
    summaries.iter().map(|one| (one.split.name.as_str(), one.split.records())).collect()
}

pub(crate) fn has(left_out: &[String], part: &str) {
    assert!(left_out.iter().any(|text| text.contains(part)), "{part}: {left_out:?}");
}

#[test]
fn boxes_classes_and_members_are_those_of_the_annotations() {
    let made = Made::new(&["a", "b", "c"]);
    let more = "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult><score>7</score>\
        <part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>";
    let objects = [
        object("dog", [11.0, 6.0, 30.0, 15.0], more),
        // The whole image, a pixel at its end, and numbers with fractions as in VOC2012.
        object("cat", [1.0, 1.0, 40.0, 20.0], "<score>8</score><occluded>1</occluded>"),
        object("cat", [40.0, 20.0, 40.0, 20.0], "<score>9</score>"),
        object("dog", [11.5, 3.25, 21.5, 18.0], "<score>10</score>"),
    ];
    made.annotate(
        "a",
        &format!(
            "<segmented>1</segmented><time>1700000000.123</time><code>007</code><folder>VOC2012</folder>{}",
            objects.concat()
        ),
    );
    made.annotate("b", "");
    made.annotate("c", &object("bird", [1.0, 1.0, 2.0, 2.0], "<score>11</score>"));
    let summary = made.packed().remove(0);
    assert_eq!((summary.split.name.as_str(), summary.samples, summary.rejected), ("train", 3, 0));
    assert_eq!(manifest(&made.path("set")).classes, ["bird", "cat", "dog"]);
    let all = features(&made.path("set"));
    let a = &all["a.jpg"];
    let boxes = [
        [10.0 / 40.0, 5.0 / 20.0, 30.0 / 40.0, 15.0 / 20.0],
        [0.0, 0.0, 1.0, 1.0],
        [39.0 / 40.0, 19.0 / 20.0, 1.0, 1.0],
        [10.5 / 40.0, 2.25 / 20.0, 21.5 / 40.0, 18.0 / 20.0],
    ];
    let floats = boxes.concat().into_iter().map(|edge: f64| edge as f32).collect();
    assert_eq!(a["image/object/bbox"], Found::Float(floats));
    for (name, expected) in [
        ("image/object/class/label", vec![2, 1, 1, 2]),
        ("image/object/difficult", vec![0, -1, -1, -1]),
        ("image/object/truncated", vec![1, -1, -1, -1]),
        ("image/object/occluded", vec![-1, 1, -1, -1]),
        ("image/object/score", vec![7, 8, 9, 10]),
        ("segmented", vec![1]),
        ("width", vec![40]),
        ("height", vec![20]),
    ] {
        assert_eq!(a[name], Found::Int(expected), "{name}");
    }
    assert_eq!(a["code"], Found::Bytes(vec!["007".to_owned()]));
    let time = manifest(&made.path("set")).features.into_iter().find(|feature| feature.name == "time");
    assert_eq!(time.map(|feature| feature.dtype.name()), Some("float64"));
    let poses = ["Left", "", "", ""].map(str::to_owned).to_vec();
    assert_eq!(a["image/object/pose"], Found::Bytes(poses));
    assert_eq!(a["image/filename"], Found::Bytes(vec!["a.jpg".to_owned()]));
    assert_eq!(all["b.jpg"]["image/object/class/label"], Found::Int(vec![]));
    assert!(!summary.left_out.iter().any(|text| text.contains("filename")), "{:?}", summary.left_out);
    for part in ["`part` of objects (1 times)", "`folder` (1 times)", "`size/depth` (3 times)"] {
        has(&summary.left_out, part);
    }
}

#[test]
fn numbers_that_count_from_0_are_refused_until_the_user_says_so() {
    let made = Made::new(&["a", "b"]);
    made.annotate("b", &object("dog", [0.0, 2.0, 20.0, 20.0], ""));
    let reason = made.reason(&made.options());
    assert!(reason.contains("coordinates from 1") && reason.contains("--first-pixel 0"), "{reason}");
    let from_0 = with!(made.options(), first_pixel = 0, destination = made.path("from 0"));
    pack_splits(&from_0, &()).unwrap();
    let all = features(&made.path("from 0"));
    let edges = |x: [f64; 4]| Found::Float(x.iter().map(|edge| *edge as f32).collect());
    assert_eq!(all["b.jpg"]["image/object/bbox"], edges([0.0, 2.0 / 20.0, 20.0 / 40.0, 1.0]));
    assert_eq!(all["a.jpg"]["image/object/bbox"], edges([11.0 / 40.0, 6.0 / 20.0, 30.0 / 40.0, 15.0 / 20.0]));
    for (first_pixel, from) in [(2, None), (0, Some(SourceKind::Folder))] {
        let options = with!(made.options(), first_pixel = first_pixel, from = from, destination = made.path("other"));
        assert!(matches!(pack_splits(&options, &()), Err(Error::Option { option: "first pixel", .. })));
    }
}

#[test]
fn lists_are_the_splits_and_no_image_is_in_two() {
    let made = Made::new(&["a", "b", "c", "d", "e"]);
    for name in ["b", "c", "d", "e"] {
        made.annotate(name, &object(name, [1.0, 1.0, 4.0, 4.0], ""));
    }
    made.set("train", "a\nb\n");
    made.set("val", "c\n\n");
    made.set("trainval", "a\nb\nc\n");
    made.set("test", "d\r\n");
    made.set("dog_train", "a  1\nb -1\n");
    put(&made.path("voc/ImageSets/Layout/train.txt"), b"a 1\n");
    let summaries = made.packed();
    assert_eq!(counts(&summaries), BTreeMap::from([("test", 1), ("train", 2), ("val", 1)]));
    let left_out = &summaries[0].left_out;
    for part in
        ["trainval.txt", "dog_train.txt", "Layout", "1 images that the lists of test, train, val do not name: e.jpg"]
    {
        has(left_out, part);
    }
    // Class ids are those of all annotations, whatever is packed.
    let of =
        |split: &str, set: &str| with!(made.options(), split = Some(split.to_owned()), destination = made.path(set));
    let trainval = pack_splits(&of("trainval", "trainval"), &()).unwrap();
    assert_eq!(counts(&trainval), BTreeMap::from([("trainval", 3)]));
    assert_eq!(manifest(&made.path("trainval")).classes, manifest(&made.path("set")).classes);
    assert_eq!(
        counts(&pack_splits(&of("validation", "validation"), &()).unwrap()),
        BTreeMap::from([("validation", 1)])
    );
    let all = with!(made.options(), split_names = SplitNames::Ignored, destination = made.path("all"));
    assert_eq!(counts(&pack_splits(&all, &()).unwrap()), BTreeMap::from([("train", 5)]));
    fs::remove_dir_all(made.path("set")).unwrap();
    made.refused(&of("dev", "set"), &["no list of images for split dev, but lists for test, train, val"]);
    made.set("test", "d\nb\n");
    made.refused(&made.options(), &["b is in the split test and in the split train", "--split NAME"]);
    assert_eq!(counts(&pack_splits(&of("test", "test"), &()).unwrap()), BTreeMap::from([("test", 2)]));
    made.set("test", "d\nd\n");
    made.refused(&made.options(), &["d is twice in the list of split test"]);
    put(&made.path("voc/JPEGImages/with space.jpg"), &jpeg(9, 40, 20));
    made.set("test", "with space\n");
    assert_eq!(counts(&pack_splits(&of("test", "space"), &()).unwrap()), BTreeMap::from([("test", 1)]));
    made.set("test", "d 1\n");
    made.refused(&made.options(), &["test.txt", "line 1", "1 and -1"]);
}

#[test]
fn each_image_is_a_record_or_rejected_for_its_reason() {
    let made = Made::new(&["a", "b", "c"]);
    made.set("train", "a\nb\nmissing\n");
    made.set("test", "c\n");
    let summaries = made.packed();
    let [test, train] = &summaries[..] else { panic!("two splits") };
    // All of the test set is without annotations, which are secret.
    assert_eq!((test.samples, test.rejected), (1, 0));
    has(&test.left_out, "split test: none of its 1 images has annotations");
    assert_eq!((train.samples, train.rejected, train.split.records()), (3, 2, 1));
    let reasons = rejected(train.rejected_file.as_ref().unwrap());
    let of = |input: &str| &reasons.iter().find(|(found, _)| found == input).unwrap().1;
    assert!(of("JPEGImages/missing").contains("no such file"));
    assert!(of("b.jpg").contains("`Annotations/b.xml`: no such file, but other images of the split have one"));
}

#[test]
fn annotations_that_cannot_be_read_are_named_by_file_and_line() {
    let good = object("dog", [1.0, 1.0, 2.0, 2.0], "");
    let deep = format!("<annotation>{}", "<a>".repeat(200_000));
    let laughs =
        "<!DOCTYPE a [<!ENTITY x \"ha\"><!ENTITY y \"&x;&x;\">]>\n<annotation><folder>&y;</folder></annotation>";
    for (text, parts) in [
        ("", &["`Annotations/b.xml`, line 1", "not XML"][..]),
        ("<annotation>\n<object></annotation>", &["line 2", "not XML"]),
        (laughs, &["not XML", "DTD"]),
        (&deep, &["not XML"]),
        ("<annotations></annotations>", &["expected <annotation>, found <annotations>"]),
        ("<annotation>\n<object><name>dog</name></object></annotation>", &["line 2", "object `dog` has no <bndbox>"]),
        (&format!("<annotation>{}</annotation>", good.replace("<name>dog</name>", "")), &["without <name>"]),
        (&format!("<annotation>{}</annotation>", good.replace("<ymin>1</ymin>", "")), &["<bndbox> has no <ymin>"]),
        (
            &format!("<annotation>{}</annotation>", good.replace("<ymin>1<", "<ymin>one<")),
            &["<ymin> is a number, found `one`"],
        ),
        (
            &format!("<annotation>{}</annotation>", good.replace("<ymin>1<", "<ymin>nan<")),
            &["<ymin> is a number, found `nan`"],
        ),
        (
            &format!("<annotation>{}</annotation>", good.replace("</name>", "</name><difficult>2</difficult>")),
            &["<difficult> is 0 or 1, found `2`"],
        ),
        (
            &format!("<annotation>{}</annotation>", good.replace("</name>", "</name><name>cat</name>")),
            &["another <name>"],
        ),
        (
            &format!("<annotation><size><width>30</width><height>40</height></size>{good}</annotation>"),
            &["30 x 40", "40 x 20"],
        ),
        (
            &format!("<annotation>{}</annotation>", object("dog", [9.0, 1.0, 5.0, 2.0], "")),
            &["not before xmin and ymin"],
        ),
        (&format!("<annotation>{}</annotation>", object("dog", [45.0, 1.0, 50.0, 2.0], "")), &["outside of the image"]),
    ] {
        let made = Made::new(&["a", "b"]);
        made.xml("b", text);
        let reason = made.reason(&made.options());
        parts.iter().for_each(|part| assert!(reason.contains(part), "{part}: {reason}"));
    }
    let made = Made::new(&["a", "b"]);
    put(&made.path("voc/Annotations/b.xml"), b"<annotation>\n\xff</annotation>");
    assert!(made.reason(&made.options()).contains("`Annotations/b.xml`, line 2: not UTF-8"));
}

#[test]
fn masks_go_with_their_images() {
    let made = Made::new(&["a", "b"]);
    made.annotate("b", "");
    let mut mask = vec![];
    let mut encoder = png::Encoder::new(&mut mask, 40, 20);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.write_header().unwrap().write_image_data(&[255; 800]).unwrap();
    put(&made.path("voc/SegmentationClass/a.png"), &mask);
    put(&made.path("voc/SegmentationClass/z.png"), &mask);
    let summary = made.packed().remove(0);
    assert_eq!((summary.samples, summary.rejected), (2, 0));
    has(&summary.left_out, "1 files of SegmentationClass without an image: z.png");
    let set = Dataset::open(made.path("set")).unwrap();
    let masks: Vec<Vec<u8>> = (0..2)
        .map(|id| set.splits()[0].get(id).unwrap())
        .map(|record| {
            let example = shardtool_format::example::Example::parse(record.data()).unwrap();
            example.bytes("class_mask").unwrap_or_default().to_vec()
        })
        .collect();
    assert!(masks.contains(&mask) && masks.contains(&vec![]), "{masks:?}");
    assert!(!manifest(&made.path("set")).features.iter().any(|feature| feature.name == "object_mask"));
}

#[test]
fn the_folder_is_found_below_and_one_of_several_is_asked_for() {
    let made = Made::new(&["a"]);
    put(&made.path("up/VOCdevkit/VOC2007/JPEGImages/x.jpg"), &jpeg(1, 40, 20));
    put(&made.path("up/VOCdevkit/VOC2007/Annotations/x.xml"), b"<annotation/>");
    put(&made.path("up/VOCdevkit/VOCcode/readme.txt"), b"x");
    for source in ["up", "up/VOCdevkit", "up/VOCdevkit/VOC2007"] {
        let options = Options::new(made.path(source), made.path(&format!("of {}", source.len())));
        let summaries = pack_splits(&options, &()).unwrap();
        assert_eq!((counts(&summaries), summaries[0].rejected), (BTreeMap::from([("train", 1)]), 0));
        let named = summaries[0].left_out.iter().any(|text| text.contains("VOCcode: next to VOC2007"));
        assert_eq!(named, !source.ends_with("2007"), "{source}");
    }
    put(&made.path("up/VOCdevkit/VOC2012/JPEGImages/x.jpg"), &jpeg(1, 40, 20));
    put(&made.path("up/VOCdevkit/VOC2012/Annotations/x.xml"), b"<annotation/>");
    let both = Options::new(made.path("up/VOCdevkit"), made.path("set"));
    made.refused(&both, &["VOC2007, VOC2012 are Pascal VOC datasets", "VOCdevkit/VOC2007"]);
    put(&made.path("flat/a.jpg"), &jpeg(1, 40, 20));
    let forced = with!(Options::new(made.path("flat"), made.path("set")), from = Some(SourceKind::Voc));
    made.refused(&forced, &["expected the folders Annotations and JPEGImages"]);
    put(&made.path("voc/JPEGImages/a.png"), b"x");
    made.refused(&made.options(), &["are both the image of Annotations/a.xml"]);
}

#[test]
fn an_index_has_the_records_of_a_pack() {
    let made = Made::new(&["a", "b", "c"]);
    made.annotate("b", &object("cat", [2.0, 2.0, 20.0, 12.0], "<difficult>1</difficult>"));
    made.set("train", "a\nb\nc\n");
    assert_eq!(source_kind(&made.path("voc")).unwrap(), Some(SourceKind::Voc));
    assert_eq!(indexed_as(&made.path("voc"), None).unwrap(), IndexedAs::VirtualShards);
    let packed = made.packed();
    let indexed = index_source(&Options::new(made.path("voc"), ""), &[], &()).unwrap();
    assert_eq!(indexed.dataset, made.path("voc"));
    let counts = |all: &[Summary]| -> Vec<_> {
        all.iter().map(|one| (one.samples, one.rejected, one.split.fingerprint())).collect()
    };
    assert_eq!(counts(&indexed.splits), counts(&packed));
    assert_eq!((packed[0].samples, packed[0].rejected), (3, 1));
    let read = ReadOptions::default().with_sources([made.path("voc").to_str().unwrap().to_owned()]);
    let (place, set) = (Dataset::open_with(made.path("voc"), read).unwrap(), Dataset::open(made.path("set")).unwrap());
    for id in 0..2 {
        assert_eq!(place.splits()[0].get(id).unwrap().data(), set.splits()[0].get(id).unwrap().data());
    }
    // The dataset in the folder is not part of the source, and the same command finds it complete.
    let again = index_source(&Options::new(made.path("voc"), ""), &[], &()).unwrap();
    assert!(
        again.splits[0].left_out.iter().all(|text| !text.contains("dataset.json")),
        "{:?}",
        again.splits[0].left_out
    );
    // Other annotations are another dataset, which is described again.
    made.xml("c", "<annotation><filename>another.jpg</filename></annotation>");
    let mended = index_source(&Options::new(made.path("voc"), ""), &[], &()).unwrap();
    assert_eq!((mended.splits[0].samples, mended.splits[0].rejected), (3, 0));
    has(&mended.splits[0].left_out, "`filename` (1 times)");
    assert_eq!(check_keys(&made), ["a.jpg", "b.jpg"]);
}

fn check_keys(made: &Made) -> Vec<String> {
    check(&made.path("set"), "train").into_keys().collect()
}

#[test]
fn lists_that_name_no_split_are_refused_and_links_are_one_file() {
    let made = Made::new(&["000", "001"]);
    for name in ["000", "001"] {
        made.annotate(name, &object("cat", [1.0, 1.0, 10.0, 10.0], ""));
    }
    made.set("train_set", "000\n");
    made.set("test_set", "001\n");
    made.refused(&made.options(), &["test_set.txt, train_set.txt", "--splits none"]);
    made.set("train", "000\n");
    made.set("test", "001\n");
    assert_eq!(counts(&made.packed()), BTreeMap::from([("test", 1), ("train", 1)]));
    fs::remove_dir_all(made.path("set")).unwrap();
    let (one, other) = (made.path("voc/JPEGImages/000.jpg"), made.path("voc/JPEGImages/001.jpg"));
    fs::remove_file(&other).unwrap();
    std::os::unix::fs::symlink(&one, &other).unwrap();
    made.refused(&made.options(), &["split train", "split test", "a model would be tested"]);
}
