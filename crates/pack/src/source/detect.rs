//! Detects the kind of a source from its content.

use super::archive::files::{ArchiveFiles, ArchiveKind};
use super::archive_choice::{Folder, chosen, files_of, is_image, left_out};
use super::exists;
use super::layouts;
use super::pairs::PairedFiles;
use super::unknown_file::unknown_file;
use super::yolo::Config;
use crate::error::SourceError;
use crate::input::Found;
use crate::{Error, SourceKind};
use shardtool_read::glob_files;
use shardtool_store::{is_listed, is_url};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The detected kind of a source.
pub(super) enum DetectedSource {
    Folder,
    Clips,
    List,
    Coco,
    /// Images of Pascal VOC, by their names without extension.
    Voc(Vec<String>),
    /// Images of a dataset of YOLO, by their paths.
    Yolo(Rc<Config>, Vec<String>),
    /// Images to which files belong by their names, by their paths.
    Pairs(Rc<PairedFiles>, Vec<String>),
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
    let in_store = is_url(source);
    let is_folder = in_store && source.as_os_str().as_encoded_bytes().ends_with(b"/");
    let meta = if is_folder { None } else { exists(source)? };
    let is = |kind: fn(&Found) -> bool| meta.as_ref().is_some_and(kind);
    let forced = match from {
        Some(SourceKind::Folder) if is(Found::is_dir) => return Ok(DetectedSource::Folder),
        Some(SourceKind::Clips) if is(Found::is_dir) => return Ok(DetectedSource::Clips),
        Some(SourceKind::List) if is(Found::is_file) => return Ok(DetectedSource::List),
        Some(SourceKind::Coco) if is(Found::is_file) => return Ok(DetectedSource::Coco),
        Some(SourceKind::Folder | SourceKind::Clips | SourceKind::List | SourceKind::Coco) if meta.is_some() => {
            return Err(Error::Source(SourceError::UnknownFormat { path: source.to_owned() }));
        }
        // `layouts` of annotated images are found before.
        Some(SourceKind::Voc | SourceKind::Yolo | SourceKind::Pairs) => {
            return Err(Error::Source(SourceError::UnknownFormat { path: source.to_owned() }));
        }
        Some(SourceKind::Folder | SourceKind::Clips | SourceKind::List | SourceKind::Coco) | None => None,
        Some(SourceKind::Tfrecord) => Some(ArchiveKind::Tfrecord),
        Some(SourceKind::Webdataset) => Some(ArchiveKind::Webdataset),
        Some(SourceKind::Parquet) => Some(ArchiveKind::Parquet),
        Some(SourceKind::Mds) => Some(ArchiveKind::Mds),
    };
    let Some(meta) = meta else {
        let path = source.to_owned();
        if in_store && !is_listed(source).map_err(Error::io("read", source))? {
            // Web servers list nothing.
            return Err(Error::Source(SourceError::NoObject { path }));
        }
        let folder = in_store && !has_wildcards(source);
        let files = match globbed(&if folder { source.join("*") } else { source.to_owned() }) {
            // These credentials may read objects, but not list them. The object does not exist.
            Err(Error::Io { source, .. }) if folder && !is_folder && source.kind() == ErrorKind::PermissionDenied => {
                vec![]
            }
            files => files?,
        };
        if files.is_empty() {
            let missing = if in_store { SourceError::NoObject { path } } else { SourceError::NotFound { path } };
            return Err(Error::Source(missing));
        }
        return chosen(source, files, &[], forced)?.map(DetectedSource::Archives).ok_or(Error::Source(match folder {
            true => SourceError::FolderInStore { path },
            false => SourceError::UnknownFormat { path },
        }));
    };
    if meta.is_file() {
        let list =
            source.extension().is_some_and(|e| ["csv", "jsonl", "ndjson"].iter().any(|l| e.eq_ignore_ascii_case(l)));
        if list && forced.is_none() {
            return Ok(DetectedSource::List);
        }
        if forced.is_none() && super::coco::is(source)? {
            return Ok(DetectedSource::Coco);
        }
        if source.file_name().is_some_and(|name| name == "index.json") {
            return mds(source.parent().unwrap_or(Path::new("")));
        }
        let found = chosen(source, vec![source.to_owned()], &[], forced)?;
        return found.map(DetectedSource::Archives).ok_or_else(|| unknown_file(source));
    }
    if !meta.is_dir() {
        return Err(Error::io("read", source)(meta.not_regular()));
    }
    if forced == Some(ArchiveKind::Mds) || (forced.is_none() && ArchiveFiles::is_mds(source)?) {
        return mds(source);
    }
    let Children { files, unusable } = children(source)?;
    // In a folder of images, archives are rejected inputs.
    if forced.is_none() {
        let Content { images, archives, .. } = first_files(&files)?;
        if archives.is_none() {
            return if images { Ok(DetectedSource::Folder) } else { class_folders(source) };
        }
    }
    // A folder of images lists what it cannot examine as rejected; archives have no such list.
    if let Some(error) = unusable {
        return Err(error);
    }
    let folder = |name: String| {
        // What cannot be examined may hold samples.
        let has_samples = forced.is_none()
            && content(&source.join(&name))
                .map_or(true, |found| found.images || found.archives.is_some() || found.folders);
        Folder { name, has_samples }
    };
    let folders: Vec<_> = subfolders(source)?.into_iter().map(folder).collect();
    chosen(source, files, &folders, forced)?
        .map(DetectedSource::Archives)
        .ok_or(Error::Source(SourceError::Empty { path: source.to_owned(), rejected: None }))
}

/// Returns the shards of an MDS folder, and names what its index does not list.
fn mds(folder: &Path) -> Result<DetectedSource, Error> {
    let mut files = ArchiveFiles::mds(folder)?;
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    if !is_url(here) {
        let is_listed = |name: &String| name == "index.json" || files.files.iter().any(|file| file.name == *name);
        let (others, folders) = (other_files(here)?, subfolders(here)?);
        let others = others.iter().filter(|name| !is_listed(name)).chain(&folders).map(String::as_str);
        files.left_out = left_out(others, ArchiveKind::Mds);
    }
    Ok(DetectedSource::Archives(files))
}

/// Returns a folder without images of its own as one of class folders.
///
/// # Errors
/// [`SourceError::Nested`] if the first folder in it has archives, and no other one images.
fn class_folders(source: &Path) -> Result<DetectedSource, Error> {
    let folders = subfolders(source)?;
    let Some(first) = folders.first() else { return Ok(DetectedSource::Folder) };
    let folder = source.join(first);
    match content(&folder)? {
        Content { images: false, archives: Some(kind), .. } => {
            for other in folders.iter().skip(1).take(LOOKED_INTO) {
                if content(&source.join(other))?.images {
                    return Ok(DetectedSource::Folder);
                }
            }
            Err(Error::Source(SourceError::Nested { path: source.to_owned(), archives: files_of(kind, 2), folder }))
        }
        _ => Ok(DetectedSource::Folder),
    }
}

/// What a folder holds, judged by its first files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Content {
    pub(super) images: bool,
    pub(super) archives: Option<ArchiveKind>,
    /// Folders that are not empty.
    pub(super) folders: bool,
}

/// Examines the first files of a folder.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn content(folder: &Path) -> Result<Content, Error> {
    let Content { images, archives, .. } = first_files(&children(folder)?.files)?;
    Ok(Content { images, archives, folders: !subfolders(folder)?.is_empty() })
}

fn first_files(files: &[PathBuf]) -> Result<Content, Error> {
    let mut content = Content::default();
    for file in files.iter().take(LOOKED_INTO) {
        content.images = content.images || is_image(file)?;
        content.archives = match content.archives {
            None => ArchiveKind::of(file)?,
            known => known,
        };
    }
    Ok(content)
}

/// Returns the names of the folders in a folder, in byte order, without hidden ones, those of the system, and those without
/// any file.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be listed.
pub(super) fn subfolders(folder: &Path) -> Result<Vec<String>, Error> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let entry = entry.map_err(Error::io("list", folder))?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with('.') || layouts::is_system(&name) || layouts::is_of_dataset(folder, &name) {
            continue;
        }
        let path = entry.path();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file && path.is_dir() && !is_empty(&path) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// Depth at which a folder without files is not searched any deeper: links may lead back.
const DEEPEST: u32 = 8;

/// Returns whether a folder holds no file at any depth, hidden ones and those of the system aside. One that cannot be listed
/// is not empty.
pub(super) fn is_empty(folder: &Path) -> bool {
    is_empty_to(folder, DEEPEST)
}

fn is_empty_to(folder: &Path, depth: u32) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        let ignored = name.as_encoded_bytes().starts_with(b".") || name.to_str().is_some_and(layouts::is_system);
        ignored || (depth > 0 && entry.path().is_dir() && is_empty_to(&entry.path(), depth - 1))
    })
}

/// Returns the names of the visible files in a folder.
///
/// # Errors
/// [`Error::Io`] if the folder cannot be listed.
pub(super) fn other_files(folder: &Path) -> Result<Vec<String>, Error> {
    let name = |file: &PathBuf| file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(children(folder)?.files.iter().map(name).collect())
}

fn has_wildcards(url: &Path) -> bool {
    url.file_name().is_some_and(|name| name.to_string_lossy().contains(['*', '?', '[']))
}

/// The visible entries of a folder that are no folders.
struct Children {
    /// Regular files, in byte order of their names.
    files: Vec<PathBuf>,
    /// The error of the first entry that is not a regular file or cannot be examined.
    unusable: Option<Error>,
}

fn children(folder: &Path) -> Result<Children, Error> {
    let (mut files, mut unusable) = (vec![], vec![]);
    for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let entry = entry.map_err(Error::io("list", folder))?;
        let name = entry.file_name();
        let left_out = |name: &str| layouts::is_system(name) || layouts::is_of_dataset(folder, name);
        if name.as_encoded_bytes().starts_with(b".") || name.to_str().is_some_and(left_out) {
            continue;
        }
        let path = entry.path();
        // Most file systems give the kind with the name. Only links and what is unknown take a `stat` here.
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            files.push(path);
            continue;
        }
        match exists(&path) {
            Ok(Some(meta)) if meta.is_file() => files.push(path),
            Ok(Some(meta)) if !meta.is_dir() => {
                let error = Error::io("read", &path)(meta.not_regular());
                unusable.push((path, error));
            }
            Ok(_) => {}
            Err(error) => unusable.push((path, error)),
        }
    }
    files.sort();
    Ok(Children { files, unusable: unusable.into_iter().min_by(|a, b| a.0.cmp(&b.0)).map(|(_, error)| error) })
}

/// Returns the files that match a glob.
///
/// # Errors
/// [`Error::Io`] for a match that is not a regular file or cannot be examined.
fn globbed(pattern: &Path) -> Result<Vec<PathBuf>, Error> {
    match pattern.to_str().map_or(Ok(vec![]), glob_files) {
        Ok(files) => Ok(files),
        Err(Some((path, error))) => Err(Error::io("read", &path)(error)),
        // Not a glob.
        Err(None) => Ok(vec![]),
    }
}
