//! Converts rows of blocks to rows of pixels. Keeps only the few rows of samples that the next rows of pixels need.

use super::{color, upsample};
use crate::blocks::BlockRow;
use crate::buffer::resize_unspecified;
use crate::cpu::CpuFeatures;
use crate::markers::header::{Color, MAX_COMPONENTS};
use crate::plan::{DecodePlan, Plane, Upsample};
use crate::request::Channels;
use crate::transform::idct;

/// Bytes after each row that vector code may read or write: 64 for stores and for the loads of `color`.
const MARGIN: usize = 64;

/// The samples of one component that are still needed.
#[derive(Default)]
struct SampleWindow {
    samples: Vec<u8>,
    stride: usize,
    /// The component's sample rows `start..end` are in the window, row `start` at its beginning.
    start: u32,
    end: u32,
    /// The component's column of the first sample.
    column: u32,
    /// One upsampled row.
    row: Vec<u8>,
}

/// Holds the buffers of the last stage, reused from image to image.
#[derive(Default)]
pub(crate) struct PixelWriter {
    windows: [SampleWindow; MAX_COMPONENTS],
    /// The next row of pixels to write, in the scaled image.
    y: u32,
}

/// Sample rows of a window: those of a row of MCUs, and those that wait for the next row of MCUs.
fn window_rows(plane: &Plane, plan: &DecodePlan) -> usize {
    let slowest = plan.planes().iter().map(|p| p.expand.1).max().unwrap_or(1);
    (plane.rows_per_mcu() + 2 * slowest + 2) as usize
}

fn window_stride(plane: &Plane) -> usize {
    let columns = plane.block_columns();
    ((columns.end - columns.start).next_multiple_of(2) * plane.block) as usize + MARGIN
}

fn row_length(plane: &Plane) -> usize {
    match plane.upsample {
        Upsample::None => 0,
        _ => ((plane.columns.end - plane.columns.start) * plane.expand.0) as usize + 2 * MARGIN,
    }
}

/// Returns the most bytes of memory that [`PixelWriter`] holds for a plan.
pub(crate) fn max_bytes(plan: &DecodePlan) -> usize {
    let window = |p: &Plane| window_rows(p, plan) * window_stride(p) + row_length(p);
    plan.planes().iter().map(window).sum()
}

impl PixelWriter {
    /// Prepares for the first row of MCUs of `plan`.
    pub(crate) fn begin(&mut self, plan: &DecodePlan) {
        self.y = plan.rect.y;
        for (window, plane) in self.windows.iter_mut().zip(plan.planes()) {
            window.stride = window_stride(plane);
            window.start = plan.mcu_rows.start * plane.rows_per_mcu();
            window.end = window.start;
            window.column = plane.block_columns().start * plane.block;
            resize_unspecified(&mut window.samples, window_rows(plane, plan) * window.stride);
            resize_unspecified(&mut window.row, row_length(plane));
        }
    }

    /// Bytes of memory held.
    pub(crate) fn capacity(&self) -> usize {
        self.windows.iter().map(|w| w.samples.capacity() + w.row.capacity()).sum()
    }

    /// Transforms the blocks of component `index` in the next row of MCUs; `blocks` returns its `v`-th row of blocks.
    pub(crate) fn push<'b>(
        &mut self,
        cpu: &CpuFeatures,
        plane: &Plane,
        index: usize,
        blocks: impl Fn(u32) -> BlockRow<'b>,
    ) {
        let window = &mut self.windows[index];
        for v in 0..plane.v {
            let rows = window.end..window.end + plane.block;
            if rows.start < plane.rows.end && rows.end > plane.rows.start {
                let at = (window.end - window.start) as usize * window.stride;
                idct::transform_row(cpu, plane, &blocks(v), &mut window.samples[at..], window.stride);
            }
            window.end = rows.end;
        }
    }

    /// Writes all rows of pixels whose samples are there.
    pub(crate) fn write_ready_rows(
        &mut self,
        cpu: &CpuFeatures,
        plan: &DecodePlan,
        color: Color,
        out: &mut [u8],
        stride: usize,
    ) {
        let (rect, planes) = (plan.rect, plan.planes());
        let ready = |y: u32, windows: &[SampleWindow; MAX_COMPONENTS]| {
            planes.iter().zip(windows).all(|(p, w)| {
                let (near, far) = p.rows_for(y);
                near.max(far) < w.end
            })
        };
        while self.y < rect.y + rect.height && ready(self.y, &self.windows) {
            let at = (self.y - rect.y) as usize * stride;
            let pixels = &mut out[at..at + rect.width as usize * plan.pixel_bytes];
            for (window, plane) in self.windows.iter_mut().zip(planes) {
                window.upsample(cpu, plane, self.y);
            }
            let row = |i: usize| match planes.get(i) {
                Some(plane) => self.windows[i].pixels(plane, self.y, rect.x),
                None => &[],
            };
            let rows = [row(0), row(1), row(2), row(3)];
            match (color, plan.channels) {
                (Color::Samples(count), _) => color::interleave(&rows[..usize::from(count)], pixels),
                (_, Channels::Rgb) => color::convert(cpu, color, rows, pixels),
                (_, Channels::Gray) => color::convert_to_gray(color, rows, pixels),
            }
            self.y += 1;
        }
        for (window, plane) in self.windows.iter_mut().zip(planes) {
            let (near, far) = plane.rows_for(self.y.min(rect.y + rect.height - 1));
            window.drop_before(near.min(far));
        }
    }
}

impl SampleWindow {
    fn at(&self, row: u32) -> usize {
        (row - self.start) as usize * self.stride
    }

    /// The needed samples of a row, and the bytes after them.
    fn samples(&self, plane: &Plane, row: u32) -> &[u8] {
        let at = self.at(row);
        &self.samples[at + (plane.columns.start - self.column) as usize..at + self.stride]
    }

    /// Fills `self.row` with the component's upsampled samples for pixel row `y`, from its first needed column on.
    fn upsample(&mut self, cpu: &CpuFeatures, plane: &Plane, y: u32) {
        let (near, far) = plane.rows_for(y);
        let n = (plane.columns.end - plane.columns.start) as usize;
        let mut row = std::mem::take(&mut self.row);
        let (a, b) = (self.samples(plane, near), self.samples(plane, far));
        match plane.upsample {
            Upsample::None => {}
            Upsample::Repeat => upsample::repeat(&a[..n], plane.expand.0 as usize, &mut row),
            Upsample::Across => upsample::across(cpu, a, n, &mut row),
            Upsample::Down => upsample::down(&a[..n], &b[..n], y % 2 == 1, &mut row),
            Upsample::Both => upsample::both(cpu, a, b, n, &mut row),
        }
        self.row = row;
    }

    /// The samples of pixel row `y` from pixel column `x` on.
    fn pixels(&self, plane: &Plane, y: u32, x: u32) -> &[u8] {
        match plane.upsample {
            Upsample::None => {
                let at = self.at(y);
                &self.samples[at + (x - self.column) as usize..]
            }
            _ => &self.row[(x - plane.columns.start * plane.expand.0) as usize..],
        }
    }

    /// Drops the rows before `row`.
    fn drop_before(&mut self, row: u32) {
        if row > self.start {
            let row = row.min(self.end);
            let kept = self.at(row)..self.at(self.end);
            self.samples.copy_within(kept, 0);
            self.start = row;
        }
    }
}
