//! Decoding of an image whose scan can be entered every few rows of MCUs, by entry points or restart markers.

use super::mcu_row::Output;
use crate::bitstream::unstuffed::EntropySegment;
use crate::buffer::resize_unspecified;
use crate::entropy::block::{self, Blocks};
use crate::entropy::decode::{MAX_OVERSHOOT, STREAMS};
use crate::entry_points::payload::MAX_STEP;
use crate::entry_points::validate;
use crate::error::Damage;
use crate::sequential::layout::ScanLayout;
use crate::sequential::run::{McuRun, decode_runs};
use crate::sequential::state::{ScanContext, ScanError, ScanState};
use crate::sequential::workspace::ScanWorkspace;

/// What [`ScanWorkspace::starts`] holds.
#[derive(Clone, Copy)]
pub(super) struct Starts {
    /// Rows of MCUs in a group; each group has a start.
    pub step: u32,
    /// Whether they are hints, so that the last group must be found to end where the data end.
    pub hints: bool,
}

impl ScanWorkspace {
    /// Fills `starts` from the restart markers, if they come every few whole rows of MCUs and all of them are there.
    pub(super) fn find_restart_starts(&mut self, layout: &ScanLayout) -> Option<Starts> {
        let across = u64::from(layout.mcus.0);
        let step = layout.interval / across;
        if !layout.interval.is_multiple_of(across) || !(1..=u64::from(MAX_STEP)).contains(&step) {
            return None;
        }
        let step = step as u32;
        let groups = layout.mcus.1.div_ceil(step) as usize;
        let in_order = |(i, s): (usize, &EntropySegment)| i == 0 || s.restart == Some(((i - 1) & 7) as u8);
        let segments = self.unstuffed.segments();
        if segments.len() != groups || !segments.iter().enumerate().all(in_order) {
            return None;
        }
        self.starts.clear();
        self.starts.reserve_exact(groups);
        self.starts.extend(
            (0..)
                .zip(segments)
                .map(|(i, segment)| ScanState::at(layout, i as u64 * layout.interval, segment.start * 8, i, [0; 3])),
        );
        Some(Starts { step, hints: false })
    }

    /// Decodes from known starts: a batch of groups at a time, parts of which are decoded in one loop. Each part must end
    /// where the next one starts.
    pub(super) fn decode_from_starts(
        &mut self,
        layout: &ScanLayout,
        known: Starts,
        output: &mut Output<'_>,
    ) -> Result<(), ScanError> {
        let result = self.decode_batches(layout, known, output);
        if result.is_err() {
            block::clear(&mut self.blocks);
        }
        result
    }

    fn decode_batches(&mut self, layout: &ScanLayout, known: Starts, output: &mut Output<'_>) -> Result<(), ScanError> {
        let Starts { step, hints } = known;
        let across = u64::from(layout.mcus.0);
        let batch = self.speculation.batch_groups(layout.row_blocks(), step, layout.mcus.1);
        resize_unspecified(
            &mut self.blocks,
            self.speculation.batch_blocks((layout.across(), layout.mcu_blocks), step, layout.mcus.1),
        );
        output.writer.begin(output.plan);
        let ScanWorkspace { cpu, speculation, caches, unstuffed, blocks, starts, .. } = self;
        let context = ScanContext { layout, unstuffed, bmi2: cpu.bmi2(), speculation: *speculation };
        let mcu_rows = &output.plan.mcu_rows.clone();
        let row = |group: u32| (group * step).min(layout.mcus.1);
        // The group of the first start: 0 for markers, and for hints the one at which decoding must begin.
        let first = starts.first().map_or(0, |state| (state.mcu / across) as u32 / step);
        let needed = if hints { first } else { mcu_rows.start / step }..mcu_rows.end.div_ceil(step);
        let start = |group: u32| starts.get((group - first) as usize).copied();
        let bit = |group: u32| start(group).map_or(unstuffed.bits(), |state| state.bit);
        layout.with_tables(caches, |tables| {
            let blocks = &mut Blocks::new(blocks, tables);
            for from in needed.clone().step_by(batch as usize) {
                let to = (from + batch).min(needed.end);
                // Parts of approximately as many bits.
                let mut splits = [to; STREAMS + 1];
                splits[0] = from;
                for i in 1..STREAMS {
                    let wanted = bit(from) + (bit(to).saturating_sub(bit(from))) * i / STREAMS;
                    splits[i] = (splits[i - 1] + 1..to).min_by_key(|&g| bit(g).abs_diff(wanted)).unwrap_or(to);
                }
                let mut block = 0;
                let mut runs = [const { None }; STREAMS];
                let mut firsts = [0; STREAMS];
                for (i, part) in splits.windows(2).enumerate() {
                    firsts[i] = block;
                    let rows = row(part[1]) - row(part[0]);
                    let mcus = u64::from(rows) * across;
                    if rows > 0 {
                        runs[i] = start(part[0]).map(|state| McuRun::new(&context, state, mcus, block));
                    }
                    block += (mcus as usize + MAX_OVERSHOOT) * layout.mcu_blocks;
                }
                decode_runs(&context, blocks, &mut runs);
                for (i, run) in runs.into_iter().enumerate() {
                    let Some(run) = run else { continue };
                    let state = run.into_result()?;
                    let ends = match start(splits[i + 1]) {
                        Some(next) => validate::ends_at_next_start(state, &context, &next),
                        None => !hints || validate::ends_at_data_end(&state, &context),
                    };
                    if !ends {
                        return Err(state.error(Damage::LeftOver));
                    }
                    for row in row(splits[i])..row(splits[i + 1]) {
                        if mcu_rows.contains(&row) {
                            output.push_row(cpu, layout, blocks.all(), firsts[i]);
                        }
                        blocks.clear(firsts[i]..firsts[i] + layout.row_blocks());
                        firsts[i] += layout.row_blocks();
                    }
                }
            }
            Ok(())
        })
    }
}
