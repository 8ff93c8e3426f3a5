//! A configuration, validated and with every default resolved, as the workers use it. Does not change after creation.

use crate::arrays::ResolvedArrays;
use crate::buckets;
use crate::classes::ResolvedClasses;
use crate::column_checks;
use crate::columns::ResolvedColumn;
use crate::error::{Error, Result, StageProblem};
use crate::features;
use crate::further_images;
use crate::groups::{Groups, Images, Labels};
use crate::image::pixels;
use crate::mixing::{Mixing, Pixels};
use crate::objects::ObjectColumns;
use crate::options::{Buckets, Clip, Column, Config, Layout, OnBad, PageCache, Part, View};
use crate::packing;
use crate::plan::{PackedRows, Plan};
use crate::sampled_records::SampledRecords;
use crate::splits::Splits;
use crate::stages::NamedMembers;
use crate::transform_marks::NamedTransforms;
use crate::typical_scratch::typical_scratch;
use crate::views::Views;
use shardtool_decode::{Normalizer, PixelFormat};
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
    /// Whether it has values, which are never normalised.
    pub(crate) values: bool,
}

impl Picture<'_> {
    /// Returns what its pixels are.
    pub(crate) fn pixels(&self) -> Pixels {
        Pixels::new(self.normalizer.map(Normalizer::output), self.format)
    }
}

pub(crate) struct ResolvedConfig {
    pub(crate) splits: Splits,
    pub(crate) plan: Arc<Plan>,
    /// The members of a scheduled source.
    pub(crate) members: Option<NamedMembers>,
    /// Of all splits.
    fingerprint: u32,
    /// The ranks of the replicas that the loader serves.
    pub(crate) ranks: Vec<u32>,
    /// Rows of a batch; with buckets, of the largest.
    pub(crate) batch: usize,
    /// What is made of each image, by bucket.
    pub(crate) views: Views,
    /// How images are decoded; `None` without images.
    images: Option<Images>,
    /// The transforms that states name.
    pub(crate) transforms: NamedTransforms,
    /// Whether batches hold records.
    pub(crate) keeps_records: bool,
    /// Computes the batch's numbers from u8 pixels; `None` for u8 batches.
    pub(crate) normalizer: Option<Normalizer>,
    pub(crate) columns: Vec<ResolvedColumn>,
    /// Ragged columns that become arrays of one length, and the number after the values of a row.
    pub(crate) padded: Vec<(String, f64)>,
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
        check_numbers(config)?;
        check_ranks(ranks, config.replica.world())?;
        let mut groups = Groups::new(config)?;
        let splits = Splits::new(config.splits.clone())?;
        let (plan, members) = plan(config, &groups, &splits)?;
        let plan = Arc::new(plan);
        let views = Views::new(&groups, config.buckets.as_ref())?;
        let (columns, mut objects) = resolve_columns(config, &groups, &splits)?;
        objects.iter_mut().try_for_each(|objects| objects.describe_keypoints(&splits))?;
        plan.packing().map_or(Ok(()), |_| packing::check_columns(&columns))?;
        let sampled = SampledRecords::new(&splits, groups.images.is_some());
        if let Some(images) = &mut groups.images {
            resolve_images(images, config, &views, &columns, &splits)?;
            objects.iter().try_for_each(|objects| views.lists().try_for_each(|views| objects.check_flips(views)))?;
            further_images::resolve(images, &views, &splits, &sampled)?;
        }
        column_checks::check_counts(&columns, &splits, &sampled)?;
        let arrays = ResolvedArrays::new(&groups, config.batch_size, &splits, &sampled)?;
        let (images, keeps_records) = (groups.images, groups.records);
        let in_store = splits.in_store();
        Ok(ResolvedConfig {
            fingerprint: fingerprint(&splits, &columns, splits.as_slice().len()),
            members,
            transforms: NamedTransforms::new(
                images.as_ref().and_then(|images| images.mixing.as_ref()),
                objects.as_ref(),
            ),
            ranks: ranks.to_vec(),
            padded: config.padded(),
            batch: largest_batch(&plan, config),
            normalizer: images.as_ref().and_then(|images| images.output).map(Normalizer::new),
            expected: match plan.packing() {
                Some(packing) => packing::row_bytes(&columns, packing),
                None => {
                    let masks = objects.as_ref().filter(|objects| objects.masks.is_some()).map_or(0, |objects| {
                        let mask = views.lists().flatten().map(|view| pixels(view.pipeline.output_size())).max();
                        // Those of a mosaic exist next to the ones that it is made of, and a row has parts of four.
                        let times = if config.batch_transform.is_empty() { 1 } else { 3 };
                        let boxes = &columns[objects.boxes];
                        times * column_checks::expected_masks(boxes, mask.unwrap_or(0), &splits, &sampled)
                    });
                    masks + column_checks::expected_bytes(&columns, &splits, &sampled, keeps_records)
                }
            },
            scratch: typical_scratch(&splits, images.as_ref(), &views, (&columns, objects.as_ref()), &sampled)
                + arrays.scratch,
            views,
            columns,
            objects,
            on_bad: config.on_bad(),
            max_bad: config.bad_samples.most(splits.len()),
            epochs: config.epochs,
            starve_after: config.prefetch.starve_after,
            release: config.prefetch.page_cache == PageCache::Release,
            read_ahead: read_ahead(config.prefetch.read_ahead, images.as_ref(), &arrays, &plan, &splits),
            order: config.order,
            rows_per_claim: rows_per_claim(images.is_some(), &arrays, &plan, &splits),
            fetch: if in_store && plan.packing().is_none() { config.prefetch.read_ahead } else { 0 },
            fetch_gap: config.prefetch.fetch_gap,
            fetch_size: config.prefetch.fetch_size,
            images,
            keeps_records,
            arrays,
            plan,
            splits,
        })
    }

    /// Returns how images are decoded; `None` without images.
    pub(crate) fn images(&self) -> Option<&Images> {
        self.images.as_ref()
    }

    /// Returns the names of the classes that batches deliver; empty if they have numbers only, or if no column holds class ids.
    pub(crate) fn class_names(&self) -> &[String] {
        self.columns.iter().find_map(ResolvedColumn::classes).map_or(&[], |classes| classes.names())
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
        self.columns.iter().position(ResolvedColumn::is_label)
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
                let format = values.unwrap_or(images.pixel_format());
                let values = values.is_some();
                self.views.of(bucket).iter().map(move |view| Picture { feature, view, format, normalizer, values })
            })
        })
    }

    /// Returns the channels of the images, and the bits of their samples.
    pub(crate) fn pixel_format(&self) -> PixelFormat {
        self.images().map_or(PixelFormat::RGB8, Images::pixel_format)
    }

    /// Returns how clips are taken; `None` without clips.
    pub(crate) fn clip(&self) -> Option<&Clip> {
        self.images()?.clip.as_ref()
    }

    /// Number of images of a row in an array of images: 1 without clips.
    pub(crate) fn row_frames(&self) -> usize {
        self.clip().map_or(1, Clip::row_frames)
    }

    /// Returns the label maps of a row, then the mask of the pixels that show the image.
    pub(crate) fn masks(&self) -> &[Labels] {
        self.images().map_or(&[], |images| &images.masks)
    }

    /// Returns whether the system's read-around is turned off ([`shardtool_read::Shard::read_exactly`]).
    pub(crate) fn is_exact(&self) -> bool {
        self.read_ahead > 0 && self.order != Order::Sequential || self.release || self.arrays.partial
    }

    /// Limits the rows of a claim of images, so that `workers` share each batch.
    pub(crate) fn limit_claims(&mut self, workers: usize) {
        if self.images.is_some() {
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

    /// Returns L and C if the positions of an epoch are interleaved; those of a scheduled source are not, but the passes through each
    /// member.
    pub(crate) fn runs_and_windows(&self) -> Option<(NonZeroU32, NonZeroU32)> {
        match self.order {
            Order::Interleaved { run, window } if self.members.is_none() => Some((run, window)),
            _ => None,
        }
    }

    /// The resume state at an epoch and a position.
    pub(crate) fn state(&self, at: (u64, u64)) -> ResumeState {
        ResumeState { transforms: self.transforms.marks(), ..self.plan.state(at, self.fingerprint(at)) }
    }

    /// Returns the epoch and position at which a state resumes.
    pub(crate) fn resume(&self, state: &ResumeState) -> Result<(u64, u64)> {
        let at = self.plan.resume(state, self.fingerprint((state.epoch, state.p)))?;
        self.transforms.check(state)?;
        Ok(at)
    }

    /// Returns the fingerprint in the state at an epoch and a position: that of all splits, unless later stages may have others.
    fn fingerprint(&self, at: (u64, u64)) -> u32 {
        match self.plan.ids_end(at) {
            None => self.fingerprint,
            Some(end) => {
                let count = self.splits.ids().filter(|ids| ids.start < end).count();
                fingerprint(&self.splits, &self.columns, count)
            }
        }
    }
}

/// Checks numbers that must not be 0.
fn check_numbers(config: &Config) -> Result<()> {
    let numbers = [
        ("batch_size", Some(config.batch_size as usize)),
        ("world_size", Some(config.replica.world() as usize)),
        ("workers", config.workers),
        ("prefetch", config.prefetch.batches),
        ("local_world", Some(config.local_world as usize)),
    ];
    match numbers.into_iter().find(|(_, value)| *value == Some(0)) {
        Some((option, _)) => Err(Error::Zero { option }),
        None => Ok(()),
    }
}

/// Checks that the ranks are different ones of the world.
fn check_ranks(ranks: &[u32], world: u32) -> Result<()> {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() != ranks.len() || ranks.is_empty() {
        return Err(Error::Ranks { ranks: ranks.to_vec() });
    }
    match ranks.iter().find(|rank| **rank >= world) {
        Some(&rank) => Err(shardtool_order::Error::Rank { rank, world }.into()),
        None => Ok(()),
    }
}

/// Returns which samples are in which row, and the members of a scheduled source.
fn plan(config: &Config, groups: &Groups, splits: &Splits) -> Result<(Plan, Option<NamedMembers>)> {
    let number = |number, option| NonZeroU32::new(number).ok_or(Error::Zero { option });
    let (batch, world) = (number(config.batch_size, "batch_size")?, number(config.replica.world(), "world_size")?);
    let members = match (&config.stages, &config.source) {
        (Some(_), Some(_)) => return Err(StageProblem::SourceToo.into()),
        (Some(stages), None) => Some(NamedMembers::resolve(stages, splits, &config.classes)?),
        (None, source) => source.as_ref().and_then(NamedMembers::of_source),
    };
    let source = match &members {
        Some(members) => Source::Scheduled(members.source.clone()),
        None => config.source.clone().unwrap_or(Source::All(splits.len())),
    };
    if let Source::All(source_len) = source
        && source_len != splits.len()
    {
        return Err(Error::SourceLength { source_len, records: splits.len() });
    }
    let (policy, remainder) = (config.policy, Some(config.remainder()));
    let replicas = Replicas { world, batch, policy, remainder };
    let plan = match (&groups.tokens, &config.buckets) {
        (Some(tokens), _) => Plan::Packed(PackedRows::new(packing::plan(tokens, config, source, splits, replicas)?)),
        (None, Some(given)) => {
            let replicas = BucketReplicas { world, policy, remainder };
            Plan::Samples(Arc::new(buckets::plan(config, given, source, splits, replicas)?))
        }
        (None, None) => {
            let records = splits.shard_records();
            let plan = shardtool_order::Plan::new(source, config.order, config.seed, replicas, &records)?;
            Plan::Samples(Arc::new(plan))
        }
    };
    Ok((plan, members))
}

/// Checks images against the dataset, and resolves how they are mixed.
fn resolve_images(
    images: &mut Images,
    config: &Config,
    views: &Views,
    columns: &[ResolvedColumn],
    splits: &Splits,
) -> Result<()> {
    match &images.clip {
        Some(clip) => clip.check()?,
        None => features::check_images(splits)?,
    }
    views.lists().try_for_each(|views| check_views(images, views))?;
    let classes = columns.iter().find_map(ResolvedColumn::classes).map_or(0, |classes| classes.names().len());
    let has_label = columns.iter().any(|column| column.is_label() || column.is_multi_hot());
    // Label maps and other values of pixels can be all that is learnt.
    let of_pixels = [Part::Mask, Part::FurtherImage, Part::ArraysInImage];
    let needs_label = !Part::of(config).iter().any(|part| of_pixels.contains(part));
    images.mixing =
        Mixing::resolve(&config.batch_transform, images.objects.as_ref(), classes, has_label || needs_label)?;
    if images.mixing.as_ref().is_some_and(|mixing| mixing.classes > 0) && !has_label {
        return Err(Error::Mixing { reason: "the batch has no integer label, and no column that is `multi_hot`" });
    }
    let Images { clip, masks, .. } = images;
    clip.iter().try_for_each(|clip| features::check_bytes(&clip.feature, "frames", splits))?;
    let mut maps = masks.iter().filter_map(|mask| mask.feature.as_ref());
    maps.try_for_each(|feature| features::check_bytes(feature, "label maps", splits))
}

/// Returns the rows whose records the system reads ahead, given the bytes.
fn read_ahead(bytes: u64, images: Option<&Images>, arrays: &ResolvedArrays, plan: &Plan, splits: &Splits) -> usize {
    match splits.mean_record() {
        // The records of stores are requested, see `fetch`.
        _ if splits.in_store() => 0,
        // Workers request the chunks that they need.
        _ if arrays.partial => 0,
        // Of a clip only some frames are read, each requested before the first of them.
        _ if images.is_some_and(|images| images.clip.is_some()) => 0,
        0..MIN_READ_AHEAD_RECORD => 0,
        mean => (bytes / (mean * plan.packing().map_or(1, packing::samples_per_row))) as usize,
    }
}

/// Returns the rows that a worker claims at a time.
fn rows_per_claim(images: bool, arrays: &ResolvedArrays, plan: &Plan, splits: &Splits) -> usize {
    match images {
        _ if !arrays.is_empty() || plan.packing().is_some() => 1,
        // Each may wait for its request.
        true if splits.in_store() => 1,
        true => ((CLAIMED_IMAGES / splits.mean_record().max(1)) as usize).clamp(1, CLAIMED_ROWS),
        false => CLAIMED_ROWS,
    }
}

/// Resolves the columns of a batch: the label, if the dataset has one, the given ones, and those of objects.
fn resolve_columns(
    config: &Config,
    groups: &Groups,
    splits: &Splits,
) -> Result<(Vec<ResolvedColumn>, Option<ObjectColumns>)> {
    let mut specs = ResolvedColumn::labels(splits)?;
    specs.retain(|label| groups.columns.iter().all(|column| column.feature != label.feature));
    specs.extend(groups.columns.iter().cloned());
    let padded = groups.tokens.as_ref().map(|tokens| &tokens.padded);
    let padded = padded.into_iter().chain(match &config.buckets {
        Some(Buckets::Length(buckets)) => Some(&buckets.padded),
        _ => None,
    });
    let padded: Vec<(&String, f64)> = padded.flatten().map(|(feature, value)| (feature, *value)).collect();
    for &(feature, _) in &padded {
        specs.retain(|column| column.feature != *feature);
        specs.push(Column::with_layout(feature, Layout::Ragged));
    }
    let objects = groups.images.as_ref().and_then(|images| images.objects.as_ref());
    let objects =
        objects.map(|objects| ObjectColumns::add(objects, &mut specs, (splits, &config.classes))).transpose()?;
    objects.iter().try_for_each(|objects| objects.check_columns(&groups.columns))?;
    let of_objects = objects.as_ref().and_then(ObjectColumns::class_names);
    let mut columns = ResolvedColumn::resolve(&specs, splits, (&config.classes, of_objects))?;
    column_checks::padded_values(&columns, &padded)?;
    if let Some(objects) = &objects {
        objects.resolve(&mut columns)?;
    }
    Ok((columns, objects))
}

/// Returns the fingerprint of the first `count` splits in resume states, which also identifies how class ids are mapped.
fn fingerprint(splits: &Splits, columns: &[ResolvedColumn], count: usize) -> u32 {
    let mut all: Vec<&Arc<ResolvedClasses>> = vec![];
    for classes in columns.iter().filter_map(ResolvedColumn::classes) {
        if !all.iter().any(|other| Arc::ptr_eq(other, classes)) {
            all.push(classes);
        }
    }
    all.into_iter().fold(splits.fingerprint(count), |fingerprint, classes| classes.fingerprint(fingerprint, count))
}

/// Returns the rows of the largest batch.
fn largest_batch(plan: &Plan, config: &Config) -> usize {
    let rows = plan.buckets().map(|buckets| buckets.as_slice().iter().map(|bucket| bucket.batch.get()));
    rows.and_then(Iterator::max).unwrap_or(config.batch_size) as usize
}

/// Checks that there is a view, that their names differ, and that every step is defined for the pixels.
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
    let format = images.pixel_format();
    if let Some(step) = views.iter().find_map(|view| view.pipeline.undefined_for(format)) {
        return Err(Error::PixelFormat { step, format: format.name() });
    }
    if images.pixels.decoded_cache.as_ref().is_some_and(|cache| cache.resize == 0) {
        return Err(Error::Zero { option: "decoded_cache" });
    }
    Ok(())
}
