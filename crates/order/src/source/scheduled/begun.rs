//! What a resume state says about the stages that a run has begun; later ones may be changed between runs.

use std::fmt;
use std::ops::Range;

use super::Scheduled;
use shardtool_format::checksum::crc32c;

/// Stages of which a state has a mark: the last ones that the run has begun.
const MARKED: usize = 19;

/// How many stages a run has begun, and marks of the last 19, by which a refusal names the first that differs: the lower 16 bits of
/// a CRC32C of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageMarks {
    /// 1 to [`MAX_STAGES`](super::MAX_STAGES).
    begun: u16,
    /// In the order of the stages; the rest is 0.
    marks: [u16; MARKED],
}

impl StageMarks {
    /// Parses the member of a resume state; `None` if it has another form.
    pub(crate) fn parse(digits: &str) -> Option<Self> {
        let (groups, rest) = digits.as_bytes().as_chunks::<4>();
        let is_hex = |digit: &u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        if !rest.is_empty() || !digits.bytes().all(|digit| is_hex(&digit)) {
            return None;
        }
        let mut numbers = groups.iter().map_while(|digits| u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        let begun = numbers.next().filter(|begun| *begun > 0)?;
        let mut found = StageMarks { begun, marks: [0; MARKED] };
        if groups.len() != 1 + found.stages().len() {
            return None;
        }
        found.marks.iter_mut().zip(numbers).for_each(|(mark, number)| *mark = number);
        Some(found)
    }

    /// Returns the numbers of the marked stages.
    fn stages(&self) -> Range<usize> {
        let begun = usize::from(self.begun);
        begun.saturating_sub(MARKED)..begun
    }

    fn mark(&self, stage: usize) -> u16 {
        self.marks[stage - self.stages().start]
    }

    /// Returns the number of the first stage that differs from those of `state`, as far as both have marks; `None` if all are equal.
    pub(crate) fn first_difference(&self, state: &Self) -> Option<usize> {
        let (own, others) = (self.stages(), state.stages());
        let mut common = own.start.max(others.start)..own.end.min(others.end);
        let differs = common.find(|stage| self.mark(*stage) != state.mark(*stage));
        differs.or((own.end != others.end).then_some(own.end.min(others.end)))
    }
}

/// Writes the number of stages and each mark as four lower-case hex digits.
impl fmt::Display for StageMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}", self.begun)?;
        self.stages().try_for_each(|stage| write!(f, "{:04x}", self.mark(stage)))
    }
}

impl Scheduled {
    /// Returns the number of stages that a run has begun which has delivered everything before position `p` of an epoch.
    pub(crate) fn begun(&self, epoch: u64, p: u64) -> usize {
        let g = self.run_position(epoch, p.min(self.draws()));
        self.0.stages.partition_point(|stage| u128::from(stage.start) < g).max(1)
    }

    /// Returns the number of members up to the last one that has a weight in the first `begun` stages.
    fn begun_members(&self, begun: usize) -> usize {
        self.0.stages[..begun].iter().map(|stage| stage.used_members()).max().unwrap_or(0)
    }

    /// Returns one past the largest id of the members in the first `begun` stages.
    pub(crate) fn ids_end(&self, begun: usize) -> u64 {
        self.0.members[..self.begun_members(begun)].iter().map(|member| member.end()).max().unwrap_or(0)
    }

    /// Returns the checksum of the source as if it had the first `begun` stages only, and their members.
    pub(crate) fn begun_crc(&self, begun: usize) -> u32 {
        crc32c(self.json(begun, self.begun_members(begun)).as_bytes())
    }

    /// Returns the marks of the first `begun` stages.
    pub(crate) fn marks(&self, begun: usize) -> StageMarks {
        let mut found = StageMarks { begun: begun as u16, marks: [0; MARKED] };
        let last = &self.0.stages[found.stages()];
        for (mark, stage) in found.marks.iter_mut().zip(last) {
            *mark = crc32c(stage.canonical_json().as_bytes()) as u16;
        }
        found
    }
}
