//! Counts how often the pixels of a batch are copied on the way into a tensor of candle, as the guide makes it: once.

mod counting;
mod dataset;

use candle_core::{Device, Tensor};
use counting::counted;
use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};

#[test]
fn a_tensor_is_one_copy_of_the_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let split = Dataset::open(dataset::dataset(folder.path())).unwrap().split("train").unwrap().clone();
    let image = Image::new(Pipeline::train(64).unwrap()).with_normalization([0.5; 3], [0.25; 3]);
    let mut loader = Loader::new(&LoaderConfig::new(split, [image], 16)).unwrap();
    let mut steps = 0;
    for batch in loader.epoch() {
        let batch = batch.unwrap();
        let (pixels, shape) = (batch.images_f32().unwrap(), batch.image_shape().unwrap());
        let (tensor, bytes) = counted(|| Tensor::from_slice(pixels, &shape, &Device::Cpu).unwrap());
        assert_eq!(tensor.dims(), [16, 3, 64, 64]);
        let copy = size_of_val(pixels);
        assert!((copy..copy + 4096).contains(&bytes), "{bytes} bytes for {copy}");
        steps += 1;
    }
    assert_eq!(steps, dataset::SAMPLES / 16);
}
