//! Which pixels show the image: those where a label map does not have the label outside the image.

use crate::dataset::{self, MASK, Sample};
use crate::masks::wide_quarters;
use serde_json::json;
use shardtool_decode::{LabelDtype, Pipeline};
use shardtool_load::{
    AspectRatioBuckets, Batch, BatchTransform, Config, DecodedCache, Error, Field, Image, InvalidOptions, Loader, Mask,
    Mosaic, Part, PixelMask,
};
use shardtool_order::Remainder;
use shardtool_read::{Dataset, Split};
use std::num::NonZeroU32;
use std::path::Path;

const SIDE: u32 = 48;
const SAMPLES: u32 = 22;

fn split(folder: &Path) -> Split {
    let samples: Vec<Sample> = (0..SAMPLES).map(wide_quarters).collect();
    dataset::write(folder, "train", &samples, 7);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

/// Steps that add pixels, turn the image away, cut and flip.
fn steps() -> [Pipeline; 3] {
    let size = [SIDE; 2];
    let letterbox = json!({"letterbox": {"size": size}});
    let flip = json!({"horizontal_flip": {"p": 0.5}});
    let rotation = json!({"random_rotation": {"degrees": [-60.0, 60.0], "interpolation": "bilinear"}});
    let jitter = json!({"scale_jitter": {"target_size": size, "scale_range": [0.3, 2.0]}});
    let cut = json!({"fixed_size_crop": {"size": size, "fill": [1, 2, 3]}});
    [json!([letterbox, flip]), json!([jitter, cut, flip]), json!([letterbox, rotation, flip])]
        .map(|steps| serde_json::from_value(steps).unwrap())
}

fn config(split: Split, steps: Pipeline) -> Config {
    let image = Image::new(steps);
    let mut config = Config::new(split, [image], 8).with(PixelMask::default());
    let mut mask = Mask::new(MASK);
    // 0, 21845, 43690 and 65535 are labels.
    (mask.dtype, mask.fill) = (LabelDtype::U16, Some(77));
    config.fields.push(mask.into());
    (config.epochs, config.remainder) = (Some(2), Some(Remainder::Mask));
    config
}

/// Compares the pixels of a batch that show the image with its label maps. Returns how many show it, and how many do not.
fn compare(batch: &Batch) -> (usize, usize) {
    let (shown, map) = (batch.pixel_mask().unwrap(), batch.masks().next().unwrap());
    assert_eq!((batch.masks().count(), shown.shape), (1, map.shape));
    let pixels = shown.bytes.len() / batch.len();
    let labels = map.bytes.chunks_exact(2).map(|label| u16::from_le_bytes([label[0], label[1]]));
    for (at, (shown, label)) in shown.bytes.iter().zip(labels).enumerate() {
        let expected = batch.valid()[at / pixels] && label != 77;
        assert_eq!(*shown, u8::from(expected), "pixel {at}");
    }
    let ones = shown.bytes.iter().filter(|shown| **shown == 1).count();
    (ones, shown.bytes.len() - ones)
}

fn each_batch(config: &Config, mut f: impl FnMut(&Batch)) {
    let mut loader = Loader::new(config).unwrap();
    for _ in 0..2 {
        while let Some(batch) = loader.next_batch().unwrap() {
            f(&batch);
        }
    }
    assert!(loader.bad_samples().is_empty());
}

#[test]
fn shows_the_pixels_of_the_image_after_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    for steps in steps() {
        let mut cache = DecodedCache::new(1 << 20);
        cache.resize = 40;
        for cache in [None, Some(cache)] {
            let mut config = config(split.clone(), steps.clone());
            if let Field::Image(image) = &mut config.fields[0] {
                image.pixels.decoded_cache = cache;
            }
            let (mut all, mut masked) = ((0, 0), 0);
            each_batch(&config, |batch| {
                let (shown, padding) = compare(batch);
                all = (all.0 + shown, all.1 + padding);
                masked += batch.valid().iter().filter(|valid| !**valid).count();
            });
            assert!(all.0 > 10_000 && all.1 > 10_000 && masked > 0, "{all:?}, {masked} rows without a sample");
        }
    }
}

#[test]
fn moves_with_the_pixels_of_mixed_rows() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let mut mosaic = Mosaic::default();
    mosaic.num_classes = Some(1);
    let mut cut_mix = BatchTransform::cut_mix(1.0);
    if let BatchTransform::CutMix(pairs) = &mut cut_mix {
        pairs.num_classes = Some(1);
    }
    for transform in [cut_mix, BatchTransform::Mosaic(mosaic)] {
        let mut mixed = config(split.clone(), steps()[1].clone());
        mixed.batch_transform = vec![transform];
        let mut all = (0, 0);
        each_batch(&mixed, |batch| {
            let (shown, padding) = compare(batch);
            all = (all.0 + shown, all.1 + padding);
        });
        assert!(all.0 > 10_000 && all.1 > 10_000, "{all:?}");
    }
}

#[test]
fn has_the_shape_of_its_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(split(folder.path()), steps()[0].clone());
    let side = |side| NonZeroU32::new(side).unwrap();
    let shapes = [(32, 48), (48, 32)].map(|(width, height)| {
        let steps = json!([{"letterbox": {"size": [height, width]}}]);
        ((side(height), side(width)), serde_json::from_value(steps).unwrap())
    });
    config.fields[0] = Image::with_views(vec![]).into();
    config.buckets = Some(AspectRatioBuckets::new(shapes).into());
    let mut seen = vec![];
    each_batch(&config, |batch| {
        compare(batch);
        seen.push(batch.pixel_mask().unwrap().shape[1..].to_vec());
    });
    assert!(seen.contains(&vec![32, 48]) && seen.contains(&vec![48, 32]), "{seen:?}");
}

#[test]
fn a_resumed_run_has_the_masks_of_the_whole_one() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(split(folder.path()), steps()[1].clone());
    let mut whole = vec![];
    let mut loader = Loader::new(&config).unwrap();
    let first = loader.next_batch().unwrap().unwrap();
    let state = first.state_after();
    while let Some(batch) = loader.next_batch().unwrap() {
        whole.push(batch.pixel_mask().unwrap().bytes.to_vec());
    }
    let mut resumed = Loader::new(&config).unwrap();
    resumed.load_state(&state).unwrap();
    let mut rest = vec![];
    while let Some(batch) = resumed.next_batch().unwrap() {
        rest.push(batch.pixel_mask().unwrap().bytes.to_vec());
    }
    assert!(!whole.is_empty() && whole == rest);
}

#[test]
fn is_given_once_with_an_image_that_has_one_view() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let check = |config: &Config| Loader::check(config, &[0]).err().unwrap();
    let twice = config(split.clone(), steps()[0].clone()).with(PixelMask::default());
    let error = check(&twice);
    assert!(matches!(&error, Error::Options(InvalidOptions::Twice { field }) if field == "`PixelMask`"), "{error}");
    let alone = Config::new(split, [Field::from(PixelMask::default())], 8);
    let error = check(&alone);
    assert!(matches!(error, Error::Options(InvalidOptions::Alone { part: Part::PixelMask, .. })), "{error}");
}
