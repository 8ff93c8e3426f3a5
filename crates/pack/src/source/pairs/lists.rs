//! Lists of the images of splits that lie next to them, such as `train.txt` or `eigen_train_files.txt`: a name in each line.

use super::super::annotated::list_text;
use super::super::image_lists::{ImageLists, doubt};
use super::super::layouts::listed;
use super::super::split_names::{NamedSplit, is_same, is_split};
use super::names::Names;
use super::paired::FilesOfImages;
use crate::Error;
use std::collections::HashMap;
use std::path::Path;

/// Extensions of lists.
const LISTS: [&str; 2] = ["txt", "lst"];
const BOTH: &str = "trainval";

/// Lists of images, and the names of these.
pub(super) struct Lists<'a> {
    lists: Vec<List<'a>>,
    names: Names<'a>,
    images: usize,
    /// A list that is not read, since the others have its images.
    both: Option<&'a String>,
}

struct List<'a> {
    split: String,
    file: &'a String,
    text: String,
}

impl<'a> Lists<'a> {
    /// Finds lists among files: those whose names are those of splits (`train.txt`), otherwise those that have the name of one in theirs and an image in
    /// their first line (`eigen_train_files.txt`). A list of `trainval` is left out if there is one of its parts.
    ///
    /// # Errors
    /// [`crate::SourceError::SplitNames`] for two lists of a split; [`crate::SourceError::Annotations`] for a list that is not text.
    pub(super) fn find(
        source: &Path,
        root: &Path,
        files: &[&'a String],
        paired: &'a FilesOfImages,
    ) -> Result<Option<Self>, Error> {
        let stems = files.iter().filter_map(|file| {
            let (stem, end) = file.rsplit('/').next().unwrap_or_default().rsplit_once('.')?;
            LISTS.contains(&&*end.to_lowercase()).then_some((stem, *file))
        });
        let stems: Vec<_> = stems.collect();
        let exact: Vec<_> = stems.iter().filter(|(stem, _)| is_split(stem)).collect();
        let named = |(stem, file): &(&str, &'a String)| match NamedSplit::of(stem) {
            NamedSplit::One(split) => Some((split, *file)),
            _ => None,
        };
        let candidates: Vec<(String, &'a String)> = match exact.is_empty() {
            true => stems.iter().filter_map(named).collect(),
            false => exact.iter().map(|(stem, file)| ((*stem).to_owned(), *file)).collect(),
        };
        if candidates.is_empty() {
            return Ok(None);
        }
        let names = Names::new(paired);
        let mut lists: Vec<List> = vec![];
        for (split, file) in candidates {
            let text = match list_text(&root.join(file)) {
                Err(_) if exact.is_empty() => continue,
                text => text?,
            };
            let first = text.lines().find(|line| !line.trim().is_empty());
            if exact.is_empty() && first.is_none_or(|line| names.images(line).is_empty()) {
                continue;
            }
            if let Some(List { file: other, .. }) = lists.iter().find(|other| is_same(&other.split, &split)) {
                let problem = format!(
                    "{other} and {file} may each be the list of split {split}; remove one, or take all images as one split: \
                     --splits none"
                );
                return Err(doubt(source, problem));
            }
            lists.push(List { split, file, text });
        }
        let mut both = None;
        if lists.iter().any(|list| is_same(&list.split, "train") || is_same(&list.split, "val")) {
            both = lists.iter().find(|list| list.split == BOTH).map(|list| list.file);
            lists.retain(|list| list.split != BOTH);
        }
        Ok((!lists.is_empty()).then_some(Lists { lists, names, images: paired.len(), both }))
    }

    /// Returns the lists.
    pub(super) fn files(&self) -> impl Iterator<Item = &'a String> {
        self.lists.iter().map(|list| list.file)
    }

    /// Returns the images of each split.
    ///
    /// # Errors
    /// [`crate::SourceError::SplitNames`] for a line that names no image, several, or a file that belongs to another image.
    pub(super) fn images(&self, source: &Path, left_out: &mut Vec<String>) -> Result<ImageLists, Error> {
        let mut found = ImageLists::new();
        for List { split, file, text } in &self.lists {
            let (mut of_split, mut after) = (vec![], None);
            for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let wrong = |what: String| {
                    let problem = format!(
                        "{file}, line {}: {what}; correct the list, or take all images as one split: --splits none",
                        number + 1
                    );
                    Err(doubt(source, problem))
                };
                match self.names.images(line) {
                    [image] => {
                        match self.names.check(image, line) {
                            Ok(rest) => after = after.or(rest),
                            Err(problem) => return wrong(problem),
                        }
                        of_split.push((*image).clone());
                    }
                    [] => return wrong(format!("{} names no image", line.trim())),
                    several => {
                        let images = listed(several.iter().map(|image| image.as_str()));
                        return wrong(format!("{} names the images {images}", line.trim()));
                    }
                }
            }
            if let Some(after) = after {
                left_out.push(format!("{file}: what follows the names in its lines, such as {after}"));
            }
            found.insert(split.clone(), of_split);
        }
        if let Some(both) = self.both {
            left_out.push(format!("{both}: train and val have lists of their images"));
        }
        let named: usize = found.values().map(Vec::len).sum();
        if named < self.images {
            let splits = listed(found.keys().map(String::as_str));
            left_out.push(format!("{} images that the lists of {splits} do not name", self.images - named));
        }
        Ok(found)
    }
}

/// Refuses lists that have an image in another split than its folder is named for.
///
/// # Errors
/// [`crate::SourceError::SplitNames`].
pub(super) fn check_same(source: &Path, by_folder: &ImageLists, lists: &Lists<'_>) -> Result<(), Error> {
    let of_image: HashMap<&String, &String> =
        by_folder.iter().flat_map(|(split, images)| images.iter().map(move |image| (image, split))).collect();
    for List { split, file, text } in &lists.lists {
        for image in text.lines().flat_map(|line| lists.names.images(line)) {
            let folder = of_image.get(image);
            if folder.is_none_or(|folder| !is_same(folder, split)) {
                let folder = folder.map_or("no split".to_owned(), |folder| format!("split {folder}"));
                let problem = format!(
                    "{image} is in split {split} by the list {file}, and in {folder} by its folders; take the lists: --splits lists; \
                     or the folders: move the lists elsewhere"
                );
                return Err(doubt(source, problem));
            }
        }
    }
    Ok(())
}
