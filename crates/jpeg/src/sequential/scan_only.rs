//! Scan-only decoding of MCUs: finds the bit at which each of them begins, and the DC predictors there. In a scan without
//! restart markers, [`SCANNERS`] scanners run at once. All but the first one start speculatively, and are valid from the
//! point where the preceding one synchronised with them.

use std::cmp::Ordering;
use std::ops::Range;

use super::parameters::SCANNERS;
use super::speculation::estimated_bits;
use super::state::{ScanContext, ScanError, ScanState};
use crate::entropy::scanner::{self, McuScanTables, Scanner, TablePointers};
use crate::error::Damage;
use crate::huffman::code_table::CodeTable;
use crate::huffman::extend;

/// Bits that a scanner continues beyond the start of the next one before the two are compared: within them, most have
/// synchronised.
const SYNC_MARGIN: usize = 8 << 10;

impl ScanState {
    /// Skips the MCUs before MCU `end`, which the scan must have. Calls `each` with the state before each MCU, whose bit
    /// may be that of an earlier one, and the MCU's first bit. Returns the number of MCUs that came from speculative scanners.
    pub(crate) fn skip_to(
        &mut self,
        context: &ScanContext<'_>,
        tables: &McuScanTables<'_>,
        end: u64,
        offsets: &mut [u32],
        mut each: impl FnMut(&ScanState, usize),
    ) -> Result<u64, ScanError> {
        let ScanContext { layout, unstuffed, .. } = *context;
        let pointers = TablePointers::new(tables);
        let capacity = offsets.len() / SCANNERS;
        let max_mcus = scanner::blocks_for(capacity) / layout.mcu_blocks;
        let mut speculative_mcus = 0;
        while self.mcu < end {
            if !self.is_uninterrupted(1) {
                self.restart(context)?;
            }
            let wanted = self.uninterrupted(context, end - self.mcu)? as usize;
            let bit = self.bit;
            // A scanner uses part of its offsets beyond the start of the next one.
            let target = wanted.min(max_mcus * SCANNERS * 7 / 8);
            let bits = estimated_bits(layout, context, self, target);
            let speculate =
                layout.interval == u64::MAX && context.speculation.is_worthwhile(layout, unstuffed, target, bits);

            let mut parts = offsets.chunks_exact_mut(capacity);
            let first = wanted.min(max_mcus);
            let mut scanners: [Scanner<'_>; SCANNERS] = std::array::from_fn(|i| {
                let offsets = parts.next().unwrap_or_default();
                let (bit, mcus) = if i == 0 { (bit, first) } else { (bit + bits / SCANNERS * i, max_mcus) };
                let scanner = Scanner::new(unstuffed.bytes(), &pointers, bit, mcus * layout.mcu_blocks, offsets);
                if i == 0 { scanner } else { scanner.speculative() }
            });
            let syncs =
                if speculate { run_until_synced(context, &mut scanners, bit + bits) } else { [None; SCANNERS - 1] };
            let alone = syncs[0].is_none();
            if alone {
                scanners[0].set_stop(usize::MAX);
                scanner::run(context.bmi2, [&mut scanners[0]]);
            }

            let (mut from, mut emitted) = (0, 0);
            for (i, scanner) in scanners.iter().enumerate() {
                let next = syncs.get(i).copied().flatten();
                let to = next.map_or((scanner.known_blocks() - 1) / layout.mcu_blocks, |(here, _)| here);
                let mcus = to.saturating_sub(from).min(wanted - emitted);
                self.emit(context, tables, scanner, from..from + mcus, &mut each)?;
                emitted += mcus;
                speculative_mcus += if i > 0 { mcus as u64 } else { 0 };
                match next {
                    Some((_, there)) if emitted < wanted => from = there,
                    _ => break,
                }
            }
            if alone && emitted < first {
                self.bit = scanners[0].bit();
                return Err(self.error(scanners[0].damage().unwrap_or(Damage::Ends)));
            }
            debug_assert!(emitted > 0, "scanners synchronise after at least one MCU of the first one");
        }
        Ok(speculative_mcus)
    }

    /// Advances by the given MCUs of a scanner, as far as there are data: calls `each` and updates the DC predictors.
    fn emit(
        &mut self,
        context: &ScanContext<'_>,
        tables: &McuScanTables<'_>,
        scanner: &Scanner<'_>,
        mcus: Range<usize>,
        each: &mut impl FnMut(&ScanState, usize),
    ) -> Result<(), ScanError> {
        let bytes = context.unstuffed.bytes();
        // For each component, its blocks in an MCU and its DC codes.
        let mut components: [(usize, &CodeTable); 3] = [(0, &tables[0].dc.codes); 3];
        for (block, &component) in tables.iter().zip(&context.layout.blocks) {
            let (blocks, codes) = &mut components[usize::from(component)];
            (*blocks, *codes) = (*blocks + 1, &block.dc.codes);
        }
        let end = context.unstuffed.segments()[self.segment].end * 8;
        let mut block = mcus.start * tables.len();
        for _ in mcus {
            if scanner.block_offset(block) > end {
                // `check_segment` below reports it.
                break;
            }
            each(self, scanner.block_offset(block));
            for (predictor, (blocks, codes)) in self.predictors.iter_mut().zip(components) {
                for _ in 0..blocks {
                    let bit = scanner.block_offset(block);
                    let head = bytes[bit / 8..].first_chunk().map_or(0, |&b| u64::from_be_bytes(b)) << (bit % 8);
                    let (length, size) = codes.find(head).unwrap_or((0, 0));
                    let size = u32::from(size);
                    let difference = extend((head << length >> 1 >> (63 - size)) as i32, size);
                    *predictor = predictor.wrapping_add(difference as i16);
                    block += 1;
                }
            }
            self.advance(1);
        }
        self.bit = scanner.block_offset(block);
        self.check_segment(context)
    }
}

/// Runs all scanners, each until it synchronised with the next one, the last one until bit `end`. For each scanner but the
/// last, returns the index of the MCU at which it did, in its own offsets and in those of the next one.
fn run_until_synced(
    context: &ScanContext<'_>,
    scanners: &mut [Scanner<'_>; SCANNERS],
    end: usize,
) -> [Option<(usize, usize)>; SCANNERS - 1] {
    let mut next = end;
    for scanner in scanners.iter_mut().rev() {
        scanner.set_stop(next);
        next = scanner.bit() + SYNC_MARGIN;
    }
    // All three run until one of them stops, then each pair, because a pair that is over returns at once.
    let [a, b, c] = scanners;
    scanner::run(context.bmi2, [a, b, c]);
    scanner::run(context.bmi2, [a, b]);
    scanner::run(context.bmi2, [a, c]);
    scanner::run(context.bmi2, [b, c]);
    let mut syncs = [None; SCANNERS - 1];
    let mut rest = &mut scanners[..];
    let mut from = 0;
    while let Some((here, others)) = rest.split_first_mut() {
        scanner::run(context.bmi2, [here]);
        let Some(there) = others.first_mut() else { break };
        let found = loop {
            let found = first_common_mcu(here, from, there, context.layout.mcu_blocks);
            if found.is_some() || here.is_over() || here.bit() >= there.bit() {
                break found;
            }
            here.set_stop(here.bit() + SYNC_MARGIN);
            scanner::run(context.bmi2, [here]);
        };
        let Some((_, index)) = found else { break };
        there.confirm_sync();
        from = index;
        syncs[SCANNERS - 1 - others.len()] = found;
        rest = others;
    }
    syncs
}

/// Returns the index of the first MCU of `a`, from MCU `from` on, that begins at the same bit as one of `b`'s, and the index
/// of that one.
fn first_common_mcu(a: &Scanner<'_>, from: usize, b: &Scanner<'_>, mcu_blocks: usize) -> Option<(usize, usize)> {
    let offset = |scanner: &Scanner<'_>, mcu: usize| {
        (mcu * mcu_blocks < scanner.known_blocks()).then(|| scanner.block_offset(mcu * mcu_blocks))
    };
    let (mut i, mut j) = (from, 0);
    loop {
        match offset(a, i)?.cmp(&offset(b, j)?) {
            Ordering::Less => i += 1,
            Ordering::Equal => return Some((i, j)),
            Ordering::Greater => j += 1,
        }
    }
}
