//! Normalised batches equal the formula applied to the u8 batch, in every type and layout.

use crate::{dataset, samples};
use shardtool_decode::{Dtype, Layout, Normalizer, Output, Pipeline, PixelFn};
use shardtool_load::{Config, Custom, Image, Loader, OnBad, PixelDtype, Pixels};
use shardtool_order::{Order, Remainder};
use shardtool_read::{Dataset, Split};
use std::path::Path;
use std::sync::Arc;

const SIDE: usize = 19;
const BATCH: usize = 4;

/// 18 samples, of which record 7 is damaged.
fn damaged(folder: &Path) -> Split {
    dataset::write(folder, "train", &samples::photographs(18), 6);
    let open = || Dataset::open(folder).unwrap().split("train").unwrap().clone();
    let frame = open().shard(1).unwrap().frame(1).unwrap();
    let path = folder.join("train-00001.tfrecord");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(frame.start + frame.end) as usize / 2] ^= 1;
    std::fs::write(path, bytes).unwrap();
    open()
}

/// Delivers images as `change` sets their pixels.
fn config(split: &Split, change: &dyn Fn(&mut Pixels)) -> Config {
    let mut image = Image::new(Pipeline::train(SIDE as u32).unwrap());
    change(&mut image.pixels);
    let brighter: PixelFn = Arc::new(|pixels, _| pixels.data.iter_mut().for_each(|x| *x = x.saturating_add(9)));
    image.pixels.custom = Some(Custom(brighter));
    let mut config = Config::new(split.clone(), [image], BATCH as u32);
    (config.order, config.remainder, config.bad_samples.on_bad) =
        (Order::Shuffled, Some(Remainder::Mask), Some(OnBad::Mask));
    config
}

#[test]
fn output_equals_the_formula_applied_to_the_u8_batch() {
    let folder = tempfile::tempdir().unwrap();
    let split = damaged(folder.path());
    let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    for (dtype, option) in
        [(Dtype::F32, PixelDtype::Float32), (Dtype::F16, PixelDtype::Float16), (Dtype::Bf16, PixelDtype::Bfloat16)]
    {
        for layout in [Layout::Nchw, Layout::Nhwc] {
            let output = Output::new(dtype, layout, mean, std).unwrap();
            let normalizer = Normalizer::new(output);
            let normalized = |pixels: &mut Pixels| {
                (pixels.dtype, pixels.layout) = (Some(option), Some(layout));
                (pixels.mean, pixels.std) = (Some(mean.to_vec()), Some(std.to_vec()));
            };
            let mut plain = Loader::new(&config(&split, &|_| ())).unwrap();
            let mut loader = Loader::new(&config(&split, &normalized)).unwrap();
            let mut masked = 0;
            while let Some(batch) = loader.next_batch().unwrap() {
                let expected = plain.next_batch().unwrap().unwrap();
                assert_eq!(batch.ids(), expected.ids());
                masked += batch.valid().iter().filter(|valid| !**valid).count();
                let (c, h, w) = (3, SIDE, SIDE);
                let shape = if layout == Layout::Nchw { [BATCH, c, h, w] } else { [BATCH, h, w, c] };
                assert_eq!(batch.image_shape(), Some(shape));
                let row = 3 * SIDE * SIDE;
                let mut values = vec![0; row * dtype.bytes()];
                let found = batch.images().unwrap().chunks_exact(row * dtype.bytes());
                assert_eq!(found.len(), BATCH);
                for (found, pixels) in found.zip(expected.images().unwrap().chunks_exact(row)) {
                    normalizer.write(pixels, &mut values);
                    assert!(found == values, "{output:?}");
                }
            }
            assert!(plain.next_batch().unwrap().is_none());
            assert_eq!(masked, 3, "the damaged one, and two of the last batch");
        }
    }
}

#[test]
fn plan_counts_bytes_per_type() {
    let folder = tempfile::tempdir().unwrap();
    let split = damaged(folder.path());
    let batch = |dtype| Loader::plan(&config(&split, &|pixels| pixels.dtype = dtype)).unwrap().memory.batch;
    let values = (3 * SIDE * SIDE * BATCH) as u64;
    assert_eq!(batch(Some(PixelDtype::Float32)) - batch(None), 3 * values);
    assert_eq!(batch(Some(PixelDtype::Float16)) - batch(None), values);
}
