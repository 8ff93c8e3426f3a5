//! A data loader for `burn::train`, whose order, resume states and bad samples are those of shardtool. burn's own `DataLoaderBuilder` over
//! a `Dataset` would lose them, and decode whole images.

use burn::data::dataloader::{DataLoader, DataLoaderIterator, Progress};
use burn::data::dataset::DatasetError;
use burn::tensor::{AllocationProperty, Bytes, DType, Device, Int, Tensor, TensorData};
use shardtool::{Batch, Chain, Loader};
use std::sync::{Arc, Mutex, PoisonError};

/// Images, labels, and which rows have a sample.
#[derive(Clone, Debug)]
pub struct Images {
    pub x: Tensor<4>,
    pub y: Tensor<1, Int>,
    pub valid: Vec<bool>,
}

/// Returns the images of a batch, whose memory the tensor takes over without a copy, and the labels, which are copied.
pub fn tensors(batch: Batch, device: &Device) -> (Tensor<4>, Tensor<1, Int>) {
    let (shape, labels) = (batch.image_shape().expect("images"), batch.labels().expect("labels").to_vec());
    let rows = labels.len();
    // Rows without a sample have the label -100, not a class.
    let labels: Vec<i64> = labels.into_iter().map(|label| label.max(0)).collect();
    let pixels = bytes::Bytes::from_owner(batch.into_images().expect("images"));
    let pixels = Bytes::from_shared(pixels, AllocationProperty::Native);
    let x = Tensor::from_data(TensorData::from_bytes(pixels, shape, DType::F32), device);
    (x, Tensor::from_data(TensorData::new(labels, [rows]), device))
}

/// Each call of `iter` is an epoch, or the rest of one. A loader for validation must not end (`with_epochs`): burn iterates over it after
/// each epoch of training.
pub struct EpochLoader {
    loader: Arc<Mutex<Loader>>,
    device: Device,
}

struct Epoch<'l> {
    loader: &'l EpochLoader,
    done: usize,
    total: usize,
    ended: bool,
}

impl EpochLoader {
    pub fn new(loader: Loader, device: Device) -> Self {
        EpochLoader { loader: Arc::new(Mutex::new(loader)), device }
    }
}

impl DataLoader<Images> for EpochLoader {
    fn iter<'a>(&'a self) -> Box<dyn DataLoaderIterator<Images> + 'a> {
        Box::new(Epoch { loader: self, done: 0, total: self.num_items(), ended: false })
    }

    fn num_items(&self) -> usize {
        self.loader.lock().unwrap_or_else(PoisonError::into_inner).epoch().len()
    }

    fn to_device(&self, device: &Device) -> Arc<dyn DataLoader<Images>> {
        Arc::new(EpochLoader { loader: self.loader.clone(), device: device.clone() })
    }

    /// Replicas share an epoch ([`shardtool::Replica`]): they have the same number of steps, and each sample once.
    fn slice(&self, _: usize, _: usize) -> Arc<dyn DataLoader<Images>> {
        panic!("give each process its replica (`LoaderConfig::with_replica`) instead of a slice")
    }
}

impl Iterator for Epoch<'_> {
    type Item = Result<Images, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let batch = self.loader.loader.lock().unwrap_or_else(PoisonError::into_inner).next_batch().transpose();
        self.ended = !matches!(batch, Some(Ok(_)));
        self.done += usize::from(!self.ended);
        batch.map(|batch| {
            let batch = batch.map_err(|error| DatasetError::new(std::io::Error::other(Chain(&error).to_string())))?;
            let valid = batch.valid().to_vec();
            let (x, y) = tensors(batch, &self.loader.device);
            Ok(Images { x, y, valid })
        })
    }
}

impl DataLoaderIterator<Images> for Epoch<'_> {
    fn progress(&self) -> Progress {
        Progress::new(self.done, self.total, Some("batches".to_owned()))
    }
}

/// Returns how many samples of an epoch `model` gets right, and how many there are.
pub fn evaluate(
    loader: &dyn DataLoader<Images>,
    model: impl Fn(Tensor<4>) -> Tensor<2>,
) -> anyhow::Result<(usize, usize)> {
    let (mut right, mut samples) = (0, 0);
    for images in loader.iter() {
        let Images { x, y, valid } = images?;
        let found = model(x).argmax(1).flatten::<1>(0, 1).equal(y).into_data().iter::<bool>().collect::<Vec<_>>();
        right += found.iter().zip(&valid).filter(|(right, valid)| **right && **valid).count();
        samples += valid.iter().filter(|valid| **valid).count();
    }
    Ok((right, samples))
}
