//! Passing over blocks: from Huffman codes to where blocks begin, and nothing else.
//!
//! Where a block ends cannot be predicted, and a wrong prediction costs more than a few symbols do. So its end is no branch
//! here: a look-up passes over all symbols that it can see whole, whatever they are, and where they end a block, the next
//! look-up is one in another table. Its place is noted after each of them; only where something ended the note is kept.
//! What such a loop waits for are its own look-ups, so that it has time for several tracks.

use std::hint::select_unpredictable;

use crate::bitstream::unstuffed::SLACK;
use crate::entropy::decode::MAX_MCU_BLOCKS;
use crate::error::Damage;
use crate::huffman::{SKIP_BITS, SKIP_COEFS, SKIP_END, SKIP_LOOK, SKIP_MOST, SKIP_SHIFT, ScanTable, skip};

/// Look-ups that a refill is enough for: at least 57 bits.
const LOOKUPS: usize = 57 / SKIP_BITS as usize;
const _: () = assert!(LOOKUPS == 3, "as many as `go` makes");
/// BitReader that they pass over at most.
const ROUND: usize = LOOKUPS * SKIP_BITS as usize;

/// Keys laid out one after the other.
const RING: usize = 192;
const _: () = assert!(2 * 2 * MAX_MCU_BLOCKS <= RING);

/// No look-up starts nearer to the end of the slack: a symbol and a refill take less.
const AHEAD: usize = 32;
const _: () = assert!(AHEAD < SLACK);

/// The tables for passing over one block of an MCU.
#[derive(Clone, Copy)]
pub(crate) struct SkipLane<'a> {
    pub dc: &'a ScanTable<true>,
    pub ac: &'a ScanTable<false>,
}

/// The tables of the blocks of an MCU, in order.
pub(crate) type SkipLanes<'a> = [SkipLane<'a>];

/// The keys ([`ScanTable::key`]) of an MCU's tables in the order of their use, time and again.
pub(crate) struct Keys<'a> {
    keys: [*const u8; RING],
    tables: &'a SkipLanes<'a>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(tables: &'a SkipLanes<'a>) -> Keys<'a> {
        assert!(!tables.is_empty() && tables.len() <= MAX_MCU_BLOCKS);
        let mut keys = [std::ptr::null(); RING];
        for (pair, lane) in keys.as_chunks_mut::<2>().0.iter_mut().zip(tables.iter().cycle()) {
            *pair = [lane.dc.key(), lane.ac.key()];
        }
        Keys { keys, tables }
    }

    /// Turns of an MCU: a DC and an AC for each block.
    fn turns(&self) -> usize {
        2 * self.tables.len()
    }
}

/// Notes that a track needs for so many blocks: where each of them begins and where its DC ends, and where the one after
/// them begins, and what a round of look-ups may add to that.
pub(crate) const fn notes(blocks: usize) -> usize {
    2 * blocks + 1 + LOOKUPS
}

/// BlockRow that so many notes are enough for.
pub(crate) const fn blocks(notes: usize) -> usize {
    notes.saturating_sub(1 + LOOKUPS) / 2
}

/// Where the coefficients are in [`Hot::state`].
const COEFS: u32 = 64 - SKIP_SHIFT + SKIP_COEFS;
const _: () = assert!(COEFS == 57, "more than a block has are its highest bit");

/// A track while look-ups follow each other: to be kept in registers.
struct Hot {
    /// The next bits.
    bits: u64,
    /// See [`Scanner::state`].
    state: u64,
    /// Says which table comes next.
    key: *const u8,
    /// See [`Scanner::turns`].
    turns: usize,
    /// Where the keys would begin if `turns` had never been 0: the next one is that of number `turns`.
    keys: *const *const u8,
    notes: *mut u32,
    /// The byte from which bits are counted.
    data: *const u8,
}

impl Hot {
    /// Gets at least 57 bits.
    ///
    /// # Safety
    /// The track must be before its end by [`Scanner::rounds`].
    #[inline(always)]
    unsafe fn refill(&mut self) {
        let bit = self.state as u32;
        // SAFETY: what stops a track keeps AHEAD bytes before the end of the data.
        let bytes = unsafe { self.data.add(bit as usize / 8).cast::<[u8; 8]>().read() };
        self.bits = u64::from_be_bytes(bytes) << (bit % 8);
    }

    /// One look-up; [`LOOKUPS`] of them can follow a refill. What it added, if that is more than a block has.
    ///
    /// # Safety
    /// The track must be before its end by [`Scanner::rounds`].
    #[inline(always)]
    unsafe fn step(&mut self) -> Option<u64> {
        let index = (self.bits >> (self.key.addr() & 63)) as usize;
        // SAFETY: `key` is that of a table with an entry for each value of so many bits.
        let entry = unsafe { u64::from(*self.key.wrapping_add(SKIP_LOOK as usize).cast::<u16>().add(index)) };
        // BitReader are lowest in it.
        let sum = entry.rotate_right(SKIP_SHIFT);
        self.bits <<= sum & 63;
        self.state = self.state.wrapping_add(sum);
        if self.state >> 63 != 0 {
            return Some(sum);
        }
        // SAFETY: there are notes and keys for all look-ups that may follow each other.
        let next = unsafe {
            *self.notes.add(self.turns) = self.state as u32;
            *self.keys.wrapping_add(self.turns)
        };
        let ends = entry & u64::from(SKIP_END) != 0;
        self.key = select_unpredictable(ends, next, self.key);
        self.state = select_unpredictable(ends, u64::from(self.state as u32), self.state);
        self.turns += usize::from(ends);
        None
    }
}

/// A run of blocks that is passed over, or what is taken for one.
pub(crate) struct Scanner<'a> {
    keys: &'a Keys<'a>,
    bytes: &'a [u8],
    /// The byte from which bits are counted.
    start: usize,
    /// Where to stop, soon after, from there.
    stop: usize,
    /// The sum of all entries ([`skip`]), rotated: the next bit's number is lowest, and the coefficients that were passed of
    /// its block are highest.
    state: u64,
    /// BlockRow and DCs that were begun.
    turns: usize,
    /// The turn for which the keys begin.
    first: usize,
    /// For each turn, the bit at which it begins: a block's DC or, every second one, its AC.
    notes: &'a mut [u32],
    /// Notes that are enough.
    enough: usize,
    /// The start is a guess: where codes lead astray, begin anew.
    guess: bool,
    over: bool,
    damage: Option<Damage>,
}

impl<'a> Scanner<'a> {
    /// A track over `blocks` blocks from bit `bit` on, where an MCU begins. `bytes` are data from
    /// [`crate::bitstream::unstuffed::UnstuffedData::bytes`]; notes must be at least [`notes`].
    pub(crate) fn new(
        bytes: &'a [u8],
        keys: &'a Keys<'a>,
        bit: usize,
        blocks: usize,
        notes: &'a mut [u32],
    ) -> Scanner<'a> {
        assert!(bytes.len() >= SLACK && bit / 8 <= bytes.len() - AHEAD);
        assert!(notes.len() >= self::notes(blocks) && blocks < u32::MAX as usize >> 12);
        let (start, enough) = (bit / 8, 2 * blocks + 1);
        let (guess, over, damage) = (false, false, None);
        let mut track =
            Scanner { keys, bytes, start, stop: 0, state: 0, turns: 0, first: 0, notes, enough, guess, over, damage };
        track.begin(bit % 8);
        track
    }

    /// The same, where bit `bit` is but a guess: where codes lead astray, the track begins anew.
    pub(crate) fn guess(mut self) -> Self {
        self.guess = true;
        self
    }

    /// Takes the guess for true.
    pub(crate) fn confirm(&mut self) {
        self.guess = false;
    }

    /// Makes the track stop soon after bit `bit`, or towards the end of the slack, which it takes for data.
    pub(crate) fn until(&mut self, bit: usize) {
        self.stop = bit.min(self.end()).saturating_sub(self.start * 8);
    }

    /// The bit from which on there are no look-ups.
    fn end(&self) -> usize {
        (self.bytes.len() - AHEAD) * 8
    }

    /// The next bit's number.
    pub(crate) fn bit(&self) -> usize {
        self.start * 8 + self.at()
    }

    /// BlockRow whose first bits are known; they may be beyond the data.
    pub(crate) fn known(&self) -> usize {
        self.turns.div_ceil(2)
    }

    /// First bit of a block, which must be known.
    #[inline(always)]
    pub(crate) fn place(&self, block: usize) -> usize {
        self.start * 8 + self.notes[2 * block] as usize
    }

    /// Whether all blocks are passed over that there was room for.
    fn is_full(&self) -> bool {
        self.turns >= self.enough
    }

    /// Whether the track cannot go on.
    pub(crate) fn is_over(&self) -> bool {
        self.over || self.is_full() || self.bit() >= self.end()
    }

    /// What ended the track, if it was no guess.
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// The next bit's number, from the start.
    fn at(&self) -> usize {
        self.state as u32 as usize
    }

    /// Goes on with the first block of an MCU at bit `at` from the start.
    fn begin(&mut self, at: usize) {
        (self.state, self.turns, self.first) = (at as u64, 0, 0);
        self.turn();
    }

    /// Goes on with the next turn.
    fn turn(&mut self) {
        self.state = self.at() as u64;
        self.notes[self.turns] = self.state as u32;
        self.turns += 1;
    }

    /// Rounds of look-ups that can go on without a look at where they are.
    #[inline(always)]
    fn rounds(&mut self) -> usize {
        if self.over {
            return 0;
        }
        if self.turns - self.first > RING / 2 {
            self.first = (self.turns - 1) / self.keys.turns() * self.keys.turns();
        }
        let data = self.stop.saturating_sub(self.at()).div_ceil(ROUND);
        let notes = self.enough.saturating_sub(self.turns).div_ceil(LOOKUPS);
        data.min(notes).min((RING - (self.turns - self.first)) / LOOKUPS)
    }

    /// The track's state, to go on from.
    #[inline(always)]
    fn hot(&mut self) -> Hot {
        Hot {
            bits: 0,
            state: self.state,
            key: self.keys.keys[self.turns - 1 - self.first],
            turns: self.turns,
            keys: self.keys.keys.as_ptr().wrapping_sub(self.first),
            notes: self.notes.as_mut_ptr(),
            data: self.bytes[self.start..].as_ptr(),
        }
    }

    /// Whether there are data, notes and keys for another round: what [`Scanner::rounds`] promises.
    fn has_room(&self, hot: &Hot) -> bool {
        self.start + hot.state as u32 as usize / 8 + 8 <= self.bytes.len()
            && hot.turns + LOOKUPS <= self.notes.len()
            && hot.turns - self.first + LOOKUPS <= RING
    }

    /// Takes back a look-up that led beyond the block, and goes on symbol by symbol: over the one whose code was too long for
    /// the look-up, or to the end of the block, where it saw more than that.
    #[cold]
    #[inline(never)]
    fn single(&mut self, sum: u64) {
        self.state = self.state.wrapping_sub(sum);
        let missed = sum as u8 == 0;
        let (lane, dc) = (&self.keys.tables[(self.turns - 1) % self.keys.turns() / 2], self.turns % 2 == 1);
        let codes = if dc { &lane.dc.codes } else { &lane.ac.codes };
        while self.state >> COEFS != SKIP_MOST.into() {
            let byte = self.start + self.at() / 8;
            let Some(&bytes) = self.bytes[byte..].first_chunk().filter(|_| byte <= self.bytes.len() - AHEAD) else {
                return self.astray(Damage::Ends);
            };
            let Some((length, symbol)) = codes.find(u64::from_be_bytes(bytes) << (self.at() % 8)) else {
                return self.astray(Damage::Code);
            };
            let entry = skip(dc, length, symbol);
            self.state = self.state.wrapping_add(u64::from(entry).rotate_right(SKIP_SHIFT));
            if self.state >> 63 != 0 {
                return self.astray(Damage::Block);
            }
            if entry & SKIP_END != 0 {
                break;
            }
            if missed {
                return;
            }
        }
        self.turn();
    }

    /// CodeTable led astray: damage, or a wrong guess of where an MCU begins.
    fn astray(&mut self, damage: Damage) {
        // What follows the data leads astray too.
        let data = self.bit() + 64 < (self.bytes.len() - SLACK) * 8;
        if self.guess && data {
            return self.begin(self.at() + 1);
        }
        self.damage = Some(damage).filter(|_| !self.guess);
        self.over = true;
    }
}

/// Goes on with all tracks until one of them stops, or is over.
pub(crate) fn run<const N: usize>(fast: bool, tracks: [&mut Scanner<'_>; N]) {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these cpu.
        return unsafe { run_bmi2(tracks) };
    }
    let _ = fast;
    run_here(tracks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn run_bmi2<const N: usize>(tracks: [&mut Scanner<'_>; N]) {
    run_here(tracks);
}

#[inline(always)]
fn run_here<const N: usize>(mut tracks: [&mut Scanner<'_>; N]) {
    loop {
        let rounds = tracks.iter_mut().map(|track| track.rounds()).min().unwrap_or(0);
        if rounds == 0 {
            break;
        }
        // SAFETY: so many can follow.
        if let Some((i, sum)) = unsafe { go(&mut tracks, rounds) } {
            tracks[i].single(sum);
        }
    }
}

/// Goes on with all tracks by so many rounds. Stops where a look-up led beyond its block: tells in which track, and what it
/// added.
///
/// # Safety
/// All tracks must be before their ends by so many [`Scanner::rounds`].
#[inline(always)]
unsafe fn go<const N: usize>(tracks: &mut [&mut Scanner<'_>; N], rounds: usize) -> Option<(usize, u64)> {
    let mut hot: [Hot; N] = std::array::from_fn(|i| tracks[i].hot());
    let mut beyond = None;
    for _ in 0..rounds {
        debug_assert!(tracks.iter().zip(&hot).all(|(track, hot)| track.has_room(hot)));
        // SAFETY: the caller's promise; LOOKUPS look-ups follow each refill.
        unsafe {
            hot.iter_mut().for_each(|hot| hot.refill());
            let mut all = || (0..N).find_map(|i| hot[i].step().map(|sum| (i, sum)));
            beyond = all().or_else(&mut all).or_else(&mut all);
        }
        if beyond.is_some() {
            break;
        }
    }
    for (track, hot) in tracks.iter_mut().zip(hot) {
        (track.state, track.turns) = (hot.state, hot.turns);
    }
    beyond
}
