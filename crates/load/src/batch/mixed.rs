//! Mixes the rows of a complete batch: labels, objects, pixels, and all that has values for each pixel.

use super::{SharedBatch, Table};
use crate::buffer::RowBuffer;
use crate::column_values::Values;
use crate::error::{Error, Result};
use crate::mixing::{BatchChange, BatchMix};
use crate::planes::Planes;

impl SharedBatch {
    /// Mixes the rows, if the configuration says so; their pixels, unless that is left to the consumer.
    ///
    /// # Errors
    /// [`Error::Class`] if a label of rows to mix is not a class; [`Error::Alloc`].
    pub(super) fn mix(&self, table: &mut Table) -> Result<()> {
        let Some(mixing) = self.config.mixing() else { return Ok(()) };
        let Some(picture) = self.config.pictures(self.bucket).next() else { return Ok(()) };
        let size = picture.view.pipeline.output_size();
        // Without a position every row is masked, and none is mixed.
        let first = self.planned(0).position().unwrap_or(self.p);
        let (rows, seed) = (table.valid.len(), self.config.plan.seed());
        let (mix, pastes) = match mixing.draw_change(seed, self.epoch, first, size, &table.valid)? {
            BatchChange::Mix(mix) => (mix, None),
            // Labels of images stay, and no pixels are left to a device.
            BatchChange::Paste(pastes) => (BatchMix::identity(size, rows), Some(pastes)),
        };
        self.mix_labels(table, &mix, mixing.classes)?;
        let mut covers = vec![];
        if let Some(objects) = &self.config.objects {
            let held = |values: &[Values]| values.iter().map(Values::held).sum::<u64>();
            let before = held(&table.values);
            if let Some(pastes) = &pastes {
                covers = pastes.covers(objects, &table.values);
                pastes.compose_objects(objects, &mut table.values, &covers)?;
            } else if let Some(mosaics) = mix.mosaics() {
                mosaics.compose_objects(objects, &mut table.values)?;
            }
            table.unforeseen += held(&table.values).saturating_sub(before);
        }
        let images = &self.memory().images[0];
        match &pastes {
            Some(pastes) => {
                images.change_all(|images| pastes.paste(images, picture.pixels().planes(), &covers));
                self.values_of_pixels(|rows, planes| rows.change_all(|rows| pastes.paste(rows, planes, &covers)));
            }
            None => {
                if !self.config.defers_mixing() {
                    images.change_all(|images| mix.mix_pixels(images, picture.pixels()));
                }
                self.values_of_pixels(|rows, planes| rows.change_all(|rows| mix.move_values(rows, planes)));
            }
        }
        if self.config.defers_mixing() {
            table.mix = Some(mix);
        }
        Ok(())
    }

    /// Mixes the labels of images, if the configuration has a number of classes, and numbers that are 1 for each class of a row.
    ///
    /// # Errors
    /// [`Error::Class`] if a label is not a class.
    fn mix_labels(&self, table: &mut Table, mix: &BatchMix, classes: u32) -> Result<()> {
        if let Some(label) = self.config.soft_label()
            && let Values::Int64(labels) = &table.values[label]
        {
            let soft = mix.soft_labels(labels, &table.valid, classes);
            let soft = soft.map_err(|label| {
                let row = labels.iter().position(|found| *found == label);
                Error::Class { label, id: row.map_or(-1, |row| table.ids[row]), classes }
            })?;
            table.values[label] = Values::Float(soft);
        }
        // Labels of images stay where objects are mixed.
        let mixed = self.config.columns.iter().zip(&mut table.values);
        for (column, values) in mixed.filter(|(column, _)| column.is_multi_hot() && self.config.objects.is_none()) {
            if let (Some(width), Values::Float(numbers)) = (column.width(), values) {
                *numbers = mix.mix_numbers(numbers, &table.valid, width);
            }
        }
        Ok(())
    }

    /// Calls `change` with the rows of each array other than the image that has its pixels: further images, label maps, and arrays that
    /// follow its geometry.
    fn values_of_pixels(&self, mut change: impl FnMut(&RowBuffer, Planes)) {
        let (config, memory) = (&self.config, self.memory());
        let further = config.pictures(self.bucket).zip(&memory.images).skip(1);
        further.for_each(|(picture, rows)| change(rows, picture.pixels().planes()));
        let masks = config.masks().iter().zip(&memory.masks);
        masks.for_each(|(mask, rows)| change(rows, Planes::one(mask.dtype.bytes())));
        let arrays = config.arrays.outputs().zip(&memory.arrays);
        arrays.for_each(|(array, rows)| {
            if let Some(planes) = array.planes {
                change(rows, planes);
            }
        });
    }
}
