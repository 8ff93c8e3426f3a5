//! Runs the program: it learns, a resumed run ends with the same weights, and an evaluation shows each sample once. Another trainer is
//! run in its place if SHARDTOOL_TRAINER names its program and SHARDTOOL_WEIGHTS the extension of its weights (`scripts/campaign burn`).

mod dataset;

use dataset::{SAMPLES, dataset};
use std::path::Path;
use std::process::Command;

/// Runs the program and returns its lines.
fn run(dataset: &str, checkpoint: &Path, steps: u32, replica: Option<(u32, u32)>) -> Vec<String> {
    let program = std::env::var("SHARDTOOL_TRAINER").unwrap_or(env!("CARGO_BIN_EXE_shardtool-candle").to_owned());
    let mut command = Command::new(program);
    command.args([dataset, checkpoint.to_str().unwrap(), &steps.to_string()]);
    if let Some((rank, world)) = replica {
        command.env("RANK", rank.to_string()).env("WORLD_SIZE", world.to_string());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the extension of the file of weights.
fn weights() -> String {
    std::env::var("SHARDTOOL_WEIGHTS").unwrap_or("safetensors".to_owned())
}

fn copy(from: &Path, to: &Path) {
    for extension in [&weights(), "json"] {
        std::fs::copy(from.with_extension(extension), to.with_extension(extension)).unwrap();
    }
}

/// Returns right and all samples of the last line.
fn evaluated(lines: &[String]) -> (usize, usize) {
    let words: Vec<_> = lines.last().unwrap().split(' ').collect();
    (words[0].parse().unwrap(), words[2].parse().unwrap())
}

#[test]
fn it_learns_resumes_and_evaluates_each_sample_once() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = dataset(folder.path());
    let [whole, parts] = ["whole", "parts"].map(|name| folder.path().join(name));
    assert_eq!(evaluated(&run(&dataset, &whole, 0, None)).1, SAMPLES);
    copy(&whole, &parts);

    let straight = run(&dataset, &whole, 30, None);
    let mut resumed = run(&dataset, &parts, 13, None);
    resumed.truncate(13);
    resumed.extend(run(&dataset, &parts, 17, None));
    let samples = |line: &String| line.split_once(": ").map(|(_, samples)| samples.to_owned());
    assert_eq!(straight.iter().map(samples).collect::<Vec<_>>(), resumed.iter().map(samples).collect::<Vec<_>>());
    let bytes = |path: &Path| std::fs::read(path.with_extension(weights())).unwrap();
    assert!(bytes(&whole) == bytes(&parts), "the resumed run has other weights");
    let (right, samples) = evaluated(&straight);
    assert!(right > samples * 9 / 10, "{right} of {samples}");

    let ranks = [0, 1].map(|rank| {
        let checkpoint = folder.path().join(format!("rank-{rank}"));
        copy(&whole, &checkpoint);
        evaluated(&run(&dataset, &checkpoint, 0, Some((rank, 2))))
    });
    assert_eq!((ranks[0].0 + ranks[1].0, ranks[0].1 + ranks[1].1), (right, samples));
}

#[test]
fn the_program_is_short_and_the_guide_shows_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = std::fs::read_to_string(root.join("src/main.rs")).unwrap();
    assert!(program.lines().count() <= 60, "{} lines", program.lines().count());
    let guide = std::fs::read_to_string(root.join("../../docs/rust.md")).unwrap();
    let blocks: Vec<_> = guide.split("```rust,ignore\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 1);
    assert!(program.contains(blocks[0]), "not in the program:\n{}", blocks[0]);
}
