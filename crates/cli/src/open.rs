//! The arguments by which every command names its dataset and split.

use anyhow::{Context, bail};
use shardtool_read::{Dataset, Split};
use std::path::PathBuf;

/// A dataset.
#[derive(clap::Args)]
pub(crate) struct DatasetArgument {
    /// A dataset's folder, its manifest, or bare TFRecord files: a path, or a glob in quotes
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
    /// Which split [default: the only one, else `train`]
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
        (None, []) => bail!("{} has no splits yet: `shardtool pack` adds one", dataset.path().display()),
        (None, _) => dataset.split("train").context("say which split with --split NAME"),
    }
}
