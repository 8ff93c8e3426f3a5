//! What an index knows of images whose files have not changed since: they are described again without being read. A time is a hint and
//! no proof; readers compare the bytes with the CRC that was known.

use crate::Options;
use crate::source_times::{self, SourceTimes};
use shardtool_decode::{Format, Truncated};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Example, Feature};
use shardtool_format::frame;
use shardtool_format::index::{self, FramePart, Index, SourceFile, VirtualColumns, frame_parts};
use shardtool_format::manifest::{Foreign, Manifest, Shard};
use shardtool_format::names;
use shardtool_host::system_memory::SystemLimits;
use std::collections::HashMap;
use std::path::Path;

/// Bytes of a record besides its image that are taken over, at most.
const MOST_BESIDES: u64 = 64 << 20;

/// Images that an index describes.
#[derive(Debug, Default)]
pub(crate) struct KnownImages {
    splits: HashMap<String, KnownSplit>,
}

#[derive(Debug)]
struct KnownSplit {
    shards: Vec<KnownShard>,
    /// Where each file is described.
    rows: HashMap<Box<str>, KnownRow>,
    times: SourceTimes,
}

#[derive(Debug)]
struct KnownShard {
    index: Index<Vec<u8>>,
    columns: VirtualColumns,
    /// The column of entry points, if there is one.
    entries: Option<usize>,
    bytes: u64,
}

#[derive(Debug)]
struct KnownRow {
    shard: usize,
    row: u64,
    /// Length of the file.
    length: u64,
    crc: u32,
}

/// An image that need not be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownImage<'a> {
    pub(crate) format: Format,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) channels: u32,
    pub(crate) orientation: u32,
    /// CRC32C of its bytes.
    pub(crate) crc: u32,
    pub(crate) entries: &'a [u8],
}

impl KnownImages {
    /// Reads the indexes of a dataset that describes this source. What is damaged, or was made with other options, is left out.
    pub(crate) fn of(dataset: &Path, manifest: &Manifest, source: &Foreign, options: &Options) -> Self {
        let mut known = KnownImages::default();
        // Whether an image is cut is not known; and without times, nothing says that it is the same.
        if options.truncated != Truncated::Error || options.ignore_times {
            return known;
        }
        let splits = manifest.splits.iter().filter(|split| split.shards.iter().all(|shard| shard.foreign == *source));
        let splits: Vec<_> = splits.collect();
        let lengths = splits.iter().flat_map(|split| &split.shards).map(|shard| shard.index_bytes);
        let bytes = lengths.fold(0u64, u64::saturating_add).saturating_mul(2);
        if SystemLimits::find(Path::new("/")).exceeded_by(bytes).is_some() {
            return known;
        }
        for split in splits {
            let Some(times) = SourceTimes::read(dataset, split, source_times::of_images(options)) else { continue };
            let mut found = KnownSplit { shards: vec![], rows: HashMap::new(), times };
            split.shards.iter().for_each(|shard| found.add(dataset, shard));
            known.splits.insert(split.name.clone(), found);
        }
        known
    }

    /// Returns whether the listing of a split had this path with this version.
    pub(crate) fn has(&self, split: &str, (path, version): (&str, i64)) -> bool {
        self.splits.get(split).is_some_and(|split| split.times.has(path, version))
    }

    /// Returns what a split knows of the image that is the file of this name and length.
    pub(crate) fn find(&self, split: &str, file: &str, length: u64) -> Option<KnownImage<'_>> {
        let split = self.splits.get(split)?;
        let row = split.rows.get(file).filter(|row| row.length == length)?;
        split.shards[row.shard].image(row)
    }
}

impl KnownSplit {
    /// Adds the images of a shard, unless its index is damaged.
    fn add(&mut self, dataset: &Path, line: &Shard) {
        let Ok(bytes) = shardtool_read::read_index(&names::index_path(&dataset.join(&line.file))) else { return };
        if (bytes.len() as u64, crc32c(&bytes)) != (line.index_bytes, line.index_crc32c) {
            return;
        }
        let Ok(index) = Index::parse(bytes) else { return };
        let Ok(columns) = index.virtual_columns() else { return };
        let entries = index.position(index::JPEG_ENTRIES);
        let shard = KnownShard { index, columns, entries, bytes: line.bytes };
        for row in 0..shard.index.records() {
            if let Some((name, found)) = shard.row(row) {
                self.rows.insert(name.into(), KnownRow { shard: self.shards.len(), ..found });
            }
        }
        self.shards.push(shard);
    }
}

impl KnownShard {
    /// Returns the offset and the parts of the frame of a row.
    fn frame(&self, row: u64) -> Option<Vec<FramePart<'_>>> {
        let offsets = self.index.fixed::<u64>(self.index.required().ok()?.record_offset)?;
        let length = offsets.get(row + 1).unwrap_or(self.bytes).checked_sub(offsets.get(row)?)?;
        let ranges = self.index.variable(self.columns.ranges)?.get(row)?;
        frame_parts(ranges, self.index.variable(self.columns.bytes)?.get(row)?, length).ok()
    }

    /// Returns the file that is the image of a row, whole, and where it is described.
    fn row(&self, row: u64) -> Option<(&str, KnownRow)> {
        let image = self.index.fixed::<u32>(self.index.required().ok()?.image_offset)?.get(row)?;
        let mut at = 0;
        for part in self.frame(row)? {
            match part {
                FramePart::Source(range)
                    if at == frame::HEADER_BYTES as u64 + u64::from(image) && range.offset == 0 =>
                {
                    let file = SourceFile::decode(self.index.variable(self.columns.files)?.values(), range.file)?;
                    let length = u64::from(range.length);
                    return (file.length == length)
                        .then_some((file.name, KnownRow { shard: 0, row, length, crc: range.crc }));
                }
                part => at += part.len(),
            }
        }
        None
    }

    /// Returns what the record of a row says about its image.
    fn image(&self, known: &KnownRow) -> Option<KnownImage<'_>> {
        let parts = self.frame(known.row)?;
        // The length of the image is that of its file; other ranges are only claimed.
        let others = parts.iter().map(FramePart::len).sum::<u64>().checked_sub(known.length)?;
        if others > MOST_BESIDES || known.length > u64::from(u32::MAX) {
            return None;
        }
        let mut frame = vec![];
        for part in parts {
            match part {
                FramePart::Bytes(bytes) => frame.extend_from_slice(bytes),
                // What it describes is known; what it holds is not needed.
                FramePart::Source(range) => frame.resize(frame.len() + range.length as usize, 0),
            }
        }
        let data = frame.get(frame::HEADER_BYTES..frame.len().checked_sub(frame::FOOTER_BYTES)?)?;
        let example = Example::parse(data).ok()?;
        let number = |name| match example.get(name) {
            Some(Feature::Int64(values)) => u32::try_from(values.iter().next()?).ok(),
            _ => None,
        };
        let format = std::str::from_utf8(example.bytes(names::IMAGE_FORMAT)?).ok()?;
        Some(KnownImage {
            format: Format::from_name(format)?,
            width: number(names::IMAGE_WIDTH)?,
            height: number(names::IMAGE_HEIGHT)?,
            channels: number(names::IMAGE_CHANNELS)?,
            orientation: number(names::IMAGE_ORIENTATION)?,
            crc: known.crc,
            entries: match self.entries {
                Some(column) => self.index.variable(column)?.get(known.row)?,
                None => &[],
            },
        })
    }
}
