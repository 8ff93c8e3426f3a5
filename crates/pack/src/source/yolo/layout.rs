//! Divides a dataset of YOLO into its splits.

use super::super::annotated::wrong;
use super::super::detect::DetectedSource;
use super::super::image_lists::{self, ImageLists};
use super::super::layouts::listed;
use super::super::split_names::is_same;
use super::super::splits::{DividedSource, SplitSource, only_split};
use super::config::{Config, Splits};
use super::paths::images_of;
use crate::{Error, Options, SplitNames};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::rc::Rc;

/// Divides a dataset of YOLO.
///
/// # Errors
/// [`crate::SourceError::Annotations`], those of [`image_lists::taken`] and of [`Folders::splits`](super::folders::Folders::splits), and
/// [`Error::Io`].
pub(in crate::source) fn divide(source: &Path, mut config: Config, options: &Options) -> Result<DividedSource, Error> {
    let mut left_out = config.left_out.clone();
    let mut lists = ImageLists::new();
    let (folders, splits) = match &config.splits {
        Splits::Named(splits) => (None, splits.clone()),
        Splits::Folders(folders) => (Some(folders), folders.splits(source, options, &mut left_out)?),
    };
    for (split, entries) in &splits {
        let mut images = vec![];
        let mut missing = false;
        for name in entries {
            match images_of(&config.base, name, &mut left_out) {
                Ok(found) => images.extend(found),
                // Tools name a test set that they do not write, and a split that is not asked for may be elsewhere.
                Err(None) if split == "test" || options.split.as_ref().is_some_and(|asked| !is_same(asked, split)) => {
                    left_out.push(format!("the images of {split}: no such folder or list: {name}"));
                    missing = true;
                }
                Err(None) => {
                    let base = config.base.display();
                    return Err(wrong(
                        source,
                        format!("the images of {split}: no such folder or list: {name}, in {base}"),
                    ));
                }
                Err(Some(error)) => return Err(error),
            }
        }
        if let Some(folders) = folders {
            folders.check_inner(source, entries, &images, options)?;
        }
        if !missing {
            lists.insert(split.clone(), images);
        }
    }
    let one = options.split_names == SplitNames::Ignored || lists.keys().all(String::is_empty);
    let lists = match one {
        true => BTreeMap::from([(only_split(&config.base, options), lists.into_values().flatten().collect())]),
        false => lists,
    };
    let asked = Options { split: options.split.clone().filter(|_| !one), ..options.clone() };
    let mut all: HashSet<String> = match &asked.split {
        Some(_) => lists.values().flatten().cloned().collect(),
        None => HashSet::new(),
    };
    let (lists, others) = image_lists::taken(source, lists, &asked)?;
    for image in lists.values().flatten() {
        all.remove(image);
    }
    config.others.extend(all);
    if !others.is_empty() {
        left_out.push(format!("{}: of other splits", listed(others.iter().map(String::as_str))));
    }
    let (base, config) = (config.base.clone(), Rc::new(config));
    let splits = lists.into_iter().map(|(split, images)| {
        let found = DetectedSource::Yolo(Rc::clone(&config), images);
        SplitSource { split, path: base.clone(), found }
    });
    Ok(DividedSource { splits: splits.collect(), folders: vec![], left_out })
}
