//! Lists of the images of splits that lie next to them, such as `train.txt`: a name in each line.

use super::super::annotated::list_text;
use super::super::image_lists::{ImageLists, doubt};
use super::super::layouts::listed;
use super::super::split_names::{is_same, is_split};
use crate::Error;
use std::collections::HashMap;
use std::path::Path;

/// Extensions of lists.
const LISTS: [&str; 2] = ["txt", "lst"];
const BOTH: &str = "trainval";

/// Returns the images of the splits that lists among `files` are named for, and these lists; `None` without such lists. A line names an image by its path
/// or its name, with or without extension; what follows a space is left out. A list of `trainval` is left out if there is one of its parts.
///
/// # Errors
/// [`crate::SourceError::SplitNames`] for two lists of a split, for a line that names no image, or several;
/// [`crate::SourceError::Annotations`] for a list that is not text.
pub(super) fn read<'f>(
    source: &Path,
    root: &Path,
    files: &[&'f String],
    images: &[&String],
    left_out: &mut Vec<String>,
) -> Result<Option<(ImageLists, Vec<&'f String>)>, Error> {
    let mut lists: Vec<(&str, &'f String)> = vec![];
    for file in files {
        let name = file.rsplit('/').next().unwrap_or_default();
        let Some((stem, _)) = name.rsplit_once('.').filter(|(_, end)| LISTS.contains(&&*end.to_lowercase())) else {
            continue;
        };
        if !is_split(stem) {
            continue;
        }
        if let Some((_, other)) = lists.iter().find(|(split, _)| is_same(split, stem)) {
            let problem = format!(
                "{other} and {file} may each be the list of split {stem}; remove one, or take all images as one split: --splits none"
            );
            return Err(doubt(source, problem));
        }
        lists.push((stem, file));
    }
    if lists.iter().any(|(split, _)| is_same(split, "train") || is_same(split, "val")) {
        lists.retain(|(split, file)| {
            let is_both = *split == BOTH;
            if is_both {
                left_out.push(format!("{file}: train and val have lists of their images"));
            }
            !is_both
        });
    }
    if lists.is_empty() {
        return Ok(None);
    }
    let names = by_name(images);
    let mut found = ImageLists::new();
    for (split, file) in &lists {
        let text = list_text(&root.join(file))?;
        let mut of_split = vec![];
        for (number, line) in text.lines().enumerate() {
            let Some(name) = line.split_whitespace().next() else { continue };
            match names.get(name.trim_start_matches("./")).map(Vec::as_slice) {
                Some([image]) => of_split.push((*image).clone()),
                several => {
                    let what = match several.unwrap_or_default() {
                        [] => "no image".to_owned(),
                        images => format!("the images {}", listed(images.iter().map(|image| image.as_str()))),
                    };
                    let problem = format!(
                        "{file}, line {}: {name} names {what}; correct the list, or take all images as one split: --splits none",
                        number + 1
                    );
                    return Err(doubt(source, problem));
                }
            }
        }
        found.insert((*split).to_owned(), of_split);
    }
    let named: usize = found.values().map(Vec::len).sum();
    if named < images.len() {
        let splits = listed(found.keys().map(String::as_str));
        left_out.push(format!("{} images that the lists of {splits} do not name", images.len() - named));
    }
    Ok(Some((found, lists.into_iter().map(|(_, file)| file).collect())))
}

/// Returns the images by all names that a line may have for them.
fn by_name<'i>(images: &[&'i String]) -> HashMap<&'i str, Vec<&'i String>> {
    let mut found = HashMap::<&str, Vec<&String>>::new();
    for image in images {
        let mut paths = vec![image.as_str()];
        // Also without the folders above it, from the first one on.
        paths.extend(image.match_indices('/').map(|(at, _)| &image[at + 1..]));
        for path in paths {
            let stem = path.rsplit_once('.').filter(|(_, end)| !end.contains('/')).map(|(stem, _)| stem);
            for name in [Some(path), stem].into_iter().flatten() {
                let of_name = found.entry(name).or_default();
                if !of_name.contains(image) {
                    of_name.push(image);
                }
            }
        }
    }
    found
}
