//! The fields of a configuration as groups: what is decoded and what moves together.

use crate::error::Result;
use crate::mixing::Mixing;
use crate::options::{
    Arrays, Clip, Column, Config, Field, FurtherImage, Image, InvalidOptions, Mask, Objects, Pixels, RaggedArrays,
    Tokens, View, check_exclusions,
};
use shardtool_decode::{LabelDtype, Output, PixelFormat};
use std::collections::HashSet;

/// The fields of a configuration.
#[derive(Clone, Default)]
pub(crate) struct Groups {
    /// The image or the frames of a clip, decoded and transformed.
    pub(crate) images: Option<Images>,
    /// Whether batches have the records themselves, with their CRCs checked.
    pub(crate) records: bool,
    /// The columns, without those of objects.
    pub(crate) columns: Vec<Column>,
    pub(crate) arrays: Vec<Arrays>,
    pub(crate) ragged: Vec<RaggedArrays>,
    pub(crate) tokens: Option<Tokens>,
}

/// An image or a clip, and what shares its geometry.
#[derive(Clone)]
pub(crate) struct Images {
    /// What is made of each image: an array of the batch each. None if buckets have the steps.
    pub(crate) views: Vec<View>,
    /// Frames of a video in place of the record's image: every array has them as a dimension after the first.
    pub(crate) clip: Option<Clip>,
    /// Further images, arrays of the batch of their own.
    pub(crate) more: Vec<FurtherImage>,
    /// Each label map, then the mask of the pixels that show the image, if there is one.
    pub(crate) masks: Vec<Labels>,
    pub(crate) objects: Option<Objects>,
    /// How the rows of a batch are mixed; set when the configuration is resolved.
    pub(crate) mixing: Option<Mixing>,
    /// Leaves the pixels unmixed.
    pub(crate) defer_mixing: bool,
    pub(crate) pixels: Pixels,
    /// The type, layout and normalisation of a batch's pixels; `None` if it has them as steps leave them.
    pub(crate) output: Option<Output>,
}

/// An array of a batch with a label for each pixel of its images.
#[derive(Clone)]
pub(crate) struct Labels {
    /// The feature with the label maps; `None` for the mask of the pixels that show the image.
    pub(crate) feature: Option<String>,
    pub(crate) dtype: LabelDtype,
    /// The label outside the image.
    pub(crate) fill: i32,
    /// Every byte of rows without a sample.
    pub(crate) masked: u8,
}

/// Every byte of label maps in rows without a sample: loss functions ignore 255 by convention, and 65535 is the corresponding 16-bit
/// label.
const MASKED_LABEL: u8 = 255;

impl Groups {
    /// Groups the fields of a configuration.
    ///
    /// # Errors
    /// [`Error::Options`](crate::Error::Options).
    pub(crate) fn new(config: &Config) -> Result<Self> {
        check_exclusions(config)?;
        let mut groups = Groups::default();
        let (mut record, mut more, mut masks, mut shown, mut objects) = (None, vec![], vec![], None, None);
        for field in &config.fields {
            match field {
                Field::Record => once(&mut record, (), "Record")?,
                Field::Image(Image { views, pixels }) => {
                    once(&mut groups.images, Images::new(views, None, pixels, config)?, "Image")?;
                }
                Field::Clip(clip) => {
                    let images = Images::new(&clip.views, Some(clip.clone()), &clip.pixels, config)?;
                    once(&mut groups.images, images, "Clip")?;
                }
                Field::FurtherImage(further) => more.push(further.clone()),
                Field::Mask(mask) => masks.push(Labels::of(mask)?),
                Field::PixelMask(_) => once(&mut shown, Labels::SHOWN, "PixelMask")?,
                Field::Objects(given) => once(&mut objects, given.clone(), "Objects")?,
                Field::Arrays(arrays) => groups.arrays.push(arrays.clone()),
                Field::RaggedArrays(arrays) => groups.ragged.push(arrays.clone()),
                Field::Column(column) => groups.columns.push(column.clone()),
                Field::Tokens(tokens) => once(&mut groups.tokens, tokens.clone(), "Tokens")?,
            }
        }
        different(groups.columns.iter().map(|column| &column.feature))?;
        different(masks.iter().filter_map(|mask: &Labels| mask.feature.as_ref()))?;
        different(more.iter().map(|further: &FurtherImage| &further.feature))?;
        if let Some(objects) = objects.as_ref().filter(|objects: &&Objects| objects.masks)
            && groups.columns.iter().any(|column| column.feature == objects.segmentation)
        {
            // The batch has what is drawn in its place.
            return Err(InvalidOptions::Twice { field: format!("{:?}", objects.segmentation) }.into());
        }
        groups.records = record.is_some();
        if let Some(images) = &mut groups.images {
            masks.extend(shown);
            (images.more, images.masks, images.objects) = (more, masks, objects);
        }
        Ok(groups)
    }
}

impl Labels {
    /// The mask of the pixels that show the image.
    const SHOWN: Labels = Labels { feature: None, dtype: LabelDtype::U8, fill: 0, masked: 0 };
    /// What the pixels of the image have in it.
    pub(crate) const IMAGE: u8 = 1;

    /// Returns the label maps of a feature.
    ///
    /// # Errors
    /// [`InvalidOptions::MaskFill`] if the labels do not hold the one outside the image.
    fn of(mask: &Mask) -> Result<Self> {
        let (feature, dtype) = (mask.feature.clone(), mask.dtype);
        if let Some(fill) = mask.fill.filter(|fill| !dtype.holds(*fill)) {
            return Err(InvalidOptions::MaskFill { feature, fill, dtype: dtype.name() }.into());
        }
        Ok(Labels { feature: Some(feature), dtype, fill: mask.fill.unwrap_or(dtype.ignored()), masked: MASKED_LABEL })
    }
}

fn once<T>(place: &mut Option<T>, field: T, name: &str) -> Result<()> {
    match place.replace(field) {
        None => Ok(()),
        Some(_) => Err(InvalidOptions::Twice { field: format!("`{name}`") }.into()),
    }
}

/// Checks that fields of one kind are of different features.
fn different<'f>(features: impl Iterator<Item = &'f String>) -> Result<()> {
    let mut known = HashSet::new();
    match features.into_iter().find(|feature| !known.insert(*feature)) {
        None => Ok(()),
        Some(feature) => Err(InvalidOptions::Twice { field: format!("{feature:?}") }.into()),
    }
}

impl Images {
    fn new(views: &[View], clip: Option<Clip>, pixels: &Pixels, config: &Config) -> Result<Self> {
        let output = pixels.output()?;
        Ok(Images {
            views: views.to_vec(),
            clip,
            more: vec![],
            masks: vec![],
            objects: None,
            mixing: None,
            defer_mixing: config.defer_pixels,
            pixels: pixels.clone(),
            output: output.filter(|_| !config.defer_pixels),
        })
    }

    /// Returns the channels and bits of the pixels.
    pub(crate) fn pixel_format(&self) -> PixelFormat {
        self.pixels.format()
    }
}
