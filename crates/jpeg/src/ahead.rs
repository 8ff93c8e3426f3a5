//! A scan without any known start but its own, decoded in two places at once: the second one is guessed, far enough ahead,
//! and true from where the first one meets it.

use crate::entropy::{self, Cursor, Job};
use crate::pass;
use crate::sequential::{Course, Fall, Walk, predict};
use crate::skip;

impl Course<'_> {
    /// Whether to guess in the next so many MCUs, which have about `span` bits.
    pub(crate) fn is_worth_a_guess(&self, mcus: usize, span: usize) -> bool {
        let (least, bytes) = self.pace.worth;
        self.shape.phased && self.plain.bits() < u32::MAX as usize && mcus >= least && span / 8 >= bytes
    }
}

/// How much is decoded before it becomes pixels, and when to guess.
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    /// Bytes of coefficients in a round, about.
    pub coefs: usize,
    /// Blocks of each track in a round of passing over them.
    blocks: usize,
    /// MCUs, and bytes of data, in a round that is worth a guess; at least one each, so that it starts after what is known.
    worth: (usize, usize),
}

impl Pace {
    /// Coefficients few enough for the second-level cache, and many enough that what is decoded twice, until the guess is
    /// met, is little; a guess where there is something to gain.
    pub(crate) const BEST: Pace = Pace { coefs: 384 << 10, blocks: 1 << 13, worth: (64, 1 << 10) };
    /// As many rounds and guesses as there can be, for tests: small images see all that large ones do.
    pub(crate) const EAGER: Pace = Pace { coefs: 0, blocks: 170, worth: (2, 1) };

    /// Notes for passing over MCUs of an image of so many blocks.
    pub(crate) fn notes(&self, blocks: u64) -> usize {
        pass::TRACKS * skip::notes(blocks.min(self.blocks as u64) as usize)
    }

    /// Rows of MCUs, of that many blocks each, in a round, where starts are `step` rows apart: two groups at
    /// least, if there are so many.
    pub(crate) fn rows(&self, row_blocks: usize, step: u32, rows: u32) -> u32 {
        let fit = (self.coefs / (row_blocks * 128)).min(rows as usize) as u32 / step * step;
        fit.max(2 * step).min(rows.next_multiple_of(step))
    }
}

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

/// Decodes on from `walk`, about `aim` MCUs in all but none from number `end` on. DC are values afterwards.
pub(crate) fn round(
    course: &Course<'_>,
    walk: &mut Walk,
    (aim, end): (usize, u64),
    space: Space<'_>,
) -> Result<Round, Fall> {
    let Course { shape, plain, .. } = *course;
    let Space { coefs, last, marks, mcus } = space;
    let count = shape.count;
    let wanted = (end - walk.mcu) as usize;
    let (from, bit) = (walk.mcu, walk.cursor.bit());
    let left = (u64::from(shape.mcus.0) * u64::from(shape.mcus.1) - from).max(1);
    let span = (plain.bits().saturating_sub(bit) as u64 * aim.min(wanted) as u64 / left) as usize;
    let mut done = Round { first: mcus.0.min(wanted), from: 0, second: 0 };
    if shape.interval == u64::MAX {
        let job = Job {
            cursor: &mut walk.cursor,
            coefs: coefs.0,
            last: last.0,
            blocks: done.first * count,
            marks: &mut marks.0[..=done.first],
        };
        if course.is_worth_a_guess(aim.min(wanted), span) {
            let mut cursor = Cursor::at(plain.bytes(), (bit + span / 2) / 8 * 8);
            let noted = &mut marks.1[..mcus.1 + 2];
            noted.fill(u32::MAX);
            let guess = Job { cursor: &mut cursor, coefs: coefs.1, last: last.1, blocks: mcus.1 * count, marks: noted };
            let ahead = entropy::decode_ahead(course.fast, plain.bytes(), course.lanes, job, guess, bit + span);
            done.first = ahead.blocks / count;
            walk.settle(course, done.first as u64, ahead.result)?;
            if let Some(met) = ahead.met {
                (done.from, done.second) = (met, (ahead.guessed - met).min(wanted - done.first));
                walk.cursor = Cursor::at(plain.bytes(), marks.1[met + done.second] as usize);
                walk.settle(course, done.second as u64, Ok(()))?;
            }
        } else {
            let result = entropy::decode(course.fast, plain.bytes(), course.lanes, job);
            walk.settle(course, done.first as u64, result)?;
        }
    } else {
        walk.step(course, done.first as u64, coefs.0, last.0)?;
    }
    let size = count * 64;
    let second = done.from * size..(done.from + done.second) * size;
    predict(shape, from, &mut walk.predictors, &mut coefs.0[..done.first * size]);
    predict(shape, from + done.first as u64, &mut walk.predictors, &mut coefs.1[second]);
    Ok(done)
}
