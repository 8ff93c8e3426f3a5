//! What describes a dataset of YOLO: `data.yaml` of Ultralytics, with the folders or lists of the splits and the names of the classes.

use super::super::annotated::{text, wrong};
use super::super::layouts::listed;
use super::super::yaml;
use super::folders::Folders;
use super::keypoints;
use super::paths::entry;
use crate::Error;
use crate::sample::DescribedKeypoints;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Members that name a split.
pub(super) const SPLITS: [&str; 3] = ["train", "val", "test"];

/// A dataset of YOLO.
#[derive(Debug)]
pub(in crate::source) struct Config {
    /// The folder to which paths are relative.
    pub(in crate::source) base: PathBuf,
    pub(super) splits: Splits,
    /// Names of the classes by id; empty if they have none.
    pub(super) names: Vec<String>,
    /// Number of keypoints of each object, and of numbers of each: 2, or 3 with the visibility.
    pub(super) points: Option<(usize, usize)>,
    /// Names of the keypoints, and which change sides in a mirrored object.
    pub(super) keypoints: DescribedKeypoints,
    /// Images of splits that are not packed.
    pub(super) others: Vec<String>,
    /// What is not used, for people.
    pub(super) left_out: Vec<String>,
}

/// The splits of a dataset.
#[derive(Debug)]
pub(super) enum Splits {
    /// Folders and lists of each split, as `data.yaml` names them.
    Named(Vec<(String, Vec<String>)>),
    Folders(Folders),
}

/// Reads a file as a mapping; `None` if it is another value.
///
/// # Errors
/// [`crate::SourceError::Annotations`].
pub(super) fn members(file: &Path) -> Result<Option<Map<String, Value>>, Error> {
    let text = text(Path::new(""), &file.to_string_lossy())
        .map_err(|reason| wrong(file, shardtool_format::Chain(&reason).to_string()))?;
    match yaml::parse(&text) {
        Ok(Value::Object(members)) => Ok(Some(members)),
        Ok(_) => Ok(None),
        Err((line, problem)) => Err(wrong(file, format!("line {line}: {problem}"))),
    }
}

/// Returns whether members are those of a dataset.
pub(super) fn describes_dataset(members: &Map<String, Value>) -> bool {
    SPLITS.iter().any(|split| members.contains_key(*split))
        && (members.contains_key("names") || members.contains_key("nc"))
}

impl Config {
    /// Makes the description of a file's dataset. Fetches and runs nothing.
    ///
    /// # Errors
    /// [`crate::SourceError::Annotations`].
    pub(super) fn of_file(file: &Path, mut members: Map<String, Value>) -> Result<Self, Error> {
        let mut splits = vec![];
        for split in SPLITS {
            let entries = match members.remove(split) {
                None | Some(Value::Null) => continue,
                Some(Value::String(entry)) => vec![entry],
                Some(Value::Array(list)) => list
                    .iter()
                    .map(|entry| entry.as_str().map(str::to_owned))
                    .collect::<Option<_>>()
                    .ok_or_else(|| wrong(file, format!("`{split}` is a list of paths")))?,
                Some(_) => return Err(wrong(file, format!("`{split}` is a path or a list of paths"))),
            };
            if let Some(url) = entries.iter().find(|entry| entry.contains("://")) {
                return Err(wrong(
                    file,
                    format!("`{split}` is {url}, which is not fetched; name a folder or a list of images"),
                ));
            }
            splits.push((split.to_owned(), entries));
        }
        if splits.is_empty() {
            return Err(wrong(file, "it names no images: expected `train`, `val` or `test`"));
        }
        let names = names(file, members.remove("names"), members.remove("nc"))?;
        let points = points(file, members.remove("kpt_shape"))?;
        let base = base(file, members.remove("path"), &splits)?;
        let (keypoints, unused) = keypoints::take(&mut members, points.map(|(count, _)| count), &names);
        let left_out = members.keys().map(|name| match name.as_str() {
            "download" => "`download`, which is not run".to_owned(),
            name => format!("`{name}` of {}", file.file_name().unwrap_or_default().to_string_lossy()),
        });
        let left_out = left_out.chain(unused).collect();
        Ok(Config { left_out, base, splits: Splits::Named(splits), names, points, keypoints, others: vec![] })
    }
}

/// Returns the names of the classes: a list, or a mapping from all ids.
fn names(file: &Path, names: Option<Value>, count: Option<Value>) -> Result<Vec<String>, Error> {
    let text = |name: &Value| match name {
        Value::String(name) => Some(name.clone()),
        // YAML takes these names for other values.
        Value::Number(_) | Value::Bool(_) => Some(name.to_string()),
        _ => None,
    };
    let expected = || wrong(file, "`names` is a list of names, or a mapping of all ids from 0 to names");
    let names: Vec<String> = match names {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(list)) => list.iter().map(text).collect::<Option<_>>().ok_or_else(expected)?,
        Some(Value::Object(members)) => {
            let name = |id: usize| members.get(&id.to_string()).and_then(text);
            (0..members.len()).map(name).collect::<Option<_>>().ok_or_else(expected)?
        }
        Some(_) => return Err(expected()),
    };
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(file, format!("two classes have the name `{}`", twice[0])));
    }
    match count {
        None | Some(Value::Null) => Ok(names),
        Some(count) => match count.as_u64().and_then(|count| usize::try_from(count).ok()) {
            Some(count) if count == names.len() => Ok(names),
            // Ids without names are named by themselves.
            Some(count) if names.is_empty() && (1..=1_000_000).contains(&count) => {
                Ok((0..count).map(|id| id.to_string()).collect())
            }
            Some(count) => Err(wrong(file, format!("`nc` is {count}, but `names` has {}", names.len()))),
            None => Err(wrong(file, "`nc` is the number of classes")),
        },
    }
}

/// Returns the shape of the keypoints.
fn points(file: &Path, shape: Option<Value>) -> Result<Option<(usize, usize)>, Error> {
    let shape = match shape {
        None | Some(Value::Null) => return Ok(None),
        Some(shape) => shape,
    };
    let list = shape.as_array().map(|list| list.iter().filter_map(Value::as_u64).collect::<Vec<_>>());
    match list.as_deref() {
        Some([points @ 1..=10_000, numbers @ 2..=3]) => Ok(Some((*points as usize, *numbers as usize))),
        _ => Err(wrong(file, "`kpt_shape` is the number of keypoints, and 2 or 3 numbers for each: [17, 3]")),
    }
}

/// Returns the folder to which the paths of the splits are relative: `path`, if one of them exists there, else the folder of the file.
fn base(file: &Path, path: Option<Value>, splits: &[(String, Vec<String>)]) -> Result<PathBuf, Error> {
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let path = match path {
        None | Some(Value::Null) => return Ok(folder),
        Some(Value::String(path)) if path.contains("://") => {
            return Err(wrong(file, format!("`path` is {path}, which is not fetched; name a folder")));
        }
        Some(Value::String(path)) => path,
        Some(_) => return Err(wrong(file, "`path` is the folder of the dataset")),
    };
    let has = |base: &Path| splits.iter().flat_map(|(_, entries)| entries).any(|name| entry(base, name).is_some());
    let named = folder.join(&path);
    [&named, &folder].into_iter().find(|base| has(base)).cloned().ok_or_else(|| {
        let entries: Vec<_> = splits.iter().flat_map(|(_, entries)| entries.iter().map(String::as_str)).collect();
        let entries = listed(entries.into_iter());
        wrong(file, format!("neither {} nor the folder of the file has {entries}; correct `path`", named.display()))
    })
}
