//! Decoding of runs of MCUs over restart markers, several of them in one loop.

use std::ops::Range;

use super::state::{ScanContext, ScanError, ScanState};
use crate::entropy::block::Blocks;
use crate::entropy::block_stream::BlockStream;
use crate::entropy::decode;
use crate::error::Damage;

/// A run of MCUs that is decoded into consecutive blocks.
pub(crate) struct McuRun {
    /// The state before the next segment; at the end, that after the last MCU.
    state: ScanState,
    /// The MCUs up to the next restart marker.
    stream: BlockStream,
    /// MCUs left.
    left: u64,
    result: Result<(), ScanError>,
}

impl McuRun {
    /// Returns the run of `mcus` MCUs from `state` on, into the blocks from `first` on.
    pub(crate) fn new(context: &ScanContext<'_>, state: ScanState, mcus: u64, first: usize) -> McuRun {
        let stream = BlockStream::new(state.bit, first, first);
        let mut run = McuRun { state, stream, left: mcus, result: Ok(()) };
        run.begin_segment(context, first);
        run
    }

    /// Returns the state after the run.
    pub(crate) fn into_result(self) -> Result<ScanState, ScanError> {
        self.result.map(|()| self.state)
    }

    /// Whether the run is decoded, or damaged.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0 || self.result.is_err()
    }

    /// Begins the MCUs up to the next restart marker.
    fn begin_segment(&mut self, context: &ScanContext<'_>, block: usize) {
        match self.state.uninterrupted(context, self.left) {
            Ok(mcus) => {
                let end = block + mcus as usize * context.layout.mcu_blocks;
                self.stream = BlockStream::new(self.state.bit, block, end);
            }
            Err(error) => self.result = Err(error),
        }
    }

    /// Completes the MCUs of a stream that is over, and begins the next ones.
    fn end_segment(&mut self, context: &ScanContext<'_>, blocks: &mut Blocks<'_>) {
        self.result = self.state.complete(context, blocks, &self.stream, 0..self.stream.mcus_wanted(blocks));
        if self.result.is_ok() && self.stream.done() < self.stream.end() {
            self.state.bit = self.stream.bit();
            self.result = Err(self.state.error(self.stream.damage()));
        }
        self.left = self.left.saturating_sub(self.stream.mcus_wanted(blocks) as u64);
        blocks.clear(self.stream.done().min(self.stream.end())..self.stream.done() + 1);
        if !self.is_over() {
            self.begin_segment(context, self.stream.end());
        }
    }
}

/// Advances the first [`decode::STREAMS`] runs that are not over, at the same time, until one of them is at the end of a segment. DC
/// coefficients of a segment are absolute then.
pub(crate) fn advance<'r>(
    context: &ScanContext<'_>,
    blocks: &mut Blocks<'_>,
    runs: impl IntoIterator<Item = &'r mut McuRun>,
) {
    let bytes = context.unstuffed.bytes();
    let mut runs = runs.into_iter().filter(|run| !run.is_over());
    let mut runs = [runs.next(), runs.next(), runs.next()];
    match runs.each_mut().map(|run| run.as_mut().map(|run| &mut run.stream)) {
        [Some(a), Some(b), Some(c)] => decode::run(context.bmi2, bytes, blocks, [a, b, c]),
        [Some(a), Some(b), None] => decode::run(context.bmi2, bytes, blocks, [a, b]),
        [Some(a), ..] => decode::run(context.bmi2, bytes, blocks, [a]),
        [None, ..] => {}
    }
    for run in runs.into_iter().flatten() {
        if run.stream.is_over(bytes) {
            run.end_segment(context, blocks);
        }
    }
}

impl ScanState {
    /// Decodes `mcus` MCUs into the blocks from `first` on. DC coefficients are absolute on return.
    pub(crate) fn decode(
        &mut self,
        context: &ScanContext<'_>,
        mcus: u64,
        blocks: &mut Blocks<'_>,
        first: usize,
    ) -> Result<(), ScanError> {
        let mut run = McuRun::new(context, *self, mcus, first);
        while !run.is_over() {
            advance(context, blocks, [&mut run]);
        }
        *self = run.into_result()?;
        Ok(())
    }

    /// Advances by the given MCUs of a stream, as far as they are decoded, and completes their blocks.
    pub(super) fn complete(
        &mut self,
        context: &ScanContext<'_>,
        blocks: &mut Blocks<'_>,
        stream: &BlockStream,
        mcus: Range<usize>,
    ) -> Result<(), ScanError> {
        let (bytes, mcu_blocks) = (context.unstuffed.bytes(), blocks.mcu_blocks());
        let mcus = mcus.start..mcus.end.min(stream.mcus(blocks));
        let range = stream.first() + mcus.start * mcu_blocks..stream.first() + mcus.end * mcu_blocks;
        if range.is_empty() {
            return Ok(());
        }
        let components = &context.layout.blocks[..mcu_blocks];
        let done = blocks.complete(range.clone(), components, &mut self.predictors);
        let last = match done {
            Ok(()) => range.end - 1,
            Err(block) => block,
        };
        self.bit = blocks.end_bit(bytes, last);
        match done {
            Ok(()) => {
                self.advance(mcus.len() as u64);
                self.check_segment(context)
            }
            Err(block) => {
                self.mcu += ((block - range.start) / mcu_blocks) as u64;
                Err(self.error(Damage::Block))
            }
        }
    }
}
