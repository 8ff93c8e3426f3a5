//! Divides files that belong together into samples and splits.

use super::super::annotated::wrong;
use super::super::archive_choice::is_image;
use super::super::detect::DetectedSource;
use super::super::folder::{FilesBelow, files_below};
use super::super::image_lists;
use super::super::layouts::listed;
use super::super::splits::{DividedSource, SplitSource, only_split};
use super::find::Pairs;
use super::paired::{FilesOfImages, PairedFile};
use super::pattern::Pattern;
use super::splits::divided;
use crate::{Error, Options, SplitNames};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

/// The samples of a source.
pub(in crate::source) struct PairedFiles {
    pub(in crate::source) pairs: Pairs,
    /// Of each image, the files of the features.
    pub(super) files: FilesOfImages,
}

/// The files that match a pattern, by the texts that its `*` match.
type ByTexts<'f> = HashMap<Vec<String>, Vec<&'f String>>;

/// Divides files into samples, and these into the splits that folders are named for.
///
/// # Errors
/// [`crate::SourceError::Annotations`] without an image, or without a file of a feature; [`crate::SourceError::SplitNames`];
/// those of [`image_lists::taken`]; [`Error::Io`].
pub(in crate::source) fn divide(source: &Path, pairs: Pairs, options: &Options) -> Result<DividedSource, Error> {
    let FilesBelow { files, loops } = files_below(&pairs.root)?;
    let mut left_out = vec![];
    if !loops.is_empty() {
        left_out.push(format!("{}: links back to a folder above", listed(loops.iter().map(String::as_str))));
    }
    let mut used = HashSet::new();
    let mut pairs = pairs;
    if options.map.is_empty() {
        // A layout need not have all of its folders.
        pairs.features = with_files(&files, pairs.features);
    }
    let of_features: Vec<_> = pairs.features.iter().map(|(_, pattern)| pattern.by_path(&files)).collect();
    let of_any: HashSet<&String> = of_features.iter().flat_map(|files| files.values().flatten()).copied().collect();
    // What belongs to an image is not an image itself, whatever the pattern of the images says.
    let (of_features_too, images): (Vec<_>, Vec<_>) =
        files.iter().filter(|file| pairs.image.texts(file).is_some()).partition(|file| of_any.contains(file));
    if let (Some(file), []) = (of_features_too.first(), &images[..]) {
        let problem = format!(
            "{file}, and all other files that match the pattern of the images, {}, match that of a feature, too: give patterns of \
             different files",
            pairs.image.as_str()
        );
        return Err(wrong(source, problem));
    }
    let images = by_texts(images, &pairs.image);
    let (mut paired, mut owners) = (HashMap::new(), HashMap::<&String, &String>::new());
    for (texts, images) in &images {
        let image = only_image(source, &pairs.root, images)?;
        let of_image: Vec<_> = pairs
            .features
            .iter()
            .zip(&of_features)
            .map(|((_, pattern), files)| {
                let expected = pattern.path(texts);
                (files.get(&expected).map_or(&[][..], Vec::as_slice), expected)
            })
            .collect();
        for file in of_image.iter().flat_map(|(files, _)| *files) {
            if let Some(other) = owners.insert(file, image).filter(|other| *other != image) {
                let problem = format!(
                    "{file} belongs to {other} and to {image}: the texts that * matches in both are the same one after the other; \
                     give patterns that divide them"
                );
                return Err(wrong(source, problem));
            }
            used.insert(*file);
        }
        used.insert(image);
        let found = of_image.into_iter().map(|(files, expected)| match files {
            [] => PairedFile::Missing(expected),
            [one] => PairedFile::One((*one).clone()),
            several => PairedFile::Several(several.iter().map(|file| (*file).clone()).collect()),
        });
        paired.insert(image.clone(), found.collect());
    }
    check_any(source, &pairs, &paired, &files)?;
    let others: Vec<_> = files.iter().filter(|file| !used.contains(file)).collect();
    let (lists, read) = divided(source, &pairs, &paired, &others, options, &mut left_out)?;
    used.extend(read);
    unused(&pairs, &files, &used, &mut left_out);
    let one = lists.keys().all(String::is_empty);
    let lists = match one {
        true => {
            let own = || pairs.split.filter(|_| options.split_names != SplitNames::Ignored).map(str::to_owned);
            let split = options.split.clone().or_else(own).unwrap_or_else(|| only_split(&pairs.root, options));
            BTreeMap::from([(split, lists.into_values().flatten().collect())])
        }
        false => lists,
    };
    let asked = Options { split: options.split.clone().filter(|_| !one), ..options.clone() };
    let (lists, others) = image_lists::taken(source, lists, &asked)?;
    if !others.is_empty() {
        left_out.push(format!("{}: of other splits", listed(others.iter().map(String::as_str))));
    }
    let files =
        lists.iter().flat_map(|(split, images)| images.iter().map(|image| (split.as_str(), pairs.root.join(image))));
    image_lists::check_files(source, files)?;
    let path = pairs.root.clone();
    let paired = Rc::new(PairedFiles { pairs, files: paired });
    let splits = lists.into_iter().map(|(split, images)| {
        let found = DetectedSource::Pairs(Rc::clone(&paired), images);
        SplitSource { split, path: path.clone(), found }
    });
    Ok(DividedSource { splits: splits.collect(), folders: vec![], left_out })
}

/// Returns the features of which there are files; all if there are none.
fn with_files(files: &[String], features: Vec<(String, Pattern)>) -> Vec<(String, Pattern)> {
    let has = |(_, pattern): &&(String, Pattern)| files.iter().any(|file| pattern.texts(file).is_some());
    let found: Vec<_> = features.iter().filter(has).cloned().collect();
    if found.is_empty() { features } else { found }
}

/// Returns the image among files with the same name.
///
/// # Errors
/// [`crate::SourceError::Annotations`] if several are images; [`Error::Io`].
fn only_image<'f>(source: &Path, root: &Path, files: &[&'f String]) -> Result<&'f String, Error> {
    if let [only] = files {
        return Ok(only);
    }
    let mut images = vec![];
    for file in files {
        if is_image(&root.join(file))? {
            images.push(*file);
        }
    }
    match images[..] {
        [only] => Ok(only),
        [] => Ok(files[0]),
        [first, second, ..] => {
            let problem = format!(
                "{first} and {second} are images with the same name: which one do the other files belong to? Name the extension in \
                 the pattern of the images"
            );
            Err(wrong(source, problem))
        }
    }
}

/// Returns the files that match a pattern, by the texts that its `*` match.
fn by_texts<'f>(files: impl IntoIterator<Item = &'f String>, pattern: &Pattern) -> ByTexts<'f> {
    let mut found = ByTexts::new();
    for file in files {
        if let Some(texts) = pattern.texts(file) {
            found.entry(texts).or_default().push(file);
        }
    }
    found
}

/// Refuses patterns of which none matches, or of which no file belongs to an image.
fn check_any(source: &Path, pairs: &Pairs, paired: &FilesOfImages, files: &[String]) -> Result<(), Error> {
    let Some(image) = paired.keys().min() else {
        return Err(wrong(source, format!("no file matches the pattern of the images, {}", pairs.image.as_str())));
    };
    for (at, (feature, pattern)) in pairs.features.iter().enumerate() {
        if paired.values().any(|of_image| !matches!(of_image[at], PairedFile::Missing(_))) {
            continue;
        }
        let there = files.iter().find(|file| pattern.texts(file).is_some());
        let there = there.map_or("no file matches it".to_owned(), |file| format!("there is {file}"));
        let PairedFile::Missing(expected) = &paired[image][at] else { continue };
        let problem = format!(
            "no image has a file of `{feature}`: for {image}, {expected} was expected, and {there}; name the files of a sample by \
             patterns, such as --map image='{}' --map {feature}='{}'",
            pairs.image.as_str(),
            pattern.as_str().replacen(".*", "_mask.png", 1)
        );
        return Err(wrong(source, problem));
    }
    Ok(())
}

/// Names the files that are in no sample.
fn unused(pairs: &Pairs, files: &[String], used: &HashSet<&String>, left_out: &mut Vec<String>) {
    let rest: Vec<_> = files.iter().filter(|file| !used.contains(file)).collect();
    let (without_image, others): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|file| pairs.features.iter().any(|(_, pattern)| pattern.texts(file).is_some()));
    for (files, why) in [(without_image, "without an image"), (others, "that no pattern names")] {
        match files[..] {
            [] => {}
            [one] => left_out.push(format!("a file {why}: {one}")),
            [first, ..] => left_out.push(format!("{} files {why}, such as {first}", files.len())),
        }
    }
}
