//! Decoding of an image from the start of its scan, because no other start is known.

use super::mcu_row::Output;
use crate::buffer::resize_unspecified;
use crate::entropy::block::{self, Blocks};
use crate::sequential::layout::ScanLayout;
use crate::sequential::parameters::Speculation;
use crate::sequential::speculation::{self, Decoded};
use crate::sequential::state::{ScanContext, ScanError, ScanState};
use crate::sequential::workspace::ScanWorkspace;

impl ScanWorkspace {
    /// Skips the rows of MCUs above the plan's and decodes the plan's, in rounds that may have a speculative part.
    pub(super) fn decode_from_scan_start(
        &mut self,
        layout: &ScanLayout,
        output: &mut Output<'_>,
    ) -> Result<(), ScanError> {
        let result = self.decode_rounds(layout, output);
        if result.is_err() {
            block::clear(&mut self.blocks);
        }
        result
    }

    fn decode_rounds(&mut self, layout: &ScanLayout, output: &mut Output<'_>) -> Result<(), ScanError> {
        let (across, mcu_blocks) = (layout.across(), layout.mcu_blocks);
        let mcu_rows = output.plan.mcu_rows.clone();
        let batch = self.speculation.round_rows(layout.row_blocks(), layout.mcus.1) as usize * across;
        let (regions, blocks) = Speculation::regions(batch, across, mcu_blocks);
        resize_unspecified(&mut self.blocks, blocks);
        let scan_offsets = if mcu_rows.start > 0 { self.speculation.scan_offsets(layout.total_blocks()) } else { 0 };
        resize_unspecified(&mut self.offsets, scan_offsets);
        output.writer.begin(output.plan);
        let ScanWorkspace { cpu, speculation, speculative_mcus, caches, unstuffed, blocks, offsets, .. } = self;
        let context = ScanContext { layout, unstuffed, bmi2: cpu.bmi2, speculation: *speculation };
        let mut state = ScanState::at(layout, 0, 0, 0, [0; 3]);
        let top = u64::from(mcu_rows.start) * across as u64;
        if top > 0 {
            *speculative_mcus +=
                layout.with_scan_tables(caches, |tables| state.skip_to(&context, tables, top, offsets, |_, _| {}))?;
        }
        layout.with_tables(caches, |tables| {
            let blocks = &mut Blocks::new(blocks, tables);
            // The blocks of an incomplete row.
            let mut kept = 0..0;
            let end = u64::from(mcu_rows.end) * across as u64;
            while state.mcu < end {
                let round = speculation::decode_round(&context, &mut state, (batch, end), blocks, &regions)?;
                for (i, Decoded { valid, written }) in round.into_iter().enumerate() {
                    if valid.is_empty() {
                        blocks.clear(written);
                        continue;
                    }
                    if i > 0 {
                        *speculative_mcus += (valid.len() / mcu_blocks) as u64;
                    }
                    // The part completes the row.
                    let from = valid.start - kept.len();
                    if from != kept.start {
                        blocks.copy_within(kept.clone(), from);
                        blocks.clear(kept);
                    }
                    let rows = (valid.end - from) / layout.row_blocks();
                    for row in 0..rows {
                        output.push_row(cpu, layout, blocks.all(), from + row * layout.row_blocks());
                    }
                    kept = from + rows * layout.row_blocks()..valid.end;
                    blocks.clear(written.start.min(from)..kept.start);
                    blocks.clear(valid.end..written.end);
                }
                // They move in front of the next round's first part.
                let front = regions[0].first - kept.len();
                blocks.copy_within(kept.clone(), front);
                blocks.clear(kept.start.max(regions[0].first)..kept.end);
                kept = front..regions[0].first;
            }
            Ok(())
        })
    }
}
