//! The buffers that decoding of sequential scans reuses from image to image.

use super::parameters::Speculation;
use super::state::ScanState;
use crate::bitstream::unstuffed::UnstuffedData;
use crate::cpu::CpuFeatures;
use crate::huffman::table_cache::TableCaches;

/// Buffers and parameters of sequential decoding.
pub(crate) struct ScanWorkspace {
    pub cpu: CpuFeatures,
    pub speculation: Speculation,
    /// MCUs that came from speculation, of all images so far.
    pub speculative_mcus: u64,
    pub caches: TableCaches,
    pub unstuffed: UnstuffedData,
    /// Coefficients of a round, and for each block the index of the last one that may differ from 0.
    pub coefs: Vec<i16>,
    pub last: Vec<u8>,
    /// Bit offsets of MCUs or blocks.
    pub offsets: Vec<u32>,
    /// Known states, one for each group of MCU rows.
    pub starts: Vec<ScanState>,
}

impl ScanWorkspace {
    pub(crate) fn new(cpu: CpuFeatures) -> ScanWorkspace {
        ScanWorkspace {
            cpu,
            speculation: Speculation::FAST,
            speculative_mcus: 0,
            caches: TableCaches::new(),
            unstuffed: UnstuffedData::default(),
            coefs: Vec::new(),
            last: Vec::new(),
            offsets: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Bytes of memory held, without the table caches.
    pub(crate) fn capacity(&self) -> usize {
        let coefs = self.coefs.capacity() * 2 + self.last.capacity();
        let starts = self.starts.capacity() * size_of::<ScanState>();
        coefs + self.offsets.capacity() * 4 + starts + self.unstuffed.capacity()
    }

    /// Frees all memory but the table caches.
    pub(crate) fn free(&mut self) {
        (self.coefs, self.last) = (Vec::new(), Vec::new());
        (self.offsets, self.starts) = (Vec::new(), Vec::new());
        self.unstuffed = UnstuffedData::default();
    }
}
