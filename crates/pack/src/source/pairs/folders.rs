//! Splits that the folders of images are named for.

use super::super::image_lists::{ImageLists, doubt};
use super::super::layouts::listed;
use super::super::split_names::{NamedSplit, is_same};
use super::find::Pairs;
use crate::{Error, Options, SplitNames};
use std::collections::BTreeMap;
use std::path::Path;

/// Groups images by the splits that their folders are named for; all in the group without a name if none is.
///
/// # Errors
/// [`crate::SourceError::SplitNames`] if an image is in folders of two splits, if some are in none, and if two folders are named for the
/// same split.
pub(super) fn splits<'i>(
    source: &Path,
    pairs: &Pairs,
    images: impl Iterator<Item = &'i String>,
    options: &Options,
) -> Result<ImageLists, Error> {
    let (mut lists, mut folders) = (ImageLists::new(), BTreeMap::<String, &str>::new());
    for image in images {
        let mut above: Vec<_> = image.split('/').collect();
        above.pop();
        let split = match options.split_names {
            SplitNames::Ignored => String::new(),
            SplitNames::Names => above.get(pairs.image.folders()).map_or(String::new(), |name| (*name).to_owned()),
            SplitNames::Auto => match named(source, image, &above)? {
                Some((split, folder)) => {
                    let known = folders.iter().find(|(other, name)| is_same(other, &split) && **name != folder);
                    if let Some((_, known)) = known {
                        let problem = format!(
                            "folders {known} and {folder} are both named for split {split}; make each a split of its name: --splits \
                             names; or take all images as one: --splits none"
                        );
                        return Err(doubt(source, problem));
                    }
                    folders.insert(split.clone(), folder);
                    split
                }
                None => String::new(),
            },
        };
        lists.entry(split).or_default().push(image.clone());
    }
    lists.values_mut().for_each(|images| images.sort());
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
    Ok(lists)
}

/// Returns the split that a folder above an image is named for, and the folder.
fn named<'i>(source: &Path, image: &str, above: &[&'i str]) -> Result<Option<(String, &'i str)>, Error> {
    let named = above.iter().filter_map(|name| match NamedSplit::of_folder(name) {
        NamedSplit::One(split) => Some((split, *name)),
        _ => None,
    });
    let named: Vec<_> = named.collect();
    if let [(first, _), (second, _), ..] = &named[..]
        && first != second
    {
        let problem =
            format!("{image} is in folders of two splits, {first} and {second}; take all images as one: --splits none");
        return Err(doubt(source, problem));
    }
    Ok(named.into_iter().next())
}
