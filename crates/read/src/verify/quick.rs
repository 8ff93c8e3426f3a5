//! Compares lengths, and the checksums that a store keeps, with the manifest, without reading a file.

use super::Report;
use crate::{Dataset, Error, Result, Split, not_regular};
use shardtool_format::names;
use shardtool_store::{Head, is_url};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Requests that are under way at once, unless the caller says otherwise.
const AT_ONCE: usize = 16;

/// What was compared, and what was found.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct QuickReport {
    /// Shards whose CRC32C in the store, and that of whose index, was compared.
    pub crc_shards: u64,
    /// Shards whose length, and that of whose index, was compared only: files, and objects of which the store keeps no
    /// CRC32C of all bytes.
    pub length_shards: u64,
    /// Shards, their bytes by the manifest, and findings. No record was read.
    pub report: Report,
}

/// Compares the length of each shard and index with the manifest and, in stores that keep it, the CRC32C of the whole object:
/// one request each, `jobs` at once. A store computes it when the object is written, so that later changes of stored bytes
/// are not found.
///
/// # Errors
/// [`Error::NotADataset`] for bare files, which have no manifest; [`Error::Io`] if a store or file system does not answer.
pub fn quick(dataset: &Dataset, jobs: Option<usize>) -> Result<QuickReport> {
    if dataset.splits().iter().any(Split::is_bare) {
        let problem = "bare TFRecord files have no manifest to compare with (run verify without --quick)";
        return Err(Error::NotADataset { path: dataset.path().to_owned(), problem });
    }
    let splits = dataset.splits().iter();
    let shards: Vec<_> = splits.flat_map(|split| (0..split.entry().shards.len()).map(move |n| (split, n))).collect();
    let (next, total) = (AtomicUsize::new(0), Mutex::new(Ok(QuickReport::default())));
    let compare_some = || {
        while let Some((split, number)) = shards.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compared = compare(split, *number);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(sum) = &mut *total else { return };
            match compared {
                Ok(one) => {
                    sum.crc_shards += one.crc_shards;
                    sum.length_shards += one.length_shards;
                    sum.report.append(one.report);
                }
                // The others would fail too, each after the time limit of a request.
                Err(error) => *total = Err(error),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.unwrap_or(AT_ONCE).clamp(1, shards.len().max(1)) {
            // Without more threads, this one compares them all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, compare_some);
        }
        compare_some();
    });
    let mut total = total.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    companion_files(dataset, &mut total.report)?;
    total.report.sort();
    Ok(total)
}

fn compare(split: &Split, number: usize) -> Result<QuickReport> {
    let (entry, path) = (&split.entry().shards[number], split.shard_path(number));
    let mut report = Report { shards: 1, bytes: entry.bytes, ..Report::default() };
    if entry.foreign.is_virtual {
        return compare_virtual(split, number, report);
    }
    if let Err(error) = split.check_allowed(number) {
        report.add(error);
        return Ok(QuickReport { report, ..QuickReport::default() });
    }
    let (shard, index) = (length_and_crc(&path)?, length_and_crc(&names::index_path(&path))?);
    let by_crc = [shard, index].iter().all(|found| found.is_some_and(|(_, crc)| crc.is_some()));
    match shard {
        None => report.add(Error::MissingShard { path: path.clone() }),
        Some((found, _)) if found != entry.bytes => {
            report.add(Error::ShardLength { path: path.clone(), expected: entry.bytes, found });
        }
        Some((_, Some(found))) if found != entry.crc32c => {
            report.add(Error::ShardCrc { path: path.clone(), expected: entry.crc32c, found });
        }
        Some(_) => {}
    }
    let path = names::index_path(&path);
    match index {
        None => report.add(Error::MissingIndex { path }),
        Some((found, _)) if found != entry.index_bytes => report.add(Error::IndexMismatch {
            path,
            record: None,
            problem: "length of the index in bytes",
            expected: found.to_string(),
            found: entry.index_bytes.to_string(),
        }),
        Some((length, Some(found))) if found != entry.index_crc32c => {
            let expected = (entry.index_bytes, entry.index_crc32c);
            report.add(Error::IndexCrc { path, expected, found: (length, found) });
        }
        Some(_) => {}
    }
    Ok(QuickReport { crc_shards: by_crc.into(), length_shards: (!by_crc).into(), report })
}

/// Compares the lengths of the source files of a virtual shard with those in its index, which is read.
fn compare_virtual(split: &Split, number: usize, mut report: Report) -> Result<QuickReport> {
    let wrong = split.shard(number).and_then(|shard| shard.check_source_files());
    for error in wrong.unwrap_or_else(|error| vec![error]) {
        match error {
            error if error.is_damage() => report.add(error),
            error => return Err(error),
        }
    }
    Ok(QuickReport { length_shards: 1, report, ..QuickReport::default() })
}

/// Compares the length of each file of columns and bitmaps with where the manifest says that its parts end.
fn companion_files(dataset: &Dataset, report: &mut Report) -> Result<()> {
    let mut ends = BTreeMap::<&str, u64>::new();
    for part in dataset.manifest().parts() {
        let end = ends.entry(&part.file).or_default();
        *end = (*end).max(part.end().unwrap_or(u64::MAX));
    }
    for (file, end) in ends {
        let path = dataset.path().join(names::COLUMNS_FOLDER).join(file);
        if length_and_crc(&path)?.is_none_or(|(length, _)| length < end) {
            report.add(Error::MissingCompanion { path });
        }
    }
    Ok(())
}

/// Returns the length of a file or object, and the CRC32C that a store keeps of it; `None` if it does not exist.
fn length_and_crc(path: &Path) -> Result<Option<(u64, Option<u32>)>> {
    let found = if is_url(path) {
        Head::of(path).map(|head| (head.len, head.crc32c))
    } else {
        std::fs::metadata(path).and_then(|meta| match meta.is_file() {
            true => Ok((meta.len(), None)),
            false => Err(not_regular(meta.file_type())),
        })
    };
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { action: "read", path: PathBuf::from(path), source }),
    }
}
