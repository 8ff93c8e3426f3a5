//! If a decoder panics, its sample is bad and the run continues.

#[path = "../../../decode/tests/made/panicking_tiff.rs"]
mod panicking_tiff;

use crate::{dataset, samples};
use panicking_tiff::panicking_tiff;
use shardtool_decode::Pipeline;
use shardtool_format::Chain;
use shardtool_load::{Config, Error, Image, Loader, OnBad, SampleError};
use shardtool_order::Order;
use shardtool_read::{Dataset, Split};
use std::path::Path;

/// 20 photographs, of which number 5 is a TIFF whose decoder panics.
fn split(folder: &Path) -> Split {
    let mut samples = samples::photographs(20);
    samples[5].image = Some((panicking_tiff(), (40, 20)));
    dataset::write(folder, "train", &samples, 8);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(split: Split) -> Config {
    let mut config = Config::new(split, [Image::new(Pipeline::train(16).unwrap())], 4);
    config.order = Order::Sequential;
    config
}

#[test]
fn panic_of_a_decoder_is_a_bad_sample() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    for workers in [1, 3] {
        for on_bad in [OnBad::Mask, OnBad::Substitute] {
            let mut config = config(split.clone());
            (config.workers, config.bad_samples.on_bad) = (Some(workers), Some(on_bad));
            let mut loader = Loader::new(&config).unwrap();
            let mut ids = vec![];
            for _ in 0..5 {
                ids.extend_from_slice(loader.next_batch().unwrap().unwrap().ids());
            }
            let others = |ids: &[i64]| ids.iter().copied().filter(|id| (0..20).contains(id) && *id != 5).count();
            assert!(others(&ids) >= 19, "{ids:?}");
            let bad = loader.bad_samples();
            assert_eq!(bad.iter().map(|bad| bad.id).collect::<Vec<_>>(), [5]);
            assert!(
                matches!(bad[0].error, SampleError::Decode(shardtool_decode::Error::Panic { .. })),
                "{}",
                bad[0].error
            );
        }
    }
}

#[test]
fn panic_of_a_decoder_names_the_sample_if_bad_samples_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(split(folder.path()));
    config.bad_samples.on_bad = Some(OnBad::Error);
    let mut loader = Loader::new(&config).unwrap();
    loader.next_batch().unwrap().unwrap();
    let error = loader.next_batch().unwrap_err();
    assert!(matches!(&error, Error::BadSample(bad) if bad.id == 5), "{error}");
    assert!(Chain(&error).to_string().contains("the tiff decoder panicked"), "{error}");
}
