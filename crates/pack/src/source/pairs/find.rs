//! Finds images next to what is predicted for each pixel of them: by patterns that the user gives, or in folders whose names say so.

use super::super::annotated::wrong;
use super::super::detect::subfolders;
use super::super::first_file::first_extension;
use super::super::layouts::{IMAGES, PIXEL_VALUES, listed};
use super::super::split_names::is_split;
use super::known::{IMAGE, Known, Patterns, known};
use super::pattern::Pattern;
use crate::array::EXTENSIONS;
use crate::{Error, Options, SourceKind};
use std::path::{Path, PathBuf};

/// Extensions of files with a value for each pixel.
const VALUES: [&str; 10] = ["png", "tif", "tiff", "bmp", "gif", "pgm", "pbm", "ppm", "pam", "tga"];
/// A folder of files that belong together by their names.
#[derive(Debug, Clone)]
pub(in crate::source) struct Pairs {
    pub(in crate::source) root: PathBuf,
    pub(super) image: Pattern,
    /// Features, in byte order of their names, and the files that they hold.
    pub(super) features: Vec<(String, Pattern)>,
    /// The split of images in no folder that is named for one, where the layout says which.
    pub(super) split: Option<&'static str>,
}

/// Finds pairs: patterns in `options`, or folders with the names of images and of what is predicted for each pixel; otherwise `None`.
///
/// # Errors
/// [`crate::SourceError::Annotations`] for patterns that do not fit each other, and if the user names the kind and there are no such
/// folders; [`Error::Io`].
pub(in crate::source) fn find(source: &Path, options: &Options) -> Result<Option<Pairs>, Error> {
    let forced = options.from == Some(SourceKind::Pairs);
    let patterns = options.map.iter().any(|(_, theirs)| theirs.contains('*')) && options.from.is_none();
    if (options.from.is_some() && !forced) || !source.is_dir() {
        return match forced {
            true => {
                Err(wrong(source, "expected a folder on a disk, in which the files of a sample have names in common"))
            }
            false => Ok(None),
        };
    }
    if patterns || (forced && !options.map.is_empty()) {
        return of_patterns(source, &options.map).map(Some);
    }
    let top = subfolders(source)?;
    let given = match known(source, &top)? {
        Some(found) => Some(found),
        None => by_names(source, &top)?.map(|patterns| Known { patterns, split: None }),
    };
    match given {
        Some(_) if !options.map.is_empty() => {
            let (ours, theirs) = &options.map[0];
            let problem = format!(
                "--map {ours}={theirs} is not a pattern; name all files of a sample by patterns, such as --map image='images/**.*' --map \
                 {ours}='{theirs}/**.*'"
            );
            Err(wrong(source, problem))
        }
        Some(Known { patterns, split }) => Ok(Some(Pairs { split, ..of_patterns(source, &patterns)? })),
        None if forced => Err(wrong(
            source,
            "expected folders such as images and masks; name the files of a sample by patterns: --map \
             image='images/**.jpg' --map mask='masks/**_mask.png'",
        )),
        None => Ok(None),
    }
}

fn of_patterns(source: &Path, given: &[(String, String)]) -> Result<Pairs, Error> {
    let (mut image, mut features) = (None::<Pattern>, vec![]);
    for (name, text) in given {
        let pattern = Pattern::new(text).map_err(|problem| wrong(source, problem))?;
        match name.as_str() {
            IMAGE if image.is_some() => return Err(wrong(source, "two patterns of the images; choose one")),
            IMAGE => image = Some(pattern),
            "label" | "key" | "class" => {
                return Err(wrong(
                    source,
                    format!("{name}: files that belong together have no {name}; pack a list (CSV)"),
                ));
            }
            name if crate::sample::is_written(name) || name.starts_with("image/object/") => {
                return Err(wrong(
                    source,
                    format!("{name}: pack writes a feature of this name itself; choose another one"),
                ));
            }
            name => features.push((name.to_owned(), pattern)),
        }
    }
    let image = image.ok_or_else(|| wrong(source, "no pattern of the images: --map image='images/**.jpg'"))?;
    let other = features.iter().find(|(_, pattern)| pattern.texts_len() != image.texts_len());
    if let Some((_, other)) = other {
        let problem = format!(
            "`{}` has {} times * or **, and `{}` {}: each matches the same text in both",
            other.as_str(),
            other.texts_len(),
            image.as_str(),
            image.texts_len()
        );
        return Err(wrong(source, problem));
    }
    features.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(twice) = features.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(wrong(source, format!("two patterns for the feature {}; choose one", twice[0].0)));
    }
    Ok(Pairs { root: source.to_owned(), image, features, split: None })
}

/// Returns the patterns of folders by their names: of the images, and of values for each pixel; or of such folders in each folder of a
/// split.
fn by_names(source: &Path, top: &[String]) -> Result<Option<Patterns>, Error> {
    if let Some(found) = parts(source, source, top)?.filter(|found| found.len() > 1) {
        return Ok(Some(patterns("", &found)));
    }
    if top.is_empty() || !top.iter().all(|name| is_split(name)) {
        return Ok(None);
    }
    let mut all = Patterns::new();
    for split in top {
        let folder = source.join(split);
        let Some(found) = parts(source, &folder, &subfolders(&folder)?)? else { return Ok(None) };
        for (feature, name) in found {
            // A split may lack a folder, as that of a test does, and none has another name for it.
            match all.iter().find(|(known, _)| *known == feature) {
                None => all.push((feature, name)),
                Some((_, known)) if *known == name => {}
                Some(_) => return Ok(None),
            }
        }
    }
    Ok((all.len() > 1).then(|| patterns("*/", &all)))
}

fn patterns(before: &str, found: &[(String, String)]) -> Patterns {
    found.iter().map(|(feature, folder)| (feature.clone(), format!("{before}{folder}/**.*"))).collect()
}

/// Returns the features of the folders in one folder, that of the images first; `None` if there is not exactly one of images.
fn parts(source: &Path, folder: &Path, inner: &[String]) -> Result<Option<Patterns>, Error> {
    let is_one = |names: &[&str], name: &String| names.contains(&&*name.to_lowercase());
    let images: Vec<_> = inner.iter().filter(|name| is_one(&IMAGES, name)).collect();
    let [image] = images[..] else { return Ok(None) };
    let mut found = vec![(IMAGE.to_owned(), image.clone())];
    for (feature, names) in PIXEL_VALUES {
        let mut folders = vec![];
        for name in inner.iter().filter(|name| is_one(names, name)) {
            let first = first_extension(&folder.join(name))?;
            if VALUES.iter().chain(&EXTENSIONS).any(|known| *known == first) {
                folders.push(name);
            }
        }
        match folders[..] {
            [] => {}
            [one] => found.push((feature.to_owned(), one.clone())),
            _ => {
                let problem = format!(
                    "the folders {} may each be the {feature} of {image}; say which: --map image='{image}/**.*' --map \
                     {feature}='{}/**.*'",
                    listed(folders.iter().map(|name| name.as_str())),
                    folders[0]
                );
                return Err(wrong(source, problem));
            }
        }
    }
    Ok(Some(found))
}
