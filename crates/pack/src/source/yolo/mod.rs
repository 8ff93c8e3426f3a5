//! YOLO, as Ultralytics lays datasets out: images, a text file of labels for each, and a `data.yaml` that names splits and classes.

mod config;
mod described;
mod find;
mod folders;
mod keypoints;
mod labels;
mod layout;
mod paths;

pub(super) use config::Config;
pub(super) use find::find;
pub(super) use layout::divide;

use super::annotated::{Images, text, wrong};
use super::image_lists;
use super::layouts::listed;
use super::listing::Listing;
use super::objects::{BBOX, CLASS, KEYPOINTS};
use crate::class_ids::ClassIds;
use crate::sample::{SampleSchema, Values};
use crate::{Error, Options, Reason};
use labels::Label;
use serde_json::Value;
use shardtool_format::manifest::DType;
use std::collections::BTreeSet;

const SEGMENTATION: &str = "image/object/segmentation";

/// Lists the images of splits, which are given by their paths. An image without a file of labels has no objects.
///
/// # Errors
/// [`crate::SourceError::Annotations`] if no image has labels; [`Error::Io`].
pub(super) fn list(
    config: &Config,
    splits: Vec<(String, Vec<String>)>,
    classes: Option<ClassIds>,
    options: &Options,
) -> Result<Vec<(String, Listing)>, Error> {
    let root = &config.base;
    let files = splits.iter().flat_map(|(split, paths)| paths.iter().map(|path| (split.as_str(), root.join(path))));
    image_lists::check_files(root, files)?;
    if let Some(given) = &classes
        && !config.names.is_empty()
        && given.names() != config.names
    {
        let problem = match options.classes.is_some() && !options.grows {
            true => {
                "--classes has other names than the dataset, or another order; the ids in the labels are those of the dataset: leave \
                    --classes out"
            }
            false => {
                "its names of classes are others than those of the dataset to which it is appended, or have another order, and the labels \
                    have ids: give data.yaml the order of the dataset, and its labels those ids"
            }
        };
        return Err(wrong(root, problem));
    }
    let names = classes.map_or_else(|| config.names.clone(), ClassIds::into_names);
    let columns = columns(config);
    let (mut listings, mut left_out, mut used) = (vec![], vec![], BTreeSet::new());
    let (mut duplicates, mut labelled) = (0, false);
    for (split, paths) in splits {
        let mut images = Images::new(root, options);
        let mut background = 0;
        let all = paths.len();
        for path in paths {
            let file = paths::labels_of(root, &path);
            let read = match text(root, &file) {
                Ok(text) => {
                    let known = (!names.is_empty()).then_some(names.len());
                    labels::parse(&file, &text, config.points, known)
                }
                Err(Reason::Missing) => {
                    background += 1;
                    Ok((vec![], 0))
                }
                Err(reason) => Err(reason),
            };
            let values = read.map(|(labels, twice)| {
                duplicates += twice;
                values(&labels, config)
            });
            used.insert(file);
            images.add(path.clone(), path, values)?;
        }
        match background {
            0 => {}
            _ if background == all => left_out.push(format!("split {split}: none of its {all} images has a file of labels, so they are packed without objects")),
            _ => left_out.push(format!("split {split}: {background} of {all} images have no file of labels; they are packed as background, without objects")),
        }
        labelled |= background < all;
        let Images { entries, rejected, .. } = images;
        let schema = SampleSchema {
            classes: names.clone(),
            images: true,
            labelled: false,
            columns: columns.clone(),
            keypoints: Box::new(config.keypoints.clone()),
        };
        let listing = Listing { entries, schema, rejected, left_out: vec![], root: root.clone(), stored: false };
        listings.push((split, listing));
    }
    if !labelled
        && options.split.is_none()
        && let Some(file) = used.first()
    {
        return Err(wrong(root, format!("no image has a file of labels; expected, for example, {file}")));
    }
    if duplicates > 0 {
        left_out.push(format!(
            "{duplicates} lines of labels occur twice in their file: both are kept, where Ultralytics removes one"
        ));
    }
    // Those of other splits may lie in the same folder.
    used.extend(config.others.iter().map(|image| paths::labels_of(root, image)));
    let unused = paths::unused(root, &used)?;
    if !unused.is_empty() {
        left_out.push(format!(
            "{} files of labels without an image in any split: {}",
            unused.len(),
            listed(unused.iter().map(String::as_str))
        ));
    }
    let folders = paths::other_folders(root, &used)?;
    if !folders.is_empty() {
        left_out.push(format!("folders next to images and labels: {}", listed(folders.iter().map(String::as_str))));
    }
    listings.iter_mut().for_each(|(_, listing)| listing.left_out.clone_from(&left_out));
    Ok(listings)
}

/// Returns the columns, in byte order of their names.
fn columns(config: &Config) -> Vec<(String, DType)> {
    let mut columns = vec![(BBOX.to_owned(), DType::Float), (CLASS.to_owned(), DType::Int64)];
    match config.points {
        Some(_) => {
            columns.push((KEYPOINTS.to_owned(), DType::Float));
            columns.push((format!("{KEYPOINTS}/shape"), DType::Int64));
        }
        None => columns.push((SEGMENTATION.to_owned(), DType::Bytes)),
    }
    columns
}

/// Returns the values of an image, in the order of [`columns`].
fn values(labels: &[Label], config: &Config) -> Box<[Values]> {
    let floats = |of: &dyn Fn(&Label) -> Vec<f64>| {
        Values::Fractions(labels.iter().flat_map(of).map(|fraction| fraction as f32).collect())
    };
    let mut values =
        vec![floats(&|label| label.corners.to_vec()), Values::Int64s(labels.iter().map(|label| label.class).collect())];
    match config.points {
        Some((points, _)) => {
            values.push(floats(&|label| label.points.clone()));
            values.push(Values::Int64s([labels.len() as i64, points as i64, 3].into()));
        }
        None => {
            let text = |label: &Label| match &label.polygon {
                Some(polygon) => Value::from(vec![polygon.clone()]).to_string().into_bytes().into(),
                None => b"null"[..].into(),
            };
            values.push(Values::FractionPolygons(labels.iter().map(text).collect()));
        }
    }
    values.into()
}
