//! Reads the frames of a clip, and checks that each is an image like the first one.

use super::{Counted, conversion, read};
use crate::input::{Times, place};
use crate::sample::{FrameFiles, ListedClip, Values};
use crate::source::clips::frames_in;
use crate::{Options, Reason};
use shardtool_decode::{self as decode, Format, ImageInfo};
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// The frames of a clip that were read.
pub(super) struct ClipFrames {
    pub(super) frames: Values,
    /// The format of all of them.
    pub(super) format: Format,
    /// What is counted of them.
    pub(super) counted: Counted,
    /// The file of each that is stored as it is.
    pub(super) files: Vec<Option<PathBuf>>,
}

/// Reads the frames of a clip, which lie below `root`.
///
/// # Errors
/// The reason why the clip cannot be packed.
pub(super) fn read_clip(root: &Path, clip: &ListedClip, options: &Options) -> Result<ClipFrames, Reason> {
    let limit = u64::from(u32::MAX);
    if clip.size > limit {
        return Err(Reason::SampleTooLong { bytes: clip.size, limit });
    }
    let (folder, files) = match &clip.frames {
        FrameFiles::Folder(folder) => {
            let folder = root.join(&**folder);
            let files = frames_in(&folder, Times::of(options))?;
            if !clip.has(&files) {
                return Err(Reason::FramesChanged);
            }
            (folder, Cow::Owned(files))
        }
        FrameFiles::Files(files) => (root.to_owned(), Cow::Borrowed(&**files)),
    };
    let mut first: Option<ImageInfo> = None;
    let mut frames = Vec::with_capacity(files.len());
    let mut counted = Counted::default();
    let mut paths = vec![];
    for file in files.iter() {
        let mut bytes = vec![];
        let path = place(&folder, &file.path);
        let mut is_unchanged = true;
        let read = read(&path, file.size, &mut bytes).and_then(|()| {
            if let Some(png) = conversion::image(&bytes, &file.path, &options.limits)? {
                bytes = png.into_owned();
                (counted.converted, is_unchanged) = (true, false);
            }
            counted.truncated |= check(&bytes, options, &mut first)?;
            Ok(())
        });
        read.map_err(|reason| Reason::Frame { file: file.path.to_string(), reason: Box::new(reason) })?;
        frames.push(bytes.into_boxed_slice());
        paths.push(is_unchanged.then_some(path));
    }
    let first = first.ok_or(Reason::NoFrames)?;
    Ok(ClipFrames { frames: Values::BytesList(frames.into()), format: first.format, counted, files: paths })
}

/// Checks that a frame is a complete image with the size, the format and the orientation of the first one. Returns whether it is cut,
/// if the options accept that.
fn check(bytes: &[u8], options: &Options, first: &mut Option<ImageInfo>) -> Result<bool, Reason> {
    if bytes.is_empty() {
        return Err(Reason::Empty);
    }
    let info = decode::probe(bytes, &options.limits)?;
    let is_cut = options.is_cut(bytes)?;
    let described = |info: &ImageInfo| {
        let turned =
            if info.orientation == 1 { String::new() } else { format!(", EXIF orientation {}", info.orientation) };
        format!("{} of {}x{} pixels{turned}", info.format.name(), info.width, info.height)
    };
    let (found, expected) = (described(&info), described(first.get_or_insert(info)));
    if found == expected { Ok(is_cut) } else { Err(Reason::FrameDiffers { found, expected }) }
}
