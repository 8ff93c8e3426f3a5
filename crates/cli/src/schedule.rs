//! Arguments that mix datasets, classes or selections in shares that change within a run.

use crate::headings;
use crate::open::SplitArguments;
use anyhow::Context;
use shardtool_load::{Config, Members, Stages};
use shardtool_read::{Dataset, Split};
use std::path::Path;

/// Shares that change within a run.
#[derive(clap::Args)]
pub(crate) struct ScheduleArguments {
    /// Mix members in shares that change within the run
    ///
    /// STAGES is START: WEIGHT,WEIGHT,… for each stage, separated by `;`, such as "0: 0.9,0.1; 3: 0.5,0.5". START is a number of
    /// epochs (3 or 2.5), a share of the run (20%, with --run-epochs) or a number of samples ("90000 samples"). After the weights
    /// may follow `where CONDITION`, which the stage's samples meet, and more conditions after `and`; values with `;` or ` and ` are for
    /// Python.
    #[arg(long, value_name = "STAGES", help_heading = headings::BATCHES, hide_short_help = true)]
    schedule: Option<Stages>,
    /// A member of the schedule
    ///
    /// NAME is a split or a view of DATASET, or OTHER#NAME one of another dataset. May be repeated. [default: the split]
    #[arg(long = "member", value_name = "NAME", requires = "schedule", conflicts_with = "split", help_heading = headings::BATCHES, hide_short_help = true)]
    members: Vec<String>,
    /// The classes of the labels are the members
    #[arg(long, requires = "schedule", help_heading = headings::BATCHES, hide_short_help = true)]
    by_class: bool,
    /// Samples per epoch of the schedule [default: as many as its splits have]
    #[arg(long, requires = "schedule", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = headings::BATCHES, hide_short_help = true)]
    draws: Option<u64>,
    /// Epochs of the whole run, for stages that begin at a percentage
    #[arg(long, requires = "schedule", value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = headings::BATCHES, hide_short_help = true)]
    run_epochs: Option<u64>,
}

impl ScheduleArguments {
    /// Opens the dataset, and returns the splits to load: the members, or the one that is given.
    pub(crate) fn open(&self, split: &SplitArguments) -> anyhow::Result<(Dataset, Vec<Split>)> {
        if self.members.is_empty() {
            let (dataset, split) = split.open()?;
            return Ok((dataset, vec![split]));
        }
        let dataset = split.dataset.open()?;
        let member = |given: &String| -> anyhow::Result<Split> {
            let context = || format!("--member {given}: expected a split or a view of the dataset, or OTHER#NAME");
            match given.rsplit_once('#') {
                Some((other, name)) => {
                    let other = split.dataset.cache.open(Path::new(other), &split.dataset.dataset.sources);
                    let other = other.with_context(context)?;
                    other.check_source_folders()?;
                    Ok(other.split(name).with_context(context)?.clone())
                }
                None => Ok(dataset.split(given).with_context(context)?.clone()),
            }
        };
        let splits = self.members.iter().map(member).collect::<anyhow::Result<_>>()?;
        Ok((dataset, splits))
    }

    /// Sets the splits and the stages of a loader.
    pub(crate) fn apply(&self, splits: Vec<Split>, config: &mut Config) {
        config.splits = splits;
        config.stages = self.schedule.clone().map(|mut stages| {
            stages.members = if self.by_class { Members::Classes } else { Members::Splits };
            (stages.draws, stages.epochs) = (self.draws, self.run_epochs);
            stages
        });
    }
}
