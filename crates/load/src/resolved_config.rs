//! A configuration, validated and with every default resolved, as the workers use it. Does not change after creation.

use crate::arrays::ResolvedArrays;
use crate::bad_samples::OnBad;
use crate::buckets::{self, Views};
use crate::clip::Clip;
use crate::columns::Column;
use crate::config::{ColumnSpec, Config, Content, Images, Layout, PageCache, View};
use crate::error::{Error, Result};
use crate::features;
use crate::further_images;
use crate::mixing::{BatchMix, Mixing};
use crate::objects::ObjectColumns;
use crate::packing;
use crate::plan::{PackedRows, Plan};
use crate::sampled_records::SampledRecords;
use crate::splits::Splits;
use crate::typical_scratch::typical_scratch;
use shardtool_decode::{LabelDtype, Normalizer, PixelFormat};
use shardtool_order::{BucketReplicas, Order, Replicas, ResumeState, Source};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// One array of images of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Picture<'c> {
    /// The feature of a further image or of clips; `None` for the record's image.
    pub(crate) feature: Option<&'c str>,
    pub(crate) view: &'c View,
    /// The format of its pixels; before they are normalised, if they are.
    pub(crate) format: PixelFormat,
    /// Computes the batch's numbers from its pixels; `None` if it has the pixels.
    pub(crate) normalizer: Option<&'c Normalizer>,
}

pub(crate) struct ResolvedConfig {
    pub(crate) splits: Splits,
    pub(crate) plan: Arc<Plan>,
    pub(crate) fingerprint: u32,
    /// The ranks of the replicas that the loader serves.
    pub(crate) ranks: Vec<u32>,
    /// Rows of a batch; with buckets, of the largest.
    pub(crate) batch: usize,
    /// What is made of each image, by bucket.
    pub(crate) views: Views,
    pub(crate) content: Content,
    /// Computes the batch's numbers from u8 pixels; `None` for u8 batches.
    pub(crate) normalizer: Option<Normalizer>,
    pub(crate) columns: Vec<Column>,
    /// Which of the columns belong to objects in the image.
    pub(crate) objects: Option<ObjectColumns>,
    pub(crate) arrays: ResolvedArrays,
    /// Bytes of ragged values, byte strings and records read into memory that a row is expected to take.
    pub(crate) expected: u64,
    /// Bytes of decode scratch that a large image and the chunks of arrays need.
    pub(crate) scratch: u64,
    pub(crate) on_bad: OnBad,
    pub(crate) max_bad: u64,
    pub(crate) epochs: Option<u64>,
    pub(crate) starve_after: Duration,
    /// Whether pages of records are released after their samples were made.
    pub(crate) release: bool,
    /// Rows whose records the system reads ahead of the workers.
    pub(crate) read_ahead: usize,
    pub(crate) order: Order,
    /// Rows that a worker claims at a time: several if each takes little time.
    pub(crate) rows_per_claim: usize,
    /// Bytes of records that are requested from object stores ahead of the workers.
    pub(crate) fetch: u64,
    /// Bytes between two records that are requested for nothing, at most.
    pub(crate) fetch_gap: u64,
    /// Bytes of a request of several records, at most.
    pub(crate) fetch_size: u64,
}

/// Smaller records are not requested one by one, since the system reads whole pages.
const MIN_READ_AHEAD_RECORD: u64 = 4096;

/// Rows that a worker claims at a time, at most.
const CLAIMED_ROWS: usize = 16;
/// Bytes of their records, if they are images, at most.
const CLAIMED_IMAGES: u64 = 16 << 10;
/// Claims that each worker finds in a batch of images, at least, unless it has fewer rows.
const CLAIMS: usize = 4;

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
        let (policy, remainder) = (config.policy, Some(config.remainder()));
        let replicas = Replicas { world, batch, policy, remainder };
        let plan = match (&config.packing, &config.buckets) {
            (Some(packing), _) => Plan::Packed(PackedRows::new(packing.plan(config, source, &splits, replicas)?)),
            (None, Some(bucketing)) => {
                let replicas = BucketReplicas { world, policy, remainder };
                Plan::Samples(Arc::new(buckets::plan(config, bucketing, source, &splits, replicas)?))
            }
            (None, None) => {
                let records = splits.shard_records();
                let plan = shardtool_order::Plan::new(source, config.order, config.seed, replicas, &records)?;
                Plan::Samples(Arc::new(plan))
            }
        };
        let plan = Arc::new(plan);
        let views = Views::new(config)?;
        let (columns, objects) = resolve_columns(config, &splits)?;
        plan.packing().map_or(Ok(()), |_| packing::check_columns(&columns))?;
        if let Content::Images(images) = &config.content {
            match &images.clip {
                Some(clip) => clip.check(config, images)?,
                None => features::check_images(&splits)?,
            }
            views.lists().try_for_each(|views| check_views(images, views))?;
            objects.iter().try_for_each(|objects| views.lists().try_for_each(|views| objects.check_flips(views)))?;
            check_mixing(images, &columns)?;
        }
        let sampled = SampledRecords::new(&splits, &config.content);
        features::check_counts(&columns, &splits, &sampled)?;
        let mut content = config.content.clone();
        if let Content::Images(images) = &mut content {
            further_images::resolve(images, &views, &splits, &sampled)?;
            let Images { clip, masks, .. } = images;
            clip.iter().try_for_each(|clip| features::check_bytes(&clip.feature, "frames", &splits))?;
            masks.iter().try_for_each(|feature| features::check_bytes(feature, "label maps", &splits))?;
        }
        let arrays = ResolvedArrays::new(config, &splits, &sampled)?;
        let read_ahead = match splits.mean_record() {
            // The records of stores are requested, see `fetch`.
            _ if splits.in_store() => 0,
            // Workers request the chunks that they need.
            _ if arrays.partial => 0,
            // Of a clip only some frames are read, each requested before the first of them.
            _ if matches!(&config.content, Content::Images(Images { clip: Some(_), .. })) => 0,
            0..MIN_READ_AHEAD_RECORD => 0,
            mean => (config.read_ahead / (mean * plan.packing().map_or(1, packing::samples_per_row))) as usize,
        };
        let rows_per_claim = match config.content {
            _ if !arrays.is_empty() || plan.packing().is_some() => 1,
            // Each may wait for its request.
            Content::Images(_) if splits.in_store() => 1,
            Content::Images(_) => ((CLAIMED_IMAGES / splits.mean_record().max(1)) as usize).clamp(1, CLAIMED_ROWS),
            Content::Records | Content::Columns => CLAIMED_ROWS,
        };
        let release = config.page_cache == PageCache::Release;
        Ok(ResolvedConfig {
            fingerprint: fingerprint(&splits, &columns),
            ranks: ranks.to_vec(),
            batch: largest_batch(&plan, config),
            normalizer: match &config.content {
                Content::Images(images) => images.output.map(Normalizer::new),
                Content::Records | Content::Columns => None,
            },
            expected: match plan.packing() {
                Some(packing) => packing::row_bytes(&columns, packing),
                None => {
                    let keeps_records = matches!(config.content, Content::Records);
                    features::expected_bytes(&columns, &splits, &sampled, keeps_records)
                }
            },
            scratch: typical_scratch(&splits, &content, &views, &columns, &sampled) + arrays.scratch,
            content,
            views,
            columns,
            objects,
            on_bad: config.on_bad(),
            max_bad: config.max_bad.unwrap_or((splits.len() / 100).max(16)),
            epochs: config.epochs,
            starve_after: config.starve_after,
            release,
            arrays,
            read_ahead,
            order: config.order,
            rows_per_claim,
            fetch: if splits.in_store() && plan.packing().is_none() { config.read_ahead } else { 0 },
            fetch_gap: config.fetch_gap,
            fetch_size: config.fetch_size,
            plan,
            splits,
        })
    }

    /// Returns how images are decoded; `None` without images.
    pub(crate) fn images(&self) -> Option<&Images> {
        match &self.content {
            Content::Images(images) => Some(images),
            Content::Records | Content::Columns => None,
        }
    }

    /// Returns the names of the classes that batches deliver; empty if they have numbers only, or if no column holds class ids.
    pub(crate) fn class_names(&self) -> &[String] {
        self.columns.iter().find_map(Column::classes).map_or(&[], |classes| classes.names())
    }

    /// Returns how rows are mixed; `None` if they are not.
    pub(crate) fn mixing(&self) -> Option<&Mixing> {
        self.images()?.mixing.as_ref()
    }

    /// Returns whether batches say how to mix their pixels, and have them unmixed.
    pub(crate) fn defers_mixing(&self) -> bool {
        self.images().is_some_and(|images| images.mixing.is_some() && images.defer_mixing)
    }

    /// Returns the column whose labels become soft; `None` if none does.
    pub(crate) fn soft_label(&self) -> Option<usize> {
        self.mixing().filter(|mixing| mixing.classes > 0)?;
        self.columns.iter().position(Column::is_label)
    }

    /// Returns the numbers of the buckets; 0 alone without buckets.
    pub(crate) fn buckets(&self) -> std::ops::Range<usize> {
        0..self.plan.buckets().map_or(1, |buckets| buckets.as_slice().len())
    }

    /// Returns the rows of a batch of a bucket.
    pub(crate) fn rows(&self, bucket: usize) -> usize {
        self.plan.buckets().map_or(self.batch, |buckets| buckets.as_slice()[bucket].batch.get() as usize)
    }

    /// Returns the arrays of images of a bucket's batch: each view of the image, then each view of further images.
    pub(crate) fn pictures(&self, bucket: usize) -> impl Iterator<Item = Picture<'_>> {
        self.images().into_iter().flat_map(move |images| {
            let first = images.clip.as_ref().map(|clip| clip.feature.as_str());
            let more = images.more.iter().map(|further| (Some(further.feature.as_str()), further.values));
            std::iter::once((first, None)).chain(more).flat_map(move |(feature, values)| {
                let normalizer = self.normalizer.as_ref().filter(|_| values.is_none());
                let format = values.unwrap_or(images.pixel_format);
                self.views.of(bucket).iter().map(move |view| Picture { feature, view, format, normalizer })
            })
        })
    }

    /// Bytes of one row of an array of images.
    pub(crate) fn picture_bytes(&self, picture: Picture<'_>) -> usize {
        let format = picture.format;
        let value = picture.normalizer.map_or(format.depth.bytes(), |normalizer| normalizer.output().dtype().bytes());
        let (width, height) = picture.view.pipeline.output_size();
        height as usize * width as usize * format.channels.count() * value * self.row_frames()
    }

    /// Returns the channels of the images, and the bits of their samples.
    pub(crate) fn pixel_format(&self) -> PixelFormat {
        self.images().map_or(PixelFormat::RGB8, |images| images.pixel_format)
    }

    /// Returns how clips are taken; `None` without clips.
    pub(crate) fn clip(&self) -> Option<&Clip> {
        self.images()?.clip.as_ref()
    }

    /// Number of images of a row in an array of images: 1 without clips.
    pub(crate) fn row_frames(&self) -> usize {
        self.clip().map_or(1, Clip::row_frames)
    }

    /// Number of label maps of a row.
    pub(crate) fn mask_count(&self) -> usize {
        self.images().map_or(0, |images| images.masks.len())
    }

    /// Type of the labels; `None` without label maps.
    pub(crate) fn mask_dtype(&self) -> Option<LabelDtype> {
        self.images().filter(|images| !images.masks.is_empty()).map(|images| images.mask_dtype)
    }

    /// Bytes of one label map of a bucket.
    pub(crate) fn mask_bytes(&self, bucket: usize) -> usize {
        let label = self.mask_dtype().map_or(0, LabelDtype::bytes);
        self.pictures(bucket).next().map_or(0, |picture| {
            let (width, height) = picture.view.pipeline.output_size();
            height as usize * width as usize * label
        })
    }

    /// Bytes of the largest batch, with its ragged values and records in memory as large as expected.
    pub(crate) fn batch_bytes(&self) -> u64 {
        self.buckets().map(|bucket| self.bucket_bytes(bucket)).max().unwrap_or(0)
    }

    fn bucket_bytes(&self, bucket: usize) -> u64 {
        // Plan, id, flag and lock of a row take less than 200 bytes.
        let images: usize = self.pictures(bucket).map(|picture| self.picture_bytes(picture)).sum();
        let pixels = (images + self.mask_count() * self.mask_bytes(bucket)) as u64;
        let soft = self.mixing().map_or(0, |mixing| 4 * u64::from(mixing.classes) + BatchMix::ROW_BYTES);
        let row = pixels
            + self.arrays.row_bytes()
            + soft
            + self.columns.iter().map(Column::row_bytes).sum::<u64>()
            + self.expected
            + 200;
        let on_host = self.mixing().filter(|_| !self.defers_mixing());
        let copy = on_host.map_or(0, |mixing| mixing.copies() * images as u64);
        row * self.rows(bucket) as u64 + copy
    }

    /// Returns whether the system's read-around is turned off ([`shardtool_read::Shard::read_exactly`]).
    pub(crate) fn is_exact(&self) -> bool {
        self.read_ahead > 0 && self.order != Order::Sequential || self.release || self.arrays.partial
    }

    /// Limits the rows of a claim of images, so that `workers` share each batch.
    pub(crate) fn limit_claims(&mut self, workers: usize) {
        if let Content::Images(_) = self.content {
            let smallest = self.buckets().map(|bucket| self.rows(bucket)).min().unwrap_or(0);
            self.rows_per_claim = self.rows_per_claim.min(smallest / (CLAIMS * workers.max(1))).max(1);
        }
    }

    /// Limits read-ahead to `bytes`.
    pub(crate) fn limit_read_ahead(&mut self, bytes: u64) {
        self.read_ahead = self.read_ahead.min((bytes / self.splits.mean_record().max(1)) as usize);
    }

    /// Returns the bytes of records that each replica may have requested ahead.
    pub(crate) fn fetch_share(&self) -> u64 {
        self.fetch / self.ranks.len() as u64
    }

    /// Returns whether batches hold records.
    pub(crate) fn keeps_records(&self) -> bool {
        matches!(self.content, Content::Records)
    }

    /// The resume state at a position.
    pub(crate) fn state(&self, (epoch, p): (u64, u64)) -> ResumeState {
        ResumeState { identity: self.plan.identity(self.fingerprint), epoch, p }
    }
}

/// Resolves the columns of a batch, with those of objects.
fn resolve_columns(config: &Config, splits: &Splits) -> Result<(Vec<Column>, Option<ObjectColumns>)> {
    let objects = match &config.content {
        Content::Images(Images { objects: Some(objects), .. }) => objects,
        _ => return Ok((Column::resolve(config.columns.as_deref(), splits, &config.classes)?, None)),
    };
    let label = || {
        let label = Column::resolve(None, splits, &config.classes)?.into_iter();
        Ok::<_, Error>(label.map(|c| ColumnSpec { feature: c.feature, layout: Layout::Auto }).collect())
    };
    let mut specs = config.columns.clone().map_or_else(label, Ok)?;
    let objects = ObjectColumns::add(objects, &mut specs);
    let columns = Column::resolve(Some(&specs), splits, &config.classes)?;
    objects.check_types(&columns)?;
    Ok((columns, Some(objects)))
}

/// Returns the fingerprint in resume states, which also identifies how class ids are mapped.
fn fingerprint(splits: &Splits, columns: &[Column]) -> u32 {
    let classes = columns.iter().find_map(Column::classes);
    classes.map_or(splits.fingerprint(), |classes| classes.fingerprint(splits.fingerprint()))
}

/// Returns the rows of the largest batch.
fn largest_batch(plan: &Plan, config: &Config) -> usize {
    let rows = plan.buckets().map(|buckets| buckets.as_slice().iter().map(|bucket| bucket.batch.get()));
    rows.and_then(Iterator::max).unwrap_or(config.batch) as usize
}

/// Checks that there is a view, that their names differ, and that options for one view have only one.
fn check_views(images: &Images, views: &[View]) -> Result<()> {
    let names: Vec<_> = views.iter().map(|view| view.name.as_str()).collect();
    if names.is_empty() {
        return Err(Error::Zero { option: "views" });
    }
    let repeated = names.iter().enumerate().find(|(n, name)| names[..*n].contains(name));
    if let Some((_, name)) = repeated {
        return Err(Error::ViewName { name: (*name).to_owned() });
    }
    if images.objects.is_none()
        && let Some(step) = views.iter().find_map(|view| view.pipeline.takes_boxes())
    {
        return Err(Error::NoBoxes { step });
    }
    let format = images.pixel_format;
    if let Some(step) = views.iter().find_map(|view| view.pipeline.undefined_for(format)) {
        return Err(Error::PixelFormat { step, format: format.name() });
    }
    if let Some(output) = images.output.map(|output| output.pixel_format()).filter(|output| *output != format) {
        return Err(Error::OutputFormat { output: output.name(), format: format.name() });
    }
    if images.decoded_cache.as_ref().is_some_and(|cache| cache.side == 0) {
        return Err(Error::Zero { option: "decoded_cache" });
    }
    let views = names.len();
    let options = [
        ("masks", !images.masks.is_empty()),
        ("objects", images.objects.is_some()),
        ("mixing", images.mixing.is_some()),
    ];
    match options.into_iter().find(|(_, given)| *given && views > 1) {
        Some((option, _)) => Err(Error::Views { option, views }),
        None => Ok(()),
    }
}

/// Checks that there are labels and classes to mix.
fn check_mixing(images: &Images, columns: &[Column]) -> Result<()> {
    let Some(mixing) = &images.mixing else { return Ok(()) };
    let reason = if let Err(reason) = mixing.check() {
        reason
    } else if images.defer_mixing && images.output.is_some() {
        "pixels that the host normalises cannot be mixed later"
    } else if !images.masks.is_empty() || !images.more.is_empty() {
        "masks and further images do not mix"
    } else if images.objects.is_some() && !mixing.moves_objects() {
        "boxes do not mix, except in mosaics"
    } else if mixing.classes == 0 && !(images.objects.is_some() && mixing.moves_objects()) {
        "the number of classes is 0"
    } else if mixing.classes > 0 && !columns.iter().any(Column::is_label) {
        "the batch has no integer label"
    } else {
        return Ok(());
    };
    Err(Error::Mixing { reason })
}
