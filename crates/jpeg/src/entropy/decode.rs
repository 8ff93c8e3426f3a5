//! Decodes Huffman codes to coefficients, in one run of blocks or in two at a time.
//!
//! Huffman decoding is a chain of dependent loads: shift, look up, shift. Therefore one lookup returns everything about a
//! coefficient (code length, run, value), one refill serves four lookups, all rare cases share one branch with the end of the
//! block, and a second run of blocks is decoded in the same loop, in the time that the first one waits for its loads.
//!
//! If the start of a second run is not known, it is decoded speculatively from an estimated bit. Huffman codes are
//! self-synchronising (Klein and Wiseman, "Parallel Huffman Decoding with Applications to JPEG Files", 2003): after a few
//! hundred bytes the speculative decoder reads the right codes, and from the first bit at which both decoders begin an MCU,
//! their results are the same.

use super::block_stream::{BlockStream, decode_both};
use super::job::{DecodeJob, McuTables, Stop};
use crate::cpu::Bmi2;

/// The result of a job with a speculative one ahead of it.
pub(crate) struct SpeculativeResult {
    /// Blocks of the first job: all, or those before the point where it reached the speculative job.
    pub blocks: usize,
    pub result: Result<(), Stop>,
    /// Index in the speculative job's MCU offsets at which both jobs synchronised. Its MCUs are valid from there on.
    pub synced_at: Option<usize>,
    /// MCUs that the speculative job decoded, valid or not.
    pub speculative_mcus: usize,
}

/// Decodes one job. `bytes` are [`UnstuffedData::bytes`](crate::bitstream::unstuffed::UnstuffedData::bytes).
pub(crate) fn decode(bmi2: Option<Bmi2>, bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>) -> Result<(), Stop> {
    #[cfg(target_arch = "x86_64")]
    if let Some(_proof) = bmi2 {
        // SAFETY: a `Bmi2` exists only if the processor has all features that the function enables (`cpu.rs`).
        return unsafe { one_bmi2(bytes, tables, job) };
    }
    let _ = bmi2;
    one(bytes, tables, job)
}

/// Decodes two jobs in one loop, and returns what stopped each of them.
pub(crate) fn decode_two(
    bmi2: Option<Bmi2>,
    bytes: &[u8],
    tables: &McuTables<'_>,
    jobs: (DecodeJob<'_>, DecodeJob<'_>),
) -> (Result<(), Stop>, Result<(), Stop>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(_proof) = bmi2 {
        // SAFETY: a `Bmi2` exists only if the processor has all features that the function enables (`cpu.rs`).
        return unsafe { two_bmi2(bytes, tables, jobs) };
    }
    let _ = bmi2;
    two(bytes, tables, jobs)
}

/// Decodes a job and, in the same loop, a speculative one that starts at an arbitrary bit, up to bit `until`. The MCU offsets
/// of the speculative job must all be [`u32::MAX`], and one more than other jobs need.
pub(crate) fn decode_speculative(
    bmi2: Option<Bmi2>,
    bytes: &[u8],
    tables: &McuTables<'_>,
    job: DecodeJob<'_>,
    speculative: DecodeJob<'_>,
    until: usize,
) -> SpeculativeResult {
    #[cfg(target_arch = "x86_64")]
    if let Some(_proof) = bmi2 {
        // SAFETY: a `Bmi2` exists only if the processor has all features that the function enables (`cpu.rs`).
        return unsafe { speculative_bmi2(bytes, tables, job, speculative, until) };
    }
    let _ = bmi2;
    with_speculative(bytes, tables, job, speculative, until)
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
fn speculative_bmi2(
    bytes: &[u8],
    tables: &McuTables<'_>,
    job: DecodeJob<'_>,
    speculative: DecodeJob<'_>,
    until: usize,
) -> SpeculativeResult {
    with_speculative(bytes, tables, job, speculative, until)
}

#[inline(always)]
fn one(bytes: &[u8], tables: &McuTables<'_>, job: DecodeJob<'_>) -> Result<(), Stop> {
    let Some((mut a, cursor)) = BlockStream::new(bytes, tables, job) else { return Ok(()) };
    // SAFETY: `a` is new, and `start` comes before `rest`.
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
    assert!(a.blocks > 0 && b.blocks > 0, "both jobs must have blocks");
    let (Some((mut a, cursor_a)), Some((mut b, cursor_b))) =
        (BlockStream::new(bytes, tables, a), BlockStream::new(bytes, tables, b))
    else {
        return (Ok(()), Ok(()));
    };
    // SAFETY: both are new, and `start` comes before `decode_both` and `rest`.
    unsafe {
        if a.start() & b.start() {
            decode_both(&mut a, &mut b);
        }
        a.rest();
        b.rest();
    }
    (a.close(cursor_a), b.close(cursor_b))
}

#[inline(always)]
fn with_speculative(
    bytes: &[u8],
    tables: &McuTables<'_>,
    job: DecodeJob<'_>,
    speculative: DecodeJob<'_>,
    until: usize,
) -> SpeculativeResult {
    let offsets = &speculative.mcu_offsets;
    assert!(offsets.len() >= speculative.blocks / tables.len() + 2 && offsets.last() == Some(&u32::MAX));
    let none = SpeculativeResult { blocks: 0, result: Ok(()), synced_at: None, speculative_mcus: 0 };
    let offsets = offsets.as_ptr();
    let Some((mut a, cursor_a)) = BlockStream::new(bytes, tables, job) else { return none };
    let Some((mut b, cursor_b)) = BlockStream::new(bytes, tables, speculative) else { return none };
    b.set_speculative(until);
    a.stop_at_sync_with(&b);
    // SAFETY: both are new, and `start` comes before `decode_both` and `rest`.
    unsafe {
        if a.start() & b.start() {
            decode_both(&mut a, &mut b);
        }
        a.rest();
        if a.confirm_sync(&mut b) {
            b.rest();
        }
    }
    let _ = b.close(cursor_b);
    let synced_at = a.synced_at(offsets);
    SpeculativeResult {
        blocks: a.done(),
        synced_at,
        speculative_mcus: b.done() / tables.len(),
        result: a.close(cursor_a),
    }
}
