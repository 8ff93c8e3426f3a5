//! Batches of one shape, from images of many aspect ratios or samples of many lengths.

use crate::dataset::{self, Sample};
use crate::samples::numbers;
use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_load::{
    AspectRatioBuckets, Buckets, Column, Config, Error, Image, InvalidOptions, LengthBuckets, Loader, OnBad, Part,
    Values, View,
};
use shardtool_order::{List, Order, Policy, Remainder, Replica, ResumeState, Shape, Source, Weighted};
use shardtool_read::{Dataset, Split};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

/// Height and width of each bucket.
const SHAPES: [(u32, u32); 3] = [(16, 32), (24, 24), (32, 16)];

/// Width and height of the photograph with this number.
fn size(number: u64) -> (u32, u32) {
    [(80, 40), (41, 40), (30, 66), (64, 40), (37, 50)][(number * 7 % 11 % 5) as usize]
}

/// The shape whose logarithm of the aspect ratio is nearest.
fn nearest((width, height): (u32, u32)) -> (u32, u32) {
    let ratio = |w: u32, h: u32| (f64::from(w) / f64::from(h)).ln();
    let distance = |&(h, w): &(u32, u32)| (ratio(w, h) - ratio(width, height)).abs();
    SHAPES.into_iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap()
}

fn photographs(folder: &Path, n: u64) -> Split {
    let sample = |i: u64| {
        let image = Some((dataset::jpeg(i, size(i).0, size(i).1), size(i)));
        Sample { key: format!("{i}"), image, label: 0, boxes: vec![], mask: vec![] }
    };
    dataset::write(folder, "train", &(0..n).map(sample).collect::<Vec<_>>(), 10);
    open(folder)
}

fn open(folder: &Path) -> Split {
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn steps((height, width): (u32, u32)) -> Pipeline {
    let crop = Transform::RandomResizedCrop {
        size: [height, width],
        scale: [0.5, 1.0],
        ratio: [0.9, 1.1],
        interpolation: Filter::Bilinear,
    };
    Pipeline::new(vec![crop, Transform::HorizontalFlip { p: 0.5 }]).unwrap()
}

fn buckets() -> AspectRatioBuckets {
    let side = |n| NonZeroU32::new(n).unwrap();
    AspectRatioBuckets::new(SHAPES.map(|shape| ((side(shape.0), side(shape.1)), steps(shape))))
}

/// As [`buckets`], with at most `max_pixels` in a batch.
fn limited(max_pixels: u64) -> Option<Buckets> {
    let mut buckets = buckets();
    buckets.max_pixels = Some(max_pixels);
    Some(buckets.into())
}

fn config(split: Split, batch: u32) -> Config {
    let mut config = Config::new(split, [Image::new(steps(SHAPES[0]))], batch);
    config.buckets = Some(buckets().into());
    (config.seed, config.remainder, config.workers) = (5, Some(Remainder::Mask), Some(2));
    config
}

/// Ids, shape and pixels of a batch, and the state after it.
type Delivered = (Vec<i64>, Vec<usize>, Vec<u8>, ResumeState);

/// Returns the batches that are left of an epoch.
fn rest(loader: &mut Loader) -> Vec<Delivered> {
    let mut batches = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        let shape = batch.image_shape().unwrap().to_vec();
        batches.push((batch.ids().to_vec(), shape, batch.images().unwrap().to_vec(), batch.state_after()));
    }
    batches
}

#[test]
fn every_image_is_delivered_once_in_the_shape_of_its_aspect_ratio() {
    let folder = tempfile::tempdir().unwrap();
    let split = photographs(folder.path(), 103);
    // Each image as a loader of one shape makes it, by shape and id.
    let mut alone = BTreeMap::new();
    for shape in SHAPES {
        let mut config = config(split.clone(), 103);
        (config.fields, config.buckets) = (vec![Image::new(steps(shape)).into()], None);
        let batch = Loader::new(&config).unwrap().next_batch().unwrap().unwrap();
        let bytes = batch.images().unwrap().chunks((3 * shape.0 * shape.1) as usize);
        batch.ids().iter().zip(bytes).for_each(|(id, image)| drop(alone.insert((shape, *id), image.to_vec())));
    }
    let mut loader = Loader::new(&config(split, 4)).unwrap();
    let batches = rest(&mut loader);
    assert_eq!(batches.len() as u64, loader.len());
    let mut seen: Vec<i64> = vec![];
    for (ids, shape, pixels, _) in &batches {
        let [rows, height, width, 3] = shape[..] else { panic!("{shape:?}") };
        assert_eq!((rows, ids.len(), pixels.len()), (4, 4, rows * height * width * 3));
        let shape = (height as u32, width as u32);
        for (id, image) in ids.iter().zip(pixels.chunks(height * width * 3)) {
            match id {
                -1 => assert!(image.iter().all(|x| *x == 0)),
                id => {
                    assert_eq!(nearest(size(*id as u64)), shape, "sample {id}");
                    assert!(alone[&(shape, *id)] == image, "sample {id}");
                }
            }
        }
        seen.extend(ids.iter().filter(|id| **id >= 0));
    }
    // Shapes are mixed, and so are their images.
    let heights: Vec<_> = batches.iter().map(|(_, shape, ..)| shape[1]).collect();
    assert!(!heights.is_sorted() && !seen.is_sorted(), "{heights:?}");
    seen.sort_unstable();
    assert_eq!(seen, (0..103).collect::<Vec<_>>());
    assert_ne!(rest(&mut loader)[0].0, batches[0].0, "the next epoch has another order");
}

#[test]
fn a_budget_gives_small_shapes_more_rows() {
    let folder = tempfile::tempdir().unwrap();
    let split = photographs(folder.path(), 100);
    let mut config = config(split, 5);
    // 512 pixels three times; 576 twice.
    config.buckets = limited(512 * 3);
    let rows = |config: &Config| {
        let batches = rest(&mut Loader::new(config).unwrap());
        batches.iter().map(|(.., shape, _, _)| (shape[1], shape[0])).collect::<BTreeMap<_, _>>()
    };
    assert_eq!(rows(&config), BTreeMap::from([(16, 3), (24, 2), (32, 3)]));
    config.buckets = limited(100_000);
    assert_eq!(rows(&config), BTreeMap::from([(16, 5), (24, 5), (32, 5)]), "at most `batch_size`");
}

/// Batches of all replicas in the order of the steps.
fn all(split: &Split, world: u32, workers: usize, state: Option<&ResumeState>) -> Vec<Delivered> {
    let mut config = config(split.clone(), 3);
    (config.replica, config.workers) = (Replica::new(0, world).unwrap(), Some(workers));
    let mut group = Loader::group(&config, &(0..world).collect::<Vec<_>>()).unwrap();
    group.iter_mut().for_each(|loader| state.map_or((), |state| loader.load_state(state).unwrap()));
    let mut ranks: Vec<_> = group.iter_mut().map(|loader| rest(loader).into_iter()).collect();
    assert!(ranks.iter().all(|rank| rank.len() == ranks[0].len()), "replicas make the same number of steps");
    (0..ranks[0].len()).flat_map(|_| ranks.iter_mut().map(|rank| rank.next().unwrap()).collect::<Vec<_>>()).collect()
}

#[test]
fn a_run_resumes_at_every_step_with_other_workers_and_replicas() {
    let folder = tempfile::tempdir().unwrap();
    let split = photographs(folder.path(), 100);
    let whole = all(&split, 1, 2, None);
    for done in 1..whole.len() {
        let resumed = all(&split, 1, 3, Some(&whole[done - 1].3));
        assert!(resumed.iter().eq(&whole[done..]), "after {done} steps");
    }
    // With other replicas, the same batches are distributed. A last one may be added, whose rows are masked.
    let content = |batches: &[Delivered]| {
        let images = batches.iter().map(|(ids, _, pixels, _)| (ids.clone(), pixels.clone()));
        images.filter(|(ids, _)| ids.iter().any(|id| *id >= 0)).collect::<Vec<_>>()
    };
    for (world, done) in [(2, 0), (3, 0), (2, 6), (3, 6), (5, 13)] {
        let state = (done > 0).then(|| &whole[done - 1].3);
        assert!(
            content(&all(&split, world, 2, state)) == content(&whole[done..]),
            "{world} replicas after {done} steps"
        );
    }
    let two = all(&split, 2, 2, None);
    assert!(content(&all(&split, 3, 2, Some(&two[7].3))) == content(&whole[8..]), "from two replicas to three");
    // Other buckets are another order.
    let mut other = config(split, 4);
    let error = Loader::new(&other).unwrap().load_state(&whole[3].3).unwrap_err();
    assert!(matches!(error, Error::Order(shardtool_order::Error::StateBatching { .. })), "{error}");
    other.buckets = None;
    assert!(Loader::new(&other).unwrap().load_state(&whole[3].3).is_err());
}

#[test]
fn a_bad_sample_is_replaced_by_one_of_its_shape() {
    let folder = tempfile::tempdir().unwrap();
    let split = photographs(folder.path(), 40);
    let bad: Vec<u64> = vec![2, 13, 27];
    for id in &bad {
        let shard = (id / 10) as usize;
        let frame = split.shard(shard).unwrap().frame(id % 10).unwrap();
        let path = folder.path().join(format!("train-{shard:05}.tfrecord"));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(frame.start + frame.end) as usize / 2] ^= 4;
        std::fs::write(path, bytes).unwrap();
    }
    let mut config = config(open(folder.path()), 3);
    config.bad_samples.on_bad = Some(OnBad::Substitute);
    let mut loader = Loader::new(&config).unwrap();
    for (ids, shape, ..) in rest(&mut loader) {
        let shape = (shape[1] as u32, shape[2] as u32);
        let present = ids.iter().filter(|id| **id >= 0);
        assert!(present.clone().all(|id| nearest(size(*id as u64)) == shape && !bad.contains(&(*id as u64))));
    }
    assert_eq!(loader.bad_samples().len(), bad.len());
}

#[test]
fn samples_of_similar_lengths_share_a_batch() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> =
        numbers(60).into_iter().map(|s| Sample { boxes: vec![0.5; s.label as usize + 1], ..s }).collect();
    dataset::write(folder.path(), "train", &samples, 7);
    let mut config = Config::new(open(folder.path()), ["boxes", "image/class/label"].map(Column::new), 6);
    // The label is one less than the number of boxes.
    let by = |bounds: &[u32]| LengthBuckets::new("image/class/label", bounds.to_vec());
    let mut at_most = by(&[1, 2, 4]);
    at_most.max_tokens = Some(8);
    (config.buckets, config.remainder) = (Some(at_most.into()), Some(Remainder::Mask));
    let mut loader = Loader::new(&config).unwrap();
    let mut counts = BTreeMap::new();
    while let Some(batch) = loader.next_batch().unwrap() {
        let bucket = batch.bucket().unwrap();
        let Shape::Length(bound) = bucket.shape else { panic!("{bucket:?}") };
        assert_eq!((batch.len(), batch.row_length()), (bucket.batch.get() as usize, Some(bound.get() as usize)));
        assert_eq!(bucket.batch.get(), (8 / bound.get()).min(6));
        let Some(Values::Int64(labels)) = batch.column("image/class/label") else { panic!("labels") };
        for label in labels.iter().filter(|label| **label >= 0) {
            let smallest = [1, 2, 4].into_iter().find(|bound| bound >= label).unwrap();
            assert_eq!(i64::from(bound.get()), smallest);
            *counts.entry(*label).or_insert(0) += 1;
        }
    }
    assert_eq!(counts, (0..5).map(|label| (label, 12)).collect());
    config.buckets = Some(by(&[1, 2]).into());
    let error = Loader::new(&config).err().unwrap();
    assert!(matches!(error, Error::Order(shardtool_order::Error::LongSample { count: 24, .. })), "{error}");
    // Samples that are not in the source may be longer.
    let short: Vec<u64> = (0..60).filter(|id| id % 5 <= 2).rev().collect();
    config.source = Some(Source::List(List::new(short.clone(), 60).unwrap()));
    let mut loader = Loader::new(&config).unwrap();
    let mut seen = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        let (Some(Shape::Length(bound)), Some(Values::Int64(labels))) =
            (batch.bucket().map(|bucket| bucket.shape), batch.column("image/class/label"))
        else {
            panic!("a bucket and labels")
        };
        assert!(
            labels
                .iter()
                .all(|label| *label <= bound.get().into() && (*label == 2) == (bound.get() == 2) || *label < 0)
        );
        seen.extend(batch.ids().iter().filter(|id| **id >= 0).map(|id| *id as u64));
    }
    seen.sort_unstable();
    assert_eq!(seen, short.into_iter().rev().collect::<Vec<_>>());
    config.source = Some(Source::Weighted(Weighted::new(vec![1; 60], Some(1 << 40)).unwrap()));
    let error = Loader::new(&config).err().unwrap();
    assert!(error.to_string().contains("weighted"), "{error}");
    config.source = None;
    config.buckets = Some(LengthBuckets::new("boxes", vec![4]).into());
    let error = Loader::new(&config).err().unwrap();
    assert!(matches!(error, Error::NoIndexColumn { .. }), "{error}");
}

#[test]
fn shares_count_the_rows_of_every_replica() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(photographs(folder.path(), 103), 4);
    config.replica = Replica::new(0, 3).unwrap();
    let shares = Loader::shares(&config).unwrap();
    assert_eq!(shares.iter().map(|share| share.samples).sum::<u64>(), 103);
    let steps = Loader::new(&config).unwrap().len();
    assert!(shares.iter().all(|share| share.samples + share.padding == 4 * steps), "{shares:?}");
}

#[test]
fn what_buckets_cannot_do_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let split = photographs(folder.path(), 20);
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(split.clone(), 2);
        change(&mut config);
        Loader::new(&config).expect_err("an error")
    };
    let another = |config: &mut Config| {
        let mut buckets = buckets();
        buckets.steps[1] = steps((24, 25));
        config.buckets = Some(buckets.into());
    };
    let message = refused(&another).to_string();
    assert!(message.contains("bucket 1") && message.contains("25 x 24") && message.contains("24 x 24"), "{message}");
    let views = |name: &str| View::new(name, steps(SHAPES[0]));
    let two = Image::with_views(vec![views("a"), views("b")]);
    let run = NonZeroU32::MIN;
    let excluding = |part: Part, change: &dyn Fn(&mut Config)| match refused(change) {
        Error::Options(InvalidOptions::Excluded { part: found, other, .. }) => {
            assert_eq!((found, other), (part, Part::AspectRatioBuckets));
        }
        error => panic!("{error}"),
    };
    excluding(Part::SeveralViews, &|config| config.fields = vec![two.clone().into()]);
    excluding(Part::Interleaved, &|config| config.order = Order::Interleaved { run, window: run });
    excluding(Part::ShardPolicy, &|config| config.policy = Policy::Shard);
}
