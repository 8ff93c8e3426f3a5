//! Removes metadata from TIFFs in place: no offset changes.
//!
//! Each directory keeps the entries that say how its pixels are decoded and shown ([`is_kept`]). All other bytes of the file that
//! the kept entries do not refer to become zeros: texts, EXIF and GPS directories, thumbnails, makers' notes, and whatever was left
//! between them. Directories of smaller copies are taken out of the chain. Files in which metadata share bytes with pixels are refused.

use super::ranges::{Ranges, intersect};
use super::refused;
use crate::codecs::tiff::directory::{Directory, Entry};
use crate::codecs::tiff::tags::{compression, tag};
use crate::error::Error;
use crate::format::Format;
use shardtool_jpeg::{self as jpeg, Metadata};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

/// Bits of NewSubfileType and values of SubfileType that mean a smaller copy of another image (TIFF 6.0, pages 36 and 40).
const REDUCED_BIT: u64 = 1;
const REDUCED_OLD: u64 = 2;
const SHORT: u64 = 3;

/// Returns whether an entry stays. Of the tags of TIFF 6.0 these are the ones about pixels, colours and resolution; all with texts,
/// and all private ones, except that of the colour profile, are left out.
fn is_kept(tag: u16) -> bool {
    matches!(
        tag,
        254..=259 | 262 | 266 | 273 | 277..=284 | 290..=293 | 296 | 301 | 317..=320 | 322..=325 | 332 | 334 | 336 | 338..=342 | 346
            | 347 | 529..=532 | 32995..=32997 | tag::ICC_PROFILE
    )
}

/// Returns whether the data of a compression are pixels alone, which stay as they are, or JPEG streams.
fn is_known(compression: u64) -> bool {
    use compression::{CCITT_RLE, DEFLATE, FAX3, FAX4, JPEG, LERC, LZMA, LZW, NONE, OLD_DEFLATE, PACK_BITS, ZSTD};
    [NONE, CCITT_RLE, FAX3, FAX4, LZW, JPEG, DEFLATE, PACK_BITS, OLD_DEFLATE, LERC, LZMA, ZSTD].contains(&compression)
}

/// Returns the metadata of a TIFF: the file itself, and its XMP.
pub(super) fn metadata(bytes: &[u8]) -> Metadata<'_> {
    let xmp = Directory::read(bytes).and_then(|directory| directory.raw(tag::XMP)).ok().flatten();
    Metadata { exif: Some(Cow::Borrowed(bytes)), xmp: xmp.map(Cow::Borrowed) }
}

/// Returns whether a TIFF has a directory of a smaller copy, in the chain or below its first image.
pub(super) fn has_thumbnail(bytes: &[u8]) -> bool {
    let found = || -> Result<bool, Error> {
        let (mut walk, first) = (Walk::new(bytes), Directory::read(bytes)?);
        let mut other = walk.sub_directories(&first)?.into_iter().chain(walk.chain(&first)?);
        Ok(other.any(|directory| is_reduced(&directory)))
    };
    found().unwrap_or(false)
}

/// Returns the TIFF without metadata.
///
/// # Errors
/// [`Error::Truncated`] if a directory is cut; [`Error::Metadata`] if metadata and pixels share bytes, and for images that are
/// stored in ways in which the two cannot be separated.
pub(super) fn strip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut walk = Walk::new(bytes);
    let first = Directory::read(bytes)?;
    walk.enter(&first)?;
    let mut pages = vec![first];
    // The header ends with the offset of the first directory.
    walk.kept.add(0..2 * first.word().max(4));
    for directory in walk.chain(&first)? {
        match is_reduced(&directory) {
            true => walk.remove(&directory)?,
            false => pages.push(directory),
        }
    }
    let orientation = metadata(bytes).orientation();
    let mut written: Vec<(usize, Vec<u8>)> = vec![];
    for (number, page) in pages.iter().enumerate() {
        let next = pages.get(number + 1).map_or(0, |next| next.range().start as u64);
        let entries = walk.keep(page)?;
        written.push((page.range().start, directory(page, entries, (number == 0).then_some(orientation), next)));
    }
    walk.finish(&pages, written)
}

/// Returns the bytes of a directory with these entries, and with the orientation, if it has one or needs one.
fn directory(page: &Directory<'_>, entries: Vec<Entry<'_>>, orientation: Option<u8>, next: u64) -> Vec<u8> {
    let coded = page.first(tag::ORIENTATION).ok().flatten();
    // Of further images only this tag is read.
    let orientation = orientation.map(u64::from).or(coded.filter(|value| (1..=8).contains(value)));
    let mut entry = vec![];
    if let Some(orientation) = orientation.filter(|value| coded.is_some() || *value != 1) {
        page.write(&mut entry, tag::ORIENTATION.into(), 2);
        page.write(&mut entry, SHORT, 2);
        page.write(&mut entry, 1, page.word());
        page.write(&mut entry, orientation, 2);
        entry.resize(4 + 2 * page.word(), 0);
    }
    let mut out = vec![];
    page.write(&mut out, entries.len() as u64 + u64::from(!entry.is_empty()), page.count_bytes());
    let at = entries.iter().position(|other| other.tag > tag::ORIENTATION).unwrap_or(entries.len());
    entries[..at].iter().for_each(|entry| out.extend_from_slice(entry.bytes));
    out.append(&mut entry);
    entries[at..].iter().for_each(|entry| out.extend_from_slice(entry.bytes));
    page.write(&mut out, next, page.word());
    out
}

/// Returns whether a directory is that of a smaller copy of another image.
fn is_reduced(directory: &Directory<'_>) -> bool {
    let first = |tag| directory.first(tag).ok().flatten();
    first(tag::NEW_SUBFILE_TYPE).is_some_and(|bits| bits & REDUCED_BIT != 0)
        || first(tag::SUBFILE_TYPE) == Some(REDUCED_OLD)
}

/// What is known of the bytes of a file while its directories are read.
struct Walk<'a> {
    bytes: &'a [u8],
    /// Offsets of the directories that were read.
    visited: BTreeSet<usize>,
    /// Bytes of directories that may still be read. Those of a file do not overlap, so they are not longer than the file.
    left: usize,
    /// Values and pixels that stay.
    kept: Ranges,
    /// JPEG streams that stay without the metadata inside them.
    streams: Ranges,
    removed: Ranges,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let (kept, streams, removed) = Default::default();
        Walk { bytes, visited: BTreeSet::new(), left: bytes.len(), kept, streams, removed }
    }

    /// Records that a directory is read.
    fn enter(&mut self, directory: &Directory<'_>) -> Result<(), Error> {
        let range = directory.range();
        let left = self.left.checked_sub(range.len()).filter(|_| self.visited.insert(range.start));
        self.left = left.ok_or_else(|| refused(Format::Tiff, "its directories overlap or repeat"))?;
        if directory.is_cut() || range.end > self.bytes.len() {
            let (format, offset) = (Format::Tiff, self.bytes.len());
            return Err(Error::Truncated { format, offset, expected: "the directory and the offset of the next one" });
        }
        Ok(())
    }

    /// Reads the directories after the first one.
    fn chain(&mut self, first: &Directory<'a>) -> Result<Vec<Directory<'a>>, Error> {
        let (mut chain, mut next) = (vec![], first.next()?);
        while next != 0 {
            let directory = first.other(next)?;
            self.enter(&directory)?;
            next = directory.next()?;
            chain.push(directory);
        }
        Ok(chain)
    }

    /// Reads the directories of images below a directory.
    fn sub_directories(&mut self, directory: &Directory<'a>) -> Result<Vec<Directory<'a>>, Error> {
        let read = |at: u64| {
            let directory = directory.other(at)?;
            self.enter(&directory)?;
            Ok(directory)
        };
        directory.list(tag::SUB_IFDS)?.into_iter().map(read).collect()
    }

    /// Marks what the entries of a directory refer to. Returns the entries that stay, without the orientation.
    fn keep(&mut self, page: &Directory<'a>) -> Result<Vec<Entry<'a>>, Error> {
        let compression = page.first(tag::COMPRESSION)?.unwrap_or(compression::NONE);
        if !is_known(compression) {
            return Err(refused(Format::Tiff, "its compression may hold further metadata"));
        }
        for directory in self.sub_directories(page)? {
            if !is_reduced(&directory) {
                let problem = "below an image, it has a further one of full size (SubIFDs), as raw photographs have";
                return Err(refused(Format::Tiff, problem));
            }
            self.remove(&directory)?;
        }
        let is_jpeg = compression == compression::JPEG;
        let mut entries = vec![];
        for entry in page.all() {
            if !is_kept(entry.tag) {
                self.remove_entry(page, &entry)?;
                continue;
            }
            let (value, _) = entry.value.clone().ok_or_else(|| self.truncated())?;
            if value.len() > page.word() {
                let stays = if is_jpeg && entry.tag == tag::JPEG_TABLES { &mut self.streams } else { &mut self.kept };
                stays.add(value);
            }
            entries.push(entry);
        }
        let chunks = self.chunks(page)?;
        if chunks.is_empty() {
            return Err(refused(Format::Tiff, "its strips or tiles have no offsets or no lengths"));
        }
        let stays = if is_jpeg { &mut self.streams } else { &mut self.kept };
        chunks.into_iter().for_each(|chunk| stays.add(chunk));
        Ok(entries)
    }

    /// Returns the strips and tiles of an image, as far as they are inside the file; none if their lengths are missing.
    fn chunks(&self, page: &Directory<'_>) -> Result<Vec<Range<usize>>, Error> {
        let mut chunks = vec![];
        for (offsets, lengths) in
            [(tag::STRIP_OFFSETS, tag::STRIP_BYTE_COUNTS), (tag::TILE_OFFSETS, tag::TILE_BYTE_COUNTS)]
        {
            // Some writers use the lengths of strips for tiles.
            let (offsets, mut of) = (page.list(offsets)?, page.list(lengths)?);
            if of.is_empty() {
                of = page.list(tag::STRIP_BYTE_COUNTS)?;
            }
            if of.len() < offsets.len() {
                return Ok(vec![]);
            }
            let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len());
            chunks.extend(offsets.iter().zip(&of).map(|(at, len)| inside(*at)..inside(at.saturating_add(*len))));
        }
        Ok(chunks)
    }

    /// Marks a directory with everything that it refers to as removed.
    fn remove(&mut self, directory: &Directory<'a>) -> Result<(), Error> {
        self.removed.add(directory.range());
        for entry in directory.all() {
            self.remove_entry(directory, &entry)?;
        }
        self.chunks(directory)?.into_iter().for_each(|chunk| self.removed.add(chunk));
        Ok(())
    }

    /// Marks what an entry refers to as removed: its value, and the directories whose offsets it holds.
    fn remove_entry(&mut self, directory: &Directory<'a>, entry: &Entry<'a>) -> Result<(), Error> {
        // A value outside of the file is nowhere.
        let Some(value) = entry.value.clone() else { return Ok(()) };
        if matches!(entry.tag, tag::SUB_IFDS | tag::EXIF_IFD | tag::GPS_IFD | tag::INTEROPERABILITY_IFD) {
            for at in directory.numbers(value.clone()) {
                if let Ok(below) = directory.other(at)
                    && self.visited.insert(below.range().start)
                    && let Some(left) = self.left.checked_sub(below.range().len())
                {
                    self.left = left;
                    self.remove(&below)?;
                }
            }
        }
        if value.0.len() > directory.word() {
            self.removed.add(value.0);
        }
        Ok(())
    }

    /// Returns the file: the kept bytes and the written directories, and zeros between them.
    fn finish(self, pages: &[Directory<'_>], written: Vec<(usize, Vec<u8>)>) -> Result<Vec<u8>, Error> {
        let mut directories: Vec<_> = pages.iter().map(Directory::range).collect();
        directories.sort_unstable_by_key(|range| range.start);
        let streams = self.streams.distinct();
        let (kept, removed) = (self.kept.merged(), self.removed.merged());
        let overlap = |ranges: &[Range<usize>]| ranges.windows(2).any(|pair| pair[0].end > pair[1].start);
        let shared = [
            (&kept, &removed),
            (&kept, &directories),
            (&kept, &streams),
            (&streams, &removed),
            (&streams, &directories),
        ];
        if overlap(&directories) || overlap(&streams) || shared.iter().any(|(a, b)| intersect(a, b)) {
            return Err(refused(Format::Tiff, "its metadata and its pixels share bytes"));
        }
        let ends = kept.iter().chain(&streams).map(|range| range.end);
        let mut out = vec![0; ends.chain(written.iter().map(|(at, new)| at + new.len())).max().unwrap_or(0)];
        for range in kept.into_iter().chain(streams.iter().cloned()) {
            out[range.clone()].copy_from_slice(&self.bytes[range]);
        }
        for stream in streams {
            let metadata = jpeg::metadata_ranges(&self.bytes[stream.clone()]);
            let metadata = metadata.map_err(|_| refused(Format::Tiff, "a strip or tile is not a complete JPEG"))?;
            metadata.into_iter().for_each(|range| out[stream.clone()][range].fill(0));
        }
        written.into_iter().for_each(|(at, new)| out[at..at + new.len()].copy_from_slice(&new));
        Ok(out)
    }

    fn truncated(&self) -> Error {
        Error::Truncated { format: Format::Tiff, offset: self.bytes.len(), expected: "the directory and its values" }
    }
}
