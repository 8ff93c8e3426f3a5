//! Datasets with exactly one damage each: every other CRC and value is right, so that a reader finds only this damage.
//! Folders are named `DAMAGE-detail`. What a reader must find is written by hand, from `format-spec.md`.

mod arrays;
mod columns;
mod directory;
mod examples;
mod files;
mod foreign_members;
mod frames;
mod headers;
mod manifest_json;
mod manifest_values;
mod mismatches;
mod pixels;
mod source_files;
mod version_members;
mod versions;
mod virtual_shards;

use crate::dataset::{Dataset, Files};
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::tiny::tiny;

pub(crate) const SHARD: &str = "train-00000.tfrecord";
pub(crate) const INDEX: &str = "_index/train-00000.tfrecord.index";
/// Offset of the second record of `tiny`.
pub(crate) const SECOND: u64 = 180;

pub(crate) fn all() -> Vec<Case> {
    let groups = [
        frames::all(),
        examples::all(),
        pixels::all(),
        arrays::all(),
        headers::all(),
        directory::all(),
        columns::all(),
        mismatches::all(),
        files::all(),
        manifest_json::all(),
        manifest_values::all(),
        versions::all(),
        virtual_shards::all(),
        source_files::all(),
        foreign_members::all(),
    ];
    groups.into_iter().flatten().collect()
}

/// Returns the damage that a folder is named for.
fn damage(name: &str) -> &str {
    name.split('-').next().expect("a name")
}

/// A dataset, with what its damage changes of what is expected.
fn case(name: &str, dataset: &Dataset, expect: impl FnOnce(Expected) -> Expected) -> Case {
    (name.to_owned(), dataset.files(), expect(dataset.expected()))
}

/// `tiny`, changed.
fn changed(change: impl FnOnce(&mut Dataset)) -> Dataset {
    let mut dataset = tiny();
    change(&mut dataset);
    dataset
}

/// A case whose manifest is refused.
fn refused(name: &str, files: Files) -> Case {
    (name.to_owned(), files, Expected::refused(damage(name)))
}

/// A case of `tiny` whose index is refused.
fn index_refused(name: &str, index: Vec<u8>) -> Case {
    let dataset = changed(|dataset| dataset.shard().index = index);
    let damage = damage(name);
    case(name, &dataset, |e| no_records(e, damage).finds(damage, INDEX, None, None))
}

/// No record of `tiny` is delivered, and the shard is not opened.
fn no_records(expected: Expected, error: &str) -> Expected {
    expected.loses("train", 0, error).loses("train", 1, error).without_index()
}
