//! Divides images into splits: by folders that are named for splits, or by lists of their images.

use super::super::image_lists::{ImageLists, doubt};
use super::super::layouts::listed;
use super::find::Pairs;
use super::folders;
use super::lists::{Lists, check_same};
use super::paired::FilesOfImages;
use crate::error::SourceError;
use crate::{Error, Options, SplitNames};
use std::path::Path;

/// Divides images into splits, and returns also the lists that say so. Without any, all are of a split without a name. `others` are the
/// files that belong to no image.
///
/// # Errors
/// [`SourceError::SplitNames`] if folders and lists say different things, if `--splits lists` finds none, and those of [`folders::splits`]
/// and of lists.
pub(super) fn divided<'f>(
    source: &Path,
    pairs: &Pairs,
    paired: &'f FilesOfImages,
    others: &[&'f String],
    options: &Options,
    left_out: &mut Vec<String>,
) -> Result<(ImageLists, Vec<&'f String>), Error> {
    let by_folder = || folders::splits(source, pairs, paired, options);
    let lists = match options.split_names {
        SplitNames::Auto | SplitNames::Lists => Lists::find(source, &pairs.root, others, paired)?,
        SplitNames::Names | SplitNames::Ignored => None,
    };
    let Some(lists) = lists else {
        if options.split_names == SplitNames::Lists {
            let problem = "no list among its files is named for a split, such as train.txt or eigen_train_files.txt, and names its \
                images; copy the lists there";
            return Err(doubt(source, problem.to_owned()));
        }
        let (found, without) = by_folder()?;
        left_out.extend(without);
        return Ok((found, vec![]));
    };
    let names = listed(lists.files().map(String::as_str));
    if options.split_names == SplitNames::Auto {
        let (found, without) = by_folder().map_err(|error| or_lists(error, &names))?;
        if !found.keys().all(String::is_empty) {
            check_same(source, &found, &lists)?;
            left_out.extend(without);
            left_out.push(format!("{names}: the folders are named for the same splits"));
            return Ok((found, lists.files().collect()));
        }
    }
    let found = lists.images(source, left_out)?;
    Ok((found, lists.files().collect()))
}

/// Adds what else could be said to the problem of folders.
fn or_lists(error: Error, lists: &str) -> Error {
    match error {
        Error::Source(SourceError::SplitNames { path, problem }) => {
            let problem = format!("{problem}; or take the splits of {lists}: --splits lists");
            Error::Source(SourceError::SplitNames { path, problem })
        }
        error => error,
    }
}
