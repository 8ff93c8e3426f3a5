//! The whole path under a stand-in driver: values, order, limits, failures, and nothing left behind.

#[path = "child/mod.rs"]
mod child;
#[path = "child/feed.rs"]
mod feed;

use child::with_standin;
use cudarc::driver::CudaStream;
use feed::{Made, pixel};
use shardtool_cuda::{
    Config, Device, DeviceBatch, DeviceLoader, Dtype, Error, Layout, OnExhausted, Output, Part, Probe, Unavailable,
    Value,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MEAN: [f64; 3] = [0.485, 0.456, 0.406];
const STD: [f64; 3] = [0.229, 0.224, 0.225];

/// An array, copied to the host behind the upload.
fn fetch<T: Value + Default + Clone>(batch: &DeviceBatch, part: Part<'_>, stream: &Arc<CudaStream>) -> Vec<T> {
    let values = stream.clone_dtoh(&batch.view::<T>(part, stream).unwrap()).unwrap();
    stream.synchronize().unwrap();
    values
}

/// What the image values must be: the formula in f64, and how far the nearest value of the type may be from it.
fn check_images(batch: &DeviceBatch, number: u64, [n, h, w, _]: [usize; 4], stream: &Arc<CudaStream>) {
    let output = batch.output();
    let (values, step): (Vec<f64>, f64) = match output.dtype() {
        Dtype::F32 => (fetch::<f32>(batch, Part::Images, stream).iter().map(|v| *v as f64).collect(), 1.2e-7),
        Dtype::F16 => (fetch::<half::f16>(batch, Part::Images, stream).iter().map(|v| v.to_f64()).collect(), 4.9e-4),
        Dtype::Bf16 => (fetch::<half::bf16>(batch, Part::Images, stream).iter().map(|v| v.to_f64()).collect(), 3.95e-3),
    };
    assert_eq!(values.len(), n * h * w * 3);
    for i in 0..values.len() {
        let c = i % 3;
        let at = match output.layout() {
            Layout::Nhwc => i,
            Layout::Nchw => (i / 3 / (h * w) * 3 + c) * h * w + i / 3 % (h * w),
        };
        let exact = (pixel(number, i) as f64 / 255.0 - MEAN[c]) / STD[c];
        // Half a step of the type, and the cancellation of x·a against b in f32.
        let bound = exact.abs() * step + 4e-7;
        assert!((values[at] - exact).abs() <= bound, "{output:?} batch {number} byte {i}: {} for {exact}", values[at]);
    }
}

fn check_rows(batch: &DeviceBatch, number: u64, stream: &Arc<CudaStream>) {
    let rows = batch.rows();
    let n = rows.ids.len() as i64;
    assert_eq!(rows.ids[0], number as i64 * n);
    assert_eq!(fetch::<i64>(batch, Part::Ids, stream), rows.ids);
    assert_eq!(fetch::<bool>(batch, Part::Valid, stream), rows.valid);
    let label: Vec<i64> = (0..n).map(|i| i + 1000 * number as i64).collect();
    assert_eq!(fetch::<i64>(batch, Part::Column("label"), stream), label);
    assert_eq!(batch.shape(Part::Column("box")).unwrap(), [n as usize, 2]);
    assert_eq!(fetch::<f32>(batch, Part::Column("box"), stream)[3], 0.75 + number as f32);
}

fn loader(config: Config, shape: [usize; 4], per_epoch: u64, epochs: u64) -> (Device, DeviceLoader<Made>) {
    let device = Device::open(0).unwrap();
    let loader = DeviceLoader::new(&device, config, |pinned| Made::new(pinned, shape, per_epoch, epochs)).unwrap();
    (device, loader)
}

#[test]
fn every_type_layout_and_shape_is_what_the_formula_says() {
    let report = with_standin("every_type_layout_and_shape_is_what_the_formula_says", &[], || {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for layout in [Layout::Nhwc, Layout::Nchw] {
                for shape in [[2, 8, 6, 3], [3, 5, 7, 3], [1, 1, 1, 3], [5, 33, 31, 3], [2, 40, 52, 3]] {
                    let output = Output::new(dtype, layout, MEAN, STD).unwrap();
                    let (device, mut loader) = loader(Config { output, ..Config::default() }, shape, 3, 1);
                    let stream = device.context().new_stream().unwrap();
                    let mut number = 0;
                    while let Some(batch) = loader.next_batch().unwrap() {
                        check_images(&batch, number, shape, &stream);
                        check_rows(&batch, number, &stream);
                        number += 1;
                    }
                    assert_eq!(number, 3);
                }
            }
        }
    });
    if let Some(report) = report {
        report.assert_clean();
    }
}
