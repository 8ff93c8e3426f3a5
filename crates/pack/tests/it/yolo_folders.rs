//! YOLO in folders: which of them are splits, and which keys their images have.

use crate::support::{check, put};
use crate::yolo::{Made, counts, has};
use shardtool_pack::{Options, SourceKind, SplitNames};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const LABEL: &[u8] = b"0 0.5 0.5 0.5 0.5\n";

/// Images with a file of labels each.
fn of(files: &[&str]) -> Made {
    let made = Made::new(files);
    for file in files {
        made.put(&file.replace("images/", "labels/").replace(".jpg", ".txt"), LABEL);
    }
    made
}

#[test]
fn folders_that_may_be_splits_are_never_joined_without_a_question() {
    // Named for splits among other words.
    for files in
        [["images/train_set/a.jpg", "images/test_set/b.jpg"], ["train_set/images/a.jpg", "test_set/images/b.jpg"]]
    {
        let made = of(&files);
        let expected = BTreeMap::from([("test", (1, 0)), ("train", (1, 0))]);
        assert_eq!(counts(&made.packed(&made.options())), expected, "{files:?}");
    }
    for (files, names) in [
        (["images/trn/a.jpg", "images/tst/b.jpg"], ["trn", "tst"]),
        (["trn/images/a.jpg", "tst/images/b.jpg"], ["trn", "tst"]),
        (["images/train/a.jpg", "images/tst/b.jpg"], ["train", "tst"]),
        (["train/images/a.jpg", "tst/images/b.jpg"], ["train", "tst"]),
    ] {
        let made = of(&files);
        for split in [None, Some("train".to_owned())] {
            let options = with!(made.options(), split = split);
            made.refused(&options, &["tst", "named for", "--splits names", "--splits none", "data.yaml"]);
        }
        let each = with!(made.options(), split_names = SplitNames::Names);
        assert_eq!(counts(&made.packed(&each)), names.into_iter().map(|name| (name, (1, 0))).collect());
        let one = with!(made.options(), split_names = SplitNames::Names, split = Some("tst".to_owned()));
        assert_eq!(counts(&made.packed(&one)), BTreeMap::from([("tst", (1, 0))]));
        let all = with!(made.options(), split_names = SplitNames::Ignored);
        assert_eq!(counts(&made.packed(&all)), BTreeMap::from([("train", (2, 0))]));
    }
    // Splits inside of folders, and files next to folders.
    let made = of(&["images/photos/train/a.jpg", "images/photos/test/b.jpg"]);
    made.refused(&made.options(), &["in images", "named for splits (test, train)", "--splits none"]);
    let made = of(&["images/train/a.jpg", "images/train/test/b.jpg"]);
    made.refused(&made.options(), &["in images/train", "named for splits (test)"]);
    let made = of(&["images/a.jpg", "images/tst/b.jpg"]);
    made.refused(&made.options(), &["(tst) are named for no split"]);
    let made = of(&["images/a.jpg", "images/train/b.jpg", "images/train_2/c.jpg"]);
    made.refused(&made.options(), &["two folders are named for split train (train, train_2)"]);
    let made = of(&["images/a.jpg", "images/train/b.jpg"]);
    let summaries = made.packed(&made.options());
    assert_eq!(counts(&summaries), BTreeMap::from([("train", (1, 0))]));
    has(&summaries[0].left_out, "1 files of images that are in no folder of a split: a.jpg");
    // One folder is all there is.
    let made = of(&["images/2024/a.jpg", "images/2024/summer/b.jpg"]);
    assert_eq!(counts(&made.packed(&made.options())), BTreeMap::from([("train", (2, 0))]));
}

#[test]
fn a_description_that_cannot_be_read_is_an_error_whatever_the_folders_are() {
    let broken: &[u8] = b"train: images/train\nnames: *a\n";
    for (name, text, parts) in [
        ("data.yaml", broken, &["data.yaml", "line 2", "--from"][..]),
        ("DATA.YAML", broken, &["DATA.YAML", "line 2"]),
        ("mine.yml", broken, &["mine.yml", "line 2"]),
        ("data.yaml", b"names: [a]\n", &["data.yaml", "expected `train`, `val` or `test`"]),
        ("data.yaml", b"train: images/train\n", &["data.yaml", "`names` or `nc`"]),
        ("data.yaml", b"- a\n", &["data.yaml", "expected `train`"]),
        ("data.yaml", b"\xff", &["data.yaml", "line 1: not UTF-8"]),
    ] {
        let made = of(&["images/train/a.jpg"]);
        made.put(name, text);
        made.refused(&made.options(), parts);
        // Next to a whole one, too.
        if text == broken {
            made.put("other.yaml", b"train: images/train\nnames: [a]\n");
            made.refused(&made.options(), parts);
        }
    }
    // Without labels, these would be classes.
    for name in ["data.yaml", "mine.yaml"] {
        let made = Made::new(&["owl/a.jpg", "cat/b.jpg"]);
        made.put(name, broken);
        made.refused(&made.options(), &[name, "line 2", "--from folder"]);
        let folder = with!(made.options(), from = Some(SourceKind::Folder));
        assert_eq!(made.packed(&folder)[0].split.records(), 2);
    }
    let made = Made::new(&["owl/a.jpg", "cat/b.jpg"]);
    made.put("settings.yaml", b"a: *b\n");
    assert_eq!(made.packed(&made.options())[0].split.records(), 2);
    std::os::unix::fs::symlink("none", made.path("yolo/data.yaml")).unwrap();
    made.refused(&made.options(), &["data.yaml", "--from folder"]);
}

#[test]
fn keys_are_the_same_however_the_source_is_written() {
    let made = of(&["images/train/a.jpg", "images/train/b.jpg"]);
    let up = "../".repeat(std::env::current_dir().unwrap().components().count());
    let (full, relative) = (made.path("yolo"), PathBuf::from(format!("{up}{}", made.path("yolo").display())));
    std::os::unix::fs::symlink("yolo", made.path("link")).unwrap();
    put(&made.path("elsewhere/outside.jpg"), &fs::read(made.path("yolo/images/train/a.jpg")).unwrap());
    let list = format!(
        "./images/train/a.jpg\n{}\n{}\n",
        made.path("yolo/images/train/b.jpg").display(),
        "../elsewhere/./outside.jpg"
    );
    made.put("list.txt", list.as_bytes());
    let inside = ["images/train/a.jpg", "images/train/b.jpg"].map(str::to_owned);
    let outside = made.path("elsewhere/outside.jpg").canonicalize().unwrap().to_str().unwrap().to_owned();
    let all = [vec![outside], inside.to_vec()].concat();
    for (yaml, expected) in [
        (None, &inside[..]),
        (Some("train: images/train\nnames: [a]\n"), &inside),
        (Some("path: ../yolo\ntrain: images/train\nnames: [a]\n"), &inside),
        (Some("path: ../link\ntrain: images//train/\nnames: [a]\n"), &inside),
        (Some("path: .\ntrain: ../yolo/images/train\nnames: [a]\n"), &inside),
        (Some("train: list.txt\nnames: [a]\n"), &all),
        (Some("path: ../yolo/images/..\ntrain: ../yolo/list.txt\nnames: [a]\n"), &all),
    ] {
        let _ = fs::remove_file(full.join("data.yaml"));
        if let Some(yaml) = yaml {
            made.put("data.yaml", yaml.as_bytes());
        }
        for source in
            [full.clone(), full.join("."), full.join(""), full.join("../yolo"), made.path("link"), relative.clone()]
        {
            let files = if yaml.is_some() { vec![source.clone(), source.join("data.yaml")] } else { vec![source] };
            for source in files {
                made.packed(&Options::new(&source, made.path("set")));
                let keys: Vec<String> = check(&made.path("set"), "train").into_keys().collect();
                assert_eq!(keys, expected, "{yaml:?} {}", source.display());
            }
        }
    }
    // Two spellings of one path are one image.
    made.put("list.txt", b"images/train/a.jpg\n./images//train/./a.jpg\n");
    made.refused(&made.options(), &["images/train/a.jpg is twice in the list"]);
}

#[test]
fn a_link_back_is_named_and_not_followed() {
    let made = of(&["images/train/a.jpg", "images/val/b.jpg"]);
    for split in ["train", "val"] {
        std::os::unix::fs::symlink("..", made.path("yolo/images").join(split).join("loop")).unwrap();
    }
    let summaries = made.packed(&made.options());
    assert_eq!(counts(&summaries), BTreeMap::from([("train", (1, 0)), ("val", (1, 0))]));
    has(&summaries[0].left_out, "loop in images/val: a link back to a folder above it");
}

#[test]
fn labels_without_an_image_are_named_wherever_they_lie() {
    let made = of(&["images/train/a.jpg", "images/val/b.jpg"]);
    for orphan in ["train/none", "val/sub/none", "test/c"] {
        made.put(&format!("labels/{orphan}.txt"), LABEL);
    }
    std::os::unix::fs::symlink("..", made.path("yolo/labels/loop")).unwrap();
    let expected = "3 files of labels without an image in any split: labels/test/c.txt, labels/train/none.txt, labels/val/sub/none.txt";
    for split in [None, Some("train".to_owned())] {
        let summaries = made.packed(&with!(made.options(), split = split));
        has(&summaries[0].left_out, expected);
    }
}
