//! Makes and removes views: some records of a split under a name, which stay the same when the split grows.

use super::chosen::{Chosen, ChosenRecords};
use super::commit::{Basis, beside_others, commit, discard};
use super::parts_file::{Holds, PartsFile};
use super::{ChangeOptions, NewVersion, base, views};
use crate::Error;
use crate::commit::Directory;
use crate::error::ShardError;
use crate::place::{CHANGE_LOCK, Place, StoreFolder};
use crate::progress::Progress;
use shardtool_format::manifest::View;
use shardtool_format::names;
use shardtool_read::{Dataset, Split};
use std::collections::BTreeMap;
use std::path::Path;

/// Options of [`select`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SelectOptions {
    /// The split, or a view of it; default: the only split.
    pub split: Option<String>,
    /// Which records.
    pub records: ChosenRecords,
    /// Whether keys and ids that no record has are counted. Default: they are an error.
    pub ignore_unknown: bool,
    /// Whether a view of this name is replaced. Default: it is an error.
    pub replace: bool,
    /// What all changes have.
    pub change: ChangeOptions,
}

impl SelectOptions {
    /// Returns options for these records of the only split.
    pub fn new(records: ChosenRecords) -> Self {
        let change = ChangeOptions::default();
        SelectOptions { split: None, records, ignore_unknown: false, replace: false, change }
    }
}

/// What a view has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selected {
    /// The new version; `None` if nothing was to be written.
    pub version: Option<NewVersion>,
    /// The split of the view.
    pub split: String,
    /// Records of the view.
    pub records: u64,
    /// Keys and ids that no record has.
    pub unknown: u64,
    /// Keys and ids that were given before.
    pub repeated: u64,
    /// Bytes of the new files, without manifests.
    pub bytes: u64,
}

/// Makes a view of the newest version: the records that the options take now, in the order of the split. Records that are appended later
/// are not in it, and a deleted one leaves it.
///
/// # Errors
/// [`ShardError::ViewName`] for a name that a split or a view has; [`ShardError::UnknownRecords`]; [`Error::Name`], [`Error::Read`];
/// [`DestinationError::CameFirst`](crate::DestinationError) and those of writing.
pub fn select(dataset: &Path, name: &str, options: &SelectOptions, progress: &dyn Progress) -> Result<Selected, Error> {
    names::check_split_name(name)?;
    let dataset = base::open(dataset, &options.change.sources)?;
    let is_view = dataset.view(name).is_some();
    if dataset.splits().iter().any(|split| split.name() == name) || (is_view && !options.replace) {
        let (path, name) = (base::folder(&dataset), name.to_owned());
        return Err(Error::Shard(ShardError::ViewName { path, name, is_view }));
    }
    let from = match (&options.split, dataset.splits()) {
        (Some(name), _) => dataset.split(name)?,
        (None, [only]) => only,
        (None, _) => return Err(Error::Option { option: "split", expected: "the split whose records these are" }),
    };
    let of = dataset.manifest().views().iter().find(|view| view.name == from.name());
    let split = dataset.split(of.map_or(from.name(), |view| &view.split))?;
    let chosen = beside_others(&dataset, || Chosen::find(&dataset, &[(0, from)], &options.records, progress))?;
    chosen.check_unknown(&dataset, options.ignore_unknown)?;
    let mut selected = Selected {
        version: None,
        split: split.name().to_owned(),
        records: chosen.rows.values().map(|rows| rows.len() as u64).sum(),
        unknown: chosen.unknown,
        repeated: chosen.repeated,
        bytes: 0,
    };
    if options.change.dry_run {
        return Ok(selected);
    }
    let written = beside_others(&dataset, || match shardtool_store::is_url(dataset.path()) {
        true => write::<StoreFolder>(&dataset, name, (from, split), &chosen, options),
        false => write::<Directory>(&dataset, name, (from, split), &chosen, options),
    })?;
    (selected.version, selected.bytes) = written;
    Ok(selected)
}

/// Returns the new version, if the view is not there already, and the bytes of its bitmaps. `from` is the split, or the view whose rows were chosen.
fn write<P: Place>(
    dataset: &Dataset,
    name: &str,
    (from, split): (&Split, &Split),
    chosen: &Chosen,
    options: &SelectOptions,
) -> Result<(Option<NewVersion>, u64), Error> {
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.change.single_writer)?;
    let mut file = PartsFile::new(&place, Holds::Deleted);
    let rows = chosen.rows.iter().map(|((_, number), rows)| (from.entry().shards[*number].file.as_str(), rows));
    let rows: BTreeMap<&str, &Vec<u64>> = rows.collect();
    let mut shards = vec![];
    for shard in &split.entry().shards {
        let Some(rows) = rows.get(shard.file.as_str()) else { continue };
        let absent = (0..shard.records).filter(|row| rows.binary_search(row).is_err());
        shards.extend(views::of_rows(shard, absent, &mut file)?);
    }
    file.finish()?;
    let conditions = match &options.records {
        ChosenRecords::Where(conditions) => conditions.clone(),
        _ => vec![],
    };
    let view = View { name: name.to_owned(), split: split.name().to_owned(), conditions, shards };
    if dataset.manifest().views().contains(&view) {
        return Ok((None, 0));
    }
    let basis = Basis {
        shards: view.shards.iter().map(|shard| shard.file.clone()).collect(),
        deleted: true,
        features: chosen.features.clone(),
        views: true,
        ..Basis::default()
    };
    let command = format!("select {name}");
    let is_made = |manifest: &shardtool_format::manifest::Manifest| manifest.views().contains(&view);
    let made = commit(&place, dataset.manifest(), &basis, &command, &options.change, &is_made, &mut |manifest| {
        // A pack may have come first.
        if manifest.split(name).is_some() {
            let (path, name) = (base::folder(dataset), name.to_owned());
            return Err(Error::Shard(ShardError::ViewName { path, name, is_view: false }));
        }
        let mut all: Vec<View> = manifest.views().iter().filter(|other| other.name != name).cloned().collect();
        all.push(view.clone());
        all.sort_by(|a, b| a.name.cmp(&b.name));
        views::set(manifest, &all);
        Ok(())
    });
    if let Err(error) = &made {
        discard(&place, error, &[file.path()]);
    }
    Ok((Some(made?), file.bytes()))
}

/// Removes a view. Earlier versions keep it.
///
/// # Errors
/// [`Error::Read`] for a name that no view has; those of writing.
pub fn remove_view(dataset: &Path, name: &str, options: &ChangeOptions) -> Result<Option<NewVersion>, Error> {
    let dataset = base::open(dataset, &options.sources)?;
    if dataset.view(name).is_none() {
        let (path, name) = (base::folder(&dataset), name.to_owned());
        let known = dataset.view_names().cloned().collect();
        return Err(Error::Read(shardtool_read::Error::NoSplit { path, name, known }));
    }
    if options.dry_run {
        return Ok(None);
    }
    match shardtool_store::is_url(dataset.path()) {
        true => remove::<StoreFolder>(&dataset, name, options).map(Some),
        false => remove::<Directory>(&dataset, name, options).map(Some),
    }
}

fn remove<P: Place>(dataset: &Dataset, name: &str, options: &ChangeOptions) -> Result<NewVersion, Error> {
    let (place, _lock) = P::join(dataset.path(), CHANGE_LOCK, options.single_writer)?;
    let basis = Basis { views: true, ..Basis::default() };
    let command = format!("select --remove {name}");
    let is_made = |manifest: &shardtool_format::manifest::Manifest| {
        let last = manifest.versions.as_ref().is_some_and(|versions| versions.command == command);
        last && !manifest.views().iter().any(|view| view.name == name)
    };
    commit(&place, dataset.manifest(), &basis, &command, options, &is_made, &mut |manifest| {
        let left: Vec<View> = manifest.views().iter().filter(|view| view.name != name).cloned().collect();
        views::set(manifest, &left);
        Ok(())
    })
}
