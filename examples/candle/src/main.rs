//! Trains a small network with candle, resumes from its checkpoint, and evaluates each sample once, also with several processes.
//!
//! `cargo run --release -p shardtool-candle -- DATASET CHECKPOINT STEPS`

use candle_core::{D, DType, Device, Tensor};
use candle_nn::{Conv2dConfig, Module, Optimizer, SGD, VarBuilder, VarMap, conv2d, linear, loss, seq};
use shardtool::{Batch, Dataset, Image, Launch, Loader, LoaderConfig, Order, Pipeline, Split};

fn loader(split: &Split, train: bool) -> shardtool::Result<Loader> {
    let steps = if train { Pipeline::train(64)? } else { Pipeline::eval(72, 64)? };
    let image = Image::new(steps).with_normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    let config = LoaderConfig::new(split.clone(), [image], 16).with_replica(Launch::of_process()?.replica).with_seed(1);
    Ok(Loader::new(&if train { config } else { config.with_order(Order::Sequential).with_epochs(1) })?)
}

/// Returns images, `[N, 3, 64, 64]`, and labels, `[N]`; each is copied once.
fn tensors(batch: &Batch) -> candle_core::Result<(Tensor, Tensor)> {
    let shape = batch.image_shape().expect("the loader delivers images");
    let x = Tensor::from_slice(batch.images_f32().expect("normalised"), &shape, &Device::Cpu)?;
    Ok((x, Tensor::from_slice(batch.labels().expect("the dataset has labels"), shape[0], &Device::Cpu)?))
}

fn main() -> anyhow::Result<()> {
    let [_, dataset, checkpoint, steps] = std::env::args().collect::<Vec<_>>().try_into().expect("three arguments");
    let split = Dataset::open(&dataset)?.split("train")?.clone();
    let (weights, state) = (format!("{checkpoint}.safetensors"), format!("{checkpoint}.json"));
    let mut variables = VarMap::new();
    let builder = VarBuilder::from_varmap(&variables, DType::F32, &Device::Cpu);
    let stride = Conv2dConfig { stride: 4, ..Conv2dConfig::default() };
    let model = seq().add(conv2d(3, 16, 7, stride, builder.pp("first"))?).add_fn(|x| x.relu());
    let model = model.add(conv2d(16, 32, 5, stride, builder.pp("second"))?).add_fn(|x| x.relu()?.mean((2, 3)));
    let model = model.add(linear(32, split.manifest().classes.len(), builder.pp("head"))?);
    let mut optimizer = SGD::new(variables.all_vars(), 0.05)?;
    let mut train = loader(&split, true)?;
    if let Ok(saved) = std::fs::read_to_string(&state) {
        variables.load(&weights)?;
        train.load_state(&saved.parse()?)?;
    }
    for step in 0..steps.parse()? {
        let batch = train.epoch().next().expect("an epoch has a step")?;
        let (x, y) = tensors(&batch)?;
        let loss = loss::cross_entropy(&model.forward(&x)?, &y)?;
        optimizer.backward_step(&loss)?;
        println!("step {step}: samples {:?}, loss {}", batch.ids(), loss.to_scalar::<f32>()?);
    }
    variables.save(&weights)?;
    std::fs::write(&state, train.state().to_string())?;

    let (mut correct, mut samples) = (0, 0);
    for batch in loader(&split, false)?.epoch() {
        let batch = batch?;
        let found = model.forward(&tensors(&batch)?.0)?.argmax(D::Minus1)?.to_vec1::<u32>()?;
        // The last batch has rows without a sample, whose label is -100.
        samples += batch.valid().iter().filter(|valid| **valid).count();
        let right = found.iter().zip(batch.labels().unwrap()).filter(|(found, label)| i64::from(**found) == **label);
        correct += right.count();
    }
    println!("{correct} of {samples} samples are right");
    Ok(())
}
