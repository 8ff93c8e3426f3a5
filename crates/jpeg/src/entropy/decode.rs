//! The inner loop: Huffman codes to coefficients, one segment or two at a time.
//!
//! Decoding is a chain of dependent loads: shift, look up, shift. One look-up therefore yields all there is to know of a
//! coefficient (bits, run, value), a refill serves four of them, everything rare shares one branch with the end of the
//! block, and a second segment fills the time in which the first one waits.
//!
//! Where no second segment is known, one is speculative_mcus: from almost anywhere, Huffman codes find their step by themselves
//! after a few hundred bytes, and from the first bit at which both streams begin an MCU, they are the same.

use crate::entropy::block_stream::{Stream, both};
use crate::error::Damage;
use crate::huffman::{CodeTable, CoefficientTable};

/// Where a segment's decoding stands.
#[derive(Clone, Copy, Default)]
pub(crate) struct BitCursor {
    pub(crate) bits: u64,
    /// The low six bits say how many bits of `bits` are good.
    pub(crate) count: u32,
    pub(crate) byte: usize,
}

impl BitCursor {
    /// A cursor at bit `bit` of `bytes`.
    pub(crate) fn at(bytes: &[u8], bit: usize) -> BitCursor {
        let byte = bit / 8;
        let head = bytes.get(byte).copied().unwrap_or(0);
        let used = (bit % 8) as u32;
        BitCursor { bits: u64::from(head) << 56 << used, count: 8 - used, byte: byte + 1 }
    }

    /// The next bit's number.
    pub(crate) fn bit(&self) -> usize {
        self.byte * 8 - (self.count & 63) as usize
    }
}

/// The most blocks that an MCU can have.
pub(crate) const MAX_MCU_BLOCKS: usize = 10;

/// The tables of one block of an MCU.
#[derive(Clone, Copy)]
pub(crate) struct BlockTables<'a> {
    pub dc: &'a CodeTable,
    pub ac: &'a CoefficientTable,
}

/// The tables of the blocks of an MCU, in order.
pub(crate) type McuTables<'a> = [BlockTables<'a>];

/// BlockRow to decode, from a cursor on.
pub(crate) struct DecodeJob<'a> {
    /// Where to start; afterwards, where it ended.
    pub cursor: &'a mut BitCursor,
    /// Room for `blocks` blocks of 64 coefficients in natural order and one coefficient more, DC being left as the
    /// difference that was coded.
    pub coefs: &'a mut [i16],
    /// For each block the index, in zigzag order, of the last coefficient that may differ from 0.
    pub last: &'a mut [u8],
    /// Number of blocks.
    pub blocks: usize,
    /// The first bit of each MCU and of the one after them, if that is wanted.
    pub marks: &'a mut [u32],
}

/// A block, counted from the job's first, at which decoding stopped, and why.
pub(crate) type Stop = (usize, Damage);

/// How a job went that had another one, a guess, ahead of it.
pub(crate) struct Ahead {
    /// BlockRow decoded: all, or those up to where it met the guess.
    pub blocks: usize,
    pub result: Result<(), Stop>,
    /// Number of the mark of the guess that it met. From there on the guess is true.
    pub met: Option<usize>,
    /// MCUs of the guess.
    pub speculative_mcus: usize,
}

/// Decodes one job. `bytes` are data from [`crate::bitstream::unstuffed::UnstuffedData::bytes`]. The first block is the first
/// of an MCU.
pub(crate) fn decode(fast: bool, bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>) -> Result<(), Stop> {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these cpu.
        return unsafe { one_bmi2(bytes, tables, job) };
    }
    let _ = fast;
    one(bytes, tables, job)
}

/// Decodes two jobs at once; what stopped each of them.
pub(crate) fn decode_two(
    fast: bool,
    bytes: &[u8],
    tables: &McuTables<'_>,
    jobs: (DecodeJob<'_>, DecodeJob<'_>),
) -> (Result<(), Stop>, Result<(), Stop>) {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these cpu.
        return unsafe { two_bmi2(bytes, tables, jobs) };
    }
    let _ = fast;
    two(bytes, tables, jobs)
}

/// Decodes a job, and at once another one that is taken to begin where its cursor is, up to bit `until`. The guess is
/// wrong at first; but codes find their step by themselves. Its marks must be [`u32::MAX`], and one more than other jobs
/// need.
pub(crate) fn decode_ahead(
    fast: bool,
    bytes: &[u8],
    tables: &McuTables<'_>,
    job: DecodeJob<'_>,
    guess: DecodeJob<'_>,
    until: usize,
) -> Ahead {
    #[cfg(target_arch = "x86_64")]
    if fast {
        // SAFETY: `fast` is only true where the processor was found to have these cpu.
        return unsafe { ahead_bmi2(bytes, tables, job, guess, until) };
    }
    let _ = fast;
    ahead(bytes, tables, job, guess, until)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn one_bmi2(bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>) -> Result<(), Stop> {
    one(bytes, tables, job)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn two_bmi2(
    bytes: &[u8],
    tables: &McuTables<'_>,
    jobs: (DecodeJob<'_>, DecodeJob<'_>),
) -> (Result<(), Stop>, Result<(), Stop>) {
    two(bytes, tables, jobs)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
fn ahead_bmi2(bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>, guess: DecodeJob<'_>, until: usize) -> Ahead {
    ahead(bytes, tables, job, guess, until)
}

#[inline(always)]
fn one(bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>) -> Result<(), Stop> {
    let Some((mut a, cursor)) = Stream::new(bytes, tables, job) else { return Ok(()) };
    // SAFETY: `a` is new, and has begun before it goes on.
    unsafe {
        a.start();
        a.rest();
    }
    a.close(cursor)
}

#[inline(always)]
fn two(
    bytes: &[u8],
    tables: &McuTables<'_>,
    (a, b): (DecodeJob<'_>, DecodeJob<'_>),
) -> (Result<(), Stop>, Result<(), Stop>) {
    assert!(a.blocks > 0 && b.blocks > 0, "two jobs with something to do");
    let (Some((mut a, cursor_a)), Some((mut b, cursor_b))) =
        (Stream::new(bytes, tables, a), Stream::new(bytes, tables, b))
    else {
        return (Ok(()), Ok(()));
    };
    // SAFETY: both are new, and have begun before they go on.
    unsafe {
        if a.start() & b.start() {
            both(&mut a, &mut b);
        }
        a.rest();
        b.rest();
    }
    (a.close(cursor_a), b.close(cursor_b))
}

#[inline(always)]
fn ahead(bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>, guess: DecodeJob<'_>, until: usize) -> Ahead {
    assert!(guess.marks.len() >= guess.blocks / tables.len() + 2 && guess.marks.last() == Some(&u32::MAX));
    let none = Ahead { blocks: 0, result: Ok(()), met: None, speculative_mcus: 0 };
    let marks = guess.marks.as_ptr();
    let Some((mut a, cursor_a)) = Stream::new(bytes, tables, job) else { return none };
    let Some((mut b, cursor_b)) = Stream::new(bytes, tables, guess) else { return none };
    b.guess(until);
    a.meet(&b);
    // SAFETY: both are new, and have begun before they go on.
    unsafe {
        if a.start() & b.start() {
            both(&mut a, &mut b);
        }
        a.rest();
        if a.confirm(&mut b) {
            b.rest();
        }
    }
    let _ = b.close(cursor_b);
    let met = a.met(marks);
    Ahead { blocks: a.done(), met, speculative_mcus: b.done() / tables.len(), result: a.close(cursor_a) }
}
