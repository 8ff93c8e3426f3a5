//! Pascal VOC: sizes and boxes that cannot be meant, and lists that lie elsewhere.

use crate::nested::{Found, features};
use crate::support::{chain, check, jpeg, put};
use crate::voc::{Made, counts, has, object};
use shardtool_pack::{SourceKind, SplitNames, pack_splits};
use std::collections::BTreeMap;
use std::fs;

#[test]
fn a_size_of_0_is_unknown_and_any_other_that_is_none_is_rejected() {
    let dog = object("dog", [1.0, 1.0, 2.0, 2.0], "");
    for (size, unknown) in [
        ("<width>0</width><height>0</height>", true),
        ("", true),
        ("<depth>3</depth>", true),
        ("<width>40.0</width><height>20</height>", false),
    ] {
        let made = Made::new(&["a", "b"]);
        made.xml("b", &format!("<annotation><size>{size}</size>{dog}</annotation>"));
        let summary = made.packed().remove(0);
        assert_eq!(summary.rejected, 0, "{size}");
        let found = &features(&made.path("set"))["b.jpg"];
        for (name, side) in [("width", 40), ("height", 20)] {
            let expected = if unknown { vec![] } else { vec![side] };
            assert_eq!(found[name], Found::Int(expected), "{size}");
        }
        assert_eq!(summary.left_out.iter().any(|text| text.contains("`size` of 0, in place of which")), unknown);
    }
    for (size, part) in [
        ("<width>40</width>", "40 x 0"),
        ("<width>0</width><height>20</height>", "0 x 20"),
        ("<width>-40</width><height>-20</height>", "-40 x -20"),
        ("<width>40.5</width><height>20</height>", "40.5 x 20"),
        ("<width>1e12</width><height>20</height>", "x 20"),
        ("<width>40</width><height>20</height><height>30</height>", "another <height> of <size>"),
    ] {
        let made = Made::new(&["a", "b"]);
        made.xml("b", &format!("<annotation>\n<size>{size}</size>{dog}</annotation>"));
        let reason = made.reason(&made.options());
        assert!(reason.contains("`Annotations/b.xml`, line 2") && reason.contains(part), "{part}: {reason}");
    }
}

#[test]
fn boxes_that_are_inverted_or_have_a_corner_twice_are_rejected() {
    for corners in [[10.0, 1.0, 9.0, 5.0], [10.0, 1.0, 9.5, 5.0], [1.0, 10.0, 5.0, 9.75]] {
        let made = Made::new(&["a", "b"]);
        made.annotate("b", &object("dog", corners, ""));
        let reason = made.reason(&made.options());
        assert!(reason.contains("bndbox of object 0") && reason.contains("not before xmin and ymin"), "{reason}");
    }
    let good = object("dog", [1.0, 1.0, 2.0, 2.0], "");
    for (text, part) in [
        (good.replace("</ymax>", "</ymax><ymax>9</ymax>"), "another <ymax> of <bndbox>"),
        (good.replace("</name>", "</name><difficult>0</difficult><difficult>1</difficult>"), "another <difficult>"),
    ] {
        let made = Made::new(&["a", "b"]);
        made.annotate("b", &text);
        let reason = made.reason(&made.options());
        assert!(reason.contains("`Annotations/b.xml`, line 1") && reason.contains(part), "{part}: {reason}");
    }
    let made = Made::new(&["a"]);
    made.annotate("a", &good.replace("<object>", "<object id=\"3\">").replace("</ymax>", "</ymax><angle>9</angle>"));
    let left_out = made.packed().remove(0).left_out;
    for part in ["`id` of <object> (1 times)", "`bndbox/angle` (1 times)"] {
        has(&left_out, part);
    }
}

#[test]
fn annotations_may_have_capitals_in_their_extension() {
    let made = Made::new(&["a", "b"]);
    fs::rename(made.path("voc/Annotations/a.xml"), made.path("voc/Annotations/a.XML")).unwrap();
    put(&made.path("voc/Annotations/b.Xml"), b"<annotation/>");
    let summary = made.packed().remove(0);
    assert_eq!((summary.samples, summary.rejected), (2, 0));
    assert!(!summary.left_out.iter().any(|text| text.contains("not XML")), "{:?}", summary.left_out);
    fs::remove_dir_all(made.path("set")).unwrap();
    made.xml("b", "<annotation/>");
    made.refused(&made.options(), &["two files annotate the image b"]);
}

#[test]
fn lists_are_read_from_the_root_and_those_that_are_not_are_named() {
    let made = Made::new(&["a", "b", "c"]);
    for name in ["b", "c"] {
        made.annotate(name, "");
    }
    // Action and Layout alone: all images together would join their splits.
    put(&made.path("voc/ImageSets/Action/train.txt"), b"a 1\n");
    put(&made.path("voc/ImageSets/Action/jumping_train.txt"), b"a 1 1\n");
    made.refused(&made.options(), &["ImageSets/Action (train.txt) are not read", "ImageSets/Main", "--splits none"]);
    let all = with!(made.options(), split_names = SplitNames::Ignored, destination = made.path("all"));
    assert_eq!(counts(&pack_splits(&all, &()).unwrap()), BTreeMap::from([("train", 3)]));
    // In the folder of the images and annotations.
    put(&made.path("voc/classes.txt"), b"dog\n");
    put(&made.path("voc/train.txt"), b"a\n");
    put(&made.path("voc/test.txt"), b"b\nc\n");
    let summaries = made.packed();
    assert_eq!(counts(&summaries), BTreeMap::from([("test", 2), ("train", 1)]));
    has(&summaries[0].left_out, "ImageSets: Action, whose lists are not read");
    has(&summaries[0].left_out, "classes.txt: not of Pascal VOC");
    // Next to those of Main.
    fs::remove_dir_all(made.path("set")).unwrap();
    made.set("train", "a\n");
    put(&made.path("voc/ImageSets/Main/notes.md"), b"x");
    put(&made.path("voc/ImageSets/val.txt"), b"b\n");
    let summaries = made.packed();
    assert_eq!(counts(&summaries), BTreeMap::from([("train", 1)]));
    for part in [
        "ImageSets: Action, val.txt, whose lists are not read",
        "ImageSets/Main: files that are no lists (notes.md)",
        "classes.txt, test.txt, train.txt: not of Pascal VOC",
    ] {
        has(&summaries[0].left_out, part);
    }
}

#[test]
fn a_folder_that_is_voc_and_yolo_is_asked_about() {
    let made = Made::new(&["a"]);
    put(&made.path("voc/images/b.jpg"), &jpeg(7, 40, 20));
    put(&made.path("voc/labels/b.txt"), b"0 0.5 0.5 0.5 0.5\n");
    made.refused(&made.options(), &["is Pascal VOC", "YOLO", "--from voc or --from yolo"]);
    for (from, key) in [(SourceKind::Voc, "a.jpg"), (SourceKind::Yolo, "images/b.jpg")] {
        let _ = fs::remove_dir_all(made.path("set"));
        pack_splits(&with!(made.options(), from = Some(from)), &()).unwrap();
        assert_eq!(check(&made.path("set"), "train").into_keys().collect::<Vec<_>>(), [key]);
    }
}

#[test]
fn two_members_of_one_feature_are_refused() {
    let made = Made::new(&["a"]);
    made.annotate("a", "<class_mask>3</class_mask>");
    put(&made.path("voc/SegmentationClass/a.png"), b"x");
    made.refused(&made.options(), &["two members become the feature `class_mask`", "rename one"]);
}

#[test]
fn splits_that_are_packed_one_after_the_other_share_no_image() {
    let made = Made::new(&["a", "b", "c"]);
    for name in ["b", "c"] {
        made.annotate(name, "");
    }
    made.set("train", "a\nb\n");
    made.set("val", "b\nc\n");
    let of =
        |split: &str, set: &str| with!(made.options(), split = Some(split.to_owned()), destination = made.path(set));
    pack_splits(&of("train", "both"), &()).unwrap();
    for split in ["val", "validation"] {
        let text = chain(&pack_splits(&of(split, "both"), &()).unwrap_err());
        let first = format!("b is in the list of split {split}, and in that of split train");
        for part in [&*first, "both holds train", "another dataset"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    assert_eq!(counts(&pack_splits(&of("val", "other"), &()).unwrap()), BTreeMap::from([("val", 2)]));
    made.set("val", "c\n");
    assert_eq!(counts(&pack_splits(&of("val", "both"), &()).unwrap()), BTreeMap::from([("val", 1)]));
}
