//! Conventional names of features, as TensorFlow's ImageNet scripts introduced them, and of files.

use crate::example::Example;
use crate::{Error, Result};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The image's bytes as stored, in the format that [`IMAGE_FORMAT`] names.
pub const IMAGE_ENCODED: &str = "image/encoded";
/// `jpeg`, `png`, `webp`, `gif`, `bmp`, `tiff`, `avif`, `jxl`, `jp2`, `heif`, `raw` or `raw-zstd`.
pub const IMAGE_FORMAT: &str = "image/format";
/// Height as coded, in pixels, before EXIF orientation.
pub const IMAGE_HEIGHT: &str = "image/height";
/// Width as coded, in pixels, before EXIF orientation.
pub const IMAGE_WIDTH: &str = "image/width";
/// Channels as coded: 1 grey, 2 grey + alpha, 3 colour, 4 colour + alpha or CMYK.
pub const IMAGE_CHANNELS: &str = "image/channels";
/// EXIF orientation, 1 to 8; 1 is upright.
pub const IMAGE_ORIENTATION: &str = "image/orientation";
/// Class id plus the manifest's `label_offset`.
pub const CLASS_LABEL: &str = "image/class/label";
/// Class name.
pub const CLASS_TEXT: &str = "image/class/text";
/// Name of the image's file, without folders.
pub const IMAGE_FILENAME: &str = "image/filename";
/// Key: the relative path of the image with `/`, unique in its split.
pub const IMAGE_KEY: &str = "image/key";

/// File name of the manifest.
pub const MANIFEST: &str = "dataset.json";
/// Folder of the indexes, next to the shards.
pub const INDEX_FOLDER: &str = "_index";

/// Folder of the manifests of earlier versions.
pub const VERSIONS_FOLDER: &str = "_versions";
/// Folder of the columns and bitmaps of shards that changed.
pub const COLUMNS_FOLDER: &str = "_columns";

/// Returns the path of the manifest of an earlier version, from the dataset's folder.
pub fn version_path(number: u64) -> PathBuf {
    Path::new(VERSIONS_FOLDER).join(format!("{number:06}.json"))
}

/// Returns whether a name is that of a folder that datasets with versions have.
pub fn is_version_folder(name: &str) -> bool {
    [VERSIONS_FOLDER, COLUMNS_FOLDER].iter().any(|folder| name.eq_ignore_ascii_case(folder))
}

/// Returns the file name of shard `number` of a split: at least five digits.
pub fn shard_file(split: &str, number: usize) -> String {
    format!("{split}-{number:05}.tfrecord")
}

/// Returns the file name of a shard's index inside [`INDEX_FOLDER`].
pub fn index_file(shard: &str) -> String {
    format!("{shard}.index")
}

/// Returns the path of the index of the shard at `shard`.
///
/// ```
/// use shardtool_format::names::index_path;
/// use std::path::Path;
/// let index = index_path(Path::new("imagenet/train-00000.tfrecord"));
/// assert_eq!(index, Path::new("imagenet/_index/train-00000.tfrecord.index"));
/// ```
pub fn index_path(shard: &Path) -> PathBuf {
    let mut file = shard.file_name().unwrap_or_default().to_owned();
    file.push(".index");
    shard.with_file_name(INDEX_FOLDER).join(file)
}

/// Returns the split in a shard's file name: the part before the first `-` that is followed by a number of at least
/// five digits, else `train`. A number ends where a letter or another digit does not follow.
///
/// ```
/// use shardtool_format::names::split_of;
/// assert_eq!(split_of("validation-00007.tfrecord"), "validation");
/// assert_eq!(split_of("train-00000-of-00128"), "train");
/// assert_eq!(split_of("photos.tfrecord"), "train");
/// assert_eq!(split_of("photos-000001b.tfrecord"), "train");
/// ```
pub fn split_of(file: &str) -> &str {
    let numbered = file.match_indices('-').find(|(at, _)| {
        let rest = file[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = file.len() - (at + 1) - rest.len();
        *at > 0 && digits >= 5 && !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
    });
    numbered.map_or("train", |(at, _)| &file[..at])
}

/// Returns the key of a record: [`IMAGE_KEY`], else [`IMAGE_FILENAME`], else `<shard file>#<record>`. `record` counts
/// from 0 in its shard; `example` is `None` for a record that is not an Example.
pub fn key_of<'a>(example: Option<&Example<'a>>, shard_file: &str, record: u64) -> Cow<'a, [u8]> {
    match example.and_then(stored_key) {
        Some(key) => Cow::Borrowed(key),
        None => Cow::Owned(format!("{shard_file}#{record}").into_bytes()),
    }
}

/// Returns the key that a record stores: [`IMAGE_KEY`], else [`IMAGE_FILENAME`].
pub fn stored_key<'a>(example: &Example<'a>) -> Option<&'a [u8]> {
    example.bytes(IMAGE_KEY).or_else(|| example.bytes(IMAGE_FILENAME))
}

/// Checks that `name` is a plain file name: not empty, no separator, not `.` or `..`, no control characters.
///
/// # Errors
/// [`Error::ManifestValue`]: file names come from manifests.
pub fn check_plain_name(member: &'static str, name: &str) -> Result<()> {
    let problem = match name {
        "" => "an empty file name",
        "." | ".." => "not a file name",
        _ if name.contains(['/', '\\']) => "a file name with a path separator",
        _ if name.chars().any(char::is_control) => "a file name with control characters",
        _ => return Ok(()),
    };
    Err(Error::ManifestValue { member, value: name.to_owned(), problem })
}

/// Checks that `name` is valid for a shard: a plain file name on every file system, and not that of another file of a
/// dataset.
///
/// # Errors
/// [`Error::ManifestValue`].
pub fn check_file_name(member: &'static str, name: &str) -> Result<()> {
    check_plain_name(member, name)?;
    let lower = name.to_ascii_lowercase();
    let problem = match name {
        _ if name.contains(':') => "a file name with `:`",
        _ if name.starts_with('.') => "a file name that begins with `.`",
        _ if name.ends_with(['.', ' ']) => "a file name that ends in `.` or a space",
        _ if lower == MANIFEST || lower == INDEX_FOLDER => "the name of another file of the dataset",
        _ if lower.starts_with("rejected-") && lower.ends_with(".jsonl") => "the name of a list of rejected inputs",
        _ if is_device_name(name) => "the name of a device on Windows",
        _ => return Ok(()),
    };
    Err(Error::ManifestValue { member, value: name.to_owned(), problem })
}

/// Returns whether Windows opens a device for this file name: the part before the first `.`, without trailing spaces
/// and ignoring case, is the name of one.
fn is_device_name(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_ascii_uppercase();
    let numbered = |prefix| {
        let mut digits = stem.strip_prefix(prefix).unwrap_or_default().chars();
        matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || numbered("COM") || numbered("LPT")
}

/// Checks that `name` is valid for a split: 1 to 100 ASCII letters, digits, `.`, `_` and `-`, not starting with `.` or
/// `-`, not `_index`, and not the name of a device on Windows. The file names of its shards are then valid on every file
/// system.
///
/// # Errors
/// [`Error::ManifestValue`].
pub fn check_split_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let problem = if name.is_empty() || name.starts_with(['.', '-']) || name.len() > 100 || !name.chars().all(plain) {
        "use 1 to 100 letters, digits, `.`, `_` or `-`, not starting with `.` or `-`"
    } else if name.eq_ignore_ascii_case(INDEX_FOLDER) {
        "the name of the folder of indexes"
    } else if is_device_name(name) {
        "the name of a device on Windows"
    } else {
        return Ok(());
    };
    Err(Error::ManifestValue { member: "split name", value: name.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_is_the_part_before_a_number_of_five_digits() {
        for (file, split) in [
            ("train-00000.tfrecord", "train"),
            ("train-00000-of-01024", "train"),
            ("validation-100000.tfrecord", "validation"),
            ("imagenet2012-train.tfrecord-00007-of-01024", "imagenet2012-train.tfrecord"),
            ("cifar-10-test-00000.tfrecord", "cifar-10-test"),
            ("data.tfrecord", "train"),
            ("data-0000.tfrecord", "train"),
            ("-00000", "train"),
            ("a-000001b", "train"),
            ("a-000001b-00002", "a-000001b"),
            ("a-00001é", "a"),
        ] {
            assert_eq!(split_of(file), split, "{file}");
        }
    }

    #[test]
    fn file_names_are_valid_on_every_file_system() {
        let ok = |name: &str| check_file_name("shard file", name).is_ok();
        for name in
            ["train-00000.tfrecord", "a b", "grün", "COM10", "LPT", "COM¼", "xCON", "rejected-a", "_index2", "a.con"]
        {
            assert!(ok(name), "{name}");
        }
        for name in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "C:a",
            "a\u{1}",
            "a\u{7f}",
            "a\u{85}",
            "a.",
            "a ",
            ".hidden",
            "dataset.json",
            "Dataset.JSON",
            "_index",
            "_INDEX",
            "rejected-.jsonl",
            "Rejected-train.JSONL",
            "con",
            "Prn.tfrecord",
            "AUX .x",
            "nul.a.b",
            "conin$",
            "CONOUT$.x",
            "com0",
            "COM9.tfrecord",
            "lpt0",
            "COM¹",
            "lpt³.x",
            "COM² .x",
        ] {
            assert!(!ok(name), "{name:?}");
        }
        for (name, valid) in [("train", true), ("_index", false), ("_Index", false), ("nul", false), ("com1.x", false)]
        {
            assert_eq!(check_split_name(name).is_ok(), valid, "{name}");
        }
    }
}
