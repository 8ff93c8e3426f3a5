//! Names made of keys: unique in their split, without an extension, and never outside the destination.

use super::sample::Sample;
use crate::Error;
use shardtool_read::Split;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Extensions that images have, which keys are relieved of.
const EXTENSIONS: [&str; 9] = ["jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "ppm"];

/// Which keys need the record's number to be unique. 8 bytes a record while it is made.
#[derive(Default)]
pub(super) struct FileNames {
    /// Hashes of names that more than one record has, sorted.
    repeated: Box<[u64]>,
    /// Names have no dot in their last part.
    dotless: bool,
}

impl FileNames {
    /// The names of a split's records; `dotless` ones have no dot in their last part.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub(super) fn new(split: &Split, dotless: bool) -> Result<Self, Error> {
        let mut hashes = vec![];
        for number in 0..split.entry().shards.len() {
            let shard = split.shard(number)?;
            for row in 0..shard.records() {
                hashes.push(hash(&name(&String::from_utf8_lossy(&shard.key(row)?), dotless)));
            }
        }
        hashes.sort_unstable();
        let mut repeated: Vec<_> = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        repeated.dedup();
        Ok(FileNames { repeated: repeated.into(), dotless })
    }

    /// A sample's name, with `/` between its parts; one that others have too carries the record's number.
    pub(super) fn name(&self, sample: &Sample<'_>) -> String {
        let name = name(&sample.key, self.dotless);
        match self.repeated.binary_search(&hash(&name)) {
            Ok(_) => format!("{name}~{}", sample.id),
            Err(_) => name,
        }
    }
}

/// Some file systems take `A` and `a` for the same.
fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.to_lowercase().hash(&mut hasher);
    hasher.finish()
}

/// A key as a relative path without an image's extension: no empty part, none that leads up or is hidden.
fn name(key: &str, dotless: bool) -> String {
    let mut parts: Vec<_> = key.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let last = parts.pop().unwrap_or_default();
    // A folder named as an image is would be in that image's way.
    let folder = |text: &str| match image_name(text) {
        Some((bare, extension)) => part(&format!("{bare}_{extension}")),
        None => part(text),
    };
    let mut parts: Vec<_> = parts.into_iter().map(folder).collect();
    let bare = part(image_name(last).map_or(last, |(bare, _)| bare));
    parts.push(if dotless { bare.replace('.', "_") } else { bare });
    parts.join("/")
}

/// A file name of an image, without its extension, and that.
fn image_name(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('.').filter(|(_, e)| EXTENSIONS.iter().any(|known| e.eq_ignore_ascii_case(known)))
}

/// A part of a path as a plain name.
pub(super) fn part(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() || matches!(c, '/' | '\\') { '_' } else { c }).collect();
    // A leading dot hides, or leads up.
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
