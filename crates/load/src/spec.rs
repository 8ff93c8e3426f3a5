//! A configuration, settled: what the workers of a loader need to know, fixed for its life.

use crate::bad::OnBad;
use crate::columns::{self, Column};
use crate::config::{Config, Content, Images, PageCache};
use crate::error::{Error, Result};
use crate::input::Input;
use shardtool_decode::Normalizer;
use shardtool_order::{Order, Plan, Replicas, ResumeState, Source};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Spec {
    pub(crate) input: Input,
    pub(crate) plan: Arc<Plan>,
    pub(crate) fingerprint: u32,
    /// The replicas served, one a lane.
    pub(crate) ranks: Vec<u32>,
    pub(crate) batch: usize,
    pub(crate) content: Content,
    /// Makes the batch's numbers of u8 pixels, where other ones are asked for.
    pub(crate) normalizer: Option<Normalizer>,
    pub(crate) columns: Vec<Column>,
    /// Bytes of ragged values, byte strings and records read into memory that a row is expected to take.
    pub(crate) expected: u64,
    pub(crate) on_bad: OnBad,
    pub(crate) max_bad: u64,
    pub(crate) epochs: Option<u64>,
    pub(crate) starve_after: Duration,
    /// The system reads what it is asked for and nothing around it.
    pub(crate) exact: bool,
    /// Pages of records are given up when their samples are made.
    pub(crate) release: bool,
    /// Samples that the system reads ahead of the workers.
    pub(crate) ahead: usize,
}

/// Smaller records are not asked for one by one: the system reads their neighbours with them.
const MIN_READ_AHEAD_RECORD: u64 = 4096;

/// How many samples to read ahead: `bytes` of records of the mean size.
fn read_ahead_samples(bytes: u64, mean_record: u64) -> usize {
    if mean_record < MIN_READ_AHEAD_RECORD { 0 } else { (bytes / mean_record) as usize }
}

impl Spec {
    pub(crate) fn new(config: &Config, ranks: &[u32]) -> Result<Self> {
        let batch = NonZeroU32::new(config.batch).ok_or(Error::Zero { option: "batch" })?;
        let world = NonZeroU32::new(config.replica.world()).ok_or(Error::Zero { option: "world" })?;
        for (option, value) in [("workers", config.workers), ("depth", config.depth)] {
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
        let input = Input::new(config.splits.clone())?;
        let source = config.source.clone().unwrap_or(Source::All(input.len()));
        if let Source::All(source_len) = source
            && source_len != input.len()
        {
            return Err(Error::SourceLength { source_len, records: input.len() });
        }
        let remainder = Some(config.remainder());
        let replicas = Replicas { world, batch, policy: config.policy, remainder };
        let plan = Arc::new(Plan::new(source, config.order, config.seed, replicas, &input.shard_records())?);
        let columns = Column::settle(config.columns.as_deref(), &input)?;
        if let Content::Images(_) = &config.content {
            columns::check_images(&input)?;
        }
        columns::check_counts(&columns, &input)?;
        if let Content::Images(Images { mask: Some(feature), .. }) = &config.content {
            columns::check_mask(feature, &input)?;
        }
        let mean = input.bytes() / input.len().max(1);
        let ahead = read_ahead_samples(config.read_ahead, mean);
        let release = config.page_cache == PageCache::Release;
        Ok(Spec {
            fingerprint: input.fingerprint(),
            ranks: ranks.to_vec(),
            batch: batch.get() as usize,
            content: config.content.clone(),
            normalizer: match &config.content {
                Content::Images(images) => images.output.map(Normalizer::new),
                Content::Records | Content::Columns => None,
            },
            expected: columns::expected(&columns, &input, matches!(config.content, Content::Records)),
            columns,
            on_bad: config.on_bad(),
            max_bad: config.max_bad.unwrap_or((input.len() / 100).max(16)),
            epochs: config.epochs,
            starve_after: config.starve_after,
            release,
            exact: ahead > 0 && config.order == Order::Shuffled || release,
            ahead,
            plan,
            input,
        })
    }

    /// Height and width of every image.
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

    /// Bytes of one row's label map.
    pub(crate) fn mask_bytes(&self) -> usize {
        match &self.content {
            Content::Images(Images { mask: Some(_), .. }) => {
                self.image_size().map_or(0, |(height, width)| height * width)
            }
            _ => 0,
        }
    }

    /// Bytes of a batch, its ragged values and records read into memory as expected.
    pub(crate) fn batch_bytes(&self) -> u64 {
        // Beside pixels and columns a row has its plan, its id, its flag and its lock: under 200 bytes.
        let pixels = (self.image_bytes() + self.mask_bytes()) as u64;
        let row = pixels + self.columns.iter().map(Column::row_bytes).sum::<u64>() + self.expected + 200;
        row * self.batch as u64
    }

    /// Reads ahead no more than that many bytes.
    pub(crate) fn bound_ahead(&mut self, bytes: u64) {
        let mean = self.input.bytes() / self.input.len().max(1);
        self.ahead = self.ahead.min((bytes / mean.max(1)) as usize);
    }

    pub(crate) fn keeps_records(&self) -> bool {
        matches!(self.content, Content::Records)
    }

    /// Rows that a worker claims at a time: reading a record is short, decoding an image is not.
    pub(crate) fn claim(&self) -> usize {
        match self.content {
            Content::Images(_) => 1,
            Content::Records | Content::Columns => 16,
        }
    }

    pub(crate) fn state(&self, (epoch, p): (u64, u64)) -> ResumeState {
        ResumeState { identity: self.plan.identity(self.fingerprint), epoch, p }
    }
}
