//! Members in shares that change within a run: stages with weights, each of which begins at a position of the run.

mod begun;
mod cursor;
mod member;
mod stage;
mod turns;

use std::sync::Arc;

use crate::Error;
use crate::order::{EpochOrder, Order};
use crate::permutation::MAX;
use crate::prf::{Domain, key};
use stage::TimedStage;

pub use begun::StageMarks;
pub(crate) use cursor::ScheduledCursor;
pub use member::Member;
pub use stage::StageWeights;

/// The largest number of members.
const MAX_MEMBERS: usize = 1 << 16;
/// The largest number of stages.
const MAX_STAGES: usize = (1 << 16) - 1;

/// A source whose members have shares that change within a run. The position in the run decides the stage, the stage and the
/// position decide the member, and each member goes through its samples in passes, from stage to stage without a break. Holds up to
/// 10 bytes for each unit of a stage's weights, at most 10 MiB a stage, and 8 bytes for each listed id.
#[derive(Clone, Debug)]
pub struct Scheduled(Arc<Schedule>);

#[derive(Debug)]
struct Schedule {
    members: Box<[Member]>,
    /// Canonical JSON of each member.
    member_json: Box<[String]>,
    /// In ascending order of their start; the first begins at 0.
    stages: Box<[TimedStage]>,
    /// N, the number of source positions per epoch.
    draws: u64,
}

/// Whose turn a position is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Number of the member.
    pub(crate) member: usize,
    /// Pass through the member.
    pub(crate) pass: u64,
    /// Position in the pass.
    pub(crate) position: u64,
}

impl Scheduled {
    /// Schedules `members` of splits with `split_len` samples; `draws` source positions per epoch.
    ///
    /// # Errors
    /// If an id is not below `split_len`, a stage has a start that does not ascend from 0 or weights that do not fit, or a member
    /// with a weight has no samples.
    pub fn new(members: Vec<Member>, stages: &[StageWeights], draws: u64, split_len: u64) -> Result<Self, Error> {
        if members.is_empty() || members.len() > MAX_MEMBERS {
            return Err(Error::ScheduleMembers { count: members.len() });
        }
        if stages.len() > MAX_STAGES {
            return Err(Error::ScheduleStages { count: stages.len() });
        }
        members.iter().try_for_each(|member| member.check(split_len))?;
        let mut timed: Vec<TimedStage> = Vec::with_capacity(stages.len());
        for (number, stage) in stages.iter().enumerate() {
            timed.push(TimedStage::new(number, stage, timed.last(), &members)?);
        }
        if timed.is_empty() {
            return Err(Error::StageStart { stage: 0, start: None });
        }
        if draws > MAX {
            return Err(Error::TooManySamples { len: draws });
        }
        let member_json = members.iter().map(Member::canonical_json).collect();
        Ok(Scheduled(Arc::new(Schedule { members: members.into(), member_json, stages: timed.into(), draws })))
    }

    /// Returns the members.
    pub fn members(&self) -> &[Member] {
        &self.0.members
    }

    /// Returns the position of the run at which each stage begins.
    pub fn starts(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.0.stages.iter().map(|stage| stage.start)
    }

    /// Returns the weights of a stage, one for each member, without a common divisor.
    ///
    /// # Panics
    /// If the number is that of the stages or more.
    pub fn weights(&self, stage: usize) -> &[u64] {
        &self.0.stages[stage].weights
    }

    /// Returns the member of a turn of a stage; the turns of a period follow each other from one of
    /// [`period_firsts`](Scheduled::period_firsts) on.
    ///
    /// # Panics
    /// If `stage` is the number of stages or more, or `turn` the sum of its weights or more.
    pub fn turn_member(&self, stage: usize, turn: u32) -> usize {
        self.0.stages[stage].turns.get(0, turn).0
    }

    /// Returns the turns with which a period of a stage may begin.
    ///
    /// # Panics
    /// If `stage` is the number of stages or more.
    pub fn period_firsts(&self, stage: usize) -> &[u32] {
        self.0.stages[stage].turns.firsts()
    }

    /// Returns the number of the stage at position `q` of an epoch.
    pub fn stage_at(&self, epoch: u64, q: u64) -> usize {
        self.stage_of(self.run_position(epoch, q))
    }

    /// Counts the samples of each member before position `q` of an epoch, since the start of a run with this seed.
    pub fn counts(&self, seed: u64, epoch: u64, q: u64) -> Vec<u128> {
        let g = self.run_position(epoch, q);
        let (stage, members) = (self.stage_of(g), 0..self.0.members.len());
        members.map(|d| self.before(seed, stage, d) + self.0.stages[stage].count(seed, g, d)).collect()
    }

    /// Counts the samples of a member before a stage.
    fn before(&self, seed: u64, stage: usize, member: usize) -> u128 {
        let stages = self.0.stages[..=stage].windows(2);
        stages.map(|pair| pair[0].count(seed, pair[1].start.into(), member)).sum()
    }

    /// Returns N, the number of source positions per epoch.
    pub fn draws(&self) -> u64 {
        self.0.draws
    }

    /// Returns g, the position in the run.
    fn run_position(&self, epoch: u64, q: u64) -> u128 {
        u128::from(epoch) * u128::from(self.0.draws) + u128::from(q)
    }

    #[inline]
    fn stage_of(&self, g: u128) -> usize {
        self.0.stages.partition_point(|stage| u128::from(stage.start) <= g) - 1
    }

    /// Returns whose turn source position `v` of an epoch is; `before` returns the samples of a member before a stage.
    #[inline]
    fn turn(&self, seed: u64, epoch: u64, v: u64, before: impl FnOnce(usize, usize) -> u128) -> Turn {
        let g = self.run_position(epoch, v);
        let stage = self.stage_of(g);
        let (member, number) = self.0.stages[stage].turn(seed, g);
        let (number, len) = (before(stage, member) + number, self.0.members[member].len());
        let (pass, position) = match u64::try_from(number) {
            Ok(number) => (number / len, number % len),
            Err(_) => ((number / u128::from(len)) as u64, (number % u128::from(len)) as u64),
        };
        Turn { member, pass, position }
    }

    /// Returns the order of one pass through a member.
    pub(crate) fn pass_order(&self, order: Order, seed: u64, turn: Turn) -> EpochOrder {
        let seed = key(Domain::Member, seed, 0, turn.member as u64);
        EpochOrder::bounded(order, self.0.members[turn.member].len(), seed, turn.pass)
    }

    /// Returns the id at source position `v`. A [`ScheduledCursor`] is faster for many positions.
    pub(super) fn id(&self, order: Order, seed: u64, epoch: u64, v: u64) -> u64 {
        let turn = self.turn(seed, epoch, v, |stage, member| self.before(seed, stage, member));
        self.0.members[turn.member].id(self.pass_order(order, seed, turn).at(turn.position))
    }

    pub(super) fn canonical_json(&self) -> String {
        self.json(self.0.stages.len(), self.0.members.len())
    }

    /// Returns the canonical JSON as if there were only the first `stages` and the first `members`.
    fn json(&self, stages: usize, members: usize) -> String {
        let stages: Vec<String> = self.0.stages[..stages].iter().map(TimedStage::canonical_json).collect();
        let (members, stages) = (self.0.member_json[..members].join(","), stages.join(","));
        format!(r#"{{"source":"scheduled","draws":{},"members":[{members}],"stages":[{stages}]}}"#, self.0.draws)
    }

    /// Returns the memory that the source holds in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let members = self.0.members.iter().map(Member::bytes);
        members.chain(self.0.stages.iter().map(TimedStage::bytes)).sum()
    }
}
