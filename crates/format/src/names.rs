//! Names by convention: of features, as TensorFlow's ImageNet scripts introduced them, and of files.

use crate::example::Example;
use crate::{Error, Result};
use std::borrow::Cow;

/// The image's bytes as stored: a file of the kind that [`IMAGE_FORMAT`] names.
pub const IMAGE_ENCODED: &str = "image/encoded";
/// `jpeg`, `png`, `webp`, `gif`, `bmp`, `tiff`, `raw` or `raw-zstd`.
pub const IMAGE_FORMAT: &str = "image/format";
/// Height as coded, in pixels, before EXIF orientation.
pub const IMAGE_HEIGHT: &str = "image/height";
/// Width as coded, in pixels, before EXIF orientation.
pub const IMAGE_WIDTH: &str = "image/width";
/// Channels as coded: 1 grey, 2 grey + alpha, 3 colour, 4 colour + alpha or CMYK.
pub const IMAGE_CHANNELS: &str = "image/channels";
/// EXIF orientation, 1 to 8; 1 is upright.
pub const IMAGE_ORIENTATION: &str = "image/orientation";
/// Class id, from 0.
pub const CLASS_LABEL: &str = "image/class/label";
/// Class name.
pub const CLASS_TEXT: &str = "image/class/text";
/// Name of the image's file, without folders.
pub const IMAGE_FILENAME: &str = "image/filename";
/// Key: the relative path of the image with `/`, unique in its split.
pub const IMAGE_KEY: &str = "image/key";

/// The manifest's file name.
pub const MANIFEST: &str = "dataset.json";
/// Folder of the indexes, beside the shards.
pub const INDEX_FOLDER: &str = "_index";

/// File name of shard `number` of a split: five digits, more where needed.
pub fn shard_file(split: &str, number: usize) -> String {
    format!("{split}-{number:05}.tfrecord")
}

/// File name of a shard's index inside [`INDEX_FOLDER`].
pub fn index_file(shard: &str) -> String {
    format!("{shard}.index")
}

/// The split that a shard's file name tells: what stands before `-NNNNN` (five digits or more, then anything), else
/// `train`.
///
/// ```
/// use shardtool_format::names::split_of;
/// assert_eq!(split_of("validation-00007.tfrecord"), "validation");
/// assert_eq!(split_of("train-00000-of-00128"), "train");
/// assert_eq!(split_of("photos.tfrecord"), "train");
/// ```
pub fn split_of(file: &str) -> &str {
    let numbered = |(at, _): &(usize, &str)| {
        let digits = file[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        digits >= 5 && check_split_name(&file[..*at]).is_ok()
    };
    file.match_indices('-').find(numbered).map_or("train", |(at, _)| &file[..at])
}

/// The key of a record: [`IMAGE_KEY`], else [`IMAGE_FILENAME`], else `<shard file>#<record>`. `record` counts from 0 in
/// its shard; `example` is `None` for a record that is not an Example.
pub fn key_of<'a>(example: Option<&Example<'a>>, shard_file: &str, record: u64) -> Cow<'a, [u8]> {
    let named = |name| example.and_then(|e| e.bytes(name));
    match named(IMAGE_KEY).or_else(|| named(IMAGE_FILENAME)) {
        Some(key) => Cow::Borrowed(key),
        None => Cow::Owned(format!("{shard_file}#{record}").into_bytes()),
    }
}

/// Checks that `name` is a plain file name: not empty, no separator, not `.` or `..`, no control characters.
///
/// # Errors
/// [`Error::ManifestValue`], since names of files come from manifests.
pub fn check_file_name(member: &'static str, name: &str) -> Result<()> {
    let problem = match name {
        "" => "an empty file name",
        "." | ".." => "not a file name",
        _ if name.contains(['/', '\\']) => "a file name with a path separator",
        _ if name.chars().any(char::is_control) => "a file name with control characters",
        _ => return Ok(()),
    };
    Err(Error::ManifestValue { member, value: name.to_owned(), problem })
}

/// Checks that `name` can be a split's: letters, digits, `.`, `_` and `-`, not first a `.` or `-`; so that shard names
/// made from it are plain everywhere.
///
/// # Errors
/// [`Error::ManifestValue`].
pub fn check_split_name(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.starts_with(['.', '-']) || name.len() > 100 || !name.chars().all(plain) {
        return Err(Error::ManifestValue {
            member: "split name",
            value: name.to_owned(),
            problem: "use 1 to 100 letters, digits, `.`, `_` or `-`, not starting with `.` or `-`",
        });
    }
    Ok(())
}
