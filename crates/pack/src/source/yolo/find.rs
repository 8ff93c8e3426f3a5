//! Finds a dataset of YOLO, with or without `data.yaml`.

use super::super::annotated::wrong;
use super::super::archive::files::start_of;
use super::super::detect::{other_files, subfolders};
use super::super::layouts::listed;
use super::config::{Config, Splits, members};
use super::described::{self, Described, is_yaml};
use super::folders::Folders;
use super::paths::{IMAGES, LABELS};
use crate::{Error, SourceKind};
use shardtool_store::is_url;
use std::path::{Path, PathBuf};

/// Files with the name of a class in each line, in order of preference.
const NAMES: [&str; 4] = ["classes.txt", "obj.names", "labels/classes.txt", "names.txt"];
/// How many folders may lie in each other where files of labels are looked for.
const DEPTH: usize = 4;
/// Files of labels of a folder that are looked into.
const LOOKED_INTO: usize = 8;

/// Finds a dataset of YOLO: a `data.yaml`, a folder that holds one, or folders `images` and `labels`; otherwise `None`.
///
/// # Errors
/// [`crate::SourceError::Annotations`] if it cannot be used, or if the user names the kind and it is another one; [`Error::Io`].
pub(in crate::source) fn find(source: &Path, from: Option<SourceKind>) -> Result<Option<Config>, Error> {
    let forced = from == Some(SourceKind::Yolo);
    if from.is_some() && !forced {
        return Ok(None);
    }
    if !is_url(source) && source.is_file() && is_yaml(source) {
        let members = members(source)?.ok_or_else(|| wrong(source, "expected the members of a data.yaml of YOLO"))?;
        return Config::of_file(source, members).map(Some);
    }
    if is_url(source) || !source.is_dir() {
        return if forced {
            Err(wrong(source, "expected a folder of YOLO, or its data.yaml, on a disk"))
        } else {
            Ok(None)
        };
    }
    let doubtful = match described::find(source)? {
        Described::By(config) => return Ok(Some(config)),
        Described::Not(doubtful) => doubtful,
    };
    match (of_folders(source, forced)?, doubtful) {
        (Some(_), Some(error)) => Err(error),
        (None, Some(error)) if forced => Err(error),
        (None, None) if forced => Err(wrong(source, "expected data.yaml, or the folders images and labels of YOLO")),
        (found, _) => Ok(found),
    }
}

/// Describes folders without a `data.yaml`.
fn of_folders(source: &Path, forced: bool) -> Result<Option<Config>, Error> {
    let Some(folders) = Folders::find(source)? else { return Ok(None) };
    if !forced && !are_labels(&folders.labels)? {
        return Ok(None);
    }
    let mut left_out = vec![];
    let known = |name: &String| [IMAGES, LABELS].contains(&name.as_str()) || NAMES.contains(&name.as_str());
    let mut others: Vec<_> =
        subfolders(source)?.into_iter().filter(|name| !known(name) && !folders.has(name)).collect();
    others.extend(other_files(source)?.into_iter().filter(|name| !known(name)));
    if !others.is_empty() {
        left_out.push(format!("{}: not of YOLO", listed(others.iter().map(String::as_str))));
    }
    let names = names(source)?;
    if names.is_empty() {
        left_out.push(format!("no names of classes: none of {} is there; --classes FILE gives them", NAMES.join(", ")));
    }
    let (base, splits) = (source.to_owned(), Splits::Folders(folders));
    Ok(Some(Config { base, splits, names, points: None, keypoints: Default::default(), others: vec![], left_out }))
}

/// Returns whether the first files in folders of labels are lines of numbers, as YOLO's are.
fn are_labels(folders: &[PathBuf]) -> Result<bool, Error> {
    let mut found = false;
    let mut here: Vec<_> = folders.iter().filter(|folder| folder.is_dir()).cloned().collect();
    for _ in 0..DEPTH {
        let mut below = vec![];
        for folder in here {
            below.extend(subfolders(&folder)?.into_iter().map(|name| folder.join(name)));
            let texts = other_files(&folder)?
                .into_iter()
                .filter(|name| name.ends_with(".txt") && !NAMES.contains(&name.as_str()));
            for name in texts.take(LOOKED_INTO) {
                let start = start_of(&folder.join(name), 4096)?;
                let text = String::from_utf8_lossy(&start);
                let Some(line) = text.lines().next() else { continue };
                let numbers = line.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).count();
                if numbers < 5 || line.split_whitespace().count() != numbers {
                    return Ok(false);
                }
                found = true;
            }
        }
        here = below;
    }
    Ok(found)
}

/// Returns the names of classes from a file next to the folders.
fn names(source: &Path) -> Result<Vec<String>, Error> {
    let mut found: Option<(&str, Vec<String>)> = None;
    for name in NAMES {
        let file = source.join(name);
        if !file.is_file() {
            continue;
        }
        let text = std::fs::read_to_string(&file).map_err(Error::io("read", &file))?;
        let names: Vec<_> = text.trim_end().lines().map(|name| name.trim().to_owned()).collect();
        // The id of a class is the number of its line.
        if names.iter().enumerate().any(|(at, class)| class.is_empty() || names[..at].contains(class)) {
            return Err(wrong(
                source,
                format!("{name} has an empty line, or a name twice; the id of a class is the number of its line"),
            ));
        }
        match &found {
            Some((other, there)) if *there != names => {
                return Err(wrong(source, format!("{other} and {name} give different names of classes; remove one")));
            }
            _ => found = Some((name, names)),
        }
    }
    Ok(found.map(|(_, names)| names).unwrap_or_default())
}
