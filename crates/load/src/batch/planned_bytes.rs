//! The memory that a batch of a configuration is planned to take.

use crate::columns::ResolvedColumn;
use crate::groups::Labels;
use crate::image::pixels;
use crate::mixing::{BatchMix, Mixing};
use crate::resolved_config::{Picture, ResolvedConfig};

impl ResolvedConfig {
    /// Bytes of one row of an array of images.
    pub(crate) fn picture_bytes(&self, picture: Picture<'_>) -> usize {
        let (width, height) = picture.view.pipeline.output_size();
        picture.pixels().planes().row_bytes((width as usize, height as usize)) * self.row_frames()
    }

    /// Bytes of a label map of a bucket.
    pub(crate) fn mask_bytes(&self, mask: &Labels, bucket: usize) -> usize {
        self.pictures(bucket).next().map_or(0, |picture| {
            let (width, height) = picture.view.pipeline.output_size();
            height as usize * width as usize * mask.dtype.bytes()
        })
    }

    /// Bytes of the largest batch, with its ragged values and records in memory as large as expected.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.buckets().map(|bucket| self.bucket_bytes(bucket)).max().unwrap_or(0)
    }

    fn bucket_bytes(&self, bucket: usize) -> u64 {
        // Plan, id, flag and lock of a row take less than 200 bytes.
        let images: usize = self.pictures(bucket).map(|picture| self.picture_bytes(picture)).sum();
        let masks: usize = self.masks().iter().map(|mask| self.mask_bytes(mask, bucket)).sum();
        let covers = self.mixing().filter(|mixing| mixing.pastes()).and_then(|_| self.pictures(bucket).next());
        let covers = covers.map_or(0, |picture| pixels(picture.view.pipeline.output_size()));
        let soft = self.mixing().map_or(0, |mixing| 4 * u64::from(mixing.classes) + BatchMix::ROW_BYTES);
        let row = (images + masks) as u64
            + covers
            + self.arrays.row_bytes()
            + soft
            + self.columns.iter().map(ResolvedColumn::row_bytes).sum::<u64>()
            + self.expected
            + 200;
        let copies = self.mixing().map_or(0, |mixing| self.bytes_of_copies(mixing, bucket));
        row * self.rows(bucket) as u64 + copies
    }

    /// Bytes of the rows that are copied while a batch is mixed, at most: one array is mixed after the other.
    fn bytes_of_copies(&self, mixing: &Mixing, bucket: usize) -> u64 {
        let mut pictures = self.pictures(bucket).map(|picture| self.picture_bytes(picture));
        let images = pictures.next().unwrap_or(0) as u64 * mixing.copies(self.defers_mixing());
        let masks = self.masks().iter().map(|mask| self.mask_bytes(mask, bucket));
        let arrays = self.arrays.outputs().filter(|array| array.planes.is_some()).map(|array| array.row_bytes);
        // Only the pixels of the image are left to a device.
        let values = pictures.chain(masks).chain(arrays).max().unwrap_or(0) as u64 * mixing.copies(false);
        images.max(values)
    }
}
