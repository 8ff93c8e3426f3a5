//! Clips: folders of frames, in class folders or without classes; and the frames that a list names.

use super::folder::{Child, Walk};
use super::listing::{Entry, Listing};
use crate::class_ids::ClassIds;
use crate::error::SourceError;
use crate::input::{Found, Objects, Times, place};
use crate::sample::{FORMAT_SUFFIX, FPS_SUFFIX, ListedClip, ListedFile, SampleSchema, Values, natural_order};
use crate::{Error, Options, Reason};
use shardtool_format::manifest::DType;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The feature with the frames of a folder.
const FRAMES: &str = "frames";

/// Lists a folder of clips. Each folder of files is one clip, in the natural order of their names; its key is its path. If a
/// clip lies deeper than directly below the root, the first folder of each path is the class. Hidden names are skipped.
/// Symbolic links are followed.
///
/// # Errors
/// [`SourceError::UnknownClass`], [`SourceError::AlikeClasses`], [`SourceError::ColumnsOfFolder`]; [`Error::Io`] if a folder cannot be listed.
pub(super) fn list(root: &Path, classes: Option<ClassIds>, options: &Options) -> Result<Listing, Error> {
    if let Some((column, _)) = options.columns.first() {
        return Err(Error::Source(SourceError::ColumnsOfFolder { column: column.clone() }));
    }
    let mut walk = Walk::new(root, Times::of(options));
    let here = std::fs::metadata(root).map_err(Error::io("read", root))?;
    let mut found = vec![];
    for child in walk.children(root, "")? {
        match child.meta.is_dir() {
            true => folder(&mut walk, child, &mut vec![(here.dev(), here.ino())], &mut found)?,
            false => walk.reject(child.key, Reason::OutsideClip)?,
        }
    }
    let class = |key: &str| key.split_once('/').map(|(class, _)| class.to_owned());
    let names: BTreeSet<_> = found.iter().filter_map(|(key, _)| class(key)).collect();
    let labelled = !names.is_empty();
    let classes = match classes {
        Some(classes) if labelled => classes,
        _ => ClassIds::sorted(names)?,
    };
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut entries = vec![];
    for (key, clip) in found {
        let label = match class(&key) {
            Some(class) => Some(classes.id(&class)?),
            None if labelled => {
                walk.reject(key, Reason::ClipOutsideClass)?;
                continue;
            }
            None => None,
        };
        let mut values = vec![Values::Clip(Box::new(clip))];
        values.extend(described(options));
        entries.push(Entry::of_row(key, label, values.into()));
    }
    let mut columns = vec![(FRAMES.to_owned(), DType::Bytes)];
    columns.extend(descriptions(FRAMES, options));
    let left_out = walk.left_out();
    let Walk { root, mut rejected, .. } = walk;
    rejected.sort_by(|a, b| a.input.cmp(&b.input));
    let schema =
        SampleSchema { classes: classes.into_names(), images: false, labelled, columns, keypoints: Default::default() };
    Ok(Listing { entries, schema, rejected, left_out, root, stored: false })
}

/// Returns the columns that describe a clip.
pub(super) fn descriptions(name: &str, options: &Options) -> impl Iterator<Item = (String, DType)> {
    let fps = options.fps.map(|_| (format!("{name}{FPS_SUFFIX}"), DType::Float));
    std::iter::once((format!("{name}{FORMAT_SUFFIX}"), DType::Bytes)).chain(fps)
}

/// Returns the values of [`descriptions`]: the format is known when the frames are read.
pub(super) fn described(options: &Options) -> impl Iterator<Item = Values> {
    std::iter::once(Values::Missing).chain(options.fps.map(Values::Float))
}

/// Lists a folder recursively: a folder without folders is a clip.
fn folder(
    walk: &mut Walk,
    Child { key, meta }: Child,
    above: &mut Vec<(u64, u64)>,
    found: &mut Vec<(String, ListedClip)>,
) -> Result<(), Error> {
    let identity = (meta.dev(), meta.ino());
    if above.contains(&identity) {
        return walk.reject(key, Reason::LinkLoop);
    }
    let before = walk.rejected.len();
    let children = walk.children(&walk.root.join(&key), &format!("{key}/"))?;
    if children.iter().any(|child| child.meta.is_dir()) {
        above.push(identity);
        for child in children {
            match child.meta.is_dir() {
                true => folder(walk, child, above, found)?,
                false => walk.reject(child.key, Reason::OutsideClip)?,
            }
        }
        above.pop();
        return Ok(());
    }
    // A frame that cannot be examined makes the clip incomplete.
    let unusable = walk.rejected.drain(before..).next();
    if let Some(frame) = unusable {
        let file = frame.input.rsplit('/').next().unwrap_or_default().to_owned();
        return walk.reject(key, Reason::Frame { file, reason: Box::new(frame.reason) });
    }
    let files = children.into_iter().map(|child| {
        let name = child.key.rsplit('/').next().unwrap_or_default().to_owned();
        (name, Found::Local(child.meta))
    });
    match listed(files, walk.times) {
        Ok(files) => {
            let clip = ListedClip::of_folder(&key, &files);
            found.push((key, clip));
            Ok(())
        }
        Err(reason) => walk.reject(key, reason),
    }
}

/// Returns the files of a folder of frames, which lies at `path`, in natural order. Their paths are names.
///
/// # Errors
/// The reason why they are not the frames of a clip.
pub(crate) fn frames_in(path: &Path, times: Times) -> Result<Vec<ListedFile>, Reason> {
    let mut files = vec![];
    for entry in std::fs::read_dir(path).map_err(Reason::of_open)? {
        let entry = entry.map_err(Reason::Unreadable)?;
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let Some(name) = name.to_str() else { return Err(Reason::NotUtf8) };
        files.push((name.to_owned(), Found::at(&entry.path()).map_err(Reason::of_stat)?));
    }
    listed(files.into_iter(), times)
}

/// Sorts the files of a clip.
fn listed(files: impl Iterator<Item = (String, Found)>, times: Times) -> Result<Vec<ListedFile>, Reason> {
    let mut files: Vec<_> = files.collect();
    files.sort_unstable_by(|a, b| natural_order(&a.0, &b.0));
    if files.is_empty() {
        return Err(Reason::NoFrames);
    }
    files.into_iter().map(|(name, found)| file(name, &found, times)).collect()
}

/// Returns a frame as it was listed.
fn file(path: String, found: &Found, times: Times) -> Result<ListedFile, Reason> {
    match found.is_file() {
        true => Ok(ListedFile { path: path.into(), size: found.len(), version: found.version(times) }),
        false => Err(Reason::Frame { file: path, reason: Box::new(Reason::NotAFile) }),
    }
}

/// Replaces the paths of a list's value by the frames that they name: one folder, or files.
///
/// # Errors
/// The reason why they are not the frames of a clip.
pub(super) fn name_frames(root: &Path, objects: &Objects, times: Times, value: &mut Values) -> Result<(), Reason> {
    let text = |path: &[u8]| std::str::from_utf8(path).map(str::to_owned).map_err(|_| Reason::NotUtf8);
    let paths = match value {
        Values::Bytes(path) => vec![text(path)?],
        Values::BytesList(paths) => paths.iter().map(|path| text(path)).collect::<Result<_, _>>()?,
        _ => return Ok(()),
    };
    let found = |path: &str| objects.at(&place(root, path)).map_err(Reason::of_stat);
    let clip = match &paths[..] {
        [] => return Err(Reason::NoFrames),
        [folder] if found(folder)?.is_dir() => ListedClip::of_folder(folder, &frames_in(&place(root, folder), times)?),
        files => {
            let listed = |path: &String| {
                let frame = |reason| Reason::Frame { file: path.clone(), reason: Box::new(reason) };
                file(path.clone(), &found(path).map_err(frame)?, times)
            };
            ListedClip::of_files(files.iter().map(listed).collect::<Result<_, _>>()?)
        }
    };
    *value = Values::Clip(Box::new(clip));
    Ok(())
}
