//! YOLO in folders: which of them are splits, and which keys their images have.

use crate::support::put;
use crate::yolo::{Made, counts, has};
use shardtool_pack::{SplitNames, pack_splits};
use std::collections::BTreeMap;

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
