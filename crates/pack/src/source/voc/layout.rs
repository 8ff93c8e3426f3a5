//! The folders of Pascal VOC: finds them, and reads which images are in which split.

use super::super::detect::{self, DetectedSource, subfolders};
use super::super::image_lists;
use super::super::layouts::{is_system, listed};
use super::super::splits::{DividedSource, SplitSource, only_split};
use super::sets::{IMAGE_SETS, Lists};
use crate::error::SourceError;
use crate::{Error, Options, SourceKind, SplitNames};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folder with a file of annotations for each image.
pub(super) const ANNOTATIONS: &str = "Annotations";
/// Folder of the images.
pub(super) const IMAGES: &str = "JPEGImages";
/// How deep below the source the folders may lie.
const DEPTH: usize = 2;

/// Finds the folder that holds `Annotations` and `JPEGImages`: the source, or the only one in it; otherwise `None`.
///
/// # Errors
/// [`SourceError::Annotations`] if there are several, or none and the user names the kind; [`Error::Io`].
pub(in crate::source) fn find(source: &Path, from: Option<SourceKind>) -> Result<Option<PathBuf>, Error> {
    let forced = from == Some(SourceKind::Voc);
    let wrong = |problem: String| Err(Error::Source(SourceError::Annotations { path: source.to_owned(), problem }));
    if from.is_some() && !forced {
        return Ok(None);
    }
    let mut folder = source.to_owned();
    for _ in 0..=DEPTH {
        if !folder.is_dir() {
            break;
        }
        if is_root(&folder, forced)? {
            return Ok(Some(folder));
        }
        let inner = subfolders(&folder)?;
        let mut roots = vec![];
        for name in &inner {
            if is_root(&folder.join(name), forced)? {
                roots.push(name.as_str());
            }
        }
        match (&roots[..], &inner[..]) {
            ([one], _) => return Ok(Some(folder.join(one))),
            ([first, ..], _) => {
                return wrong(format!(
                    "{} are Pascal VOC datasets of their own, whose splits have the same names; name one of them: {}",
                    listed(roots.iter().copied()),
                    folder.join(first).display()
                ));
            }
            ([], [only]) => folder = folder.join(only),
            _ => break,
        }
    }
    match forced {
        true => wrong(format!("expected the folders {ANNOTATIONS} and {IMAGES} of Pascal VOC, on a disk")),
        false => Ok(None),
    }
}

/// Returns whether a folder is one of VOC: images next to annotations, of which one is XML unless the user names the kind.
fn is_root(folder: &Path, forced: bool) -> Result<bool, Error> {
    let annotations = folder.join(ANNOTATIONS);
    if !annotations.is_dir() || !folder.join(IMAGES).is_dir() {
        return Ok(false);
    }
    let mut entries = fs::read_dir(&annotations).map_err(Error::io("list", &annotations))?.flatten();
    Ok(forced
        || entries.any(|entry| entry.path().extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"))))
}

/// Divides a folder of VOC by its lists of images. `trainval` is a split only if the user names it, or if neither `train` nor `val`
/// has a list. Without lists, all images are one split.
///
/// # Errors
/// [`SourceError::Annotations`] for a list that cannot be read; those of [`image_lists::taken`]; [`Error::Io`].
pub(in crate::source) fn divide(source: &Path, root: &Path, options: &Options) -> Result<DividedSource, Error> {
    let mut left_out = vec![];
    if root != source
        && let (Some(parent), Some(name)) = (root.parent(), root.file_name())
    {
        let others: Vec<_> = subfolders(parent)?.into_iter().filter(|other| **other != *name).collect();
        if !others.is_empty() {
            left_out.push(format!("{}: next to {}", listed(others.iter().map(String::as_str)), name.display()));
        }
    }
    let names = images(root)?;
    let all: Vec<String> = names.keys().cloned().collect();
    let found = match options.split_names {
        SplitNames::Ignored => None,
        _ => Lists::read(root, options, &mut left_out)?,
    };
    let mut read = vec![];
    let (lists, others) = match found {
        Some(Lists { images, in_root }) => {
            read = in_root;
            image_lists::taken(root, images, options)?
        }
        None => (BTreeMap::from([(only_split(root, options), all.clone())]), vec![]),
    };
    let named: HashSet<&String> = lists.values().flatten().collect();
    let unnamed: Vec<_> = all.iter().filter(|name| !named.contains(name)).map(|name| names[name].as_str()).collect();
    if !unnamed.is_empty() {
        let other = if others.is_empty() { String::new() } else { format!(" (others: {})", others.join(", ")) };
        let splits = listed(lists.keys().map(String::as_str));
        left_out.push(format!(
            "{} images that the lists of {splits} do not name{other}: {}",
            unnamed.len(),
            listed(unnamed.into_iter())
        ));
    }
    left_out.extend(unread(root, &read)?);
    let splits = lists.into_iter().map(|(split, images)| {
        let found = DetectedSource::Voc(images);
        SplitSource { split, path: root.to_owned(), found }
    });
    Ok(DividedSource { splits: splits.collect(), folders: vec![], left_out })
}

/// Returns the names of the images, by their names without extension.
///
/// # Errors
/// [`SourceError::Annotations`] if two images have the same name, except for the extension; [`Error::Io`].
pub(super) fn images(root: &Path) -> Result<BTreeMap<String, String>, Error> {
    let folder = root.join(IMAGES);
    let mut found = BTreeMap::<String, String>::new();
    for entry in fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
        let entry = entry.map_err(Error::io("list", &folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link without a target is a rejected image.
        if name.starts_with('.') || is_system(&name) || entry.path().is_dir() {
            continue;
        }
        let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem).to_owned();
        if let Some(other) = found.insert(stem.clone(), name.clone()) {
            let problem = format!("{other} and {name} are both the image of {ANNOTATIONS}/{stem}.xml; remove one");
            return Err(Error::Source(SourceError::Annotations { path: folder, problem }));
        }
    }
    Ok(found)
}

/// Names the files and folders of the root that are not read; `read` are files that are.
fn unread(root: &Path, read: &[String]) -> Result<Vec<String>, Error> {
    let known = |name: &str| {
        [ANNOTATIONS, IMAGES, IMAGE_SETS].contains(&name) || super::MASKS.iter().any(|(folder, _)| *folder == name)
    };
    let mut names = subfolders(root)?;
    names.retain(|name| !known(name));
    names.extend(detect::other_files(root)?.into_iter().filter(|name| !read.contains(name)));
    for folder in [ANNOTATIONS, IMAGES] {
        names.extend(subfolders(&root.join(folder))?.into_iter().map(|name| format!("{folder}/{name}")));
    }
    if names.is_empty() {
        return Ok(vec![]);
    }
    Ok(vec![format!("{}: not of Pascal VOC", listed(names.iter().map(String::as_str)))])
}
