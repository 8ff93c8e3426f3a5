//! Batches of grey and of 16 bits: shapes, memory, and options that are refused.

use crate::decoded_cache::cache;
use crate::{dataset, samples};
use shardtool_decode::{Channels, Layout, Pipeline, PixelFormat, Transform};
use shardtool_load::{BatchTransform, Config, Error, Field, Image, InvalidOptions, Loader, Mode, Pairs};
use shardtool_order::Order;
use shardtool_read::{Dataset, Split};
use std::path::Path;

const SIDE: usize = 19;
const BATCH: usize = 4;
const FORMATS: [PixelFormat; 4] = [PixelFormat::RGB8, PixelFormat::GRAY8, PixelFormat::RGB16, PixelFormat::GRAY16];

fn split(folder: &Path) -> Split {
    dataset::write(folder, "train", &samples::photographs(10), 6);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(split: &Split, format: PixelFormat) -> Config {
    let mut config = Config::new(split.clone(), [Image::new(Pipeline::train(SIDE as u32).unwrap())], BATCH as u32);
    set_format(&mut config, format);
    (config.order, config.epochs) = (Order::Shuffled, Some(1));
    config
}

fn image(config: &mut Config) -> &mut Image {
    let Some(Field::Image(image)) = config.fields.first_mut() else { unreachable!("the first field is the image") };
    image
}

fn set_format(config: &mut Config, format: PixelFormat) {
    let pixels = &mut image(config).pixels;
    pixels.mode = if format.channels == Channels::Gray { Mode::L } else { Mode::Rgb };
    pixels.bits = Some(8 * format.depth.bytes() as u8);
    assert_eq!(pixels.format(), format);
}

/// Returns the ids and the pixels of one epoch.
fn epoch(config: &Config) -> (Vec<i64>, Vec<u8>) {
    let mut loader = Loader::new(config).unwrap();
    let (mut ids, mut pixels) = (vec![], vec![]);
    while let Some(batch) = loader.next_batch().unwrap() {
        ids.extend_from_slice(batch.ids());
        pixels.extend_from_slice(batch.images().unwrap());
    }
    (ids, pixels)
}

#[test]
fn order_and_crops_are_those_of_rgb() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let (ids, rgb) = epoch(&config(&split, PixelFormat::RGB8));
    let widened: Vec<u8> = rgb.iter().flat_map(|v| [*v; 2]).collect();
    let mut loader = Loader::new(&config(&split, PixelFormat::RGB16)).unwrap();
    assert_eq!(loader.next_batch().unwrap().unwrap().image_shape(), Some([BATCH, SIDE, SIDE, 3]));
    let (same, deep) = epoch(&config(&split, PixelFormat::RGB16));
    assert_eq!(ids, same);
    // Both round the same weighted means, once in 8 and once in 16 bits.
    let far = |(a, b): (&[u8; 2], &[u8; 2])| u16::from_le_bytes(*a).abs_diff(u16::from_le_bytes(*b)) > 2 * 257;
    assert_eq!(deep.len(), widened.len());
    assert!(!deep.as_chunks().0.iter().zip(widened.as_chunks().0).any(far));
    let (same, gray) = epoch(&config(&split, PixelFormat::GRAY8));
    assert_eq!((ids, rgb.len()), (same, 3 * gray.len()));
    for (rgb, gray) in rgb.as_chunks::<3>().0.iter().zip(gray) {
        let [r, g, b] = rgb.map(f64::from);
        let luma = 0.299 * r + 0.587 * g + 0.114 * b;
        // Colours outside of RGB are clamped before they are mixed, luma is not.
        assert!((luma - f64::from(gray)).abs() <= 26.0, "{rgb:?} {gray}");
    }
}

#[test]
fn plan_counts_bytes_per_format() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let values = (SIDE * SIDE * BATCH) as u64;
    let batch = |format, layout| {
        let mut config = config(&split, format);
        image(&mut config).pixels.layout = layout;
        Loader::plan(&config).unwrap().memory.batch
    };
    let rgb = batch(PixelFormat::RGB8, None);
    assert_eq!(rgb - batch(PixelFormat::GRAY8, None), 2 * values);
    assert_eq!(rgb - batch(PixelFormat::GRAY16, None), values);
    assert_eq!(batch(PixelFormat::RGB16, None) - rgb, 3 * values);
    for format in FORMATS {
        let floats = 4 * format.channels.count() as u64 * values;
        let samples = format.bytes() as u64 * values;
        assert_eq!(batch(format, Some(Layout::Nchw)) - batch(format, None), floats - samples);
    }
}

#[test]
fn rows_of_grey_and_16_bits_are_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    for format in FORMATS {
        let mut config = config(&split, format);
        let (_, plain) = epoch(&config);
        let mut mix_up = Pairs::default();
        mix_up.num_classes = Some(5);
        config.batch_transform = vec![BatchTransform::MixUp(mix_up)];
        let (_, mixed) = epoch(&config);
        assert_eq!(plain.len(), mixed.len());
        let value = |bytes: &[u8], i: usize| match format.depth.bytes() {
            1 => f64::from(bytes[i]),
            _ => f64::from(u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])),
        };
        // Each value is a weighted mean of the row's own and the next one's.
        let row = SIDE * SIDE * format.channels.count();
        for i in 0..BATCH * row {
            let (a, b) = (value(&plain, i), value(&plain, (i + row) % (BATCH * row)));
            let found = value(&mixed, i);
            assert!(a.min(b) - 1.0 <= found && found <= a.max(b) + 1.0, "{format:?}: {a} and {b} give {found}");
        }
    }
}

#[test]
fn options_that_do_not_fit_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let size = Transform::CenterCrop { size: [SIDE as u32; 2] };
    let blur = Transform::RandomApply {
        transforms: vec![Transform::GaussianBlur { kernel_size: [3, 3], sigma: [0.1, 2.0] }],
        p: 0.5,
    };
    let mut deep = config(&split, PixelFormat::GRAY16);
    image(&mut deep).views[0].pipeline = Pipeline::new(vec![size, blur]).unwrap();
    let error = Loader::new(&deep).err().unwrap();
    assert!(matches!(error, Error::PixelFormat { step: "gaussian_blur", format: "grey of 16 bits" }), "{error}");
    set_format(&mut deep, PixelFormat::GRAY8);
    Loader::new(&deep).unwrap();
    image(&mut deep).pixels.std = Some(vec![0.2; 3]);
    let error = Loader::new(&deep).err().unwrap();
    let Error::Options(InvalidOptions::Pixels { reason }) = error else { panic!("{error}") };
    assert_eq!(reason, "`std` has 3 numbers: expected one for grey");
}

#[test]
fn cached_images_have_the_format() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    for format in FORMATS {
        for file in [None, Some(folder.path().to_owned())] {
            let mut config = config(&split, format);
            (config.epochs, config.order) = (Some(2), Order::Sequential);
            image(&mut config).views[0].pipeline = Pipeline::eval(24, SIDE as u32).unwrap();
            let mut bounded = cache(30, 1 << 20);
            bounded.path = file;
            image(&mut config).pixels.decoded_cache = Some(bounded);
            let mut loader = Loader::new(&config).unwrap();
            let mut epochs = [vec![], vec![]];
            for epoch in &mut epochs {
                while let Some(batch) = loader.next_batch().unwrap() {
                    epoch.extend_from_slice(batch.images().unwrap());
                }
            }
            assert!(epochs[0] == epochs[1] && !epochs[0].is_empty(), "{format:?}");
            assert_eq!(loader.stats().decoded_cache.unwrap().hits, 10);
        }
    }
}
