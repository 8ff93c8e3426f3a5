//! Rows of several samples of tokens.

use crate::dataset::{self, Sample};
use crate::samples::numbers;
use shardtool_load::{
    Batch, Column, Config, Error, Field, InvalidOptions, Loader, Longer, OnBad, Part, SampleError, Tokens, Values,
};
use shardtool_order::{Order, Policy, Remainder, Replica, ResumeState};
use shardtool_read::{Dataset, Split};
use std::num::NonZeroU32;
use std::path::Path;

const LABEL: &str = "image/class/label";
const CAPACITY: u32 = 24;

/// The tokens of sample `i`, from 0 to 17 of them. They are stored as boxes, and their number as the label.
fn tokens(i: u64) -> Vec<f32> {
    (0..i * 7 % 18).map(|t| (100 * i + t) as f32).collect()
}

fn split(folder: &Path, n: u64) -> Split {
    let sample = |(i, sample): (u64, Sample)| Sample { label: tokens(i).len() as i64, boxes: tokens(i), ..sample };
    dataset::write(folder, "train", &(0..).zip(numbers(n)).map(sample).collect::<Vec<_>>(), 31);
    open(folder)
}

fn open(folder: &Path) -> Split {
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(split: Split, batch: u32) -> Config {
    let padded = [("boxes".to_owned(), -1.0)];
    let mut tokens = Tokens::new(LABEL, NonZeroU32::new(CAPACITY).unwrap(), padded);
    tokens.window = NonZeroU32::new(40).unwrap();
    let mut config = Config::new(split, [tokens], batch);
    (config.seed, config.remainder, config.workers) = (5, Some(Remainder::Mask), Some(2));
    config
}

fn packing(config: &mut Config) -> &mut Tokens {
    let Some(Field::Tokens(tokens)) = config.fields.first_mut() else { unreachable!("the first field has the tokens") };
    tokens
}

fn ragged(batch: &Batch) -> (&[i64], &[f32]) {
    match batch.column("boxes") {
        Some(Values::RaggedFloat { offsets, values }) => (offsets, values),
        other => panic!("{other:?}"),
    }
}

/// Everything in a batch, and the state after it.
type Delivered = (Vec<i64>, Vec<i64>, Vec<f32>, Vec<bool>, ResumeState);

fn delivered(batch: &Batch) -> Delivered {
    let (packed, (offsets, values)) = (batch.packed().unwrap(), ragged(batch));
    let numbers = [packed.offsets, packed.tokens, offsets].concat();
    (batch.ids().to_vec(), numbers, values.to_vec(), batch.valid().to_vec(), batch.state_after())
}

/// Returns the batches that are left of an epoch.
fn rest(loader: &mut Loader) -> Vec<Delivered> {
    let mut batches = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        batches.push(delivered(&batch));
    }
    batches
}

#[test]
fn every_sample_is_in_one_row_with_its_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let mut loader = Loader::new(&config(split(folder.path(), 203), 3)).unwrap();
    for epoch in 0..2 {
        let (mut seen, mut rows, mut filled, mut steps) = (vec![], 0, 0, 0);
        let expected_steps = loader.len();
        while let Some(batch) = loader.next_batch().unwrap() {
            assert_eq!((batch.len(), batch.epoch()), (3, epoch));
            let (packed, (offsets, values)) = (batch.packed().unwrap(), ragged(&batch));
            assert_eq!(batch.row_length(), Some(CAPACITY as usize));
            let Some(Values::RaggedInt64 { offsets: of_labels, values: labels }) = batch.column(LABEL) else {
                panic!("labels")
            };
            assert_eq!((of_labels.as_slice(), packed.tokens), (packed.offsets, labels.as_slice()));
            let (segments, positions) = (packed.segment_ids(), packed.position_ids());
            let Some(Values::Float(dense)) = batch.padded("boxes") else { panic!("an array") };
            assert_eq!(batch.padded(LABEL), None);
            for row in 0..3 {
                let samples = packed.offsets[row] as usize..packed.offsets[row + 1] as usize;
                let mut expected: Vec<f32> = vec![];
                let (mut of_segment, mut of_position) = (vec![], vec![]);
                for (number, id) in batch.ids()[samples.clone()].iter().enumerate() {
                    let tokens = tokens(*id as u64);
                    of_segment.extend(tokens.iter().map(|_| number as i32 + 1));
                    of_position.extend(0..tokens.len() as i32);
                    expected.extend(tokens);
                }
                assert_eq!(batch.valid()[row], !samples.is_empty());
                let length = expected.len();
                assert!(length <= CAPACITY as usize);
                assert_eq!(values[offsets[row] as usize..offsets[row + 1] as usize], expected);
                rows += u32::from(!samples.is_empty());
                filled += length;
                let row = row * CAPACITY as usize..(row + 1) * CAPACITY as usize;
                expected.resize(CAPACITY as usize, -1.0);
                assert_eq!(dense[row.clone()], expected);
                of_segment.resize(CAPACITY as usize, 0);
                of_position.resize(CAPACITY as usize, 0);
                assert_eq!((&segments[row.clone()], &positions[row]), (&of_segment[..], &of_position[..]));
            }
            seen.extend_from_slice(batch.ids());
            steps += 1;
        }
        assert_eq!(steps, expected_steps);
        assert!(!seen.is_sorted());
        seen.sort_unstable();
        assert_eq!(seen, (0..203).collect::<Vec<_>>());
        // Lengths up to 17 in rows of 24: first-fit decreasing leaves little.
        assert!(filled as f64 > 0.9 * f64::from(rows * CAPACITY), "{filled} tokens in {rows} rows");
    }
    assert_eq!(loader.stats().samples, 2 * 203);
}

#[test]
fn a_run_resumes_at_every_step_with_other_workers_and_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 203);
    for order in [Order::Shuffled, Order::Sequential] {
        let mut config = config(split.clone(), 2);
        config.order = order;
        let mut whole_loader = Loader::new(&config).unwrap();
        let whole = [rest(&mut whole_loader), rest(&mut whole_loader)].concat();
        let first_epoch = whole.iter().position(|(.., state)| state.epoch == 1).unwrap() + 1;
        config.workers = Some(3);
        for done in 0..first_epoch {
            let mut loader = Loader::new(&config).unwrap();
            loader.load_state(&whole[done].4).unwrap();
            let left = loader.steps_left();
            let batches = rest(&mut loader);
            assert_eq!(batches.len() as u64, left);
            assert_eq!(batches, whole[done + 1..][..batches.len()], "{order:?} after {done}");
            assert_ne!(batches.len(), 0);
        }
        // Three ranks continue with the rows that one rank has left.
        let rows = |(ids, numbers, ..): &Delivered| -> Vec<Vec<i64>> {
            let offsets = &numbers[..3];
            offsets.windows(2).map(|ends| ids[ends[0] as usize..ends[1] as usize].to_vec()).collect()
        };
        let expected: Vec<_> = whole[3..first_epoch].iter().flat_map(rows).filter(|row| !row.is_empty()).collect();
        let of_rank = |rank| {
            config.replica = Replica::new(rank, 3).unwrap();
            let mut loader = Loader::new(&config).unwrap();
            loader.load_state(&whole[2].4).unwrap();
            rest(&mut loader)
        };
        let ranks: Vec<_> = [0, 1, 2].map(of_rank).into();
        assert!(ranks.iter().all(|batches| batches.len() == ranks[0].len()));
        let in_turn = (0..ranks[0].len()).flat_map(|step| ranks.iter().flat_map(move |batches| rows(&batches[step])));
        assert_eq!(in_turn.filter(|row| !row.is_empty()).collect::<Vec<_>>(), expected, "{order:?}");
    }
    let mut other = config(split, 2);
    let mut loader = Loader::new(&other).unwrap();
    drop(loader.next_batch().unwrap());
    let state = loader.state();
    packing(&mut other).window = NonZeroU32::new(41).unwrap();
    let error = Loader::new(&other).unwrap().load_state(&state).unwrap_err();
    assert!(error.to_string().contains("inside an epoch of buckets or packing"), "{error}");
}

/// Flips a byte of a record.
fn damage(folder: &Path, id: u64) {
    let split = open(folder);
    let (number, row) = split.locate(id).unwrap();
    let shard = split.shard(number).unwrap();
    let frame = shard.frame(row).unwrap();
    let mut bytes = std::fs::read(shard.path()).unwrap();
    bytes[(frame.start + frame.end) as usize / 2] ^= 0x10;
    std::fs::write(shard.path(), bytes).unwrap();
}

#[test]
fn a_bad_sample_costs_its_own_tokens_only() {
    let folder = tempfile::tempdir().unwrap();
    let whole = rest(&mut Loader::new(&config(split(folder.path(), 100), 4)).unwrap());
    let bad = 17;
    damage(folder.path(), bad);
    let mut masked = config(open(folder.path()), 4);
    let mut loader = Loader::new(&masked).unwrap();
    let batches = rest(&mut loader);
    assert_eq!(loader.bad_samples().iter().map(|sample| sample.id).collect::<Vec<_>>(), [bad]);
    for (found, expected) in batches.iter().zip(&whole) {
        let others = expected.0.iter().copied().filter(|id| *id != bad as i64).collect::<Vec<_>>();
        let lost = tokens(bad);
        let values = expected.2.iter().copied().filter(|value| !lost.contains(value)).collect::<Vec<_>>();
        assert_eq!((&found.0, &found.2), (&others, &values));
    }
    // A substitute has at most the tokens of the sample that it replaces.
    masked.bad_samples.on_bad = Some(OnBad::Substitute);
    let batches = rest(&mut Loader::new(&masked).unwrap());
    let mut substitutes = 0;
    for (found, expected) in batches.iter().zip(&whole) {
        for (number, (id, expected)) in found.0.iter().zip(&expected.0).enumerate() {
            let length = found.1[5 + number] as usize;
            if *expected == bad as i64 {
                assert_eq!(length, tokens(bad).len().min(tokens(*id as u64).len()));
                assert!(tokens(*id as u64)[..length].iter().all(|token| found.2.contains(token)));
                substitutes += 1;
            } else {
                assert_eq!((id, length), (expected, tokens(*id as u64).len()));
            }
        }
    }
    assert_eq!(substitutes, 1);
    masked.bad_samples.on_bad = Some(OnBad::Error);
    let mut loader = Loader::new(&masked).unwrap();
    let error = std::iter::repeat_with(|| loader.next_batch()).find_map(Result::err).unwrap();
    assert!(matches!(&error, Error::BadSample(sample) if sample.id == bad), "{error}");
}

#[test]
fn long_samples_are_truncated_and_wrong_lengths_are_bad_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(split(folder.path(), 60), 2);
    (packing(&mut config).capacity, packing(&mut config).longer) = (NonZeroU32::new(10).unwrap(), Longer::Cut);
    let mut seen = vec![];
    for (ids, numbers, values, ..) in rest(&mut Loader::new(&config).unwrap()) {
        let mut at = 0;
        for (number, id) in ids.iter().enumerate() {
            let (length, tokens) = (numbers[3 + number] as usize, tokens(*id as u64));
            assert_eq!(length, tokens.len().min(10));
            assert_eq!(values[at..at + length], tokens[..length]);
            at += length;
        }
        seen.extend(ids);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..60).collect::<Vec<_>>());
    packing(&mut config).longer = Longer::Error;
    let error = Loader::new(&config).err().unwrap();
    assert!(matches!(error, Error::Order(shardtool_order::Error::LongSample { most: 10, .. })), "{error}");

    // The label of sample 4 says one token more than there is.
    let folder = tempfile::tempdir().unwrap();
    let sample = |(i, sample): (u64, Sample)| {
        let label = tokens(i).len() as i64 + i64::from(i == 4);
        Sample { label, boxes: tokens(i), ..sample }
    };
    dataset::write(folder.path(), "train", &(0..).zip(numbers(30)).map(sample).collect::<Vec<_>>(), 31);
    let mut loader = Loader::new(&self::config(open(folder.path()), 2)).unwrap();
    let ids: Vec<_> = rest(&mut loader).into_iter().flat_map(|(ids, ..)| ids).collect();
    assert!(ids.len() == 29 && !ids.contains(&4), "{ids:?}");
    let bad = loader.bad_samples();
    assert!(
        matches!(&bad[0].error, SampleError::Values { feature, expected: 11, found: 10 } if feature == "boxes"),
        "{bad:?}"
    );
}

#[test]
fn what_packing_cannot_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), 40);
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(split.clone(), 2);
        change(&mut config);
        Loader::new(&config).expect_err("an error")
    };
    let excluded = |change: &dyn Fn(&mut Config)| match refused(change) {
        Error::Options(InvalidOptions::Excluded { part, other, .. }) => (part, other),
        error => panic!("{error}"),
    };
    assert_eq!(excluded(&|config| config.fields.push(Field::Record)), (Part::Tokens, Part::Record));
    assert_eq!(excluded(&|config| config.policy = Policy::Shard), (Part::ShardPolicy, Part::Tokens));
    assert!(refused(&|config| packing(config).padded.clear()).to_string().contains("tokens"));
    let text = refused(&|config| config.fields.push(Column::new("image/key").into())).to_string();
    assert!(text.contains("byte strings"), "{text}");
    assert!(refused(&|config| packing(config).feature = "none".to_owned()).to_string().contains("none"));
}

#[test]
fn shares_count_packed_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(split(folder.path(), 103), 4);
    config.replica = Replica::new(0, 3).unwrap();
    let shares = Loader::shares(&config).unwrap();
    let steps = Loader::new(&config).unwrap().len();
    assert!(shares.iter().all(|share| share.samples + share.padding == 4 * steps), "{shares:?}");
    assert!(shares.iter().all(|share| share.reads.bytes > 0), "{shares:?}");
}
