//! A scan without any known start but its own, decoded in two places at once: the second one is guessed, far enough ahead,
//! and true from where the first one meets it.

use crate::entropy::{self, Cursor, Job};
use crate::sequential::{Course, Fall, Shape, Walk, predict};

/// MCUs, and bytes of data, in a round that is worth a guess.
const WORTH: (usize, usize) = (48, 1 << 10);

/// Memory of a round, for MCUs: those decoded from where the walk is, from `coefs` and `last` 0 on; and those decoded from
/// the guess.
pub(crate) struct Space<'a> {
    pub coefs: (&'a mut [i16], &'a mut [i16]),
    pub last: (&'a mut [u8], &'a mut [u8]),
    /// First bits of the MCUs: one more than there is room for, and two more.
    pub marks: (&'a mut [u32], &'a mut [u32]),
    /// MCUs that there is room for.
    pub mcus: (usize, usize),
}

/// What a round brought, in MCUs: the first part, and of the guess as many from one on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub first: usize,
    pub from: usize,
    pub second: usize,
}

/// Whether a guess is of use for such scans.
fn serves(shape: &Shape, bits: usize) -> bool {
    shape.has_phase() && bits < u32::MAX as usize
}

/// Decodes on from `walk`, about `aim` MCUs in all but none from number `end` on, or passes over them. DC are values
/// afterwards.
pub(crate) fn round<const SKIP: bool>(
    course: &Course<'_>,
    walk: &mut Walk,
    (aim, end): (usize, u64),
    space: Space<'_>,
) -> Result<Round, Fall> {
    let Course { shape, plain, .. } = *course;
    let Space { coefs, last, marks, mcus } = space;
    let (unit, count) = (if SKIP { 1 } else { 64 }, shape.count);
    let wanted = (end - walk.mcu) as usize;
    let (from, bit) = (walk.mcu, walk.cursor.bit());
    let left = (u64::from(shape.mcus.0) * u64::from(shape.mcus.1) - from).max(1);
    let span = (plain.bits().saturating_sub(bit) as u64 * aim.min(wanted) as u64 / left) as usize;
    let mut predictors = walk.predictors;
    let mut done = Round { first: mcus.0.min(wanted), from: 0, second: 0 };
    if shape.interval != u64::MAX {
        walk.step::<SKIP>(course, done.first as u64, coefs.0, last.0)?;
        predict(shape, from, &mut predictors, &mut coefs.0[..done.first * count * unit], unit);
        walk.predictors = predictors;
        return Ok(done);
    }
    let job = Job {
        cursor: &mut walk.cursor,
        coefs: coefs.0,
        last: last.0,
        blocks: done.first * count,
        marks: &mut marks.0[..=done.first],
    };
    if aim.min(wanted) < WORTH.0 || span / 8 < WORTH.1 || !serves(shape, plain.bits()) {
        let result = entropy::decode::<SKIP>(course.fast, plain.bytes(), course.lanes, job);
        walk.settle(course, done.first as u64, result)?;
    } else {
        let mut cursor = Cursor::at(plain.bytes(), (bit + span / 2) / 8 * 8);
        let marks_b = &mut marks.1[..mcus.1 + 2];
        marks_b.fill(u32::MAX);
        let guess = Job { cursor: &mut cursor, coefs: coefs.1, last: last.1, blocks: mcus.1 * count, marks: marks_b };
        let ahead = entropy::decode_ahead::<SKIP>(course.fast, plain.bytes(), course.lanes, job, guess, bit + span);
        done.first = ahead.blocks / count;
        walk.settle(course, done.first as u64, ahead.result)?;
        if let Some(met) = ahead.met {
            let second = (ahead.guessed - met).min(wanted - done.first);
            (done.from, done.second) = (met, second);
            predict(shape, from, &mut predictors, &mut coefs.0[..done.first * count * unit], unit);
            let values = &mut coefs.1[met * count * unit..(met + second) * count * unit];
            predict(shape, walk.mcu, &mut predictors, values, unit);
            walk.cursor = Cursor::at(plain.bytes(), marks.1[met + second] as usize);
            walk.predictors = predictors;
            walk.settle(course, second as u64, Ok(()))?;
            return Ok(done);
        }
    }
    predict(shape, from, &mut predictors, &mut coefs.0[..done.first * count * unit], unit);
    walk.predictors = predictors;
    Ok(done)
}
