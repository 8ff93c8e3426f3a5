//! Splits that are lists of images, as VOC's `ImageSets` and YOLO's `data.yaml` give them: which are taken, and that none of
//! their images is in two.

use super::layouts::listed;
use super::split_names::is_same;
use crate::error::SourceError;
use crate::place::parse_manifest;
use crate::{Error, Options};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

/// The images of each split, by the name of the split.
pub(super) type ImageLists = BTreeMap<String, Vec<String>>;

/// Takes the split of `options`, or all. Returns also the names of the others.
///
/// # Errors
/// [`SourceError::SplitNames`] for a split without a list, and for an image that is in a list twice, or in two lists: those of the
/// splits that are packed, and that the destination holds.
pub(super) fn taken(
    source: &Path,
    mut lists: ImageLists,
    options: &Options,
) -> Result<(ImageLists, Vec<String>), Error> {
    let mut others = vec![];
    if let Some(split) = &options.split {
        let names = listed(lists.keys().map(String::as_str));
        let spelling = || lists.keys().find(|name| is_same(name, split)).cloned();
        let found = if lists.contains_key(split) { Some(split.clone()) } else { spelling() };
        let Some(images) = found.and_then(|found| lists.remove(&found)) else {
            let problem = format!(
                "it has no list of images for split {split}, but lists for {names}; choose one of these, or take all images \
                 as one split: --splits none"
            );
            return Err(doubt(source, problem));
        };
        check_packed(source, split, &images, &lists, options)?;
        others.extend(lists.into_keys());
        lists = BTreeMap::from([(split.clone(), images)]);
    }
    let mut seen = HashMap::new();
    for (split, images) in &lists {
        for image in images {
            let Some(before) = seen.insert(image, split) else { continue };
            let problem = match before == split {
                true => format!("{image} is twice in the list of split {split}; remove one of the lines"),
                false => format!(
                    "{image} is in the split {before} and in the split {split}, so that a model would be tested with images that \
                     it was trained with; pack one of them, with --split NAME, or correct the lists"
                ),
            };
            return Err(doubt(source, problem));
        }
    }
    Ok((lists, others))
}

/// Refuses a split that has images of another one which the destination holds already.
fn check_packed(
    source: &Path,
    split: &str,
    images: &[String],
    others: &ImageLists,
    options: &Options,
) -> Result<(), Error> {
    let destination = &options.destination;
    if destination.as_os_str().is_empty() {
        return Ok(());
    }
    // The pack itself says what is wrong with another manifest.
    let Some(manifest) = parse_manifest(destination).ok().flatten() else { return Ok(()) };
    let images: HashSet<&String> = images.iter().collect();
    for (other, list) in others {
        let Some(there) = manifest.splits.iter().find(|there| is_same(&there.name, other)) else { continue };
        if let Some(image) = list.iter().find(|image| images.contains(image)) {
            let problem = format!(
                "{image} is in the list of split {split}, and in that of split {other}, and {} holds {}, so that a model would be \
                 tested with images that it was trained with; correct the lists, or pack {split} into another dataset",
                destination.display(),
                there.name
            );
            return Err(doubt(source, problem));
        }
    }
    Ok(())
}

/// Refuses files that are in two splits, also under other names: by links, or by paths that are written in another way.
///
/// # Errors
/// [`SourceError::SplitNames`].
pub(super) fn check_files<'a>(
    source: &Path,
    files: impl Iterator<Item = (&'a str, std::path::PathBuf)>,
) -> Result<(), Error> {
    let mut seen: HashMap<std::path::PathBuf, &str> = HashMap::new();
    for (split, path) in files {
        // Those that do not exist are rejected later.
        let Ok(file) = path.canonicalize() else { continue };
        match seen.insert(file, split) {
            Some(before) if before != split => {
                let problem = format!(
                    "{} is a file of the split {before}, and in the split {split}, so that a model would be tested with images \
                     that it was trained with; correct the lists or the folders",
                    path.display()
                );
                return Err(doubt(source, problem));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the error of names that may be meant in two ways.
pub(super) fn doubt(source: &Path, problem: String) -> Error {
    Error::Source(SourceError::SplitNames { path: source.to_owned(), problem })
}
