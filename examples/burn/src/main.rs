//! Trains a small network with burn, resumes from its checkpoint, and evaluates each sample once, also with several processes.
//!
//! `cargo run --release -- DATASET CHECKPOINT STEPS`

mod data_loader;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::CrossEntropyLossConfig;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};
use data_loader::{EpochLoader, tensors};
use shardtool::{Dataset, Image, Launch, Loader, LoaderConfig, Order, Pipeline, Split};
use std::path::Path;

#[derive(Module, Debug)]
struct Network {
    first: Conv2d,
    second: Conv2d,
    head: Linear,
}

impl Network {
    fn new(classes: usize, device: &Device) -> Self {
        Network {
            first: Conv2dConfig::new([3, 16], [7, 7]).with_stride([4, 4]).init(device),
            second: Conv2dConfig::new([16, 32], [5, 5]).with_stride([4, 4]).init(device),
            head: LinearConfig::new(32, classes).init(device),
        }
    }

    /// Returns the scores of images `[N, 3, 64, 64]`: `[N, classes]`.
    fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let x = relu(self.second.forward(relu(self.first.forward(x))));
        self.head.forward(x.mean_dim(3).mean_dim(2).flatten(1, 3))
    }
}

fn loader(split: &Split, train: bool) -> shardtool::Result<Loader> {
    let steps = if train { Pipeline::train(64)? } else { Pipeline::eval(72, 64)? };
    let image = Image::new(steps).with_normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let config = LoaderConfig::new(split.clone(), [image], 16).with_replica(Launch::of_process()?.replica).with_seed(1);
    Ok(Loader::new(&if train { config } else { config.with_order(Order::Sequential).with_epochs(1) })?)
}

fn main() -> anyhow::Result<()> {
    let [_, dataset, checkpoint, steps] = std::env::args().collect::<Vec<_>>().try_into().expect("three arguments");
    let split = Dataset::open(&dataset)?.split("train")?.clone();
    let (weights, state) = (format!("{checkpoint}.bpk"), format!("{checkpoint}.json"));
    let device = Device::flex().autodiff();
    let mut model = Network::new(split.manifest().classes.len(), &device);
    let mut train = loader(&split, true)?;
    if Path::new(&state).exists() {
        model = model.load_file(&weights);
        train.load_state(&std::fs::read_to_string(&state)?.parse()?)?;
    }
    let (mut optimizer, loss) = (SgdConfig::new().init(), CrossEntropyLossConfig::new().init(&device));
    for step in 0..steps.parse()? {
        let batch = train.epoch().next().expect("an epoch has a step")?;
        let ids = batch.ids().to_vec();
        let (x, y) = tensors(batch, &device);
        let loss = loss.forward(model.forward(x), y);
        println!("step {step}: samples {ids:?}, loss {}", loss.clone().into_scalar::<f32>());
        let gradients = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.05, model, gradients);
    }
    model.clone().save_file(&weights)?;
    std::fs::write(&state, train.state().to_string())?;

    let right = data_loader::evaluate(&EpochLoader::new(loader(&split, false)?, device), |x| model.forward(x))?;
    println!("{} of {} samples are right", right.0, right.1);
    Ok(())
}
