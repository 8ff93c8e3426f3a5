//! Runs every target over the committed fixtures and random mutations of them. `FUZZ_SECONDS` sets the time per target
//! (default 1), `FUZZ_SEED` the seed.

use shardtool_fuzz::{TARGETS, Target};
use shardtool_order::{Domain, Rng, key};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

fn corpus() -> Vec<Vec<u8>> {
    let mut found = vec![vec![]];
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures"), &mut found);
    assert!(found.len() > 100, "the fixtures");
    found
}

/// Adds every file below a folder; of text with one JSON document per line, each line, and the documents in it.
fn collect(folder: &Path, found: &mut Vec<Vec<u8>>) {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        if path.file_name().is_some_and(|name| name == "states.jsonl") {
            // Each line quotes a state in its member `json`.
            let text = String::from_utf8(bytes).unwrap();
            let states = text.lines().filter_map(|line| line.split_once(r#""json":""#)?.1.split_once("}\","));
            found.extend(states.map(|(state, _)| format!("{}}}", state.replace('\\', "")).into_bytes()));
        } else if bytes.len() <= 64 << 10 {
            found.push(bytes);
        }
    }
}

/// Changes a few places of `bytes`: flips bits, sets, removes, repeats or inserts bytes, or splices another input in.
fn mutate(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        let at = rng.below(bytes.len() as u32 + 1) as usize;
        let end = (at + 1 + rng.below(16) as usize).min(bytes.len());
        match rng.below(7) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'"', b','][rng.below(8) as usize],
            3 => drop(bytes.drain(at..end.max(at))),
            4 => bytes
                .splice(at..at, (0..=rng.below(8)).map(|i| i as u8 ^ rng.below(256) as u8).collect::<Vec<_>>())
                .for_each(drop),
            5 if at < end => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part).for_each(drop);
            }
            6 => {
                let other = &corpus[rng.below(corpus.len() as u32) as usize];
                let from = rng.below(other.len() as u32 + 1) as usize;
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => bytes.truncate(at),
        }
    }
}

fn run(name: &str, target: Target) {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (seconds, seed) = (number("FUZZ_SECONDS", 1), number("FUZZ_SEED", 1));
    let corpus = corpus();
    let check = |input: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| target(input))).is_err() {
            let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("target {name} fails on {} bytes: {hex}", input.len());
        }
    };
    corpus.iter().for_each(|input| check(input));
    let (end, mut rng) = (Instant::now() + Duration::from_secs(seconds), Rng::new(key(Domain::Augment, seed, 0, 0)));
    let mut inputs = 0u64;
    while Instant::now() < end {
        let mut input = corpus[rng.below(corpus.len() as u32) as usize].clone();
        mutate(&mut input, &corpus, &mut rng);
        check(&input);
        inputs += 1;
    }
    println!("{name}: {} fixtures, {inputs} mutations", corpus.len());
    assert!(inputs > 0);
}

#[test]
fn targets_hold_on_fixtures_and_mutations() {
    let threads = TARGETS.iter().map(|&(name, target)| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(move || run(name, target)).unwrap()
    });
    let threads: Vec<_> = threads.collect();
    let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
    assert_eq!(failed, 0, "targets failed: see their messages");
}

/// The laws are checked: an input of every kind is accepted, so that the targets get behind the first check.
#[test]
fn fixtures_reach_behind_the_checks() {
    use shardtool_format::{example::Example, frame, index::Index, manifest::Manifest};
    let corpus = corpus();
    let count = |accepts: &dyn Fn(&[u8]) -> bool| corpus.iter().filter(|bytes| accepts(bytes)).count();
    assert!(count(&|bytes| frame::data(bytes, 0, frame::Check::Data).is_ok()) > 5);
    assert!(count(&|bytes| Index::parse(bytes).is_ok()) > 5);
    assert!(count(&|bytes| Manifest::parse(bytes).is_ok()) > 5);
    assert!(count(&|bytes| Example::parse(bytes).is_ok_and(|e| e.features().is_empty())) > 0);
    assert!(count(&|bytes| shardtool_decode::sniff(bytes).is_some()) > 3);
    let states =
        |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| shardtool_order::ResumeState::parse(text).is_ok());
    assert!(count(&states) > 3);
}
