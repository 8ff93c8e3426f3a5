//! What is wrong with existing shards and their records.

use super::compression;
use shardtool_format::Compression;
use shardtool_format::manifest::DType;
use std::path::PathBuf;

/// Why existing shards cannot be indexed, repaired, exported or resharded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// A frame or an Example is damaged.
    #[error("{shard}, record {record}")]
    Record {
        /// File name of the shard.
        shard: String,
        /// Record, from 0.
        record: u64,
        /// What is wrong with it.
        source: shardtool_format::Error,
    },
    /// The whole shard is compressed.
    #[error("the whole file {} is compressed with {kind}, so its records cannot be read at random; convert it: \
        {}", .path.display(), compression::command(*.kind, .path))]
    Compressed {
        /// The shard.
        path: PathBuf,
        /// The compression.
        kind: Compression,
    },
    /// A record is too long for an index.
    #[error("{shard}, record {record}: {bytes} bytes; an image must lie within the first 4 GiB of its record")]
    TooLong {
        /// File name of the shard.
        shard: String,
        /// Record, from 0.
        record: u64,
        /// Bytes of its data.
        bytes: u64,
    },
    /// Values of a feature have different types.
    #[error("feature `{feature}` is {} in record {} of {}, and {} in record {} of {}; a feature must have one type in \
        all records", .first.2.name(), .first.1, .first.0, .second.2.name(), .second.1, .second.0)]
    FeatureType {
        /// The feature.
        feature: String,
        /// File name of a shard, record, and the type there.
        first: (String, u64, DType),
        /// The same, for a record with a different type.
        second: (String, u64, DType),
    },
    /// Files of one dataset lie in different folders.
    #[error("{} and {} lie in different folders; collect them with --out DIR", .first.display(), .second.display())]
    Scattered {
        /// A file.
        first: PathBuf,
        /// A file in another folder.
        second: PathBuf,
    },
    /// The folder has nothing to repair.
    #[error("{}: no manifest and no .tfrecord files; nothing to repair", .path.display())]
    NoDataset {
        /// The folder.
        path: PathBuf,
    },
    /// The newest manifest of a dataset with versions is absent or damaged.
    #[error("{} has no usable dataset.json, but earlier versions: which rows and columns the newest has is unknown; copy the last \
        file of _versions over dataset.json to return to that version", .path.display())]
    LostVersion {
        /// The folder.
        path: PathBuf,
    },
    /// A change of a version that is not the newest.
    #[error("{}@{version}: only the newest version can be changed; `shardtool rollback` returns to an earlier one, and \
        `shardtool copy` makes a dataset of it", .path.display())]
    OldVersion {
        /// The dataset.
        path: PathBuf,
        /// The version that was named.
        version: String,
    },
    /// A change of TFRecord files without a manifest.
    #[error("{}: bare TFRecord files have no versions; make a dataset of them with `shardtool index`", .path.display())]
    BareFiles {
        /// The files.
        path: PathBuf,
    },
    /// Keys or ids of a deletion that no record has.
    #[error("{unknown} of the keys or ids are those of no record of {}: {}{}; nothing was changed (--ignore-unknown \
        takes the others)", .path.display(), .examples.join(", "), if *unknown > .examples.len() as u64 { " …" } else { "" })]
    UnknownRecords {
        /// The dataset.
        path: PathBuf,
        /// How many.
        unknown: u64,
        /// The first of them.
        examples: Vec<String>,
    },
    /// A tag that names another version.
    #[error("{}: the tag `{tag}` names version {version}; remove it first (`shardtool tag --remove`)", .path.display())]
    TagExists {
        /// The dataset.
        path: PathBuf,
        /// The tag.
        tag: String,
        /// The version that it names.
        version: u64,
    },
    /// A tag that does not exist.
    #[error("{} has no tag `{tag}`", .path.display())]
    NoTag {
        /// The dataset.
        path: PathBuf,
        /// The tag.
        tag: String,
    },
    /// A command that needs shards which are files.
    #[error("{}: {problem}", .path.display())]
    VirtualShards {
        /// The dataset.
        path: PathBuf,
        /// Why it cannot be done, and what can.
        problem: &'static str,
    },
    /// A file of an earlier version is gone.
    #[error("version {version} of {} cannot be restored: {file} is gone", .path.display())]
    LostFiles {
        /// The dataset.
        path: PathBuf,
        /// The file.
        file: String,
        /// The version.
        version: u64,
    },
    /// A change of columns that cannot be made.
    #[error("column `{column}`: {problem}")]
    Column {
        /// The column.
        column: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The rows of a source of columns are not those of the dataset.
    #[error("{}: {problem}", .source_path.display())]
    ColumnRows {
        /// The source.
        source_path: PathBuf,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A key that the dataset and the appended source have.
    #[error("split `{split}` of {} has a record with the key `{key}`, and so has the source; nothing was changed (--replace \
        deletes the older record of each such key)", .path.display())]
    AppendedKey {
        /// The dataset.
        path: PathBuf,
        /// The split.
        split: String,
        /// The first such key.
        key: String,
    },
    /// A name that cannot be that of a new view.
    #[error("{} has a {} `{name}` already; {}", .path.display(), if *is_view { "view" } else { "split" },
        if *is_view { "--replace replaces it, --remove removes it" } else { "give the view another name" })]
    ViewName {
        /// The dataset.
        path: PathBuf,
        /// The name.
        name: String,
        /// Whether a view has it; else a split.
        is_view: bool,
    },
    /// A view in the place of a split.
    #[error("`{name}` is a view in {}, and this change is one of a split: name the split (a view's records are chosen by their keys)", .path.display())]
    OnlyView {
        /// The dataset.
        path: PathBuf,
        /// The view.
        name: String,
    },
    /// Keys of an appended source that were purged.
    #[error("{}: the key `{key}` of the source was purged from it{}; nothing was changed: leave what was purged out of the source \
        (`purge --forget-keys` lets purged keys come back)", .path.display(), others(*count))]
    PurgedKeys {
        /// The dataset.
        path: PathBuf,
        /// How many.
        count: u64,
        /// The first of them.
        key: String,
    },
    /// A purge of a dataset with a pack that is not finished.
    #[error("the pack of split `{split}` of {} is not finished, and may have what is to be purged; finish it first \
        (`shardtool status` says how)", .path.display())]
    UnfinishedPack {
        /// The dataset.
        path: PathBuf,
        /// The split.
        split: String,
    },
    /// A damaged column or bitmap, which cannot be written again without purged rows.
    #[error("the part at byte {offset} of {} is damaged; nothing was changed (`shardtool verify` lists the damage)", .path.display())]
    Companion {
        /// The file.
        path: PathBuf,
        /// Where the part begins.
        offset: u64,
    },
    /// Classes of an appended source that the dataset does not have.
    #[error("{} lacks {count} of the source's classes ({}{}); --add-classes gives them the next ids, --classes FILE states the \
        names", .path.display(), .classes.join(", "), if *count > .classes.len() { ", …" } else { "" })]
    NewClasses {
        /// The dataset.
        path: PathBuf,
        /// How many.
        count: usize,
        /// The first of them.
        classes: Vec<String>,
    },
    /// Class ids of an appended archive, or of a file of class names, that are another class's in the dataset.
    #[error("class id {id} is `{theirs}` in {} and `{ours}` in {}; {}", if *.given { "the file of class names" } else { "the source" },
        .path.display(), if *.given { "give the file the dataset's order (--classes), or leave it out where the source has names" } else {
        "an archive has ids: write its images into folders of classes (`shardtool export --to folder`), and append these" })]
    OtherClassIds {
        /// The dataset.
        path: PathBuf,
        /// The first such id.
        id: usize,
        /// Its name in the source.
        theirs: String,
        /// Its name in the dataset, with new classes.
        ours: String,
        /// Whether the user gave a file of class names.
        given: bool,
    },
    /// Opaque records whose keys are the places that they have.
    #[error("{}: the keys of opaque records are their places (FILE#N), and would change; export the dataset, or keep its shards", .path.display())]
    OpaqueKeys {
        /// The dataset.
        path: PathBuf,
    },
    /// Shards without a manifest, where one is needed.
    #[error("{} has no manifest; make one with `shardtool index`", .path.display())]
    Bare {
        /// The shards.
        path: PathBuf,
    },
    /// The manifest says something else about a file than the file.
    #[error("the manifest says {member} {listed}, but {} has {found}; correct the manifest, or run `shardtool repair` \
        without --reseal to rebuild it", .path.display())]
    NotAsListed {
        /// The shard or its index.
        path: PathBuf,
        /// The member of the shard's line.
        member: &'static str,
        /// Its value in the manifest.
        listed: String,
        /// The value of the file.
        found: String,
    },
    /// An image of a record whose metadata cannot be removed.
    #[error(
        "`{feature}` of the record `{key}` in split {split}; nothing was changed: delete the record (`shardtool delete`), or append \
        another image with its key (`shardtool append --replace`)"
    )]
    Metadata {
        /// The split.
        split: String,
        /// The key of the record.
        key: String,
        /// The feature that holds the image.
        feature: String,
        /// Why not.
        source: Box<shardtool_decode::Error>,
    },
    /// Two datasets that are merged have a key in common.
    #[error("both {} and {} have the key `{key}` in split `{split}`; keys must be unique in a split: pack one of them \
        with other keys", .first.display(), .second.display())]
    MergedKey {
        /// The key.
        key: String,
        /// The split.
        split: String,
        /// A shard of the first dataset.
        first: PathBuf,
        /// A shard of the second.
        second: PathBuf,
    },
}

/// Returns what follows the first of some keys.
fn others(count: u64) -> String {
    match count {
        0 | 1 => String::new(),
        2 => ", and so was another key".to_owned(),
        many => format!(", and so were {} other keys", many - 1),
    }
}
