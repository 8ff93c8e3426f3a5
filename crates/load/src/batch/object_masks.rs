//! The masks of the objects of a batch, gathered from the maps of its rows.

use super::{SharedBatch, Table};
use crate::buffer::OwnedBytes;
use crate::cell::Cell;
use crate::column_values::Values;
use crate::error::{Error, Result};
use crate::image::{OBJECTS, pixels};
use crate::objects::BOX;
use crate::resolved_config::ResolvedConfig;
use std::sync::PoisonError;

impl SharedBatch {
    /// Makes the masks of all rows: height times width bytes for each object, 1 where it is.
    ///
    /// # Errors
    /// [`Error::Alloc`].
    pub(super) fn gather_object_masks(&self, table: &mut Table) -> Result<()> {
        let Some((boxes, masks)) = columns(&self.config) else { return Ok(()) };
        let picture = self.config.pictures(self.bucket).next();
        let mask = picture.map_or(0, |picture| pixels(picture.view.pipeline.output_size())) as usize;
        let rows = 0..self.memory().plan.len();
        let counts: Vec<_> = rows.map(|row| self.with_out(row, |out| out.cells[boxes].len() / BOX)).collect();
        let mut offsets = vec![0];
        offsets.extend(counts.iter().scan(0, |end, count| {
            *end += (count * mask) as i64;
            Some(*end)
        }));
        let mut values = self.bytes(counts.iter().sum::<usize>() * mask)?;
        let mut rest = &mut values[..];
        for (row, count) in counts.into_iter().enumerate() {
            let (own, others) = rest.split_at_mut(count * mask);
            self.with_out(row, |out| {
                if let Cell::Maps(maps) = &out.cells[masks] {
                    let maps = maps.chunks_exact(mask.max(1));
                    own.chunks_mut(OBJECTS * mask.max(1)).zip(maps).for_each(|(masks, map)| unpack(map, masks));
                }
            });
            rest = others;
        }
        table.values[masks] = Values::RaggedUint8 { offsets, values };
        Ok(())
    }

    /// Returns memory of this many bytes: that of an earlier batch if it is large enough, and not much too large.
    fn bytes(&self, bytes: usize) -> Result<OwnedBytes> {
        let spare = std::mem::take(&mut *self.memory().spare.lock().unwrap_or_else(PoisonError::into_inner));
        if (bytes..=bytes.saturating_mul(2)).contains(&spare.capacity()) {
            return Ok(spare.cut(bytes));
        }
        drop(spare);
        // Somewhat more, for later batches.
        let allocated = OwnedBytes::alloc(bytes + bytes / 4).map_err(|source| Error::Alloc { bytes, source })?;
        Ok(allocated.cut(bytes))
    }
}

/// Takes the memory of the masks out of a table that is dropped.
pub(super) fn bytes(config: &ResolvedConfig, table: &mut Table) -> Option<OwnedBytes> {
    let (_, masks) = columns(config)?;
    match table.values.get_mut(masks)? {
        Values::RaggedUint8 { values, .. } => Some(std::mem::take(values)),
        _ => None,
    }
}

/// Returns the columns of boxes and of masks; `None` without masks.
fn columns(config: &ResolvedConfig) -> Option<(usize, usize)> {
    let objects = config.objects.as_ref()?;
    Some((objects.boxes, objects.masks?))
}

/// Writes each bit of a map as a mask.
fn unpack(map: &[u8], masks: &mut [u8]) {
    for (bit, mask) in masks.chunks_exact_mut(map.len()).enumerate() {
        mask.iter_mut().zip(map).for_each(|(value, bits)| *value = u8::from(bits & (1 << bit) != 0));
    }
}
