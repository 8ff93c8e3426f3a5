//! Arguments that name a dataset and a split.

use crate::headings;
use anyhow::{Context, bail};
use shardtool_format::printable;
use shardtool_pack::{grown_split, unfinished_splits};
use shardtool_read::{Cache, Dataset, Options, Split};
use std::path::{Path, PathBuf};

/// A dataset.
#[derive(clap::Args)]
pub(crate) struct DatasetArgument {
    /// Folder of a dataset, its manifest, or bare TFRecord files
    ///
    /// A path, a URL, or a glob in quotes.
    pub(crate) dataset: PathBuf,
    #[command(flatten)]
    pub(crate) sources: SourcesArgument,
}

impl DatasetArgument {
    pub(crate) fn open(&self) -> anyhow::Result<Dataset> {
        Ok(Dataset::open_with(&self.dataset, self.sources.options())?)
    }
}

/// Which files of an indexed dataset are read.
#[derive(clap::Args)]
pub(crate) struct SourcesArgument {
    /// Allow files of an indexed dataset that lie here
    ///
    /// A folder, or the beginning of a URL. Files in the dataset's own folder are allowed. May be repeated; the environment variable
    /// SHARDTOOL_SOURCES names more, separated by commas or, if it has a line break, by line breaks.
    #[arg(long = "source", value_name = "PREFIX", help_heading = headings::SOURCE, hide_short_help = true)]
    sources: Vec<String>,
}

impl SourcesArgument {
    /// Returns what the user names.
    pub(crate) fn prefixes(&self) -> &[String] {
        &self.sources
    }

    pub(crate) fn options(&self) -> Options {
        Options::default().with_sources(self.sources.iter().cloned())
    }
}

/// Where records from an object store are kept.
#[derive(clap::Args)]
pub(crate) struct CacheArguments {
    /// Cache of an object store, on a local disk
    ///
    /// What is read from the store is kept in this folder. Several processes may share it.
    #[arg(long, value_name = "DIR", help_heading = headings::SOURCE)]
    cache: Option<PathBuf>,
    /// Largest size of the cache
    ///
    /// [default: what it holds, and 90 % of the free space]
    #[arg(long, value_parser = shardtool_load::parse_size, requires = "cache", value_name = "SIZE", help_heading = headings::SOURCE, hide_short_help = true)]
    cache_size: Option<u64>,
}

impl CacheArguments {
    /// Opens a dataset, with the cache if it is in an object store.
    pub(crate) fn open(&self, dataset: &Path, sources: &SourcesArgument) -> anyhow::Result<Dataset> {
        let mut options = sources.options();
        if let Some(folder) = &self.cache {
            let cache = Cache::open(folder, self.cache_size);
            let cache = cache.with_context(|| format!("cannot use {} as a cache", folder.display()))?;
            options = options.with_cache(cache);
        }
        Ok(Dataset::open_with(dataset, options)?)
    }
}

/// A dataset that is read through a cache.
#[derive(clap::Args)]
pub(crate) struct CachedDataset {
    #[command(flatten)]
    pub(crate) dataset: DatasetArgument,
    #[command(flatten)]
    pub(crate) cache: CacheArguments,
}

impl CachedDataset {
    pub(crate) fn open(&self) -> anyhow::Result<Dataset> {
        self.cache.open(&self.dataset.dataset, &self.dataset.sources)
    }
}

/// A dataset and one of its splits.
#[derive(clap::Args)]
pub(crate) struct SplitArguments {
    #[command(flatten)]
    pub(crate) dataset: CachedDataset,
    /// Split [default: the only one, else `train`]
    #[arg(long, help_heading = headings::RECORDS)]
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
    if let Some(name) = name {
        return Ok(dataset.split(name)?);
    }
    match all(dataset)? {
        [only] => Ok(only),
        _ => dataset.split("train").context("name a split with --split NAME"),
    }
}

/// Returns whether a path is a URL, and so in a store.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.contains("://") && !path.starts_with("file://"))
}

/// Returns one split by its name, or all of a dataset that has some.
pub(crate) fn one_or_all(dataset: &Dataset, name: Option<&str>) -> anyhow::Result<Vec<Split>> {
    match name {
        Some(name) => Ok(vec![dataset.split(name)?.clone()]),
        None => Ok(all(dataset)?.to_vec()),
    }
}

/// Returns the splits, unless there are none, and prints which are not complete.
pub(crate) fn all(dataset: &Dataset) -> anyhow::Result<&[Split]> {
    if dataset.splits().is_empty() {
        bail!("{} has no splits yet (run `shardtool pack`)", dataset.path().display());
    }
    print_unfinished(dataset);
    Ok(dataset.splits())
}

/// Prints the splits that the manifest does not name yet: another process may be replacing one.
pub(crate) fn print_unfinished(dataset: &Dataset) {
    let known = |name: &String| dataset.splits().iter().any(|split| split.name() == name);
    for name in unfinished_splits(dataset.path()).iter().filter(|name| !known(name)) {
        let dataset = dataset.path().display();
        match grown_split(name) {
            Some(split) => eprintln!(
                "note: records are being appended to split {} of {dataset}, or an append was interrupted (`shardtool gc` removes what it left)",
                printable(split)
            ),
            None => eprintln!(
                "note: split {} of {dataset} is not complete and is left out: it is being packed, or its pack was interrupted",
                printable(name)
            ),
        }
    }
}
