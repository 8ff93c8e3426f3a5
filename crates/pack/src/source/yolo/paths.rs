//! Paths of images and of their files of labels.

use super::super::annotated::{list_text, wrong};
use super::super::detect::{other_files, subfolders};
use super::super::folder::{FilesBelow, files_below};
use crate::Error;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

/// Folder of images.
pub(super) const IMAGES: &str = "images";
/// Folder of labels.
pub(super) const LABELS: &str = "labels";
/// Extensions of files among the images that are none.
const NO_IMAGES: [&str; 10] = ["txt", "cache", "npy", "json", "xml", "yaml", "yml", "csv", "md", "db"];

/// Returns the folder or list that an entry names; `None` if neither exists. Roboflow writes `../train/images` for `train/images`.
pub(super) fn entry(base: &Path, entry: &str) -> Option<PathBuf> {
    let inside = entry.strip_prefix("../").map(|rest| base.join(rest));
    std::iter::once(base.join(entry)).chain(inside).find(|path| path.exists())
}

/// The folder of a dataset, from which paths are counted.
struct Base<'a> {
    written: &'a Path,
    full: PathBuf,
    real: PathBuf,
    /// Real folders, by their paths as written.
    folders: HashMap<PathBuf, PathBuf>,
}

impl<'a> Base<'a> {
    fn new(written: &'a Path) -> Self {
        let here = if written.as_os_str().is_empty() { Path::new(".") } else { written };
        let full = std::path::absolute(here).unwrap_or_else(|_| here.to_owned());
        let real = here.canonicalize().unwrap_or_else(|_| full.clone());
        Base { written, full, real, folders: HashMap::new() }
    }

    /// Returns a path from the folder, or the full path of one outside, which are the same however both are written.
    fn inside(&mut self, path: &Path) -> PathBuf {
        for base in [self.written, &self.full] {
            if let Ok(inside) = path.strip_prefix(base)
                && !inside.components().any(|part| part == Component::ParentDir)
            {
                return inside.components().collect();
            }
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
        let real = self.folders.entry(folder.to_owned()).or_insert_with(|| {
            folder.canonicalize().or_else(|_| std::path::absolute(folder)).unwrap_or_else(|_| folder.to_owned())
        });
        let full = real.join(name);
        full.strip_prefix(&self.real).map(Path::to_owned).unwrap_or(full)
    }
}

/// Returns the images of a folder or list, by their paths from `base`, or full ones of those outside.
///
/// # Errors
/// `None` if the folder or list does not exist.
pub(super) fn images_of(base: &Path, name: &str, left_out: &mut Vec<String>) -> Result<Vec<String>, Option<Error>> {
    let path = entry(base, name).ok_or(None)?;
    let mut base = Base::new(base);
    let text = |path: PathBuf| path.into_os_string().into_string();
    let no_text = |_| wrong(&path, "the name of a file is not UTF-8; rename it");
    let mut images = vec![];
    if path.is_dir() {
        let FilesBelow { files, loops } = files_below(&path)?;
        let folder = base.inside(&path);
        let mut others: BTreeMap<String, u64> = BTreeMap::new();
        for file in files {
            let extension = Path::new(&file).extension().and_then(OsStr::to_str).unwrap_or_default().to_lowercase();
            match NO_IMAGES.contains(&extension.as_str()) {
                true => *others.entry(extension).or_default() += 1,
                false => images.push(text(folder.join(file)).map_err(no_text)?),
            }
        }
        left_out.extend(others.into_iter().map(|(extension, count)| format!("{count} files .{extension} in {name}")));
        left_out.extend(loops.into_iter().map(|link| format!("{link} in {name}: a link back to a folder above it")));
    } else {
        let lines = list_text(&path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            images.push(text(base.inside(&folder.join(line))).map_err(no_text)?);
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

/// Returns the folders next to those of images and labels, such as `masks`, which are not read.
///
/// # Errors
/// [`Error::Io`] if a folder cannot be listed.
pub(super) fn other_folders(base: &Path, used: &BTreeSet<String>) -> Result<BTreeSet<String>, Error> {
    let labels = |file: &String| Path::new(file).ancestors().find(|path| path.ends_with(LABELS)).map(Path::to_owned);
    let parents: BTreeSet<_> =
        used.iter().filter_map(labels).filter_map(|labels| Some(labels.parent()?.to_owned())).collect();
    let mut found = BTreeSet::new();
    for parent in parents.iter().filter(|parent| base.join(parent).is_dir()) {
        let names = subfolders(&base.join(parent))?;
        let others = names.into_iter().filter(|name| name != IMAGES && name != LABELS);
        found.extend(others.map(|name| parent.join(name).to_string_lossy().into_owned()));
    }
    Ok(found)
}

/// Returns the files of labels that no image has: in the folders of some that are used, and in all of `labels`.
///
/// # Errors
/// [`Error::Io`] if a folder cannot be listed.
pub(super) fn unused(base: &Path, used: &BTreeSet<String>) -> Result<Vec<String>, Error> {
    let root = |file: &String| {
        let path = Path::new(file);
        let labels = path.ancestors().skip(1).find(|folder| folder.file_name().is_some_and(|name| name == LABELS));
        (labels.or(path.parent()).unwrap_or(Path::new("")).to_owned(), labels.is_some())
    };
    let mut folders: Vec<_> = used.iter().map(root).collect::<BTreeSet<_>>().into_iter().collect();
    let (mut found, mut seen) = (vec![], HashSet::new());
    while let Some((folder, deep)) = folders.pop() {
        let full = base.join(&folder);
        let Ok(real) = full.canonicalize() else { continue };
        if !real.is_dir() || !seen.insert(real) {
            continue;
        }
        for name in other_files(&full)? {
            let file = folder.join(&name).to_string_lossy().into_owned();
            if name.ends_with(".txt") && name != "classes.txt" && !used.contains(&file) {
                found.push(file);
            }
        }
        if deep {
            folders.extend(subfolders(&full)?.into_iter().map(|name| (folder.join(name), deep)));
        }
    }
    found.sort();
    Ok(found)
}
