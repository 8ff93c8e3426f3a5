//! What a resume state says about the stages that a run has begun; later ones may be changed between runs.

use std::fmt;

use super::Scheduled;
use shardtool_format::checksum::crc32c;

/// Stages of which a state has a mark: the last ones that the run has begun.
const MARKED: usize = 20;

/// Marks of the stages that a run has begun, by which a refusal names the first that differs: of each of the last 20 the lower 16
/// bits of a CRC32C.
#[derive(Clone, Copy, Debug)]
pub struct StageMarks {
    marks: [u16; MARKED],
    len: usize,
    /// Number of the first marked stage; 0 if it was parsed, since the text of a state does not have it.
    first: usize,
}

impl PartialEq for StageMarks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for StageMarks {}

impl StageMarks {
    /// Parses the member of a resume state; `None` if it has another form.
    pub(crate) fn parse(digits: &str) -> Option<Self> {
        let (stages, rest) = digits.as_bytes().as_chunks::<4>();
        if stages.is_empty() || stages.len() > MARKED || !rest.is_empty() {
            return None;
        }
        let mut marks = [0; MARKED];
        for (mark, digits) in marks.iter_mut().zip(stages) {
            if !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
                return None;
            }
            *mark = u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(StageMarks { marks, len: stages.len(), first: 0 })
    }

    fn as_slice(&self) -> &[u16] {
        &self.marks[..self.len]
    }

    /// Returns the number of the first stage of this run whose mark differs from that of a state; `None` if all are equal.
    pub(crate) fn first_difference(&self, state: &Self) -> Option<usize> {
        let (own, others) = (self.as_slice(), state.as_slice());
        let differs = own.iter().zip(others).position(|(own, other)| own != other);
        let number = differs.or((own.len() != others.len()).then_some(own.len().min(others.len())));
        number.map(|number| self.first + number)
    }
}

/// Writes four lower-case hex digits for each stage.
impl fmt::Display for StageMarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|mark| write!(f, "{mark:04x}"))
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
        let first = begun.saturating_sub(MARKED);
        let last = &self.0.stages[first..begun];
        let mut marks = [0; MARKED];
        for (mark, stage) in marks.iter_mut().zip(last) {
            *mark = crc32c(stage.canonical_json().as_bytes()) as u16;
        }
        StageMarks { marks, len: last.len(), first }
    }
}
