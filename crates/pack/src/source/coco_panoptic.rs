//! Panoptic segmentations of a COCO file, such as `panoptic_val2017.json`: a PNG of ids for each image, and the segments that have them.

use super::annotated::{attached, problem};
use super::coco_annotation::Annotation;
use crate::sample::Values;
use crate::{Options, Reason};
use serde_json::Value;
use shardtool_store::is_url;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// The PNG of an image: ids of segments, coded as R + 256 G + 65,536 B.
pub(crate) const PANOPTIC: &str = "image/panoptic";
const SEGMENTS: &str = "segments_info";
const FILE: &str = "file_name";

/// The PNGs of a file.
pub(super) struct Panoptic {
    folder: PathBuf,
    /// Their names, by the ids of the images.
    names: HashMap<i64, String>,
}

impl Panoptic {
    /// Takes the names of the PNGs from annotations, and makes an object of each segment. Returns `None`, and the annotations as they are,
    /// if they are objects or captions.
    ///
    /// # Errors
    /// What is wrong: an annotation without a name or segments, two of one image, or a missing folder.
    pub(super) fn of(file: &Path, annotations: Vec<Annotation>) -> Result<(Option<Self>, Vec<Annotation>), String> {
        if !annotations.iter().any(|annotation| annotation.others.contains_key(SEGMENTS)) {
            return Ok((None, annotations));
        }
        let (mut names, mut objects) = (HashMap::new(), vec![]);
        for mut annotation in annotations {
            let image = annotation.image_id;
            let (segments, name) = (annotation.others.remove(SEGMENTS), annotation.others.remove(FILE));
            let (Some(Value::Array(segments)), Some(Value::String(name))) = (segments, name) else {
                return Err(format!(
                    "the annotation of image {image} has no `{FILE}` or no `{SEGMENTS}`, as all others have"
                ));
            };
            if let Some((member, _)) = annotation.others.iter().next() {
                return Err(format!(
                    "the annotation of image {image} has the member `{member}`, for which samples have no place: remove it"
                ));
            }
            if Path::new(&name).components().any(|part| !matches!(part, Component::Normal(_))) {
                return Err(format!(
                    "the annotation of image {image} names {name}, which lies outside of the folder of the PNGs"
                ));
            }
            if names.insert(image, name).is_some() {
                return Err(format!("two panoptic segmentations of image {image}"));
            }
            let first = objects.len();
            for mut segment in segments {
                if let Value::Object(members) = &mut segment {
                    members.insert("image_id".to_owned(), image.into());
                }
                let object = serde_json::from_value(segment);
                objects.push(object.map_err(|error| format!("a segment of image {image}: {error}"))?);
            }
            check_ids(image, &objects[first..])?;
        }
        Ok((Some(Panoptic { folder: folder(file)?, names }), objects))
    }

    /// Returns the PNG of an image, whose file name is given.
    ///
    /// # Errors
    /// [`Reason::Annotation`] if it has none; [`Reason::File`].
    pub(super) fn value(&self, image: i64, file: &str, options: &Options) -> Result<Values, Reason> {
        let wrong = |reason| Reason::File { column: PANOPTIC.to_owned(), reason: Box::new(reason) };
        let none = || problem(file, None, format!("no annotation is one of this image, whose id is {image}"));
        let name = self.names.get(&image).ok_or_else(none)?;
        let path = self.folder.join(name).to_string_lossy().into_owned();
        attached(Path::new(""), path, options).map_err(wrong)
    }
}

/// Checks that the ids of an image's segments differ, and that 24 bits hold them.
fn check_ids(image: i64, segments: &[Annotation]) -> Result<(), String> {
    let mut ids: Vec<_> = segments.iter().map(|segment| segment.id).collect();
    ids.sort_unstable();
    if let Some(id) = ids.iter().find(|id| !(1..1 << 24).contains(*id)) {
        return Err(format!("image {image} has a segment with the id {id}; expected 1 to 16,777,215, which RGB codes"));
    }
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(format!("image {image} has two segments with the id {}", twice[0])),
        None => Ok(()),
    }
}

/// Returns the folder of the PNGs, without links: that of the name of the file, next to it or above its folder.
fn folder(file: &Path) -> Result<PathBuf, String> {
    let stem = file.file_stem().unwrap_or_default();
    let next_to = file.with_file_name(stem);
    let above = file.parent().and_then(Path::parent).map(|above| above.join(stem));
    let found = [Some(&next_to), above.as_ref()].into_iter().flatten().find(|folder| folder.is_dir());
    let missing = || {
        format!(
            "its PNGs were expected in {}, a folder that does not exist on a disk: unpack them there",
            next_to.display()
        )
    };
    match found.filter(|_| !is_url(file)) {
        Some(folder) => folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display())),
        None => Err(missing()),
    }
}
