//! Decoding of an image whose scan can be entered every few rows of MCUs, by entry points or restart markers.

use std::cmp::Reverse;

use super::mcu_row::Output;
use crate::bitstream::unstuffed::EntropySegment;
use crate::buffer::{clear_with_capacity, resize_unspecified};
use crate::entropy::block::{self, Blocks};
use crate::entry_points::payload::MAX_STEP;
use crate::entry_points::validate;
use crate::error::Damage;
use crate::sequential::layout::ScanLayout;
use crate::sequential::parameters::Speculation;
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

    /// Decodes from known starts: a batch of groups at a time, several of which are decoded in one loop. Each group must end
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
        let ScanWorkspace { cpu, speculation, caches, unstuffed, blocks, starts, runs, .. } = self;
        let context = ScanContext { layout, unstuffed, bmi2: cpu.bmi2(), speculation: *speculation };
        let group_blocks = Speculation::group_blocks((layout.across(), layout.mcu_blocks), step);
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
                clear_with_capacity(runs, batch as usize);
                for (i, group) in (from..(from + batch).min(needed.end)).enumerate() {
                    let mcus = u64::from(row(group + 1) - row(group)) * across;
                    runs.extend(start(group).map(|state| McuRun::new(&context, state, mcus, i * group_blocks)));
                }
                let group = |run: &McuRun| from + (run.first() / group_blocks) as u32;
                // The longest first, so that all streams end at about the same time.
                runs.sort_unstable_by_key(|run| Reverse(bit(group(run) + 1).saturating_sub(bit(group(run)))));
                decode_runs(&context, blocks, runs);
                runs.sort_unstable_by_key(McuRun::first);
                for run in runs.drain(..) {
                    let (group, mut block) = (group(&run), run.first());
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
            }
            Ok(())
        })
    }
}
