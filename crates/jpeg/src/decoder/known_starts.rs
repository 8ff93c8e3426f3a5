//! Decoding of an image whose scan can be entered every few rows of MCUs, by entry points or restart markers.

use super::mcu_row::Output;
use crate::bitstream::unstuffed::EntropySegment;
use crate::buffer::resize_unspecified;
use crate::entropy::block::{self, Blocks};
use crate::entry_points::payload::MAX_STEP;
use crate::entry_points::validate;
use crate::error::Damage;
use crate::sequential::layout::ScanLayout;
use crate::sequential::parameters::Speculation;
use crate::sequential::run::{McuRun, advance};
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

    /// Decodes from known starts: several groups at a time, in one loop. Each must end where the next one starts.
    pub(super) fn decode_from_starts(
        &mut self,
        layout: &ScanLayout,
        known: Starts,
        output: &mut Output<'_>,
    ) -> Result<(), ScanError> {
        let result = self.decode_groups(layout, known, output);
        if result.is_err() {
            block::clear(&mut self.blocks);
        }
        result
    }

    fn decode_groups(&mut self, layout: &ScanLayout, known: Starts, output: &mut Output<'_>) -> Result<(), ScanError> {
        let Starts { step, hints } = known;
        let across = u64::from(layout.mcus.0);
        let held = self.speculation.groups_held(layout.row_blocks(), step, layout.mcus.1);
        let group_blocks = Speculation::group_blocks((layout.across(), layout.mcu_blocks), step);
        resize_unspecified(&mut self.blocks, held as usize * group_blocks);
        output.writer.begin(output.plan);
        let ScanWorkspace { cpu, speculation, caches, unstuffed, blocks, starts, runs, .. } = self;
        let context = ScanContext { layout, unstuffed, bmi2: cpu.bmi2, speculation: *speculation };
        let mcu_rows = &output.plan.mcu_rows.clone();
        let row = |group: u32| (group * step).min(layout.mcus.1);
        // The group of the first start: 0 for markers, and for hints the one at which decoding must begin.
        let first = starts.first().map_or(0, |state| (state.mcu / across) as u32 / step);
        let needed = if hints { first } else { mcu_rows.start / step }..mcu_rows.end.div_ceil(step);
        let start = |group: u32| starts.get((group - first) as usize).copied();
        runs.clear();
        runs.reserve_exact(held as usize);
        layout.with_tables(caches, |tables| {
            let blocks = &mut Blocks::new(blocks, tables);
            let mut next = needed.start;
            for group in needed.clone() {
                // Groups are decoded in order, but end in any order. The blocks of a group are used again for a later one.
                let run = loop {
                    while next < needed.end.min(group + held)
                        && let Some(state) = start(next)
                    {
                        let mcus = u64::from(row(next + 1) - row(next)) * across;
                        runs.push_back(McuRun::new(&context, state, mcus, (next % held) as usize * group_blocks));
                        next += 1;
                    }
                    if runs.is_empty() {
                        // No start for a group that is needed.
                        return starts.last().map_or(Ok(()), |state| Err(state.error(Damage::Ends)));
                    }
                    if runs[0].is_over()
                        && let Some(run) = runs.pop_front()
                    {
                        break run;
                    }
                    advance(&context, blocks, runs.iter_mut());
                };
                let mut block = (group % held) as usize * group_blocks;
                let state = run.into_result()?;
                let ends = match start(group + 1) {
                    Some(next) => validate::ends_at_next_start(state, &context, &next),
                    None => !hints || validate::ends_at_data_end(&state, &context),
                };
                if !ends {
                    return Err(state.error(Damage::LeftOver));
                }
                for row in row(group)..row(group + 1) {
                    if mcu_rows.contains(&row) {
                        output.push_row(cpu, layout, blocks.all(), block);
                    }
                    blocks.clear(block..block + layout.row_blocks());
                    block += layout.row_blocks();
                }
            }
            Ok(())
        })
    }
}
