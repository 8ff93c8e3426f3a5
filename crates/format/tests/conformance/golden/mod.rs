//! Datasets that every reader of version 1 reads without a finding.

pub(crate) mod arrays;
pub(crate) mod columns;
mod foreign;
mod images;
mod manifests;
mod mixed;
pub(crate) mod sequence;
mod several;
pub(crate) mod tiny;
pub(crate) mod versions;
pub(crate) mod virtual_shards;
mod zstd;

use crate::dataset::{Dataset, Files};
use crate::expected::Expected;

/// A dataset's name, files, and what a reader must find.
pub(crate) type Case = (String, Files, Expected);

/// Datasets as a writer of this version writes them.
pub(crate) fn canonical() -> Vec<(&'static str, Dataset)> {
    vec![
        ("tiny", tiny::tiny()),
        ("mixed", mixed::mixed()),
        ("adopted", mixed::adopted()),
        ("opaque", mixed::opaque()),
        ("columns", columns::columns()),
        ("kinds", columns::kinds()),
        ("many-columns", columns::many()),
        ("numbers", columns::numbers()),
        ("logical", columns::logical()),
        ("keys", columns::keys()),
        ("classes", columns::classes()),
        ("unnamed-classes", columns::unnamed_classes()),
        ("accepted-forms", foreign::accepted()),
        ("images", images::images()),
        ("entry-points", images::entry_points()),
        ("zstd", zstd::zstd()),
        ("clips", several::clips()),
        ("arrays", arrays::arrays()),
        ("sequence", sequence::sequence()),
        ("not-a-sequence", sequence::not_required()),
        ("file-names", manifests::file_names()),
        ("private", manifests::private()),
        ("keypoints", manifests::keypoints()),
        ("nothing", manifests::nothing()),
        ("frames", manifests::frames()),
        ("versions", versions::versions()),
        ("deleted-rows", versions::deleted_rows()),
        ("one-column", versions::one_column()),
        ("purged", versions::purged()),
        ("dropped", versions::dropped()),
        ("virtual-files", virtual_shards::virtual_files()),
        ("virtual-tar", virtual_shards::virtual_tar()),
        ("virtual-versions", virtual_shards::virtual_versions()),
    ]
}

pub(crate) fn all() -> Vec<Case> {
    let built = canonical().into_iter().map(|(name, dataset)| (name.to_owned(), dataset.files(), dataset.expected()));
    built.chain([mixed::later_minor(), manifests::other_json(), virtual_shards::not_virtual()]).collect()
}

/// Returns the only case of a dataset.
pub(crate) fn case(name: &str, dataset: &Dataset, files: Files) -> Case {
    (name.to_owned(), files, dataset.expected())
}
