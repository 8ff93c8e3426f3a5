//! Finds the YAML file in a folder that describes a dataset of YOLO. One that cannot be read, or lacks a member, is an error: without
//! it, the folders would be other splits with other classes.

use super::super::annotated::wrong;
use super::super::archive::files::start_of;
use super::super::layouts::listed;
use super::config::{Config, SPLITS, describes_dataset, members};
use crate::Error;
use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// Names under which tools write the description.
const USUAL: [&str; 3] = ["data", "dataset", "yolo"];
/// Members that a dataset has besides its splits.
const OTHERS: [&str; 3] = ["names", "nc", "kpt_shape"];
/// Bytes of a damaged file that are searched for members.
const LOOKED_AT: u64 = 1 << 16;
const WAY_OUT: &str = "correct the file, or name the kind of the source with --from, such as --from folder";

/// The YAML files of a folder.
pub(super) enum Described {
    By(Config),
    /// By none. The first one that cannot be read, or that is not a whole description, is an error if the folders are those of YOLO.
    Not(Option<Error>),
}

pub(super) fn is_yaml(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    ["yaml", "yml"].iter().any(|yaml| extension.eq_ignore_ascii_case(yaml))
}

/// Finds the description in a folder.
///
/// # Errors
/// [`crate::SourceError::Annotations`] for several descriptions, for one that has wrong members, and for a damaged file that is one by
/// its name or its members; [`Error::Io`].
pub(super) fn find(folder: &Path) -> Result<Described, Error> {
    let mut names = vec![];
    for entry in fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let name = entry.map_err(Error::io("list", folder))?.file_name().to_string_lossy().into_owned();
        if is_yaml(Path::new(&name)) && !name.starts_with('.') && !folder.join(&name).is_dir() {
            names.push(name);
        }
    }
    names.sort();
    let (mut found, mut doubtful) = (vec![], None);
    for name in names {
        let file = folder.join(&name);
        let usual = file.file_stem().and_then(OsStr::to_str).is_some_and(|stem| USUAL.contains(&&*stem.to_lowercase()));
        let problem = match members(&file) {
            Ok(Some(members)) if describes_dataset(&members) => {
                found.push((name, members));
                continue;
            }
            Ok(Some(members)) if !has_some(&members) => continue,
            Ok(None) if !usual => continue,
            Ok(_) => wrong(&file, format!("expected `train`, `val` or `test`, and `names` or `nc`; {WAY_OUT}")),
            Err(error) if usual || looks_like_one(&file)? => return Err(with_way_out(error)),
            Err(error) => with_way_out(error),
        };
        doubtful = doubtful.or(Some(problem));
    }
    if found.len() > 1 {
        let names = listed(found.iter().map(|(name, _)| name.as_str()));
        return Err(wrong(folder, format!("{names} each describe a dataset of YOLO; name one of them as the source")));
    }
    match found.pop() {
        Some((name, members)) => Config::of_file(&folder.join(name), members).map(Described::By),
        None => Ok(Described::Not(doubtful)),
    }
}

fn has_some(members: &Map<String, Value>) -> bool {
    SPLITS.iter().chain(&OTHERS).any(|name| members.contains_key(*name))
}

/// Returns whether lines of a damaged file begin as those of a description do.
fn looks_like_one(file: &Path) -> Result<bool, Error> {
    let start = start_of(file, LOOKED_AT)?;
    let text = String::from_utf8_lossy(&start);
    let has = |names: &[&str]| {
        text.lines().any(|line| line.split_once(':').is_some_and(|(name, _)| names.contains(&name.trim_end())))
    };
    Ok(has(&SPLITS) && has(&OTHERS))
}

fn with_way_out(error: Error) -> Error {
    use crate::SourceError::Annotations;
    match error {
        Error::Source(Annotations { path, problem }) => {
            Error::Source(Annotations { path, problem: format!("{problem}; {WAY_OUT}") })
        }
        error => error,
    }
}
