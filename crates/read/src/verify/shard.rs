//! Verifies one shard and its index.

use super::record_errors::{ends, finding, with_key};
use super::rows::Rows;
use super::{Finding, Options, Report, virtual_frames};
use crate::overlay;
use crate::shard_index::{contradictions, missing, until_equal};
use crate::virtual_shard::Wrong;
use crate::whole_files::read_index;
use crate::{Error, FileBytes, Frames, Result, Shard, Split};
use rayon::prelude::*;
use sha2::Digest;
use shardtool_format::Damage;
use shardtool_format::checksum::{self, Sha256};
use shardtool_format::example::{Message, has_feature_lists};
use shardtool_format::frame;
use shardtool_format::index::{self, Index, VirtualColumns};
use shardtool_format::{manifest, names};
use shardtool_store::{Window, is_url};
use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

/// Frames whose headers are loaded before they are needed: the next one begins where each ends.
const HEADERS_AHEAD: u64 = 8;

/// Frames are checked in runs of about this many bytes, so that one large shard occupies all threads.
const RUN_BYTES: u64 = 8 << 20;

/// The index of a shard, and which of its columns are good.
struct OpenIndex {
    index: Index<Vec<u8>>,
    good: Vec<bool>,
}

impl OpenIndex {
    /// Returns whether the columns are good that say where the frames of a virtual shard lie.
    fn has_frames(&self) -> bool {
        let offsets = self.index.position(index::RECORD_OFFSET);
        self.index.virtual_columns().is_ok_and(|VirtualColumns { files, ranges, bytes }| {
            [Some(files), Some(ranges), Some(bytes), offsets].into_iter().flatten().all(|column| self.good[column])
        })
    }
}

pub(super) fn verify(split: &Split, number: usize, options: &Options<'_>) -> Report {
    let (entry, path) = (&split.entry().shards[number], split.shard_path(number));
    let mut report = Report { shards: 1, ..Report::default() };
    if let Err(error) = split.check_frames_allowed(number) {
        report.add(error);
        return report;
    }
    let bare = split.is_bare();
    let index = if bare { None } else { open_index(entry, &path, &mut report) };
    overlay::verify(split.companion_files(), split.manifest(), entry, |error| report.add(error));
    let memory = options.shard_bytes.unwrap_or(Window::BYTES);
    let opened;
    let described = if entry.foreign.is_virtual {
        // Its bytes are known if its index is good.
        let good = index.as_ref().is_some_and(OpenIndex::has_frames);
        let Some(shard) = Some(number).filter(|_| good).and_then(|number| split.shard(number).ok()) else {
            return report;
        };
        Some(shard)
    } else {
        None
    };
    let bytes = match described.as_deref() {
        Some(shard) => match shard.bytes().in_order(memory) {
            Some(bytes) => {
                opened = bytes;
                &opened
            }
            None => shard.bytes(),
        },
        None => match FileBytes::open_within(&path, options.access, memory) {
            Ok(bytes) => {
                opened = bytes;
                &opened
            }
            Err(error) => {
                report.add(missing(error, |path| Error::MissingShard { path }));
                return report;
            }
        },
    };
    report.bytes = bytes.len();
    let length = if bare { bytes.len() } else { entry.bytes };
    let other_length = bytes.len() != length;
    if other_length {
        let (expected, found) = (length, bytes.len());
        report.add(Error::ShardLength { path: path.clone(), expected, found });
    }
    let rows = index.as_ref().map(|i| Rows::new(&i.index, &i.good, split.manifest()));
    // Bytes past the manifest's length are ignored.
    let end = length.min(bytes.len());
    // Each cause is reported once. A truncated file may end inside a frame; a lost frame, another length, or a count
    // that is already reported explain the number of frames; and any finding about this file explains its CRC.
    let mut explained = other_length || report.has(&names::index_path(&path), Damage::RecordCount);
    let (opaque, message) = (!bare && split.manifest().is_opaque(), split.manifest().message());
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let check = Checker {
        bytes,
        path: &path,
        file: &file,
        described: described.as_deref(),
        rows: rows.as_ref(),
        split,
        options,
        opaque,
        message,
    };
    // The bytes of an object are checked while they are in memory, those of a file by all threads once all frames are known.
    let in_store = bytes.object().is_some();
    let (mut runs, mut waiting, mut checked) = (Runs::default(), vec![], vec![]);
    let mut take = |run| if in_store { checked.push(check.run(run)) } else { waiting.push(run) };
    let found = |frame| {
        if let Some(start) = rows.as_ref().and_then(|rows| rows.start(runs.frames() + HEADERS_AHEAD)) {
            bytes.prefetch(start);
        }
        runs.push(frame).into_iter().for_each(&mut take);
    };
    let damaged = |error, row, is_last| {
        explained = true;
        if !(other_length && is_last && truncated(&error)) {
            report.push(finding(&error, row, rows.as_ref(), &file));
        }
    };
    match described.as_deref() {
        Some(shard) => virtual_frames::find(shard, bytes, rows.as_ref(), found, damaged),
        None => find_frames(bytes, end, &path, rows.as_ref(), found, damaged),
    }
    let records = runs.frames();
    take(runs.finish(end));
    if !bare && !explained && records != entry.records {
        report.add(Error::RecordCount { path: path.clone(), expected: entry.records, found: records });
    }
    checked.extend(waiting.into_par_iter().map(|run| check.run(run)).collect::<Vec<_>>());
    let mut crc = 0;
    for (part, part_crc, length) in checked {
        crc = checksum::combine(crc, part_crc, length);
        report.append(part);
    }
    // What is wrong with a source file explains the CRC of a virtual shard.
    let of_source = entry.foreign.is_virtual && !report.findings.is_empty();
    if bare || of_source || report.findings.iter().any(|finding| finding.file == path) {
        return report;
    }
    if crc != entry.crc32c {
        report.add(Error::ShardCrc { path, expected: entry.crc32c, found: crc });
    } else if let Some(expected) = entry.sha256 {
        match sha256(bytes, options) {
            Ok(Some(found)) if found != expected => report.add(Error::ShardSha256 { path, expected, found }),
            Ok(_) => {}
            Err(error) => report.add(error),
        }
    }
    report
}

/// Computes the SHA-256 of a shard; `None` if the verification is cancelled. It cannot be combined from those of records.
///
/// # Errors
/// [`Error::Unreadable`].
fn sha256(bytes: &FileBytes, options: &Options<'_>) -> Result<Option<Sha256>> {
    let mut digest = sha2::Sha256::new();
    let mut at = 0;
    while at < bytes.len() {
        if options.stopped() {
            return Ok(None);
        }
        let end = bytes.len().min(at + RUN_BYTES);
        digest = hashed(bytes, at..end, |part| {
            let mut digest = digest.clone();
            digest.update(part);
            digest
        })?;
        at = end;
    }
    Ok(Some(Sha256(digest.finalize().into())))
}

/// Calls `hash` with the bytes of a range, again if they could not be read the first time.
///
/// # Errors
/// [`Error::Unreadable`].
fn hashed<T>(bytes: &FileBytes, range: Range<u64>, mut hash: impl FnMut(&[u8]) -> T) -> Result<T> {
    Ok(bytes.with(range, |part| Ok::<T, Infallible>(hash(part)))?.unwrap_or_else(|never| match never {}))
}

fn truncated(error: &Error) -> bool {
    error.damage() == Some(Damage::TruncatedFrame)
}

fn open_index(entry: &manifest::Shard, shard: &Path, report: &mut Report) -> Option<OpenIndex> {
    let path = names::index_path(shard);
    // An index is small compared with its shard, and all of it is read.
    let read = || {
        if is_url(&path) { until_equal(entry.index_crc32c, || read_index(&path)) } else { read_index(&path) }
    };
    let index = read().map_err(|error| missing(error, |path| Error::MissingIndex { path })).and_then(|bytes| {
        let damaged = |source| Error::Index { path: path.clone(), source };
        Index::parse(bytes).map_err(damaged)
    });
    let index = match index {
        Ok(index) => index,
        Err(error) => {
            report.add(error);
            return None;
        }
    };
    let before = report.findings.len();
    contradictions(&path, &index, entry).for_each(|error| report.add(error));
    if let Err(source) = index.required() {
        report.add(Error::Index { path, source });
        return None;
    }
    if entry.foreign.is_virtual
        && let Err(source) = index.virtual_columns()
    {
        report.add(Error::Index { path, source });
        return None;
    }
    let usable = report.findings.len() == before;
    let mut good = vec![];
    for column in 0..index.columns().len() {
        let checked = index.check(column);
        good.push(checked.is_ok());
        if let Err(source) = checked {
            report.add(Error::Index { path: path.clone(), source });
        }
    }
    let found = (index.as_bytes().len() as u64, checksum::crc32c(index.as_bytes()));
    let expected = (entry.index_bytes, entry.index_crc32c);
    if expected != found && report.findings.len() == before {
        report.add(Error::IndexCrc { path, expected, found });
    }
    // Rows of an index that is refused, or belongs to another shard, are not compared with the records of this one.
    usable.then_some(OpenIndex { index, good })
}

/// Calls `found` with the range of each frame before `end`, and `damaged` with the damage between them, its row, and whether no
/// frame follows. Continues after damage at the next offset in the index or, without a good index, at the next frame that is found.
fn find_frames(
    bytes: &FileBytes,
    end: u64,
    path: &Path,
    rows: Option<&Rows<'_>>,
    mut found: impl FnMut(Range<u64>),
    mut damaged: impl FnMut(Error, Option<u64>, bool),
) {
    let mut frames = Frames::new(bytes, path);
    while frames.position() < end {
        match frames.next() {
            None => break,
            Some(Ok(frame)) if frame.end > end => break,
            Some(Ok(frame)) => found(frame),
            Some(Err(error @ Error::CompressedRecords { .. })) => {
                damaged(error, None, true);
                break;
            }
            Some(Err(error)) if ends(bytes, &error) => {
                damaged(error, None, true);
                break;
            }
            Some(Err(error)) => {
                let at = frames.position();
                let row = rows.and_then(|r| r.row_at(at));
                let error = with_key(error, row, rows);
                if let Some(next) = rows.and_then(|r| r.start_after(at)).filter(|next| *next < end) {
                    damaged(error, row, false);
                    frames.seek(next);
                    continue;
                }
                let follows = frames.resync();
                damaged(error, row, !matches!(follows, Ok(true)) || frames.position() >= end);
                match follows {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        damaged(error, None, true);
                        break;
                    }
                }
            }
        }
    }
}

/// Consecutive frames, and all bytes since the end of the preceding run, also those that belong to no frame.
struct Run {
    frames: Vec<Range<u64>>,
    first_row: u64,
    bytes: Range<u64>,
}

/// Groups frames into runs of at least [`RUN_BYTES`].
#[derive(Default)]
struct Runs {
    frames: Vec<Range<u64>>,
    first_row: u64,
    start: u64,
}

impl Runs {
    /// Adds a frame. Returns the run that it completes.
    fn push(&mut self, frame: Range<u64>) -> Option<Run> {
        let end = frame.end;
        self.frames.push(frame);
        (end - self.start >= RUN_BYTES).then(|| self.cut(end))
    }

    /// Returns the frames so far.
    fn frames(&self) -> u64 {
        self.first_row + self.frames.len() as u64
    }

    /// Returns the last run, which reaches to `end`.
    fn finish(mut self, end: u64) -> Run {
        self.cut(end)
    }

    fn cut(&mut self, end: u64) -> Run {
        let frames = std::mem::take(&mut self.frames);
        let run = Run { first_row: self.first_row, bytes: self.start..end, frames };
        self.first_row += run.frames.len() as u64;
        self.start = end;
        run
    }
}

/// The CRC of a run's bytes, which follows from those of long frames without reading them again. Short frames are hashed
/// again, many at once and while they are in the CPU's cache, which takes less time than to combine their CRCs.
struct RunCrc<'a> {
    bytes: &'a FileBytes,
    /// Bytes before this offset are part of `value`.
    at: u64,
    value: u32,
}

/// Bytes of a frame from which on its CRC is combined, and of short frames that are hashed at once.
const LONG: u64 = 4 << 10;
const HASHED_AT_ONCE: u64 = 32 << 10;

/// Bytes of records that are reported as progress at once: to draw a bar takes longer than to check a short record.
const REPORTED_AT_ONCE: u64 = 32 << 10;

impl RunCrc<'_> {
    /// Adds the bytes up to the end of a frame. `crc` is that of the frame, if it is known.
    fn add(&mut self, frame: &Range<u64>, crc: Option<u32>) {
        if let Some(crc) = crc {
            self.hash(frame.start);
            self.value = checksum::combine(self.value, crc, frame.end - frame.start);
            self.at = frame.end;
        } else if frame.end - self.at >= HASHED_AT_ONCE {
            self.hash(frame.end);
        }
    }

    /// Adds the bytes up to `end`. Bytes that cannot be read follow damage, which is reported: an error adds nothing.
    fn hash(&mut self, end: u64) {
        if self.at < end {
            let crc = hashed(self.bytes, self.at..end, checksum::crc32c).unwrap_or(0);
            self.value = checksum::combine(self.value, crc, end - self.at);
            self.at = end;
        }
    }
}

struct Checker<'a> {
    bytes: &'a FileBytes,
    path: &'a Path,
    /// The name of the file.
    file: &'a str,
    /// The shard, if it is virtual.
    described: Option<&'a Shard>,
    rows: Option<&'a Rows<'a>>,
    split: &'a Split,
    options: &'a Options<'a>,
    /// Whether records are not parsed.
    opaque: bool,
    message: Message,
}

impl Checker<'_> {
    /// Checks a run of frames. Returns the CRC and the length of the run's bytes as well.
    fn run(&self, run: Run) -> (Report, u32, u64) {
        let mut report = Report::default();
        let length = run.bytes.end - run.bytes.start;
        let mut crc = RunCrc { bytes: self.bytes, at: run.bytes.start, value: 0 };
        // Records that were reported, and where the last one ends.
        let mut reported = (0, run.bytes.start);
        for (i, frame) in run.frames.iter().enumerate() {
            if self.options.stopped() {
                return (report, crc.value, length);
            }
            let expected = run.first_row + i as u64;
            let row = self.rows.map_or(expected, |r| r.row_near(expected, frame.start));
            let checked = self.bytes.with(frame.clone(), |bytes| {
                let mut found = Report::default();
                let frame_crc = self.frame(bytes, frame.start, row, &mut found);
                if found.findings.is_empty() { Ok((found, frame_crc)) } else { Err((found, frame_crc)) }
            });
            match checked {
                Ok(Ok((found, frame_crc)) | Err((found, frame_crc))) => {
                    crc.add(frame, frame_crc);
                    report.append(found);
                }
                Err(error) => {
                    let last = ends(self.bytes, &error);
                    report.push(finding(&with_key(error, Some(row), self.rows), Some(row), self.rows, self.file));
                    if last {
                        return (report, crc.value, length);
                    }
                }
            }
            let so_far = (i as u64 + 1, frame.end);
            if let Some(progress) = self.options.progress
                && (so_far.1 - reported.1 >= REPORTED_AT_ONCE || i + 1 == run.frames.len())
            {
                progress(so_far.0 - reported.0, so_far.1 - reported.1);
                reported = so_far;
            }
        }
        crc.hash(run.bytes.end);
        (report, crc.value, length)
    }

    /// Checks a frame. Returns its CRC, unless it is short and can be read again without a request.
    fn frame(&self, bytes: &[u8], offset: u64, row: u64, report: &mut Report) -> Option<u32> {
        let (header, rest) = bytes.split_at(frame::HEADER_BYTES);
        let (data, footer) = rest.split_at(bytes.len() - frame::OVERHEAD_BYTES);
        let data_crc = checksum::crc32c(data);
        match frame::check_footer(footer, data_crc, offset) {
            Ok(()) => self.record(data, offset, row, report),
            Err(source) => report.push(finding(&self.record_error(row, source), Some(row), self.rows, self.file)),
        }
        let combined = bytes.len() as u64 >= LONG || self.bytes.object().is_some();
        combined.then(|| {
            let crc = checksum::combine(checksum::crc32c(header), data_crc, data.len() as u64);
            checksum::combine(crc, checksum::crc32c(footer), footer.len() as u64)
        })
    }

    /// Checks a record whose CRCs match.
    fn record(&self, data: &[u8], offset: u64, row: u64, report: &mut Report) {
        report.good_records += 1;
        let example = match self.message.parse(data) {
            _ if self.opaque => None,
            Ok(example) => Some(example),
            Err(_) if self.split.is_bare() => None,
            Err(source) => {
                let finding = Finding::new(&self.record_error(row, source));
                return report.findings.push(Finding { offset: Some(offset), ..finding });
            }
        };
        if self.message == Message::Example && example.is_some() && has_feature_lists(data) {
            report.ignored_feature_lists += 1;
        }
        if let Some(rows) = self.rows {
            for (problem, expected, found) in rows.compare(row, offset, data, example.as_ref(), self.file) {
                let path = names::index_path(self.path);
                report.add(Error::IndexMismatch { path, record: Some(row), problem, expected, found });
            }
        }
        #[cfg(feature = "decode")]
        if self.options.decode
            && let Some(example) = &example
        {
            let feature = self.split.manifest().image.as_deref();
            let image = feature.and_then(|name| example.bytes(name));
            let entries = self.rows.and_then(|r| r.entries(row)).filter(|e| !e.is_empty());
            let masks = image.map_or(vec![], |image| super::image::check_masks(image, example));
            let truncated = self.options.truncated;
            let image = image.map(|image| super::image::check(image, example, entries, truncated));
            let (frames, filled) = super::image::check_clips(example, feature, truncated);
            report.filled += filled + u64::from(image == Some(Ok(true)));
            let image = image.and_then(|result| result.err());
            let several = super::array::check(example).into_iter().chain(frames);
            for fault in image.into_iter().chain(masks).chain(several) {
                let key = String::from_utf8_lossy(self.rows.and_then(|r| r.key(row)).unwrap_or_default()).into_owned();
                report.push(Finding::image(self.path, row, key, offset, fault));
            }
        }
    }

    fn record_error(&self, record: u64, source: shardtool_format::Error) -> Error {
        match self.described.and_then(|shard| shard.wrong_source(record)) {
            Some(Wrong::Bytes { path, bytes }) => {
                let key = self.rows.and_then(|r| r.key(record)).map(<[u8]>::to_vec);
                return Error::SourceBytes { path, bytes, record, key, source: Box::new(source) };
            }
            Some(Wrong::File(error)) => return with_key(error, Some(record), self.rows),
            None => {}
        }
        with_key(Error::Record { path: self.path.to_owned(), record, key: None, source }, Some(record), self.rows)
    }
}
