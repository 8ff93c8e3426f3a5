//! Labels of several splits: class ids by name, and the label offset of each split.

use crate::{dataset, samples};
use shardtool_format::manifest::Manifest;
use shardtool_format::names;
use shardtool_load::{ClassDifference, Classes, Config, Error, Field, Loader, Values, class_names, labels};
use shardtool_order::Order;
use shardtool_read::{Dataset, Split};
use std::path::Path;

/// Writes records with the labels 0, 1, 2 and opens them as a split with these classes.
fn split(folder: &Path, classes: &[&str], offset: i64) -> Split {
    let mut numbers = samples::numbers(3);
    numbers.iter_mut().zip(0..).for_each(|(sample, label)| sample.label = label + offset);
    dataset::write(folder, "train", &numbers, 2);
    let path = folder.join(names::MANIFEST);
    let mut manifest = Manifest::parse(&std::fs::read(&path).unwrap()).unwrap();
    manifest.classes = classes.iter().map(|&name| name.to_owned()).collect();
    manifest.label_offset = offset;
    std::fs::write(&path, manifest.to_json()).unwrap();
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(splits: &[Split], classes: Classes) -> Config {
    let mut config = Config::new(splits[0].clone(), Vec::<Field>::new(), 6);
    (config.splits, config.classes) = (splits.to_vec(), classes);
    (config.order, config.epochs) = (Order::Sequential, Some(1));
    config
}

fn delivered(config: &Config) -> Vec<i64> {
    let batch = Loader::new(config).unwrap().next_batch().unwrap().unwrap();
    match batch.column(names::CLASS_LABEL) {
        Some(Values::Int64(labels)) => labels.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_split_has_its_own_label_offset() {
    let folder = tempfile::tempdir().unwrap();
    let splits = [split(&folder.path().join("a"), &[], 0), split(&folder.path().join("b"), &[], 1)];
    assert_eq!(delivered(&config(&splits, Classes::Equal)), [0, 1, 2, 0, 1, 2]);
    let reversed = [splits[1].clone(), splits[0].clone()];
    assert_eq!(delivered(&config(&reversed, Classes::Equal)), [0, 1, 2, 0, 1, 2]);
    assert_eq!(labels(&splits, &Classes::Equal).unwrap(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn labels_are_mapped_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let splits =
        [split(&folder.path().join("a"), &["x", "y", "z"], 0), split(&folder.path().join("b"), &["z", "x", "w"], 7)];
    assert_eq!(delivered(&config(&splits, Classes::Union)), [0, 1, 2, 2, 0, 3]);
    assert_eq!(class_names(&splits, &Classes::Union).unwrap(), ["x", "y", "z", "w"]);
    assert_eq!(labels(&splits, &Classes::Union).unwrap(), [0, 1, 2, 2, 0, 3]);
    let refused = Loader::new(&config(&splits, Classes::Equal)).map(drop).unwrap_err();
    let Error::Classes { difference: ClassDifference::Names { label, .. } } = refused else { panic!("{refused}") };
    assert_eq!(label, 0);
}

#[test]
fn a_label_without_a_name_is_a_bad_sample_where_names_are_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let named = [split(&folder.path().join("a"), &["x", "y"], 0)];
    let mut config = config(&named, Classes::Names(vec!["y".to_owned(), "x".to_owned()]));
    config.bad_samples.on_bad = Some(shardtool_load::OnBad::Mask);
    assert_eq!(delivered(&config)[..3], [1, 0, -100]);
    assert_eq!(labels(&named, &config.classes).unwrap(), [1, 0, -1]);
}
