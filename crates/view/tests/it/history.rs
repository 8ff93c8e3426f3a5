//! The history, and two versions side by side.

use crate::support::{MARKUP, Site, jpeg, write};
use shardtool_format::manifest::DType;
use shardtool_pack::{
    AppendOptions, ChangeOptions, ChosenRecords, ColumnChange, ColumnOptions, ColumnRows, ColumnValues, CompactOptions,
    DeleteOptions, MissingRows, SelectOptions, Shards, Value, append, change_columns, compact, delete, drop_columns,
    select, tag,
};
use shardtool_read::Dataset;
use std::path::Path;

/// Returns the part of a page about a split.
fn about<'p>(page: &'p str, split: &str) -> &'p str {
    let (_, part) = page.split_once(&format!("Split {split}</h3>")).unwrap_or_else(|| panic!("{page}"));
    part.split("<h3>").next().unwrap()
}

/// Returns the numbers of removed, added, changed and matched records.
fn counts(page: &str) -> [u64; 4] {
    let text = about(page, "train").split("<p>").nth(1).unwrap();
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let all: Vec<u64> = numbers.take(4).map(|digits| digits.parse().unwrap()).collect();
    all.try_into().unwrap()
}

/// Changes a column of two records.
fn captions(dataset: &Path, words: &str) {
    let rows = ColumnRows {
        source: "captions".into(),
        keys: Some(vec![b"k/00001.jpg".to_vec(), b"k/00004.jpg".to_vec()]),
        columns: vec![ColumnValues {
            name: "caption".to_owned(),
            dtype: DType::Bytes,
            rows: ["first", words].map(|text| Some(Value::Bytes(vec![text.as_bytes().to_vec()]))).into(),
        }],
    };
    let mut options = ColumnOptions::new(ColumnChange::Replace);
    options.missing = MissingRows::Keep;
    (options.change.message, options.change.author) = (Some(format!("words {MARKUP}")), Some("ada".to_owned()));
    change_columns(dataset, &rows, &options, &()).unwrap();
}

#[test]
fn a_dataset_that_was_never_changed_has_one_version_and_no_tab() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 10);
    let site = Site::of(folder.path());
    assert!(!site.page("/train").contains("/-/history"));
    let page = site.page("/-/history");
    assert!(page.contains("first version") && page.contains("train 10 records") && !page.contains("from="), "{page}");
}

#[test]
fn versions_are_listed_and_two_are_shown_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("set");
    write(&dataset, 40);
    captions(&dataset, MARKUP);
    delete(&dataset, &DeleteOptions::new(ChosenRecords::Ids(vec![0, 2])), &()).unwrap();
    let cats = folder.path().join("new/cat");
    std::fs::create_dir_all(&cats).unwrap();
    std::fs::write(cats.join("new.jpg"), jpeg(50, 40, 9)).unwrap();
    let mut appended = AppendOptions::new(folder.path().join("new"), &dataset);
    appended.pack.split = Some("train".to_owned());
    append(&appended, &()).unwrap();
    drop_columns(&dataset, &["weight".to_owned()], &ChangeOptions::default()).unwrap();
    let mut view = SelectOptions::new(ChosenRecords::Where(vec!["image/class/label=0".to_owned()]));
    view.split = Some("train".to_owned());
    select(&dataset, "cats", &view, &()).unwrap();
    tag(&dataset, "paper", Some("3"), &ChangeOptions::default()).unwrap();
    compact(&dataset, &shards(1), &()).unwrap();

    let newest = Dataset::open(&dataset).unwrap().version();
    let site = Site::of(&dataset);
    assert!(site.page("/train").contains("href=\"/-/history\""));
    let page = site.page("/-/history");
    assert_eq!(page.matches("<tr").count() as u64, newest + 1, "a row for each version, and the heads");
    for text in ["column replace", "by ada", "delete", "(−2)", "append", "(+1)", "paper", "compact", "first version"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("&lt;script&gt;") && !page.contains(MARKUP));
    assert_eq!(page.matches("aria-current=\"true\"").count(), 1);

    // The captions of two records.
    let page = site.page("/-/history?from=1&to=2");
    assert_eq!(counts(&page), [0, 0, 2, 40]);
    let train = about(&page, "train");
    for text in ["caption number 1", "first", "caption number 4", "&lt;script&gt;", "k/00001.jpg", "k/00004.jpg"] {
        assert!(train.contains(text), "{text}: {train}");
    }
    assert!(!train.contains(MARKUP) && !train.contains("caption number 2<"));

    // Two records that were deleted, with their pictures as they were.
    let page = site.page("/-/history?from=2&to=3");
    assert_eq!(counts(&page), [2, 0, 0, 38]);
    for id in [0, 2] {
        let path = format!("/-/version/2/train/thumb/{id}");
        assert!(about(&page, "train").contains(&path), "{page}");
        let picture = site.get(&path);
        assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/jpeg")));
    }
    let page = site.page("/-/history?from=3&to=4");
    assert_eq!(counts(&page), [0, 1, 0, 38]);
    assert!(page.contains("/-/version/4/train/thumb/38") && page.contains("alt=\"cat/new.jpg\""), "{page}");
    // A feature that is gone is named, and differs in the records that had it: all but every seventh.
    let page = site.page("/-/history?from=4&to=5");
    assert!(page.contains("Features dropped") && page.contains("weight (float)"), "{page}");
    let with_weight = (0..40).filter(|i| i % 7 != 0 && ![0, 2].contains(i)).count() as u64;
    assert_eq!(counts(&page), [0, 0, with_weight, 39]);
    let page = site.page("/-/history?from=5&to=6");
    assert!(page.contains("Views added") && page.contains("cats"), "{page}");
    assert_eq!(counts(&page), [0, 0, 0, 39]);
    // Other shards of the same records.
    let page = site.page(&format!("/-/history?from={}&to={newest}", newest - 1));
    assert_eq!(counts(&page), [0, 0, 0, 39]);
    // All of it at once, and backwards.
    assert_eq!(counts(&site.page(&format!("/-/history?from=1&to={newest}")))[..2], [2, 1]);
    assert_eq!(counts(&site.page(&format!("/-/history?from={newest}&to=1")))[..2], [1, 2]);
}

fn shards(count: u64) -> CompactOptions {
    let mut options = CompactOptions::default();
    options.shards = Shards::Count(count);
    options
}

#[test]
fn versions_that_are_not_there_and_damage_are_said() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), 12);
    captions(folder.path(), "second");
    let site = Site::of(folder.path());
    for query in ["from=1&to=9", "from=0&to=1", "from=18446744073709551615&to=1"] {
        let page = site.page(&format!("/-/history?{query}"));
        assert!(page.contains("role=\"alert\"") && page.contains("2 versions"), "{query}: {page}");
    }
    for query in ["from=1", "to=2", "from=x&to=y"] {
        assert!(!site.page(&format!("/-/history?{query}")).contains("id=\"comparison\""));
    }
    for path in ["/-/version/9/train/thumb/0", "/-/version/1/dev/thumb/0", "/-/version/1/train/thumb/x"] {
        assert_ne!(site.get(path).status, 200, "{path}");
    }
    std::fs::remove_dir_all(folder.path().join("_columns")).unwrap();
    let page = Site::of(folder.path()).page("/-/history?from=1&to=2");
    assert!(about(&page, "train").contains(".columns"), "{page}");
}
