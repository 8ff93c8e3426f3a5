//! The splits that a loader reads, as one sequence of ids.

use crate::error::{Error, Result};
use shardtool_order::mixture_fingerprint;
use shardtool_read::{Shard, Split};
use std::path::PathBuf;
use std::sync::Arc;

/// Several splits, their ids counted through.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    splits: Vec<Split>,
    /// The first id of each split, then the number of all.
    starts: Vec<u64>,
}

/// Where a sample lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) split: &'a Split,
    pub(crate) shard: usize,
    pub(crate) row: u64,
}

impl Input {
    pub(crate) fn new(splits: Vec<Split>) -> Result<Self> {
        if splits.is_empty() {
            return Err(Error::NoSplits);
        }
        let mut starts = vec![0];
        for split in &splits {
            starts.push(starts[starts.len() - 1] + split.len());
        }
        Ok(Input { splits, starts })
    }

    pub(crate) fn len(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    pub(crate) fn splits(&self) -> &[Split] {
        &self.splits
    }

    /// Records of each shard, through all splits.
    pub(crate) fn shard_records(&self) -> Vec<u64> {
        self.splits.iter().flat_map(|s| s.entry().shards.iter().map(|shard| shard.records)).collect()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.splits.iter().map(|s| s.entry().bytes()).sum()
    }

    /// The fingerprint that resume states carry: a split's own, or that of the mixture.
    pub(crate) fn fingerprint(&self) -> u32 {
        let prints: Vec<_> = self.splits.iter().map(|s| s.entry().fingerprint()).collect();
        match prints[..] {
            [one] => one,
            _ => mixture_fingerprint(&prints),
        }
    }

    /// Number of the split, and of its shard, that hold the id.
    pub(crate) fn shard_of(&self, id: u64) -> shardtool_read::Result<(usize, usize)> {
        let number = self.number(id);
        let (shard, _) = self.splits[number].locate(id - self.starts[number])?;
        Ok((number, shard))
    }

    pub(crate) fn locate(&self, id: u64) -> shardtool_read::Result<Place<'_>> {
        let number = self.number(id);
        let split = &self.splits[number];
        let (shard, row) = split.locate(id - self.starts[number])?;
        Ok(Place { split, shard, row })
    }

    pub(crate) fn will_need(&self, id: u64) {
        let number = self.number(id);
        self.splits[number].will_need(id - self.starts[number]);
    }

    /// Which split holds the id; the last one where none does.
    fn number(&self, id: u64) -> usize {
        self.starts.partition_point(|start| *start <= id).clamp(1, self.splits.len()) - 1
    }
}

impl Place<'_> {
    pub(crate) fn open(&self) -> shardtool_read::Result<Arc<Shard>> {
        self.split.shard(self.shard)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.split.shard_path(self.shard)
    }
}
