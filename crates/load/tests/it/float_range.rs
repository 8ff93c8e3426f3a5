//! Floating-point images are scaled by the configured range.

#[path = "../../../decode/tests/made/float_tiff.rs"]
mod float_tiff;

use crate::dataset::{self, Sample};
use float_tiff::float_tiff;
use shardtool_decode::{Filter, FloatRange, Pipeline, Transform};
use shardtool_load::{Config, Image, Loader, OnBad, SampleError};
use shardtool_order::{Order, Remainder};
use shardtool_read::Dataset;

#[test]
fn floating_point_images_are_scaled_by_the_range_and_bad_samples_without_one() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |i: u8| {
        let samples = [f32::from(i), -1.0, 0.5, 4.0];
        Sample {
            key: format!("{i}"),
            image: Some((float_tiff(&samples), (4, 1))),
            label: 0,
            boxes: vec![],
            mask: vec![],
        }
    };
    dataset::write(folder.path(), "train", &[sample(0), sample(1)], 2);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let load = |float_range| {
        let mut image = Image::new(
            Pipeline::new(vec![Transform::ResizeTo { size: [1, 4], interpolation: Filter::Bilinear }]).unwrap(),
        );
        image.pixels.float_range = float_range;
        let mut config = Config::new(split.clone(), [image], 2);
        (config.order, config.remainder, config.bad_samples.on_bad) =
            (Order::Sequential, Some(Remainder::Mask), Some(OnBad::Mask));
        let mut loader = Loader::new(&config).unwrap();
        let batch = loader.next_batch().unwrap().unwrap();
        (batch.images().unwrap().to_vec(), batch.valid().to_vec(), loader.bad_samples())
    };

    let (pixels, valid, bad) = load(FloatRange::new(-1.0, 3.0));
    // (value + 1) / 4 * 255, rounded and clamped, in each of three channels.
    let rows = [[64, 0, 96, 255], [128, 0, 96, 255]];
    assert_eq!(pixels, rows.concat().into_iter().flat_map(|value: u8| [value; 3]).collect::<Vec<_>>());
    assert!(valid == [true, true] && bad.is_empty());

    let (_, valid, bad) = load(None);
    assert_eq!((valid, bad.len()), (vec![false, false], 2));
    assert!(
        bad.iter()
            .all(|sample| matches!(&sample.error, SampleError::Decode(shardtool_decode::Error::FloatSamples { .. })))
    );
}
