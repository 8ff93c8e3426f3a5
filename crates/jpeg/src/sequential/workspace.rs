//! The buffers that decoding of sequential scans reuses from image to image.

use std::collections::VecDeque;

use super::parameters::Speculation;
use super::run::McuRun;
use super::state::ScanState;
use crate::bitstream::unstuffed::UnstuffedData;
use crate::cpu::CpuFeatures;
use crate::entropy::block::Block;
use crate::huffman::table_cache::TableCaches;

/// Buffers and parameters of sequential decoding.
pub(crate) struct ScanWorkspace {
    pub cpu: CpuFeatures,
    pub speculation: Speculation,
    /// MCUs that came from speculation, of all images so far.
    pub speculative_mcus: u64,
    pub caches: TableCaches,
    pub unstuffed: UnstuffedData,
    /// Blocks of a round. Between two images all coefficients are 0.
    pub blocks: Vec<Block>,
    /// Bit offsets of MCUs or blocks.
    pub offsets: Vec<u32>,
    /// Known states, one for each group of MCU rows.
    pub starts: Vec<ScanState>,
    /// The groups that are decoded, or wait for one before them.
    pub runs: VecDeque<McuRun>,
}

impl ScanWorkspace {
    pub(crate) fn new(cpu: CpuFeatures) -> ScanWorkspace {
        ScanWorkspace {
            cpu,
            speculation: Speculation::FAST,
            speculative_mcus: 0,
            caches: TableCaches::new(),
            unstuffed: UnstuffedData::default(),
            blocks: Vec::new(),
            offsets: Vec::new(),
            starts: Vec::new(),
            runs: VecDeque::new(),
        }
    }

    /// Bytes of memory held, without the table caches.
    pub(crate) fn capacity(&self) -> usize {
        let blocks = self.blocks.capacity() * size_of::<Block>();
        let starts = self.starts.capacity() * size_of::<ScanState>();
        let runs = self.runs.capacity() * size_of::<McuRun>();
        blocks + self.offsets.capacity() * 4 + starts + runs + self.unstuffed.capacity()
    }

    /// Frees all memory but the table caches.
    pub(crate) fn free(&mut self) {
        (self.blocks, self.offsets) = (Vec::new(), Vec::new());
        (self.starts, self.runs) = (Vec::new(), VecDeque::new());
        self.unstuffed = UnstuffedData::default();
    }
}
