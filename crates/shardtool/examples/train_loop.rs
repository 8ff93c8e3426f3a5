//! Iterates over shuffled, augmented batches, stops in the second epoch, and resumes from the saved state.
//!
//! `cargo run --release -p shardtool --example train_loop -- DATASET`

use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline, ResumeState, Split};

fn loader(train: &Split) -> shardtool::Result<Loader> {
    let mut config = LoaderConfig::new(train.clone(), [Image::new(Pipeline::train(224)?)], 32);
    config.seed = 7;
    Ok(Loader::new(&config)?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: train_loop DATASET")?;
    let train = Dataset::open(&path)?.split("train")?.clone();

    let mut first = loader(&train)?;
    let mut images = 0;
    while let Some(batch) = first.next_batch()? {
        // `batch.images()` is u8 [N, 224, 224, 3]; a trainer's forward and backward pass goes here.
        images += batch.valid().iter().filter(|valid| **valid).count();
    }
    println!("epoch 0: {images} images in {} steps", first.len());
    println!("{}", first.stats().bottleneck());

    first.next_batch()?; // the first step of epoch 1
    let state = first.state().to_string(); // JSON, to be stored with the model's weights
    drop(first);

    let mut resumed = loader(&train)?;
    resumed.load_state(&ResumeState::parse(&state)?)?;
    println!("resumed: {} steps of epoch 1 left", resumed.steps_left());
    Ok(())
}
