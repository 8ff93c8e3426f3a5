//! Divides a source into splits, by the names of its files ([`NamedSplit`]) or of its top folders. Where names may be meant in
//! two ways, refuses and names both.

use super::annotated::wrong;
use super::archive::files::{ArchiveFiles, ArchiveKind};
use super::detect::{self, DetectedSource};
use super::exists;
use super::first_file::has_arrays;
use super::layouts::{self, listed};
use super::split_names::{NamedSplit, before_number, is_same, is_split, year};
use crate::commit::exported_splits;
use crate::error::SourceError;
use crate::options::DEFAULT_SPLIT;
use crate::{Error, Options, SplitNames};
use shardtool_store::is_url;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A source, divided.
pub(super) struct DividedSource {
    /// In byte order of their names.
    pub(super) splits: Vec<SplitSource>,
    /// Folders of all splits, also of those that were not asked for: their classes are counted together.
    pub(super) folders: Vec<PathBuf>,
    /// What is packed into no split, and why.
    pub(super) left_out: Vec<String>,
}

/// The inputs of one split.
pub(super) struct SplitSource {
    pub(super) split: String,
    pub(super) path: PathBuf,
    pub(super) found: DetectedSource,
}

/// Divides the source of `options`.
///
/// # Errors
/// [`SourceError::SplitNames`], [`SourceError::Layout`], and those of [`detect::detect`].
pub(super) fn divide(source: &Path, options: &Options) -> Result<DividedSource, Error> {
    let folder = !is_url(source) && exists(source)?.is_some_and(|found| found.is_dir());
    let exported = if folder { of_export(source, options) } else { None };
    let options = exported.as_ref().unwrap_or(options);
    if folder && let Some(divided) = folders(source, options)? {
        return Ok(divided);
    }
    let found = detect::detect(source, options.from)?;
    let one = |split: String, found| {
        let left_out = left_out_of(&found).to_vec();
        DividedSource { splits: vec![SplitSource { split, path: source.to_owned(), found }], folders: vec![], left_out }
    };
    match found {
        DetectedSource::Archives(files)
            if files.kind != ArchiveKind::Mds && options.split_names != SplitNames::Ignored =>
        {
            archives(source, files, options)
        }
        found => {
            let split = match (&options.split, options.split_names) {
                (Some(split), _) => split.clone(),
                (None, SplitNames::Ignored) => DEFAULT_SPLIT.to_owned(),
                (None, _) if folder => only_split(source, options),
                (None, _) => of_file(source).map_or_else(
                    |splits| {
                        Err(doubt(
                            source,
                            format!(
                                "its name has the names of several splits ({}); name the split: --split NAME",
                                splits.join(", ")
                            ),
                        ))
                    },
                    |split| Ok(split.unwrap_or_else(|| DEFAULT_SPLIT.to_owned())),
                )?,
            };
            Ok(one(split, found))
        }
    }
}

/// Returns the options for a folder that `export` filled, which says what its splits are; `None` for another one, and if the user says it.
fn of_export(folder: &Path, options: &Options) -> Option<Options> {
    let splits = exported_splits(folder).filter(|_| options.split_names == SplitNames::Auto)?;
    Some(match &splits[..] {
        [one] => {
            let split = options.split.clone().or_else(|| Some(one.clone()));
            Options { split, split_names: SplitNames::Ignored, ..options.clone() }
        }
        _ => Options { split_names: SplitNames::Names, ..options.clone() },
    })
}

fn doubt(source: &Path, problem: String) -> Error {
    Error::Source(SourceError::SplitNames { path: source.to_owned(), problem })
}

/// Returns the name of the split of a folder that is one split: the given one, else the one that the folder is named for, else the default.
pub(super) fn only_split(folder: &Path, options: &Options) -> String {
    let own = || match own_name(folder) {
        NamedSplit::One(split) if options.split_names != SplitNames::Ignored => split,
        _ => DEFAULT_SPLIT.to_owned(),
    };
    options.split.clone().unwrap_or_else(own)
}

/// Returns what the name of a folder says.
fn own_name(folder: &Path) -> NamedSplit {
    let full = match is_url(folder) {
        true => folder.to_owned(),
        false => folder.canonicalize().unwrap_or_else(|_| folder.to_owned()),
    };
    full.file_name().map_or(NamedSplit::None, |name| NamedSplit::of_folder(&name.to_string_lossy()))
}

/// Returns the split in the name of a file, else in that of its folder; or several, between which it does not decide.
fn of_file(file: &Path) -> Result<Option<String>, Vec<String>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    match NamedSplit::of(&name) {
        NamedSplit::One(split) => Ok(Some(split)),
        NamedSplit::Several(splits) => Err(splits),
        NamedSplit::None => {
            let parent =
                file.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
            match parent.map(own_name) {
                Some(NamedSplit::One(split)) => Ok(Some(split)),
                _ => Ok(None),
            }
        }
    }
}

/// Divides archives by the names of their files.
fn archives(
    source: &Path,
    ArchiveFiles { kind, files, mut left_out }: ArchiveFiles,
    options: &Options,
) -> Result<DividedSource, Error> {
    let sets: Vec<_> = files.iter().map(|file| set(&file.path)).collect();
    let mut says: Vec<_> = files.iter().map(|file| of_file(&file.path)).collect();
    if options.split_names == SplitNames::Names {
        let named = |(says, set): (Result<Option<String>, _>, &String)| match says {
            Ok(Some(split)) => Ok(Some(split)),
            // A number does not name a split.
            _ => Ok(Some(set.clone()).filter(|set| !set.bytes().all(|byte| byte.is_ascii_digit()))),
        };
        says = says.into_iter().zip(&sets).map(named).collect();
    } else if options.split.is_none() && says.iter().all(|says| *says == Ok(None)) {
        let different: BTreeSet<_> =
            files.iter().zip(&sets).filter(|(file, _)| has_number(&file.path)).map(|(_, set)| set).collect();
        if different.len() > 1 {
            let problem = format!(
                "its files are numbered within {}: --splits names packs each as a split of its name, and --splits none all as one; a glob in \
                 quotes such as '{}/{}-*' names some",
                listed(different.iter().map(|set| set.as_str())),
                files[0].path.parent().unwrap_or(source).display(),
                different.iter().next().map_or("", |set| set.as_str())
            );
            return Err(doubt(source, problem));
        }
    }
    let named: Vec<Named> = files.iter().zip(says).map(|(file, says)| Named { name: &file.name, says }).collect();
    let groups = group(source, &named, options.split.as_deref())?;
    let taken: BTreeSet<usize> = groups.values().flatten().copied().collect();
    let others = files.iter().enumerate().filter(|(i, _)| !taken.contains(i)).map(|(_, file)| file.name.as_str());
    let others: Vec<_> = others.collect();
    if !others.is_empty() {
        left_out.push(format!("{}: of other splits", listed(others.iter().copied())));
    }
    let splits = groups.into_iter().map(|(split, files_of)| {
        let files = files_of.into_iter().map(|i| files[i].clone()).collect();
        let found = DetectedSource::Archives(ArchiveFiles { kind, files, left_out: vec![] });
        SplitSource { split, path: source.to_owned(), found }
    });
    Ok(DividedSource { splits: splits.collect(), folders: vec![], left_out })
}

fn has_number(file: &Path) -> bool {
    before_number(&file.file_name().unwrap_or_default().to_string_lossy()).is_some()
}

/// Returns the name of the split of a file where each names its own: without number and extensions.
fn set(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let bare = || name.split('.').next().unwrap_or_default();
    before_number(&name).unwrap_or_else(bare).to_owned()
}

/// A file, and what its name says.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    /// The split; or several, between which it does not decide.
    pub(crate) says: Result<Option<String>, Vec<String>>,
}

/// Groups files of a source by their splits: those of `split` if it is given.
///
/// # Errors
/// [`SourceError::SplitNames`].
pub(crate) fn group(
    source: &Path,
    files: &[Named<'_>],
    split: Option<&str>,
) -> Result<BTreeMap<String, Vec<usize>>, Error> {
    let mut groups = BTreeMap::<String, Vec<usize>>::new();
    for (i, file) in files.iter().enumerate() {
        if let Ok(Some(split)) = &file.says {
            groups.entry(split.clone()).or_default().push(i);
        }
    }
    let all = |split: &str| BTreeMap::from([(split.to_owned(), (0..files.len()).collect())]);
    let unclear = files.iter().find_map(|file| Some((file.name, file.says.as_ref().err()?)));
    let names = listed(groups.keys().map(String::as_str));
    if let Some(split) = split {
        let clear = files.iter().all(|file| matches!(file.says, Ok(Some(_))));
        if let Some(taken) = same_as(&groups, split) {
            if let Some((name, splits)) = unclear.filter(|(_, splits)| splits.iter().any(|s| is_same(s, split))) {
                return Err(doubt(source, unclear_problem(name, splits)));
            }
            return Ok(BTreeMap::from([(split.to_owned(), taken)]));
        }
        // Without names of splits, or one file, or a new name for files that are of one split: no splits are mixed.
        let renamed = clear && groups.len() == 1 && NamedSplit::of(split) == NamedSplit::None;
        return match (groups.is_empty() && unclear.is_none()) || files.len() == 1 || renamed {
            true => Ok(all(split)),
            false => Err(doubt(
                source,
                format!(
                    "no file is named for split {split}, but files are named for {names}; choose one of these, name the files \
                     by a glob such as '*{}*', or take all as one split: --splits none",
                    groups.keys().next().map_or("train", String::as_str)
                ),
            )),
        };
    }
    if groups.is_empty() && unclear.is_none() {
        return Ok(all(DEFAULT_SPLIT));
    }
    if let Some((name, splits)) = unclear {
        return Err(doubt(source, unclear_problem(name, splits)));
    }
    if let Some(other) = files.iter().find(|file| file.says == Ok(None)) {
        return Err(doubt(
            source,
            format!(
                "files are named for {names}, but {} is named for no split; name the files of one split by a glob such as \
                 '*{}*', with --split NAME, take each as a split of its name, --splits names, or all as one, --splits none",
                other.name,
                groups.keys().next().map_or("train", String::as_str)
            ),
        ));
    }
    for (split, taken) in &groups {
        if let Some(other) = groups.keys().find(|other| *other != split && is_same(split, other)) {
            return Err(doubt(
                source,
                format!(
                    "{} and {} are named for the same split in two spellings; name the files of one by a glob, with \
                     --split NAME",
                    files[taken[0]].name, files[groups[other][0]].name
                ),
            ));
        }
        let mut years = taken.iter().map(|i| (year(files[*i].name), *i));
        let first = years.next().filter(|(year, _)| year.is_some());
        if let Some((year, first)) = first
            && let Some((_, second)) = years.find(|(other, _)| other.is_some() && *other != year)
        {
            return Err(doubt(
                source,
                format!(
                    "{} and {} are both named for split {split}, of different years; name the files of one by a glob, with \
                     --split NAME, or take all as one split: --splits none",
                    files[first].name, files[second].name
                ),
            ));
        }
    }
    Ok(groups)
}

/// Returns the group of a split: of its name, else of another spelling of it.
fn same_as(groups: &BTreeMap<String, Vec<usize>>, split: &str) -> Option<Vec<usize>> {
    let spelling = || groups.iter().find(|(name, _)| is_same(name, split)).map(|(_, taken)| taken);
    groups.get(split).or_else(spelling).cloned()
}

fn unclear_problem(name: &str, splits: &[String]) -> String {
    format!(
        "{name} has the names of several splits ({}); name the files of one split by a glob, with --split NAME, or take all as \
         one split: --splits none",
        splits.join(", ")
    )
}

/// Divides a folder by its top folders; `None` if they are no splits.
///
/// # Errors
/// [`SourceError::SplitNames`], [`SourceError::Layout`].
fn folders(source: &Path, options: &Options) -> Result<Option<DividedSource>, Error> {
    let top = detect::subfolders(source)?;
    if options.from.is_none() {
        check_layout(source, &top)?;
    }
    let own = detect::content(source)?;
    if options.split_names == SplitNames::Ignored || top.is_empty() || own.archives.is_some() {
        return Ok(None);
    }
    let mut groups = BTreeMap::<String, Vec<&String>>::new();
    let mut others = vec![];
    for name in &top {
        match NamedSplit::of(name) {
            NamedSplit::One(split) => groups.entry(split).or_default().push(name),
            _ => others.push(name),
        }
    }
    if options.split_names == SplitNames::Names {
        others.drain(..).for_each(|name| groups.entry(name.clone()).or_default().push(name));
    }
    if !others.is_empty() {
        return match are_doubtful(source, &top, &groups)? {
            true => Err(doubt(source, half_named(&groups, &others))),
            false => Ok(None),
        };
    }
    for name in &top {
        let content = detect::content(&source.join(name))?;
        let empty = !content.folders && !content.images && content.archives.is_none();
        if empty && !ArchiveFiles::is_mds(&source.join(name))? {
            return Ok(None);
        }
    }
    if own.images {
        let problem = "images lie next to folders that are named for splits; move them into one of these, or pack all as one \
            split of class folders: --splits none";
        return Err(doubt(source, problem.to_owned()));
    }
    if let Some((split, same)) = groups.iter().find(|(_, same)| same.len() > 1) {
        let problem = format!(
            "folders {} are all named for split {split}; pack each from another source, with --split NAME, or all as classes: \
             --splits none",
            listed(same.iter().map(|name| name.as_str()))
        );
        return Err(doubt(source, problem));
    }
    let mut folders: BTreeMap<String, PathBuf> =
        groups.iter().map(|(split, names)| (split.clone(), source.join(names[0]))).collect();
    let all: Vec<_> = folders.values().cloned().collect();
    let mut left_out = vec![];
    if let Some(split) = &options.split {
        let names = listed(folders.keys().map(String::as_str));
        let found =
            folders.get(split).or_else(|| folders.iter().find(|(name, _)| is_same(name, split)).map(|(_, f)| f));
        let Some(found) = found.cloned() else {
            let problem = format!(
                "no folder is named for split {split}, but folders are named for {names}; choose one of these, name that folder \
                 as the source, or pack all as classes: --splits none"
            );
            return Err(doubt(source, problem));
        };
        let other = folders.values().filter(|folder| **folder != found).filter_map(|f| f.file_name()?.to_str());
        let other = listed(other);
        if !other.is_empty() {
            left_out.push(format!("{other}: of other splits"));
        }
        folders = BTreeMap::from([(split.clone(), found)]);
    }
    let others = detect::other_files(source)?;
    if !others.is_empty() {
        left_out.push(format!("{}: in no folder of a split", listed(others.iter().map(String::as_str))));
    }
    let splits = folders.into_iter().map(|(split, path)| {
        if options.from.is_none() {
            check_layout(&path, &detect::subfolders(&path)?)?;
        }
        Ok(SplitSource { found: detect::detect(&path, options.from)?, split, path })
    });
    let splits = splits.collect::<Result<Vec<_>, Error>>()?;
    for SplitSource { path, found, .. } in &splits {
        let folder = path.file_name().unwrap_or_default().to_string_lossy();
        left_out.extend(left_out_of(found).iter().map(|text| format!("in {folder}: {text}")));
    }
    Ok(Some(DividedSource { splits, folders: all, left_out }))
}

/// Refuses folders that are the parts of a known layout, also one folder above them.
fn check_layout(source: &Path, top: &[String]) -> Result<(), Error> {
    let refuse = |folder: &Path, names: &[String]| {
        if let Some(dota) = names.iter().find(|name| name.to_lowercase().starts_with("labeltxt")) {
            let problem = format!(
                "{dota} holds rotated boxes of DOTA, whose lines are not read: write them as labels of YOLO, class and four points as \
                 fractions in each line (convert_dota_to_yolo_obb of Ultralytics does), in a folder labels"
            );
            return Err(wrong(folder, problem));
        }
        let folders = listed(names.iter().map(String::as_str));
        Err(Error::Source(SourceError::Layout { path: folder.to_owned(), folders }))
    };
    if layouts::are_parts(top.iter().map(String::as_str)) {
        return refuse(source, top);
    }
    if let [only] = top {
        let (folder, inner) = (source.join(only), detect::subfolders(&source.join(only))?);
        if inner.len() > 1 && layouts::are_parts(inner.iter().map(String::as_str)) {
            return refuse(&folder, &inner);
        }
    }
    // A class has images, and no arrays.
    for name in top {
        if has_arrays(&source.join(name))? {
            return refuse(source, top);
        }
    }
    // COCO: annotations next to folders of images that are named for splits.
    let part = |name: &&String| layouts::are_parts(std::iter::once(name.as_str()));
    let splits = top.iter().filter(|name| is_split(name)).count();
    match splits > 0 && top.iter().any(|name| part(&name)) {
        true => refuse(source, top),
        false => Ok(()),
    }
}

/// Returns whether folders, some of which are named for splits and others not, may be splits and others, and not classes. One
/// class may be called `train`, but hardly `test`.
fn are_doubtful(source: &Path, top: &[String], groups: &BTreeMap<String, Vec<&String>>) -> Result<bool, Error> {
    let exact: Vec<_> = top.iter().filter(|name| is_split(name)).collect();
    let named: usize = groups.values().map(Vec::len).sum();
    Ok(match exact[..] {
        [] => groups.len() > 1 && 2 * named >= top.len(),
        [only] if is_same(&only.to_lowercase(), "train") => detect::content(&source.join(only))?.folders,
        _ => true,
    })
}

fn half_named(groups: &BTreeMap<String, Vec<&String>>, others: &[&String]) -> String {
    let named = listed(groups.values().flatten().map(|name| name.as_str()));
    let others = listed(others.iter().map(|name| name.as_str()));
    format!(
        "folders {named} are named for splits, and {others} for none: splits, or classes? Pack each as a split of its name: \
         --splits names; as classes of one split: --splits none; or name one of the folders as the source, such as {}/, \
         with --split NAME",
        groups.values().flatten().next().map_or("train", |name| name.as_str())
    )
}

/// Returns what lies next to archives, and is not packed.
fn left_out_of(found: &DetectedSource) -> &[String] {
    match found {
        DetectedSource::Archives(files) => &files.left_out,
        _ => &[],
    }
}
