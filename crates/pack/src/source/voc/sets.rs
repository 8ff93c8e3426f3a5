//! The lists of images of each split.

use super::super::annotated::list_text;
use super::super::detect::{other_files, subfolders};
use super::super::image_lists::{ImageLists, doubt};
use super::super::layouts::listed;
use super::super::split_names::is_split;
use crate::error::SourceError;
use crate::{Error, Options};
use std::path::Path;

/// Folder of the lists of images.
pub(super) const IMAGE_SETS: &str = "ImageSets";
/// Folders that may hold the lists of the splits, in order of preference; the last one is the root.
const SETS: [&str; 4] = ["ImageSets/Main", IMAGE_SETS, "ImageSets/Segmentation", ""];
/// Extension of a list.
const TXT: &str = ".txt";

/// The lists of the splits.
pub(super) struct Lists {
    pub(super) images: ImageLists,
    /// Files of the root among them.
    pub(super) in_root: Vec<String>,
}

impl Lists {
    /// Reads the lists; `None` if there are none.
    ///
    /// # Errors
    /// [`SourceError::SplitNames`] if none is named for a split, or those that are lie in a folder that is not read;
    /// [`SourceError::Annotations`] for a list that cannot be read; [`Error::Io`].
    pub(super) fn read(root: &Path, options: &Options, left_out: &mut Vec<String>) -> Result<Option<Self>, Error> {
        let asked = |stem: &String| options.split.as_ref() == Some(stem);
        for set in SETS {
            let folder = root.join(set);
            if !folder.is_dir() {
                continue;
            }
            let in_root = set.is_empty();
            let (lists, files) = lists_of(&folder)?;
            let (mut splits, mut others): (Vec<_>, Vec<_>) =
                lists.into_iter().partition(|stem| is_split(stem) || asked(stem));
            // Other texts of the root are no lists.
            if splits.is_empty() && (others.is_empty() || in_root) {
                continue;
            }
            if splits.is_empty() {
                let problem = format!(
                    "none of the lists in {set} is named for a split ({}); rename those of splits to train.txt, val.txt and test.txt, \
                     or take all images as one split: --splits none",
                    named(&others)
                );
                return Err(doubt(root, problem));
            }
            let parts = splits.iter().filter(|split| ["train", "val"].contains(&split.as_str())).count();
            if parts > 0
                && options.split.as_deref() != Some("trainval")
                && let Some(at) = splits.iter().position(|split| split == "trainval")
            {
                splits.remove(at);
                let list = Path::new(set).join("trainval.txt");
                left_out
                    .push(format!("{}: the images of train and val; --split trainval packs it alone", list.display()));
            }
            others.retain(|stem| !asked(stem));
            if !in_root {
                if !others.is_empty() {
                    left_out.push(format!("{set}: lists that are no splits ({})", named(&others)));
                }
                if !files.is_empty() {
                    let names = listed(files.iter().map(String::as_str));
                    left_out.push(format!("{set}: files that are no lists ({names})"));
                }
            }
            left_out.extend(unread(root, set)?);
            let file = |split: &String| format!("{split}{TXT}");
            let in_root =
                if in_root { splits.iter().map(file).chain(["trainval.txt".to_owned()]).collect() } else { vec![] };
            let lists = splits.into_iter().map(|split| Ok((split.clone(), list(&folder.join(file(&split)))?)));
            return Ok(Some(Lists { images: lists.collect::<Result<_, Error>>()?, in_root }));
        }
        let sets = root.join(IMAGE_SETS);
        if sets.is_dir() {
            for folder in subfolders(&sets)? {
                let (mut lists, _) = lists_of(&sets.join(&folder))?;
                lists.retain(|stem| is_split(stem));
                if !lists.is_empty() {
                    let problem = format!(
                        "the lists of {IMAGE_SETS}/{folder} ({}) are not read, and there are no others; write lists of the same names \
                         with a name of an image in each line to {IMAGE_SETS}/Main, or take all images as one split: --splits none",
                        named(&lists)
                    );
                    return Err(doubt(root, problem));
                }
            }
            left_out.extend(unread(root, "")?);
        }
        Ok(None)
    }
}

/// Returns the names of the lists of a folder, without extension, and its other files.
fn lists_of(folder: &Path) -> Result<(Vec<String>, Vec<String>), Error> {
    let (mut lists, mut others) = (vec![], vec![]);
    for name in other_files(folder)? {
        match name.strip_suffix(TXT) {
            Some(stem) => lists.push(stem.to_owned()),
            None => others.push(name),
        }
    }
    Ok((lists, others))
}

fn named(stems: &[String]) -> String {
    let names: Vec<_> = stems.iter().map(|stem| format!("{stem}{TXT}")).collect();
    listed(names.iter().map(String::as_str))
}

/// Names the folders and files of lists that are not read, where those of `set` are.
fn unread(root: &Path, set: &str) -> Result<Vec<String>, Error> {
    let sets = root.join(IMAGE_SETS);
    if !sets.is_dir() {
        return Ok(vec![]);
    }
    let mut names = subfolders(&sets)?;
    names.retain(|name| Path::new(set) != Path::new(IMAGE_SETS).join(name));
    if set != IMAGE_SETS {
        names.extend(other_files(&sets)?);
    }
    Ok(match names.is_empty() {
        true => vec![],
        false => vec![format!("{IMAGE_SETS}: {}, whose lists are not read", listed(names.iter().map(String::as_str)))],
    })
}

/// Reads a list of images: a name without extension in each line.
fn list(file: &Path) -> Result<Vec<String>, Error> {
    let wrong = |problem: String| Error::Source(SourceError::Annotations { path: file.to_owned(), problem });
    let text = list_text(file)?;
    let mut images = vec![];
    for (at, line) in text.lines().enumerate() {
        let name = line.trim();
        let flag = name.rsplit_once(char::is_whitespace).is_some_and(|(_, flag)| ["1", "0", "-1"].contains(&flag));
        if flag {
            let line = at + 1;
            return Err(wrong(format!(
                "line {line}: expected the name of an image, and found a flag after it; a list of one class, with 1 and -1 for \
                 images with and without it, is not a split"
            )));
        }
        if name.is_empty() {
            continue;
        }
        images.push(name.to_owned());
    }
    Ok(images)
}
