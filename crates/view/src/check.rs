//! Verification of the dataset and the search for duplicates: one at a time, in the background, cancellable.

use crate::columns::{Column, Source};
use crate::sorting;
use crate::turn::Turn;
use rayon::prelude::*;
use shardtool_format::checksum::crc32c;
use shardtool_format::index;
use shardtool_format::manifest::DType;
use shardtool_read::verify::{self, Finding};
use shardtool_read::{Dataset, Split};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Findings and groups of duplicates that are kept, at most.
const MAX_FINDINGS: usize = 2_000;
const MAX_GROUPS: usize = 500;
/// Memory for reading a shard of a store, in bytes.
const STORE_BYTES: u64 = 4 << 20;

/// What is running, or ran last.
pub(crate) struct Check {
    state: Mutex<State>,
    stop: AtomicBool,
}

/// The state of a check.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) running: Option<Kind>,
    /// What ran last, to its end or until it was cancelled.
    pub(crate) ran: Option<Kind>,
    pub(crate) cancelled: bool,
    /// Records checked, and records in all.
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) seconds: f64,
    /// The state of each shard, of all splits one after the other.
    pub(crate) shards: Vec<ShardState>,
    pub(crate) good_records: u64,
    pub(crate) findings: Vec<FoundDamage>,
    pub(crate) unlisted: u64,
    pub(crate) duplicates: Option<Duplicates>,
}

/// What is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Verify,
    /// Verification that decodes every image too.
    Decode,
    Duplicates,
}

/// What is known of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ShardState {
    #[default]
    Unchecked,
    Good,
    Damaged(u32),
}

/// A finding in a shard.
#[derive(Debug, Clone)]
pub(crate) struct FoundDamage {
    pub(crate) split: String,
    /// Number of the shard in its split, and the id of its first record.
    pub(crate) shard: usize,
    /// The id of the finding's record; `None` if it has none, or a deleted one.
    pub(crate) id: Option<u64>,
    pub(crate) finding: Finding,
}

/// Records with equal images.
#[derive(Debug, Clone, Default)]
pub(crate) struct Duplicates {
    /// Split and ids of each group.
    pub(crate) groups: Vec<(String, Vec<u64>)>,
    /// Further groups, which are not listed.
    pub(crate) unlisted: u64,
    /// Records beyond the first of each group.
    pub(crate) extra: u64,
    pub(crate) problem: Option<String>,
}

impl Check {
    pub(crate) fn new(dataset: &Dataset) -> Self {
        let shards = dataset.splits().iter().map(|split| split.entry().shards.len()).sum();
        let state = State { shards: vec![ShardState::Unchecked; shards], ..State::default() };
        Check { state: Mutex::new(state), stop: AtomicBool::new(false) }
    }

    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// Ends what is running.
    pub(crate) fn cancel(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Starts a check in the background.
    pub(crate) fn start(self: &Arc<Self>, turn: Turn, dataset: Dataset, kind: Kind) {
        let mut state = self.lock();
        self.stop.store(false, Ordering::Relaxed);
        let total = dataset.splits().iter().map(Split::len).sum();
        (state.running, state.cancelled, state.done, state.total, state.seconds) = (Some(kind), false, 0, total, 0.0);
        match kind {
            Kind::Verify | Kind::Decode => {
                state.shards.fill(ShardState::Unchecked);
                (state.good_records, state.unlisted) = (0, 0);
                state.findings.clear();
            }
            Kind::Duplicates => state.duplicates = None,
        }
        drop(state);
        let check = self.clone();
        std::thread::spawn(move || {
            let _turn = turn;
            check.run(&dataset, kind);
        });
    }

    /// Runs a check on this thread.
    pub(crate) fn run(&self, dataset: &Dataset, kind: Kind) {
        let since = Instant::now();
        let work = || match kind {
            Kind::Verify | Kind::Decode => self.verify(dataset, kind == Kind::Decode),
            Kind::Duplicates => {
                let duplicates = self.duplicates(dataset);
                self.lock().duplicates = Some(duplicates);
            }
        };
        // Its own threads: filters and searches of the gallery use the global pool meanwhile.
        match rayon::ThreadPoolBuilder::new().build() {
            Ok(pool) => pool.install(work),
            Err(_) => work(),
        }
        let mut state = self.lock();
        (state.running, state.ran) = (None, Some(kind));
        state.cancelled = self.stop.load(Ordering::Relaxed);
        state.seconds = since.elapsed().as_secs_f64();
    }

    fn verify(&self, dataset: &Dataset, decode: bool) {
        let mut shards = vec![];
        for split in dataset.splits() {
            shards.extend((0..split.entry().shards.len()).map(|number| (split, number)));
        }
        shards.par_iter().enumerate().for_each(|(at, (split, number))| {
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let advance = |records, _| self.lock().done += records;
            let mut options = verify::Options::default();
            options.decode = decode;
            options.progress = Some(&advance);
            options.shard_bytes = Some(STORE_BYTES);
            options.stop = Some(&self.stop);
            let report = verify::verify_shard(split, *number, &options);
            let mut state = self.lock();
            let found = report.findings.len() as u64 + report.unlisted;
            if !self.stop.load(Ordering::Relaxed) || found > 0 {
                state.shards[at] = match u32::try_from(found).unwrap_or(u32::MAX) {
                    0 => ShardState::Good,
                    found => ShardState::Damaged(found),
                };
            }
            state.good_records += report.good_records;
            state.unlisted += report.unlisted;
            for finding in report.findings {
                if state.findings.len() < MAX_FINDINGS {
                    let id = finding.record.and_then(|row| split.id_of(*number, row).ok().flatten());
                    state.findings.push(FoundDamage { split: split.name().to_owned(), shard: *number, id, finding });
                } else {
                    state.unlisted += 1;
                }
            }
        });
        let mut state = self.lock();
        state
            .findings
            .sort_by(|a, b| (&a.split, a.shard, a.finding.offset).cmp(&(&b.split, b.shard, b.finding.offset)));
    }

    /// Finds records of a split with equal images: first those of equal length, by the index alone; then of these, those
    /// with equal bytes.
    fn duplicates(&self, dataset: &Dataset) -> Duplicates {
        let mut found = Duplicates::default();
        for split in dataset.splits() {
            let column = Column {
                name: index::IMAGE_LENGTH.to_owned(),
                source: Source::ImageLength,
                dtype: DType::Int64,
                indexed: true,
            };
            let ids = match sorting::permutation(split, &column) {
                Ok(ids) => ids,
                Err(problem) => {
                    found.problem = Some(problem);
                    continue;
                }
            };
            let length = |id: &u32| image_length(split, (*id).into());
            let runs: Vec<_> = ids.chunk_by(|a, b| length(a) == length(b)).collect();
            let alone = |run: &&[u32]| run.len() == 1 || length(&run[0]).is_none_or(|length| length == 0);
            let (alone, runs): (Vec<_>, Vec<_>) = runs.into_iter().partition(alone);
            self.lock().done += alone.iter().map(|run| run.len() as u64).sum::<u64>();
            runs.par_iter().for_each(|run| {
                let groups = if self.stop.load(Ordering::Relaxed) { vec![] } else { self.equal_images(split, run) };
                self.add(&mut self.lock(), split, groups);
            });
            let listed = self.lock().duplicates.take().unwrap_or_default();
            found.extra += listed.extra;
            found.unlisted += listed.unlisted;
            found.groups.extend(listed.groups);
        }
        found.groups.sort();
        found
    }

    fn add(&self, state: &mut MutexGuard<'_, State>, split: &Split, groups: Vec<Vec<u64>>) {
        let duplicates = state.duplicates.get_or_insert_default();
        for group in groups {
            duplicates.extra += group.len() as u64 - 1;
            if duplicates.groups.len() < MAX_GROUPS {
                duplicates.groups.push((split.name().to_owned(), group));
            } else {
                duplicates.unlisted += 1;
            }
        }
    }

    /// Returns the groups of records whose images are equal, among records whose images are equally long.
    fn equal_images(&self, split: &Split, ids: &[u32]) -> Vec<Vec<u64>> {
        let mut by_crc = HashMap::<u32, Vec<u64>>::new();
        for id in ids {
            if self.stop.load(Ordering::Relaxed) {
                return vec![];
            }
            self.lock().done += 1;
            let Ok(record) = split.get((*id).into()) else { continue };
            if let Ok(Some(image)) = record.image()
                && !image.is_empty()
            {
                by_crc.entry(crc32c(image)).or_default().push((*id).into());
            }
        }
        let mut groups = vec![];
        for mut same in by_crc.into_values().filter(|same| same.len() > 1) {
            // A CRC can be equal by chance or by intent: the bytes decide.
            let first = split.get(same[0]);
            let equal = |id: &u64| {
                let (Ok(first), Ok(other)) = (&first, split.get(*id)) else { return false };
                matches!((first.image(), other.image()), (Ok(a), Ok(b)) if a == b)
            };
            same.retain(equal);
            if same.len() > 1 {
                groups.push(same);
            }
        }
        groups
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn image_length(split: &Split, id: u64) -> Option<u32> {
    let (number, row) = split.locate(id).ok()?;
    split.shard(number).ok()?.column::<u32>(index::IMAGE_LENGTH).ok()??.get(row)
}
