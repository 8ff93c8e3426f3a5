//! The names of a batch's members: what would have the name of another member is refused, since one of them would be lost.

use crate::batch::{IMAGE, MASK, PIXEL_MASK, picture_name};
use crate::error;
use pyo3::prelude::*;
use shardtool_load::{Buckets, CLASSES, Config, Field, ObjectRole, View};

/// A member of a batch: its name, and what it is.
type Member = (String, &'static str);

/// Checks that the members of a batch have different names.
///
/// # Errors
/// `OptionError`.
pub(crate) fn check(py: Python<'_>, config: &Config, on_device: bool) -> PyResult<()> {
    let members = members(config, on_device);
    let taken = |(at, (name, _)): (usize, &Member)| members[..at].iter().position(|(other, _)| other == name);
    let Some((at, first)) = members.iter().enumerate().find_map(|(at, member)| Some((at, taken((at, member))?))) else {
        return Ok(());
    };
    let ((name, one), (_, other)) = (&members[first], &members[at]);
    let message = format!(
        "`fields`: a batch would have {one} and {other} by the name {name:?}, and lose one of them: leave one out, or pack the feature \
         by another name"
    );
    Err(error::option(py, &message))
}

fn members(config: &Config, on_device: bool) -> Vec<Member> {
    let label = config.splits.iter().find_map(|split| split.manifest().label.as_deref());
    let mut members =
        vec![("id".to_owned(), "the number of each record"), ("valid".to_owned(), "which rows have a sample")];
    members.extend(on_device.then(|| ("host".to_owned(), "what stays on the host")));
    members.extend(label.map(|_| ("label".to_owned(), "the class of each record")));
    // Columns that a field has already, such as the boxes of objects, may be listed as well.
    let mut listed: Vec<&str> = label.into_iter().collect();
    let masks = config.fields.iter().filter(|field| matches!(field, Field::Mask(_))).count();
    let views: &[View] = config
        .fields
        .iter()
        .find_map(|field| match field {
            Field::Image(image) => Some(&image.views[..]),
            _ => None,
        })
        .filter(|views| !views.is_empty())
        .unwrap_or_default();
    let pictures = |feature: Option<&str>, views: &[View], what| {
        let names = views.iter().map(|view| picture_name(feature, &view.name)).collect::<Vec<_>>();
        // The steps of buckets have no names.
        let names = if names.is_empty() { vec![picture_name(feature, "")] } else { names };
        names.into_iter().map(move |name| (name, what)).collect::<Vec<_>>()
    };
    let padded = config.buckets.iter().filter_map(|buckets| match buckets {
        Buckets::Length(buckets) => Some(&buckets.padded),
        _ => None,
    });
    for feature in padded.flat_map(|padded| padded.keys()) {
        members.push((feature.clone(), "a padded column"));
        listed.push(feature);
    }
    for field in &config.fields {
        match field {
            Field::Record => members.push((IMAGE.to_owned(), "the images as stored")),
            Field::Image(_) => members.extend(pictures(None, views, "the images")),
            Field::Clip(clip) => members.extend(pictures(Some(&clip.feature), &clip.views, "the frames of clips")),
            Field::FurtherImage(further) => {
                members.extend(pictures(Some(&further.feature), views, "a further image"));
            }
            Field::Mask(mask) => {
                members.push((if masks == 1 { MASK.to_owned() } else { mask.feature.clone() }, "a mask"));
            }
            Field::PixelMask(_) => members.push((PIXEL_MASK.to_owned(), "the mask of the pixels that show the image")),
            Field::Objects(objects) => {
                // Each is kept for its role, whether this batch has it or not.
                let roles = [ObjectRole::Boxes, ObjectRole::Labels, ObjectRole::Keypoints];
                let roles = roles.into_iter().chain(objects.masks.then_some(ObjectRole::Masks));
                members.extend(roles.map(|role| (role.name().to_owned(), "what the objects in an image have")));
                let others = objects.properties.iter().filter(|feature| *feature != CLASSES);
                members.extend(others.map(|feature| (feature.clone(), "a property of objects")));
                listed.push(&objects.boxes);
                listed.extend(objects.properties.iter().chain(&objects.keypoints).map(String::as_str));
            }
            Field::Arrays(arrays) => {
                members.extend(arrays.features.iter().map(|feature| (feature.clone(), "an array")));
            }
            Field::RaggedArrays(arrays) => {
                members.extend(arrays.features.iter().map(|feature| (feature.clone(), "an array")));
                members.extend(arrays.features.first().map(|name| (format!("{name}/length"), "lengths of arrays")));
            }
            Field::Tokens(tokens) => {
                let names = ["segment_ids", "position_ids", "seq_lens"];
                members.extend(names.map(|name| (name.to_owned(), "what packed rows have")));
                members.extend(tokens.padded.keys().map(|feature| (feature.clone(), "a column of tokens")));
                listed.extend(tokens.padded.keys().map(String::as_str));
            }
            _ => {}
        }
    }
    let columns = config.fields.iter().filter_map(|field| match field {
        Field::Column(column) => Some(&column.feature),
        _ => None,
    });
    members.extend(
        columns.filter(|feature| !listed.contains(&feature.as_str())).map(|feature| (feature.clone(), "a column")),
    );
    members
}
