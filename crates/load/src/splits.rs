//! The splits that a loader reads, as one sequence of sample ids.

use crate::error::{Error, Result};
use shardtool_format::manifest;
use shardtool_order::mixture_fingerprint;
use shardtool_read::{Cache, Shard, Split};
use std::path::PathBuf;
use std::sync::Arc;

/// Several splits. Ids count through them.
#[derive(Debug, Clone)]
pub(crate) struct Splits {
    splits: Vec<Split>,
    /// The first id of each split, then the number of all samples.
    starts: Vec<u64>,
}

/// Where a sample is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordLocation<'a> {
    split: &'a Split,
    /// Number of the split.
    pub(crate) number: usize,
    shard: usize,
    /// Record in the shard, from 0.
    pub(crate) row: u64,
}

impl Splits {
    pub(crate) fn new(splits: Vec<Split>) -> Result<Self> {
        if splits.is_empty() {
            return Err(Error::NoSplits);
        }
        let mut starts = vec![0];
        for split in &splits {
            starts.push(starts[starts.len() - 1] + split.len());
        }
        Ok(Splits { splits, starts })
    }

    /// Returns whether a split is in an object store.
    pub(crate) fn in_store(&self) -> bool {
        self.splits.iter().any(Split::is_in_store)
    }

    /// Returns the caches through which splits are read, each once.
    pub(crate) fn caches(&self) -> Vec<Cache> {
        let mut caches: Vec<Cache> = vec![];
        for cache in self.splits.iter().filter_map(Split::cache) {
            if !caches.iter().any(|other| other.is(cache)) {
                caches.push(cache.clone());
            }
        }
        caches
    }

    /// Returns the bytes that the indexes of open shards may take in memory: those of splits in stores.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.splits.iter().map(Split::index_memory).sum()
    }

    /// As [`Splits::index_bytes`], if all splits were in stores.
    pub(crate) fn index_bytes_in_store(&self) -> u64 {
        self.splits.iter().map(Split::index_memory_in_store).sum()
    }

    /// Samples of all splits.
    pub(crate) fn len(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    pub(crate) fn as_slice(&self) -> &[Split] {
        &self.splits
    }

    /// Records of each shard of all splits.
    pub(crate) fn shard_records(&self) -> Vec<u64> {
        self.splits.iter().flat_map(|s| s.entry().shards.iter().map(manifest::Shard::live_records)).collect()
    }

    /// Mean size of a record, in bytes.
    pub(crate) fn mean_record(&self) -> u64 {
        let bytes: u64 = self.splits.iter().map(|s| s.entry().bytes()).sum();
        bytes / self.len().max(1)
    }

    /// Returns the ids of each split.
    pub(crate) fn ids(&self) -> impl ExactSizeIterator<Item = std::ops::Range<u64>> + '_ {
        self.starts.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// The fingerprint in resume states of the first `count` splits: of the only one, or of the mixture of several.
    pub(crate) fn fingerprint(&self, count: usize) -> u32 {
        let fingerprints: Vec<_> = self.splits[..count].iter().map(|s| s.entry().fingerprint()).collect();
        match fingerprints[..] {
            [one] => one,
            _ => mixture_fingerprint(&fingerprints),
        }
    }

    /// Returns which split holds the id, and which of its shards.
    pub(crate) fn shard_of(&self, id: u64) -> shardtool_read::Result<(usize, usize)> {
        let number = self.split_of(id);
        let (shard, _) = self.splits[number].shard_of(id - self.starts[number])?;
        Ok((number, shard))
    }

    /// Returns where the sample is stored.
    pub(crate) fn locate(&self, id: u64) -> shardtool_read::Result<RecordLocation<'_>> {
        let number = self.split_of(id);
        let split = &self.splits[number];
        let (shard, row) = split.locate(id - self.starts[number])?;
        Ok(RecordLocation { split, number, shard, row })
    }

    /// As [`Splits::locate`], without reading which rows are deleted: the row is that among the others, for messages.
    pub(crate) fn near(&self, id: u64) -> shardtool_read::Result<RecordLocation<'_>> {
        let number = self.split_of(id);
        let split = &self.splits[number];
        let (shard, row) = split.shard_of(id - self.starts[number])?;
        Ok(RecordLocation { split, number, shard, row })
    }

    /// Returns whether the system has a record in memory; see [`Split::is_in_memory`].
    pub(crate) fn is_in_memory(&self, id: u64) -> bool {
        let number = self.split_of(id);
        self.splits[number].is_in_memory(id - self.starts[number])
    }

    /// Hints that the record is read soon; see [`Split::prefetch`].
    pub(crate) fn prefetch(&self, id: u64) {
        let number = self.split_of(id);
        self.splits[number].prefetch(id - self.starts[number]);
    }

    /// Asks the system to read the record soon.
    pub(crate) fn will_need(&self, id: u64) {
        let number = self.split_of(id);
        self.splits[number].will_need(id - self.starts[number]);
    }

    /// Returns which split holds the id; the last one if none does.
    fn split_of(&self, id: u64) -> usize {
        self.starts.partition_point(|start| *start <= id).clamp(1, self.splits.len()) - 1
    }
}

impl RecordLocation<'_> {
    pub(crate) fn open(&self) -> shardtool_read::Result<Arc<Shard>> {
        self.split.shard(self.shard)
    }

    /// The shard's file.
    pub(crate) fn path(&self) -> PathBuf {
        self.split.shard_path(self.shard)
    }
}
