//! Folders: class folders, or a flat folder of images.

use super::listing::{Entry, Listing};
use super::split_names::is_split;
use super::{detect, doubtful_files, layouts};
use crate::class_ids::ClassIds;
use crate::error::SourceError;
use crate::input::{Found, Times};
use crate::sample::SampleSchema;
use crate::{Error, Options, Reason, Rejection, SplitNames};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Lists a folder. If it has subfolders, each is a class, and images may lie at any depth below it; otherwise images
/// have no labels. Hidden names and those of systems are left out, and so are empty folders. Symbolic links are followed.
///
/// # Errors
/// [`SourceError::UnknownClass`], [`SourceError::AlikeClasses`], [`SourceError::ColumnsOfFolder`], [`SourceError::MixedFolders`], those of
/// [`doubtful_files::check`]; [`Error::Io`] if the folder itself cannot be read.
pub(super) fn list(root: &Path, classes: Option<ClassIds>, options: &Options) -> Result<Listing, Error> {
    if let Some((column, _)) = options.columns.first() {
        return Err(Error::Source(SourceError::ColumnsOfFolder { column: column.clone() }));
    }
    let mut walk = Walk::new(root, Times::of(options));
    let here = std::fs::metadata(root).map_err(Error::io("read", root))?;
    let children = walk.children(root, "")?;
    let labelled = children.iter().any(|child| child.meta.is_dir());
    let mut names = vec![];
    for child in children {
        if child.meta.is_dir() {
            if detect::is_empty(&root.join(&child.key)) {
                walk.leave_out(format!("{} (empty)", child.key));
                continue;
            }
            names.push(child.key.clone());
            walk.folder(child, &mut vec![(here.dev(), here.ino())])?;
        } else if labelled {
            walk.reject(child.key, Reason::OutsideClass)?;
        } else {
            walk.file(child)?;
        }
    }
    let classes = match classes {
        Some(classes) if labelled => classes,
        _ => ClassIds::sorted(names)?,
    };
    let left_out = walk.left_out();
    let Walk { root, mut entries, mut rejected, .. } = walk;
    check_inner_folders(&root, &entries, options)?;
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    if options.from.is_none() {
        doubtful_files::check(&root, &entries, options)?;
    }
    for entry in &mut entries {
        if let Some((class, _)) = entry.key.split_once('/') {
            entry.label = Some(classes.id(class)?);
        }
    }
    rejected.sort_by(|a, b| a.input.cmp(&b.input));
    let schema = SampleSchema {
        classes: classes.into_names(),
        images: true,
        labelled,
        columns: vec![],
        keypoints: Default::default(),
    };
    Ok(Listing { entries, schema, rejected, left_out, root, stored: false })
}

/// Refuses class folders that hold folders of several splits, or of images and of what describes them, and folds of class folders.
fn check_inner_folders(root: &Path, entries: &[Entry], options: &Options) -> Result<(), Error> {
    check_folds(root, entries, options)?;
    let inner = entries.iter().filter_map(|entry| Some(entry.key.split_once('/')?.1.split_once('/')?.0));
    let inner: BTreeSet<&str> = inner.collect();
    let of_splits = inner.iter().filter(|name| is_split(name)).count() > 1 && options.split_names == SplitNames::Auto;
    if of_splits || (options.from.is_none() && layouts::mix_parts(inner.iter().copied())) {
        let folders = inner.into_iter().take(8).collect::<Vec<_>>().join(", ");
        return Err(Error::Source(SourceError::MixedFolders { path: root.to_owned(), folders, splits: of_splits }));
    }
    Ok(())
}

/// Refuses folders of class folders that are all named for folds of a cross-validation: `fold1/cat` is not of class `fold1`.
fn check_folds(root: &Path, entries: &[Entry], options: &Options) -> Result<(), Error> {
    let is_fold = |name: &str| {
        let word = name.trim_end_matches(|c: char| c.is_ascii_digit() || "_- ".contains(c)).to_lowercase();
        word.len() < name.len() && ["fold", "split", "cv", "part", "subset", "batch", "k"].contains(&&*word)
    };
    let paths = || entries.iter().filter_map(|entry| entry.key.split_once('/'));
    let folds: BTreeSet<&str> = paths().map(|(folder, _)| folder).collect();
    let has_classes = paths().all(|(_, rest)| rest.contains('/'));
    let said = options.from.is_some() || options.classes.is_some() || options.split_names == SplitNames::Ignored;
    if said || folds.len() < 2 || !has_classes || !folds.iter().all(|name| is_fold(name)) {
        return Ok(());
    }
    let problem = format!(
        "the folders {} are folds or parts that hold class folders, and no classes: --splits names packs each as a split of its name; to join \
         them, link their class folders into one folder; --splits none packs them as classes",
        layouts::listed(folds.into_iter())
    );
    Err(super::annotated::wrong(root, problem))
}

/// The files below a folder, by their paths from it.
pub(super) struct FilesBelow {
    pub(super) files: Vec<String>,
    /// Links back to a folder above them, which are not followed.
    pub(super) loops: Vec<String>,
}

/// Returns the files below a folder, without hidden ones and those of systems.
///
/// # Errors
/// [`Error::Io`] if a folder cannot be listed; [`SourceError::Annotations`] for a name that is not UTF-8.
pub(super) fn files_below(folder: &Path) -> Result<FilesBelow, Error> {
    let mut walk = Walk::new(folder, Times::Ignored);
    let real = folder.canonicalize().map_err(Error::io("read", folder))?;
    let metas = real.ancestors().filter_map(|above| std::fs::metadata(above).ok());
    let mut above: Vec<_> = metas.map(|meta| (meta.dev(), meta.ino())).collect();
    for child in walk.children(folder, "")? {
        if child.meta.is_dir() { walk.folder(child, &mut above)? } else { walk.file(child)? }
    }
    let mut files: Vec<String> = walk.entries.into_iter().map(|entry| entry.key.into()).collect();
    let mut loops = vec![];
    for Rejection { input, reason } in walk.rejected {
        match reason {
            Reason::LinkLoop => loops.push(input),
            Reason::NotUtf8 => {
                let (path, problem) = (folder.join(input), reason.to_string());
                return Err(Error::Source(SourceError::Annotations { path, problem }));
            }
            _ => files.push(input),
        }
    }
    files.sort();
    loops.sort();
    Ok(FilesBelow { files, loops })
}

pub(super) struct Walk {
    pub(super) root: PathBuf,
    pub(super) times: Times,
    /// Names of files and folders that are left out, and how often each occurs.
    ignored: BTreeMap<String, u64>,
    entries: Vec<Entry>,
    pub(super) rejected: Vec<Rejection>,
}

pub(super) struct Child {
    pub(super) key: String,
    pub(super) meta: Metadata,
}

impl Walk {
    pub(super) fn new(root: &Path, times: Times) -> Self {
        Walk { root: root.to_owned(), times, ignored: BTreeMap::new(), entries: vec![], rejected: vec![] }
    }

    /// Returns the visible entries of a folder and rejects those that cannot be examined.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be listed, and those of [`Rejection::new`].
    pub(super) fn children(&mut self, folder: &Path, prefix: &str) -> Result<Vec<Child>, Error> {
        let mut children = vec![];
        for entry in std::fs::read_dir(folder).map_err(Error::io("list", folder))? {
            let entry = entry.map_err(Error::io("list", folder))?;
            let name = entry.file_name();
            if name.to_str().is_some_and(|name| layouts::is_of_dataset(folder, name)) {
                continue;
            }
            if name.as_encoded_bytes().starts_with(b".") || name.to_str().is_some_and(layouts::is_system) {
                let name = name.to_string_lossy();
                // A Mac writes a file `._NAME` for each file.
                self.leave_out(if name.starts_with("._") { "._*".to_owned() } else { name.into_owned() });
                continue;
            }
            let Some(name) = name.to_str() else {
                self.reject(format!("{prefix}{}", name.display()), Reason::NotUtf8)?;
                continue;
            };
            let key = format!("{prefix}{name}");
            let mut meta = entry.metadata();
            if meta.as_ref().is_ok_and(Metadata::is_symlink) {
                meta = std::fs::metadata(entry.path());
            }
            match meta {
                Ok(meta) => children.push(Child { key, meta }),
                Err(e) => self.reject(key, Reason::of_stat(e))?,
            }
        }
        Ok(children)
    }

    /// Lists a folder recursively. `above` holds device and inode of the folders above it; a link back to one of them
    /// is rejected. A folder that cannot be listed stops the run: its inputs are unknown.
    ///
    /// # Errors
    /// Those of [`Walk::children`].
    fn folder(&mut self, folder: Child, above: &mut Vec<(u64, u64)>) -> Result<(), Error> {
        let identity = (folder.meta.dev(), folder.meta.ino());
        if above.contains(&identity) {
            return self.reject(folder.key, Reason::LinkLoop);
        }
        let path = self.root.join(&folder.key);
        let children = self.children(&path, &format!("{}/", folder.key))?;
        above.push(identity);
        for child in children {
            if child.meta.is_dir() { self.folder(child, above)? } else { self.file(child)? }
        }
        above.pop();
        Ok(())
    }

    fn file(&mut self, file: Child) -> Result<(), Error> {
        if !file.meta.is_file() {
            return self.reject(file.key, Reason::NotAFile);
        }
        let found = (&Found::Local(file.meta), self.times);
        self.entries.push(Entry::new(file.key, None, None, Box::default(), found));
        Ok(())
    }

    pub(super) fn leave_out(&mut self, name: String) {
        *self.ignored.entry(name).or_default() += 1;
    }

    /// Returns a text for each name that is left out.
    pub(super) fn left_out(&self) -> Vec<String> {
        let text = |(name, times): (&String, &u64)| match times {
            1 => name.clone(),
            times => format!("{name} ({times} times)"),
        };
        self.ignored.iter().map(text).collect()
    }

    pub(super) fn reject(&mut self, input: String, reason: Reason) -> Result<(), Error> {
        self.rejected.push(Rejection::new(input, reason)?);
        Ok(())
    }
}
