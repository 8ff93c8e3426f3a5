//! What kept versions name, without the purged rows: shards and indexes, the columns and bitmaps of their rows, and manifests.

use super::super::append::shards_name;
use super::super::compact::with_keys;
use super::super::parts_file::{Holds, PartsFile};
use super::chosen::{Chosen, KeptShard};
use crate::error::ShardError;
use crate::ordered::ordered;
use crate::place::Place;
use crate::progress::{Progress, check};
use crate::reshard::{ReshardOptions, Resharding};
use crate::selection::Selection;
use crate::{Error, Shards};
use shardtool_format::checksum::crc32c;
use shardtool_format::index::{Builder, Element, Index, JPEG_ENTRIES};
use shardtool_format::manifest::{
    Companions, DType, Deleted, FeatureType, FilePart, Manifest, Shard, Split, View, ViewShard,
};
use shardtool_format::{DeletedRows, names};
use shardtool_read::{Access, Dataset, FileBytes, Options};
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What takes the place of shards and their companions.
pub(super) struct Rewritten {
    /// The new shards, without companions, by the files of the old ones.
    shards: HashMap<String, Shard>,
    /// Whether records of new shards store keys that were their places.
    stores_keys: bool,
    /// The new columns, by files and offsets of the old ones.
    columns: HashMap<(String, u64), FilePart>,
    /// The rows that are still deleted, by files and offsets of the old bitmaps.
    deleted: HashMap<(String, u64), Option<Deleted>>,
}

impl Rewritten {
    /// Writes the new files.
    ///
    /// # Errors
    /// [`Error::Read`], [`ShardError::Companion`], [`Error::Stopped`], [`Error::Io`].
    pub(super) fn write<P: Place>(
        place: &P,
        chosen: &Chosen,
        jobs: NonZeroUsize,
        progress: &dyn Progress,
    ) -> Result<Self, Error> {
        let affected: Vec<_> = chosen.affected().collect();
        let line = |kept: &KeptShard| &chosen.split(kept).entry().shards[Chosen::number(kept)];
        let records = affected.iter().map(|(_, kept)| line(kept).records - kept.rows.len() as u64).sum();
        progress.total(records, affected.iter().map(|(_, kept)| line(kept).bytes).sum());
        let (mut shards, mut stores_keys) = (HashMap::new(), false);
        let one = |at: usize| shard_without(place, chosen, affected[at].1, progress);
        ordered(jobs, affected.len(), 2 * jobs.get(), one, |at, new: Result<_, Error>| {
            let (new, stores) = new?;
            shards.insert(affected[at].0.clone(), new);
            stores_keys |= stores;
            Ok::<(), Error>(())
        })?;
        let mut rewritten = Rewritten { shards, stores_keys, columns: HashMap::new(), deleted: HashMap::new() };
        rewritten.write_companions(place, chosen, progress)?;
        Ok(rewritten)
    }

    /// Returns the number of new shards.
    pub(super) fn shards(&self) -> u64 {
        self.shards.len() as u64
    }

    /// Returns their bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.shards.values().map(|shard| shard.bytes).sum()
    }

    /// Writes each file of columns or bitmaps again that has those of a new shard: the file has the values of purged rows.
    fn write_companions<P: Place>(&mut self, place: &P, chosen: &Chosen, progress: &dyn Progress) -> Result<(), Error> {
        // By file and offset: a part belongs to one shard, whichever versions name it.
        let mut columns: BTreeMap<&str, BTreeMap<u64, (&Shard, &str, &FilePart)>> = BTreeMap::new();
        let mut bitmaps: BTreeMap<&str, BTreeMap<u64, (&Shard, &Deleted)>> = BTreeMap::new();
        for shard in chosen.manifests().flat_map(|manifest| &manifest.splits).flat_map(|split| &split.shards) {
            for column in &shard.companions.columns {
                let FilePart { file, offset, .. } = &column.index;
                columns.entry(file).or_default().insert(*offset, (shard, &column.name, &column.index));
            }
            if let Some(deleted) = &shard.companions.deleted {
                let FilePart { file, offset, .. } = &deleted.bitmap;
                bitmaps.entry(file).or_default().insert(*offset, (shard, deleted));
            }
        }
        for manifest in chosen.manifests() {
            for view in manifest.views() {
                let lines = manifest.split(&view.split).map_or(&[][..], |split| &split.shards);
                for ViewShard { file, absent } in &view.shards {
                    if let (Some(absent), Some(line)) = (absent, lines.iter().find(|line| line.file == *file)) {
                        let FilePart { file, offset, .. } = &absent.bitmap;
                        bitmaps.entry(file).or_default().insert(*offset, (line, absent));
                    }
                }
            }
        }
        let rows = |shard: &Shard| chosen.shards.get(&shard.file).map_or(&[][..], |kept| &kept.rows);
        for parts in columns.into_values().filter(|parts| parts.values().any(|(shard, ..)| !rows(shard).is_empty())) {
            let mut file = PartsFile::new(place, Holds::Columns);
            for (offset, (shard, name, part)) in parts {
                check(progress)?;
                let old = read_part(place, part)?;
                let new = match self.shards.get(&shard.file) {
                    Some(new) => file.add(&column_without(place, &old, name, part, rows(shard), new)?)?,
                    None => file.add(&old)?,
                };
                self.columns.insert((part.file.clone(), offset), new);
            }
            file.finish()?;
        }
        for parts in bitmaps.into_values().filter(|parts| parts.values().any(|(shard, _)| !rows(shard).is_empty())) {
            let mut file = PartsFile::new(place, Holds::Deleted);
            for (offset, (shard, deleted)) in parts {
                let old = read_part(place, &deleted.bitmap)?;
                let left = match self.shards.get(&shard.file) {
                    Some(new) => bitmap_without(place, &old, shard, deleted, rows(shard), new)?,
                    None => Some((deleted.rows, old)),
                };
                let left = left.map(|(rows, bits)| Ok::<_, Error>(Deleted { rows, bitmap: file.add(&bits)? }));
                self.deleted.insert((deleted.bitmap.file.clone(), offset), left.transpose()?);
            }
            file.finish()?;
        }
        Ok(())
    }

    /// Returns the manifest of a version without the purged rows; `None` if it stays as it is.
    pub(super) fn manifest(&self, manifest: &Manifest) -> Option<Manifest> {
        let mut next = manifest.clone();
        let mut is_new = false;
        for shard in next.splits.iter_mut().flat_map(|split| &mut split.shards) {
            let companions = self.companions(&shard.companions);
            match self.shards.get(&shard.file) {
                Some(new) => {
                    is_new = true;
                    *shard = Shard { companions, ..new.clone() };
                }
                None => shard.companions = companions,
            }
        }
        if let Some(versions) = &mut next.versions {
            versions.views.iter_mut().for_each(|view| self.view(view));
        }
        if is_new && self.stores_keys {
            let features = match &mut next.versions {
                Some(versions) => &mut versions.stored,
                None => &mut next.features,
            };
            add_key(features);
            if let Some(versions) = &next.versions {
                next.features = versions.features();
            }
        }
        (next != *manifest).then_some(next)
    }

    fn view(&self, view: &mut View) {
        for shard in &mut view.shards {
            if let Some(absent) = &shard.absent
                && let Some(left) = self.deleted.get(&(absent.bitmap.file.clone(), absent.bitmap.offset))
            {
                shard.absent.clone_from(left);
            }
            if let Some(new) = self.shards.get(&shard.file) {
                shard.file.clone_from(&new.file);
            }
        }
        // Shards of which it has no row any more.
        let records = |file: &str| self.shards.values().find(|new| new.file == file).map(|new| new.records);
        view.shards.retain(|shard| records(&shard.file) != Some(shard.absent.as_ref().map_or(0, |absent| absent.rows)));
    }

    fn companions(&self, old: &Companions) -> Companions {
        let mut new = old.clone();
        for column in &mut new.columns {
            if let Some(part) = self.columns.get(&(column.index.file.clone(), column.index.offset)) {
                column.index = part.clone();
            }
        }
        if let Some(Deleted { bitmap, .. }) = &old.deleted
            && let Some(left) = self.deleted.get(&(bitmap.file.clone(), bitmap.offset))
        {
            new.deleted.clone_from(left);
        }
        new
    }
}

/// Adds the key to the features, if it is not there.
fn add_key(features: &mut Vec<FeatureType>) {
    if !features.iter().any(|feature| [names::IMAGE_KEY, names::IMAGE_FILENAME].contains(&feature.name.as_str())) {
        features.push(FeatureType { name: names::IMAGE_KEY.to_owned(), dtype: DType::Bytes });
        features.sort_by(|a, b| a.name.cmp(&b.name));
    }
}

/// Writes a shard without its purged rows. Returns it, and whether its records store keys that were their places. A shard that a killed
/// run has finished is not written again.
fn shard_without<P: Place>(
    place: &P,
    chosen: &Chosen,
    kept: &KeptShard,
    progress: &dyn Progress,
) -> Result<(Shard, bool), Error> {
    let split = chosen.split(kept);
    let line = Shard { companions: Companions::default(), ..split.entry().shards[Chosen::number(kept)].clone() };
    let stored = split.manifest().stored_features().to_vec();
    let plain = Manifest { features: stored, splits: vec![], ..split.manifest().without_versions() };
    let name = shards_name(split.name(), (&line.file, line.crc32c, &kept.rows));
    let mut options = ReshardOptions::default();
    (options.shards, options.seed, options.jobs) = (Shards::Count(1), None, NonZeroUsize::MIN);
    options.sha256 = line.sha256.is_some();
    options.entry_points = chosen.open(kept)?.columns().iter().any(|column| column.name() == JPEG_ENTRIES);
    let rows = kept.rows.clone();
    options.selection = Some(Selection::new(vec![], move |_, row| Ok(rows.binary_search(&row).is_err())));
    let one = Manifest { splits: vec![Split { name: split.name().to_owned(), shards: vec![line] }], ..plain.clone() };
    let old = Dataset::of_manifest(place.path(), one, Options::default());
    let with_keys = with_keys(&plain);
    let plan = Resharding::keeping_keys(&name, &old.splits()[0], &options)?;
    let new = plan.write(&with_keys, place, &options, progress)?;
    let [new] = <[Shard; 1]>::try_from(new).expect("one shard was planned");
    Ok((new, with_keys.features != plain.features))
}

fn path<P: Place>(place: &P, part: &FilePart) -> PathBuf {
    place.path().join(names::COLUMNS_FOLDER).join(&part.file)
}

fn damaged<P: Place>(place: &P, part: &FilePart) -> Error {
    Error::Shard(ShardError::Companion { path: path(place, part), offset: part.offset })
}

/// Reads a part of a file of columns or bitmaps, and checks its CRC.
fn read_part<P: Place>(place: &P, part: &FilePart) -> Result<Vec<u8>, Error> {
    let file = FileBytes::open(&path(place, part), Access::Pread).map_err(Error::of_file)?;
    let mut bytes = vec![];
    let end = part.end().filter(|end| *end <= file.len()).ok_or_else(|| damaged(place, part))?;
    file.read_into(part.offset..end, &mut bytes).map_err(Error::of_file)?;
    if crc32c(&bytes) == part.crc32c { Ok(bytes) } else { Err(damaged(place, part)) }
}

/// Returns a column without some rows, for a new shard.
fn column_without<P: Place>(
    place: &P,
    old: &[u8],
    name: &str,
    part: &FilePart,
    gone: &[u64],
    shard: &Shard,
) -> Result<Vec<u8>, Error> {
    let damaged = || damaged(place, part);
    let index = Index::parse_companion(old).map_err(|_| damaged())?;
    index.check(0).map_err(|_| damaged())?;
    let rows = (0..index.records()).filter(|row| gone.binary_search(row).is_err());
    let mut builder = Builder::companion(shard.records, shard.bytes, shard.crc32c);
    let element = index.columns().first().map(|column| column.element());
    if element == Some(Element::I64) {
        let column = index.fixed::<i64>(0).ok_or_else(damaged)?;
        builder.fixed_nullable(name, rows.map(|row| column.get(row)));
    } else if element == Some(Element::F32) {
        let column = index.fixed::<f32>(0).ok_or_else(damaged)?;
        builder.fixed_nullable(name, rows.map(|row| column.get(row)));
    } else {
        let column = index.variable(0).ok_or_else(damaged)?;
        builder.variable_nullable(name, rows.map(|row| column.get(row)));
    }
    Ok(builder.finish())
}

/// Returns the rows of a new shard that are still deleted, and their bitmap; `None` if none is.
fn bitmap_without<P: Place>(
    place: &P,
    old: &[u8],
    shard: &Shard,
    deleted: &Deleted,
    gone: &[u64],
    new: &Shard,
) -> Result<Option<(u64, Vec<u8>)>, Error> {
    let before = DeletedRows::parse(old, shard.records, deleted.rows);
    let before = before.map_err(|_| damaged(place, &deleted.bitmap))?;
    let rows = (0..shard.records).filter(|row| gone.binary_search(row).is_err());
    let still = (0..).zip(rows).filter(|(_, row)| before.contains(*row)).map(|(row, _)| row);
    let after = DeletedRows::none(new.records).with(still);
    let left = new.records - after.live_rows();
    Ok((left > 0).then(|| (left, after.as_bytes().to_vec())))
}
