//! Chooses the archives among the files of a folder or of a glob. If these may be meant in two ways, refuses and names both; names what
//! is no archive.

use super::archive::files::{ArchiveFile, ArchiveFiles, ArchiveKind, start_of};
use super::exists;
use super::layouts::listed;
use crate::Error;
use crate::error::SourceError;
use crate::ordered::ordered;
use shardtool_decode::{ConvertedFormat, sniff};
use shardtool_store::is_url;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Requests to a store that are under way at once.
const AT_ONCE: NonZeroUsize = const { NonZeroUsize::new(32).unwrap() };

/// What a file is, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    Archive(ArchiveKind),
    Image,
    Other,
}

/// A folder next to archives.
pub(super) struct Folder {
    pub(super) name: String,
    /// Whether its first files are images or archives, or it holds folders.
    pub(super) has_samples: bool,
}

/// Chooses the archives among `files`: those of the `forced` kind, otherwise of the only kind. Includes files that only share an
/// extension with files of that kind, so that a damaged archive is not ignored. `folders` are those next to them. Returns `None` if no file
/// is an archive.
///
/// # Errors
/// [`SourceError::Mixed`], [`SourceError::Empty`], and those of reading the files.
pub(super) fn chosen(
    source: &Path,
    files: Vec<PathBuf>,
    folders: &[Folder],
    forced: Option<ArchiveKind>,
) -> Result<Option<ArchiveFiles>, Error> {
    // Many requests to a store are under way at once.
    let at_once = if is_url(source) { AT_ONCE } else { NonZeroUsize::MIN };
    let only = files.len() == 1;
    let examine = |i: usize| -> Result<_, Error> {
        let kind = match ArchiveKind::of(&files[i])? {
            Some(kind) => FileKind::Archive(kind),
            None if !only && is_image(&files[i])? => FileKind::Image,
            None => FileKind::Other,
        };
        Ok((kind, exists(&files[i])?.map_or(0, |meta| meta.len())))
    };
    let (mut kinds, mut sizes) = (vec![], vec![]);
    ordered(at_once, files.len(), 2 * at_once.get(), examine, |_, examined: Result<_, Error>| {
        let (kind, size) = examined?;
        kinds.push(kind);
        sizes.push(size);
        Ok::<(), Error>(())
    })?;
    let bytes = |kind| sizes.iter().zip(&kinds).filter(|(_, k)| **k == kind).map(|(size, _)| size).sum::<u64>();
    let archives = [ArchiveKind::Tfrecord, ArchiveKind::Webdataset, ArchiveKind::Parquet].map(FileKind::Archive);
    let most = || archives.into_iter().filter(|k| bytes(*k) > 0).max_by_key(|k| bytes(*k));
    let Some(kind @ FileKind::Archive(archive)) = forced.map(FileKind::Archive).or_else(most) else { return Ok(None) };
    let extensions: Vec<_> =
        files.iter().zip(&kinds).filter(|(_, k)| **k == kind).map(|(f, _)| f.extension()).collect();
    // One of another kind is not damaged.
    let may_be_damaged = |file: &PathBuf, k: FileKind| k == FileKind::Other && extensions.contains(&file.extension());
    let (mut taken, mut others) = (vec![], vec![]);
    for (file, k) in files.iter().zip(&kinds) {
        match only || *k == kind || may_be_damaged(file, *k) {
            true => taken.push(ArchiveFile::new(file)?),
            false => others.push((name(file), *k)),
        }
    }
    if taken.is_empty() {
        return Err(Error::Source(SourceError::Empty { path: source.to_owned(), rejected: None }));
    }
    if forced.is_none() {
        refuse_doubtful(source, (taken.len(), archive), &others, folders)?;
    }
    let others = others.iter().map(|(name, _)| name.as_str()).chain(folders.iter().map(|folder| &*folder.name));
    let left_out = left_out(others, archive);
    Ok(Some(ArchiveFiles { kind: archive, files: taken, left_out }))
}

/// Names what lies next to archives.
pub(super) fn left_out<'a>(others: impl Iterator<Item = &'a str>, kind: ArchiveKind) -> Vec<String> {
    let others = listed(others);
    if others.is_empty() { vec![] } else { vec![format!("{others}: next to the {}", files_of(kind, 2))] }
}

/// Refuses other archives, images, and folders with samples next to the archives of one kind.
fn refuse_doubtful(
    source: &Path,
    (count, kind): (usize, ArchiveKind),
    others: &[(String, FileKind)],
    folders: &[Folder],
) -> Result<(), Error> {
    let folders: Vec<_> = folders.iter().filter(|folder| folder.has_samples).map(|folder| &*folder.name).collect();
    let archives = [ArchiveKind::Tfrecord, ArchiveKind::Webdataset, ArchiveKind::Parquet];
    let of = |kind| others.iter().filter(move |(_, k)| *k == kind).map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    let mut found = vec![];
    for other in archives {
        found.push((of(FileKind::Archive(other)), files_of(other, of(FileKind::Archive(other)).len()), other.name()));
    }
    let images = of(FileKind::Image);
    let nouns = [(images.len(), "image", "images"), (folders.len(), "folder of samples", "folders of samples")];
    let [image, folder] = nouns.map(|(count, one, more)| if count == 1 { one } else { more });
    found.push((images, image, "folder"));
    found.push((folders, folder, "folder"));
    let Some((names, noun, from)) = found.into_iter().find(|(names, ..)| !names.is_empty()) else { return Ok(()) };
    Err(Error::Source(SourceError::Mixed {
        path: source.to_owned(),
        archives: format!("{count} {}", files_of(kind, count)),
        archives_from: format!("--from {} takes the {}", kind.name(), files_of(kind, count)),
        others_from: format!("--from {from} the {noun}"),
        others: format!("{} {noun} ({})", names.len(), listed(names.iter().copied())),
    }))
}

/// Returns whether a file starts like an image that is stored, or is converted to one that is.
///
/// # Errors
/// Those of [`start_of`].
pub(super) fn is_image(path: &Path) -> Result<bool, Error> {
    let (start, name) = (start_of(path, 32)?, path.file_name().and_then(|name| name.to_str()));
    Ok(sniff(&start).is_some() || ConvertedFormat::detect(&start, name).is_some())
}

/// Names files of a kind, for a message.
pub(super) fn files_of(kind: ArchiveKind, count: usize) -> &'static str {
    let (one, more) = match kind {
        ArchiveKind::Tfrecord => ("TFRecord file", "TFRecord files"),
        ArchiveKind::Webdataset => ("tar", "tars"),
        ArchiveKind::Parquet => ("Parquet file", "Parquet files"),
        ArchiveKind::Mds => ("MDS shard", "MDS shards"),
    };
    if count == 1 { one } else { more }
}

fn name(file: &Path) -> String {
    file.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
