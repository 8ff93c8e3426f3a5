//! The listing of the source that [`super::write_plan`] stores for the parts, which then do not list it: `_plan/SPLIT/listing`
//! has a piece for each shard (for archives a single one), `_plan/SPLIT/listing.json` names the pieces. Both belong to one
//! version of this program. A part that cannot use them lists the source itself.

use super::Part;
use crate::array::ArrayColumn;
use crate::place::{NewFile, Place};
use crate::plan::{FilePlan, Totals, Work};
use crate::sample::SampleSchema;
use crate::source::archive::{Archives, StoredArchives};
use crate::source::{Entry, Listing};
use crate::split::files::SplitFiles;
use crate::split::manifest_store::CREATED_BY;
use crate::{Error, OnError, Options, Plan};
use serde::{Deserialize, Serialize};
use shardtool_format::checksum::crc32c;
use shardtool_read::{Access, FileBytes};
use std::path::{Path, PathBuf};

/// What `format` says.
const FORMAT: &str = "shardtool-planned-listing";

/// Compression level: listings shrink to about a tenth.
const LEVEL: i32 = 3;

/// The content of `listing.json`.
#[derive(Serialize, Deserialize)]
struct Table {
    format: String,
    version: u32,
    created_by: String,
    /// The source, and the options that decide how it is listed.
    listed: String,
    /// The folder to which paths are relative.
    root: String,
    /// CRC32C of the planned shards, which were written before.
    planned_crc32c: u32,
    /// Whether an input was rejected when the source was listed.
    rejected: bool,
    schema: SampleSchema,
    /// Of single files; archives count theirs.
    totals: Option<(u64, u64, u32)>,
    pieces: Vec<Piece>,
}

/// A piece: its length in bytes, its CRC32C, and its length when decompressed.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Piece(u64, u32, u64);

/// Returns a text that is the same for the same source and the same options, as far as these decide how it is listed.
fn listed(options: &Options) -> String {
    let arrays: Vec<_> = options.arrays.iter().map(ArrayColumn::describe).collect();
    let Options { source, from, map, label_offset, classes, columns, files, frames, .. } = options;
    let Options { fps, boxes, images, ignore_times, limits, split_names, member_key, .. } = options;
    let (names, values) = ((map, classes, columns, files, frames, arrays), (label_offset, fps, boxes, images, limits));
    format!("{:?}", (source, from, names, values, ignore_times, split_names, member_key))
}

/// Stores the listing of a plan.
///
/// # Errors
/// [`DestinationError`](crate::DestinationError), [`Error::Io`].
pub(super) fn write<P: Place>(
    files: &SplitFiles<P>,
    options: &Options,
    plan: &Plan,
    planned: &[u8],
) -> Result<(), Error> {
    let root = match &plan.work {
        Work::Files(plan) => plan.listing.root(),
        Work::Archives(_) => Path::new(""),
    };
    // Without a name for the root, parts list the source.
    let Some(root) = root.to_str() else { return Ok(()) };
    let place = files.place();
    let mut file = place.create(&files.listing())?;
    let mut pieces = vec![];
    let mut put = |bytes: &[u8]| -> Result<(), Error> {
        let packed = zstd::bulk::compress(bytes, LEVEL).map_err(Error::io("write", &files.path(&files.listing())))?;
        file.write(&packed)?;
        pieces.push(Piece(packed.len() as u64, crc32c(&packed), bytes.len() as u64));
        Ok(())
    };
    let totals = match &plan.work {
        Work::Files(plan) => {
            for shard in 0..plan.shards() {
                let entries: Vec<&Entry> =
                    plan.positions(shard).map(|position| &plan.listing.entries[plan.entry(position)]).collect();
                put(&postcard::to_stdvec(&entries).expect("texts and numbers"))?;
            }
            let Totals { images, bytes, crc } = plan.totals;
            Some((images, bytes, crc))
        }
        Work::Archives(plan) => {
            // A path that is not UTF-8 cannot be stored.
            let Ok(bytes) = postcard::to_stdvec(&plan.archives.stored()) else { return Ok(()) };
            put(&bytes)?;
            None
        }
    };
    let table = Table {
        format: FORMAT.to_owned(),
        version: 1,
        created_by: CREATED_BY.to_owned(),
        listed: listed(options),
        root: root.to_owned(),
        planned_crc32c: crc32c(planned),
        rejected: !plan.rejected().is_empty(),
        schema: plan.schema().clone(),
        totals,
        pieces,
    };
    let table = serde_json::to_vec(&table).expect("texts and numbers");
    file.publish()?;
    place.publish(&files.listing_table(), &table)?;
    place.sync(&files.plan_folder())
}

/// Returns the plan of a part from the stored listing; `None` if this part cannot use it or it does not exist.
///
/// # Errors
/// [`ArchiveError::MdsIndex`](crate::ArchiveError), [`Error::Io`].
pub(super) fn read<P: Place>(options: &Options, part: Part) -> Result<Option<Plan>, Error> {
    let Some(files) = SplitFiles::<P>::open(&options.destination, options.split())? else { return Ok(None) };
    let place = files.place();
    let Some(table) = place.read(&files.listing_table())? else { return Ok(None) };
    let Some(planned) = place.read(&files.planned())? else { return Ok(None) };
    let Ok(table) = serde_json::from_slice::<Table>(&table) else { return Ok(None) };
    if !table.serves(options, &planned) {
        return Ok(None);
    }
    let Ok(bytes) = FileBytes::open(&files.path(&files.listing()), Access::Pread) else { return Ok(None) };
    match table.totals {
        Some(totals) => Ok(table.files(&bytes, part, totals)),
        None => match table.pieces.first().and_then(|piece| piece.read(&bytes, 0)) {
            Some(stored) => archives(&stored, table.schema, options),
            None => Ok(None),
        },
    }
    .map(|work| work.map(|work| Plan::of_stored(work, options.split())))
}

fn archives(stored: &[u8], schema: SampleSchema, options: &Options) -> Result<Option<Work>, Error> {
    let Ok(stored) = postcard::from_bytes::<StoredArchives>(stored) else { return Ok(None) };
    let archives = Archives::restored(stored, schema, options)?;
    Ok(archives.map(|archives| Plan::of_archives(Box::new(archives), options)))
}

impl Table {
    /// Returns whether the listing is of this program, this source and these options, and belongs to the planned shards.
    fn serves(&self, options: &Options, planned: &[u8]) -> bool {
        // Which names the input that stops the run.
        let fails = self.rejected && options.on_error == OnError::Fail;
        let ours = (self.format.as_str(), self.version, self.created_by.as_str()) == (FORMAT, 1, CREATED_BY);
        ours && self.listed == listed(options) && self.planned_crc32c == crc32c(planned) && !fails
    }

    /// Returns the plan of a part of single files or rows.
    fn files(self, bytes: &FileBytes, part: Part, totals: (u64, u64, u32)) -> Option<Work> {
        let (mut entries, mut ends) = (vec![], vec![0; self.pieces.len()]);
        let mut own = part.shards(self.pieces.len()).into_iter().peekable();
        let mut at = 0;
        for (shard, (piece, end)) in self.pieces.iter().zip(&mut ends).enumerate() {
            if own.next_if_eq(&shard).is_some() {
                let some: Vec<Entry> = postcard::from_bytes(&piece.read(bytes, at)?).ok()?;
                entries.extend(some);
            }
            (*end, at) = (entries.len(), at.checked_add(piece.0)?);
        }
        let root = PathBuf::from(&self.root);
        let listing = Listing { entries, schema: self.schema, rejected: vec![], left_out: vec![], root, stored: true };
        let (images, bytes, crc) = totals;
        Some(Work::Files(FilePlan::of_part(listing, ends, Totals { images, bytes, crc })))
    }
}

impl Piece {
    /// Returns the decompressed piece at a byte of the listing; `None` if it is damaged.
    fn read(&self, listing: &FileBytes, at: u64) -> Option<Vec<u8>> {
        let Piece(length, crc, decoded) = *self;
        let mut packed = vec![];
        listing.read_into(at..at.checked_add(length)?, &mut packed).ok()?;
        let good = crc32c(&packed) == crc;
        good.then(|| zstd::bulk::decompress(&packed, usize::try_from(decoded).ok()?).ok()).flatten()
    }
}
