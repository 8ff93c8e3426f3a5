//! Mixing on the stand-in device: the values are bit for bit those of batches that the host mixes and then normalises.

#[path = "child/mod.rs"]
mod child;
#[path = "child/feed.rs"]
mod feed;

use child::with_standin;
use feed::{Made, pixel};
use shardtool_cuda::cudarc::driver::CudaStream;
use shardtool_cuda::{
    Config, Device, DeviceBatch, DeviceLoader, Dtype, Error, Feed, HostArray, HostBatch, Layout, Output, Part,
    PinnedAlloc, Rows,
};
use shardtool_decode::Normalizer;
use shardtool_load::{BatchMix, BatchTransform, Mixing, Mosaic};
use std::sync::Arc;

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

/// Every transform.
fn mixing() -> Mixing {
    let mut anywhere = Mosaic::default();
    anywhere.center = [0.0, 1.0];
    let transforms = vec![
        BatchTransform::mix_up(0.8),
        BatchTransform::cut_mix(1.0),
        BatchTransform::Mosaic(anywhere),
        BatchTransform::mosaic(0.5),
    ];
    Mixing { transforms, classes: 3 }
}

/// A feed of `batches` batches, which are mixed.
fn mixed(
    pinned: &PinnedAlloc,
    shape: [usize; 4],
    batches: u64,
    mixing: &Mixing,
    valid: &[bool],
) -> shardtool_cuda::Result<Made> {
    let mut feed = Made::new(pinned, shape, batches, 1)?;
    feed.mixing = Some((mixing.clone(), valid.to_vec()));
    Ok(feed)
}

/// Returns the bytes of the images of a batch.
fn image_bytes(batch: &DeviceBatch, stream: &Arc<CudaStream>) -> Vec<u8> {
    match batch.output().dtype() {
        Dtype::F32 => {
            let values = batch.view::<f32>(Part::Images, stream).unwrap().to_host().unwrap();
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        Dtype::F16 => {
            let values = batch.view::<half::f16>(Part::Images, stream).unwrap().to_host().unwrap();
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
        Dtype::Bf16 => {
            let values = batch.view::<half::bf16>(Part::Images, stream).unwrap().to_host().unwrap();
            values.iter().flat_map(|value| value.to_le_bytes()).collect()
        }
    }
}

/// Returns what the host makes of u8 images: the values of `output`.
fn normalized(pixels: &[u8], image: usize, output: Output) -> Vec<u8> {
    let normalizer = Normalizer::new(output);
    let mut values = vec![0; pixels.len() * output.dtype().bytes()];
    let images = values.chunks_mut(image * output.dtype().bytes());
    pixels.chunks(image).zip(images).for_each(|(pixels, values)| normalizer.write(pixels, values));
    values
}

/// The next upload into a slot waits for the kernel that mixed its last batch, also if no stream has used that.
#[test]
fn mixed_batches_that_nobody_uses_are_not_written_early() {
    for seed in ["1", "2", "3"] {
        let environment = [("STANDIN_SEED", seed), ("STANDIN_DELAY_US", "3000")];
        let report = with_standin("mixed_batches_that_nobody_uses_are_not_written_early", &environment, || {
            let mut config = Config::default();
            config.slots = 2;
            let device = Device::open(0).unwrap();
            let mixing = mixing();
            let make = |pinned: &PinnedAlloc| mixed(pinned, [4, 6, 6, 3], 40, &mixing, &[true; 4]);
            let mut loader = DeviceLoader::new(&device, config, make).unwrap();
            while let Some(batch) = loader.next_batch().unwrap() {
                drop(batch);
            }
        });
        let Some(report) = report else { return };
        report.assert_clean();
    }
}

#[test]
fn mixed_values_equal_the_hosts_for_every_type_layout_and_shape() {
    let name = "mixed_values_equal_the_hosts_for_every_type_layout_and_shape";
    let report = with_standin(name, &[("STANDIN_DELAY_US", "60")], || {
        let cases: [([usize; 4], &[bool]); 8] = [
            ([5, 8, 6, 3], &[true; 5]),
            ([6, 5, 7, 3], &[true, false, true, true, false, true]),
            ([4, 6, 6, 3], &[true, true, true, false]),
            // Lines that do not begin at a group of four pixels.
            ([3, 4, 5, 3], &[true; 3]),
            // More pixels than a block of the x1 and of the x4 kernel has threads.
            ([2, 19, 33, 3], &[true; 2]),
            ([2, 40, 52, 3], &[true; 2]),
            ([3, 8, 8, 3], &[false, true, false]),
            ([1, 4, 9, 3], &[true]),
        ];
        let mixing = mixing();
        let batches = 24;
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for (layout, (shape, valid)) in [Layout::Nhwc, Layout::Nchw].into_iter().flat_map(|l| cases.map(|c| (l, c)))
            {
                let output = Output::new(dtype, layout, MEAN, STD).unwrap();
                let mut config = Config::default();
                config.output = output;
                let device = Device::open(0).unwrap();
                let make = |pinned: &PinnedAlloc| mixed(pinned, shape, batches, &mixing, valid);
                let mut loader = DeviceLoader::new(&device, config, make).unwrap();
                let stream = device.context().new_stream().unwrap();
                let mut changed = 0;
                for number in 0..batches {
                    let batch = loader.next_batch().unwrap().unwrap();
                    let unmixed: Vec<u8> = (0..shape.iter().product()).map(|i| pixel(number, i)).collect();
                    let mut pixels = unmixed.clone();
                    Made::mix(&mixing, shape, number, valid).mix(&mut pixels);
                    changed += u32::from(pixels != unmixed);
                    let expected = normalized(&pixels, shape[1..].iter().product(), output);
                    assert!(image_bytes(&batch, &stream) == expected, "{output:?} {shape:?} batch {number}");
                }
                assert!(loader.next_batch().unwrap().is_none());
                assert!(changed > 15 || valid.iter().filter(|valid| **valid).count() < 2, "{shape:?}: {changed}");
            }
        }
    });
    let Some(report) = report else { return };
    report.assert_clean();
    assert!(report.number("mixed") > 500, "{}", report.0);
}

/// Batches that no transform changes are normalised without mixing, by the kernel of unmixed batches.
#[test]
fn batches_that_stay_as_they_are_are_not_mixed() {
    let report = with_standin("batches_that_stay_as_they_are_are_not_mixed", &[], || {
        let transforms = vec![BatchTransform::mosaic(0.0)];
        let never = Mixing { transforms, classes: 3 };
        let shape = [3, 6, 6, 3];
        let device = Device::open(0).unwrap();
        let stream = device.context().new_stream().unwrap();
        let make = |pinned: &PinnedAlloc| mixed(pinned, shape, 5, &never, &[true; 3]);
        let mut loader = DeviceLoader::new(&device, Config::default(), make).unwrap();
        for number in 0..5 {
            let batch = loader.next_batch().unwrap().unwrap();
            let pixels: Vec<u8> = (0..shape.iter().product()).map(|i| pixel(number, i)).collect();
            assert_eq!(image_bytes(&batch, &stream), normalized(&pixels, 6 * 6 * 3, *batch.output()));
        }
    });
    let Some(report) = report else { return };
    report.assert_clean();
    assert_eq!(report.number("mixed"), 0);
}

/// The numbers that say how rows are mixed are part of a slot, which the limit counts.
#[test]
fn device_memory_limit_includes_how_rows_are_mixed() {
    let report = with_standin("device_memory_limit_includes_how_rows_are_mixed", &[], || {
        let (shape, device) = ([64, 8, 8, 3], Device::open(0).unwrap());
        let held = |limit: Option<u64>, mixes: bool| {
            let mut config = Config::default();
            (config.slots, config.device_memory_limit) = (2, limit);
            config.on_exhausted = shardtool_cuda::OnExhausted::Error;
            let make = |pinned: &_| match mixes {
                true => mixed(pinned, shape, 8, &mixing(), &[true; 64]),
                false => Made::new(pinned, shape, 8, 1),
            };
            let mut loader = DeviceLoader::new(&device, config, make).unwrap();
            let batches = [loader.next_batch(), loader.next_batch()];
            batches.iter().all(Result::is_ok).then(|| loader.memory().device)
        };
        let (plain, more) = (held(None, false).unwrap(), held(None, true).unwrap());
        // 56 bytes a row in each of two slots, and a gap before them up to the next multiple of 256.
        assert!((2 * 64 * 56..2 * (64 * 56 + 256)).contains(&(more - plain)), "{plain} {more}");
        assert_eq!(held(Some(more), true), Some(more));
        assert_eq!(held(Some(more - 1), true), None);
        assert_eq!(held(Some(plain), false), Some(plain));
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}

/// Batches of one row, or of as many as `mix` says; the mixing is that of `mixes[number]`.
struct Mismatched {
    mixes: Vec<Option<BatchMix>>,
}

struct Mixed(Option<BatchMix>);

impl Feed for Mismatched {
    type Batch = Mixed;

    fn next_batch(&mut self) -> Result<Option<Mixed>, shardtool_load::Error> {
        Ok(self.mixes.pop().map(Mixed))
    }
}

impl HostBatch for Mixed {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        vec![HostArray::images([2, 4, 3, 3], &[1; 2 * 4 * 3 * 3])]
    }

    fn mix(&self) -> Option<&BatchMix> {
        self.0.as_ref()
    }

    fn rows(&self) -> Rows {
        Rows { ids: vec![0, 1], valid: vec![true; 2], ..Rows::default() }
    }
}

#[test]
fn mixing_that_does_not_fit_the_batch_is_rejected() {
    let report = with_standin("mixing_that_does_not_fit_the_batch_is_rejected", &[], || {
        let device = Device::open(0).unwrap();
        let mix = |n: usize, size| Some(mixing().draw(1, 0, 0, size, &vec![true; n]).unwrap());
        let failure = |mixes: Vec<Option<BatchMix>>| {
            let feed = Mismatched { mixes: mixes.into_iter().rev().collect() };
            let mut loader = DeviceLoader::new(&device, Config::default(), |_| Ok(feed)).unwrap();
            loop {
                match loader.next_batch() {
                    Ok(batch) => assert!(batch.is_some(), "no batch was rejected"),
                    Err(error) => break error,
                }
            }
        };
        for wrong in [mix(3, (3, 4)), mix(2, (4, 3)), mix(2, (3, 5))] {
            for mixes in [vec![wrong.clone()], vec![mix(2, (3, 4)), None, wrong]] {
                let error = failure(mixes);
                assert!(matches!(error, Error::Mix { expected: Some([2, 4, 3]), .. }), "{error}");
            }
        }
        let error = failure(vec![None, mix(2, (3, 4))]);
        assert!(matches!(error, Error::Mix { expected: None, found: [2, 4, 3] }), "{error}");
        assert_eq!(
            error.to_string(),
            "batch is mixed as images of [2, 4, 3] (N, H, W), expected no mixing, as in the loader's first batch"
        );
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}
