//! A complete batch, as the consumer sees it.

use super::SharedBatch;
use super::arrays::{Array, Masks, Pictures};
use crate::buffer::{BatchBuffer, RowBuffer};
use crate::column_values::Values;
use crate::mixing::BatchMix;
use crate::objects::ObjectRole;
use crate::packing::PackedSamples;
use crate::resolved_config::Picture;
use shardtool_decode::{Normalizer, Output, PixelFormat};
use shardtool_order::{Bucket, ResumeState, Shape};
use shardtool_read::Record;
use std::fmt;
use std::sync::Arc;

/// A batch of N rows. Dropping it returns its memory to the loader. It can be kept for any time, outlives the loader,
/// and can be read from any thread, but counts against a given memory budget.
pub struct Batch(Arc<SharedBatch>);

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(home) = self.0.home.upgrade() {
            home.release(self.0.replica);
        }
    }
}

impl Batch {
    /// Wraps a complete batch, which the hand-over counts as held.
    pub(crate) fn new(batch: Arc<SharedBatch>) -> Self {
        Batch(batch)
    }

    pub(super) fn shared(&self) -> &SharedBatch {
        &self.0
    }

    /// Returns N, including rows without a sample.
    #[expect(clippy::len_without_is_empty, reason = "a batch has at least one row")]
    pub fn len(&self) -> usize {
        self.0.table().valid.len()
    }

    /// Returns the pixels of the first view, aligned to 64 bytes: u8 or little-endian u16 as [`Batch::pixel_format`] says, or the
    /// little-endian values of [`Batch::output`], in the order of [`Batch::image_shape`]. `None` if the loader delivers no images.
    pub fn images(&self) -> Option<&[u8]> {
        self.0.memory().images.first().and_then(RowBuffer::bytes)
    }

    /// Returns how to mix the pixels of the image, which are not mixed; `None` unless that is left to the consumer
    /// ([`Config::defer_pixels`](crate::Config::defer_pixels)). Everything else of the batch is mixed.
    pub fn mix(&self) -> Option<&BatchMix> {
        self.0.table().mix.as_ref()
    }

    /// Returns every array of images: each view of the image, then each view of further images.
    pub fn pictures(&self) -> impl Iterator<Item = Pictures<'_>> {
        let arrays = self.0.config.pictures(self.0.bucket).zip(&self.0.memory().images);
        arrays.map(|(picture, rows)| Pictures {
            feature: picture.feature,
            view: &picture.view.name,
            shape: self.shape_of(picture),
            pixel_format: picture.format,
            output: picture.normalizer.map(Normalizer::output),
            values: picture.values,
            clips: self.0.config.clip().map(|clip| [clip.clips as usize, clip.frames as usize]),
            buffer: rows.buffer(),
            bytes: rows.bytes().unwrap_or_default(),
        })
    }

    /// Returns the arrays of every [`Arrays`](crate::Arrays), then of every [`RaggedArrays`](crate::RaggedArrays), in their order.
    pub fn arrays(&self) -> impl Iterator<Item = Array<'_>> {
        let arrays = self.0.config.arrays.outputs().zip(&self.0.memory().arrays);
        arrays.map(|(array, rows)| Array {
            feature: &array.name,
            dtype: array.dtype,
            shape: [self.len()].into_iter().chain(array.shape.iter().map(|length| *length as usize)).collect(),
            buffer: rows.buffer(),
            bytes: rows.bytes().unwrap_or_default(),
        })
    }

    /// Returns the label maps of each [`Mask`](crate::Mask), in the order of the configuration.
    pub fn masks(&self) -> impl Iterator<Item = Masks<'_>> {
        self.labels_of_pixels().filter_map(|(feature, masks)| Some(Masks { feature: feature?, ..masks }))
    }

    /// Returns which pixels of the images show the stored one ([`PixelMask`](crate::PixelMask)): 1 where they do, 0 where they are
    /// padding. `None` if the configuration does not ask for it.
    pub fn pixel_mask(&self) -> Option<Masks<'_>> {
        self.labels_of_pixels().find_map(|(feature, masks)| feature.is_none().then_some(masks))
    }

    /// Returns the labels of each array, and the feature that they are of.
    fn labels_of_pixels(&self) -> impl Iterator<Item = (Option<&str>, Masks<'_>)> {
        let size = self.0.config.pictures(self.0.bucket).next().map(|picture| picture.view.pipeline.output_size());
        let (width, height) = size.unwrap_or_default();
        let labels = self.0.config.masks().iter().zip(&self.0.memory().masks);
        labels.map(move |(labels, rows)| {
            let masks = Masks {
                feature: "",
                dtype: labels.dtype,
                shape: [self.len(), height as usize, width as usize],
                buffer: rows.buffer(),
                bytes: rows.bytes().unwrap_or_default(),
            };
            (labels.feature.as_deref(), masks)
        })
    }

    /// Returns the channels of the images, and the bits of their samples.
    pub fn pixel_format(&self) -> PixelFormat {
        self.0.config.pixel_format()
    }

    /// Returns type, layout and normalisation of the pixels; `None` for u8, or u16 with 16 bits.
    pub fn output(&self) -> Option<&Output> {
        self.0.config.normalizer.as_ref().map(Normalizer::output)
    }

    /// Returns the shape of [`Batch::images`]: `[N, H, W, C]`, or `[N, C, H, W]` if that is the layout of [`Batch::output`];
    /// `None` without images. With clips, N is the number of all frames ([`Pictures::dimensions`]).
    pub fn image_shape(&self) -> Option<[usize; 4]> {
        let first = self.0.config.pictures(self.0.bucket).next()?;
        Some(self.shape_of(first))
    }

    fn shape_of(&self, picture: Picture<'_>) -> [usize; 4] {
        let (width, height) = picture.view.pipeline.output_size();
        let images = self.len() * self.0.config.row_frames();
        let shape = [images, height as usize, width as usize, picture.format.channels.count()];
        picture.normalizer.map_or(shape, |normalizer| normalizer.output().layout().shape(shape))
    }

    /// Returns the memory of the pixels, as its allocator returned it.
    pub fn buffer(&self) -> Option<&dyn BatchBuffer> {
        self.0.memory().images.first().map(RowBuffer::buffer)
    }

    /// Returns the id of each row's sample, `[N]`; −1 in rows without one. Ids count through the loader's splits. With packing,
    /// the id of each sample, `[S]`: see [`packed`](Self::packed).
    pub fn ids(&self) -> &[i64] {
        &self.0.table().ids
    }

    /// Returns which samples are in which row; `None` without packing.
    pub fn packed(&self) -> Option<PackedSamples<'_>> {
        let packing = self.0.config.plan.packing()?;
        let table = self.0.table();
        Some(PackedSamples { offsets: &table.offsets, tokens: &table.tokens, capacity: packing.capacity() as usize })
    }

    /// Returns whether each row has a sample, `[N]`.
    pub fn valid(&self) -> &[bool] {
        &self.0.table().valid
    }

    /// Returns the names of the columns, in the order of the configuration.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.0.config.columns.iter().map(|c| c.feature.as_str())
    }

    /// Returns the values of a column; `None` if the batch has no such column. In rows without a sample, integer labels
    /// are −100, other numbers 0, and ragged values and byte strings empty. With packing, every column is ragged: it has the
    /// values of the row's samples, one after the other.
    pub fn column(&self, feature: &str) -> Option<&Values> {
        let at = self.columns().position(|name| name == feature)?;
        self.0.table().values.get(at)
    }

    /// Returns the numbers per row of a column, of mixed labels the number of classes; `None` for ragged columns, bytes and packed rows.
    pub fn column_width(&self, feature: &str) -> Option<usize> {
        let column = self.columns().position(|name| name == feature)?;
        match (self.0.config.mixing(), self.0.config.soft_label()) {
            (Some(mixing), Some(label)) if label == column => Some(mixing.classes as usize),
            _ if self.packed().is_some() => None,
            _ => self.0.config.columns[column].width(),
        }
    }

    /// Returns what a column holds of the objects in the image; `None` for other columns.
    pub fn column_role(&self, feature: &str) -> Option<ObjectRole> {
        let position = self.columns().position(|name| name == feature)?;
        self.0.config.objects.as_ref()?.role(position)
    }

    /// Returns the shape of those values of a ragged column that belong together: `[4]` of boxes, `[3]` of keypoints, `[H, W]` of
    /// masks, `[]` of others.
    pub fn column_item(&self, feature: &str) -> Vec<usize> {
        let config = &self.0.config;
        let picture = config.pictures(self.0.bucket).next();
        let size = picture.map_or((0, 0), |picture| picture.view.pipeline.output_size());
        self.column_role(feature).map_or(vec![], |role| role.item(size))
    }

    /// Returns the records, `[N]`, `None` in rows without a sample; empty unless the loader delivers records.
    pub fn records(&self) -> &[Option<Record>] {
        &self.0.table().records
    }

    /// Returns the bucket of its rows; `None` without buckets.
    pub fn bucket(&self) -> Option<Bucket> {
        self.0.config.plan.buckets().map(|buckets| buckets.as_slice()[self.0.bucket])
    }

    /// Returns the number of values to which ragged columns can be padded: the tokens of a packed row, or the bound of a bucket of
    /// lengths; `None` for other batches.
    pub fn row_length(&self) -> Option<usize> {
        match (self.packed(), self.bucket().map(|bucket| bucket.shape)) {
            (Some(packed), _) => Some(packed.capacity),
            (None, Some(Shape::Length(bound))) => Some(bound.get() as usize),
            (None, Some(Shape::Image(_)) | None) => None,
        }
    }

    /// Returns the epoch, from 0.
    pub fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// Returns the number of positions of the epoch before this batch; with buckets, of bucket batches; with packing, of packed
    /// rows.
    pub fn position(&self) -> u64 {
        self.0.p
    }

    /// Returns the state to resume from after this batch.
    pub fn state_after(&self) -> ResumeState {
        self.0.config.state(self.0.after)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Batch");
        f.field("epoch", &self.0.epoch).field("position", &self.0.p).field("ids", &self.ids()).finish_non_exhaustive()
    }
}
