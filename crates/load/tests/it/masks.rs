//! Label maps get the crop and flip of their image.

use crate::dataset::{self, MASK, Sample};
use crate::samples::photographs;
use shardtool_decode::{Pipeline, Transform};
use shardtool_load::{Config, Content, Error, Images, Loader, OnBad, SampleError};
use shardtool_order::Remainder;
use shardtool_read::{Dataset, Split};

const SIDE: u32 = 32;

/// An image of four colours, a quarter each, and a label map that numbers them.
fn quarters(number: u32) -> Sample {
    let size = (60 + number * 7 % 40, 50 + number * 11 % 60);
    let quarter = |x: u32, y: u32| (u32::from(2 * x >= size.0) + 2 * u32::from(2 * y >= size.1)) as u8;
    let image = image::RgbImage::from_fn(size.0, size.1, |x, y| image::Rgb([80 * quarter(x, y); 3]));
    let map = image::GrayImage::from_fn(size.0, size.1, |x, y| image::Luma([quarter(x, y)]));
    let (mut encoded, mut mask) = (vec![], vec![]);
    image.write_with_encoder(image::codecs::png::PngEncoder::new(&mut encoded)).unwrap();
    map.write_with_encoder(image::codecs::png::PngEncoder::new(&mut mask)).unwrap();
    Sample { key: format!("{number}"), image: Some((encoded, size)), label: 0, boxes: vec![0.0], mask }
}

fn split(folder: &std::path::Path, samples: &[Sample]) -> Split {
    dataset::write(folder, "train", samples, 7);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(split: Split, feature: &str) -> Config {
    let crop = Transform::RandomResizedCrop { size: [SIDE; 2], scale: [0.3, 1.0], ratio: [0.7, 1.4] };
    let pipeline = Pipeline::new(vec![crop, Transform::HorizontalFlip { p: 0.5 }]).unwrap();
    let mut images = Images::new(pipeline);
    images.mask = Some(feature.to_owned());
    let mut config = Config::new(split, Content::Images(images), 8);
    (config.epochs, config.remainder) = (Some(3), Some(Remainder::Mask));
    config
}

/// Checks the label of every pixel whose neighbours have its colour; between quarters the filter mixes colours. Returns
/// how many were checked.
fn inside_a_quarter(image: &[u8], mask: &[u8]) -> usize {
    let side = SIDE as usize;
    let colour = |x: usize, y: usize| image[3 * (y * side + x)];
    let inner = |x: usize, y: usize| (0..9).all(|i| colour(x + i % 3 - 1, y + i / 3 - 1) == colour(x, y));
    let places = (1..side - 1).flat_map(|y| (1..side - 1).map(move |x| (x, y)));
    places.filter(|(x, y)| inner(*x, *y)).inspect(|(x, y)| assert_eq!(colour(*x, *y), 80 * mask[y * side + x])).count()
}

#[test]
fn mask_gets_the_crop_and_flip_of_its_image() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..21).map(quarters).collect();
    let mut loader = Loader::new(&config(split(folder.path(), &samples), MASK)).unwrap();
    let pixels = (SIDE * SIDE) as usize;
    let (mut inner, mut masked) = (0, 0);
    for _ in 0..3 {
        while let Some(batch) = loader.next_batch().unwrap() {
            let rows = batch.images().unwrap().chunks(3 * pixels).zip(batch.masks().unwrap().chunks(pixels));
            for ((image, mask), valid) in rows.zip(batch.valid()) {
                if !valid {
                    masked += 1;
                    assert!(mask.iter().all(|v| *v == 255) && image.iter().all(|v| *v == 0));
                    continue;
                }
                assert!(mask.iter().all(|label| *label < 4), "labels are never mixed");
                inner += inside_a_quarter(image, mask);
            }
        }
    }
    assert!(inner > 3 * 21 * pixels / 2, "{inner} pixels lie inside a quarter");
    assert_eq!(masked, 3 * 3, "the last batch of each epoch");
}

#[test]
fn bad_mask_is_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples: Vec<_> = (0..21).map(quarters).collect();
    samples[3].mask.truncate(40);
    samples[8].mask = vec![];
    samples[14].mask = samples[15].mask.clone();
    let mut config = config(split(folder.path(), &samples), MASK);
    (config.on_bad, config.epochs) = (Some(OnBad::Mask), Some(1));
    let mut loader = Loader::new(&config).unwrap();
    let mut valid = 0;
    while let Some(batch) = loader.next_batch().unwrap() {
        valid += batch.valid().iter().filter(|v| **v).count();
    }
    assert_eq!(valid, 18);
    let mut bad = loader.bad_samples();
    bad.sort_by_key(|b| b.id);
    assert_eq!(bad.iter().map(|b| b.id).collect::<Vec<_>>(), [3, 8, 14]);
    assert!(matches!(bad[0].error, SampleError::Mask { source: shardtool_decode::Error::Decoder { .. }, .. }));
    assert!(matches!(bad[1].error, SampleError::NoMask { .. }));
    assert!(matches!(bad[2].error, SampleError::Mask { source: shardtool_decode::Error::SizeMismatch { .. }, .. }));
}

#[test]
fn feature_that_is_not_a_mask_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path(), &photographs(9));
    let refused = |feature| Loader::new(&config(split.clone(), feature)).map(drop).unwrap_err();
    assert!(matches!(refused("masks"), Error::NoFeature { .. }));
    assert!(matches!(refused("boxes"), Error::Layout { .. }));
    assert!(Loader::new(&config(split.clone(), MASK)).is_ok(), "in the manifest, though no record has it");
}
