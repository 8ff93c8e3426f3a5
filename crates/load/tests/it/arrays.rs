//! Arrays in a batch: crops, flips and rotations compared with element-wise indexing; bad samples; resuming.

use crate::arrays_dataset::{Stored, open, write};
use shardtool_decode::Pipeline;
use shardtool_format::Damage;
use shardtool_load::{
    ArrayCrop, ArrayGroup, ArrayProblem, Batch, Config, Content, Error, Images, Loader, OnBad, SampleError,
};
use shardtool_order::{Order, Remainder, Replica, Rng};
use shardtool_read::{Access, Split};
use std::collections::HashSet;
use tempfile::TempDir;

/// A volume whose elements are their own offsets, plus the number of the sample.
fn volume(number: usize, shape: [i64; 3]) -> Stored {
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

fn group(features: &[&str], size: &[Option<u64>]) -> ArrayGroup {
    let mut group = ArrayGroup::new(features.iter().map(|feature| (*feature).to_owned()).collect());
    group.crop = Some(ArrayCrop { size: size.to_vec(), random: true });
    group
}

fn config(split: &Split, groups: Vec<ArrayGroup>) -> Config {
    let mut config = Config::new(split.clone(), Content::Columns, 4);
    (config.arrays, config.remainder, config.workers, config.seed) = (groups, Some(Remainder::Mask), Some(2), 11);
    config
}

/// The array of a batch as u16, by row.
fn rows(batch: &Batch, feature: &str) -> (Vec<usize>, Vec<Vec<u16>>) {
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
struct Naive {
    shape: [usize; 3],
    data: Vec<u16>,
}

impl Naive {
    fn from_fn(shape: [usize; 3], element: impl Fn([usize; 3]) -> u16) -> Self {
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
    (both.flip, both.rotate) = (vec![0.5, 0.0, 0.25], vec![(1, 2)]);
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
    let load = |groups: Vec<ArrayGroup>, feature: &str| {
        let mut loader = Loader::new(&config(&split, groups)).unwrap();
        let batches = std::iter::from_fn(|| loader.next_batch().unwrap());
        batches.flat_map(|batch| rows(&batch, feature).1).collect::<Vec<_>>()
    };
    assert_eq!(load(vec![first.clone()], "ct"), load(vec![first.clone(), second.clone()], "ct"));
    let mut other = first.clone();
    other.rotate = vec![(0, 2)];
    assert_eq!(load(vec![first, second.clone()], "seg"), load(vec![other, second], "seg"));
}

#[test]
fn whole_arrays_and_centre_crops() {
    let (_folder, split) = volumes(1);
    let whole = ArrayGroup::new(vec!["ct".to_owned()]);
    let mut centre = group(&["seg"], &[Some(3), None, Some(2)]);
    centre.crop.as_mut().unwrap().random = false;
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
    padded.pad = Some(vec![60_000.0, 200.0]);
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
    padded.pad = None;
    let mut config = config(&split, vec![padded]);
    config.on_bad = Some(OnBad::Error);
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
    let mut config = config(&open(folder.path(), Access::Mmap), vec![ArrayGroup::new(vec!["ct".to_owned()])]);
    (config.order, config.on_bad, config.batch) = (Order::Sequential, Some(OnBad::Mask), 8);
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
    centre.crop.as_mut().unwrap().random = false;
    let mut config = config(&split, vec![centre]);
    config.batch = 1;
    config.on_bad = Some(OnBad::Error);
    assert!(Loader::new(&config).unwrap().next_batch().is_err(), "from 2 to 4, it meets all");
    config.arrays[0].crop.as_mut().unwrap().size = vec![None, Some(8), Some(1)];
    let batch = Loader::new(&config).unwrap().next_batch().unwrap().unwrap();
    assert_eq!(rows(&batch, "ct").1[0].len(), 48, "index 4 of the last dimension lies in the even chunks");
}

#[test]
fn refuses_contradictions_at_the_start() {
    let (_folder, split) = volumes(3);
    let refused = |change: &dyn Fn(&mut ArrayGroup)| {
        let mut group = group(&["ct"], &[Some(4), Some(3), Some(3)]);
        change(&mut group);
        match Loader::new(&config(&split, vec![group])).map(drop) {
            Err(Error::Array { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let size = |size: &[Option<u64>]| Some(ArrayCrop { size: size.to_vec(), random: true });
    let dimensions = |option, found| ArrayProblem::Dimensions { option, found, dimensions: 3 };
    assert_eq!(refused(&|g| g.crop = size(&[Some(3)])), dimensions("crop", 1));
    assert_eq!(refused(&|g| g.flip = vec![0.5]), dimensions("flip", 1));
    assert_eq!(refused(&|g| g.crop = size(&[None, Some(0), None])), ArrayProblem::Empty { dimension: 1 });
    assert_eq!(refused(&|g| g.flip = vec![0.0, 0.0, 1.5]), ArrayProblem::Probability { dimension: 2, found: 1.5 });
    assert_eq!(refused(&|g| g.rotate = vec![(0, 1)]), ArrayProblem::Sides { plane: (0, 1), lengths: (4, 3) });
    assert_eq!(refused(&|g| g.rotate = vec![(1, 3)]), ArrayProblem::Plane { plane: (1, 3), dimensions: 3 });
    assert_eq!(refused(&|g| g.rotate = vec![(1, 1)]), ArrayProblem::Plane { plane: (1, 1), dimensions: 3 });
    assert_eq!(refused(&|g| g.pad = Some(vec![])), ArrayProblem::PadCount { found: 0, features: 1 });
    assert_eq!(refused(&|g| g.pad = Some(vec![-1.0])), ArrayProblem::Pad { value: -1.0, dtype: "u16" });
    assert_eq!(refused(&|g| (g.crop, g.pad) = (None, Some(vec![0.0]))), ArrayProblem::PadWithoutCrop);
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
    (both.flip, both.rotate) = (vec![0.5; 3], vec![(0, 1), (1, 2)]);
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
    double.batch = 8;
    let whole = next(&mut Loader::new(&double).unwrap());
    config.replica = Replica::new(0, 2).unwrap();
    let parts: Vec<_> = Loader::group(&config, &[0, 1]).unwrap().iter_mut().map(next).collect();
    assert_eq!([&parts[0].0.1[..], &parts[1].0.1[..]].concat(), whole.0.1);
}

/// Three volumes of more than a mebibyte each, of 27 chunks.
fn large(folder: &std::path::Path) -> Vec<Stored> {
    let elements = |n: u32| -> Vec<u16> { (0..96 * 96 * 96).map(|at: u32| ((at * 7 + n) % 65_521) as u16).collect() };
    let codecs = ["zstd", "raw", "raw"].into_iter().zip(0..);
    let stored = codecs.map(|(codec, n)| Stored::u16("ct", &[96; 3], &[32; 3], codec, &elements(n)));
    let stored: Vec<_> = stored.collect();
    write(folder, &["ct"], &stored.iter().map(|ct| vec![ct.clone()]).collect::<Vec<_>>(), None);
    stored
}

/// Inverts a byte of a record's data in its shard's file.
fn invert(split: &Split, id: u64, offset: u64) {
    let (shard, row) = split.locate(id).unwrap();
    let path = split.shard_path(shard);
    let at = split.shard(shard).unwrap().frame(row).unwrap().start + 12 + offset;
    let mut file = std::fs::read(&path).unwrap();
    file[at as usize] ^= 0xff;
    // Another file, since the first one is mapped.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, file).unwrap();
}

#[test]
fn a_record_is_checked_without_its_chunks() {
    let folder = tempfile::tempdir().unwrap();
    large(folder.path());
    let open = || open(folder.path(), Access::Mmap);
    let record = |split: &Split| {
        let (shard, row) = split.locate(1).unwrap();
        split.shard(shard).unwrap().record_without_values(row, &["ct", "absent"])
    };
    let chunks = |record: &shardtool_read::Record| -> Vec<Vec<u8>> {
        let example = record.example().unwrap();
        let Some(shardtool_format::example::Feature::Bytes(list)) = example.get("ct") else { panic!("no chunks") };
        list.iter().map(<[u8]>::to_vec).collect()
    };
    let check = |record: &shardtool_read::Record, number: usize| {
        let example = record.example().unwrap();
        let Some(shardtool_format::example::Feature::Bytes(list)) = example.get("ct") else { panic!("no chunks") };
        record.check_value("ct", number as u64, list.iter().nth(number).unwrap())
    };
    let split = open();
    let whole = record(&split).unwrap();
    let size: usize = chunks(&whole).iter().map(Vec::len).sum();
    assert_eq!((chunks(&whole).len(), whole.unread_bytes()), (27, size as u64));
    assert!((0..27).all(|number| check(&whole, number).is_ok()));
    assert!(whole.check_value("ct", 3, &whole.data()[..10]).is_err(), "other bytes than the index says");
    let (shard, row) = split.locate(1).unwrap();
    let ranges = split.shard(shard).unwrap().value_ranges(row, "ct").unwrap().unwrap();
    invert(&split, 1, u64::from(ranges[5].offset) + 100);
    let split = open();
    assert_eq!(split.get(1).unwrap_err().damage(), Some(Damage::DataCrc));
    let damaged = record(&split).unwrap();
    for number in 0..27 {
        let damage = check(&damaged, number).err().and_then(|error| error.damage());
        assert_eq!(damage, (number == 5).then_some(Damage::DataCrc), "chunk {number}");
    }
    // A byte between the chunks and one after them: the layout.
    for offset in [ranges[9].offset - 1, ranges[26].offset + ranges[26].length + 9] {
        invert(&split, 1, offset.into());
        assert_eq!(record(&open()).unwrap_err().damage(), Some(Damage::DataCrc));
        invert(&split, 1, offset.into());
    }
}

#[test]
fn a_crop_reads_only_its_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let stored = large(folder.path());
    let split = open(folder.path(), Access::Mmap);
    let (shard, row) = split.locate(2).unwrap();
    // The chunk in the middle of sample 2.
    let range = split.shard(shard).unwrap().value_ranges(row, "ct").unwrap().unwrap()[13];
    invert(&split, 2, range.offset.into());
    let mut loaded = vec![];
    for access in [Access::Mmap, Access::Pread] {
        let mut config = config(&open(folder.path(), access), vec![group(&["ct"], &[Some(20); 3])]);
        (config.order, config.on_bad, config.batch) = (Order::Sequential, Some(OnBad::Mask), 3);
        let mut loader = Loader::new(&config).unwrap();
        let (mut good, mut bad) = (0, 0);
        for epoch in 0..30 {
            let batch = loader.next_batch().unwrap().unwrap();
            let (_, ct) = rows(&batch, "ct");
            for (id, ct) in (0..3).zip(ct) {
                let mut stream = Rng::step(11, epoch, id, 1 << 32, 0);
                let start = [0; 3].map(|_| stream.below(77) as usize);
                let meets = start.iter().all(|start| *start < 64 && start + 20 > 32);
                // Reading the whole record finds the damage in any case.
                let is_bad = id == 2 && (meets || access == Access::Pread);
                assert_eq!(batch.valid()[id as usize], !is_bad, "sample {id} at {start:?}");
                *(if is_bad { &mut bad } else { &mut good }) += 1;
                let data = stored[id as usize].data.as_chunks::<2>().0;
                let element = |at: [usize; 3]| {
                    let [i, j, k] = [0, 1, 2].map(|d| start[d] + at[d]);
                    if is_bad { 0 } else { u16::from_le_bytes(data[(i * 96 + j) * 96 + k]) }
                };
                assert_eq!(ct, Naive::from_fn([20; 3], element).data);
            }
            assert!(loader.next_batch().unwrap().is_none());
        }
        assert!(good >= 60 && bad > 5, "{good} good, {bad} bad");
        let damage = loader.bad_samples()[0].error.damage();
        assert_eq!(damage, Some(Damage::DataCrc));
        loaded.push(loader.stats().bytes);
    }
    assert!(loaded[0] * 3 < loaded[1], "{loaded:?} bytes");
}

/// Records with right CRCs and anything inside: each costs its own sample at most, and memory stays within the budget.
#[test]
fn hostile_arrays_cost_one_sample_each() {
    use shardtool_format::example::{Column, encode};
    use shardtool_format::{checksum::crc32c, frame};
    let good = volume(0, [6, 8, 10]);
    let layout = shardtool_format::array::ArrayLayout::new(&good.shape, &good.chunk, b"u16", b"zstd").unwrap();
    let chunks = shardtool_decode::encode_array(&layout, &good.data, 3).unwrap();
    let record = |shape: &[i64], chunk: &[i64], dtype: &[u8], codec: &[u8], chunks: &[&[u8]]| {
        let (mut data, dtype, codec) = (vec![], [dtype], [codec]);
        let mut features = vec![
            ("ct", Column::Bytes(chunks)),
            ("ct/shape", Column::Int64(shape)),
            ("ct/chunk", Column::Int64(chunk)),
            ("ct/dtype", Column::Bytes(&dtype)),
            ("ct/codec", Column::Bytes(&codec)),
        ];
        encode(&mut features, &mut data);
        data
    };
    let slices: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
    let whole = record(&good.shape, &good.chunk, b"u16", b"zstd", &slices);
    // One byte of zeros, 2^28 times: a frame of few bytes whose content fits the shape.
    let bomb = zstd_of_zeros(1 << 28);
    let mut records = vec![
        whole.clone(),
        record(&[i64::MAX, 8, 10], &[3, 4, 5], b"u16", b"zstd", &slices),
        record(&[i64::MAX, 0, 1], &[1, 1, 1], b"u16", b"raw", &[]),
        record(&[1 << 62, 1, 1], &[1 << 62, 1, 1], b"u8", b"zstd", &[b""]),
        record(&[6, 8, -10], &[3, 4, 5], b"u16", b"zstd", &slices),
        record(&[6, 8, 10], &[3, 0, 5], b"u16", b"zstd", &slices),
        record(&[6; 65], &[6; 65], b"u16", b"zstd", &slices),
        record(&[], &[], b"u16", b"zstd", &slices),
        record(&[6, 8, 10], &[3, 4, 5], b"f128", b"zstd", &slices),
        record(&[6, 8, 10], &[3, 4, 5], b"u16", b"gzip", &slices),
        record(&[6, 8, 10], &[3, 4, 5], b"u16", b"zstd", &slices[1..]),
        record(&[6, 8, 10], &[6, 8, 10], b"u16", b"zstd", &[&bomb]),
        whole.clone(),
    ];
    let crafted = records.len() - 1;
    let mut rng = Rng::new(5);
    for _ in 0..600 {
        let mut mutated = whole.clone();
        // Half of them in what describes the array, which comes last.
        let at = if rng.below(2) == 0 { rng.below(whole.len() as u32) } else { whole.len() as u32 - 1 - rng.below(90) };
        mutated[at as usize] = rng.next_u64() as u8;
        records.push(mutated);
    }
    let mut file = vec![];
    for data in &records {
        file.extend(frame::header(data.len() as u64));
        file.extend_from_slice(data);
        file.extend(frame::footer(crc32c(data)));
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ct-00000.tfrecord"), file).unwrap();
    let dataset = shardtool_read::Dataset::open(folder.path().join("ct-00000.tfrecord")).unwrap();
    let split = dataset.splits()[0].clone();
    let mut config = config(&split, vec![group(&["ct"], &[Some(4), Some(4), Some(4)])]);
    (config.order, config.on_bad, config.max_bad) = (Order::Sequential, Some(OnBad::Mask), Some(u64::MAX));
    (config.columns, config.batch, config.memory_budget) = (Some(vec![]), 5, Some(8 << 20));
    let mut loader = Loader::new(&config).unwrap();
    let mut valid = vec![];
    loop {
        match loader.next_batch() {
            Ok(Some(batch)) => valid.extend_from_slice(batch.valid()),
            Ok(None) => break,
            Err(error) => panic!("{}", shardtool_format::Chain(&error)),
        }
    }
    let expected: Vec<_> = (0..=crafted).map(|at| at == 0 || at == crafted).collect();
    assert_eq!(valid[..=crafted], expected);
    let mutated = &valid[crafted + 1..records.len()];
    let good = mutated.iter().filter(|valid| **valid).count();
    assert!(good > 60 && good < 540, "{good} of 600");
}

#[test]
fn a_chunk_that_exceeds_the_budget_ends_the_run_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let zeros = |side: i64, chunk: i64| Stored {
        dtype: "u8",
        ..Stored::u16("ct", &[side; 3], &[chunk; 3], "zstd", &vec![0; (side * side * side / 2) as usize])
    };
    let mut samples: Vec<_> = (0..40).map(|_| vec![zeros(8, 4)]).collect();
    // Not among the records that the loader looks at first.
    samples[39] = vec![zeros(256, 256)];
    write(folder.path(), &["ct"], &samples, None);
    let mut config = config(&open(folder.path(), Access::Mmap), vec![group(&["ct"], &[Some(4); 3])]);
    (config.order, config.memory_budget) = (Order::Sequential, Some(1 << 20));
    let mut loader = Loader::new(&config).unwrap();
    let error = (0..10).find_map(|_| loader.next_batch().err()).unwrap();
    assert!(matches!(error, Error::ArrayScratch { needed: 16_777_216, .. }), "{error}");
    assert!(error.to_string().contains("raise the memory budget"));
    config.memory_budget = Some(64 << 20);
    let mut loader = Loader::new(&config).unwrap();
    assert_eq!(
        (0..10)
            .map(|_| loader.next_batch().unwrap().unwrap().valid().iter().filter(|valid| **valid).count())
            .sum::<usize>(),
        40
    );
}

/// Returns a zstd frame of zeros: blocks of one repeated byte, of at most 128 KiB each (RFC 8878, 3.1.1.2).
fn zstd_of_zeros(bytes: u32) -> Vec<u8> {
    const BLOCK: u32 = 128 << 10;
    // Magic, a descriptor (content size of four bytes, a single segment), the content size.
    let mut frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0][..], &bytes.to_le_bytes()].concat();
    for block in 0..bytes / BLOCK {
        let last = u32::from(block + 1 == bytes / BLOCK);
        frame.extend_from_slice(&(BLOCK << 3 | 1 << 1 | last).to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

#[test]
fn arrays_accompany_images_and_records() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..5).map(|n| vec![volume(n, [6, 8, 5])]).collect();
    let image = crate::dataset::jpeg(1, 40, 30);
    write(folder.path(), &["ct"], &samples, Some(&image));
    for access in [Access::Mmap, Access::Pread] {
        let split = open(folder.path(), access);
        for content in [Content::Images(Images::new(Pipeline::eval(32, 32).unwrap())), Content::Records] {
            let mut config = config(&split, vec![group(&["ct"], &[Some(3), None, Some(5)])]);
            (config.content, config.order) = (content, Order::Sequential);
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
