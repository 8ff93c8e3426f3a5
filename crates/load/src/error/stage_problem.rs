//! Why the stages of a configuration cannot be used.

use crate::options::{Decimal, Start};
use shardtool_read::ConditionError;

/// Why the stages of a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageProblem {
    /// A source and stages, of which only one can say which samples an epoch shows.
    #[error("both `source` and `stages` say which samples an epoch shows: give one of them")]
    SourceToo,
    /// No members.
    #[error("the schedule has no members: give at least one")]
    NoMembers,
    /// An id past the samples of the splits.
    #[error("{member} has the id {id}: the splits have {samples} samples, from 0")]
    ListedId {
        /// The member.
        member: String,
        /// As given.
        id: u64,
        /// Samples of all splits.
        samples: u64,
    },
    /// A condition that cannot be parsed, or does not fit the feature.
    #[error("stage {stage}: the condition `{condition}` of `where`: {problem}")]
    Condition {
        /// Number of the stage, from 0.
        stage: usize,
        /// As given.
        condition: String,
        /// What is wrong with it.
        problem: ConditionError,
    },
    /// A stage has not one weight for each member.
    #[error("stage {stage} has {weights} weights for {} members ({}): give one for each, 0 to leave it out", members.len(), first_names(members))]
    Weights {
        /// Number of the stage, from 0.
        stage: usize,
        /// As given.
        weights: usize,
        /// The members.
        members: Vec<String>,
    },
    /// All weights are 0.
    #[error("the weights of stage {stage} are all 0: give at least one member a weight")]
    NoWeight {
        /// Number of the stage, from 0.
        stage: usize,
    },
    /// Whole weights whose sum is too large.
    #[error(
        "the weights of stage {stage} sum to {sum} without their common divisor: expected at most 1048576; give smaller numbers, or \
         fractions such as 0.25, which are rounded"
    )]
    WeightSum {
        /// Number of the stage, from 0.
        stage: usize,
        /// Sum without the common divisor.
        sum: u128,
    },
    /// A weight that would be rounded to 0.
    #[error(
        "stage {stage}: the weight {weight} of {member} is less than one in 1048576 of the sum: give a larger one, or 0 to leave it out"
    )]
    TooSmall {
        /// Number of the stage, from 0.
        stage: usize,
        /// As given.
        weight: Decimal,
        /// The member.
        member: String,
    },
    /// A member with a weight, and without samples.
    #[error("stage {stage} has a weight for {member}, which has no samples: set it to 0")]
    Empty {
        /// Number of the stage, from 0.
        stage: usize,
        /// The member.
        member: String,
    },
    /// A stage that begins at a part of the run, whose length is not known.
    #[error("stage {stage} begins at {start} of the run: give the epochs of the run (`epochs`, `--run-epochs`)")]
    NoEpochs {
        /// Number of the stage, from 0.
        stage: usize,
        /// As given.
        start: Start,
    },
    /// A stage that begins too late, or not after the one before it.
    #[error("stage {stage} begins at {start}, which {problem}")]
    Start {
        /// Number of the stage, from 0.
        stage: usize,
        /// As given.
        start: Start,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Names of members, at most three.
fn first_names(members: &[String]) -> String {
    let more = if members.len() > 3 { ", …" } else { "" };
    members[..members.len().min(3)].join(", ") + more
}
