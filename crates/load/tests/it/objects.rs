//! Boxes and points follow the pixels of their image.

use crate::dataset::{self, Sample};
use shardtool_decode::{Filter, Interpolation, PaddingMode, Pipeline, Transform};
use shardtool_load::{Config, Error, Field, Image, Loader, ObjectRole, Objects, OnBad, SampleError, Values};
use shardtool_order::{Order, Remainder};
use shardtool_read::{Dataset, Split};
use std::path::Path;

const COLOURS: [[u8; 3]; 3] = [[250, 0, 0], [0, 250, 0], [0, 0, 250]];

/// A grey image with three rectangles of different colours, whose boxes are fractions of its size.
fn rectangles(number: u32) -> Sample {
    let size = (90 + number * 17 % 60, 80 + number * 29 % 70);
    let (w, h) = (f64::from(size.0), f64::from(size.1));
    let rectangle = |n: u32| {
        let left = 5 + n * 28 + number % 3;
        let top = 8 + (n * 19 + number * 5) % 30;
        [left, top, left + 20 - number % 4, top + 30 - n * 4].map(f64::from)
    };
    let inside = |[left, top, right, bottom]: [f64; 4], x: u32, y: u32| {
        (left..right).contains(&f64::from(x)) && (top..bottom).contains(&f64::from(y))
    };
    let image = image::RgbImage::from_fn(size.0, size.1, |x, y| {
        let of = (0..3).find(|n| inside(rectangle(*n), x, y));
        image::Rgb(of.map_or([90; 3], |n| COLOURS[n as usize]))
    });
    let mut bytes = vec![];
    image.write_with_encoder(image::codecs::png::PngEncoder::new(&mut bytes)).unwrap();
    let boxes = (0..3).map(rectangle).flat_map(|[l, t, r, b]| [l / w, t / h, r / w, b / h].map(|x| x as f32));
    let boxes = boxes.collect();
    Sample { key: format!("{number}"), image: Some((bytes, size)), label: 0, boxes, mask: vec![] }
}

fn split(folder: &Path, samples: &[Sample]) -> Split {
    dataset::write(folder, "train", samples, 7);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(split: Split, steps: Vec<Transform>) -> Config {
    let mut objects = Objects::default();
    (objects.boxes, objects.properties, objects.min_size) = ("boxes".to_owned(), vec![], 3.0);
    let mut config = Config::new(split, [Image::new(Pipeline::new(steps).unwrap())], 4).with(objects);
    (config.epochs, config.remainder, config.order) = (Some(2), Some(Remainder::Mask), Order::Shuffled);
    config
}

/// Returns the smallest box around the pixels that are nearly of a colour.
fn around(image: &[u8], (width, _): (usize, usize), colour: [u8; 3]) -> Option<[f32; 4]> {
    let near = |pixel: &[u8; 3]| pixel.iter().zip(colour).all(|(p, c)| p.abs_diff(c) < 60);
    let pixels = image.as_chunks::<3>().0.iter().enumerate().filter(|(_, pixel)| near(pixel));
    let places = pixels.map(|(at, _)| ((at % width) as f32, (at / width) as f32));
    places.fold(None, |found: Option<[f32; 4]>, (x, y)| {
        let [left, top, right, bottom] = found.unwrap_or([x, y, x, y]);
        Some([left.min(x), top.min(y), right.max(x + 1.0), bottom.max(y + 1.0)])
    })
}

/// Loads two epochs, and compares each box with the pixels of its colour. Boxes may be `larger`, as those of rotated rectangles
/// are. Returns the number of boxes compared.
fn compare(steps: Vec<Transform>, tolerance: f32, larger: f32) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..23).map(rectangles).collect();
    let config = config(split(folder.path(), &samples), steps);
    let mut loader = Loader::new(&config).unwrap();
    let mut compared = 0;
    for _ in 0..2 {
        while let Some(batch) = loader.next_batch().unwrap() {
            assert_eq!(batch.column_role("boxes"), Some(ObjectRole::Boxes));
            let Some(Values::RaggedFloat { offsets, values }) = batch.column("boxes") else { panic!("boxes") };
            let [_, height, width, _] = batch.image_shape().unwrap();
            for (row, image) in batch.images().unwrap().chunks(width * height * 3).enumerate() {
                let boxes = values[offsets[row] as usize..offsets[row + 1] as usize].as_chunks::<4>().0;
                assert!(batch.valid()[row] || boxes.is_empty());
                for [left, top, right, bottom] in boxes {
                    assert!(0.0 <= *left && *right <= width as f32 && 0.0 <= *top && *bottom <= height as f32);
                    assert!(right - left >= 3.0 && bottom - top >= 3.0);
                }
                for found in COLOURS.iter().filter_map(|colour| around(image, (width, height), *colour)) {
                    let [left, top, right, bottom] = found;
                    if right - left < 6.0 || bottom - top < 6.0 {
                        // It may have been dropped.
                        continue;
                    }
                    let close = |b: &[f32; 4]| {
                        let off = [left - b[0], top - b[1], b[2] - right, b[3] - bottom];
                        off.iter().all(|off| (-tolerance..=tolerance + larger).contains(off))
                    };
                    assert!(
                        boxes.iter().any(close),
                        "pixels at {found:?}, boxes {boxes:?}, sample {}",
                        batch.ids()[row]
                    );
                    compared += 1;
                }
            }
        }
    }
    compared
}

fn flips() -> Vec<Transform> {
    vec![Transform::HorizontalFlip { p: 0.5 }, Transform::VerticalFlip { p: 0.5 }]
}

#[test]
fn boxes_follow_crop_resize_and_flips() {
    let crop = Transform::RandomResizedCrop {
        size: [64, 48],
        scale: [0.3, 1.0],
        ratio: [0.7, 1.4],
        interpolation: Filter::Bilinear,
    };
    assert!(compare([vec![crop], flips()].concat(), 1.6, 0.0) > 60);
}

#[test]
fn boxes_follow_padding_before_and_after_the_resize() {
    let zoom = Transform::RandomZoomOut { fill: [90; 3], side_range: [1.0, 2.0], p: 0.7 };
    let resize = Transform::ResizeTo { size: [80, 100], interpolation: Filter::Bilinear };
    assert!(compare([vec![zoom], flips(), vec![resize]].concat(), 1.6, 0.0) > 100);
    let jitter =
        Transform::ScaleJitter { target_size: [90, 90], scale_range: [0.5, 1.5], interpolation: Filter::Bilinear };
    let fixed = Transform::FixedSizeCrop { size: [90, 90], fill: [90; 3] };
    assert!(compare([flips(), vec![jitter, fixed], flips()].concat(), 1.6, 0.0) > 80);
    let resize = || Transform::ResizeTo { size: [70, 70], interpolation: Filter::Bilinear };
    let pad = |padding_mode| Transform::Pad { padding: [7, 3, 11, 5], fill: [90; 3], padding_mode };
    assert!(compare(vec![resize(), pad(PaddingMode::Constant), resize()], 1.6, 0.0) > 100);
    // Mirrored padding shows parts of a rectangle twice; the crop leaves one of them.
    for mode in [PaddingMode::Constant, PaddingMode::Edge, PaddingMode::Symmetric] {
        let steps = vec![resize(), pad(mode), Transform::CenterCrop { size: [50, 50] }];
        assert!(compare(steps, 1.6, 0.0) > 40, "{mode:?}");
    }
}

#[test]
fn boxes_follow_warps() {
    let resize = Transform::ResizeTo { size: [90, 90], interpolation: Filter::Bilinear };
    let rotate =
        Transform::RandomRotation { degrees: [-20.0, 20.0], interpolation: Interpolation::Nearest, fill: [90; 3] };
    assert!(compare([vec![resize.clone(), rotate], flips()].concat(), 2.0, 1.0) > 60);
    let affine = Transform::RandomAffine {
        degrees: [0.0, 0.0],
        translate: Some([0.2, 0.2]),
        scale: Some([0.7, 1.3]),
        shear: None,
        interpolation: Interpolation::Nearest,
        fill: [90; 3],
    };
    assert!(compare(vec![resize.clone(), affine], 1.6, 0.0) > 60);
    let perspective = Transform::RandomPerspective {
        distortion_scale: 0.2,
        p: 1.0,
        interpolation: Interpolation::Nearest,
        fill: [90; 3],
    };
    assert!(compare(vec![resize, perspective], 2.0, 2.5) > 60);
}

#[test]
fn iou_crops_keep_boxes_whose_centre_they_contain() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..40).map(rectangles).collect();
    let crop = Transform::RandomIouCrop {
        min_scale: 0.3,
        max_scale: 0.9,
        min_aspect_ratio: 0.5,
        max_aspect_ratio: 2.0,
        sampler_options: vec![0.0, 0.1],
        trials: 40,
    };
    let zoom = Transform::RandomZoomOut { fill: [90; 3], side_range: [1.0, 2.0], p: 0.5 };
    let config = config(
        split(folder.path(), &samples),
        vec![zoom, crop, Transform::ResizeTo { size: [64, 64], interpolation: Filter::Bilinear }],
    );
    let mut loader = Loader::new(&config).unwrap();
    let (mut kept, mut rows) = (0, 0);
    while let Some(batch) = loader.next_batch().unwrap() {
        let Some(Values::RaggedFloat { offsets, .. }) = batch.column("boxes") else { panic!("boxes") };
        for (row, ends) in offsets.windows(2).enumerate().filter(|(row, _)| batch.valid()[*row]) {
            let boxes = (ends[1] - ends[0]) / 4;
            assert!(boxes >= 1, "every crop contains the centre of a box: row {row}");
            (kept, rows) = (kept + boxes, rows + 1);
        }
    }
    assert!(rows == 40 && (40..100).contains(&kept), "{kept} boxes of {rows} samples");
}

#[test]
fn boxes_that_are_not_four_numbers_make_bad_samples() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples: Vec<_> = (0..8).map(rectangles).collect();
    samples[5].boxes.pop();
    let mut config = config(
        split(folder.path(), &samples),
        vec![Transform::ResizeTo { size: [8, 8], interpolation: Filter::Bilinear }],
    );
    (config.bad_samples.on_bad, config.order) = (Some(OnBad::Mask), Order::Sequential);
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    let bad = loader.bad_samples();
    assert_eq!(bad.len(), 1);
    assert!(matches!(&bad[0].error, SampleError::Values { feature, found: 11, .. } if feature == "boxes"));
    let Field::Objects(objects) = &mut config.fields[1] else { unreachable!() };
    objects.boxes = "image/class/label".to_owned();
    assert!(matches!(Loader::new(&config).err().unwrap(), Error::Layout { layout: "boxes", .. }));
}
