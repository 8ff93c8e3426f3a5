//! Layouts of well-known datasets, as patterns of their files.

use super::super::annotated::wrong;
use super::super::detect::{other_files, subfolders};
use crate::Error;
use std::path::Path;

/// The field of the images among the patterns.
pub(super) const IMAGE: &str = "image";

/// The features of a layout, that of the images first, and the patterns of their files.
pub(super) type Patterns = Vec<(String, String)>;

/// A layout that was found.
pub(super) struct Known {
    pub(super) patterns: Patterns,
    /// The split of images in no folder that is named for one, if the layout has only this one.
    pub(super) split: Option<&'static str>,
}

/// Patterns of Cityscapes, in the order in which folders of the same feature are chosen.
const CITYSCAPES: [(&str, &str); 5] = [
    ("mask", "gtFine/**_gtFine_labelIds.png"),
    ("instance_mask", "gtFine/**_gtFine_instanceIds.png"),
    ("mask", "gtCoarse/**_gtCoarse_labelIds.png"),
    ("instance_mask", "gtCoarse/**_gtCoarse_instanceIds.png"),
    ("disparity", "disparity/**_disparity.png"),
];
const CITYSCAPES_IMAGES: (&str, &str) = ("leftImg8bit", "leftImg8bit/**_leftImg8bit.png");

/// Patterns of KITTI's depths: raw images lie below a date, depths below a split, each in a folder for each drive.
const KITTI: [(&str, &str); 3] = [
    (IMAGE, "{**}/*_drive_*_sync/image_*/data/*.*"),
    ("depth", "{**}/*_drive_*_sync/proj_depth/groundtruth/image_*/*.*"),
    ("sparse_depth", "{**}/*_drive_*_sync/proj_depth/velodyne_raw/image_*/*.*"),
];
/// The folder of KITTI's selection for validation: that of the archive, or of a part of it.
const KITTI_SELECTION: [&str; 3] = ["", "val_selection_cropped/", "depth_selection/val_selection_cropped/"];
/// Patterns of the selection in its folder: the middle of a name says what the file holds.
const KITTI_SELECTED: [(&str, &str); 4] = [
    (IMAGE, "image/*_sync_image_*.png"),
    ("depth", "groundtruth_depth/*_sync_groundtruth_depth_*.png"),
    ("sparse_depth", "velodyne_raw/*_sync_velodyne_raw_*.png"),
    ("intrinsics", "intrinsics/*_sync_image_*.txt"),
];
/// Patterns of NYU Depth v2 in folders of scenes.
const NYU: [(&str, &str); 2] = [(IMAGE, "**/rgb_*.*"), ("depth", "**/sync_depth_*.png")];

/// How deep the folders of KITTI's drives and NYU's scenes are searched.
const DEPTH: usize = 3;
/// Folders of more entries, or of more folders that are no drives, are not searched for drives.
const ENTRIES: usize = 1024;
const FOLDERS: usize = 32;

/// Finds a known layout in a folder, which has the folders `top`.
///
/// # Errors
/// [`crate::SourceError::Annotations`] for depths of KITTI without images.
pub(super) fn known(source: &Path, top: &[String]) -> Result<Option<Known>, Error> {
    if let Some(found) = cityscapes(source) {
        return Ok(Some(found));
    }
    let drives = Drives::of(source);
    if drives.images && drives.depths {
        return Ok(Some(Known { patterns: in_folder("", &KITTI), split: None }));
    }
    for folder in KITTI_SELECTION {
        let has = |part: &str| source.join(folder).join(part).is_dir();
        if has("image") && has("groundtruth_depth") {
            return Ok(Some(Known { patterns: in_folder(folder, &KITTI_SELECTED), split: Some("val") }));
        }
    }
    if drives.depths {
        let problem = "it has depths of KITTI, and no images, which lie in DATE/DRIVE/image_02/data: unpack the raw data of KITTI \
            into the same folder";
        return Err(wrong(source, problem));
    }
    Ok(has_scenes(source, top, DEPTH).then(|| Known { patterns: in_folder("", &NYU), split: None }))
}

fn in_folder(folder: &str, patterns: &[(&str, &str)]) -> Patterns {
    patterns.iter().map(|(feature, pattern)| ((*feature).to_owned(), format!("{folder}{pattern}"))).collect()
}

fn cityscapes(source: &Path) -> Option<Known> {
    if !source.join(CITYSCAPES_IMAGES.0).is_dir() {
        return None;
    }
    let mut patterns = in_folder("", &[(IMAGE, CITYSCAPES_IMAGES.1)]);
    for (feature, pattern) in CITYSCAPES {
        let folder = pattern.split('/').next().unwrap_or_default();
        if source.join(folder).is_dir() && patterns.iter().all(|(known, _)| known != feature) {
            patterns.push((feature.to_owned(), pattern.to_owned()));
        }
    }
    (patterns.len() > 1).then_some(Known { patterns, split: None })
}

/// What the folders of KITTI's drives hold.
#[derive(Default)]
struct Drives {
    images: bool,
    depths: bool,
}

impl Drives {
    /// Looks at the drives below a folder. What cannot be listed has none: reading the source reports it.
    fn of(source: &Path) -> Self {
        let mut found = Drives::default();
        found.look(source, DEPTH - 1);
        found
    }

    fn look(&mut self, folder: &Path, depth: usize) {
        let mut others = vec![];
        for entry in std::fs::read_dir(folder).into_iter().flatten().take(ENTRIES).flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            match name.to_str() {
                Some(name) if name.contains("_drive_") && name.ends_with("_sync") => {
                    let has = |part: &str| path.join(part).is_dir();
                    self.images = self.images || has("image_02/data") || has("image_03/data");
                    self.depths = self.depths || has("proj_depth/groundtruth");
                }
                Some(name) if !is_file && !name.starts_with('.') && path.is_dir() => others.push(path),
                _ => {}
            }
        }
        if depth > 0 && others.len() <= FOLDERS {
            others.iter().for_each(|other| self.look(other, depth - 1));
        }
    }
}

/// Returns whether the first folder without folders, below one with these, has the files of a scene of NYU.
fn has_scenes(folder: &Path, inner: &[String], depth: usize) -> bool {
    let Some(first) = inner.first().filter(|_| depth > 0).map(|first| folder.join(first)) else { return false };
    let inner = subfolders(&first).unwrap_or_default();
    if !inner.is_empty() {
        return has_scenes(&first, &inner, depth - 1);
    }
    let files = other_files(&first).unwrap_or_default();
    let has = |begin: &str| files.iter().any(|file| file.starts_with(begin));
    has("rgb_") && has("sync_depth_")
}
