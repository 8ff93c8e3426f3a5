//! Copies records into other shards: larger, smaller, in another order, or those of several datasets together. Records
//! are copied byte for byte and checked.

mod stored;

use crate::commit::{self, Begun, Directory, Output, Request};
use crate::error::Difference;
use crate::error::{DestinationError, ShardError};
use crate::index_writer::{IndexOptions, IndexWriter, Payload};
use crate::metadata::RecordStripper;
use crate::ordered::ordered;
use crate::place::{NewFile, Place};
use crate::progress::{Progress, Step, after};
use crate::selection::Selection;
use crate::split::manifest_store;
use crate::{Error, Shards};
use serde_json::json;
use shardtool_format::example::Feature;
use shardtool_format::manifest::{Manifest, Shard, Split as SplitEntry};
use shardtool_format::{checksum, frame, index, names};
use shardtool_order::{Permutation, pack_permutation};
use shardtool_read::{Record, Split};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::num::NonZeroUsize;
use std::path::Path;

/// Options of [`reshard`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReshardOptions {
    /// Size of shards, or number of shards per split.
    pub shards: Shards,
    /// Seed of the order in which records are written, or `None` to keep their order, one source after the other.
    pub seed: Option<u64>,
    /// Number of threads; each writes one shard. Does not change any written byte.
    pub jobs: NonZeroUsize,
    /// Writes JPEG entry points into the indexes: those of the source's index, or new ones if it has none. Default:
    /// yes.
    pub entry_points: bool,
    /// Computes the SHA-256 of each shard for the manifest. Default: no.
    pub sha256: bool,
    /// Writes to a store that does not compare versions of objects: nothing else may write to the destination. Default: no.
    pub single_writer: bool,
    /// Removes metadata from the images of all records, which must be Examples. Set by [`compact`](crate::compact()) alone.
    pub(crate) strip_metadata: bool,
    /// Takes only these records. Their ids take 8 bytes of memory each. Default: all.
    pub selection: Option<Selection>,
}

impl Default for ReshardOptions {
    fn default() -> Self {
        ReshardOptions {
            shards: Shards::Size(256 << 20),
            seed: Some(0),
            jobs: crate::options::default_jobs(),
            entry_points: true,
            sha256: false,
            single_writer: false,
            strip_metadata: false,
            selection: None,
        }
    }
}

impl ReshardOptions {
    /// Returns what is written about each shard.
    pub(crate) fn index(&self) -> IndexOptions {
        IndexOptions { entry_points: self.entry_points, sha256: self.sha256 }
    }
}

/// Writes splits into a folder that does not exist or is empty, or into such a folder of a store, given by its URL. Returns
/// the new dataset's manifest. The dataset appears when it is complete. What a killed run left is removed by the next one; in
/// a store, one with the same sources and options continues it. If such a run has completed the dataset, returns its manifest and writes nothing. Each split consists of the records of all splits of its name among `sources`, which must have the same classes and features.
///
/// # Errors
/// [`Error::Shard`], [`Error::Destination`], [`Error::Stopped`], [`Error::Io`]; [`Error::Read`] for a damaged record: `repair` the source first. The
/// destination is then unchanged.
pub fn reshard(
    sources: &[Split],
    destination: &Path,
    options: &ReshardOptions,
    progress: &dyn Progress,
) -> Result<Manifest, Error> {
    let first = sources.first().ok_or(Error::Option { option: "sources", expected: "at least one split" })?;
    let manifest = Manifest {
        splits: vec![],
        created_by: manifest_store::CREATED_BY.to_owned(),
        ..first.manifest().without_versions()
    };
    for source in sources {
        source.check_counts()?;
        if source.is_bare() {
            return Err(Error::Shard(ShardError::Bare { path: source.shard_path(0) }));
        }
        if let Some(difference) = Difference::between(&manifest, &source.manifest().without_versions()) {
            let (destination, split) = (destination.to_owned(), source.name().to_owned());
            return Err(Error::Destination(DestinationError::Incompatible { destination, split, difference }));
        }
    }
    let destination = shardtool_store::local_path(destination);
    let request = request(sources, options);
    if shardtool_store::is_url(&destination) {
        return stored::reshard(sources, &destination, manifest, &request, options, progress);
    }
    let output = match Output::begin::<()>(&destination, false, Some(request))? {
        Begun::Output(output) => output,
        Begun::Complete(()) => return complete(&destination),
    };
    output.files().create_folder(names::INDEX_FOLDER)?;
    let manifest = resharded(sources, manifest, output.files(), options, progress)?;
    commit::publish(output.files(), Path::new(names::MANIFEST), manifest.to_json().as_bytes())?;
    output.publish(progress)?;
    Ok(manifest)
}

/// Returns exactly what determines the written bytes.
fn request(sources: &[Split], options: &ReshardOptions) -> Request {
    let ReshardOptions { shards, seed, entry_points, sha256, selection, jobs: _, single_writer: _, strip_metadata: _ } =
        options;
    let options = [
        ("shards", json!(shards.describe())),
        ("seed", json!(seed)),
        ("entry_points", json!(entry_points)),
        ("sha256", json!(sha256)),
    ];
    Request::new("reshard", sources, options.into_iter().chain(Selection::describe(selection.as_ref())))
        .expect("bare files are refused before")
}

/// Returns the manifest of a complete dataset.
fn complete(destination: &Path) -> Result<Manifest, Error> {
    let manifest = Directory::open(destination)?.map(|folder| Place::manifest(&folder)).transpose()?.flatten();
    manifest.ok_or_else(|| Error::io("read", &destination.join(names::MANIFEST))(ErrorKind::NotFound.into()))
}

/// Writes the shards of all splits, and adds the splits to the manifest.
fn resharded<P: Place>(
    sources: &[Split],
    mut manifest: Manifest,
    place: &P,
    options: &ReshardOptions,
    progress: &dyn Progress,
) -> Result<Manifest, Error> {
    progress.total(sources.iter().map(Split::len).sum(), sources.iter().map(|s| s.entry().bytes()).sum());
    let mut split_names: Vec<_> = sources.iter().map(Split::name).collect();
    split_names.sort_unstable();
    split_names.dedup();
    for name in split_names {
        let parts: Vec<_> = sources.iter().filter(|source| source.name() == name).collect();
        let plan = Resharding::new(name, parts, options)?;
        let shards = plan.write(&manifest, place, options, progress)?;
        manifest.splits.push(SplitEntry { name: name.to_owned(), shards });
    }
    Ok(manifest)
}

/// The plan of one split.
pub(crate) struct Resharding<'a> {
    name: &'a str,
    parts: Vec<&'a Split>,
    /// The first id of each part, and the total number of records.
    starts: Vec<u64>,
    /// Those of all records that are written; `None` for all.
    selected: Option<Vec<u64>>,
    order: Option<Permutation>,
    /// The end of each shard, as a position.
    ends: Vec<u64>,
    /// Whether records whose key is their place store it.
    stores_keys: bool,
}

impl<'a> Resharding<'a> {
    /// Plans new shards of one split, whose records store their keys.
    ///
    /// # Errors
    /// [`Error::Option`], [`Error::Read`].
    pub(crate) fn keeping_keys(name: &'a str, split: &'a Split, options: &ReshardOptions) -> Result<Self, Error> {
        let plan = Self::new(name, vec![split], options)?;
        Ok(Resharding { stores_keys: !split.manifest().is_opaque(), ..plan })
    }

    fn new(name: &'a str, parts: Vec<&'a Split>, options: &ReshardOptions) -> Result<Self, Error> {
        if parts.len() > 1 {
            unique_keys(name, &parts)?;
        }
        let mut starts = vec![0];
        for part in &parts {
            starts.push(starts[starts.len() - 1] + part.len());
        }
        let selected = options.selection.as_ref().map(|selection| selected(selection, &parts, &starts)).transpose()?;
        let count = selected.as_ref().map_or(starts[parts.len()], |selected| selected.len() as u64);
        let order = options.seed.map(|seed| pack_permutation(seed, count).expect("fewer than 2^63 records"));
        let mut plan = Resharding { name, parts, starts, selected, order, ends: vec![], stores_keys: false };
        let total = plan.bytes(count)?;
        let shards = match options.shards {
            Shards::Count(count) => count,
            Shards::Size(size) => total.div_ceil(size).max(1),
        };
        if shards == 0 || shards > 1_000_000 {
            return Err(Error::Option { option: "shard size", expected: "one that makes 1 to 1,000,000 shards" });
        }
        plan.ends = vec![0; shards as usize];
        // As in `pack`: a record that begins at byte b of all in their new order belongs to shard ⌊b · shards ÷ total⌋.
        let mut begin = 0u64;
        for position in 0..count {
            let shard = u128::from(begin) * u128::from(shards) / u128::from(total.max(1));
            plan.ends[(shard as usize).min(shards as usize - 1)] = position + 1;
            begin += plan.frame_bytes(position)?;
        }
        let mut end = 0;
        for shard_end in &mut plan.ends {
            end = end.max(*shard_end);
            *shard_end = end;
        }
        Ok(plan)
    }

    /// Returns the part and the record id at a position of the new order.
    fn locate(&self, position: u64) -> (&'a Split, u64) {
        let number = self.order.as_ref().map_or(position, |order| order.forward(position));
        let id = self.selected.as_ref().map_or(number, |selected| selected[number as usize]);
        let part = self.starts.partition_point(|start| *start <= id) - 1;
        (self.parts[part], id - self.starts[part])
    }

    /// Returns the bytes of a frame.
    fn frame_bytes(&self, position: u64) -> Result<u64, Error> {
        let (part, id) = self.locate(position);
        let (shard, row) = part.locate(id)?;
        let place = part.shard(shard)?.frame(row)?;
        Ok(place.end - place.start)
    }

    /// Returns the bytes of all frames that are written.
    fn bytes(&self, count: u64) -> Result<u64, Error> {
        match self.selected {
            Some(_) => (0..count).map(|position| self.frame_bytes(position)).sum(),
            None => Ok(self.parts.iter().map(|part| part.entry().bytes()).sum()),
        }
    }

    pub(crate) fn write<P: Place>(
        &self,
        manifest: &Manifest,
        place: &P,
        options: &ReshardOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<Shard>, Error> {
        let mut shards = vec![];
        let finished = self.finished(place, options)?;
        let one = |number: usize| match &finished[number] {
            Some(shard) => {
                progress.done(shard.records, shard.bytes);
                Ok(shard.clone())
            }
            None => self.shard(number, manifest, place, options, progress),
        };
        ordered(options.jobs, self.ends.len(), 2 * options.jobs.get(), one, |_, shard: Result<Shard, Error>| {
            shards.push(shard?);
            Ok::<(), Error>(())
        })?;
        Ok(shards)
    }

    fn shard<P: Place>(
        &self,
        number: usize,
        manifest: &Manifest,
        place: &P,
        options: &ReshardOptions,
        progress: &dyn Progress,
    ) -> Result<Shard, Error> {
        let name = names::shard_file(self.name, number);
        let mut file = place.create(Path::new(&name))?;
        let mut writer = IndexWriter::new(&name, Payload::of(manifest), options.index());
        let stripper = options.strip_metadata.then(|| RecordStripper::new(manifest)).transpose()?;
        let mut buffer = vec![];
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        for position in start..self.ends[number] {
            let (part, id) = self.locate(position);
            let record = part.get_with(id, std::mem::take(&mut buffer))?;
            let keyed = if self.stores_keys { with_key(&record)? } else { None };
            let data = keyed.as_deref().unwrap_or(record.data());
            let stripped = match &stripper {
                Some(stripper) => stripper.strip(part.name(), &record, data)?,
                None => None,
            };
            let data = stripped.as_deref().unwrap_or(data);
            let crc = checksum::crc32c(data);
            let known = record.shard().variable(index::JPEG_ENTRIES)?.and_then(|column| column.get(record.row()));
            match known {
                // Those of another image file are at other bytes.
                Some(entries) if options.entry_points && stripped.is_none() => {
                    writer.push_with_entries(data, crc, entries.to_vec())?;
                }
                _ => {
                    writer.push(data, crc)?;
                }
            }
            file.write(&frame::header(data.len() as u64))?;
            file.write(data)?;
            file.write(&frame::footer(crc))?;
            record.check_readable()?;
            progress.done(1, data.len() as u64);
            buffer = record.into_buffer();
        }
        file.flush()?;
        let indexed = writer.finish_with(&mut || file.readable())?;
        file.publish()?;
        place.publish(&names::index_path(Path::new(&name)), &indexed.index)?;
        after(progress, Step::Shard)?;
        Ok(indexed.shard)
    }
}

/// Returns the data of a record with its key as a feature; `None` if it stores one.
fn with_key(record: &Record) -> Result<Option<Vec<u8>>, Error> {
    let mut example = record.example()?;
    let key = record.key()?;
    if names::stored_key(&example).is_some() {
        return Ok(None);
    }
    let mut data = vec![];
    example.set(names::IMAGE_KEY, Some(Feature::of_bytes(&key)));
    example.encode(&mut data);
    Ok(Some(data))
}

/// Returns the numbers of the selected records, counted over all parts.
fn selected(selection: &Selection, parts: &[&Split], starts: &[u64]) -> Result<Vec<u64>, Error> {
    let mut selected = vec![];
    for (part, start) in parts.iter().zip(starts) {
        for id in 0..part.len() {
            if selection.takes(part, id)? {
                selected.push(start + id);
            }
        }
    }
    Ok(selected)
}

/// Refuses a key that two of the splits have in common. Keys repeated in one split are allowed. Takes about 40 bytes
/// per record.
fn unique_keys(name: &str, parts: &[&Split]) -> Result<(), Error> {
    let random = RandomState::new();
    // Hash of a key → the first part, shard and row that have it.
    let mut seen: HashMap<u64, (usize, usize, u64)> = HashMap::new();
    for (number, part) in parts.iter().enumerate() {
        for at in 0..part.entry().shards.len() {
            let shard = part.shard(at)?;
            for (_, row) in part.rows(at)? {
                let key = shard.key(row)?;
                if key.is_empty() {
                    continue;
                }
                let (other, first, first_row) = *seen.entry(random.hash_one(&*key)).or_insert((number, at, row));
                if other != number && *parts[other].shard(first)?.key(first_row)? == *key {
                    return Err(Error::Shard(ShardError::MergedKey {
                        key: String::from_utf8_lossy(&key).into_owned(),
                        split: name.to_owned(),
                        first: parts[other].shard_path(first),
                        second: part.shard_path(at),
                    }));
                }
            }
        }
    }
    Ok(())
}
