//! Scan-only decoding: finds the bit at which each block begins, and skips its coefficients.
//!
//! The end of a block is unpredictable, and a mispredicted branch costs more than decoding several symbols, so the inner loop
//! has no branch on it. A lookup skips all symbols that it holds completely, of whatever value; if the last of them ends the
//! block, the next lookup simply uses another table. The bit offset is stored after every lookup, and the store position
//! advances only if the lookup ended something. The loop then waits for its own lookups only, which leaves time for several
//! scanners at once.
//!
//! Each block has two *phases*: its DC symbol, and its AC symbols up to the end of the block. A phase boundary is where the
//! table changes.
//!
//! Memory safety rests on three invariants, which [`Scanner::rounds`] establishes for the rounds it allows:
//! 1. *Input*: an entry covers at most [`SCAN_MAX_BITS`] bits (`ScanTable::rebuild` makes longer ones a miss; that DC symbols
//!    are at most 15 is checked in `markers/parser.rs`). So a round consumes at most [`ROUND_BITS`], and the last refill of
//!    the rounds begins at least [`END_MARGIN`] bytes before the end of the slack.
//! 2. *Tables*: a lookup uses as many bits as the tag of the table pointer says, and the table has an entry for each of their
//!    values ([`ScanTable::tagged_pointer`]).
//! 3. *Output*: a lookup advances by at most one phase, for which there are an offset and a table pointer.

use std::hint::select_unpredictable;

use super::MAX_MCU_BLOCKS;
use crate::bitstream::unstuffed::SLACK;
use crate::cpu::Bmi2;
use crate::error::Damage;
use crate::huffman::scan_table::{
    SCAN_BITS_SHIFT, SCAN_COEFS_SHIFT, SCAN_END, SCAN_LOOKUP_BITS, SCAN_MAX_BITS, SCAN_MAX_COEFS, ScanTable, scan_entry,
};

/// Lookups that can follow one refill, which loads at least 57 bits.
const LOOKUPS: usize = 57 / SCAN_MAX_BITS as usize;
const _: () = assert!(LOOKUPS == 3, "as many as `run_rounds` makes");
/// The most bits that the lookups after one refill consume.
const ROUND_BITS: usize = LOOKUPS * SCAN_MAX_BITS as usize;

/// Number of table pointers laid out one after the other, repeating those of an MCU.
const POINTERS: usize = 192;
const _: () = assert!(2 * 2 * MAX_MCU_BLOCKS <= POINTERS);

/// No lookup begins nearer to the end of the slack: more bytes than a symbol and a refill read.
const END_MARGIN: usize = 32;
const _: () = assert!(END_MARGIN < SLACK);

/// The scan-only tables of one block of an MCU.
#[derive(Clone, Copy)]
pub(crate) struct BlockScanTables<'a> {
    pub dc: &'a ScanTable<true>,
    pub ac: &'a ScanTable<false>,
}

/// The scan-only tables of the blocks of an MCU, in the order of the scan.
pub(crate) type McuScanTables<'a> = [BlockScanTables<'a>];

/// The tagged pointers ([`ScanTable::tagged_pointer`]) of an MCU's tables in the order of the phases, repeated.
pub(crate) struct TablePointers<'a> {
    pointers: [*const u8; POINTERS],
    tables: &'a McuScanTables<'a>,
}

impl<'a> TablePointers<'a> {
    pub(crate) fn new(tables: &'a McuScanTables<'a>) -> TablePointers<'a> {
        assert!(!tables.is_empty() && tables.len() <= MAX_MCU_BLOCKS);
        let mut pointers = [std::ptr::null(); POINTERS];
        for (pair, block) in pointers.as_chunks_mut::<2>().0.iter_mut().zip(tables.iter().cycle()) {
            *pair = [block.dc.tagged_pointer(), block.ac.tagged_pointer()];
        }
        TablePointers { pointers, tables }
    }

    /// Phases of an MCU: DC and AC of each block.
    fn phases(&self) -> usize {
        2 * self.tables.len()
    }
}

/// Number of offsets that a scanner needs for `blocks` blocks: one for each phase, one for the end, and what a round may add.
pub(crate) const fn offsets_for(blocks: usize) -> usize {
    2 * blocks + 1 + LOOKUPS
}

/// Number of blocks for which `offsets` offsets are enough.
pub(crate) const fn blocks_for(offsets: usize) -> usize {
    offsets.saturating_sub(1 + LOOKUPS) / 2
}

/// Position of the coefficient count in [`Scanner::state`].
const COEFS_SHIFT: u32 = 64 - SCAN_BITS_SHIFT + SCAN_COEFS_SHIFT;
const _: () = assert!(COEFS_SHIFT == 57, "a count beyond a block sets the highest bit");

/// The part of a scanner that every lookup changes, kept in registers.
struct LookupState {
    /// The next bits.
    bits: u64,
    /// See [`Scanner::state`].
    state: u64,
    /// Tagged pointer of the current phase's table.
    table: *const u8,
    /// See [`Scanner::phases`].
    phases: usize,
    /// The address at which the table pointers would begin if `phases` counted from 0: the next one is at index `phases`.
    pointers: *const *const u8,
    offsets: *mut u32,
    /// The byte from which bits are counted.
    data: *const u8,
}

impl LookupState {
    /// Loads at least 57 bits.
    ///
    /// # Safety
    /// The scanner must be inside the rounds that [`Scanner::rounds`] allowed.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        let bit = self.state as u32;
        // SAFETY: END_MARGIN bytes follow (invariant 1).
        let bytes = unsafe { self.data.add(bit as usize / 8).cast::<[u8; 8]>().read() };
        self.bits = u64::from_be_bytes(bytes) << (bit % 8);
    }

    /// Makes one lookup; [`LOOKUPS`] of them can follow a refill. Returns the amount added to `state` if the coefficients are
    /// more than a block has.
    ///
    /// # Safety
    /// The scanner must be inside the rounds that [`Scanner::rounds`] allowed.
    #[inline(always)]
    unsafe fn lookup(&mut self) -> Option<u64> {
        let index = (self.bits >> (self.table.addr() & 63)) as usize;
        // SAFETY: the table has an entry for each value of as many bits as its tag says (invariant 2).
        let entry = unsafe { u64::from(*self.table.wrapping_add(SCAN_LOOKUP_BITS as usize).cast::<u16>().add(index)) };
        // Rotated, the bit count is lowest and the coefficient count highest.
        let sum = entry.rotate_right(SCAN_BITS_SHIFT);
        self.bits <<= sum & 63;
        self.state = self.state.wrapping_add(sum);
        if self.state >> 63 != 0 {
            return Some(sum);
        }
        // SAFETY: there are offsets and table pointers for the phases of all rounds (invariant 3).
        let next = unsafe {
            *self.offsets.add(self.phases) = self.state as u32;
            *self.pointers.wrapping_add(self.phases)
        };
        let ends = entry & u64::from(SCAN_END) != 0;
        self.table = select_unpredictable(ends, next, self.table);
        self.state = select_unpredictable(ends, u64::from(self.state as u32), self.state);
        self.phases += usize::from(ends);
        None
    }
}

/// Scans a run of blocks from a known or from a speculative start.
pub(crate) struct Scanner<'a> {
    pointers: &'a TablePointers<'a>,
    bytes: &'a [u8],
    /// Index of the byte from which bits are counted.
    start: usize,
    /// The bit, counted from `start`, after which the scanner stops.
    stop: usize,
    /// The sum of all entries ([`scan_entry`]), rotated: the low half is the next bit, counted from `start`; the high bits are
    /// the number of coefficients of the current block so far.
    state: u64,
    /// Number of phases begun.
    phases: usize,
    /// The phase to which the first table pointer belongs: the first of an MCU.
    first: usize,
    /// For each phase the bit at which it begins, counted from `start`: even indices are blocks, odd ones their AC symbols.
    offsets: &'a mut [u32],
    /// Number of phases after which the scanner is full.
    max_phases: usize,
    /// Whether the start is speculative: an invalid code then does not count as damage, and scanning restarts at the next bit.
    speculative: bool,
    over: bool,
    damage: Option<Damage>,
}

impl<'a> Scanner<'a> {
    /// Returns a scanner for `blocks` blocks from bit `bit` on, where an MCU begins. `bytes` are
    /// [`UnstuffedData::bytes`](crate::bitstream::unstuffed::UnstuffedData::bytes).
    ///
    /// # Panics
    /// If there are fewer offsets than [`offsets_for`] says, or the bit is beyond the data.
    pub(crate) fn new(
        bytes: &'a [u8],
        pointers: &'a TablePointers<'a>,
        bit: usize,
        blocks: usize,
        offsets: &'a mut [u32],
    ) -> Scanner<'a> {
        assert!(bytes.len() >= SLACK && bit / 8 <= bytes.len() - END_MARGIN);
        assert!(offsets.len() >= offsets_for(blocks) && blocks < u32::MAX as usize >> 12);
        let mut scanner = Scanner {
            pointers,
            bytes,
            start: bit / 8,
            stop: 0,
            state: 0,
            phases: 0,
            first: 0,
            offsets,
            max_phases: 2 * blocks + 1,
            speculative: false,
            over: false,
            damage: None,
        };
        scanner.restart_at(bit % 8);
        scanner
    }

    /// Makes the start speculative: after an invalid code the scanner restarts at the next bit.
    pub(crate) fn speculative(mut self) -> Self {
        self.speculative = true;
        self
    }

    /// Ends the speculation: another scanner synchronised with this one, so invalid codes are damage from now on.
    pub(crate) fn confirm_sync(&mut self) {
        self.speculative = false;
    }

    /// Makes the scanner stop soon after bit `bit`, or near the end of the slack, which it reads as if it were data.
    pub(crate) fn set_stop(&mut self, bit: usize) {
        self.stop = bit.min(self.end()).saturating_sub(self.start * 8);
    }

    /// The bit from which on there are no lookups.
    fn end(&self) -> usize {
        (self.bytes.len() - END_MARGIN) * 8
    }

    /// Index of the next bit.
    pub(crate) fn bit(&self) -> usize {
        self.start * 8 + self.relative_bit()
    }

    /// Number of blocks whose first bits are known. They may be beyond the data.
    pub(crate) fn known_blocks(&self) -> usize {
        self.phases.div_ceil(2)
    }

    /// First bit of block `block`, which must be known.
    #[inline(always)]
    pub(crate) fn block_offset(&self, block: usize) -> usize {
        self.start * 8 + self.offsets[2 * block] as usize
    }

    /// Whether all blocks for which there was room are scanned.
    fn is_full(&self) -> bool {
        self.phases >= self.max_phases
    }

    /// Whether the scanner cannot continue.
    pub(crate) fn is_over(&self) -> bool {
        self.over || self.is_full() || self.bit() >= self.end()
    }

    /// The damage that ended the scanner, unless its start was speculative.
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// Index of the next bit, counted from `start`.
    fn relative_bit(&self) -> usize {
        self.state as u32 as usize
    }

    /// Drops all offsets and continues with the first block of an MCU at bit `relative_bit`, counted from `start`.
    fn restart_at(&mut self, relative_bit: usize) {
        (self.state, self.phases, self.first) = (relative_bit as u64, 0, 0);
        self.begin_phase();
    }

    /// Begins the next phase at the next bit.
    fn begin_phase(&mut self) {
        self.state = self.relative_bit() as u64;
        self.offsets[self.phases] = self.state as u32;
        self.phases += 1;
    }

    /// Returns the number of rounds, each a refill and [`LOOKUPS`] lookups, for which the invariants of this module hold.
    #[inline(always)]
    fn rounds(&mut self) -> usize {
        if self.over {
            return 0;
        }
        if self.phases - self.first > POINTERS / 2 {
            self.first = (self.phases - 1) / self.pointers.phases() * self.pointers.phases();
        }
        let data = self.stop.saturating_sub(self.relative_bit()).div_ceil(ROUND_BITS);
        let offsets = self.max_phases.saturating_sub(self.phases).div_ceil(LOOKUPS);
        data.min(offsets).min((POINTERS - (self.phases - self.first)) / LOOKUPS)
    }

    /// Returns the state from which lookups continue.
    #[inline(always)]
    fn lookup_state(&mut self) -> LookupState {
        LookupState {
            bits: 0,
            state: self.state,
            table: self.pointers.pointers[self.phases - 1 - self.first],
            phases: self.phases,
            pointers: self.pointers.pointers.as_ptr().wrapping_sub(self.first),
            offsets: self.offsets.as_mut_ptr(),
            data: self.bytes[self.start..].as_ptr(),
        }
    }

    /// Whether another round keeps the invariants: what [`Scanner::rounds`] promises, checked in debug builds.
    fn has_room(&self, state: &LookupState) -> bool {
        self.start + state.state as u32 as usize / 8 + 8 <= self.bytes.len()
            && state.phases + LOOKUPS <= self.offsets.len()
            && state.phases - self.first + LOOKUPS <= POINTERS
    }

    /// Undoes a lookup that went beyond the block, which added `sum`, and continues symbol by symbol: after a miss for the one
    /// symbol that was too long, otherwise to the end of the block.
    #[cold]
    #[inline(never)]
    fn scan_slowly(&mut self, sum: u64) {
        self.state = self.state.wrapping_sub(sum);
        let missed = sum as u8 == 0;
        let block = &self.pointers.tables[(self.phases - 1) % self.pointers.phases() / 2];
        let dc = self.phases % 2 == 1;
        let codes = if dc { &block.dc.codes } else { &block.ac.codes };
        while self.state >> COEFS_SHIFT != SCAN_MAX_COEFS.into() {
            let byte = self.start + self.relative_bit() / 8;
            let Some(&bytes) = self.bytes[byte..].first_chunk().filter(|_| byte <= self.bytes.len() - END_MARGIN)
            else {
                return self.desynchronised(Damage::Ends);
            };
            let Some((length, symbol)) = codes.find(u64::from_be_bytes(bytes) << (self.relative_bit() % 8)) else {
                return self.desynchronised(Damage::Code);
            };
            let entry = scan_entry(dc, length, symbol);
            self.state = self.state.wrapping_add(u64::from(entry).rotate_right(SCAN_BITS_SHIFT));
            if self.state >> 63 != 0 {
                return self.desynchronised(Damage::Block);
            }
            if entry & SCAN_END != 0 {
                break;
            }
            if missed {
                return;
            }
        }
        self.begin_phase();
    }

    /// Handles codes that cannot be: damage, or a speculative scanner that has not synchronised yet.
    fn desynchronised(&mut self, damage: Damage) {
        // Beyond the data, restarting is useless.
        let in_data = self.bit() + 64 < (self.bytes.len() - SLACK) * 8;
        if self.speculative && in_data {
            return self.restart_at(self.relative_bit() + 1);
        }
        self.damage = Some(damage).filter(|_| !self.speculative);
        self.over = true;
    }
}

/// Advances all scanners in one loop until one of them reaches its stop or is over.
pub(crate) fn run<const N: usize>(bmi2: Option<Bmi2>, scanners: [&mut Scanner<'_>; N]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(_proof) = bmi2 {
        // SAFETY: a `Bmi2` exists only if the processor has all features that the function enables (`cpu.rs`).
        return unsafe { run_bmi2(scanners) };
    }
    let _ = bmi2;
    run_portable(scanners);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn run_bmi2<const N: usize>(scanners: [&mut Scanner<'_>; N]) {
    run_portable(scanners);
}

#[inline(always)]
fn run_portable<const N: usize>(mut scanners: [&mut Scanner<'_>; N]) {
    loop {
        let rounds = scanners.iter_mut().map(|scanner| scanner.rounds()).min().unwrap_or(0);
        if rounds == 0 {
            break;
        }
        // SAFETY: every scanner allows as many rounds.
        if let Some((i, sum)) = unsafe { run_rounds(&mut scanners, rounds) } {
            scanners[i].scan_slowly(sum);
        }
    }
}

/// Advances all scanners by `rounds` rounds. Stops where a lookup went beyond its block, and returns the index of that
/// scanner and the amount that the lookup added to its state.
///
/// # Safety
/// [`Scanner::rounds`] of every scanner must have returned at least `rounds`.
#[inline(always)]
unsafe fn run_rounds<const N: usize>(scanners: &mut [&mut Scanner<'_>; N], rounds: usize) -> Option<(usize, u64)> {
    let mut states: [LookupState; N] = std::array::from_fn(|i| scanners[i].lookup_state());
    let mut beyond = None;
    for _ in 0..rounds {
        debug_assert!(scanners.iter().zip(&states).all(|(scanner, state)| scanner.has_room(state)));
        // SAFETY: the caller's promise; LOOKUPS lookups follow each refill.
        unsafe {
            states.iter_mut().for_each(|state| state.refill());
            let mut all = || (0..N).find_map(|i| states[i].lookup().map(|sum| (i, sum)));
            beyond = all().or_else(&mut all).or_else(&mut all);
        }
        if beyond.is_some() {
            break;
        }
    }
    for (scanner, state) in scanners.iter_mut().zip(states) {
        (scanner.state, scanner.phases) = (state.state, state.phases);
    }
    beyond
}
