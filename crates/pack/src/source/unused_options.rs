//! Refuses options that the kind of a source does not have: what has no effect may be a mistake about the source.

use super::PANOPTIC;
use super::archive::files::ArchiveKind;
use super::detect::DetectedSource as Detected;
use super::listing::Listing;
use crate::options::DEFAULT_QUALITY;
use crate::sample::SampleSchema;
use crate::{Error, Options, SplitNames};
use shardtool_format::manifest::DType;
use shardtool_format::{BoxFormat, BoxUnit};

/// Checks the options of a source.
///
/// # Errors
/// [`Error::Option`] for the first one without effect, with the kind of source that has it.
pub(super) fn check(found: &Detected, options: &Options) -> Result<(), Error> {
    let archives = matches!(found, Detected::Archives(_));
    let tars = matches!(found, Detected::Archives(files) if files.kind == ArchiveKind::Webdataset);
    let list = matches!(found, Detected::List);
    let pairs = matches!(found, Detected::Pairs(..));
    let (voc, yolo) = (matches!(found, Detected::Voc(_)), matches!(found, Detected::Yolo(..)));
    let coco = matches!(found, Detected::Coco);
    let fixed_boxes = voc || yolo;
    let boxes = list || coco || archives;
    // An option, whether it is given, whether the source has it, and what has it.
    let rules = [
        ("column", !options.frames.is_empty(), list, "a list as the source of a column of frames"),
        (
            "column",
            !options.files.is_empty(),
            list || pairs,
            "a list (CSV or JSON Lines) as the source of a column of files",
        ),
        (
            "splits",
            options.split_names == SplitNames::Lists,
            pairs,
            "lists only for images and files that belong to them by their names",
        ),
        ("label offset", options.label_offset != 0, archives, "0, but for archives with labels that are numbers"),
        (
            "boxes",
            options.boxes != BoxFormat::Xywh && fixed_boxes,
            false,
            "no format: that of Pascal VOC and of YOLO is fixed",
        ),
        ("boxes", options.boxes != BoxFormat::Xywh, boxes, "a source with boxes"),
        ("first pixel", options.first_pixel != 1, voc, "a folder of Pascal VOC as the source"),
        ("box unit", yolo && options.box_unit == Some(BoxUnit::Pixel), false, "fraction, as YOLO has it"),
        ("box unit", voc && options.box_unit == Some(BoxUnit::Fraction), false, "pixel, as Pascal VOC has it"),
        ("box unit", options.box_unit.is_some(), boxes || fixed_boxes, "a source with boxes"),
        (
            "annotated",
            options.annotated.is_some(),
            boxes || fixed_boxes || pairs,
            "a source with boxes, keypoints or masks of its images",
        ),
        ("map", !options.map.is_empty(), archives || pairs, "a source whose samples have named fields"),
        ("member key", options.member_key.is_some(), tars, "a tar as the source"),
        ("images", options.images.is_some(), coco, "a COCO annotation file as the source"),
        (
            "JPEG quality",
            options.quality != DEFAULT_QUALITY,
            options.resize.is_some(),
            "a size to resize to: other files are kept",
        ),
        (
            "array",
            !options.arrays.is_empty(),
            list || pairs || archives,
            "a list (CSV or JSON Lines) as the source, or files that belong to images by their names",
        ),
        (
            "columns",
            pairs && !(options.columns.is_empty() && options.files.is_empty()),
            false,
            "arrays and flow only: each feature of files that belong to images holds files",
        ),
    ];
    match rules.into_iter().find(|(_, given, has, _)| *given && !has) {
        Some((option, _, _, expected)) => Err(Error::Option { option, expected }),
        None => Ok(()),
    }
}

/// Checks that a file of class names has something to name: a label, the classes of objects, or the values of files such as masks.
///
/// # Errors
/// [`Error::Option`].
pub(super) fn check_classes(listing: &Listing, options: &Options) -> Result<(), Error> {
    let SampleSchema { labelled, columns, .. } = &listing.schema;
    let ids = columns.iter().any(|(name, _)| name.starts_with("image/object/") || name == PANOPTIC);
    let files = !options.files.is_empty() || columns.iter().any(|(_, dtype)| *dtype == DType::Bytes);
    match options.classes.is_some() && !labelled && !ids && !files && !listing.entries.is_empty() {
        true => Err(Error::Option {
            option: "classes",
            expected: "a source with labels: this one has no class folders and no column `label`",
        }),
        false => Ok(()),
    }
}
