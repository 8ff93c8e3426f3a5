//! What is made of each image, by bucket.

use crate::error::{Error, Result};
use crate::groups::Groups;
use crate::options::{AspectRatioBuckets, Buckets, View};
use shardtool_order::{AspectRatios, ImageShape};
use std::num::NonZeroU32;

/// The views of every bucket; without buckets there is one list.
pub(crate) struct Views {
    lists: Vec<Vec<View>>,
    /// Finds the list of an image; `None` if there is one.
    ratios: Option<AspectRatios>,
}

impl Views {
    pub(crate) fn new(groups: &Groups, buckets: Option<&Buckets>) -> Result<Self> {
        let Some(images) = &groups.images else { return Ok(Views { lists: vec![vec![]], ratios: None }) };
        let Some(Buckets::AspectRatio(buckets)) = buckets else {
            return Ok(Views { lists: vec![images.views.clone()], ratios: None });
        };
        let shapes = shapes(buckets)?;
        let mut lists = Vec::with_capacity(shapes.len());
        for (number, (shape, pipeline)) in shapes.iter().zip(&buckets.steps).enumerate() {
            let (expected, found) = ((shape.width.get(), shape.height.get()), pipeline.output_size());
            if found != expected {
                return Err(Error::BucketSize { number, expected, found });
            }
            lists.push(vec![View { name: String::new(), pipeline: pipeline.clone() }]);
        }
        Ok(Views { lists, ratios: Some(AspectRatios::new(&shapes)?) })
    }

    /// Returns the views of a bucket.
    pub(crate) fn of(&self, bucket: usize) -> &[View] {
        // Buckets of lengths share one list.
        &self.lists[bucket.min(self.lists.len() - 1)]
    }

    /// Returns the views of an image of this width and height.
    pub(crate) fn of_size(&self, (width, height): (u32, u32)) -> &[View] {
        let sides = NonZeroU32::new(height).zip(NonZeroU32::new(width));
        let number = self.ratios.as_ref().zip(sides).map_or(0, |(ratios, (h, w))| ratios.nearest(h, w));
        self.of(number.into())
    }

    /// Returns the lists of views.
    pub(crate) fn lists(&self) -> impl Iterator<Item = &[View]> {
        self.lists.iter().map(Vec::as_slice)
    }
}

/// Returns the shapes of buckets.
///
/// # Errors
/// [`Error::BucketSteps`] if another number of them has steps.
pub(crate) fn shapes(buckets: &AspectRatioBuckets) -> Result<Vec<ImageShape>> {
    let (shapes, steps) = (buckets.shapes.len(), buckets.steps.len());
    if shapes != steps {
        return Err(Error::BucketSteps { shapes, steps });
    }
    Ok(buckets.shapes.iter().map(|&(height, width)| ImageShape { height, width }).collect())
}
