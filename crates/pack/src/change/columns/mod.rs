//! Adds, replaces and drops columns. The values of a change lie in one file, a part of it for each shard; no shard is read unless
//! values are kept from its records, and none is written.
//!
//! | module | responsibility |
//! |---|---|
//! | `rows` | the values that a source has, row by row |
//! | `sources` | reads them from lists, arrays, archives and datasets |
//! | `labels` | class ids, and the names that belong to them |
//! | `rules` | which features a column may take the place of |
//! | `matched` | which row is that of which record |
//! | `build` | makes the companion of a shard |

mod build;
mod labels;
mod matched;
mod rows;
mod rules;
mod sources;

pub use rows::{ColumnRows, ColumnValues};
pub use sources::{ColumnSource, column_rows};

use super::base;
use super::commit::{Basis, beside_others, commit, discard, each_shard, names_file};
use super::parts_file::{Holds, PartsFile};
use super::{ChangeOptions, NewVersion};
use crate::Error;
use crate::commit::Directory;
use crate::error::ShardError;
use crate::place::{CHANGE_LOCK, Place, StoreFolder};
use crate::progress::{Progress, check};
use crate::source::objects;
use matched::Matched;
use shardtool_format::manifest::{Companion, DType, FeatureType, Versions};
use shardtool_format::names::CLASS_LABEL;
use shardtool_read::{Dataset, Split};
use std::collections::HashMap;
use std::path::Path;

/// What becomes of records that the source has no row for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MissingRows {
    /// The change is refused.
    #[default]
    Error,
    /// They have no value.
    Null,
    /// They keep the value that they have.
    Keep,
}

/// Whether columns are new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnChange {
    /// The dataset has no feature of these names.
    Add,
    /// It has all of them.
    Replace,
}

/// Options of [`change_columns`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ColumnOptions {
    /// Whether the columns are new.
    pub kind: ColumnChange,
    /// The splits; default: all.
    pub splits: Vec<String>,
    /// What becomes of records without a row.
    pub missing: MissingRows,
    /// The version whose records the rows follow, for rows without keys: it must be the newest one.
    pub rows_of: Option<String>,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl ColumnOptions {
    /// Returns options for columns of all splits.
    pub fn new(kind: ColumnChange) -> Self {
        let (splits, change) = (vec![], ChangeOptions::default());
        ColumnOptions { kind, splits, missing: MissingRows::default(), rows_of: None, change }
    }
}

/// What a change of columns found and did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedColumns {
    /// The new version; `None` if nothing was to be written.
    pub version: Option<NewVersion>,
    /// The columns, with their types.
    pub columns: Vec<(String, DType)>,
    /// Records whose row was found.
    pub matched: u64,
    /// Records without a row.
    pub missing: u64,
    /// Bytes of the new file, without manifests.
    pub bytes: u64,
}

/// Adds or replaces columns of the newest version of a dataset.
///
/// # Errors
/// [`ShardError::Column`] for a feature that cannot be changed so; [`ShardError::ColumnRows`] for rows that are not those of
/// the records; [`DestinationError::CameFirst`](crate::DestinationError), [`Error::Read`], [`Error::Io`].
pub fn change_columns(
    dataset: &Path,
    rows: &ColumnRows,
    options: &ColumnOptions,
    progress: &dyn Progress,
) -> Result<ChangedColumns, Error> {
    let dataset = base::open(dataset, &options.change.sources)?;
    let rows = &*labels::with_class_names(rows, dataset.manifest())?;
    rules::check(&dataset, rows, options)?;
    let splits = base::splits(&dataset, &options.splits)?;
    beside_others(&dataset, || {
        let matched = Matched::new(&dataset, &splits, rows, options, progress)?;
        match shardtool_store::is_url(dataset.path()) {
            true => write::<StoreFolder>(&dataset, &splits, rows, &matched, options, progress),
            false => write::<Directory>(&dataset, &splits, rows, &matched, options, progress),
        }
    })
}

fn write<P: Place>(
    dataset: &Dataset,
    splits: &[&Split],
    rows: &ColumnRows,
    matched: &Matched,
    options: &ColumnOptions,
    progress: &dyn Progress,
) -> Result<ChangedColumns, Error> {
    let types: Vec<_> = rows.columns.iter().map(|column| (column.name.clone(), column.dtype)).collect();
    let (counts, ChangeOptions { dry_run, single_writer, .. }) = (matched.counts(), &options.change);
    let changed = ChangedColumns { version: None, columns: types, matched: counts.0, missing: counts.1, bytes: 0 };
    if *dry_run {
        return Ok(changed);
    }
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, *single_writer)?;
    let mut file = PartsFile::new(&place, Holds::Columns);
    let mut companions: HashMap<&str, Vec<Companion>> = HashMap::new();
    for (number, split) in splits.iter().enumerate() {
        for shard in 0..split.entry().shards.len() {
            check(progress)?;
            let entry = &split.entry().shards[shard];
            let of_rows = matched.rows(number, shard);
            for column in &rows.columns {
                let (name, bytes) = build::companion(split, shard, column, of_rows, options.missing)?;
                let index = file.add(&bytes)?;
                companions.entry(&entry.file).or_default().push(Companion { name, index });
            }
        }
    }
    file.finish()?;
    let basis = Basis {
        shards: companions.keys().map(|file| (*file).to_owned()).collect(),
        deleted: true,
        features: rows.columns.iter().map(|column| column.name.clone()).collect(),
        ..Basis::default()
    };
    let names: Vec<_> = rows.columns.iter().map(|column| column.name.as_str()).collect();
    let command = match options.kind {
        ColumnChange::Add => format!("column add {}", names.join(" ")),
        ColumnChange::Replace => format!("column replace {}", names.join(" ")),
    };
    let made = commit(
        &place,
        dataset.manifest(),
        &basis,
        &command,
        &options.change,
        &|manifest| names_file(manifest, file.name()),
        &mut |manifest| {
            if let Some(versions) = &mut manifest.versions {
                rows.columns.iter().for_each(|column| list(versions, &column.name, column.dtype));
            }
            if manifest.label.is_none() && names.contains(&CLASS_LABEL) {
                manifest.label = Some(CLASS_LABEL.to_owned());
            }
            each_shard(manifest, |shard| {
                for companion in companions.get(shard.file.as_str()).into_iter().flatten() {
                    let columns = &mut shard.companions.columns;
                    columns.retain(|other| other.feature() != companion.feature());
                    columns.push(companion.clone());
                    columns.sort_by(|a, b| a.feature().cmp(b.feature()));
                }
            });
            Ok(())
        },
    );
    if let Err(error) = &made {
        discard(&place, error, &[file.path()]);
    }
    Ok(ChangedColumns { version: Some(made?), bytes: file.bytes(), ..changed })
}

/// Lists a column, which is no longer dropped.
fn list(versions: &mut Versions, name: &str, dtype: DType) {
    versions.dropped.retain(|dropped| dropped != name);
    versions.columns.retain(|column| column.name != name);
    versions.columns.push(FeatureType { name: name.to_owned(), dtype });
    versions.columns.sort_by(|a, b| a.name.cmp(&b.name));
}

/// Drops columns: the new version has no features of these names. Their values stay in the files that earlier versions name.
///
/// # Errors
/// [`ShardError::Column`]; [`DestinationError::CameFirst`](crate::DestinationError) and those of writing.
pub fn drop_columns(dataset: &Path, names: &[String], options: &ChangeOptions) -> Result<Option<NewVersion>, Error> {
    let dataset = base::open(dataset, &options.sources)?;
    rules::check_drop(&dataset, names)?;
    if options.dry_run {
        return Ok(None);
    }
    if shardtool_store::is_url(dataset.path()) {
        drop_in::<StoreFolder>(&dataset, names, options).map(Some)
    } else {
        drop_in::<Directory>(&dataset, names, options).map(Some)
    }
}

fn drop_in<P: Place>(dataset: &Dataset, names: &[String], options: &ChangeOptions) -> Result<NewVersion, Error> {
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.single_writer)?;
    let shards = dataset.manifest().splits.iter().flat_map(|split| &split.shards);
    let basis = Basis {
        shards: shards.map(|shard| shard.file.clone()).collect(),
        deleted: false,
        features: names.to_vec(),
        ..Basis::default()
    };
    let command = format!("column drop {}", names.join(" "));
    commit(
        &place,
        dataset.manifest(),
        &basis,
        &command,
        options,
        &|manifest| {
            let last = manifest.versions.as_ref().is_some_and(|versions| versions.command == command);
            last && names.iter().all(|name| manifest.dtype(name).is_none())
        },
        &mut |manifest| {
            if manifest.label.as_ref().is_some_and(|label| names.contains(label)) {
                manifest.label = None;
            }
            if names.iter().any(|name| name == objects::KEYPOINTS) {
                manifest.keypoints = None;
            }
            if let Some(versions) = &mut manifest.versions {
                versions.columns.retain(|column| !names.contains(&column.name));
                let stored = versions.stored.iter().filter(|feature| names.contains(&feature.name));
                versions.dropped.extend(stored.map(|feature| feature.name.clone()));
                versions.dropped.sort();
                versions.dropped.dedup();
            }
            each_shard(manifest, |shard| {
                shard.companions.columns.retain(|column| !names.iter().any(|name| name == column.feature()));
            });
            Ok(())
        },
    )
}

/// Returns the error of rows that are not those of the records.
fn wrong_rows(rows: &ColumnRows, problem: String) -> Error {
    Error::Shard(ShardError::ColumnRows { source_path: rows.source.clone(), problem })
}
