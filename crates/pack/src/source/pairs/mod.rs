//! Images and files that belong to them by their names: masks, depths, flow, as Cityscapes, ADE20K, KITTI and many others lay them out.

mod find;
mod folders;
mod known;
mod layout;
mod lists;
mod names;
mod paired;
mod pattern;
mod splits;

pub(super) use find::find;
pub(super) use layout::{PairedFiles, divide};

use super::annotated::{Images, attached, problem, wrong};
use super::layouts::listed;
use super::listing::Listing;
use crate::array::EXTENSIONS;
use crate::class_ids::ClassIds;
use crate::sample::{SampleSchema, Values};
use crate::{Error, Options, Reason};
use paired::PairedFile;
use shardtool_format::manifest::DType;
use std::path::Path;

/// Lists the images of a split, which are given by their paths. One without a file of a feature that others of the split have is rejected.
///
/// # Errors
/// [`crate::SourceError::Annotations`] for files of arrays whose feature has bytes, and for an array without a pattern; [`Error::Io`].
pub(super) fn list(
    paired: &PairedFiles,
    (split, paths): (&str, Vec<String>),
    classes: Option<ClassIds>,
    options: &Options,
) -> Result<Listing, Error> {
    let PairedFiles { pairs, files } = paired;
    let root = &pairs.root;
    let is_feature = |name: &String| pairs.features.iter().any(|(feature, _)| feature == name);
    if let Some(array) = options.arrays.iter().find(|array| !is_feature(&array.name)) {
        return Err(wrong(root, format!("no files are those of the array {}", array.name)));
    }
    let mut columns: Vec<_> = pairs.features.iter().map(|(feature, _)| (feature.clone(), DType::Bytes)).collect();
    columns.extend(options.arrays.iter().flat_map(|array| array.features().into_iter().skip(1)));
    let has = |at: usize| {
        let of_images = paths.iter().filter_map(|path| files.get(path));
        of_images.into_iter().any(|of_image| !matches!(of_image[at], PairedFile::Missing(_)))
    };
    let has: Vec<_> = (0..pairs.features.len()).map(has).collect();
    let without = pairs.features.iter().zip(&has).filter(|(_, has)| !**has);
    let left_out = without.map(|((feature, _), _)| {
        format!(
            "split {split}: none of its {} images has a file of `{feature}`, so they are packed without it",
            paths.len()
        )
    });
    let left_out = left_out.collect();
    let mut images = Images::new(root, options);
    for path in paths {
        let of_image = files.get(&path).map(Vec::as_slice).unwrap_or_default();
        let values = pairs.features.iter().zip(of_image).zip(&has).map(|(((feature, _), file), has)| {
            let wrong =
                |file: &String, what: &str| Err(problem(file, None, format!("{what} of {path}, for `{feature}`")));
            match file {
                PairedFile::Missing(_) if !has => Ok(Ok(Values::Missing)),
                PairedFile::Missing(expected) => Ok(wrong(expected, "no such file: it would be that")),
                PairedFile::Several(files) => Ok(wrong(
                    &files[0],
                    &format!("as well as {}, may be the file", listed(files[1..].iter().map(String::as_str))),
                )),
                PairedFile::One(file) => {
                    check_array(root, feature, file, options)?;
                    let named = |reason| Reason::File { column: feature.clone(), reason: Box::new(reason) };
                    Ok(attached(root, file.clone(), options).map_err(named))
                }
            }
        });
        let values = values.collect::<Result<Vec<_>, Error>>()?.into_iter().collect::<Result<Vec<_>, _>>();
        let values = values.map(|mut values| {
            // Those that describe arrays.
            values.resize(columns.len(), Values::Missing);
            values.into()
        });
        images.add(path.clone(), path, values)?;
    }
    let Images { entries, rejected, .. } = images;
    let classes = classes.map_or(vec![], ClassIds::into_names);
    let schema = SampleSchema { classes, images: true, labelled: false, columns, keypoints: Default::default() };
    Ok(Listing { entries, schema, rejected, left_out, root: root.clone(), stored: false })
}

/// Refuses a file that holds an array for a feature of bytes.
fn check_array(root: &Path, feature: &str, file: &str, options: &Options) -> Result<(), Error> {
    let extension = Path::new(file).extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if !EXTENSIONS.contains(&extension.as_str()) || options.arrays.iter().any(|array| array.name == feature) {
        return Ok(());
    }
    let problem = format!(
        "{file} holds an array: store it as one, with --array {feature}, or as optical flow, with --column {feature}:flow"
    );
    Err(wrong(root, problem))
}
