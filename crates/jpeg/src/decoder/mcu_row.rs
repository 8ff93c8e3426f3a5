//! From the coefficients of a row of MCUs to pixels.

use crate::blocks::{BlockRow, BlockSource};
use crate::cpu::CpuFeatures;
use crate::entropy::block::Block;
use crate::markers::header::Color;
use crate::pixels::writer::PixelWriter;
use crate::plan::DecodePlan;
use crate::sequential::layout::ScanLayout;

/// Where the pixels of a sequential image go.
pub(super) struct Output<'a> {
    pub plan: &'a DecodePlan,
    pub color: Color,
    pub writer: &'a mut PixelWriter,
    pub out: &'a mut [u8],
    pub stride: usize,
}

impl Output<'_> {
    /// Transforms a row of MCUs, whose blocks begin at index `first` of `blocks` in the order of the scan, and writes the rows of
    /// pixels that it completes.
    pub(super) fn push_row(&mut self, cpu: &CpuFeatures, layout: &ScanLayout, blocks: &[Block], first: usize) {
        for (i, plane) in self.plan.planes().iter().enumerate() {
            self.writer.push(cpu, plane, i, |v| BlockRow {
                source: BlockSource::Blocks(blocks),
                first: first + (plane.first + v * plane.h) as usize,
                run: plane.h as usize,
                step: layout.mcu_blocks,
            });
        }
        self.writer.write_ready_rows(cpu, self.plan, self.color, self.out, self.stride);
    }
}
