//! Arguments that name a dataset and a split.

use anyhow::{Context, bail};
use shardtool_read::{Dataset, Split};
use std::path::PathBuf;

/// A dataset.
#[derive(clap::Args)]
pub(crate) struct DatasetArgument {
    /// Folder of a dataset, its manifest, or bare TFRecord files: a path, or a glob in quotes
    pub(crate) dataset: PathBuf,
}

impl DatasetArgument {
    pub(crate) fn open(&self) -> anyhow::Result<Dataset> {
        Ok(Dataset::open(&self.dataset)?)
    }
}

/// A dataset and one of its splits.
#[derive(clap::Args)]
pub(crate) struct SplitArguments {
    #[command(flatten)]
    pub(crate) dataset: DatasetArgument,
    /// Name of the split [default: the only one, else `train`]
    #[arg(long)]
    pub(crate) split: Option<String>,
}

impl SplitArguments {
    pub(crate) fn open(&self) -> anyhow::Result<(Dataset, Split)> {
        let dataset = self.dataset.open()?;
        let split = choose(&dataset, self.split.as_deref())?.clone();
        Ok((dataset, split))
    }
}

fn choose<'a>(dataset: &'a Dataset, name: Option<&str>) -> anyhow::Result<&'a Split> {
    match (name, dataset.splits()) {
        (Some(name), _) => Ok(dataset.split(name)?),
        (None, [only]) => Ok(only),
        (None, []) => bail!("{} has no splits yet (run `shardtool pack`)", dataset.path().display()),
        (None, _) => dataset.split("train").context("name a split with --split NAME"),
    }
}
