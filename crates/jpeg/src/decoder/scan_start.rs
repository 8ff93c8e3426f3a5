//! Decoding of an image from the start of its scan, because no other start is known.

use super::mcu_row::Output;
use crate::buffer::resize_unspecified;
use crate::sequential::layout::ScanLayout;
use crate::sequential::speculation::{self, RoundBuffers};
use crate::sequential::state::{ScanContext, ScanError, ScanState};
use crate::sequential::workspace::ScanWorkspace;

impl ScanWorkspace {
    /// Skips the rows of MCUs above the plan's and decodes the plan's, in rounds that may have a speculative part.
    pub(super) fn decode_from_scan_start(
        &mut self,
        layout: &ScanLayout,
        output: &mut Output<'_>,
    ) -> Result<(), ScanError> {
        let (across, mcu_blocks) = (layout.across(), layout.mcu_blocks);
        let mcu_rows = output.plan.mcu_rows.clone();
        // In the buffers of the speculative part, a row of MCUs is free in front: for what the first part holds of the row in
        // which the two parts meet.
        let batch = self.speculation.round_rows(layout.row_blocks(), 1, layout.mcus.1) as usize * across;
        let first = layout.coefs_len(batch);
        resize_unspecified(&mut self.coefs, first + layout.coefs_len(across + batch));
        resize_unspecified(&mut self.last, (2 * batch + across) * mcu_blocks);
        let scan_offsets = if mcu_rows.start > 0 { self.speculation.scan_offsets(layout.total_blocks()) } else { 0 };
        resize_unspecified(&mut self.offsets, scan_offsets.max(2 * batch + 3));
        output.writer.begin(output.plan);
        let ScanWorkspace { cpu, speculation, speculative_mcus, caches, unstuffed, coefs, last, offsets, .. } = self;
        let (coefs_a, coefs_b) = coefs.split_at_mut(first);
        let (last_a, last_b) = last.split_at_mut(batch * mcu_blocks);
        layout.with_tables(caches, |tables| {
            let context = ScanContext { layout, unstuffed, tables, bmi2: cpu.bmi2(), speculation: *speculation };
            let mut state = ScanState::at(layout, unstuffed, 0, 0, 0, [0; 3]);
            let top = u64::from(mcu_rows.start) * across as u64;
            if top > 0 {
                *speculative_mcus += layout
                    .with_scan_tables(caches, |tables| state.skip_to(&context, tables, top, offsets, |_, _| {}))?;
            }
            let (offsets_a, offsets_b) = offsets.split_at_mut(batch + 1);
            let mut push_rows = |coefs: &[i16], last: &[u8], rows: usize| {
                for row in 0..rows {
                    output.push_row(cpu, layout, coefs, last, row * layout.row_blocks());
                }
            };
            // MCUs of an incomplete row, at the beginning of the first part's buffers.
            let mut kept = 0;
            let end = u64::from(mcu_rows.end) * across as u64;
            while state.mcu < end {
                let buffers = RoundBuffers {
                    coefs: (&mut coefs_a[kept * mcu_blocks * 64..], &mut coefs_b[across * mcu_blocks * 64..]),
                    last: (&mut last_a[kept * mcu_blocks..], &mut last_b[across * mcu_blocks..]),
                    mcu_offsets: (&mut *offsets_a, &mut *offsets_b),
                    mcus: (batch - kept, batch),
                };
                let round = speculation::decode_round(&context, &mut state, (batch, end), buffers)?;
                *speculative_mcus += round.second as u64;
                let have = kept + round.first;
                push_rows(coefs_a, last_a, have / across);
                kept = have % across;
                let incomplete = (have - kept) * mcu_blocks..have * mcu_blocks;
                if round.second == 0 {
                    coefs_a.copy_within(incomplete.start * 64..incomplete.end * 64, 0);
                    last_a.copy_within(incomplete, 0);
                    continue;
                }
                // The incomplete row moves in front of the speculative part, which completes it.
                let from = across + round.from - kept;
                let front = from * mcu_blocks..(from + kept) * mcu_blocks;
                coefs_b[front.start * 64..front.end * 64]
                    .copy_from_slice(&coefs_a[incomplete.start * 64..incomplete.end * 64]);
                last_b[front].copy_from_slice(&last_a[incomplete]);
                let have = kept + round.second;
                push_rows(&coefs_b[from * mcu_blocks * 64..], &last_b[from * mcu_blocks..], have / across);
                kept = have % across;
                let incomplete = (from + have - kept) * mcu_blocks..(from + have) * mcu_blocks;
                coefs_a[..kept * mcu_blocks * 64].copy_from_slice(&coefs_b[incomplete.start * 64..incomplete.end * 64]);
                last_a[..kept * mcu_blocks].copy_from_slice(&last_b[incomplete]);
            }
            Ok(())
        })
    }
}
