//! Counts how often the pixels of a batch are copied on the way into a tensor of burn, as the data loader makes it: never.

#[path = "../../candle/tests/counting/mod.rs"]
mod counting;
#[path = "../src/data_loader.rs"]
#[allow(dead_code, reason = "the program uses the rest")]
mod data_loader;
#[path = "../../candle/tests/dataset/mod.rs"]
mod dataset;

use burn::tensor::Device;
use counting::counted;
use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};

#[test]
fn a_tensor_takes_the_pixels_over() {
    let folder = tempfile::tempdir().unwrap();
    let split = Dataset::open(dataset::dataset(folder.path())).unwrap().split("train").unwrap().clone();
    let image = Image::new(Pipeline::train(64).unwrap()).with_normalization([0.5; 3], [0.25; 3]);
    let mut loader = Loader::new(&LoaderConfig::new(split, [image], 16)).unwrap();
    let device = Device::flex().autodiff();
    let mut steps = 0;
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        let expected = batch.images_f32().unwrap().to_vec();
        let ((x, _), bytes) = counted(|| data_loader::tensors(batch, &device));
        assert!(bytes < 16 << 10, "{bytes} bytes for {}", size_of_val(expected.as_slice()));
        assert!(x.into_data().iter::<f32>().eq(expected));
        steps += 1;
    }
    assert_eq!(steps, dataset::SAMPLES / 16);
}
