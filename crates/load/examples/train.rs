//! Trains a tiny network in plain Rust on a generated dataset, stops in the middle of an epoch, and resumes from the
//! saved state. The weights equal those of an uninterrupted run, bit for bit.
//!
//! `cargo run --release -p shardtool-load --example train`

use shardtool_decode::{Filter, Pipeline, Transform};
use shardtool_load::{Batch, Config, Image, Loader, Values};
use shardtool_order::{Order, ResumeState, Rng};
use shardtool_read::{Dataset, Split};
use std::error::Error;
use std::path::Path;

const CLASSES: [&str; 4] = ["blue-disc", "blue-square", "red-disc", "red-square"];
const SIDE: u32 = 8;
const INPUTS: usize = (SIDE * SIDE * 3) as usize;
const HIDDEN: usize = 32;
const BATCH: u32 = 32;
const EPOCHS: u64 = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let dataset = generate(folder.path())?;
    let (train, validation) = (dataset.split("train")?, dataset.split("validation")?);

    let mut model = Model::new();
    let mut loader = Loader::new(&training(train)?)?;
    run(&mut model, &mut loader, u64::MAX)?;
    let accuracy = accuracy(&model, validation)?;
    println!("{EPOCHS} epochs of {} steps: {:.1} % of {} right", loader.len(), 100.0 * accuracy, validation.len());
    println!("{}", loader.stats().bottleneck());
    assert!(accuracy > 0.9, "it has learned");

    // Trains again, stops after 70 steps, and keeps only the weights and a line of JSON.
    let mut stopped = Model::new();
    let mut loader = Loader::new(&training(train)?)?;
    run(&mut stopped, &mut loader, 70)?;
    let (saved, state) = (stopped.clone(), loader.state().to_string());
    drop((stopped, loader));
    println!("stopped at {state}");

    let mut resumed = saved;
    let mut loader = Loader::new(&training(train)?)?;
    loader.load_state(&ResumeState::parse(&state)?)?;
    run(&mut resumed, &mut loader, u64::MAX)?;
    assert!(resumed == model, "resumed as if it had never stopped");
    println!("resumed: the same weights, bit for bit");
    Ok(())
}

fn training(split: &Split) -> Result<Config, Box<dyn Error>> {
    let crop = Transform::RandomResizedCrop {
        size: [SIDE; 2],
        scale: [0.6, 1.0],
        ratio: [0.8, 1.25],
        interpolation: Filter::Bilinear,
    };
    let pipeline = Pipeline::new(vec![crop, Transform::HorizontalFlip { p: 0.5 }])?;
    let mut config = Config::new(split.clone(), [Image::new(pipeline)], BATCH);
    (config.seed, config.epochs) = (1, Some(EPOCHS));
    Ok(config)
}

/// Trains until the loader ends, or for `steps` steps.
fn run(model: &mut Model, loader: &mut Loader, mut steps: u64) -> Result<(), Box<dyn Error>> {
    while loader.state().epoch < EPOCHS && steps > 0 {
        let Some(batch) = loader.next_batch()? else { continue };
        for (pixels, label) in rows(&batch) {
            model.learn(&pixels, label);
        }
        steps -= 1;
    }
    Ok(())
}

fn accuracy(model: &Model, split: &Split) -> Result<f64, Box<dyn Error>> {
    let pipeline = Pipeline::new(vec![Transform::ResizeTo { size: [SIDE; 2], interpolation: Filter::Bilinear }])?;
    let mut config = Config::new(split.clone(), [Image::new(pipeline)], BATCH);
    config.order = Order::Sequential;
    let mut loader = Loader::new(&config)?;
    let (mut right, mut all) = (0, 0);
    // The last batch is masked, so every sample counts exactly once.
    while let Some(batch) = loader.next_batch()? {
        for (pixels, label) in rows(&batch) {
            all += 1;
            right += usize::from(model.predict(&pixels) == label);
        }
    }
    assert_eq!(all as u64, split.len());
    Ok(right as f64 / all as f64)
}

/// The valid rows of a batch: pixels from −1 to 1, and the class.
fn rows(batch: &Batch) -> Vec<(Vec<f32>, usize)> {
    let Some(Values::Int64(labels)) = batch.column("image/class/label") else { panic!("packed folders have labels") };
    let images = batch.images().unwrap_or_default().chunks(INPUTS);
    let rows = images.zip(labels).zip(batch.valid()).filter(|(_, valid)| **valid);
    rows.map(|((row, label), _)| (row.iter().map(|b| f32::from(*b) / 127.5 - 1.0).collect(), *label as usize)).collect()
}

/// One hidden layer with rectifiers, softmax, plain gradient descent.
#[derive(Clone, PartialEq)]
struct Model {
    hidden: Vec<[f32; INPUTS]>,
    output: Vec<[f32; HIDDEN]>,
}

impl Model {
    fn new() -> Self {
        let mut rng = Rng::new(3);
        let mut weight = |inputs: usize| ((rng.next_f64() - 0.5) * 2.0 / (inputs as f64).sqrt()) as f32;
        Model {
            hidden: (0..HIDDEN).map(|_| std::array::from_fn(|_| weight(INPUTS))).collect(),
            output: CLASSES.iter().map(|_| std::array::from_fn(|_| weight(HIDDEN))).collect(),
        }
    }

    fn forward(&self, x: &[f32]) -> ([f32; HIDDEN], Vec<f32>) {
        let dot = |w: &[f32], x: &[f32]| w.iter().zip(x).map(|(w, x)| w * x).sum::<f32>();
        let h = std::array::from_fn(|i| dot(&self.hidden[i], x).max(0.0));
        let scores: Vec<_> = self.output.iter().map(|w| dot(w, &h)).collect();
        let most = scores.iter().copied().fold(f32::MIN, f32::max);
        let powers: Vec<_> = scores.iter().map(|s| (s - most).exp()).collect();
        let sum: f32 = powers.iter().sum();
        (h, powers.iter().map(|p| p / sum).collect())
    }

    fn learn(&mut self, x: &[f32], label: usize) {
        const RATE: f32 = 0.01;
        let (h, probabilities) = self.forward(x);
        let mut back = [0.0; HIDDEN];
        for (class, (w, p)) in self.output.iter_mut().zip(probabilities).enumerate() {
            let error = p - if class == label { 1.0 } else { 0.0 };
            for i in 0..HIDDEN {
                back[i] += error * w[i];
                w[i] -= RATE * error * h[i];
            }
        }
        for (i, w) in self.hidden.iter_mut().enumerate().filter(|(i, _)| h[*i] > 0.0) {
            w.iter_mut().zip(x).for_each(|(w, x)| *w -= RATE * back[i] * x);
        }
    }

    fn predict(&self, x: &[f32]) -> usize {
        let (_, p) = self.forward(x);
        (0..p.len()).max_by(|a, b| p[*a].total_cmp(&p[*b])).unwrap_or(0)
    }
}

/// Draws discs and squares, red and blue, of any size and position on grey noise, and packs them.
fn generate(folder: &Path) -> Result<Dataset, Box<dyn Error>> {
    let packed = folder.join("packed");
    for (split, n) in [("train", 600), ("validation", 100)] {
        for (class, name) in CLASSES.iter().enumerate() {
            let images = folder.join(split).join(name);
            std::fs::create_dir_all(&images)?;
            for i in 0..n / CLASSES.len() {
                draw(class, (split.len() * 1000 + i) as u64).save(images.join(format!("{i:04}.png")))?;
            }
        }
        let mut options = shardtool_pack::Options::new(folder.join(split), &packed);
        options.split = Some(split.to_owned());
        shardtool_pack::pack(&options, &())?;
    }
    Ok(Dataset::open(&packed)?)
}

fn draw(class: usize, number: u64) -> image::RgbImage {
    let mut rng = Rng::new(number * 4 + class as u64);
    let (red, disc) = (class >= 2, class.is_multiple_of(2));
    let radius = 7.0 + 4.0 * rng.next_f64();
    let (x0, y0) = (12.0 + 8.0 * rng.next_f64(), 12.0 + 8.0 * rng.next_f64());
    image::RgbImage::from_fn(32, 32, |x, y| {
        let (dx, dy) = ((f64::from(x) - x0).abs(), (f64::from(y) - y0).abs());
        // A disc and a square of about the same area.
        let inside = if disc { dx.hypot(dy) < radius } else { dx.max(dy) < radius * 0.886 };
        let noise = rng.below(60) as u8;
        match (inside, red) {
            (true, true) => image::Rgb([190 + noise, noise, noise]),
            (true, false) => image::Rgb([noise, noise, 190 + noise]),
            (false, _) => image::Rgb([100 + noise; 3]),
        }
    })
}
