//! Clips: the frames of a video, chosen by the rule, with one geometry for all of them.

use image::RgbImage;
use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_format::manifest::DType;
use shardtool_load::{
    BatchTransform, Clip, ClipSampling, Column, Config, Error, Field, FurtherImage, InvalidOptions, Loader, Mask,
    OnBad, Part, SampleError, Values, View,
};
use shardtool_order::{Domain, Order, Remainder, Replica, Rng, key};
use shardtool_pack::{Options, Sample, Value, Writer, WriterOptions, pack};
use shardtool_read::{Dataset, Split};
use std::path::Path;

/// Width and height of frames.
const SIZE: (u32, u32) = (48, 36);
const MEAN: [f64; 3] = [0.4, 0.5, 0.6];
const STD: [f64; 3] = [0.2, 0.25, 0.3];
/// Frames of each video.
const LENGTHS: [usize; 7] = [1, 2, 5, 9, 20, 33, 64];

/// A frame: red is its number, green the video's, and blue depends on the position only.
fn frame(video: usize, number: usize) -> RgbImage {
    RgbImage::from_fn(SIZE.0, SIZE.1, |x, y| {
        image::Rgb([number as u8, 10 * video as u8, (5 * x) as u8 ^ (7 * y) as u8])
    })
}

/// Packs videos in the order of their keys, with their number as class, and a column of two numbers per record.
fn videos(folder: &Path) -> Split {
    let mut list = String::new();
    for (video, length) in LENGTHS.iter().enumerate() {
        let frames = folder.join(format!("videos/{video}"));
        std::fs::create_dir_all(&frames).unwrap();
        for number in 0..*length {
            frame(video, number).save(frames.join(format!("{number}.png"))).unwrap();
        }
        list += &format!("{{\"key\":\"{video}\",\"label\":{video},\"frames\":\"videos/{video}\",\"pair\":[1,2]}}\n");
    }
    std::fs::write(folder.join("list.jsonl"), list).unwrap();
    let mut options = Options::new(folder.join("list.jsonl"), folder.join("dataset"));
    (options.frames, options.seed) = (vec!["frames".to_owned()], None);
    pack(&options, &()).unwrap();
    open(folder)
}

fn open(folder: &Path) -> Split {
    Dataset::open(folder.join("dataset")).unwrap().split("train").unwrap().clone()
}

/// Delivers the pixels of the middle of each frame as they are.
fn clip(frames: u32, stride: u32, sampling: ClipSampling, clips: u32) -> Clip {
    let middle = Pipeline::new(vec![Transform::CenterCrop { size: [20, 24] }]).unwrap();
    let mut clip = Clip::new("frames", middle, frames);
    (clip.stride, clip.sampling, clip.clips) = (stride, sampling, clips);
    clip
}

fn config(split: &Split, clip: Clip) -> Config {
    let mut config = Config::new(split.clone(), [clip], 3);
    (config.order, config.remainder, config.workers) = (Order::Sequential, Some(Remainder::Mask), Some(2));
    (config.epochs, config.seed) = (Some(2), 11);
    config
}

fn field(config: &mut Config) -> &mut Clip {
    let Some(Field::Clip(clip)) = config.fields.first_mut() else { unreachable!("the first field has the clips") };
    clip
}

/// Random crops and flips, and colours that change at random.
fn random(config: &mut Config) {
    let crop = Transform::RandomResizedCrop {
        size: [20, 24],
        scale: [0.2, 0.8],
        ratio: [0.7, 1.4],
        interpolation: Filter::Bilinear,
    };
    let steps = vec![crop, Transform::HorizontalFlip { p: 0.5 }];
    field(config).views = vec![View::new("", Pipeline::new(steps).unwrap())];
}

/// The rows of all batches of a run: id, and pixels of all frames.
fn rows(config: &Config) -> Vec<(i64, Vec<u8>)> {
    let mut loader = Loader::new(config).unwrap();
    let mut rows = vec![];
    for _ in 0..config.epochs.unwrap() {
        while let Some(batch) = loader.next_batch().unwrap() {
            let array = batch.pictures().next().unwrap();
            assert_eq!(array.shape.iter().product::<usize>(), array.bytes.len());
            assert_eq!(array.dimensions().iter().product::<usize>(), array.bytes.len());
            let row = array.bytes.len() / batch.len();
            rows.extend(batch.ids().iter().zip(array.bytes.chunks(row)).map(|(id, row)| (*id, row.to_vec())));
        }
    }
    rows
}

/// The numbers of the frames of a row, by their colour.
fn numbers(row: &[u8]) -> Vec<usize> {
    row.chunks(3 * 20 * 24).map(|frame| frame[0].into()).collect()
}

/// The rule of `order-spec.md`, for a video of `stored` frames.
fn expected(clip: &Clip, stored: usize, seed: u64, epoch: u64, source_position: u64) -> Vec<usize> {
    let (frames, stride, clips) = (clip.frames as usize, clip.stride as usize, clip.clips as usize);
    let span = (frames - 1) * stride + 1;
    let starts = if stored > span { stored - span + 1 } else { 1 };
    let sample = key(Domain::Step, seed, epoch, source_position);
    let start = |number: usize| match clip.sampling {
        ClipSampling::Random => {
            Rng::new(key(Domain::Step, sample, u64::MAX, number as u64)).below(starts as u32) as usize
        }
        ClipSampling::Even => (number * (starts - 1)) / if clips > 1 { clips - 1 } else { 1 },
        _ => (starts - 1) / 2,
    };
    let of =
        |start: usize| (0..frames).map(move |i| start + i * stride).map(|i| if i < stored { i } else { stored - 1 });
    (0..clips).flat_map(|number| of(start(number))).collect()
}

#[test]
fn frames_are_those_of_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let split = videos(folder.path());
    for clip in [
        clip(4, 1, ClipSampling::Random, 1),
        clip(3, 4, ClipSampling::Random, 3),
        clip(5, 2, ClipSampling::Center, 1),
        clip(4, 3, ClipSampling::Even, 4),
        clip(1, 1, ClipSampling::Even, 2),
    ] {
        let config = config(&split, clip.clone());
        let rows = rows(&config);
        assert_eq!(rows.len(), 2 * 9, "two rows of each epoch are masked");
        for (row, (id, pixels)) in rows.iter().enumerate() {
            let Ok(video) = usize::try_from(*id) else {
                assert!(row % 9 >= 7 && pixels.iter().all(|value| *value == 0));
                continue;
            };
            let found = numbers(pixels);
            assert_eq!(
                found,
                expected(&clip, LENGTHS[video], 11, row as u64 / 9, *id as u64),
                "{clip:?} of video {video}"
            );
            for (frame_pixels, number) in pixels.chunks(3 * 20 * 24).zip(found) {
                let whole = frame(video, number);
                let crop = image::imageops::crop_imm(&whole, 12, 8, 24, 20).to_image();
                assert!(frame_pixels == crop.as_raw(), "pixels of frame {number} of video {video}");
            }
        }
    }
    let uniform = rows(&config(&split, clip(4, 1, ClipSampling::Uniform, 1)));
    let found: Vec<_> = uniform[..7].iter().map(|(_, pixels)| numbers(pixels)).collect();
    let expected =
        [[0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 2, 4], [0, 2, 5, 8], [0, 6, 12, 19], [0, 10, 21, 32], [0, 21, 42, 63]];
    assert_eq!(found, expected);
}

#[test]
fn one_geometry_is_drawn_for_all_frames_of_a_clip() {
    let folder = tempfile::tempdir().unwrap();
    let split = videos(folder.path());
    let mut config = config(&split, clip(4, 1, ClipSampling::Random, 2));
    random(&mut config);
    let blue = |frame: &[u8]| frame.iter().skip(2).step_by(3).copied().collect::<Vec<_>>();
    let mut crops = std::collections::HashSet::new();
    for (id, pixels) in rows(&config) {
        for clip in pixels.chunks(4 * 3 * 20 * 24).filter(|_| id >= 0) {
            let frames: Vec<_> = clip.chunks(3 * 20 * 24).map(blue).collect();
            assert!(frames.iter().all(|frame| *frame == frames[0]), "video {id}");
            crops.insert(frames[0].clone());
        }
    }
    assert_eq!(crops.len(), 2 * 7 * 2, "each clip of each sample of each epoch has another crop");
}

#[test]
fn arrays_have_dimensions_for_clips_and_frames() {
    let folder = tempfile::tempdir().unwrap();
    let split = videos(folder.path());
    let several = config(&split, clip(4, 1, ClipSampling::Even, 2));
    let batch = Loader::new(&several).unwrap().next_batch().unwrap().unwrap();
    let arrays: Vec<_> = batch.pictures().collect();
    assert_eq!((arrays[0].feature, arrays[0].clips, arrays[0].shape), (Some("frames"), Some([2, 4]), [24, 20, 24, 3]));
    assert_eq!((arrays[0].dimensions(), arrays.len()), (vec![3, 2, 4, 20, 24, 3], 1));
    assert_eq!((batch.image_shape(), batch.images().unwrap().len()), (Some([24, 20, 24, 3]), 24 * 20 * 24 * 3));
    assert!(matches!(batch.column("image/class/label"), Some(Values::Int64(labels)) if *labels == [0, 1, 2]));

    let mut views = config(&split, clip(4, 1, ClipSampling::Center, 1));
    let view =
        |name: &str, size| View::new(name, Pipeline::new(vec![Transform::CenterCrop { size: [size; 2] }]).unwrap());
    field(&mut views).views = vec![view("large", 32), view("small", 8)];
    let pixels = &mut field(&mut views).pixels;
    (pixels.mean, pixels.std) = (Some(MEAN.to_vec()), Some(STD.to_vec()));
    let mut loader = Loader::new(&views).unwrap();
    while let Some(batch) = loader.next_batch().unwrap() {
        let shapes: Vec<_> = batch.pictures().map(|array| (array.view.to_owned(), array.dimensions())).collect();
        let expected = [("large".to_owned(), vec![3, 4, 3, 32, 32]), ("small".to_owned(), vec![3, 4, 3, 8, 8])];
        assert_eq!(shapes, expected);
        for array in batch.pictures() {
            let side = array.dimensions()[4];
            let values: Vec<_> = array.bytes.chunks(4).map(|v| f32::from_le_bytes(v.try_into().unwrap())).collect();
            for (frame, values) in values.chunks(3 * side * side).enumerate() {
                let (row, id) = (frame / 4, batch.ids()[frame / 4]);
                let planes: Vec<_> = values.chunks(side * side).collect();
                let one = |plane: &[f32]| plane.iter().all(|value| *value == plane[0]).then_some(plane[0]);
                let (red, green) = (one(planes[0]).expect("one value"), one(planes[1]).expect("one value"));
                let stored = usize::try_from(id).map_or(1, |id| LENGTHS[id]);
                let number = expected_center(stored, frame - 4 * row);
                let normal = |value: f32, channel: usize| (value / 255.0 - MEAN[channel] as f32) / STD[channel] as f32;
                let (red_expected, green_expected) =
                    if id < 0 { (0.0, 0.0) } else { (number as f32, 10.0 * id as f32) };
                assert!((red - normal(red_expected, 0)).abs() < 1e-5, "{red} of frame {frame}");
                assert!((green - normal(green_expected, 1)).abs() < 1e-5, "{green} of frame {frame}");
            }
        }
    }
}

/// The number of a frame of the clip of four in the middle.
fn expected_center(stored: usize, number: usize) -> usize {
    expected(&clip(4, 1, ClipSampling::Center, 1), stored, 0, 0, 0)[number]
}

#[test]
fn resume_yields_the_same_clips_for_any_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let split = videos(folder.path());
    let mut config = config(&split, clip(3, 2, ClipSampling::Random, 2));
    random(&mut config);
    (config.order, config.remainder) = (Order::Shuffled, Some(Remainder::Pad));
    let all = |loader: &mut Loader| {
        let mut batches = vec![];
        for _ in 0..2 {
            while let Some(batch) = loader.next_batch().unwrap() {
                batches.push((batch.ids().to_vec(), batch.images().unwrap().to_vec(), batch.state_after()));
            }
        }
        batches
    };
    let whole = all(&mut Loader::new(&config).unwrap());
    assert_eq!(whole.len(), 6);
    for (step, workers) in (0..6).zip([1, 3, 2, 4, 1, 3]) {
        config.workers = Some(workers);
        let mut loader = Loader::new(&config).unwrap();
        loader.load_state(&whole[step].2).unwrap();
        let rest = all(&mut loader);
        assert!(!rest.is_empty() || step == 5);
        assert!(rest.iter().zip(&whole[step + 1..]).all(|(a, b)| a.0 == b.0 && a.1 == b.1), "after step {step}");
        assert_eq!(rest.len(), whole.len() - step - 1);
    }
    config.replica = Replica::new(0, 2).unwrap();
    let mut group = Loader::group(&config, &[0, 1]).unwrap();
    let ids: Vec<_> = group.iter_mut().map(all).collect();
    assert!(ids.iter().all(|batches| batches.len() == 4));
    let rows = |batches: &[(Vec<i64>, Vec<u8>, _)]| {
        let row = 6 * 3 * 20 * 24;
        let rows =
            batches.iter().flat_map(|(ids, pixels, _)| ids.iter().copied().zip(pixels.chunks(row).map(<[u8]>::to_vec)));
        rows.collect::<std::collections::BTreeSet<_>>()
    };
    let both: std::collections::BTreeSet<_> = ids.iter().flat_map(|batches| rows(batches)).collect();
    assert_eq!(both, rows(&whole), "each sample has the same clips on every replica");
}

/// Changes a byte in the middle of a stored frame.
fn damage(folder: &Path, video: u64, number: usize) {
    let split = open(folder);
    let (shard, row) = split.locate(video).unwrap();
    let shard = split.shard(shard).unwrap();
    let range = shard.value_ranges(row, "frames").unwrap().expect("value ranges")[number];
    let at = shard.frame(row).unwrap().start + 12 + u64::from(range.offset) + u64::from(range.length / 2);
    let file = folder.join("dataset/train-00000.tfrecord");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[at as usize] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn only_the_frames_of_the_clip_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = rows(&config(&videos(folder.path()), clip(4, 2, ClipSampling::Center, 1)));
    // The clip of the fifth video is 6, 8, 10, 12, that of the sixth one 13, 15, 17, 19.
    damage(folder.path(), 4, 7);
    damage(folder.path(), 5, 15);
    let mut config = config(&open(folder.path()), clip(4, 2, ClipSampling::Center, 1));
    config.bad_samples.on_bad = Some(OnBad::Mask);
    let mut loader = Loader::new(&config).unwrap();
    let mut found = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        found.extend(
            batch.ids().to_vec().into_iter().zip(batch.images().unwrap().chunks(4 * 3 * 20 * 24).map(<[u8]>::to_vec)),
        );
    }
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, -1, 6, -1, -1]);
    assert!(found.iter().filter(|(id, _)| *id >= 0).all(|(id, pixels)| *pixels == whole[*id as usize].1));
    let bad = loader.bad_samples();
    assert_eq!((bad.len(), bad[0].id), (1, 5));
    assert!(matches!(&bad[0].error, SampleError::FrameBytes { feature, number: 15, .. } if feature == "frames"));
    assert!(bad[0].error.to_string().contains("frame 15 of `frames`"), "{}", bad[0].error);

    // A column that the index lacks needs the whole record, whose CRC is then checked instead.
    config.fields.push(Column::new("pair").into());
    let mut loader = Loader::new(&config).unwrap();
    let batches: Vec<_> = std::iter::from_fn(|| loader.next_batch().unwrap()).collect();
    let ids: Vec<_> = batches.iter().flat_map(|batch| batch.ids().to_vec()).collect();
    assert_eq!(ids, [0, 1, 2, 3, -1, -1, 6, -1, -1]);
    let pixels: Vec<_> = batches.iter().flat_map(|b| b.images().unwrap().chunks(4 * 3 * 20 * 24)).collect();
    assert!([0, 1, 2, 3, 6].iter().all(|id| pixels[*id] == whole[*id].1));
    assert!(
        matches!(batches[0].column("pair"), Some(Values::RaggedInt64 { values, .. }) if *values == [1, 2, 1, 2, 1, 2])
    );
}

#[test]
fn frames_that_cannot_be_decoded_make_bad_samples() {
    let folder = tempfile::tempdir().unwrap();
    let png = |size: (u32, u32)| {
        let mut bytes = std::io::Cursor::new(vec![]);
        RgbImage::new(size.0, size.1).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
        bytes.into_inner()
    };
    let mut options = WriterOptions::new(folder.path().join("dataset"), "train");
    (options.features, options.images) = (vec![("frames".to_owned(), DType::Bytes)], false);
    let writer = Writer::open(&options).unwrap();
    let broken = vec![7; 300];
    for (key, frames) in [
        ("good", vec![png(SIZE), png(SIZE)]),
        ("size", vec![png(SIZE), png((SIZE.0 + 1, SIZE.1))]),
        ("broken", vec![png(SIZE), broken]),
        ("none", vec![]),
    ] {
        let values = vec![("frames", Value::Bytes(frames))];
        assert!(writer.write(&Sample { key, image: None, label: None, values }).unwrap());
    }
    writer.finish().unwrap();
    let mut config = config(&open(folder.path()), clip(2, 1, ClipSampling::Center, 1));
    config.bad_samples.on_bad = Some(OnBad::Mask);
    let mut loader = Loader::new(&config).unwrap();
    let mut ids = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        ids.extend(batch.ids().to_vec());
    }
    assert_eq!(ids.iter().filter(|id| **id >= 0).count(), 1);
    let mut bad: Vec<_> = loader.bad_samples();
    bad.sort_by_key(|sample| sample.key.clone());
    let errors: Vec<_> = bad.iter().map(|sample| &sample.error).collect();
    assert!(
        matches!(
            errors[0],
            SampleError::Frame { number: 1, source: shardtool_decode::Error::UnknownFormat { .. }, .. }
        ),
        "{errors:?}"
    );
    assert!(matches!(errors[1], SampleError::NoFrames { .. }), "{errors:?}");
    assert!(
        matches!(errors[2], SampleError::Frame { number: 1, source: shardtool_decode::Error::SizeMismatch { .. }, .. }),
        "{errors:?}"
    );
}

#[test]
fn options_that_do_not_fit_clips_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let split = videos(folder.path());
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(&split, clip(4, 1, ClipSampling::Random, 1));
        change(&mut config);
        Loader::new(&config).expect_err("refused")
    };
    let set = |change: fn(&mut Clip)| refused(&|config| change(field(config)));
    assert!(matches!(set(|clip| clip.frames = 0), Error::Zero { option: "frames" }));
    assert!(matches!(set(|clip| clip.stride = 0), Error::Zero { option: "stride" }));
    assert!(matches!(set(|clip| clip.clips = 0), Error::Zero { option: "clips" }));
    assert!(matches!(set(|clip| clip.feature = "image/key".to_owned() + "s"), Error::NoFeature { .. }));
    assert!(matches!(set(|clip| clip.feature = "image/class/label".to_owned()), Error::Layout { .. }));
    assert!(matches!(set(|clip| (clip.frames, clip.clips) = (1 << 16, 17)), Error::Clip { .. }));
    assert!(matches!(set(|clip| (clip.sampling, clip.clips) = (ClipSampling::Center, 2)), Error::Clip { .. }));
    assert!(matches!(set(|clip| (clip.sampling, clip.stride) = (ClipSampling::Uniform, 2)), Error::Clip { .. }));
    let excluded = |change: &dyn Fn(&mut Config)| match refused(change) {
        Error::Options(InvalidOptions::Excluded { part: Part::Clip, other, .. }) => other,
        error => panic!("{error}"),
    };
    assert_eq!(excluded(&|config| config.fields.push(Mask::new("frames").into())), Part::Mask);
    assert_eq!(excluded(&|config| config.fields.push(FurtherImage::new("frames").into())), Part::FurtherImage);
    let mixed = |config: &mut Config| config.batch_transform = vec![BatchTransform::mix_up(1.0)];
    assert_eq!(excluded(&mixed), Part::BatchTransform);
}
