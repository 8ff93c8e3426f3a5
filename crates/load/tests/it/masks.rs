//! Label maps get the crop and flip of their image.

use crate::dataset::{self, MASK, Sample};
use crate::samples::photographs;
use shardtool_decode::{Filter, LabelDtype, Pipeline, Transform};
use shardtool_load::{Config, Error, Field, Image, Loader, Mask, OnBad, SampleError};
use shardtool_order::Remainder;
use shardtool_read::{Dataset, Split};

const SIDE: u32 = 32;

/// Label of the last quarter in a map of 16 bits.
pub(crate) const WIDE: u16 = 3 * 21_845;

/// An image of four colours, a quarter each, and a label map that numbers them.
fn quarters(number: u32) -> Sample {
    let map = |size: (u32, u32), quarters: Vec<u8>| {
        let map = image::GrayImage::from_raw(size.0, size.1, quarters).unwrap();
        encoded(|encoder| map.write_with_encoder(encoder))
    };
    with_map(number, map)
}

/// As [`quarters`], with a map of 16 bits, whose labels are 0, 21845, 43690 and 65535.
pub(crate) fn wide_quarters(number: u32) -> Sample {
    let map = |size: (u32, u32), quarters: Vec<u8>| {
        let labels = quarters.iter().map(|quarter| WIDE / 3 * u16::from(*quarter)).collect();
        let map = image::ImageBuffer::<image::Luma<u16>, Vec<u16>>::from_raw(size.0, size.1, labels).unwrap();
        encoded(|encoder| map.write_with_encoder(encoder))
    };
    with_map(number, map)
}

fn with_map(number: u32, map: impl Fn((u32, u32), Vec<u8>) -> Vec<u8>) -> Sample {
    let size = (60 + number * 7 % 40, 50 + number * 11 % 60);
    let quarter = |x: u32, y: u32| (u32::from(2 * x >= size.0) + 2 * u32::from(2 * y >= size.1)) as u8;
    let image = image::RgbImage::from_fn(size.0, size.1, |x, y| image::Rgb([80 * quarter(x, y); 3]));
    let quarters = (0..size.1).flat_map(|y| (0..size.0).map(move |x| quarter(x, y))).collect();
    let encoded = encoded(|encoder| image.write_with_encoder(encoder));
    Sample {
        key: format!("{number}"),
        image: Some((encoded, size)),
        label: 0,
        boxes: vec![0.0],
        mask: map(size, quarters),
    }
}

/// Returns a PNG.
fn encoded(write: impl FnOnce(image::codecs::png::PngEncoder<&mut Vec<u8>>) -> image::ImageResult<()>) -> Vec<u8> {
    let mut bytes = vec![];
    write(image::codecs::png::PngEncoder::new(&mut bytes)).unwrap();
    bytes
}

pub(crate) fn split(folder: &std::path::Path, samples: &[Sample]) -> Split {
    dataset::write(folder, "train", samples, 7);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

pub(crate) fn config(split: Split, feature: &str) -> Config {
    let crop = Transform::RandomResizedCrop {
        size: [SIDE; 2],
        scale: [0.3, 1.0],
        ratio: [0.7, 1.4],
        interpolation: Filter::Bilinear,
    };
    let pipeline = Pipeline::new(vec![crop, Transform::HorizontalFlip { p: 0.5 }]).unwrap();
    let mut config = Config::new(split, [Image::new(pipeline)], 8).with(Mask::new(feature));
    (config.epochs, config.remainder) = (Some(3), Some(Remainder::Mask));
    config
}

/// Checks the label of every pixel whose neighbours have its colour; between quarters the filter mixes colours. Returns
/// how many were checked.
fn inside_a_quarter(image: &[u8], mask: &[u16]) -> usize {
    let side = SIDE as usize;
    let colour = |x: usize, y: usize| image[3 * (y * side + x)];
    let inner = |x: usize, y: usize| (0..9).all(|i| colour(x + i % 3 - 1, y + i / 3 - 1) == colour(x, y));
    let places = (1..side - 1).flat_map(|y| (1..side - 1).map(move |x| (x, y)));
    places
        .filter(|(x, y)| inner(*x, *y))
        .inspect(|(x, y)| assert_eq!(u16::from(colour(*x, *y)), 80 * mask[y * side + x]))
        .count()
}

#[test]
fn mask_gets_the_crop_and_flip_of_its_image() {
    masks_match_their_images(quarters, LabelDtype::U8, |label| label[0].into());
}

#[test]
fn mask_of_8_bits_is_delivered_as_u16() {
    masks_match_their_images(quarters, LabelDtype::U16, |label| u16::from_le_bytes([label[0], label[1]]));
}

#[test]
fn mask_of_16_bits_gets_the_crop_and_flip_of_its_image() {
    masks_match_their_images(wide_quarters, LabelDtype::U16, |label| {
        let label = u16::from_le_bytes([label[0], label[1]]);
        if label % (WIDE / 3) == 0 { label / (WIDE / 3) } else { label }
    });
}

/// Loads 21 samples in three epochs, and compares masks with images. `quarter` returns the quarter of a label's bytes.
fn masks_match_their_images(sample: fn(u32) -> Sample, dtype: LabelDtype, quarter: fn(&[u8]) -> u16) {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..21).map(sample).collect();
    let mut config = config(split(folder.path(), &samples), MASK);
    mask(&mut config).dtype = dtype;
    let mut loader = Loader::new(&config).unwrap();
    let pixels = (SIDE * SIDE) as usize;
    let (mut inner, mut masked) = (0, 0);
    for _ in 0..3 {
        while let Some(batch) = loader.next_batch().unwrap() {
            let masks: Vec<_> = batch.masks().collect();
            assert_eq!((masks.len(), masks[0].feature), (1, MASK));
            assert_eq!((masks[0].dtype, masks[0].shape[0]), (dtype, batch.len()));
            let masks = masks[0].bytes.chunks(pixels * dtype.bytes());
            let rows = batch.images().unwrap().chunks(3 * pixels).zip(masks);
            for ((image, mask), valid) in rows.zip(batch.valid()) {
                if !valid {
                    masked += 1;
                    assert!(mask.iter().all(|v| *v == 255) && image.iter().all(|v| *v == 0));
                    continue;
                }
                let mask: Vec<u16> = mask.chunks(dtype.bytes()).map(quarter).collect();
                assert!(mask.iter().all(|quarter| *quarter < 4), "labels are never mixed");
                inner += inside_a_quarter(image, &mask);
            }
        }
    }
    assert!(inner > 3 * 21 * pixels / 2, "{inner} pixels lie inside a quarter");
    assert_eq!(masked, 3 * 3, "the last batch of each epoch");
}

pub(crate) fn image(config: &mut Config) -> &mut Image {
    let Some(Field::Image(image)) = config.fields.first_mut() else { unreachable!("the first field is the image") };
    image
}

pub(crate) fn mask(config: &mut Config) -> &mut Mask {
    let Some(Field::Mask(mask)) = config.fields.get_mut(1) else { unreachable!("the second field is the mask") };
    mask
}

#[test]
fn label_over_255_in_a_u8_mask_is_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (0..3).map(wide_quarters).collect();
    let mut config = config(split(folder.path(), &samples), MASK);
    (config.bad_samples.on_bad, config.epochs) = (Some(OnBad::Mask), Some(1));
    let mut loader = Loader::new(&config).unwrap();
    while loader.next_batch().unwrap().is_some() {}
    let bad = loader.bad_samples();
    assert_eq!(bad.len(), 3);
    for sample in bad {
        let SampleError::Mask { source: shardtool_decode::Error::LabelValue { value, .. }, feature } = &sample.error
        else {
            panic!("{:?}", sample.error)
        };
        assert_eq!((*value, feature.as_str()), (WIDE / 3, MASK));
    }
}

#[test]
fn bad_mask_is_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples: Vec<_> = (0..21).map(quarters).collect();
    samples[3].mask.truncate(40);
    samples[8].mask = vec![];
    samples[14].mask = samples[15].mask.clone();
    let mut config = config(split(folder.path(), &samples), MASK);
    (config.bad_samples.on_bad, config.epochs) = (Some(OnBad::Mask), Some(1));
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
    assert!(matches!(bad[2].error, SampleError::Mask { source: shardtool_decode::Error::MaskSize { .. }, .. }));
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
