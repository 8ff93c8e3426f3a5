//! Verifies one shard and its index.

use super::image;
use super::rows::Rows;
use super::{Damage, Options, Report};
use crate::shard::{Required, index_path};
use crate::{Error, FileBytes, Frames, Split};
use rayon::prelude::*;
use shardtool_format::checksum;
use shardtool_format::example::Example;
use shardtool_format::frame;
use shardtool_format::index::Index;
use shardtool_format::manifest;
use std::ops::Range;
use std::path::Path;

/// Frames are checked in runs of about this many bytes, so that one large shard keeps every core busy.
const RUN_BYTES: u64 = 8 << 20;

/// A shard's index, read whole: good columns only are used.
struct OpenIndex {
    bytes: FileBytes,
    index: Index,
    good: Vec<bool>,
}

pub(super) fn verify(split: &Split, number: usize, options: &Options<'_>) -> Report {
    let (entry, path) = (&split.entry().shards[number], split.shard_path(number));
    let mut report = Report { shards: 1, ..Report::default() };
    let bare = split.is_bare();
    let index = if bare { None } else { open_index(entry, &path, &mut report) };
    let bytes = match FileBytes::open(&path, options.access) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            report.damage(path.clone(), Error::MissingShard { path });
            return report;
        }
        Err(error) => {
            report.damage(path, error);
            return report;
        }
    };
    report.bytes = bytes.len();
    if bytes.len() != entry.bytes {
        let (expected, found) = (entry.bytes, bytes.len());
        report.damage(path.clone(), Error::ShardLength { path: path.clone(), expected, found });
    }
    let rows = index.as_ref().map(|i| Rows::new(&i.index, index_slice(&i.bytes), &i.good, split.manifest()));
    let frames = find_frames(&bytes, &path, rows.as_ref(), &mut report);
    if !bare && frames.len() as u64 != entry.records {
        let (expected, found) = (entry.records, frames.len() as u64);
        report.damage(path.clone(), Error::RecordCount { path: path.clone(), expected, found });
    }
    let check = Checker {
        bytes: &bytes,
        path: &path,
        rows: rows.as_ref(),
        split,
        options,
        opaque: split.manifest().features.is_empty(),
    };
    let runs = runs(&frames, bytes.len());
    let checked: Vec<_> = runs.into_par_iter().map(|run| check.run(&frames[run.frames.clone()], run)).collect();
    let mut crc = 0;
    for (part, part_crc, length) in checked {
        crc = checksum::combine(crc, part_crc, length);
        report = report.join(part);
    }
    // A damage that is already listed explains the file's CRC.
    if !bare && crc != entry.crc32c && !report.damages.iter().any(|d| d.file == path) {
        report.damage(path.clone(), Error::ShardCrc { path, expected: entry.crc32c, found: crc });
    }
    report
}

fn index_slice(bytes: &FileBytes) -> &[u8] {
    bytes.mapped().unwrap_or_default()
}

fn open_index(entry: &manifest::Shard, shard: &Path, report: &mut Report) -> Option<OpenIndex> {
    let path = index_path(shard);
    // An index is small beside its shard, and local or not, it is read once, whole.
    let bytes = match FileBytes::open(&path, crate::Access::Mmap) {
        Ok(bytes) => bytes,
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            report.damage(path.clone(), Error::MissingIndex { path });
            return None;
        }
        Err(error) => {
            report.damage(path, error);
            return None;
        }
    };
    let whole = index_slice(&bytes);
    let index = match Index::parse(whole) {
        Ok(index) => index,
        Err(source) => {
            report.damage(path.clone(), Error::Index { path, source });
            return None;
        }
    };
    if let Err(source) = Required::of(&index) {
        report.damage(path.clone(), Error::Index { path: path.clone(), source });
    }
    let mut good = vec![];
    for column in 0..index.columns().len() {
        let checked = index.check(whole, column);
        good.push(checked.is_ok());
        if let Err(source) = checked {
            report.damage(path.clone(), Error::Index { path: path.clone(), source });
        }
    }
    let (expected, found) = ((entry.index_bytes, entry.index_crc32c), (bytes.len(), checksum::crc32c(whole)));
    if expected != found && good.iter().all(|g| *g) {
        report.damage(path.clone(), Error::IndexCrc { path: path.clone(), expected, found });
    }
    let tie = [
        ("number of records", index.records(), entry.records),
        ("length of the shard in bytes", index.shard_bytes(), entry.bytes),
        ("CRC of the shard", index.shard_crc().into(), entry.crc32c.into()),
    ];
    for (problem, in_index, in_manifest) in tie {
        if in_index != in_manifest {
            let (expected, found) = (in_index.to_string(), in_manifest.to_string());
            let path = shard.to_owned();
            report.damage(path.clone(), Error::IndexMismatch { path, record: None, problem, expected, found });
        }
    }
    Some(OpenIndex { bytes, index, good })
}

/// All frames; beyond damage the search goes on where the index says, or where the next header is found.
fn find_frames(bytes: &FileBytes, path: &Path, rows: Option<&Rows<'_>>, report: &mut Report) -> Vec<Range<u64>> {
    let mut frames = Frames::new(bytes, path);
    let mut found = vec![];
    loop {
        match frames.next() {
            None => return found,
            Some(Ok(frame)) => found.push(frame),
            Some(Err(error)) => {
                let row = rows.and_then(|r| r.row_at(frames.position()));
                report.damage(path.to_owned(), named(error, row, rows));
                let next = rows.and_then(|r| r.start_after(frames.position())).filter(|next| *next < bytes.len());
                if let Some(next) = next {
                    frames.seek(next);
                    continue;
                }
                match frames.resync() {
                    Ok(true) => {}
                    Ok(false) => return found,
                    Err(error) => {
                        report.damage(path.to_owned(), error);
                        return found;
                    }
                }
            }
        }
    }
}

/// The error with the row and the key that the index knows for its place.
fn named(error: Error, row: Option<u64>, rows: Option<&Rows<'_>>) -> Error {
    match error {
        Error::Record { path, record, source, .. } => {
            let record = row.unwrap_or(record);
            Error::Record { path, record, key: rows.and_then(|r| r.key(record)).map(<[u8]>::to_vec), source }
        }
        other => other,
    }
}

/// Consecutive frames, and all the bytes from where the run before ends: also those that no frame claims.
struct Run {
    frames: Range<usize>,
    first_row: u64,
    bytes: Range<u64>,
}

fn runs(frames: &[Range<u64>], length: u64) -> Vec<Run> {
    let (mut runs, mut first, mut start) = (vec![], 0, 0);
    for (i, frame) in frames.iter().enumerate() {
        if frame.end - start >= RUN_BYTES {
            runs.push(Run { frames: first..i + 1, first_row: first as u64, bytes: start..frame.end });
            (first, start) = (i + 1, frame.end);
        }
    }
    runs.push(Run { frames: first..frames.len(), first_row: first as u64, bytes: start..length });
    runs
}

struct Checker<'a> {
    bytes: &'a FileBytes,
    path: &'a Path,
    rows: Option<&'a Rows<'a>>,
    split: &'a Split,
    options: &'a Options<'a>,
    /// Records are not Examples, nor need to be.
    opaque: bool,
}

impl Checker<'_> {
    /// Checks a run of frames; gives the CRC and the length of its bytes as well. Data is hashed once: the CRC of the
    /// whole follows from the records' CRCs.
    fn run(&self, frames: &[Range<u64>], run: Run) -> (Report, u32, u64) {
        let mut report = Report::default();
        let length = run.bytes.end - run.bytes.start;
        let (mut crc, mut at) = (0, run.bytes.start);
        for (i, frame) in frames.iter().enumerate() {
            if self.options.stopped() {
                return (report, crc, length);
            }
            let bytes = match self.bytes.range(at..frame.end) {
                Ok(bytes) => bytes,
                Err(source) => {
                    let path = self.path.to_owned();
                    report.damage(path.clone(), Error::Io { action: "read", path, source });
                    return (report, crc, length);
                }
            };
            let (unclaimed, bytes) = bytes.split_at((frame.start - at) as usize);
            let guess = run.first_row + i as u64;
            let row = self.rows.map_or(guess, |r| r.row_near(guess, frame.start));
            for part in [unclaimed, &bytes[..frame::HEADER_BYTES]] {
                crc = checksum::combine(crc, checksum::crc32c(part), part.len() as u64);
            }
            let (data, footer) = bytes[frame::HEADER_BYTES..].split_at(bytes.len() - frame::OVERHEAD_BYTES);
            let data_crc = checksum::crc32c(data);
            crc = checksum::combine(crc, data_crc, data.len() as u64);
            crc = checksum::combine(crc, checksum::crc32c(footer), footer.len() as u64);
            match frame::check_footer(footer, data_crc, frame.start) {
                Ok(()) => self.record(data, frame.start, row, &mut report),
                Err(source) => report.damage(self.path.to_owned(), self.record_error(row, source)),
            }
            if let Some(progress) = self.options.progress {
                progress(1, frame.end - at);
            }
            at = frame.end;
        }
        if let Ok(rest) = self.bytes.range(at..run.bytes.end) {
            crc = checksum::combine(crc, checksum::crc32c(&rest), rest.len() as u64);
        }
        (report, crc, length)
    }

    /// Checks a record whose CRCs are right.
    fn record(&self, data: &[u8], offset: u64, row: u64, report: &mut Report) {
        report.good_records += 1;
        let example = match Example::parse(data) {
            Ok(example) => Some(example),
            Err(_) if self.opaque || self.rows.is_none() => None,
            Err(source) => return report.damage(self.path.to_owned(), self.record_error(row, source)),
        };
        if let Some(rows) = self.rows {
            let file = self.path.file_name().unwrap_or_default().to_string_lossy();
            for (problem, expected, found) in rows.compare(row, offset, data, example.as_ref(), &file) {
                let path = self.path.to_owned();
                report.damage(path.clone(), Error::IndexMismatch { path, record: Some(row), problem, expected, found });
            }
        }
        if let (true, Some(example)) = (self.options.decode, &example) {
            let image = self.split.manifest().image.as_deref().and_then(|name| example.bytes(name));
            let entries = self.rows.and_then(|r| r.entries(row)).filter(|e| !e.is_empty());
            if let Some(Err(fault)) = image.map(|image| image::check(image, example, entries)) {
                let key = String::from_utf8_lossy(self.rows.and_then(|r| r.key(row)).unwrap_or_default()).into_owned();
                report.damages.push(Damage::image(self.path.to_owned(), row, key, offset, fault));
            }
        }
    }

    fn record_error(&self, record: u64, source: shardtool_format::Error) -> Error {
        named(Error::Record { path: self.path.to_owned(), record, key: None, source }, Some(record), self.rows)
    }
}
