//! Applies a plan to decoded pixels and to label maps.

use super::plan::{Plan, Stage};
use super::rect::Rect;
use super::step::PaddingMode;
use crate::error::Error;
use crate::label_dtype::LabelDtype;
use crate::label_map::LabelMap;
use crate::operation::Operation;
use crate::operation::scratch::OperationScratch;
use crate::pixel_format::PixelFormat;
use crate::pixels::{PixelsMut, PixelsRef};
use crate::region::DecodedRegion;
use crate::resize::apply::{ResizeScratch, apply_geometry};
use crate::resize::padding::{compose, mirror};
use crate::resize::{Flip, Nearest, ResizeSource, Resizer, SourceRegion, resize_bytes};

/// Buffers that [`Plan::apply`] reuses from one image to the next. Use one per thread.
#[derive(Debug, Default)]
pub struct TransformScratch {
    geometry: ResizeScratch,
    operation: OperationScratch,
    resizer: Resizer,
    nearest: Nearest,
    /// The image between two stages, and the result of the second.
    image: Vec<u8>,
    next: Vec<u8>,
}

impl Plan {
    /// Applies the geometry and every stage to a decoded region, and writes the result to `out`: `[H, W, channels]` in the region's
    /// pixel format, where (W, H) is the [`output_size`](Plan::output_size). The last stage that changes the size writes there, and those
    /// after it work there.
    ///
    /// # Errors
    /// As [`apply_geometry`]; [`Error::Operation`] if a parameter does not fit the image.
    pub fn apply(
        &self,
        region: &DecodedRegion<'_>,
        out: &mut [u8],
        scratch: &mut TransformScratch,
    ) -> Result<(), Error> {
        match region.pixels.format() {
            PixelFormat::RGB8 => self.apply_as::<3>(region, out, scratch),
            PixelFormat::GRAY8 => self.apply_as::<1>(region, out, scratch),
            PixelFormat::RGB16 => self.apply_as::<6>(region, out, scratch),
            PixelFormat::GRAY16 => self.apply_as::<2>(region, out, scratch),
        }
    }

    /// [`apply`](Self::apply) for pixels of `B` bytes.
    fn apply_as<const B: usize>(
        &self,
        region: &DecodedRegion<'_>,
        out: &mut [u8],
        scratch: &mut TransformScratch,
    ) -> Result<(), Error> {
        let format = region.pixels.format();
        let geometry = self.geometry();
        let mut size = geometry.output_size();
        let TransformScratch { operation: operating, resizer, image, next, .. } = scratch;
        let mut operate = |operation: &Operation, size: (u32, u32), pixels: &mut [u8]| {
            operation.apply(PixelsMut::with_format(size.0, size.1, format, pixels)?, operating)
        };
        let Some((stages, last, operations)) = self.last_size() else {
            apply_geometry(&geometry, region, geometry.filter, out, &mut scratch.geometry)?;
            return operations_of(self.stages()).try_for_each(|operation| operate(operation, size, out));
        };
        format.check_len(self.output_size(), out.len())?;
        let mut change = |stage: &Stage, size: (u32, u32), pixels: &[u8], out: &mut [u8]| match stage {
            Stage::Resize { filter, .. } => {
                let pixels = PixelsRef::with_format(size.0, size.1, format, pixels)?;
                let source = ResizeSource { pixels, region: whole(size) };
                resizer.resize(source, *filter, stage.size(size), Flip::default(), out)
            }
            stage => {
                stage.rearrange::<B>(size, pixels, format.pixel(stage.fill()), out);
                Ok(())
            }
        };
        fit(image, format.len(size));
        apply_geometry(&geometry, region, geometry.filter, image, &mut scratch.geometry)?;
        for stage in stages {
            if let Stage::Operation(operation) = stage {
                operate(operation, size, image)?;
                continue;
            }
            let after = stage.size(size);
            fit(next, format.len(after));
            change(stage, size, image, next)?;
            std::mem::swap(image, next);
            size = after;
        }
        change(last, size, image, out)?;
        size = last.size(size);
        operations_of(operations).try_for_each(|operation| operate(operation, size, out))
    }

    /// Applies the geometry and every stage to a decoded label map, by nearest neighbour, and writes the result to `out`:
    /// `[H, W]` values of the decoded type. Values outside the map are `fill`. Operations on colours do nothing.
    ///
    /// # Errors
    /// As [`LabelMap::apply_geometry`].
    pub fn apply_to_labels(
        &self,
        labels: &mut LabelMap,
        fill: i32,
        out: &mut [u8],
        scratch: &mut TransformScratch,
    ) -> Result<(), Error> {
        match labels.dtype() {
            LabelDtype::U8 => self.write_labels::<1>(labels, fill, out, scratch),
            LabelDtype::U16 => self.write_labels::<2>(labels, fill, out, scratch),
            LabelDtype::I32 => self.write_labels::<4>(labels, fill, out, scratch),
        }
    }

    fn write_labels<const C: usize>(
        &self,
        labels: &mut LabelMap,
        fill: i32,
        out: &mut [u8],
        scratch: &mut TransformScratch,
    ) -> Result<(), Error> {
        let mut size = self.geometry().output_size();
        let bytes = |(width, height): (u32, u32)| u64::from(width) * u64::from(height) * C as u64;
        let dtype = labels.dtype();
        let TransformScratch { operation: operating, nearest, image, next, .. } = scratch;
        let mut operate = |operation: &Operation, size: (u32, u32), labels: &mut [u8]| {
            operation.apply_to_labels(dtype, size, labels, fill, operating)
        };
        let Some((stages, last, operations)) = self.last_size() else {
            labels.apply_geometry(&self.geometry(), fill, out)?;
            return operations_of(self.stages()).try_for_each(|operation| operate(operation, size, out));
        };
        labels.check_output(self.output_size(), out)?;
        let filling: [u8; C] = std::array::from_fn(|i| fill.to_le_bytes()[i]);
        let mut change = |stage: &Stage, size: (u32, u32), values: &[u8], out: &mut [u8]| match stage {
            Stage::Resize { .. } => {
                nearest.resize(values, whole(size), stage.size(size), Flip::default(), filling, out);
            }
            stage => stage.rearrange::<C>(size, values, filling, out),
        };
        fit(image, bytes(size));
        labels.apply_geometry(&self.geometry(), fill, image)?;
        for stage in stages {
            if let Stage::Operation(operation) = stage {
                operate(operation, size, image)?;
                continue;
            }
            let after = stage.size(size);
            fit(next, bytes(after));
            change(stage, size, image, next);
            std::mem::swap(image, next);
            size = after;
        }
        change(last, size, image, out);
        size = last.size(size);
        operations_of(operations).try_for_each(|operation| operate(operation, size, out))
    }

    /// Returns an upper bound of the bytes that the stages take for pixels of a format, in addition to the geometry and the result.
    pub fn scratch_bytes(&self, format: PixelFormat) -> u64 {
        let mut size = self.geometry().output_size();
        let mut most = 0;
        let kept = if self.keeps_size() { 0 } else { 1 };
        // The bounds of operations are those of RGB of 8 bits.
        let times = format.bytes().div_ceil(3) as u64;
        for stage in self.stages() {
            let after = stage.size(size);
            let both = kept * (format.len(size) + format.len(after));
            most = most.max(
                both + match stage {
                    Stage::Operation(operation) => times * operation.scratch_bytes(size),
                    Stage::Resize { filter, .. } => {
                        resize_bytes(format, (size.0.into(), size.1.into()), after, *filter)
                    }
                    Stage::Crop(_) | Stage::Pad { .. } => 0,
                },
            );
            size = after;
        }
        most
    }

    /// Returns the last stage that changes the size, with the stages before and after it; `None` if each keeps it.
    fn last_size(&self) -> Option<(&[Stage], &Stage, &[Stage])> {
        let (stages, changes) = (self.stages(), |stage: &Stage| !matches!(stage, Stage::Operation(_)));
        let last = stages.iter().rposition(changes)?;
        Some((&stages[..last], &stages[last], &stages[last + 1..]))
    }
}

/// Returns the operations of stages.
fn operations_of(stages: &[Stage]) -> impl Iterator<Item = &Operation> {
    stages.iter().filter_map(|stage| match stage {
        Stage::Operation(operation) => Some(operation),
        _ => None,
    })
}

impl Stage {
    fn fill(&self) -> [u8; 3] {
        match self {
            Stage::Pad { fill, .. } => *fill,
            _ => [0; 3],
        }
    }

    /// Writes the result of a crop or of padding; pixels have `C` bytes.
    fn rearrange<const C: usize>(&self, size: (u32, u32), pixels: &[u8], fill: [u8; C], out: &mut [u8]) {
        let image = Rect { left: 0, top: 0, width: size.0, height: size.1 };
        match *self {
            Stage::Crop(rect) => compose(rect, (image, pixels), fill, out),
            Stage::Pad { padding: [left, top, ..], mode: PaddingMode::Constant, .. } => {
                let (width, height) = self.size(size);
                let wanted = Rect { left: 0, top: 0, width, height };
                compose(wanted, (Rect { left, top, ..image }, pixels), fill, out);
            }
            Stage::Pad { padding: [left, top, ..], mode, .. } => {
                mirror::<C>(size, pixels, (left, top), self.size(size), mode, out);
            }
            Stage::Resize { .. } | Stage::Operation(_) => unreachable!("neither crop nor padding"),
        }
    }
}

fn whole((width, height): (u32, u32)) -> SourceRegion {
    let image = Rect { left: 0, top: 0, width, height };
    SourceRegion { decoded: image, crop: image, area: image.area() }
}

/// Sets the length of a buffer, which grows to exactly what is needed.
fn fit(buffer: &mut Vec<u8>, len: u64) {
    let len = len as usize;
    buffer.reserve_exact(len.saturating_sub(buffer.len()));
    buffer.resize(len, 0);
}
