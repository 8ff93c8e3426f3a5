//! Passing over blocks: from Huffman codes to where blocks begin, and nothing else.
//!
//! Where a block ends cannot be predicted, and a wrong prediction costs more than a few symbols do. So its end is no branch
//! here: a look-up passes over all symbols that it can see whole, whatever they are, and where they end a block, the next
//! look-up is one in another table. Its place is noted after each of them; only where something ended the note is kept.
//! What such a loop waits for are its own look-ups, so that it has time for several tracks.

use std::hint::select_unpredictable;

use crate::entropy::MAX_LANES;
use crate::error::Damage;
use crate::huffman::{SKIP_BITS, SKIP_COEFS, SKIP_END, SKIP_LOOK, Skips, split};
use crate::plain::SLACK;

/// Look-ups that a refill is enough for: at least 57 bits.
const LOOKUPS: usize = 57 / SKIP_BITS as usize;
const _: () = assert!(LOOKUPS == 3, "as many as `run_here` makes");
/// Bits that they pass over at most.
const ROUND: usize = LOOKUPS * SKIP_BITS as usize;

/// The bit of an entry that says that it ends a block, or a DC.
const LAST: u32 = SKIP_COEFS + SKIP_END.ilog2();

/// What [`Hot::coefs`] begins with, so that in a full block it is [`FULL`].
const FIRST: u32 = 1;
const FULL: u32 = 64;

/// Keys laid out one after the other.
const RING: usize = 192;
const _: () = assert!(2 * 2 * MAX_LANES <= RING);

/// No look-up starts nearer to the end of the slack: a symbol and a refill take less.
const AHEAD: usize = 32;
const _: () = assert!(AHEAD < SLACK);

/// The tables for passing over one block of an MCU.
#[derive(Clone, Copy)]
pub(crate) struct SkipLane<'a> {
    pub dc: &'a Skips<true>,
    pub ac: &'a Skips<false>,
}

/// The tables of the blocks of an MCU, in order.
pub(crate) type SkipLanes<'a> = [SkipLane<'a>];

/// The keys ([`Skips::key`]) of an MCU's tables in the order of their use, time and again.
pub(crate) struct Keys<'a> {
    keys: [*const u8; RING],
    lanes: &'a SkipLanes<'a>,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(lanes: &'a SkipLanes<'a>) -> Keys<'a> {
        assert!(!lanes.is_empty() && lanes.len() <= MAX_LANES);
        let mut keys = [std::ptr::null(); RING];
        for (pair, lane) in keys.as_chunks_mut::<2>().0.iter_mut().zip(lanes.iter().cycle()) {
            *pair = [lane.dc.key(), lane.ac.key()];
        }
        Keys { keys, lanes }
    }
}

/// Notes that a track needs for so many blocks: where each of them begins and where its DC ends, and where the one after
/// them begins, and what a round of look-ups may add to that.
pub(crate) const fn notes(blocks: usize) -> usize {
    2 * blocks + 1 + LOOKUPS
}

/// Blocks that so many notes are enough for.
pub(crate) const fn blocks(notes: usize) -> usize {
    notes.saturating_sub(1 + LOOKUPS) / 2
}

/// What each look-up changes: to be kept in registers.
#[derive(Clone, Copy)]
struct Hot {
    /// The next bits.
    bits: u64,
    /// The next bit's number, from the track's start.
    at: usize,
    /// Coefficients of the block so far, and [`FIRST`]; with [`SKIP_END`] at its end.
    coefs: u32,
    /// Says which table comes next.
    key: *const u8,
    /// Notes that are kept: one for the start, and one for each end of a DC or a block.
    turns: usize,
    /// Where the keys would begin if `turns` had never been 0: the next one is that of number `turns`.
    keys: *const *const u8,
    /// For each turn, the bit at which it begins: a block or, every second one, a block's AC.
    notes: *mut u32,
}

/// A run of blocks that is passed over, or what is taken for one.
pub(crate) struct Track<'a> {
    hot: Hot,
    keys: &'a Keys<'a>,
    bytes: &'a [u8],
    /// The byte from which bits are counted.
    start: usize,
    /// Where to stop, soon after, from there.
    stop: usize,
    notes: &'a mut [u32],
    /// Notes that are enough.
    enough: usize,
    /// The start is a guess: where codes lead astray, begin anew.
    guess: bool,
    over: bool,
    damage: Option<Damage>,
}

impl<'a> Track<'a> {
    /// A track over `blocks` blocks from bit `bit` on, where an MCU begins. `bytes` are data from
    /// [`crate::plain::Plain::bytes`]; notes must be at least [`notes`].
    pub(crate) fn new(
        bytes: &'a [u8],
        keys: &'a Keys<'a>,
        bit: usize,
        blocks: usize,
        notes: &'a mut [u32],
    ) -> Track<'a> {
        assert!(bytes.len() >= SLACK && bit / 8 <= bytes.len() - AHEAD);
        assert!(notes.len() >= self::notes(blocks) && blocks < u32::MAX as usize >> 12);
        let hot = Hot {
            bits: 0,
            at: 0,
            coefs: 0,
            key: std::ptr::null(),
            turns: 0,
            keys: std::ptr::null(),
            notes: notes.as_mut_ptr(),
        };
        let (start, enough) = (bit / 8, 2 * blocks + 1);
        let mut track =
            Track { hot, keys, bytes, start, stop: 0, notes, enough, guess: false, over: false, damage: None };
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

    /// Makes the track stop soon after bit `bit`, at the end of the data at the latest.
    pub(crate) fn until(&mut self, bit: usize) {
        self.stop = bit.min((self.bytes.len() - AHEAD) * 8).saturating_sub(self.start * 8);
    }

    /// The next bit's number.
    pub(crate) fn bit(&self) -> usize {
        self.start * 8 + self.hot.at
    }

    /// Blocks whose first bits are known.
    pub(crate) fn known(&self) -> usize {
        self.hot.turns.div_ceil(2)
    }

    /// First bit of a block, which must be known.
    #[inline(always)]
    pub(crate) fn place(&self, block: usize) -> usize {
        self.start * 8 + self.notes[2 * block] as usize
    }

    /// Whether all blocks are passed over that there was room for.
    pub(crate) fn is_full(&self) -> bool {
        self.hot.turns >= self.enough
    }

    /// Whether the track cannot go on.
    pub(crate) fn is_over(&self) -> bool {
        self.over || self.is_full()
    }

    /// What ended the track, if it was no guess.
    pub(crate) fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// Goes on with the first block of an MCU at bit `at` from the start.
    fn begin(&mut self, at: usize) {
        let keys = self.keys.keys.as_ptr();
        self.hot =
            Hot { bits: 0, at, coefs: FIRST, key: self.keys.keys[0], turns: 1, keys, notes: self.notes.as_mut_ptr() };
        self.notes[0] = at as u32;
        self.hot.bits = self.head();
    }

    /// The next bits, at least 57 of them.
    fn head(&self) -> u64 {
        let bytes = self.bytes[self.start + self.hot.at / 8..].first_chunk();
        bytes.map_or(0, |&b| u64::from_be_bytes(b)) << (self.hot.at % 8)
    }

    /// Rounds of look-ups that can go on without a look at where they are.
    #[inline(always)]
    fn rounds(&self, hot: &mut Hot) -> usize {
        let first = hot.turns - hot.turns % (2 * self.keys.lanes.len());
        hot.keys = self.keys.keys.as_ptr().wrapping_sub(first);
        let notes = self.enough.saturating_sub(hot.turns).min(first + RING - LOOKUPS - hot.turns);
        self.stop.saturating_sub(hot.at).div_ceil(ROUND).min(notes.div_ceil(LOOKUPS))
    }

    /// Gets at least 57 bits.
    ///
    /// # Safety
    /// The track must be before its end by [`Track::rounds`].
    #[inline(always)]
    unsafe fn refill(&self, hot: &mut Hot) {
        // SAFETY: what stops a track keeps AHEAD bytes before the end of the data.
        let bytes = unsafe { self.bytes.as_ptr().add(self.start + hot.at / 8).cast::<[u8; 8]>().read() };
        hot.bits = u64::from_be_bytes(bytes) << (hot.at % 8);
    }

    /// One look-up; the next [`LOOKUPS`] can do without a refill. False if the track is over.
    ///
    /// # Safety
    /// As many rounds as [`Track::rounds`] says may follow it, or as `rounds` says then.
    #[inline(always)]
    unsafe fn step(&mut self, hot: &mut Hot, rounds: &mut usize) -> bool {
        let index = (hot.bits >> (hot.key.addr() & 63)) as usize;
        // SAFETY: `key` is one of a table with an entry for each value of so many bits.
        let mut entry = unsafe { u32::from(*hot.key.wrapping_add(SKIP_LOOK as usize).cast::<u16>().add(index)) };
        hot.bits <<= entry & 63;
        hot.at += (entry & 255) as usize;
        hot.coefs += entry >> SKIP_COEFS;
        if hot.coefs & FULL != 0 {
            if hot.coefs != FULL {
                self.hot = *hot;
                let goes_on = self.single(entry);
                *hot = self.hot;
                *rounds = 0;
                if !goes_on {
                    return false;
                }
            }
            entry = u32::from(hot.coefs >= FULL) << LAST;
        }
        // SAFETY: a round adds LOOKUPS notes at most, and `rounds` is so that there is room for them, and as many keys.
        let next = unsafe {
            *hot.notes.add(hot.turns) = hot.at as u32;
            *hot.keys.wrapping_add(hot.turns)
        };
        let last = entry >> LAST;
        hot.key = select_unpredictable(last != 0, next, hot.key);
        // In these, `last` is FIRST.
        hot.coefs = select_unpredictable(last != 0, last, hot.coefs);
        hot.turns += last as usize;
        true
    }

    /// Takes back a look-up and passes over one symbol; over all to the end of the block, if it was the end that was missed.
    /// False if the track is over.
    #[cold]
    #[inline(never)]
    fn single(&mut self, entry: u32) -> bool {
        let (bits, turn) = (entry & 255, self.hot.turns - 1);
        self.hot.at -= bits as usize;
        self.hot.coefs -= entry >> SKIP_COEFS;
        let (lane, dc) = (&self.keys.lanes[turn / 2 % self.keys.lanes.len()], turn % 2 == 0);
        let codes = if dc { &lane.dc.codes } else { &lane.ac.codes };
        loop {
            if self.start + self.hot.at / 8 > self.bytes.len() - AHEAD {
                return self.astray(Damage::Ends);
            }
            let Some((length, symbol)) = codes.find(self.head()) else {
                return self.astray(Damage::Code);
            };
            let (coefs, size) = if dc { (SKIP_END, symbol.into()) } else { split(symbol, SKIP_END) };
            self.hot.at += (length + size) as usize;
            self.hot.coefs += coefs;
            if self.hot.coefs & FULL != 0 && self.hot.coefs != FULL {
                return self.astray(Damage::Block);
            }
            if bits == 0 || self.hot.coefs >= FULL {
                self.hot.bits = self.head();
                return true;
            }
        }
    }

    /// Codes led astray: damage, or a wrong guess of where an MCU begins. False if the track is over.
    fn astray(&mut self, damage: Damage) -> bool {
        // What follows the data leads astray too.
        let data = self.bit() + 64 < (self.bytes.len() - SLACK) * 8;
        if self.guess && data {
            self.begin(self.hot.at + 1);
            return true;
        }
        self.damage = Some(damage).filter(|_| !self.guess);
        self.over = true;
        false
    }
}

/// Goes on with all tracks until one of them stops, or is over.
pub(crate) fn run<const N: usize>(fast: bool, tracks: [&mut Track<'_>; N]) {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these features.
        return unsafe { run_bmi2(tracks) };
    }
    let _ = fast;
    run_here(tracks);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn run_bmi2<const N: usize>(tracks: [&mut Track<'_>; N]) {
    run_here(tracks);
}

#[inline(always)]
fn run_here<const N: usize>(mut tracks: [&mut Track<'_>; N]) {
    if tracks.iter().any(|track| track.over) {
        return;
    }
    let mut hot: [Hot; N] = std::array::from_fn(|i| tracks[i].hot);
    'all: loop {
        let mut rounds = usize::MAX;
        for i in 0..N {
            rounds = rounds.min(tracks[i].rounds(&mut hot[i]));
        }
        if rounds == 0 {
            break;
        }
        while rounds > 0 {
            rounds -= 1;
            // SAFETY: so many rounds may follow; after anything unusual, `step` makes this the last one.
            unsafe {
                for i in 0..N {
                    tracks[i].refill(&mut hot[i]);
                }
                let mut all = || (0..N).all(|i| tracks[i].step(&mut hot[i], &mut rounds));
                if !(all() && all() && all()) {
                    break 'all;
                }
            }
        }
    }
    for i in 0..N {
        tracks[i].hot = hot[i];
    }
}
