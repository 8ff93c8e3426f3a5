//! Shards of archives that have not changed since they were indexed: the next `index` takes over their indexes, and reads other archives.
//! A time is a hint and no proof: every survey reads all but the images and compares their CRC; readers compare the bytes of images with the
//! CRC that was known.

use crate::place::Place;
use crate::plan::{ArchivePlan, Plan, Work};
use crate::source::archive::SurveyedFile;
use crate::source_times::{self, SourceTimes};
use crate::split::files::SplitFiles;
use crate::split::plan_file::{PlanFile, Stage};
use crate::{Error, Options};
use shardtool_decode::Truncated;
use shardtool_format::checksum::crc32c;
use shardtool_format::index::{Index, SourceFile};
use shardtool_format::manifest::Shard;
use shardtool_format::names;
use shardtool_host::system_memory::SystemLimits;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Indexes that stay as they are, by the number that their shard has now.
#[derive(Debug, Default)]
pub(crate) struct KnownShards(BTreeMap<usize, Vec<u8>>);

impl KnownShards {
    /// Reads the indexes that the split has of archives with the same time and length. What is damaged, has rejected samples, or was
    /// made with other options, is left out.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn of<P: Place>(files: &SplitFiles<P>, options: &Options, plan: &Plan) -> Result<Self, Error> {
        let (Some(source), Work::Archives(archives)) = (&options.virtual_source, &plan.work) else {
            return Ok(Self::default());
        };
        // Whether an image is cut is not known.
        if options.truncated != Truncated::Error {
            return Ok(Self::default());
        }
        let Some(manifest) = files.place().manifest()? else { return Ok(Self::default()) };
        let split =
            manifest.split(files.split()).filter(|split| split.shards.iter().all(|s| s.foreign == source.foreign));
        let Some(split) = split else { return Ok(Self::default()) };
        let bytes = split.shards.iter().map(|shard| shard.index_bytes).fold(0, u64::saturating_add);
        if SystemLimits::find(Path::new("/")).exceeded_by(bytes).is_some() {
            return Ok(Self::default());
        }
        let conventions =
            source_times::of_archives(&archives.archives, options, &PlanFile::new(options, plan, Stage::Packing));
        let Some(times) = SourceTimes::read(files.folder(), split, conventions) else { return Ok(Self::default()) };
        let mut positions = HashMap::new();
        for position in 0..archives.archives.files.len() {
            let SurveyedFile { file, crc, .. } = archives.file_at(position);
            if let Ok(name) = source.name(&file.path, file.size)
                && times.has(&source_times::archive_name(&name.name, *crc), file.version())
            {
                positions.insert((name.name.clone(), name.length), position);
            }
        }
        // The shards of each archive, in order.
        let mut found: HashMap<usize, Vec<KnownShard>> = HashMap::new();
        for line in &split.shards {
            let Some(shard) = KnownShard::read(files, line) else { continue };
            if let Some(position) = positions.get(&(shard.archive.clone(), shard.length)) {
                found.entry(*position).or_default().push(shard);
            }
        }
        let mut known = BTreeMap::new();
        for (position, shards) in found {
            known.extend(in_plan(archives, position, shards));
        }
        Ok(KnownShards(known))
    }

    /// Returns whether this is the line of a shard whose index stays as it is.
    pub(crate) fn has(&self, number: usize, line: &Shard) -> bool {
        let same = |index: &Vec<u8>| (index.len() as u64, crc32c(index)) == (line.index_bytes, line.index_crc32c);
        self.0.get(&number).is_some_and(same)
    }

    /// Writes the indexes under the names that they have now, which finishes their shards. Returns their number.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish<P: Place>(self, files: &SplitFiles<P>) -> Result<usize, Error> {
        for (number, index) in &self.0 {
            files.place().publish(&files.index(*number), index)?;
        }
        Ok(self.0.len())
    }
}

/// The index of a shard whose records lie in one archive.
struct KnownShard {
    archive: String,
    /// Length of the archive.
    length: u64,
    records: u64,
    index: Vec<u8>,
}

impl KnownShard {
    /// Reads an index; `None` if it cannot be read, is not as the manifest says, or describes another number of files than one.
    fn read<P: Place>(files: &SplitFiles<P>, line: &Shard) -> Option<Self> {
        let bytes = files.place().read(&names::index_path(Path::new(&line.file))).ok()??;
        if (bytes.len() as u64, crc32c(&bytes)) != (line.index_bytes, line.index_crc32c) {
            return None;
        }
        let index = Index::parse(&*bytes).ok()?;
        let values = index.variable(index.virtual_columns().ok()?.files)?.values();
        let file = SourceFile::decode(values, 0).filter(|file| file.bytes() == values.len() as u64)?;
        let (archive, length, records) = (file.name.to_owned(), file.length, index.records());
        Some(KnownShard { archive, length, records, index: bytes })
    }
}

/// Returns the numbers that the shards of an archive have in a plan; none unless these are all, without a rejected sample.
fn in_plan(plan: &ArchivePlan, position: usize, shards: Vec<KnownShard>) -> Vec<(usize, Vec<u8>)> {
    let numbers = plan.shards_at(position);
    let is_whole = |(number, shard): (usize, &KnownShard)| plan.sample_count(number).images == shard.records;
    match shards.len() == numbers.len() && numbers.clone().zip(&shards).all(is_whole) {
        true => numbers.zip(shards).map(|(number, shard)| (number, shard.index)).collect(),
        false => vec![],
    }
}
