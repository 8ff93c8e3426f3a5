//! Panoptic segmentations of a COCO file, such as `panoptic_val2017.json`: a PNG of ids for each image, and the segments that have them.

use super::annotated::attached;
use super::coco_annotation::Annotation;
use crate::sample::Values;
use crate::{Options, Reason};
use serde_json::Value;
use shardtool_store::is_url;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The PNG of an image: ids of segments, coded as R + 256 G + 65,536 B.
pub(super) const PANOPTIC: &str = "image/panoptic";
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
            if names.insert(image, name).is_some() {
                return Err(format!("two panoptic segmentations of image {image}"));
            }
            for mut segment in segments {
                if let Value::Object(members) = &mut segment {
                    members.insert("image_id".to_owned(), image.into());
                }
                let object = serde_json::from_value(segment);
                objects.push(object.map_err(|error| format!("a segment of image {image}: {error}"))?);
            }
        }
        Ok((Some(Panoptic { folder: folder(file)?, names }), objects))
    }

    /// Returns the PNG of an image.
    ///
    /// # Errors
    /// [`Reason::File`].
    pub(super) fn value(&self, image: i64, options: &Options) -> Result<Values, Reason> {
        let wrong = |reason| Reason::File { column: PANOPTIC.to_owned(), reason: Box::new(reason) };
        let name = self.names.get(&image).ok_or_else(|| wrong(Reason::Missing))?;
        let path = self.folder.join(name).to_string_lossy().into_owned();
        attached(Path::new(""), path, options).map_err(wrong)
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
