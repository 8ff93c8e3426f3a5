//! What the MCUs of a sequential scan consist of.

use crate::entropy::MAX_MCU_BLOCKS;
use crate::entropy::block::{BlockTables, McuTables};
use crate::entropy::scanner::{BlockScanTables, McuScanTables};
use crate::error::Result;
use crate::huffman::table_cache::TableCaches;
use crate::markers::parser::{Parser, ScanComponent, ScanHeader};

/// The structure of the only scan of an image: its MCUs, their blocks, and the cache slots of their tables.
pub(crate) struct ScanLayout {
    /// MCUs across and down.
    pub mcus: (u32, u32),
    /// For each block of an MCU, the index of its component in the scan.
    pub blocks: [u8; MAX_MCU_BLOCKS],
    /// Number of blocks of an MCU.
    pub mcu_blocks: usize,
    /// MCUs between restart markers; `u64::MAX` if there are none.
    pub interval: u64,
    /// Whether a speculative decoder that takes one block of an MCU for another is certain to fail. It is not if all
    /// components share their tables, so such scans are not decoded speculatively.
    pub detects_wrong_block: bool,
    /// Cache slots of the DC and AC table of each block of an MCU, and of the table to skip its AC coefficients.
    slots: [(usize, usize, Option<usize>); MAX_MCU_BLOCKS],
    /// Cache slots of the scan-only tables.
    scan_slots: [(usize, usize); MAX_MCU_BLOCKS],
}

impl ScanLayout {
    /// Returns the layout of an image's first scan; `None` if the image has more than one.
    pub(crate) fn new(parser: &Parser<'_>, scan: &ScanHeader) -> Result<Option<ScanLayout>> {
        let components = parser.header.components();
        if !parser.header.one_scan {
            return Ok(None);
        }
        let mut layout = ScanLayout {
            mcus: parser.header.mcus(),
            blocks: [0; MAX_MCU_BLOCKS],
            mcu_blocks: 0,
            interval: match scan.restart_interval {
                0 => u64::MAX,
                n => n.into(),
            },
            detects_wrong_block: false,
            slots: [(0, 0, None); MAX_MCU_BLOCKS],
            scan_slots: [(0, 0); MAX_MCU_BLOCKS],
        };
        let specs = |part: &ScanComponent| -> Result<_> {
            Ok((parser.huffman_spec(scan, true, part.tables.0)?, parser.huffman_spec(scan, false, part.tables.1)?))
        };
        let first = specs(&scan.components()[0])?;
        for (i, part) in scan.components().iter().enumerate() {
            layout.detects_wrong_block |= specs(part)? != first;
            for _ in 0..components[i].h * components[i].v {
                layout.blocks[layout.mcu_blocks] = i as u8;
                layout.mcu_blocks += 1;
            }
        }
        layout.detects_wrong_block |= layout.mcu_blocks == 1;
        Ok(Some(layout))
    }

    /// Builds the tables for decoding the scan, unless they are in the caches. `needs_ac` says for each component whether its
    /// AC coefficients are needed.
    pub(crate) fn prepare_tables(
        &mut self,
        parser: &Parser<'_>,
        scan: &ScanHeader,
        needs_ac: [bool; 3],
        caches: &mut TableCaches,
    ) -> Result<()> {
        for (slots, &component) in self.slots[..self.mcu_blocks].iter_mut().zip(&self.blocks) {
            let (dc, ac) = scan.components()[usize::from(component)].tables;
            let (dc, ac) = (parser.huffman_spec(scan, true, dc)?, parser.huffman_spec(scan, false, ac)?);
            let skip = (!needs_ac[usize::from(component)]).then(|| caches.ac_skip.slot(&ac));
            *slots = (caches.dc.slot(&dc), caches.ac.slot(&ac), skip);
        }
        Ok(())
    }

    /// Builds the tables for scan-only decoding, unless they are in the caches.
    pub(crate) fn prepare_scan_tables(
        &mut self,
        parser: &Parser<'_>,
        scan: &ScanHeader,
        caches: &mut TableCaches,
    ) -> Result<()> {
        for (slots, &component) in self.scan_slots[..self.mcu_blocks].iter_mut().zip(&self.blocks) {
            let (dc, ac) = scan.components()[usize::from(component)].tables;
            let dc = caches.dc_scan.slot(&parser.huffman_spec(scan, true, dc)?);
            *slots = (dc, caches.ac_scan.slot(&parser.huffman_spec(scan, false, ac)?));
        }
        Ok(())
    }

    /// MCUs in a row.
    pub(crate) fn across(&self) -> usize {
        self.mcus.0 as usize
    }

    /// Blocks in a row of MCUs.
    pub(crate) fn row_blocks(&self) -> usize {
        self.mcus.0 as usize * self.mcu_blocks
    }

    /// Blocks in the scan.
    pub(crate) fn total_blocks(&self) -> u64 {
        self.row_blocks() as u64 * u64::from(self.mcus.1)
    }

    /// Number of entropy-coded segments, which restart markers separate.
    pub(crate) fn segments(&self) -> u64 {
        (u64::from(self.mcus.0) * u64::from(self.mcus.1)).div_ceil(self.interval)
    }

    /// Calls `f` with the tables that [`ScanLayout::prepare_tables`] built.
    pub(crate) fn with_tables<R>(&self, caches: &TableCaches, f: impl FnOnce(&McuTables<'_>) -> R) -> R {
        let tables = self.slots.map(|(dc, ac, skip)| BlockTables {
            dc: caches.dc.get(dc),
            ac: caches.ac.get(ac),
            skip: skip.map(|slot| caches.ac_skip.get(slot)),
        });
        f(&tables[..self.mcu_blocks])
    }

    /// Calls `f` with the tables that [`ScanLayout::prepare_scan_tables`] built.
    pub(crate) fn with_scan_tables<R>(&self, caches: &TableCaches, f: impl FnOnce(&McuScanTables<'_>) -> R) -> R {
        let tables =
            self.scan_slots.map(|(dc, ac)| BlockScanTables { dc: caches.dc_scan.get(dc), ac: caches.ac_scan.get(ac) });
        f(&tables[..self.mcu_blocks])
    }
}
