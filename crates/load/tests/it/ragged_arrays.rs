//! Arrays that differ in length: what is selected, rotated and added, compared with the definitions; bad samples; resuming.

use crate::arrays_dataset::{Stored, open, write};
use shardtool_load::{
    ArrayProblem, Arrays, Axis, Batch, Config, Error, Loader, OnBad, RaggedArrays, SampleError, Select,
};
use shardtool_order::{Order, Remainder, Rng};
use shardtool_read::{Access, Split};
use std::num::NonZeroU64;
use tempfile::TempDir;

/// Elements of a row.
const LENGTH: usize = 5;

/// Points of sample `number`.
fn points(number: usize) -> Vec<[f32; 4]> {
    let point = |at: usize| [number as f32, at as f32, -(at as f32) / 2.0, 100.0 + at as f32];
    (0..number % 9).map(point).collect()
}

fn cloud(number: usize) -> [Stored; 2] {
    let points = points(number);
    let bytes = |values: Vec<f32>| values.into_iter().flat_map(f32::to_le_bytes).collect();
    let stored = |feature, dtype, columns: i64, data| {
        let shape = vec![points.len() as i64, columns];
        Stored { feature, shape, chunk: vec![3, columns], dtype, codec: "zstd", data, damage: None }
    };
    let classes = points.iter().map(|point| point[1] as u8).collect();
    [stored("cloud", "f32", 4, bytes(points.concat())), stored("class", "u8", 1, classes)]
}

fn clouds(samples: usize) -> (TempDir, Split) {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..samples).map(|number| cloud(number).to_vec()).collect();
    write(folder.path(), &["cloud", "class"], &samples, None);
    let split = open(folder.path(), Access::Mmap);
    (folder, split)
}

fn group() -> RaggedArrays {
    RaggedArrays::new(vec!["cloud".to_owned(), "class".to_owned()], NonZeroU64::new(LENGTH as u64).unwrap())
}

fn config(split: &Split, group: RaggedArrays) -> Config {
    let mut config = Config::new(split.clone(), [group], 4);
    (config.remainder, config.workers, config.seed, config.order) =
        (Some(Remainder::Mask), Some(2), 11, Order::Sequential);
    config
}

/// The points, the classes and the length of a row.
type Row = (Vec<[f32; 4]>, Vec<u8>, i64);

/// Returns the rows of a batch.
fn rows(batch: &Batch) -> Vec<Row> {
    let arrays: Vec<_> = batch.arrays().collect();
    assert_eq!(arrays.iter().map(|array| array.feature).collect::<Vec<_>>(), ["cloud", "class", "cloud/length"]);
    assert_eq!([&arrays[0].shape[..], &arrays[2].shape[..]], [&[4, LENGTH, 4][..], &[4]]);
    let numbers = arrays[0].bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number));
    let points: Vec<_> = numbers.collect::<Vec<_>>().as_chunks::<4>().0.to_vec();
    let lengths = arrays[2].bytes.as_chunks::<8>().0.iter().map(|number| i64::from_le_bytes(*number));
    let rows = points.chunks(LENGTH).zip(arrays[1].bytes.chunks(LENGTH)).zip(lengths);
    rows.map(|((points, classes), length)| (points.to_vec(), classes.to_vec(), length)).collect()
}

/// Returns the rows of one epoch, with the ids of their samples.
fn epoch(config: &Config) -> Vec<(i64, Row)> {
    let mut loader = Loader::new(config).unwrap();
    let mut all = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        all.extend(batch.ids().to_vec().into_iter().zip(rows(&batch)));
    }
    all
}

/// The stream of a group: 0 selects, 1 rotates, 2 is noise.
fn stream(id: i64, stream: u64) -> Rng {
    Rng::step(11, 0, id as u64, 2 << 32, stream)
}

#[test]
fn a_row_has_what_was_drawn_and_padding() {
    let (_folder, split) = clouds(18);
    for select in [Select::Subset, Select::Window, Select::First] {
        let mut group = group();
        (group.select, group.pad_value) = (select, Some(vec![-1.0, 255.0]));
        let rows = epoch(&config(&split, group));
        assert_eq!(rows.len(), 20);
        for (id, (found, classes, length)) in rows {
            if id < 0 {
                assert_eq!((found, classes, length), (vec![[0.0; 4]; LENGTH], vec![0; LENGTH], 0));
                continue;
            }
            let stored = points(id as usize);
            let excess = stored.len().saturating_sub(LENGTH);
            let mut expected: Vec<_> = match select {
                Select::Window if excess > 0 => stored[stream(id, 0).below(excess as u32 + 1) as usize..].to_vec(),
                Select::Subset if excess > 0 => {
                    // Each element in turn is taken with the probability that leaves the rest to fill the row.
                    let (mut random, mut lacking) = (stream(id, 0), LENGTH);
                    let taken = |at: usize| {
                        let take = lacking > 0 && (random.below((stored.len() - at) as u32) as usize) < lacking;
                        lacking -= usize::from(take);
                        take.then_some(stored[at])
                    };
                    (0..stored.len()).filter_map(taken).collect()
                }
                _ => stored.clone(),
            };
            expected.truncate(LENGTH);
            assert_eq!(length as usize, expected.len().min(stored.len()));
            let mut of_classes: Vec<_> = expected.iter().map(|point| point[1] as u8).collect();
            expected.resize(LENGTH, [-1.0; 4]);
            of_classes.resize(LENGTH, 255);
            assert_eq!((found, classes), (expected, of_classes), "{select:?} of sample {id}");
        }
    }
}

#[test]
fn coordinates_are_rotated_and_get_noise() {
    let (_folder, split) = clouds(9);
    for (axis, [a, b]) in [(Axis::X, [1, 2]), (Axis::Y, [2, 0]), (Axis::Z, [0, 1])] {
        let mut turned = group();
        (turned.rotate, turned.degrees, turned.select) = (Some(axis), 60.0, Select::First);
        let mut noisy = turned.clone();
        (noisy.jitter, noisy.jitter_limit) = (0.5, Some(0.6));
        let (turned, noisy) = (epoch(&config(&split, turned)), epoch(&config(&split, noisy)));
        for ((id, (found, ..)), (_, (noisy, ..))) in turned.into_iter().zip(noisy) {
            if id < 0 {
                continue;
            }
            let angle = (2.0 * stream(id, 1).next_f64() - 1.0) * 60f64.to_radians();
            let mut random = stream(id, 2);
            for ((point, found), noisy) in points(id as usize).iter().zip(found).zip(noisy) {
                let mut expected = *point;
                let (x, y) = (f64::from(point[a]), f64::from(point[b]));
                expected[a] = (x * angle.cos() - y * angle.sin()) as f32;
                expected[b] = (x * angle.sin() + y * angle.cos()) as f32;
                for n in 0..4 {
                    // The sines of two libraries may differ in their last bit.
                    assert!((expected[n] - found[n]).abs() <= 1e-5, "{expected:?}, {found:?}");
                }
                assert_eq!(found[3], point[3], "a fourth column is left as it is");
                let mut normal = || {
                    let radius = (-2.0 * (1.0 - random.next_f64()).ln()).sqrt();
                    let angle = std::f64::consts::TAU * random.next_f64();
                    [radius * angle.cos(), radius * angle.sin()]
                };
                let ([x, y], [z, _]) = (normal(), normal());
                for (n, noise) in [x, y, z].into_iter().enumerate() {
                    let expected = found[n] + (noise * 0.5).clamp(-0.6, 0.6) as f32;
                    assert!((expected - noisy[n]).abs() <= 1e-5, "{expected}, {}", noisy[n]);
                }
                assert_eq!(noisy[3], point[3]);
            }
        }
    }
}

#[test]
fn resume_yields_the_same_rows_for_any_number_of_workers() {
    let (_folder, split) = clouds(13);
    let mut group = group();
    (group.rotate, group.jitter) = (Some(Axis::Z), 0.1);
    let mut config = config(&split, group);
    (config.order, config.remainder) = (Order::Shuffled, Some(Remainder::Pad));
    let next = |loader: &mut Loader| loop {
        if let Some(batch) = loader.next_batch().unwrap() {
            return (rows(&batch), batch.ids().to_vec());
        }
    };
    let mut loader = Loader::new(&config).unwrap();
    let (mut states, mut batches) = (vec![], vec![]);
    for _ in 0..12 {
        states.push(loader.state());
        batches.push(next(&mut loader));
    }
    for (step, state) in states.iter().enumerate() {
        config.workers = Some(1 + step % 3);
        let mut resumed = Loader::new(&config).unwrap();
        resumed.load_state(state).unwrap();
        (step..12.min(step + 3)).for_each(|at| assert_eq!(next(&mut resumed), batches[at], "from step {step}"));
    }
    assert_ne!(batches[0], batches[4], "the second epoch draws again");
}

#[test]
fn bad_samples_name_the_feature_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples: Vec<_> = (5..9).map(|number| cloud(number).to_vec()).collect();
    samples[1][1].shape[0] -= 1;
    samples[1][1].data.pop();
    samples[2][0].shape[1] = 2;
    samples[2][0].chunk[1] = 2;
    samples[2][0].data.truncate(7 * 8);
    write(folder.path(), &["cloud", "class"], &samples, None);
    let mut config = config(&open(folder.path(), Access::Mmap), group());
    config.bad_samples.on_bad = Some(OnBad::Mask);
    let mut loader = Loader::new(&config).unwrap();
    let batch = loader.next_batch().unwrap().unwrap();
    assert_eq!(batch.valid(), [true, false, false, true]);
    let mut bad = loader.bad_samples();
    bad.sort_by_key(|bad| bad.id);
    match (&bad[0].error, &bad[1].error) {
        (
            SampleError::ArrayLengths { feature, found: 5, other, expected: 6 },
            SampleError::ArrayShape { feature: second, expected, found },
        ) => {
            assert_eq!((&feature[..], &other[..], &second[..]), ("class", "cloud", "cloud"));
            assert_eq!((&expected[..], &found[..]), (&[None, Some(4)][..], &[7, 2][..]));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn refuses_contradictions_at_the_start() {
    let (_folder, split) = clouds(9);
    let refused = |change: &dyn Fn(&mut RaggedArrays)| {
        let mut group = group();
        change(&mut group);
        match Loader::new(&config(&split, group)).map(drop) {
            Err(Error::Array { problem, .. }) => problem,
            other => panic!("{other:?}"),
        }
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(refused(&|g| g.features.clear()), ArrayProblem::NoFeature);
    assert_eq!(refused(&|g| g.features.push("class".to_owned())), ArrayProblem::Repeated);
    assert_eq!(refused(&|g| g.degrees = 90.0), ArrayProblem::Unused { option: "degrees", needs: "`rotate`" });
    assert_eq!(
        refused(&|g| g.jitter_limit = Some(1.0)),
        ArrayProblem::Unused { option: "jitter_limit", needs: "`jitter`" }
    );
    let unused = ArrayProblem::Unused { option: "coordinates", needs: "`rotate` or `jitter`" };
    assert_eq!(refused(&|g| g.coordinates = name("cloud")), unused);
    assert_eq!(refused(&|g| g.coordinates = name("other")), ArrayProblem::NotInGroup { option: "coordinates" });
    assert_eq!(refused(&|g| g.pad_value = Some(vec![0.0])), ArrayProblem::PadCount { found: 1, features: 2 });
    assert_eq!(refused(&|g| g.pad_value = Some(vec![0.0, -1.0])), ArrayProblem::Pad { value: -1.0, dtype: "u8" });
    for (jitter, degrees) in [(-1.0, 180.0), (f64::NAN, 180.0), (0.0, 0.0), (0.0, 181.0)] {
        let found = refused(&|g| (g.jitter, g.degrees, g.rotate) = (jitter, degrees, Some(Axis::X)));
        assert!(matches!(found, ArrayProblem::Number { .. }), "{jitter}, {degrees}: {found:?}");
    }
    let found = refused(&|g| (g.jitter, g.coordinates) = (1.0, name("class")));
    assert!(matches!(found, ArrayProblem::Coordinates { dtype: "u8", .. }), "{found:?}");
}

#[test]
fn an_array_with_the_name_of_the_lengths_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (1..5)
        .map(|number| {
            let [cloud, class] = cloud(number);
            vec![cloud, class.clone(), Stored { feature: "cloud/length", ..class }]
        })
        .collect();
    write(folder.path(), &["cloud", "class", "cloud/length"], &samples, None);
    let split = open(folder.path(), Access::Mmap);
    let mut arrays = Arrays::new(vec!["cloud/length".to_owned()]);
    arrays.crop = Some(vec![Some(1), None]);
    match Loader::new(&config(&split, group()).with(arrays)).map(drop) {
        Err(Error::Array { feature, problem: ArrayProblem::Repeated }) => assert_eq!(feature, "cloud/length"),
        other => panic!("{other:?}"),
    }
}
