//! The folders of YOLO: finds them, with or without `data.yaml`, and the images of each split.

use super::super::detect::{DetectedSource, other_files, subfolders};
use super::super::folder::files_below;
use super::super::image_lists::{self, ImageLists};
use super::super::layouts::listed;
use super::super::split_names::{NamedSplit, is_split};
use super::super::splits::{DividedSource, SplitSource};
use super::config::{Config, describes_dataset, members, wrong};
use crate::options::DEFAULT_SPLIT;
use crate::{Error, Options, SourceKind, SplitNames};
use shardtool_store::is_url;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

const IMAGES: &str = "images";
const LABELS: &str = "labels";
/// Files with the name of a class in each line, in order of preference.
const NAMES: [&str; 4] = ["classes.txt", "obj.names", "labels/classes.txt", "names.txt"];
/// Extensions of files among the images that are none.
const NO_IMAGES: [&str; 10] = ["txt", "cache", "npy", "json", "xml", "yaml", "yml", "csv", "md", "db"];
/// Files of labels that are looked into.
const LOOKED_INTO: usize = 8;

/// Finds a dataset of YOLO: a `data.yaml`, a folder that holds one, or folders `images` and `labels`; `None` if it is none.
///
/// # Errors
/// [`crate::SourceError::Annotations`] if it cannot be used, or if the user names the kind and it is none; [`Error::Io`].
pub(in crate::source) fn find(source: &Path, from: Option<SourceKind>) -> Result<Option<Config>, Error> {
    let forced = from == Some(SourceKind::Yolo);
    let is_yaml = |path: &Path| {
        path.extension().and_then(OsStr::to_str).is_some_and(|extension| ["yaml", "yml"].contains(&extension))
    };
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
    let (mut found, mut broken) = (vec![], None);
    for name in other_files(source)?.iter().filter(|name| is_yaml(Path::new(name))) {
        match members(&source.join(name)) {
            Ok(members) => found.extend(members.filter(describes_dataset).map(|members| (name.clone(), members))),
            Err(error) => broken = Some(error),
        }
    }
    match found.len() {
        0 => {}
        1 => {
            let (name, members) = found.remove(0);
            return Config::of_file(&source.join(name), members).map(Some);
        }
        _ => {
            let names = listed(found.iter().map(|(name, _)| name.as_str()));
            return Err(wrong(
                source,
                format!("{names} each describe a dataset of YOLO; name one of them as the source"),
            ));
        }
    }
    match of_folders(source, forced)? {
        Some(_) if broken.is_some() => Err(broken.expect("checked above")),
        None if forced => Err(wrong(source, "expected data.yaml, or the folders images and labels of YOLO")),
        found => Ok(found),
    }
}

/// Describes folders without a `data.yaml`: `images/train` and `labels/train`, `images` and `labels`, or `train/images` and
/// `train/labels`.
fn of_folders(source: &Path, forced: bool) -> Result<Option<Config>, Error> {
    let has_both = |folder: &Path| folder.join(IMAGES).is_dir() && folder.join(LABELS).is_dir();
    let mut splits = vec![];
    let mut left_out = vec![];
    let labels: Vec<PathBuf> = if has_both(source) {
        let (named, others): (Vec<_>, Vec<_>) =
            subfolders(&source.join(IMAGES))?.into_iter().partition(|name| is_split(name));
        if !named.is_empty() && !others.is_empty() {
            let (named, others) = (listed(named.iter().map(String::as_str)), listed(others.iter().map(String::as_str)));
            return Err(wrong(
                source,
                format!(
                    "folders {named} of {IMAGES} are named for splits, and {others} for none; write a data.yaml that names each split"
                ),
            ));
        }
        match named.is_empty() {
            true => splits.push((String::new(), vec![IMAGES.to_owned()])),
            false => splits.extend(named.into_iter().map(|name| (name.clone(), vec![format!("{IMAGES}/{name}")]))),
        }
        vec![source.join(LABELS)]
    } else {
        let (named, others): (Vec<_>, Vec<_>) = subfolders(source)?.into_iter().partition(|name| is_split(name));
        if !named.iter().any(|name| has_both(&source.join(name)))
            || !named.iter().all(|name| source.join(name).join(IMAGES).is_dir())
        {
            return Ok(None);
        }
        if !others.is_empty() {
            left_out.push(format!("{}: next to the folders of the splits", listed(others.iter().map(String::as_str))));
        }
        splits.extend(named.iter().map(|name| (name.clone(), vec![format!("{name}/{IMAGES}")])));
        named.iter().map(|name| source.join(name).join(LABELS)).collect()
    };
    if !forced && !are_labels(&labels)? {
        return Ok(None);
    }
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, entries) in splits {
        let split = match NamedSplit::of(&name) {
            NamedSplit::One(split) => split,
            _ => name.clone(),
        };
        if by_name.insert(split.clone(), entries).is_some() {
            return Err(wrong(
                source,
                format!("two folders are named for split {split}; write a data.yaml that names each split"),
            ));
        }
    }
    let names = names(source)?;
    if names.is_empty() {
        left_out.push(format!("no names of classes: none of {} is there; --classes FILE gives them", NAMES.join(", ")));
    }
    Ok(Some(Config { base: source.to_owned(), splits: by_name.into_iter().collect(), names, points: None, left_out }))
}

/// Returns whether the first files in folders of labels are lines of numbers, as YOLO's are.
fn are_labels(folders: &[PathBuf]) -> Result<bool, Error> {
    let mut found = false;
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let inner = subfolders(folder)?.into_iter().map(|name| folder.join(name));
        for folder in std::iter::once(folder.clone()).chain(inner) {
            let texts = other_files(&folder)?
                .into_iter()
                .filter(|name| name.ends_with(".txt") && !NAMES.contains(&name.as_str()));
            for name in texts.take(LOOKED_INTO) {
                let start = super::super::archive::files::start_of(&folder.join(name), 4096)?;
                let text = String::from_utf8_lossy(&start);
                let Some(line) = text.lines().next() else { continue };
                let numbers = line.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).count();
                if numbers < 5 || line.split_whitespace().count() != numbers {
                    return Ok(false);
                }
                found = true;
            }
        }
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
        let names: Vec<_> = text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        match &found {
            Some((other, there)) if *there != names => {
                return Err(wrong(source, format!("{other} and {name} give different names of classes; remove one")));
            }
            _ => found = Some((name, names)),
        }
    }
    Ok(found.map(|(_, names)| names).unwrap_or_default())
}

/// Returns the folder or list that an entry names; `None` if there is none. Roboflow writes `../train/images` for `train/images`.
pub(super) fn entry(base: &Path, entry: &str) -> Option<PathBuf> {
    let inside = entry.strip_prefix("../").map(|rest| base.join(rest));
    let path = std::iter::once(base.join(entry)).chain(inside).find(|path| path.exists())?;
    match path.components().any(|part| part == Component::ParentDir) {
        true => path.canonicalize().ok(),
        false => Some(path),
    }
}

/// Divides a dataset of YOLO.
///
/// # Errors
/// [`crate::SourceError::Annotations`], those of [`image_lists::taken`], and [`Error::Io`].
pub(in crate::source) fn divide(source: &Path, config: Config, options: &Options) -> Result<DividedSource, Error> {
    let mut left_out = config.left_out.clone();
    let mut lists = ImageLists::new();
    for (split, entries) in &config.splits {
        let images = lists.entry(split.clone()).or_default();
        for name in entries {
            images.extend(images_of(&config.base, name, &mut left_out).map_err(|error| match error {
                None => wrong(
                    source,
                    format!("the images of {split}: no such folder or list: {name}, in {}", config.base.display()),
                ),
                Some(error) => error,
            })?);
        }
    }
    let one = options.split_names == SplitNames::Ignored || lists.keys().all(String::is_empty);
    let lists = match one {
        true => {
            let split = options.split.clone().unwrap_or_else(|| DEFAULT_SPLIT.to_owned());
            BTreeMap::from([(split, lists.into_values().flatten().collect())])
        }
        false => lists,
    };
    let asked = Options { split: options.split.clone().filter(|_| !one), ..options.clone() };
    let (lists, others) = image_lists::taken(source, lists, &asked)?;
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

/// Returns the images of a folder or list, by their paths from `base`, or full ones of those outside.
///
/// # Errors
/// `None` if there is no such folder or list.
fn images_of(base: &Path, name: &str, left_out: &mut Vec<String>) -> Result<Vec<String>, Option<Error>> {
    let path = entry(base, name).ok_or(None)?;
    let text = |path: &Path| path.strip_prefix(base).unwrap_or(path).to_str().map(str::to_owned);
    let no_text = || wrong(&path, "the name of a file is not UTF-8; rename it");
    let mut images = vec![];
    if path.is_dir() {
        let mut others: BTreeMap<String, u64> = BTreeMap::new();
        for file in files_below(&path)? {
            let extension = Path::new(&file).extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
            match NO_IMAGES.contains(&extension.as_str()) {
                true => *others.entry(extension).or_default() += 1,
                false => images.push(text(&path.join(file)).ok_or_else(no_text)?),
            }
        }
        left_out.extend(others.into_iter().map(|(extension, count)| format!("{count} files .{extension} in {name}")));
    } else {
        let lines = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            images.push(text(&folder.join(line.strip_prefix("./").unwrap_or(line))).ok_or_else(no_text)?);
        }
    }
    if images.is_empty() {
        left_out.push(format!("{name}: it has no images"));
    }
    images.sort();
    Ok(images)
}

/// Returns the path of an image's labels: the last folder `images` in its path is `labels`, and its extension `txt`.
pub(super) fn labels_of(base: &Path, image: &str) -> String {
    let replaced = |path: &str| {
        let at = path.rfind("/images/")?;
        Some(format!("{}/{LABELS}/{}", &path[..at], &path[at + "/images/".len()..]))
    };
    let inside = replaced(&format!("/{}", image.trim_start_matches('/')));
    let path = match (inside, Path::new(image).is_absolute()) {
        (Some(path), true) => path,
        (Some(path), false) => path[1..].to_owned(),
        (None, _) => {
            let full = std::path::absolute(base.join(image)).unwrap_or_default();
            full.to_str().and_then(replaced).unwrap_or_else(|| image.to_owned())
        }
    };
    let name = path.rfind('/').map_or(0, |at| at + 1);
    let end = path[name..].rfind('.').map_or(path.len(), |at| name + at);
    format!("{}.txt", &path[..end])
}

/// Returns the files of labels in the folders of some that no image has.
pub(super) fn unused(base: &Path, used: &std::collections::BTreeSet<String>) -> Result<Vec<String>, Error> {
    let folders: std::collections::BTreeSet<_> =
        used.iter().map(|file| Path::new(file).parent().unwrap_or(Path::new("")).to_owned()).collect();
    let mut found = vec![];
    for folder in folders {
        let full = base.join(&folder);
        if !full.is_dir() {
            continue;
        }
        for name in other_files(&full)? {
            let file = folder.join(&name).to_string_lossy().into_owned();
            if name.ends_with(".txt") && name != "classes.txt" && !used.contains(&file) {
                found.push(file);
            }
        }
    }
    Ok(found)
}
