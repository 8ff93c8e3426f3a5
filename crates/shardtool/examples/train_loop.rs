//! Iterates over shuffled, augmented and normalised batches, stops in the second epoch, and resumes from the saved state.
//!
//! `cargo run --release -p shardtool --example train_loop -- DATASET`

use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline, ResumeState, Split};

fn loader(train: &Split) -> shardtool::Result<Loader> {
    let image = Image::new(Pipeline::train(224)?).with_normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
    Ok(Loader::new(&LoaderConfig::new(train.clone(), [image], 32).with_seed(7))?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: train_loop DATASET")?;
    let train = Dataset::open(&path)?.split("train")?.clone();

    let mut first = loader(&train)?;
    let mut images = 0;
    for batch in first.epoch() {
        let batch = batch?;
        // f32 [N, 3, 224, 224] and i64 [N]: a trainer's forward and backward pass goes here.
        let (pixels, labels) = (batch.images_f32().ok_or("no images")?, batch.labels().ok_or("no labels")?);
        assert_eq!(pixels.len(), labels.len() * 3 * 224 * 224);
        images += labels.len();
    }
    println!("epoch 0: {images} images in {} steps", first.len());
    println!("{}", first.stats().bottleneck());

    first.epoch().next().ok_or("no second epoch")??; // the first step of epoch 1
    let state = first.state().to_string(); // JSON, to be stored with the model's weights
    drop(first);

    let mut resumed = loader(&train)?;
    resumed.load_state(&state.parse::<ResumeState>()?)?;
    println!("resumed: {} steps of epoch 1 left", resumed.epoch().len());
    Ok(())
}
