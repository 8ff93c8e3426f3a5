//! Refuses folders in which files may describe the images beside them: as samples of their own, masks would become images of a class.

use super::annotated::wrong;
use super::layouts::PIXEL_VALUES;
use super::listing::Entry;
use crate::{Error, Options};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Words, besides the names of folders, that say that a file holds a value for each pixel of an image.
const VALUES: [&str; 15] = [
    "seg",
    "segm",
    "segmentation",
    "groundtruth",
    "trimap",
    "matte",
    "alpha",
    "disp",
    "normal",
    "normals",
    "target",
    "labelids",
    "instanceids",
    "heatmap",
    "edges",
];
/// Words that say that a file is the image.
const IMAGES: [&str; 8] = ["image", "img", "rgb", "color", "colour", "photo", "input", "orig"];
/// Extensions of images, in lower case.
const EXTENSIONS: [&str; 15] =
    ["jpg", "jpeg", "png", "tif", "tiff", "bmp", "gif", "webp", "pgm", "pbm", "ppm", "jp2", "jxl", "heic", "avif"];
/// Folders of images and of what a network is to make of them, which are no classes if all their files have the same names.
const TRANSLATIONS: [(&str, &str); 16] = [
    ("input", "target"),
    ("inputs", "targets"),
    ("source", "target"),
    ("lq", "gt"),
    ("lq", "hq"),
    ("lr", "hr"),
    ("low", "high"),
    ("blur", "sharp"),
    ("blurry", "sharp"),
    ("noisy", "clean"),
    ("hazy", "clear"),
    ("rain", "norain"),
    ("rainy", "clean"),
    ("before", "after"),
    ("a", "b"),
    ("photo", "sketch"),
];

/// Refuses a folder in which files may describe others: `a_mask.png` beside `a.png`, a PNG of the same name beside each JPEG, or the folders
/// `input` and `target` with files of the same names. Keys are paths from `root`, in byte order.
///
/// # Errors
/// [`crate::SourceError::Annotations`], with two files and the options that say what they are.
pub(super) fn check(root: &Path, entries: &[Entry]) -> Result<(), Error> {
    let Some(problem) = described(entries).or_else(|| twins(entries)).or_else(|| translated(entries)) else {
        return Ok(());
    };
    let ways = "(samples without labels), or list them with their labels (CSV or JSON Lines, --column mask:file); --from folder packs each \
        file as a sample";
    Err(wrong(root, format!("{problem} {ways}")))
}

/// Samples of a tar that follow each other, of which the names say that one describes the other.
#[derive(Default)]
pub(super) struct Neighbours {
    /// The name of the last sample.
    last: String,
    found: Option<(String, String)>,
}

impl Neighbours {
    /// Adds the name of the next sample, without extension.
    pub(super) fn add(&mut self, name: &str) {
        let is_one = |image: &str, other: &str| {
            let (folder, stem) = other.rsplit_once('/').unwrap_or(("", other));
            let (image_folder, image) = image.rsplit_once('/').unwrap_or(("", image));
            let shared = without(stem, is_value).filter(|_| folder == image_folder);
            shared.is_some_and(|(shared, _)| {
                shared == image || without(image, is_image).is_some_and(|(of_image, _)| of_image == shared)
            })
        };
        if self.found.is_none() && is_one(&self.last, name) {
            self.found = Some((self.last.clone(), name.to_owned()));
        } else if self.found.is_none() && is_one(name, &self.last) {
            self.found = Some((name.to_owned(), self.last.clone()));
        }
        name.clone_into(&mut self.last);
    }

    /// Adds what was found in another file.
    pub(super) fn join(&mut self, other: Neighbours) {
        self.found = self.found.take().or(other.found);
    }

    /// Refuses two such samples, unless the user names the kind of the source.
    ///
    /// # Errors
    /// [`crate::SourceError::Annotations`].
    pub(super) fn check(&self, options: &Options) -> Result<(), Error> {
        let Some((image, other)) = self.found.as_ref().filter(|_| options.from.is_none()) else { return Ok(()) };
        let problem = format!(
            "the sample {other} may describe {image}, and be none of its own: members of one sample have the same name up to the first dot \
             (a.png, a.mask.png); --from webdataset packs each as a sample"
        );
        Err(wrong(&options.source, problem))
    }
}

/// A file by the parts of its path.
#[derive(Clone, Copy)]
struct Name<'a> {
    key: &'a str,
    folder: &'a str,
    stem: &'a str,
    extension: &'a str,
}

impl<'a> Name<'a> {
    fn of(entry: &'a Entry) -> Self {
        let key = &*entry.key;
        let (folder, file) = key.rsplit_once('/').unwrap_or(("", key));
        let (stem, extension) = file.rsplit_once('.').unwrap_or((file, ""));
        Name { key, folder, stem, extension }
    }

    /// Returns the pattern of names that have another text in place of `shared`.
    fn pattern(&self, shared: &str) -> String {
        let folders: String = self.folder.split('/').filter(|folder| !folder.is_empty()).map(|_| "*/").collect();
        format!("{folders}{}.{}", self.stem.replacen(shared, "*", 1), self.extension)
    }
}

/// Finds a file whose name says that it describes the image beside it.
fn described(entries: &[Entry]) -> Option<String> {
    let names = || entries.iter().map(Name::of);
    let marked: Vec<_> = names().filter_map(|name| Some((name, without(name.stem, is_value)?))).collect();
    let mut by_folder: HashMap<&str, HashMap<&str, Name<'_>>> =
        marked.iter().map(|(name, _)| (name.folder, HashMap::new())).collect();
    for name in names() {
        let Some(images) = by_folder.get_mut(name.folder) else { continue };
        images.insert(name.stem, name);
        if let Some((shared, _)) = without(name.stem, is_image) {
            images.entry(shared).or_insert(name);
        }
    }
    marked.into_iter().find_map(|(other, (shared, word))| {
        let image = by_folder[other.folder].get(shared)?;
        Some(format!(
            "{} may describe {}, and be no sample of its own: name the files of a sample by patterns, such as --map image='{}' --map \
             {}='{}'",
            other.key,
            image.key,
            image.pattern(shared),
            feature(&word).unwrap_or("mask"),
            other.pattern(shared)
        ))
    })
}

/// Returns a name without its first or last word, and that word in lower case, if it is one of those. A number after the last word, as of the
/// second mask of an image, is left out, too.
fn without<'n>(name: &'n str, is: fn(&str) -> bool) -> Option<(&'n str, String)> {
    const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];
    let numbered = name.rsplit_once(SEPARATORS).filter(|(_, end)| end.bytes().all(|byte| byte.is_ascii_digit()));
    let ends = [Some(name), numbered.map(|(before, _)| before)].into_iter().flatten();
    let ends = ends.filter_map(|name| name.rsplit_once(SEPARATORS));
    let begin = name.split_once(SEPARATORS).map(|(word, rest)| (rest, word));
    let words = ends.chain(begin).map(|(rest, word)| (rest, word.to_lowercase()));
    words.into_iter().find(|(rest, word)| !rest.is_empty() && is(word))
}

fn is_value(word: &str) -> bool {
    VALUES.contains(&word) || feature(word).is_some()
}

fn is_image(word: &str) -> bool {
    IMAGES.contains(&word)
}

/// Finds an extension all of whose files have a partner of the same name with another extension.
fn twins(entries: &[Entry]) -> Option<String> {
    let mut all = BTreeMap::<&str, usize>::new();
    let mut pairs = BTreeMap::<(&str, &str), (usize, Name<'_>, Name<'_>)>::new();
    entries.iter().for_each(|entry| *all.entry(Name::of(entry).extension).or_default() += 1);
    let is_known = |name: &Name<'_>| EXTENSIONS.contains(&&*name.extension.to_lowercase());
    for pair in entries.windows(2) {
        let (first, second) = (Name::of(&pair[0]), Name::of(&pair[1]));
        let same = (first.folder, first.stem) == (second.folder, second.stem);
        if same && is_known(&first) && is_known(&second) {
            pairs.entry((first.extension, second.extension)).or_insert((0, first, second)).0 += 1;
        }
    }
    let several = pairs.into_iter().filter(|(_, (count, ..))| *count > 1);
    let found =
        several.into_iter().find_map(|((a, b), (count, first, second))| match (all[a] == count, all[b] == count) {
            // Of two, the PNG is the mask.
            (true, true) if a.eq_ignore_ascii_case("png") => Some((second, first)),
            (_, true) => Some((first, second)),
            (true, false) => Some((second, first)),
            (false, false) => None,
        });
    found.map(|(image, other)| {
        format!(
            "each .{1} has the name of a .{0}, such as {2} and {3}, and may describe it or be the same image again: name the files of \
             a sample by patterns, such as --map image='**.{0}' --map mask='**.{1}'",
            image.extension, other.extension, image.key, other.key
        )
    })
}

/// Finds two top folders whose names say that one holds what is to be made of the other, if their files have the same names.
fn translated(entries: &[Entry]) -> Option<String> {
    let in_folders = || entries.iter().filter_map(|entry| entry.key.split_once('/'));
    let mut folders: Vec<&str> = in_folders().map(|(folder, _)| folder).collect();
    folders.dedup();
    let (values, others): (Vec<&str>, Vec<&str>) =
        folders.iter().copied().partition(|name| feature(&name.to_lowercase()).is_some());
    let named = |name: &str| folders.iter().copied().find(|folder| folder.eq_ignore_ascii_case(name));
    let known = TRANSLATIONS.iter().filter_map(|(from, to)| Some((named(from)?, named(to)?)));
    let known = known.filter(|(from, to)| others.iter().all(|other| other == from || other == to));
    let of_values = others.iter().flat_map(|image| values.iter().map(|value| (*image, *value)));
    let names = |of: &str| -> BTreeSet<&str> {
        let inside = in_folders().filter(|(folder, _)| *folder == of).map(|(_, path)| path);
        inside.map(|path| path.rsplit_once('.').map_or(path, |(stem, _)| stem)).collect()
    };
    let found = known.chain(of_values).find(|(images, others)| {
        let of_images = names(images);
        of_images.len() > 1 && of_images == names(others)
    });
    found.map(|(images, others)| {
        format!(
            "all files of the folders {images} and {others} have the same names, so they may belong together, and be no classes: name \
             the files of a sample by patterns, such as --map image='{images}/**.*' --map {}='{others}/**.*'",
            feature(&others.to_lowercase()).unwrap_or("target")
        )
    })
}

/// Returns the feature that files with this word in their names, or in a folder of this name, become.
fn feature(word: &str) -> Option<&'static str> {
    PIXEL_VALUES.iter().find(|(_, words)| words.contains(&word)).map(|(feature, _)| *feature)
}
