//! Arrays in a batch: crops, flips and rotations compared with element-wise indexing; bad samples; resuming.

use crate::arrays_dataset::{Stored, open, write};
use shardtool_decode::Pipeline;
use shardtool_format::Damage;
use shardtool_load::{ArrayProblem, Arrays, Batch, Config, Error, Field, Image, Loader, OnBad, SampleError};
use shardtool_order::{Order, Remainder, Replica, Rng};
use shardtool_read::{Access, Split};
use std::collections::HashSet;
use tempfile::TempDir;

/// A volume whose elements are their own offsets, plus the number of the sample.
pub(crate) fn volume(number: usize, shape: [i64; 3]) -> Stored {
    let elements: Vec<u16> = (0..shape.iter().product::<i64>() as u16).map(|at| at + 7 * number as u16).collect();
    let codec = if number.is_multiple_of(2) { "zstd" } else { "raw" };
    Stored::u16("ct", &shape, &[3, 4, 5], codec, &elements)
}

/// The label map of a volume: the elements of the volume modulo 251.
fn labels(of: &Stored) -> Stored {
    let data = of.data.as_chunks::<2>().0.iter().map(|element| (u16::from_le_bytes(*element) % 251) as u8).collect();
    Stored { feature: "seg", dtype: "u8", chunk: vec![8, 2, 9], codec: "zstd", data, ..of.clone() }
}

/// The shape of sample `number`.
fn shape(number: usize) -> [i64; 3] {
    [6 + (number % 3) as i64, 8, 5 + (number % 4) as i64]
}

/// Volumes of several shapes with their label maps.
fn volumes(samples: usize) -> (TempDir, Split) {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..samples).map(|n| volume(n, shape(n))).map(|v| vec![labels(&v), v]).collect();
    write(folder.path(), &["ct", "seg"], &samples, None);
    let split = open(folder.path(), Access::Mmap);
    (folder, split)
}

pub(crate) fn group(features: &[&str], size: &[Option<u64>]) -> Arrays {
    let mut group = Arrays::new(features.iter().map(|feature| (*feature).to_owned()).collect());
    group.crop = Some(size.to_vec());
    group
}

pub(crate) fn config(split: &Split, groups: Vec<Arrays>) -> Config {
    let mut config = Config::new(split.clone(), groups, 4);
    (config.remainder, config.workers, config.seed) = (Some(Remainder::Mask), Some(2), 11);
    config
}

/// The array of a batch as u16, by row.
pub(crate) fn rows(batch: &Batch, feature: &str) -> (Vec<usize>, Vec<Vec<u16>>) {
    let array = batch.arrays().find(|array| array.feature == feature).unwrap();
    assert_eq!(array.bytes.len(), array.shape.iter().product::<usize>() * array.dtype.bytes());
    assert_eq!(array.buffer.as_ptr().as_ptr().addr() % 64, 0);
    let elements: Vec<u16> = match array.dtype.bytes() {
        1 => array.bytes.iter().map(|byte| u16::from(*byte)).collect(),
        _ => array.bytes.as_chunks::<2>().0.iter().map(|element| u16::from_le_bytes(*element)).collect(),
    };
    let row = array.shape[1..].iter().product();
    (array.shape, elements.chunks(row).map(<[u16]>::to_vec).collect())
}

/// A volume of u16 with naive operations, each element by its index.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Naive {
    shape: [usize; 3],
    pub(crate) data: Vec<u16>,
}

impl Naive {
    pub(crate) fn from_fn(shape: [usize; 3], element: impl Fn([usize; 3]) -> u16) -> Self {
        let mut data = vec![];
        for i in 0..shape[0] {
            for j in 0..shape[1] {
                for k in 0..shape[2] {
                    data.push(element([i, j, k]));
                }
            }
        }
        Naive { shape, data }
    }

    fn get(&self, [i, j, k]: [usize; 3]) -> u16 {
        self.data[(i * self.shape[1] + j) * self.shape[2] + k]
    }

    fn of(number: usize) -> Self {
        let stored = volume(number, shape(number));
        let data = stored.data.as_chunks::<2>().0.iter().map(|element| u16::from_le_bytes(*element)).collect();
        Naive { shape: shape(number).map(|n| n as usize), data }
    }

    fn crop(&self, start: [usize; 3], size: [usize; 3]) -> Self {
        Naive::from_fn(size, |at| self.get([0, 1, 2].map(|d| start[d] + at[d])))
    }

    fn flip(&self, d: usize) -> Self {
        let mirrored = |mut at: [usize; 3]| {
            at[d] = self.shape[d] - 1 - at[d];
            at
        };
        Naive::from_fn(self.shape, |at| self.get(mirrored(at)))
    }

    /// `numpy.rot90(self, axes=(a, b))`, which numpy defines as a flip of `b`, then a transpose of `a` and `b`.
    fn rot90(&self, (a, b): (usize, usize)) -> Self {
        let flipped = self.flip(b);
        let mut shape = self.shape;
        shape.swap(a, b);
        Naive::from_fn(shape, |mut at| {
            at.swap(a, b);
            flipped.get(at)
        })
    }
}

#[test]
fn random_geometry_is_the_drawn_one() {
    const SIZE: [usize; 3] = [4, 5, 5];
    let (_folder, split) = volumes(24);
    let mut both = group(&["ct", "seg"], &SIZE.map(|n| Some(n as u64)));
    (both.flip, both.rotate90) = (vec![0.5, 0.0, 0.25], vec![(1, 2)]);
    let mut config = config(&split, vec![both]);
    config.order = Order::Shuffled;
    let mut loader = Loader::new(&config).unwrap();
    let (mut starts, mut flips, mut turns) = (HashSet::new(), HashSet::new(), HashSet::new());
    for epoch in 0..4 {
        while let Some(batch) = loader.next_batch().unwrap() {
            let ((shape, ct), (seg_shape, seg)) = (rows(&batch, "ct"), rows(&batch, "seg"));
            assert_eq!((&shape[..], &seg_shape[..]), (&[4, 4, 5, 5][..], &[4, 4, 5, 5][..]));
            for ((id, ct), seg) in batch.ids().iter().zip(&ct).zip(&seg) {
                let naive = Naive::of(*id as usize);
                // The streams as order-spec.md and docs/recipes.md state them.
                let step = |step| Rng::step(11, epoch, *id as u64, 1 << 32, step);
                let mut stream = step(0);
                let start = [0, 1, 2].map(|d| stream.below((naive.shape[d] - SIZE[d] + 1) as u32) as usize);
                let mut stream = step(1);
                let flipped = [0.5, 0.0, 0.25].map(|p| stream.next_f64() < p);
                let quarters = step(2).below(4);
                let mut expected = naive.crop(start, SIZE);
                (0..3).filter(|d| flipped[*d]).for_each(|d| expected = expected.flip(d));
                (0..quarters).for_each(|_| expected = expected.rot90((1, 2)));
                assert_eq!(&expected.data, ct, "sample {id} of epoch {epoch}");
                assert!(ct.iter().zip(seg).all(|(element, label)| element % 251 == *label), "one geometry for both");
                starts.insert(start);
                flips.insert(flipped);
                turns.insert(quarters);
            }
        }
    }
    assert_eq!((flips.len(), turns.len()), (4, 4));
    assert!(starts.len() > 20);
}

#[test]
fn a_group_changes_no_numbers_of_another() {
    let (_folder, split) = volumes(9);
    let first = group(&["ct"], &[Some(3); 3]);
    let mut second = group(&["seg"], &[Some(2); 3]);
    second.flip = vec![0.5; 3];
    let load = |groups: Vec<Arrays>, feature: &str| {
        let mut loader = Loader::new(&config(&split, groups)).unwrap();
        let batches = std::iter::from_fn(|| loader.next_batch().unwrap());
        batches.flat_map(|batch| rows(&batch, feature).1).collect::<Vec<_>>()
    };
    assert_eq!(load(vec![first.clone()], "ct"), load(vec![first.clone(), second.clone()], "ct"));
    let mut other = first.clone();
    other.rotate90 = vec![(0, 2)];
    assert_eq!(load(vec![first, second.clone()], "seg"), load(vec![other, second], "seg"));
}

#[test]
fn whole_arrays_and_centre_crops() {
    let (_folder, split) = volumes(1);
    let whole = Arrays::new(vec!["ct".to_owned()]);
    let mut centre = group(&["seg"], &[Some(3), None, Some(2)]);
    centre.random = false;
    let batch = Loader::new(&config(&split, vec![whole, centre])).unwrap().next_batch().unwrap().unwrap();
    let ((ct_shape, ct), (seg_shape, seg)) = (rows(&batch, "ct"), rows(&batch, "seg"));
    assert_eq!((ct_shape, seg_shape), (vec![4, 6, 8, 5], vec![4, 3, 8, 2]));
    let naive = Naive::of(0);
    assert_eq!(ct[0], naive.data);
    let expected: Vec<u16> = naive.crop([1, 0, 1], [3, 8, 2]).data.iter().map(|element| element % 251).collect();
    assert_eq!(seg[0], expected);
    // One sample in a batch of four.
    assert_eq!(batch.valid(), [true, false, false, false]);
    assert!(ct[1..].iter().chain(&seg[1..]).flatten().all(|element| *element == 0), "masked rows are zeros");
    assert_eq!(batch.columns().collect::<Vec<_>>(), ["image/class/label"]);
}

#[test]
fn smaller_arrays_are_padded_or_bad_samples() {
    let (_folder, split) = volumes(8);
    let mut padded = group(&["ct", "seg"], &[Some(9), Some(8), Some(7)]);
    padded.pad_value = Some(vec![60_000.0, 200.0]);
    let mut loader = Loader::new(&config(&split, vec![padded.clone()])).unwrap();
    while let Some(batch) = loader.next_batch().unwrap() {
        for ((id, ct), seg) in batch.ids().iter().zip(rows(&batch, "ct").1).zip(rows(&batch, "seg").1) {
            let naive = Naive::of(*id as usize);
            // In the middle; a dimension that is long enough is cropped.
            let before = |d: usize| [9, 8, 7][d].max(naive.shape[d]) - naive.shape[d];
            let start = Rng::step(11, 0, *id as u64, 1 << 32, 0);
            let mut stream = start;
            let start = [0, 1, 2].map(|d| stream.below((naive.shape[d] + 1 - naive.shape[d].min([9, 8, 7][d])) as u32));
            let element = |at: [usize; 3]| {
                let index = [0, 1, 2].map(|d| (at[d] + start[d] as usize).checked_sub(before(d) / 2));
                let inside = |d: usize| index[d].filter(|i| *i < naive.shape[d]);
                let index = inside(0).zip(inside(1)).zip(inside(2));
                index.map(|((i, j), k)| naive.get([i, j, k]))
            };
            assert_eq!(ct, Naive::from_fn([9, 8, 7], |at| element(at).unwrap_or(60_000)).data, "sample {id}");
            assert_eq!(seg, Naive::from_fn([9, 8, 7], |at| element(at).map_or(200, |v| v % 251)).data);
        }
    }
    padded.pad_value = None;
    let mut config = config(&split, vec![padded]);
    config.bad_samples.on_bad = Some(OnBad::Error);
    let error = Loader::new(&config).unwrap().next_batch().unwrap_err();
    let Error::BadSample(bad) = &error else { panic!("{error}") };
    assert!(matches!(&bad.error, SampleError::ArraySmall { feature, .. } if feature == "ct"), "{:?}", bad.error);
    assert!(bad.error.to_string().contains("smaller than the crop [9, 8, 7]"), "{}", bad.error);
    assert_eq!(bad.error.damage(), None);
}

#[test]
fn bad_samples_name_the_feature_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let good = volume(0, shape(0));
    let float = Stored { dtype: "f16", ..good.clone() };
    let flat = Stored { shape: vec![6, 40], chunk: vec![1, 9], ..good.clone() };
    let chunk = |bytes: &[u8]| Stored { damage: Some((1, bytes.to_vec())), ..good.clone() };
    let samples: Vec<Vec<Stored>> = vec![
        vec![good.clone()],
        vec![],
        vec![float],
        vec![volume(1, shape(1))],
        vec![flat],
        vec![chunk(b"garbage")],
        vec![Stored { codec: "raw", ..chunk(b"short") }],
        vec![good],
    ];
    write(folder.path(), &["ct"], &samples, None);
    let mut config = config(&open(folder.path(), Access::Mmap), vec![Arrays::new(vec!["ct".to_owned()])]);
    (config.order, config.bad_samples.on_bad, config.batch_size) = (Order::Sequential, Some(OnBad::Mask), 8);
    let mut loader = Loader::new(&config).unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    assert_eq!(batch.ids(), [0, -1, -1, -1, -1, -1, -1, 7]);
    let (_, ct) = rows(&batch, "ct");
    assert_eq!((&ct[0], &ct[7]), (&Naive::of(0).data, &Naive::of(0).data));
    assert!(ct[1..7].iter().flatten().all(|element| *element == 0));
    let mut bad = loader.bad_samples();
    bad.sort_by_key(|bad| bad.id);
    let found: Vec<_> = bad.iter().map(|bad| (&bad.error, bad.error.damage())).collect();
    assert!(matches!(found[0], (SampleError::NoArray { feature }, None) if feature == "ct"), "{found:?}");
    assert!(matches!(found[1], (SampleError::ArrayDtype { expected: "u16", found: "f16", .. }, None)));
    assert!(found[2].0.to_string().contains("shape [7, 8, 6], but rows hold [6, 8, 5]"), "{}", found[2].0);
    assert!(matches!(found[3], (SampleError::ArrayShape { .. }, None)));
    assert!(matches!(found[4], (SampleError::Array { .. }, Some(Damage::ImageDecode))));
    assert!(matches!(found[5], (SampleError::Array { .. }, Some(Damage::PixelsLength))));
}

#[test]
fn a_crop_needs_no_chunk_that_it_does_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = Stored { damage: Some((7, b"garbage".to_vec())), ..volume(0, [6, 8, 10]) };
    write(folder.path(), &["ct"], &[vec![damaged]], None);
    let split = open(folder.path(), Access::Mmap);
    // Chunk 7 of 2 × 2 × 2 is the last one: it begins at (3, 4, 5), and the crop in the middle of 2 × 2 × 10 ends there.
    let mut centre = group(&["ct"], &[Some(2), Some(2), None]);
    centre.random = false;
    let mut config = config(&split, vec![centre]);
    config.batch_size = 1;
    config.bad_samples.on_bad = Some(OnBad::Error);
    assert!(Loader::new(&config).unwrap().next_batch().is_err(), "from 2 to 4, it meets all");
    let Field::Arrays(arrays) = &mut config.fields[0] else { unreachable!() };
    arrays.crop = Some(vec![None, Some(8), Some(1)]);
    let batch = Loader::new(&config).unwrap().next_batch().unwrap().unwrap();
    assert_eq!(rows(&batch, "ct").1[0].len(), 48, "index 4 of the last dimension lies in the even chunks");
}

#[test]
fn refuses_contradictions_at_the_start() {
    let (_folder, split) = volumes(3);
    let refused = |change: &dyn Fn(&mut Arrays)| {
        let mut group = group(&["ct"], &[Some(4), Some(3), Some(3)]);
        change(&mut group);
        match Loader::new(&config(&split, vec![group])).map(drop) {
            Err(Error::Array { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let size = |size: &[Option<u64>]| Some(size.to_vec());
    let dimensions = |option, found| ArrayProblem::Dimensions { option, found, dimensions: 3 };
    assert_eq!(refused(&|g| g.crop = size(&[Some(3)])), dimensions("crop", 1));
    assert_eq!(refused(&|g| g.flip = vec![0.5]), dimensions("flip", 1));
    assert_eq!(refused(&|g| g.crop = size(&[None, Some(0), None])), ArrayProblem::Empty { dimension: 1 });
    assert_eq!(refused(&|g| g.flip = vec![0.0, 0.0, 1.5]), ArrayProblem::Probability { dimension: 2, found: 1.5 });
    assert_eq!(refused(&|g| g.rotate90 = vec![(0, 1)]), ArrayProblem::Sides { plane: (0, 1), lengths: (4, 3) });
    assert_eq!(refused(&|g| g.rotate90 = vec![(1, 3)]), ArrayProblem::Plane { plane: (1, 3), dimensions: 3 });
    assert_eq!(refused(&|g| g.rotate90 = vec![(1, 1)]), ArrayProblem::Plane { plane: (1, 1), dimensions: 3 });
    assert_eq!(refused(&|g| g.pad_value = Some(vec![])), ArrayProblem::PadCount { found: 0, features: 1 });
    assert_eq!(refused(&|g| g.pad_value = Some(vec![-1.0])), ArrayProblem::Pad { value: -1.0, dtype: "u16" });
    assert_eq!(refused(&|g| (g.crop, g.pad_value) = (None, Some(vec![0.0]))), ArrayProblem::PadWithoutCrop);
    assert_eq!(refused(&|g| g.features.push("ct".to_owned())), ArrayProblem::Repeated);
    let huge = refused(&|g| g.crop = size(&[Some(u64::MAX), Some(2), Some(2)]));
    assert!(matches!(huge, ArrayProblem::TooLarge { .. }));
    let missing = group(&["mr"], &[None; 3]);
    assert!(matches!(Loader::new(&config(&split, vec![missing])).map(drop), Err(Error::NoFeature { .. })));
    let list = group(&["ct/dtype"], &[None; 3]);
    let error = Loader::new(&config(&split, vec![list])).map(drop).unwrap_err();
    assert!(matches!(error, Error::FirstArrays { .. }), "{error}");
}

#[test]
fn resume_yields_same_arrays_for_any_number_of_workers() {
    let (_folder, split) = volumes(13);
    let mut both = group(&["ct", "seg"], &[Some(3); 3]);
    (both.flip, both.rotate90) = (vec![0.5; 3], vec![(0, 1), (1, 2)]);
    let mut config = config(&split, vec![both]);
    config.remainder = Some(Remainder::Pad);
    let start = |workers| {
        let mut config = config.clone();
        config.workers = Some(workers);
        Loader::new(&config).unwrap()
    };
    let next = |loader: &mut Loader| loop {
        if let Some(batch) = loader.next_batch().unwrap() {
            return (rows(&batch, "ct"), rows(&batch, "seg"), batch.ids().to_vec());
        }
    };
    let mut loader = start(1);
    let mut states = vec![];
    let batches: Vec<_> = (0..12)
        .map(|_| {
            states.push(loader.state());
            next(&mut loader)
        })
        .collect();
    for (step, state) in states.iter().enumerate() {
        let mut resumed = start(1 + step % 3);
        resumed.load_state(state).unwrap();
        (step..12.min(step + 3)).for_each(|at| assert_eq!(next(&mut resumed), batches[at], "from step {step}"));
    }
    assert_ne!(batches[0].0, batches[4].0);
    // Two replicas in one process get the rows of one twice as large.
    let mut double = config.clone();
    double.batch_size = 8;
    let whole = next(&mut Loader::new(&double).unwrap());
    config.replica = Replica::new(0, 2).unwrap();
    let parts: Vec<_> = Loader::group(&config, &[0, 1]).unwrap().iter_mut().map(next).collect();
    assert_eq!([&parts[0].0.1[..], &parts[1].0.1[..]].concat(), whole.0.1);
}

#[test]
fn arrays_accompany_images_and_records() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..5).map(|n| vec![volume(n, [6, 8, 5])]).collect();
    let image = crate::dataset::jpeg(1, 40, 30);
    write(folder.path(), &["ct"], &samples, Some(&image));
    for access in [Access::Mmap, Access::Pread] {
        let split = open(folder.path(), access);
        for field in [Field::from(Image::new(Pipeline::eval(32, 32).unwrap())), Field::Record] {
            let mut config = config(&split, vec![group(&["ct"], &[Some(3), None, Some(5)])]).with(field);
            config.order = Order::Sequential;
            let batch = Loader::new(&config).unwrap().next_batch().unwrap().unwrap();
            assert_eq!(batch.images().is_some(), batch.records().is_empty());
            let (shape, ct) = rows(&batch, "ct");
            assert_eq!(shape, [4, 3, 8, 5]);
            for (id, ct) in (0..4).zip(ct) {
                let start = Rng::step(11, 0, id, 1 << 32, 0).below(4) as usize;
                let stored = volume(id as usize, [6, 8, 5]);
                let elements = stored.data.as_chunks::<2>().0[40 * start..][..120].iter();
                assert_eq!(ct, elements.map(|element| u16::from_le_bytes(*element)).collect::<Vec<_>>());
            }
        }
    }
}
