//! Names of files and folders that are no inputs and no classes: those that systems leave behind, and the parts of known
//! layouts.

use shardtool_format::names;
use std::path::Path;

/// Names that systems and tools write into any folder, in lower case. Names that begin with `.` are ignored as well.
const SYSTEM: [&str; 10] = [
    "__macosx",
    "__pycache__",
    "@eadir",
    "#recycle",
    "$recycle.bin",
    "system volume information",
    "lost+found",
    "thumbs.db",
    "ehthumbs.db",
    "desktop.ini",
];
/// Names of folders that hold the images of a layout.
pub(super) const IMAGES: [&str; 11] = [
    "images",
    "image",
    "imgs",
    "img",
    "img_dir",
    "rgb",
    "jpegimages",
    "leftimg8bit",
    "image_2",
    "imagestr",
    "imagests",
];
/// Names of folders with values for each pixel of the images, and the features that they become.
pub(super) const PIXEL_VALUES: [(&str, &[&str]); 6] = [
    (
        "mask",
        &[
            "masks",
            "mask",
            "annotations",
            "annotation",
            "ann_dir",
            "labels",
            "label",
            "segmentations",
            "segmentationclass",
            "gt",
            "ground_truth",
            "groundtruth",
            "labelstr",
        ],
    ),
    ("instance_mask", &["instances", "instance", "segmentationobject"]),
    ("panoptic", &["panoptic"]),
    ("depth", &["depth", "depths", "depth_map", "depth_maps"]),
    ("disparity", &["disparity", "disparities", "disp_occ_0", "disp_noc_0"]),
    ("flow", &["flow", "flows", "flow_occ", "flow_noc", "optical_flow"]),
];
/// Names of other folders that describe images.
const TARGETS: [&str; 7] = ["annots", "imagesets", "gtfine", "gtcoarse", "label_2", "calib", "bboxes"];

/// Returns whether a system or tool wrote a file or folder of this name, so that it is left out.
pub(crate) fn is_system(name: &str) -> bool {
    SYSTEM.contains(&name.to_lowercase().as_str())
}

/// Returns whether a file or folder belongs to a dataset in `folder` that describes what else is there, so that it is left out: the
/// manifest, indexes, and others.
pub(crate) fn is_of_dataset(folder: &Path, name: &str) -> bool {
    let own = [names::MANIFEST, names::INDEX_FOLDER, names::VERSIONS_FOLDER, names::COLUMNS_FOLDER].contains(&name)
        || (name.starts_with("rejected-") && name.ends_with(".jsonl"))
        || [".pack-", ".packed-", ".dataset.", ".manifest."].iter().any(|begin| name.starts_with(begin));
    // An unfinished one has no manifest.
    let is_plan = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".pack-");
    let mut entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    own && (folder.join(names::MANIFEST).is_file() || entries.any(|entry| is_plan(&entry.file_name())))
}

/// Returns whether folders of these names are the parts of a layout, and no classes: one holds the images, or each of them a
/// part.
pub(super) fn are_parts<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let names: Vec<_> = names.map(str::to_lowercase).collect();
    names.iter().any(|name| IMAGES.contains(&name.as_str()))
        || (!names.is_empty() && names.iter().all(|name| is_target(name)))
}

/// Returns whether folders of these names inside classes hold images and what describes them.
pub(super) fn mix_parts<'a>(names: impl Iterator<Item = &'a str>) -> bool {
    let names: Vec<_> = names.map(str::to_lowercase).collect();
    names.iter().any(|name| IMAGES.contains(&name.as_str())) && names.iter().any(|name| is_target(name))
}

/// Returns whether a folder of this name, in lower case, describes images or holds what is predicted for them.
fn is_target(name: &str) -> bool {
    TARGETS.contains(&name) || PIXEL_VALUES.iter().any(|(_, names)| names.contains(&name))
}

/// Joins names for a message: the first ones, and how many more there are.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 8;
    let names: Vec<_> = names.collect();
    match names.len() {
        ..=SHOWN => names.join(", "),
        all => format!("{} and {} more", names[..SHOWN].join(", "), all - SHOWN),
    }
}
