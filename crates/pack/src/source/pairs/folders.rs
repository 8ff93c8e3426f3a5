//! Splits that the folders of images, and of the files that belong to them, are named for.

use super::super::image_lists::{ImageLists, doubt};
use super::super::layouts::listed;
use super::super::split_names::{NamedSplit, is_same};
use super::find::Pairs;
use super::paired::{FilesOfImages, PairedFile};
use crate::{Error, Options, SplitNames};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Groups images by the splits that their folders, and those of their files, are named for; all in the group without a name if none is. If
/// images and files need not lie in the same folders ([`super::pattern::Pattern::is_free`]), images without a file are of the split of their folder, and
/// folders without any file are left out. Returns also what is left out.
///
/// # Errors
/// [`crate::SourceError::SplitNames`] if an image is in folders of two splits, if some are in none, and if two folders are named for the
/// same split.
pub(super) fn splits(
    source: &Path,
    pairs: &Pairs,
    paired: &FilesOfImages,
    options: &Options,
) -> Result<(ImageLists, Option<String>), Error> {
    let (mut lists, mut folders) = (ImageLists::new(), BTreeMap::<String, &str>::new());
    let mut sorted: Vec<_> = paired.iter().collect();
    sorted.sort_by_key(|(image, _)| *image);
    for (image, files) in sorted {
        let above = above(image);
        let split = match options.split_names {
            SplitNames::Ignored | SplitNames::Lists => String::new(),
            SplitNames::Names => above.get(pairs.image.folders()).map_or(String::new(), |name| (*name).to_owned()),
            SplitNames::Auto => {
                let of_files = files.iter().flat_map(PairedFile::existing).flat_map(|file| self::above(file));
                match named(source, image, above.into_iter().chain(of_files))? {
                    Some((split, folder)) => {
                        let known = folders.iter().find(|(other, name)| is_same(other, &split) && **name != folder);
                        if let Some((_, known)) = known {
                            let problem = format!(
                                "folders {known} and {folder} are both named for split {split}; make each a split of its name: \
                                 --splits names; or take all images as one: --splits none"
                            );
                            return Err(doubt(source, problem));
                        }
                        folders.insert(split.clone(), folder);
                        split
                    }
                    None => String::new(),
                }
            }
        };
        lists.entry(split).or_default().push(image.clone());
    }
    let left_out = match pairs.image.is_free() {
        true => with_their_folders(source, paired, &mut lists)?,
        false => None,
    };
    if lists.len() > 1
        && let Some(image) = lists.get("").and_then(|images| images.first())
    {
        let named = listed(lists.keys().filter(|name| !name.is_empty()).map(String::as_str));
        let problem = format!(
            "some images are in folders of {named}, and {image} is in that of no split; make each folder a split of its name: \
             --splits names; or take all images as one: --splits none"
        );
        return Err(doubt(source, problem));
    }
    Ok((lists, left_out))
}

fn above(file: &str) -> Vec<&str> {
    let mut parts: Vec<_> = file.split('/').collect();
    parts.pop();
    parts
}

/// Returns the split that a folder above an image or its files is named for, and the folder.
fn named<'i>(
    source: &Path,
    image: &str,
    above: impl Iterator<Item = &'i str>,
) -> Result<Option<(String, &'i str)>, Error> {
    let named = above.filter_map(|name| match NamedSplit::of_folder(name) {
        NamedSplit::One(split) => Some((split, name)),
        _ => None,
    });
    let named: Vec<_> = named.collect();
    if let Some((first, _)) = named.first()
        && let Some((second, _)) = named.iter().find(|(other, _)| other != first)
    {
        let problem = format!(
            "{image}, with the files that belong to it, is in folders of two splits, {first} and {second}; take all images as \
             one: --splits none"
        );
        return Err(doubt(source, problem));
    }
    Ok(named.into_iter().next())
}

/// Moves images without a file into the split of the other images of their folder, and removes folders in which no image has a file.
/// Returns what was removed.
fn with_their_folders(source: &Path, paired: &FilesOfImages, lists: &mut ImageLists) -> Result<Option<String>, Error> {
    let has_file = |image: &String| paired[image].iter().any(|file| !file.existing().is_empty());
    let folder = |image: &str| image.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    let mut splits = HashMap::<String, BTreeSet<String>>::new();
    for (split, images) in &*lists {
        for image in images.iter().filter(|image| has_file(image)) {
            splits.entry(folder(image)).or_default().insert(split.clone());
        }
    }
    let (mut without, mut folders) = (0, BTreeSet::new());
    for (split, images) in std::mem::take(lists) {
        for image in images {
            let folder = folder(&image);
            let of_folder: Vec<_> = splits.get(&folder).into_iter().flatten().collect();
            let split = match of_folder[..] {
                _ if has_file(&image) => split.clone(),
                [] => {
                    without += 1;
                    folders.insert(folder);
                    continue;
                }
                [only] => only.clone(),
                [first, second, ..] => {
                    let problem = format!(
                        "{image} has no other file, and the images of its folder are in the splits {first} and {second}; take all \
                         images as one: --splits none"
                    );
                    return Err(doubt(source, problem));
                }
            };
            lists.entry(split).or_default().push(image);
        }
    }
    lists.values_mut().for_each(|images| images.sort());
    Ok(folders.first().map(|first| {
        format!("{without} images in {} folders of which no image has another file, such as {first}", folders.len())
    }))
}
