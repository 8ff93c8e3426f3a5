//! Further images of each record: what each holds, and checks of that against the dataset.

use crate::classes::describe;
use crate::error::{Error, Result, SampleError};
use crate::features;
use crate::groups::Images;
use crate::image;
use crate::options::{FurtherImage, FurtherKind, View};
use crate::sampled_records::{SAMPLED_RECORDS, SampledRecords};
use crate::splits::Splits;
use crate::views::Views;
use shardtool_decode::{EncodedImage, PixelFormat, StoredSamples};
use shardtool_read::Record;

impl FurtherImage {
    /// Checks that a stored image is of the kind, and that values have the format of the first record's.
    ///
    /// # Errors
    /// [`SampleError::FurtherKind`], [`SampleError::FurtherFormat`].
    pub(crate) fn check(
        &self,
        image: &EncodedImage<'_>,
        images: &Images,
        views: &[View],
    ) -> std::result::Result<(), SampleError> {
        let feature = || self.feature.clone();
        match self.kind {
            Some(FurtherKind::Color) => Ok(()),
            Some(FurtherKind::Values) => {
                let found = match image.stored_samples().map(StoredSamples::unchanged) {
                    Some(Ok(found)) if self.values.is_none_or(|expected| found == expected) => return Ok(()),
                    Some(Ok(found)) => Some(found.name()),
                    Some(Err(changed)) => Some(changed),
                    None => None,
                };
                let expected = self.values.map(PixelFormat::name);
                Err(SampleError::FurtherFormat { feature: feature(), expected, found })
            }
            None => match image.stored_samples().and_then(|samples| mixed(samples, images, views)) {
                None => Ok(()),
                Some(found) => Err(SampleError::FurtherKind { feature: feature(), found }),
            },
        }
    }
}

/// Returns what an image of unstated kind is called if it may hold values, and if they would not arrive as they are.
fn mixed(samples: StoredSamples, images: &Images, views: &[View]) -> Option<&'static str> {
    let found = samples.may_be_values()?;
    let computed = images.pixels.decoded_cache.is_some() || views.iter().any(|view| view.pipeline.computes_values());
    let shortened = samples.format.depth.bytes() > images.pixel_format().depth.bytes();
    (computed || shortened).then_some(found)
}

/// Checks the further images in the first readable record of each split, and sets the formats of those that hold values.
///
/// # Errors
/// [`Error::FurtherImage`] if one is not of its kind, so that most would be bad; [`Error::NoFurtherImage`] if no record at the
/// start of the splits has one that holds values.
pub(crate) fn resolve(images: &mut Images, views: &Views, splits: &Splits, stored: &SampledRecords) -> Result<()> {
    for number in 0..images.more.len() {
        let mut further = images.more[number].clone();
        features::check_bytes(&further.feature, "images", splits)?;
        for (at, split) in splits.as_slice().iter().enumerate() {
            let ids = 0..if split.is_in_store() { 0 } else { split.len().min(SAMPLED_RECORDS) };
            let mut local = ids.filter_map(|id| split.get(id).ok());
            let check = |record: &Record| further.check_first(record, images, views);
            let first = stored.of(at).iter().find_map(check).or_else(|| local.find_map(|record| check(&record)));
            let found = first
                .transpose()
                .map_err(|source| Error::FurtherImage { split: describe(split), source: Box::new(source) })?;
            further.values = further.values.or(found.flatten());
        }
        if further.kind == Some(FurtherKind::Values) && further.values.is_none() {
            return Err(Error::NoFurtherImage { feature: further.feature });
        }
        images.more[number] = further;
    }
    Ok(())
}

impl FurtherImage {
    /// Checks the image of a record, and returns the format of its values, if it holds values. `None` if the record has none that
    /// can be read, which is reported when it is loaded.
    fn check_first(
        &self,
        record: &Record,
        images: &Images,
        views: &Views,
    ) -> Option<std::result::Result<Option<PixelFormat>, SampleError>> {
        let image = EncodedImage::parse(image::further(record, &self.feature).ok()??).ok()?;
        record.check_readable().ok()?;
        let checked = views.lists().try_for_each(|views| self.check(&image, images, views));
        let values = self.kind == Some(FurtherKind::Values);
        Some(checked.map(|()| image.stored_samples().map(|samples| samples.format).filter(|_| values)))
    }
}
