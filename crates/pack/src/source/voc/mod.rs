//! Pascal VOC: a folder of images, a file of annotations for each in XML, and lists of the images of each split.
//!
//! Coordinates count pixels from 1, and both corners belong to the box, so that the box of a whole image of *w* × *h* is 1, 1,
//! *w*, *h* (VOC development kit, "Annotations"). The edges of the same box, from 0, are 0, 0, *w*, *h*: 1 is subtracted from
//! `xmin` and `ymin`, as detectron2 does. [`Options::first_pixel`] 0 takes the numbers as edges.

mod annotation;
mod layout;
mod sets;

pub(super) use layout::{divide, find};

use super::annotated::{Images, attached, problem, text, wrong};
use super::coco_members::Members;
use super::detect::other_files;
use super::image_lists;
use super::layouts::listed;
use super::listing::Listing;
use super::objects::{BBOX, CLASS};
use crate::class_ids::ClassIds;
use crate::sample::{SampleSchema, Values};
use crate::{Error, Options, Reason};
use annotation::{Annotation, FLAGS};
use layout::{ANNOTATIONS, IMAGES};
use shardtool_format::manifest::DType;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Folders of masks, and the features that hold them.
const MASKS: [(&str, &str); 2] = [("SegmentationClass", "class_mask"), ("SegmentationObject", "object_mask")];

/// Lists the images of splits, which are given by their names without extension, with class ids and columns in common: those of all
/// annotations of the folder, also of images that are in none of the splits.
///
/// # Errors
/// [`crate::SourceError::UnknownClass`], those of [`layout::images`], and [`Error::Io`].
pub(super) fn list(
    root: &Path,
    splits: Vec<(String, Vec<String>)>,
    classes: Option<ClassIds>,
    options: &Options,
) -> Result<Vec<(String, Listing)>, Error> {
    let files = Files::read(root)?;
    let image = |name: &String| files.images.get(name).map(|image| root.join(IMAGES).join(image));
    let paths = splits
        .iter()
        .flat_map(|(split, names)| names.iter().filter_map(move |name| Some((split.as_str(), image(name)?))));
    image_lists::check_files(root, paths)?;
    let good = || files.annotations.values().filter_map(|read| read.as_ref().ok());
    let objects = || good().flat_map(|annotation| &annotation.objects);
    let classes = classes.map_or_else(|| ClassIds::sorted(objects().map(|object| object.name.clone())), Ok)?;
    for object in objects() {
        classes.id(&object.name)?;
    }
    let of_images = Members::of_images(good().map(|annotation| &annotation.others));
    let of_objects = Members::of_annotations(objects().map(|object| &object.others));
    let masks: Vec<_> = MASKS.iter().zip(&files.masks).filter(|(_, names)| !names.is_empty()).collect();
    let mut columns = columns(&[&of_images, &of_objects]);
    columns.extend(masks.iter().map(|((_, column), _)| ((*column).to_owned(), DType::Bytes)));
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut listings, mut left_out) = (vec![], files.left_out());
    for (split, mut names) in splits {
        names.sort();
        let mut images = Images::new(root, options);
        // The annotations of a test set may be secret.
        let annotated = names.iter().any(|name| files.annotations.contains_key(name));
        if !annotated && !names.is_empty() {
            left_out.push(format!(
                "split {split}: none of its {} images has annotations, so they are packed without objects",
                names.len()
            ));
        }
        for name in names {
            let Some(image) = files.images.get(&name) else {
                images.reject(format!("{IMAGES}/{name}"), Reason::Missing)?;
                continue;
            };
            let path = format!("{IMAGES}/{image}");
            let empty = Annotation { size: None, objects: vec![], others: serde_json::Map::new(), left_out: vec![] };
            let annotation = match files.annotations.get(&name) {
                Some(Ok(annotation)) => annotation,
                Some(Err(reason)) => {
                    images.reject(image.clone(), again(reason))?;
                    continue;
                }
                None if !annotated => &empty,
                None => {
                    let missing = "no such file, but other images of the split have one; write it, without <object> if \
                        the image has no objects";
                    let file = format!("{ANNOTATIONS}/{name}.xml");
                    images.reject(image.clone(), problem(&file, None, missing.to_owned()))?;
                    continue;
                }
            };
            let values = values(annotation, &classes, options).and_then(|mut values| {
                values.extend(of_images.of_image(&annotation.others));
                values.extend(of_objects.of_objects(annotation.objects.iter().map(|object| &object.others)));
                for ((folder, column), names) in &masks {
                    if let Some(mask) = names.get(&name) {
                        let mask = attached(root, format!("{folder}/{mask}"), options);
                        let wrong = |reason| Reason::File { column: (*column).to_owned(), reason: Box::new(reason) };
                        values.insert((*column).to_owned(), mask.map_err(wrong)?);
                    }
                }
                Ok(columns.iter().map(|(name, _)| values.remove(name).unwrap_or(Values::Missing)).collect())
            });
            images.add(image.clone(), path, values)?;
        }
        let Images { entries, rejected, .. } = images;
        let schema = SampleSchema {
            classes: classes.names().to_vec(),
            images: true,
            labelled: false,
            columns: columns.clone(),
            keypoints: Default::default(),
        };
        listings.push((
            split,
            Listing { entries, schema, rejected, left_out: vec![], root: root.to_owned(), stored: false },
        ));
    }
    listings.iter_mut().for_each(|(_, listing)| listing.left_out.clone_from(&left_out));
    Ok(listings)
}

/// The files of a folder of VOC.
struct Files {
    /// Names of the images, by their names without extension.
    images: BTreeMap<String, String>,
    annotations: BTreeMap<String, Result<Annotation, Reason>>,
    /// Of each folder of [`MASKS`] as `images`.
    masks: Vec<HashMap<String, String>>,
    /// Files in the folder of annotations that are not XML.
    others: Vec<String>,
}

impl Files {
    fn read(root: &Path) -> Result<Self, Error> {
        let (mut annotations, mut others) = (BTreeMap::new(), vec![]);
        for name in other_files(&root.join(ANNOTATIONS))? {
            let Some((stem, _)) = name.rsplit_once('.').filter(|(_, end)| end.eq_ignore_ascii_case("xml")) else {
                others.push(name);
                continue;
            };
            let file = format!("{ANNOTATIONS}/{name}");
            let read = text(root, &file).and_then(|text| annotation::parse(&file, &text));
            if annotations.insert(stem.to_owned(), read).is_some() {
                let problem = format!("two files annotate the image {stem}, one of them {name}; remove one");
                return Err(wrong(&root.join(ANNOTATIONS), problem));
            }
        }
        let mut masks = vec![];
        for (folder, _) in MASKS {
            let folder = root.join(folder);
            let names = if folder.is_dir() { other_files(&folder)? } else { vec![] };
            masks.push(names.into_iter().map(|name| (stem(&name).to_owned(), name)).collect());
        }
        Ok(Files { images: layout::images(root)?, annotations, masks, others })
    }

    /// Returns what is in no record, for people.
    fn left_out(&self) -> Vec<String> {
        let mut members = BTreeMap::<&str, u64>::new();
        for text in self.annotations.values().flatten().flat_map(|annotation| &annotation.left_out) {
            *members.entry(text).or_default() += 1;
        }
        let mut texts: Vec<_> = members.into_iter().map(|(text, count)| format!("{text} ({count} times)")).collect();
        let mut add = |names: Vec<&str>, what: &str| {
            if !names.is_empty() {
                texts.push(format!("{} {what}: {}", names.len(), listed(names.into_iter())));
            }
        };
        add(self.others.iter().map(String::as_str).collect(), "files of Annotations that are not XML");
        let imageless = self.annotations.keys().filter(|name| !self.images.contains_key(*name));
        add(imageless.map(String::as_str).collect(), "files of annotations without an image");
        for ((folder, _), names) in MASKS.iter().zip(&self.masks) {
            let mut lost: Vec<_> = names
                .iter()
                .filter(|(stem, _)| !self.images.contains_key(*stem))
                .map(|(_, name)| name.as_str())
                .collect();
            lost.sort_unstable();
            add(lost, &format!("files of {folder} without an image"));
        }
        texts
    }
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns a reason once more: a file of annotations may be that of several splits.
fn again(reason: &Reason) -> Reason {
    match reason {
        Reason::Annotation { file, line, problem: text } => problem(file, *line, text.clone()),
        other => Reason::Sample { text: shardtool_format::Chain(other).to_string() },
    }
}

fn columns(members: &[&Members]) -> Vec<(String, DType)> {
    let flags = FLAGS.iter().map(|flag| (format!("image/object/{flag}"), DType::Int64));
    let fixed = [
        ("height", DType::Int64),
        (BBOX, DType::Float),
        (CLASS, DType::Int64),
        ("image/object/pose", DType::Bytes),
        ("width", DType::Int64),
    ];
    let fixed = fixed.into_iter().map(|(name, dtype)| (name.to_owned(), dtype));
    fixed.chain(flags).chain(members.iter().flat_map(|members| members.columns())).collect()
}

/// Returns the values of an image that VOC defines.
fn values(annotation: &Annotation, classes: &ClassIds, options: &Options) -> Result<BTreeMap<String, Values>, Reason> {
    let objects = &annotation.objects;
    let first = f64::from(options.first_pixel);
    let mut corners = vec![];
    for (number, object) in objects.iter().enumerate() {
        let [left, top, right, bottom] = object.bounds;
        if left < first || top < first {
            let member = format!("bndbox of object {number}");
            let expected = "coordinates from 1, as Pascal VOC counts pixels; if the tool that wrote the file counts from 0: \
                --first-pixel 0";
            return Err(Reason::Objects { member, expected });
        }
        // The last pixels belong to the box, so that it has one pixel at least.
        if options.first_pixel == 1 && (right < left || bottom < top) {
            let member = format!("bndbox of object {number}");
            let expected = "an xmax and a ymax that are not before xmin and ymin, since both pixels belong to the box";
            return Err(Reason::Objects { member, expected });
        }
        corners.extend([left - first, top - first, right, bottom].map(|edge| edge as f32));
    }
    let ids = objects.iter().map(|object| classes.known(&object.name)).collect::<Result<_, _>>()?;
    let poses = objects.iter().map(|object| object.pose.as_bytes().into());
    let mut values = BTreeMap::from([
        (BBOX.to_owned(), Values::Pixels(corners.into())),
        (CLASS.to_owned(), Values::Int64s(ids)),
        ("image/object/pose".to_owned(), Values::BytesList(poses.collect())),
    ]);
    for flag in FLAGS {
        let flags = objects.iter().map(|object| object.flags[flag]);
        values.insert(format!("image/object/{flag}"), Values::Int64s(flags.collect()));
    }
    if let Some((width, height)) = annotation.size {
        values.extend([("width".to_owned(), Values::Int64(width)), ("height".to_owned(), Values::Int64(height))]);
    }
    Ok(values)
}
