//! A configuration, validated and with every default resolved, as the workers use it. Does not change after creation.

use crate::bad_samples::OnBad;
use crate::columns::Column;
use crate::config::{Config, Content, Images, PageCache};
use crate::error::{Error, Result};
use crate::features;
use crate::sampled_records::SampledRecords;
use crate::splits::Splits;
use crate::typical_scratch::typical_scratch;
use shardtool_decode::{LabelDtype, Normalizer};
use shardtool_order::{Order, Plan, Replicas, ResumeState, Source};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct ResolvedConfig {
    pub(crate) splits: Splits,
    pub(crate) plan: Arc<Plan>,
    pub(crate) fingerprint: u32,
    /// The ranks of the replicas that the loader serves.
    pub(crate) ranks: Vec<u32>,
    pub(crate) batch: usize,
    pub(crate) content: Content,
    /// Computes the batch's numbers from u8 pixels; `None` for u8 batches.
    pub(crate) normalizer: Option<Normalizer>,
    pub(crate) columns: Vec<Column>,
    /// Bytes of ragged values, byte strings and records read into memory that a row is expected to take.
    pub(crate) expected: u64,
    /// Bytes of decode scratch that a large image needs.
    pub(crate) scratch: u64,
    pub(crate) on_bad: OnBad,
    pub(crate) max_bad: u64,
    pub(crate) epochs: Option<u64>,
    pub(crate) starve_after: Duration,
    /// Whether the system's read-around is turned off ([`shardtool_read::Shard::read_exactly`]).
    pub(crate) exact: bool,
    /// Whether pages of records are released after their samples were made.
    pub(crate) release: bool,
    /// Samples that the system reads ahead of the workers.
    pub(crate) read_ahead: usize,
    pub(crate) order: Order,
    /// Bytes of records that are requested from object stores ahead of the workers.
    pub(crate) fetch: u64,
    /// Bytes between two records that are requested for nothing, at most.
    pub(crate) fetch_gap: u64,
    /// Bytes of a request of several records, at most.
    pub(crate) fetch_size: u64,
}

/// Smaller records are not requested one by one, since the system reads whole pages.
const MIN_READ_AHEAD_RECORD: u64 = 4096;

impl ResolvedConfig {
    /// Validates a configuration for the given ranks against its dataset.
    pub(crate) fn new(config: &Config, ranks: &[u32]) -> Result<Self> {
        let batch = NonZeroU32::new(config.batch).ok_or(Error::Zero { option: "batch" })?;
        let world = NonZeroU32::new(config.replica.world()).ok_or(Error::Zero { option: "world" })?;
        for (option, value) in [("workers", config.workers), ("prefetch", config.prefetch)] {
            if value == Some(0) {
                return Err(Error::Zero { option });
            }
        }
        if config.local_world == 0 {
            return Err(Error::Zero { option: "local_world" });
        }
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != ranks.len() || ranks.is_empty() {
            return Err(Error::Ranks { ranks: ranks.to_vec() });
        }
        if let Some(&rank) = ranks.iter().find(|r| **r >= world.get()) {
            return Err(shardtool_order::Error::Rank { rank, world: world.get() }.into());
        }
        let splits = Splits::new(config.splits.clone())?;
        let source = config.source.clone().unwrap_or(Source::All(splits.len()));
        if let Source::All(source_len) = source
            && source_len != splits.len()
        {
            return Err(Error::SourceLength { source_len, records: splits.len() });
        }
        let remainder = Some(config.remainder());
        let replicas = Replicas { world, batch, policy: config.policy, remainder };
        let plan = Arc::new(Plan::new(source, config.order, config.seed, replicas, &splits.shard_records())?);
        let columns = Column::resolve(config.columns.as_deref(), &splits)?;
        if let Content::Images(_) = &config.content {
            features::check_images(&splits)?;
        }
        let sampled = SampledRecords::new(&splits, &config.content);
        features::check_counts(&columns, &splits, &sampled)?;
        if let Content::Images(Images { mask: Some(feature), .. }) = &config.content {
            features::check_mask(feature, &splits)?;
        }
        let read_ahead = match splits.mean_record() {
            // The records of stores are requested, see `fetch`.
            _ if splits.in_store() => 0,
            0..MIN_READ_AHEAD_RECORD => 0,
            mean => (config.read_ahead / mean) as usize,
        };
        let release = config.page_cache == PageCache::Release;
        Ok(ResolvedConfig {
            fingerprint: splits.fingerprint(),
            ranks: ranks.to_vec(),
            batch: batch.get() as usize,
            content: config.content.clone(),
            normalizer: match &config.content {
                Content::Images(images) => images.output.map(Normalizer::new),
                Content::Records | Content::Columns => None,
            },
            expected: features::expected_bytes(&columns, &splits, &sampled, matches!(config.content, Content::Records)),
            scratch: typical_scratch(&splits, &config.content, &sampled),
            columns,
            on_bad: config.on_bad(),
            max_bad: config.max_bad.unwrap_or((splits.len() / 100).max(16)),
            epochs: config.epochs,
            starve_after: config.starve_after,
            release,
            exact: read_ahead > 0 && config.order == Order::Shuffled || release,
            read_ahead,
            order: config.order,
            fetch: if splits.in_store() { config.read_ahead } else { 0 },
            fetch_gap: config.fetch_gap,
            fetch_size: config.fetch_size,
            plan,
            splits,
        })
    }

    /// Height and width of every image; `None` without images.
    pub(crate) fn image_size(&self) -> Option<(usize, usize)> {
        match &self.content {
            Content::Images(images) => {
                let (width, height) = images.pipeline.output_size();
                Some((height as usize, width as usize))
            }
            Content::Records | Content::Columns => None,
        }
    }

    /// Bytes of one row's image.
    pub(crate) fn image_bytes(&self) -> usize {
        let value = self.normalizer.as_ref().map_or(1, |normalizer| normalizer.output().dtype().bytes());
        self.image_size().map_or(0, |(height, width)| height * width * 3 * value)
    }

    /// Type of the labels; `None` without label maps.
    pub(crate) fn mask_dtype(&self) -> Option<LabelDtype> {
        match &self.content {
            Content::Images(Images { mask: Some(_), mask_dtype, .. }) => Some(*mask_dtype),
            _ => None,
        }
    }

    /// Bytes of one row's label map.
    pub(crate) fn mask_bytes(&self) -> usize {
        let label = self.mask_dtype().map_or(0, LabelDtype::bytes);
        self.image_size().map_or(0, |(height, width)| height * width * label)
    }

    /// Bytes of a batch, with its ragged values and records in memory as large as expected.
    pub(crate) fn batch_bytes(&self) -> u64 {
        // Plan, id, flag and lock of a row take less than 200 bytes.
        let pixels = (self.image_bytes() + self.mask_bytes()) as u64;
        let row = pixels + self.columns.iter().map(Column::row_bytes).sum::<u64>() + self.expected + 200;
        row * self.batch as u64
    }

    /// Limits read-ahead to `bytes`.
    pub(crate) fn limit_read_ahead(&mut self, bytes: u64) {
        self.read_ahead = self.read_ahead.min((bytes / self.splits.mean_record().max(1)) as usize);
    }

    /// Returns whether batches hold records.
    pub(crate) fn keeps_records(&self) -> bool {
        matches!(self.content, Content::Records)
    }

    /// Returns how many rows a worker claims at a time: several if each takes little time.
    pub(crate) fn rows_per_claim(&self) -> usize {
        match self.content {
            Content::Images(_) => 1,
            Content::Records | Content::Columns => 16,
        }
    }

    /// The resume state at a position.
    pub(crate) fn state(&self, (epoch, p): (u64, u64)) -> ResumeState {
        ResumeState { identity: self.plan.identity(self.fingerprint), epoch, p }
    }
}
