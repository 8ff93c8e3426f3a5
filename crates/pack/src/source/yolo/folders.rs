//! Folders `images` and `labels` without a `data.yaml`: `images/train` and `labels/train`, `images` and `labels`, or `train/images`
//! and `train/labels`.

use super::super::annotated::wrong;
use super::super::detect::{other_files, subfolders};
use super::super::image_lists::doubt;
use super::super::layouts::listed;
use super::super::split_names::{NamedSplit, is_split};
use super::paths::{IMAGES, LABELS};
use crate::{Error, Options, SplitNames};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders of images, each of which may be a split.
#[derive(Debug)]
pub(super) struct Folders {
    /// The name of each, and the path of its images.
    each: Vec<(String, String)>,
    /// The paths of all images.
    all: Vec<String>,
    /// Files of `images` that are in none of the folders.
    loose: Vec<String>,
    /// The folders of labels.
    pub(super) labels: Vec<PathBuf>,
}

impl Folders {
    /// Finds the folders; `None` if there are none.
    ///
    /// # Errors
    /// [`crate::SourceError::Annotations`] if both layouts are there; [`Error::Io`].
    pub(super) fn find(source: &Path) -> Result<Option<Self>, Error> {
        let has_both = |folder: &Path| folder.join(IMAGES).is_dir() && folder.join(LABELS).is_dir();
        let top = subfolders(source)?;
        let parts: Vec<&String> = top.iter().filter(|name| source.join(name).join(IMAGES).is_dir()).collect();
        let both: Vec<&str> =
            parts.iter().filter(|name| has_both(&source.join(name))).map(|name| name.as_str()).collect();
        if has_both(source) {
            if !both.is_empty() {
                let inner = listed(both.into_iter());
                return Err(wrong(
                    source,
                    format!(
                        "it holds images and labels, and so do {inner}: which are the data? Name one of these folders, or write a data.yaml that names each split"
                    ),
                ));
            }
            let inner = subfolders(&source.join(IMAGES))?;
            return Ok(Some(Folders {
                each: inner.into_iter().map(|name| (name.clone(), format!("{IMAGES}/{name}"))).collect(),
                all: vec![IMAGES.to_owned()],
                loose: other_files(&source.join(IMAGES))?,
                labels: vec![source.join(LABELS)],
            }));
        }
        // One folder of another name may hold a whole dataset.
        let named = parts.iter().any(|name| matches!(NamedSplit::of(name), NamedSplit::One(_)));
        let other_split = top.iter().any(|name| is_split(name) && !parts.contains(&name));
        if both.is_empty() || other_split || (parts.len() == 1 && !named) {
            return Ok(None);
        }
        let each: Vec<_> = parts.iter().map(|name| ((*name).clone(), format!("{name}/{IMAGES}"))).collect();
        Ok(Some(Folders {
            all: each.iter().map(|(_, path)| path.clone()).collect(),
            labels: parts.iter().map(|name| source.join(name).join(LABELS)).collect(),
            loose: vec![],
            each,
        }))
    }

    /// Returns whether the images of a folder of this name next to `images` are read.
    pub(super) fn has(&self, name: &str) -> bool {
        self.each.iter().any(|(folder, path)| folder == name && path.starts_with(&format!("{name}/")))
    }

    /// Returns the folders of each split. One split, which has no name, is that of all images.
    ///
    /// # Errors
    /// [`crate::SourceError::SplitNames`] if some folders are not named for a split, and for two folders of one split.
    pub(super) fn splits(
        &self,
        source: &Path,
        options: &Options,
        left_out: &mut Vec<String>,
    ) -> Result<Vec<(String, Vec<String>)>, Error> {
        let all = || vec![(String::new(), self.all.clone())];
        let (mut by_name, mut others) = (BTreeMap::<String, Vec<&str>>::new(), vec![]);
        for (name, _) in &self.each {
            match NamedSplit::of(name) {
                NamedSplit::One(split) => by_name.entry(split).or_default().push(name),
                _ => others.push(name.as_str()),
            }
        }
        if options.split_names == SplitNames::Ignored || self.each.is_empty() {
            return Ok(all());
        }
        if options.split_names == SplitNames::Names {
            others.drain(..).for_each(|name| by_name.entry(name.to_owned()).or_default().push(name));
        }
        match others[..] {
            [] => {}
            // Nothing is there that it could be divided from.
            [_] if by_name.is_empty() && self.loose.is_empty() => return Ok(all()),
            _ => {
                let others = listed(others.into_iter());
                let named = match by_name.is_empty() {
                    true => format!("folders of images ({others}) are named for no split"),
                    false => format!(
                        "folders of images ({}) are named for splits, and others ({others}) for none",
                        listed(by_name.values().flatten().copied())
                    ),
                };
                return Err(doubt(
                    source,
                    format!(
                        "{named}; pack each as a split of its name: --splits names; take all images as one split: --splits none; \
                         or write a data.yaml that names each split"
                    ),
                ));
            }
        }
        if let Some((split, same)) = by_name.iter().find(|(_, same)| same.len() > 1) {
            return Err(doubt(
                source,
                format!(
                    "two folders are named for split {split} ({}); rename one, or write a data.yaml that names each split",
                    listed(same.iter().copied())
                ),
            ));
        }
        if !self.loose.is_empty() {
            let (count, names) = (self.loose.len(), listed(self.loose.iter().map(String::as_str)));
            left_out.push(format!("{count} files of {IMAGES} that are in no folder of a split: {names}"));
        }
        let path =
            |name: &str| self.each.iter().filter(|(folder, _)| folder == name).map(|(_, path)| path.clone()).collect();
        Ok(by_name.into_iter().map(|(split, names)| (split, path(names[0]))).collect())
    }

    /// Refuses images in folders below those of the splits that are named for splits themselves.
    ///
    /// # Errors
    /// [`crate::SourceError::SplitNames`].
    pub(super) fn check_inner(
        &self,
        source: &Path,
        folders: &[String],
        images: &[String],
        options: &Options,
    ) -> Result<(), Error> {
        if options.split_names != SplitNames::Auto {
            return Ok(());
        }
        let inside = |image: &'_ str| {
            folders.iter().find_map(|folder| Path::new(image).strip_prefix(folder).ok()).map(Path::to_owned)
        };
        let mut inner = BTreeSet::new();
        for path in images.iter().filter_map(|image| inside(image)) {
            let names = path.parent().into_iter().flat_map(Path::components);
            inner.extend(
                names.filter_map(|name| name.as_os_str().to_str().filter(|name| is_split(name)).map(str::to_owned)),
            );
        }
        match inner.is_empty() {
            true => Ok(()),
            false => Err(doubt(
                source,
                format!(
                    "in {}, folders of images are named for splits ({}); take all images as one split: --splits none; or write a \
                     data.yaml that names each split",
                    listed(folders.iter().map(String::as_str)),
                    listed(inner.iter().map(String::as_str))
                ),
            )),
        }
    }
}
