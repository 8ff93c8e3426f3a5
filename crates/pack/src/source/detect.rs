//! Detects the kind of a source from its content.

use super::archive::files::{ArchiveFile, ArchiveFiles, ArchiveKind};
use crate::error::SourceError;
use crate::{Error, SourceKind};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The detected kind of a source.
pub(super) enum DetectedSource {
    Folder,
    List,
    Coco,
    Archives(ArchiveFiles),
}

/// Number of files in a folder that are examined to detect its kind.
const LOOKED_INTO: usize = 32;

/// Returns the kind of `source`: the given one, otherwise detected from its content.
///
/// # Errors
/// [`SourceError::NotFound`], [`SourceError::UnknownFormat`], [`SourceError::Empty`], [`Error::Io`], and those of an
/// MDS index.
pub(super) fn detect(source: &Path, from: Option<SourceKind>) -> Result<DetectedSource, Error> {
    let forced = match from {
        Some(SourceKind::Folder) if source.is_dir() => return Ok(DetectedSource::Folder),
        Some(SourceKind::List) if source.is_file() => return Ok(DetectedSource::List),
        Some(SourceKind::Coco) if source.is_file() => return Ok(DetectedSource::Coco),
        Some(SourceKind::Folder | SourceKind::List | SourceKind::Coco) if source.exists() => {
            return Err(Error::Source(SourceError::UnknownFormat { path: source.to_owned() }));
        }
        Some(SourceKind::Folder | SourceKind::List | SourceKind::Coco) | None => None,
        Some(SourceKind::Tfrecord) => Some(ArchiveKind::Tfrecord),
        Some(SourceKind::Webdataset) => Some(ArchiveKind::Webdataset),
        Some(SourceKind::Parquet) => Some(ArchiveKind::Parquet),
        Some(SourceKind::Mds) => Some(ArchiveKind::Mds),
    };
    let meta = match std::fs::metadata(source) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let files = globbed(source);
            if files.is_empty() {
                return Err(Error::Source(SourceError::NotFound { path: source.to_owned() }));
            }
            return chosen(source, files, forced)?
                .ok_or(Error::Source(SourceError::UnknownFormat { path: source.to_owned() }));
        }
        Err(e) => return Err(Error::io("read", source)(e)),
    };
    if meta.is_file() {
        let list =
            source.extension().is_some_and(|e| ["csv", "jsonl", "ndjson"].iter().any(|l| e.eq_ignore_ascii_case(l)));
        if list && forced.is_none() {
            return Ok(DetectedSource::List);
        }
        if forced.is_none() && super::coco::is(source) {
            return Ok(DetectedSource::Coco);
        }
        if source.file_name().is_some_and(|name| name == "index.json") {
            return ArchiveFiles::mds(source.parent().unwrap_or(Path::new(""))).map(DetectedSource::Archives);
        }
        return chosen(source, vec![source.to_owned()], forced)?
            .ok_or(Error::Source(SourceError::UnknownFormat { path: source.to_owned() }));
    }
    if forced == Some(ArchiveKind::Mds) || (forced.is_none() && ArchiveFiles::is_mds(source)) {
        return ArchiveFiles::mds(source).map(DetectedSource::Archives);
    }
    let files = children(source)?;
    let looked_into = || files.iter().take(LOOKED_INTO);
    // Archives next to images are rejected inputs; the images are packed.
    if forced.is_none()
        && (looked_into().any(|file| is_image(file)) || !looked_into().any(|file| ArchiveKind::of(file).is_some()))
    {
        return Ok(DetectedSource::Folder);
    }
    chosen(source, files, forced)?.ok_or(Error::Source(SourceError::Empty { path: source.to_owned(), rejected: None }))
}

/// Returns whether a file starts with the signature of an image format.
fn is_image(path: &Path) -> bool {
    let mut start = vec![];
    let read = File::open(path).and_then(|file| file.take(32).read_to_end(&mut start));
    read.is_ok() && shardtool_decode::sniff(&start).is_some()
}

/// Chooses the archives among `files`: those of the `forced` kind, otherwise of the kind with the most bytes. Includes
/// files that only share an extension with files of that kind, so that a damaged archive is not ignored.
fn chosen(source: &Path, files: Vec<PathBuf>, forced: Option<ArchiveKind>) -> Result<Option<DetectedSource>, Error> {
    let kinds: Vec<_> = files.iter().map(|file| ArchiveKind::of(file)).collect();
    let size = |file: &PathBuf| std::fs::metadata(file).map_or(0, |meta| meta.len());
    let bytes = |kind| files.iter().zip(&kinds).filter(|(_, k)| **k == Some(kind)).map(|(f, _)| size(f)).sum::<u64>();
    let all = [ArchiveKind::Tfrecord, ArchiveKind::Webdataset, ArchiveKind::Parquet];
    let Some(kind) = forced.or_else(|| all.into_iter().filter(|k| bytes(*k) > 0).max_by_key(|k| bytes(*k))) else {
        return Ok(None);
    };
    let of_kind = |k: &Option<ArchiveKind>| *k == Some(kind);
    let extensions: Vec<_> = files.iter().zip(&kinds).filter(|(_, k)| of_kind(k)).map(|(f, _)| f.extension()).collect();
    let only = files.len() == 1;
    let taken = files.iter().zip(&kinds).filter(|(f, k)| only || of_kind(k) || extensions.contains(&f.extension()));
    let taken = taken.map(|(file, _)| ArchiveFile::new(file)).collect::<Result<Vec<_>, _>>()?;
    if taken.is_empty() {
        return Err(Error::Source(SourceError::Empty { path: source.to_owned(), rejected: None }));
    }
    Ok(Some(DetectedSource::Archives(ArchiveFiles { kind, files: taken })))
}

/// Returns the visible files of a folder, in byte order of their names.
fn children(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = vec![];
    for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let path = entry.map_err(Error::io("list", folder))?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the files that match a glob.
fn globbed(pattern: &Path) -> Vec<PathBuf> {
    let found = pattern.to_str().and_then(|pattern| glob::glob(pattern).ok());
    let mut files: Vec<_> = found.into_iter().flatten().filter_map(Result::ok).filter(|path| path.is_file()).collect();
    files.sort();
    files
}
