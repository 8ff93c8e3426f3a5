//! Shares of members that change within a run.

use super::decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Members whose shares change within the run, such as a curriculum: order-spec.md, section *Schedules*.
///
/// ```
/// use shardtool_load::{MemberStage, Stages};
/// // Nine samples of the first split for each of the second; from epoch 3 on equally many.
/// let stages = Stages::new([MemberStage::new("0", ["9", "1"])?, MemberStage::new("3", ["1", "1"])?]);
/// assert_eq!(stages, "0: 9,1; 3: 1,1".parse()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Stages {
    /// In the order in which they begin; the first begins at 0.
    pub stages: Vec<MemberStage>,
    /// What has a share. Default: each split.
    #[serde(default)]
    pub members: Members,
    /// Samples per epoch, at least 1. Default: as many as the splits have.
    #[serde(default)]
    pub draws: Option<u64>,
    /// Epochs of the whole run, of which stages that begin at a percentage are parts.
    #[serde(default)]
    pub epochs: Option<u64>,
}

/// What has a share of the samples.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Members {
    /// Each split, or view, that the loader reads.
    #[default]
    Splits,
    /// Each class of the labels, in the order of the class ids; samples without a class have no share.
    Classes,
    /// Lists of sample ids, which count through the splits.
    Lists(Vec<Vec<u64>>),
}

/// From where on which member has which weight.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MemberStage {
    /// Where the stage begins.
    #[schemars(with = "String")]
    pub start: Start,
    /// One weight for each member, in any unit; 0 leaves it out. Whole numbers are kept, and their sum without a common divisor is at
    /// most 1,048,576; of others that have a larger one, each is rounded to 1/1,048,576 of the sum, by the largest remainder.
    #[schemars(with = "Vec<String>")]
    pub weights: Vec<Decimal>,
    /// Conditions such as `difficulty<2`, which samples of this stage all meet.
    #[serde(default, rename = "where")]
    pub conditions: Vec<String>,
}

/// Where a stage begins: a number of epochs such as `3` or `2.5`, a share of the run such as `20%`, or a number of samples such as
/// `90000 samples`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// After this number of epochs.
    Epochs(Decimal),
    /// After this percentage of the run.
    Percent(Decimal),
    /// After this number of samples, of all replicas together.
    Samples(u64),
}

impl Stages {
    /// Schedules these stages over the splits of a loader.
    pub fn new(stages: impl IntoIterator<Item = MemberStage>) -> Self {
        let stages = stages.into_iter().collect();
        Stages { stages, members: Members::Splits, draws: None, epochs: None }
    }

    /// Sets what has a share.
    #[must_use]
    pub fn with_members(mut self, members: Members) -> Self {
        self.members = members;
        self
    }

    /// Sets the samples per epoch.
    #[must_use]
    pub fn with_draws(mut self, draws: u64) -> Self {
        self.draws = Some(draws);
        self
    }

    /// Sets the epochs of the whole run.
    #[must_use]
    pub fn with_epochs(mut self, epochs: u64) -> Self {
        self.epochs = Some(epochs);
        self
    }
}

impl MemberStage {
    /// Makes a stage from the texts of its start and its weights.
    ///
    /// # Errors
    /// A message for the user, if a text is not a start or not a number.
    pub fn new<W: AsRef<str>>(start: &str, weights: impl IntoIterator<Item = W>) -> Result<Self, String> {
        let weights = weights.into_iter().map(|weight| weight.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok(MemberStage { start: start.parse()?, weights, conditions: vec![] })
    }

    /// Adds a condition that samples of this stage meet.
    #[must_use]
    pub fn with_condition(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }
}

/// Parses `START: WEIGHT,…` for each stage, separated by `;`. After the weights may follow `where CONDITION`, and more conditions
/// after `and`: their values hold neither `;` nor ` and `.
impl FromStr for Stages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.replace(['\t', '\n', '\r'], " ");
        // A list may end with a separator.
        let text = text.trim().strip_suffix(';').unwrap_or(text.trim());
        let stages = text.split(';').map(|stage| {
            let (start, rest) =
                stage.split_once(':').ok_or_else(|| format!("`{}`: expected START: WEIGHT,WEIGHT,…", stage.trim()))?;
            let (weights, conditions) = rest.split_once(" where ").map_or((rest, None), |(w, c)| (w, Some(c)));
            let mut stage = MemberStage::new(start, weights.split(',').map(str::trim))?;
            stage.conditions = conditions.iter().flat_map(|c| c.split(" and ")).map(|c| c.trim().to_owned()).collect();
            Ok(stage)
        });
        Ok(Stages::new(stages.collect::<Result<Vec<_>, String>>()?))
    }
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let expected = || format!("stage `{text}`: expected where it begins: epochs (`3`), `20%` or `90000 samples`");
        if let Some(percent) = text.strip_suffix('%') {
            return percent.trim_end().parse().map(Start::Percent).map_err(|_| expected());
        }
        match text.strip_suffix("samples") {
            Some(samples) => samples.trim_end().parse().map(Start::Samples).map_err(|_| expected()),
            None => text.parse().map(Start::Epochs).map_err(|_| expected()),
        }
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Start::Epochs(epochs) => write!(f, "{epochs}"),
            Start::Percent(percent) => write!(f, "{percent}%"),
            Start::Samples(samples) => write!(f, "{samples} samples"),
        }
    }
}

impl Serialize for Start {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Start {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}
