//! Converts keys to file names: unique in their split, without an extension, and inside the destination.

use super::sample::Sample;
use crate::Error;
use shardtool_read::Split;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Extensions of images, which are removed from keys.
const EXTENSIONS: [&str; 9] = ["jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm"];

/// Decides which names need the record's number to be unique. Building it takes 8 bytes per record.
#[derive(Default)]
pub(super) struct FileNames {
    /// Hashes of names that several records have, sorted.
    repeated: Box<[u64]>,
    /// Whether names have no dot in their last part.
    dotless: bool,
}

impl FileNames {
    /// Collects the names of a split's records. With `dotless`, names have no dot in their last part.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(super) fn new(split: &Split, dotless: bool) -> Result<Self, Error> {
        let mut hashes = vec![];
        for number in 0..split.entry().shards.len() {
            let shard = split.shard(number)?;
            for (_, row) in split.rows(number)? {
                hashes.push(hash(&name(&String::from_utf8_lossy(&shard.key(row)?), dotless)));
            }
        }
        hashes.sort_unstable();
        let mut repeated: Vec<_> = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        repeated.dedup();
        Ok(FileNames { repeated: repeated.into(), dotless })
    }

    /// Returns a sample's name, with `/` between its parts. A name that other records have too ends in the record's
    /// number.
    pub(super) fn name(&self, sample: &Sample<'_>) -> String {
        let name = name(&sample.key, self.dotless);
        match self.repeated.binary_search(&hash(&name)) {
            Ok(_) => format!("{name}~{}", sample.id),
            Err(_) => name,
        }
    }
}

/// Ignores case, since some file systems do.
fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.to_lowercase().hash(&mut hasher);
    hasher.finish()
}

/// Converts a key to a relative path without an image's extension, without empty or hidden parts, and without `..`.
fn name(key: &str, dotless: bool) -> String {
    let mut parts: Vec<_> = key.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let last = parts.pop().unwrap_or_default();
    // A folder must not have the name of an image's file.
    let folder = |text: &str| match image_name(text) {
        Some((bare, extension)) => part(&format!("{bare}_{extension}")),
        None => part(text),
    };
    let mut parts: Vec<_> = parts.into_iter().map(folder).collect();
    let bare = part(image_name(last).map_or(last, |(bare, _)| bare));
    parts.push(if dotless { bare.replace('.', "_") } else { bare });
    parts.join("/")
}

/// Splits the file name of an image into name and extension.
fn image_name(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.').filter(|(_, e)| EXTENSIONS.iter().any(|known| e.eq_ignore_ascii_case(known)))
}

/// Converts a part of a path to a plain file name.
pub(super) fn part(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() || matches!(c, '/' | '\\') { '_' } else { c }).collect();
    // A leading dot would hide the file, or lead to the parent folder.
    match plain.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if plain.is_empty() => "_".to_owned(),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_and_have_no_extension() {
        for (key, expected) in [
            ("cat/001.jpg", "cat/001"),
            ("cat/001.v2.JPEG", "cat/001.v2"),
            ("001", "001"),
            ("../../etc/passwd", "_./_./etc/passwd"),
            ("/etc/passwd", "etc/passwd"),
            ("a//./b.png", "a/b"),
            (".hidden", "_hidden"),
            ("", "_"),
            ("..", "_."),
            ("a\0\nb\\c", "a__b_c"),
        ] {
            assert_eq!(name(key, false), expected, "{key:?}");
        }
        assert_eq!(name("v1.0/a.b.jpg", true), "v1.0/a_b");
        assert_eq!(name("a.jpg/b", false), "a_jpg/b");
    }
}
