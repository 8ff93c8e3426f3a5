//! Refuses folders in which files may describe the images next to them: masks that become samples are images of a class.

use super::annotated::wrong;
use super::layouts::PIXEL_VALUES;
use super::listing::Entry;
use crate::{Error, Options};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Words, besides the names of folders, that say that a file holds a value for each pixel of an image.
const VALUES: [&str; 13] = [
    "seg",
    "segm",
    "segmentation",
    "groundtruth",
    "trimap",
    "matte",
    "disp",
    "normals",
    "target",
    "labelids",
    "instanceids",
    "heatmap",
    "edges",
];
/// Extensions of images, in lower case: those that lose, and those of which a file may hold values.
const LOSSY: [&str; 8] = ["jpg", "jpeg", "webp", "jp2", "jxl", "heic", "avif", "jfif"];
const EXACT: [&str; 8] = ["png", "tif", "tiff", "bmp", "gif", "pgm", "pbm", "ppm"];
/// More top folders than a layout has.
const FOLDERS: usize = 8;
/// Folders of images and of what a network is to make of them, which are no classes if all their files have the same names.
const TRANSLATIONS: [(&str, &str); 15] = [
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
    ("photo", "sketch"),
];
/// Folders of images of the same places at two times, next to a folder of their differences. Alone they are classes.
const CHANGES: (&str, &str) = ("a", "b");

/// One of this many files, at least, must describe another one: a single name in a large folder means nothing.
const RARE: usize = 20;
/// In folders with at most this many files, one name is enough.
const FEW: usize = 10;

/// Refuses a folder in which files may describe others: `a_mask.png` next to `a.png`, a PNG of the same name next to each JPEG, or the folders
/// `input` and `target` with files of the same names. Keys are paths from `root`, in byte order. Folders that the user lists as classes are
/// classes.
///
/// # Errors
/// [`crate::SourceError::Annotations`], with two files and the options that say what they are.
pub(super) fn check(root: &Path, entries: &[Entry], options: &Options) -> Result<(), Error> {
    let by_folders = || if options.classes.is_none() { translated(entries) } else { None };
    let Some(problem) = described(entries).or_else(|| twins(entries)).or_else(by_folders) else { return Ok(()) };
    let ways = "(samples without labels), or list them with their labels (CSV or JSON Lines, --column mask:file); --from folder packs each \
        file as a sample";
    Err(wrong(root, format!("{problem} {ways}")))
}

/// Returns whether the names found are more than an accident.
fn are_many(found: usize, all: usize) -> bool {
    found > 0 && (all <= FEW || (found > 1 && found * RARE >= all))
}

/// Samples of a tar that follow each other, of which the names say that one describes the other.
#[derive(Default)]
pub(super) struct Neighbours {
    /// The name of the last sample.
    last: String,
    /// The first two, an image and what describes it.
    first: Option<(String, String)>,
    found: usize,
    all: usize,
}

impl Neighbours {
    /// Adds the name of the next sample, without extension.
    pub(super) fn add(&mut self, name: &str) {
        let is_one = |image: &str, other: &str| {
            let (folder, stem) = other.rsplit_once('/').unwrap_or(("", other));
            let (image_folder, image) = image.rsplit_once('/').unwrap_or(("", image));
            let shared = without(stem, is_value).filter(|_| folder == image_folder);
            shared.is_some_and(|(shared, _)| {
                shared == image || without(image, |_| true).is_some_and(|(of_image, _)| of_image == shared)
            })
        };
        let last = &*self.last;
        let found = match (is_one(last, name), is_one(name, last)) {
            (true, false) => Some((last.to_owned(), name.to_owned())),
            (false, true) => Some((name.to_owned(), last.to_owned())),
            _ => None,
        };
        self.all += 1;
        self.found += usize::from(found.is_some());
        self.first = self.first.take().or(found);
        name.clone_into(&mut self.last);
    }

    /// Adds what was found in another file.
    pub(super) fn join(&mut self, other: Neighbours) {
        self.first = self.first.take().or(other.first);
        self.found += other.found;
        self.all += other.all;
    }

    /// Refuses two such samples, unless the user names the kind of the source.
    ///
    /// # Errors
    /// [`crate::SourceError::Annotations`].
    pub(super) fn check(&self, options: &Options) -> Result<(), Error> {
        let asked = options.from.is_none() && are_many(self.found, self.all);
        let Some((image, other)) = self.first.as_ref().filter(|_| asked) else { return Ok(()) };
        let problem = format!(
            "the sample {other} may describe {image}: members of one sample have the same name up to the first dot \
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

    /// Returns the pattern of names that have another text in place of `shared`, a part of this one.
    fn pattern(&self, shared: &str) -> String {
        let folders: String = self.folder.split('/').filter(|folder| !folder.is_empty()).map(|_| "*/").collect();
        let begin = shared.as_ptr() as usize - self.stem.as_ptr() as usize;
        format!("{folders}{}*{}.*", &self.stem[..begin], &self.stem[begin + shared.len()..])
    }
}

/// Finds files whose names say that they describe the images next to them.
fn described(entries: &[Entry]) -> Option<String> {
    let names = || entries.iter().map(Name::of);
    let marked: Vec<_> = names().filter_map(|name| Some((name, without(name.stem, is_value)?))).collect();
    // The images of each folder by the part of their names that others share.
    let mut by_folder: HashMap<&str, HashMap<&str, (Name<'_>, &str)>> =
        marked.iter().map(|(name, _)| (name.folder, HashMap::new())).collect();
    for name in names() {
        let Some(images) = by_folder.get_mut(name.folder) else { continue };
        images.insert(name.stem, (name, name.stem));
        if let Some((shared, _)) = without(name.stem, |word| !is_value(word)) {
            images.entry(shared).or_insert((name, shared));
        }
    }
    let pairs = marked.iter().filter_map(|(other, (shared, word))| {
        let image = by_folder[other.folder].get(shared)?;
        Some((image, other, shared, word))
    });
    let pairs: Vec<_> = pairs.collect();
    if !are_many(pairs.len(), entries.len()) {
        return None;
    }
    let ((image, of_image), other, shared, word) = pairs[0];
    Some(format!(
        "{} may describe {}: name the files of a sample by patterns, such as --map image='{}' --map \
         {}='{}'",
        other.key,
        image.key,
        image.pattern(of_image),
        feature(word).unwrap_or("mask"),
        other.pattern(shared)
    ))
}

/// Returns a name without its first or last word, and that word in lower case, if it is one of those. A number after the last word, as of the
/// second mask of an image, is left out, too. The first word ends before a digit or a separator, the last one begins behind a separator.
fn without(name: &str, is: impl Fn(&str) -> bool) -> Option<(&str, String)> {
    const SEPARATORS: [char; 4] = ['_', '-', '.', ' '];
    let numbered = name.rsplit_once(SEPARATORS).filter(|(_, end)| end.bytes().all(|byte| byte.is_ascii_digit()));
    let ends = [Some(name), numbered.map(|(before, _)| before)].into_iter().flatten();
    let ends = ends.filter_map(|name| name.rsplit_once(SEPARATORS));
    let first = name.find(|c: char| !c.is_alphabetic()).map(|at| name.split_at(at));
    let first = first.map(|(word, rest)| (rest.trim_start_matches(SEPARATORS), word));
    let is_word = |(rest, word): &(&str, String)| !rest.is_empty() && word.chars().any(char::is_alphabetic) && is(word);
    ends.chain(first).map(|(rest, word)| (rest, word.to_lowercase())).find(is_word)
}

fn is_value(word: &str) -> bool {
    VALUES.contains(&word) || feature(word).is_some()
}

/// Finds an extension without loss all of whose files have a partner of the same name with another extension.
fn twins(entries: &[Entry]) -> Option<String> {
    let mut all = BTreeMap::<&str, usize>::new();
    let mut pairs = BTreeMap::<(&str, &str), (usize, Name<'_>, Name<'_>)>::new();
    entries.iter().for_each(|entry| *all.entry(Name::of(entry).extension).or_default() += 1);
    let is = |extensions: &[&str], name: &Name<'_>| extensions.contains(&&*name.extension.to_lowercase());
    for pair in entries.windows(2) {
        let (first, second) = (Name::of(&pair[0]), Name::of(&pair[1]));
        if (first.folder, first.stem) != (second.folder, second.stem) {
            continue;
        }
        for (image, other) in [(first, second), (second, first)] {
            if (is(&LOSSY, &image) || is(&EXACT, &image)) && is(&EXACT, &other) {
                pairs.entry((image.extension, other.extension)).or_insert((0, image, other)).0 += 1;
            }
        }
    }
    // Half of the files, at least, belong to such a pair.
    let found = pairs
        .into_iter()
        .find(|((_, other), (count, ..))| *count > 1 && all[other] == *count && 4 * count >= entries.len());
    found.map(|(_, (_, image, other))| {
        format!(
            "each .{1} has the name of a .{0}, such as {2} and {3}, and may describe it or be the same image again: name the files of \
             a sample by patterns, such as --map image='**.{0}' --map mask='**.{1}'",
            image.extension, other.extension, image.key, other.key
        )
    })
}

/// Finds two top folders whose names say that one holds what is to be made of the other, if their files have the same names, and no other
/// folder has files of these names: classes are often numbered alike.
fn translated(entries: &[Entry]) -> Option<String> {
    let mut names = BTreeMap::<&str, BTreeSet<&str>>::new();
    let mut begin = 0;
    // Entries of a folder follow each other.
    for group in entries.chunk_by(|a, b| top(a) == top(b)) {
        begin += group.len();
        // Many folders are classes.
        if names.len() > FOLDERS {
            return None;
        }
        let folder = top(&group[0])?;
        let inside = group.iter().map(|entry| &entry.key[folder.len() + 1..]);
        names
            .entry(folder)
            .or_default()
            .extend(inside.map(|path| path.rsplit_once('.').map_or(path, |(stem, _)| stem)));
    }
    debug_assert_eq!(begin, entries.len());
    let same = |of: &str| names.keys().filter(|other| **other != of && names[*other] == names[of]).count();
    let named = |name: &str| names.keys().copied().find(|folder| folder.eq_ignore_ascii_case(name));
    let is_value = |name: &str| feature(&name.to_lowercase()).is_some();
    let changes = names.keys().any(|name| is_value(name)).then_some(CHANGES);
    let known = TRANSLATIONS.into_iter().chain(changes).filter_map(|(from, to)| Some((named(from)?, named(to)?)));
    // Further folders of the same names hold values, such as the changes from `A` to `B`.
    let known = known.filter(|pair| names.keys().all(|name| *name == pair.0 || *name == pair.1 || is_value(name)));
    let values = || names.keys().copied().filter(|name| is_value(name));
    // `no_mask` is a class, and so is `mask` then.
    let is_without = |image: &str, value: &str| image.to_lowercase().contains(&value.to_lowercase());
    let of_values = values().flat_map(|value| {
        let images = names.keys().copied().filter(|name| !is_value(name));
        images.filter(|image| !is_without(image, value)).map(move |image| (image, value)).collect::<Vec<_>>()
    });
    let of_values = of_values.filter(|(_, value)| same(value) == 1);
    let found =
        known.chain(of_values).find(|(images, others)| names[images].len() > 1 && names[images] == names[others]);
    found.map(|(images, others)| {
        format!(
            "all files of the folders {images} and {others} have the same names, so they may belong together, and be no classes: name \
             the files of a sample by patterns, such as --map image='{images}/**.*' --map {}='{others}/**.*'",
            feature(&others.to_lowercase()).unwrap_or("target")
        )
    })
}

/// Returns the top folder of an entry.
fn top(entry: &Entry) -> Option<&str> {
    entry.key.split_once('/').map(|(folder, _)| folder)
}

/// Returns the feature that files with this word in their names, or in a folder of this name, become.
fn feature(word: &str) -> Option<&'static str> {
    PIXEL_VALUES.iter().find(|(_, words)| words.contains(&word)).map(|(feature, _)| *feature)
}
