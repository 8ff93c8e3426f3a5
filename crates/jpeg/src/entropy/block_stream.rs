//! A run of blocks being decoded: what happens between its symbols, and where it ends.
//!
//! Memory safety rests on four invariants. [`BlockStream::new`], [`BlockStream::set_speculative`] and
//! [`BlockStream::begin_block`] establish them:
//! 1. *Output*: `coefs` has room for all blocks and one more coefficient, `last` for one byte a block.
//! 2. *Input*: [`SLACK`] bytes follow the data, and no block begins beyond `guard`, which is [`BLOCK_BYTES`] before their end.
//! 3. *Block size*: no block reads more than [`BLOCK_BYTES`].
//! 4. *MCU offsets*: there is one for every MCU and one more; those that another stream compares with end with
//!    [`u32::MAX`], which no stream reaches.

use super::MAX_MCU_BLOCKS;
use super::job::{DecodeJob, McuTables, Stop};
use super::symbol_state::{ALL_AC, SymbolState};
use crate::bitstream::bit_cursor::BitCursor;
use crate::bitstream::unstuffed::SLACK;
use crate::error::Damage;
use crate::huffman::coefficient_table::{END_OF_BLOCK, INVALID_CODE, LOOKUP_BITS};
use crate::huffman::extend;

/// The most bytes that one block reads: 64 codes with their magnitudes of at most 31 bits, and what a refill loads ahead.
const BLOCK_BYTES: usize = 64 * 31 / 8 + 16;
const _: () = assert!(BLOCK_BYTES + 16 < SLACK);

/// The MCU offsets of no stream.
static NO_OFFSETS: [u32; 1] = [u32::MAX];

/// A run of blocks, decoded from a known or from a speculative start.
pub(crate) struct BlockStream<'a> {
    pub symbols: SymbolState,
    /// First byte of the data.
    data: *const u8,
    /// No block may begin beyond this byte: it might read past the slack.
    guard: *const u8,
    /// The stream ends after the first MCU that ends beyond this bit.
    until: usize,
    /// Where the current block's `last` is written.
    last: *mut u8,
    /// Blocks left, of `blocks`.
    left: usize,
    blocks: usize,
    /// Index in its MCU of the current block.
    mcu_block: usize,
    tables: &'a McuTables<'a>,
    /// The entries of the AC table of each block of an MCU.
    ac_entries: [*const u32; MAX_MCU_BLOCKS],
    /// Where the current MCU's offset was written; null if offsets are not needed.
    offset: *mut u32,
    /// The offset of the first MCU since the stream last resynchronised.
    valid_from: *mut u32,
    /// The next of another stream's MCU offsets, in ascending order. This stream ends where it reaches one of them.
    sync_offset: *const u32,
    synced: bool,
    /// Whether the start is speculative: an invalid code then does not count as damage, and decoding continues with
    /// the next MCU.
    speculative: bool,
    over: bool,
    damage: Option<Damage>,
}

impl<'a> BlockStream<'a> {
    /// Returns the stream of a job and the job's cursor; `None` if the job has no blocks.
    ///
    /// # Panics
    /// If the buffers are smaller than the job says. The unsafe code of this module relies on these checks.
    #[inline(always)]
    pub(crate) fn new(
        bytes: &'a [u8],
        tables: &'a McuTables<'a>,
        job: DecodeJob<'a>,
    ) -> Option<(Self, &'a mut BitCursor)> {
        assert!(job.coefs.len() > job.blocks * 64 && job.last.len() >= job.blocks);
        assert!(!tables.is_empty() && tables.len() <= MAX_MCU_BLOCKS);
        assert!(job.mcu_offsets.is_empty() || job.mcu_offsets.len() > job.blocks / tables.len());
        assert!(bytes.len() >= SLACK && job.cursor.byte <= bytes.len());
        if job.blocks == 0 {
            return None;
        }
        let mut ac_entries = [std::ptr::null(); MAX_MCU_BLOCKS];
        for (entries, block) in ac_entries.iter_mut().zip(tables) {
            *entries = block.ac.entries().as_ptr();
        }
        let input = bytes.as_ptr_range();
        let offset = if job.mcu_offsets.is_empty() {
            std::ptr::null_mut()
        } else {
            job.mcu_offsets[0] = job.cursor.bit() as u32;
            job.mcu_offsets.as_mut_ptr()
        };
        let stream = BlockStream {
            symbols: SymbolState {
                bits: job.cursor.bits,
                counts: job.cursor.count,
                // SAFETY: `cursor.byte` is at most the length of `bytes` (asserted above).
                input: unsafe { input.start.add(job.cursor.byte) },
                block: job.coefs.as_mut_ptr(),
                table: ac_entries[0],
            },
            data: input.start,
            // SAFETY: `bytes` has at least SLACK bytes (asserted above), which is more than BLOCK_BYTES.
            guard: unsafe { input.end.sub(BLOCK_BYTES) },
            until: usize::MAX,
            last: job.last.as_mut_ptr(),
            left: job.blocks,
            blocks: job.blocks,
            mcu_block: 0,
            tables,
            ac_entries,
            offset,
            valid_from: offset,
            sync_offset: NO_OFFSETS.as_ptr(),
            synced: false,
            speculative: false,
            over: false,
            damage: None,
        };
        Some((stream, job.cursor))
    }

    /// Makes the start speculative: after an invalid code the stream continues with the next MCU, until bit `until`.
    pub(crate) fn set_speculative(&mut self, until: usize) {
        assert!(!self.offset.is_null(), "a speculative stream records its MCU offsets");
        (self.speculative, self.until) = (true, until);
    }

    /// Makes this stream end at the first MCU that begins at the same bit as one of `other`'s.
    pub(crate) fn stop_at_sync_with(&mut self, other: &Self) {
        assert!(other.speculative, "the other stream is speculative");
        self.sync_offset = other.offset;
    }

    /// Returns whether this stream synchronised with `other`. If it did, `other` stops being speculative.
    pub(crate) fn confirm_sync(&self, other: &mut Self) -> bool {
        other.speculative &= !self.synced;
        self.synced
    }

    /// Number of blocks decoded.
    pub(crate) fn done(&self) -> usize {
        self.blocks - self.left
    }

    /// Index in the other stream's `offsets` at which this one synchronised with it.
    pub(crate) fn synced_at(&self, offsets: *const u32) -> Option<usize> {
        self.synced.then(|| (self.sync_offset.addr() - offsets.addr()) / size_of::<u32>())
    }

    /// Index of the next bit.
    #[inline(always)]
    fn bit(&self, symbols: &SymbolState) -> usize {
        (symbols.input.addr() - self.data.addr()) * 8 - (symbols.counts & 63) as usize
    }

    /// Begins a block by decoding its DC difference. Returns the damage found, if any.
    ///
    /// # Safety
    /// At least one block must be left, and `symbols` be this stream's current state.
    #[inline(always)]
    unsafe fn begin_block(&mut self, symbols: &mut SymbolState) -> Option<Damage> {
        if symbols.input > self.guard {
            return Some(Damage::Ends);
        }
        // SAFETY: input: BLOCK_BYTES follow the guard (invariants 2 and 3). Output: a block is left (the caller's promise),
        // so `block` has 64 elements (invariant 1).
        unsafe {
            symbols.refill();
            let Some((length, size)) = self.tables[self.mcu_block].dc.find(symbols.bits) else {
                return Some(Damage::Code);
            };
            let size = u32::from(size);
            symbols.block.write_bytes(0, 64);
            *symbols.block = extend((symbols.bits << length >> 1 >> (63 - size)) as i32, size) as i16;
            symbols.consume(length + size);
            symbols.counts = symbols.counts & 63 | u32::from(ALL_AC) << 8;
            symbols.refill();
        }
        symbols.table = self.ac_entries[self.mcu_block];
        None
    }

    /// Handles an entry that [`SymbolState::symbol`] returned: a table miss, the end of a block or damage. Returns false if
    /// the stream is over.
    ///
    /// # Safety
    /// `symbols` must be this stream's current state, and `entry` have come from its [`SymbolState::symbol`].
    #[inline(always)]
    pub(crate) unsafe fn end_block(&mut self, symbols: &mut SymbolState, mut entry: u32) -> bool {
        // SAFETY: a block was begun, because `symbol` requires it. `resolve_miss` returns counts as the table does. The
        // pointers advance by one block of those left (invariant 1).
        unsafe {
            if entry & 255 == 0 {
                // A table miss consumed no bits; undo its change of the coefficient count.
                symbols.counts = symbols.counts.wrapping_add(entry);
                entry = self.decode_slowly(symbols);
                if !symbols.needs_attention() {
                    return true;
                }
            }
            let last = match entry >> 8 & 255 {
                // The end-of-block symbol stands where the next coefficient would be.
                END_OF_BLOCK => ALL_AC - symbols.remaining().wrapping_add(END_OF_BLOCK as u8),
                INVALID_CODE => return self.desynchronised(symbols, Damage::Code),
                _ if symbols.remaining() == 255 => 63,
                _ => return self.desynchronised(symbols, Damage::Block),
            };
            self.left -= 1;
            *self.last = last;
            self.last = self.last.add(1);
            symbols.block = symbols.block.add(64);
            self.mcu_block += 1;
            if self.mcu_block == self.tables.len() {
                self.mcu_block = 0;
                self.end_mcu(symbols);
            }
            if self.over || self.left == 0 {
                return self.stop(symbols);
            }
            match self.begin_block(symbols) {
                None => true,
                Some(damage) => self.desynchronised(symbols, damage),
            }
        }
    }

    /// Decodes one symbol of any length, and returns its entry.
    ///
    /// # Safety
    /// A block must have been begun.
    #[inline(always)]
    unsafe fn decode_slowly(&self, symbols: &mut SymbolState) -> u32 {
        let table = self.tables[self.mcu_block].ac;
        // SAFETY: a block was begun, so BLOCK_BYTES follow its start (invariants 2 and 3) and `block` has room for 65.
        unsafe {
            symbols.refill();
            let mut entry = table.entries()[(symbols.bits >> (64 - LOOKUP_BITS)) as usize];
            if entry & 255 == 0 {
                entry = table.resolve_miss(entry, symbols.bits);
            }
            symbols.consume(entry);
            symbols.store(entry);
            symbols.refill();
            entry
        }
    }

    /// Records where the next MCU begins, and checks whether the stream ends there.
    ///
    /// # Safety
    /// An MCU must just have been completed.
    #[inline(always)]
    unsafe fn end_mcu(&mut self, symbols: &SymbolState) {
        let bit = self.bit(symbols);
        let offset = bit.min(u32::MAX as usize - 1) as u32;
        // SAFETY: there is an offset for each MCU and one more, and the other stream's end with u32::MAX (invariant 4).
        unsafe {
            if !self.offset.is_null() {
                self.offset = self.offset.add(1);
                *self.offset = offset;
            }
            while *self.sync_offset < offset {
                self.sync_offset = self.sync_offset.add(1);
            }
            self.synced = *self.sync_offset == offset;
        }
        self.over = self.synced || bit > self.until;
    }

    /// Ends the stream.
    #[inline(always)]
    fn stop(&mut self, symbols: &SymbolState) -> bool {
        self.symbols = *symbols;
        self.over = true;
        false
    }

    /// Handles codes that cannot be: damage, or a speculative stream that has not synchronised yet. Returns false if the
    /// stream is over.
    ///
    /// # Safety
    /// As for [`BlockStream::end_block`].
    #[inline(always)]
    unsafe fn desynchronised(&mut self, symbols: &mut SymbolState, damage: Damage) -> bool {
        self.symbols = *symbols;
        // SAFETY: the caller's promise.
        let continues = unsafe { self.resynchronise(damage) };
        *symbols = self.symbols;
        continues
    }

    /// As [`BlockStream::desynchronised`], on the state in `self`: not inlined, and without a reference to the state that the
    /// loops keep in registers.
    ///
    /// # Safety
    /// As for [`BlockStream::end_block`].
    #[cold]
    #[inline(never)]
    unsafe fn resynchronise(&mut self, mut damage: Damage) -> bool {
        let (mut symbols, mcu_blocks) = (self.symbols, self.tables.len());
        loop {
            let next = (self.done() / mcu_blocks + 1) * mcu_blocks;
            if !self.speculative || symbols.input > self.guard || next >= self.blocks {
                self.damage = Some(damage);
                return self.stop(&symbols);
            }
            let skipped = next - self.done();
            // SAFETY: fewer blocks are skipped than are left (`next < blocks`), and there is an offset for each MCU
            // (invariant 4); `valid_from` and `offset` point into the same offsets. Input: the guard was checked above.
            unsafe {
                symbols.block = symbols.block.add(skipped * 64);
                self.last = self.last.add(skipped);
                symbols.refill();
                symbols.consume(1);
                // The other stream must not synchronise with offsets from before: it skips those that are 0.
                self.valid_from.write_bytes(0, self.offset.offset_from(self.valid_from) as usize + 1);
                self.offset = self.offset.add(1);
                *self.offset = self.bit(&symbols).min(u32::MAX as usize - 1) as u32;
            }
            self.valid_from = self.offset;
            self.left -= skipped;
            self.mcu_block = 0;
            // SAFETY: a block is left, because `next < blocks`.
            match unsafe { self.begin_block(&mut symbols) } {
                None => {
                    self.symbols = symbols;
                    return true;
                }
                Some(other) => damage = other,
            }
        }
    }

    /// Begins the first block. Returns false if the stream is over.
    ///
    /// # Safety
    /// The stream must be new.
    #[inline(always)]
    pub(crate) unsafe fn start(&mut self) -> bool {
        let mut symbols = self.symbols;
        // SAFETY: a new stream has at least one block (`new`).
        let continues = unsafe {
            match self.begin_block(&mut symbols) {
                None => true,
                Some(damage) => self.desynchronised(&mut symbols, damage),
            }
        };
        self.symbols = symbols;
        continues
    }

    /// Decodes the blocks that are left.
    ///
    /// # Safety
    /// [`BlockStream::start`] must have been called.
    #[inline(always)]
    pub(crate) unsafe fn rest(&mut self) {
        if self.over {
            return;
        }
        let mut symbols = self.symbols;
        // SAFETY: a block was begun (`start`, `end_block`), within which refills are allowed (invariants 2 and 3).
        // SYMBOLS_PER_REFILL lookups follow each refill, and `end_block` refills by itself.
        unsafe {
            loop {
                symbols.refill();
                for _ in 0..SymbolState::SYMBOLS_PER_REFILL {
                    if let Some(entry) = symbols.symbol()
                        && !self.end_block(&mut symbols, entry)
                    {
                        return;
                    }
                }
            }
        }
    }

    /// Stores the position in `cursor`, and returns what stopped the stream.
    #[inline(always)]
    pub(crate) fn close(&self, cursor: &mut BitCursor) -> Result<(), Stop> {
        let SymbolState { bits, counts, input, .. } = self.symbols;
        *cursor = BitCursor { bits, count: counts & 63, byte: input.addr() - self.data.addr() };
        self.damage.map_or(Ok(()), |damage| Err((self.done(), damage)))
    }
}

/// Decodes both streams until one of them is over.
///
/// # Safety
/// [`BlockStream::start`] must have been called on both and have returned true.
#[inline(always)]
pub(crate) unsafe fn decode_both(a: &mut BlockStream<'_>, b: &mut BlockStream<'_>) {
    let (mut symbols_a, mut symbols_b) = (a.symbols, b.symbols);
    // SAFETY: as in `BlockStream::rest`, for each of the two.
    unsafe {
        loop {
            symbols_a.refill();
            symbols_b.refill();
            for _ in 0..SymbolState::SYMBOLS_PER_REFILL {
                if let Some(entry) = symbols_a.symbol()
                    && !a.end_block(&mut symbols_a, entry)
                {
                    b.symbols = symbols_b;
                    return;
                }
                if let Some(entry) = symbols_b.symbol()
                    && !b.end_block(&mut symbols_b, entry)
                {
                    a.symbols = symbols_a;
                    return;
                }
            }
        }
    }
}
