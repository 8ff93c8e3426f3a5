//! Runs the mutation tests for as long as wanted: `mutate [--seed N] [--executions N]`.
#![forbid(unsafe_code)]

#[path = "../tests/all/decoding.rs"]
mod decoding;
#[path = "../tests/all/images.rs"]
mod images;
#[path = "../tests/all/mutate.rs"]
mod mutate;

fn main() {
    let (mut seed, mut executions) = (1, 10_000_000);
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next().and_then(|v| v.parse().ok()).expect("--seed N or --executions N");
        match name.as_str() {
            "--seed" => seed = value,
            "--executions" => executions = value,
            _ => panic!("--seed N or --executions N"),
        }
    }
    // Small images allow more executions per second.
    let images: Vec<_> = images::images().into_iter().filter(|(_, jpeg)| jpeg.len() < 3000).collect();
    let (start, mut done) = (std::time::Instant::now(), 0);
    while done < executions {
        let now = (executions - done).min(100_000);
        let tally = mutate::run(&images, seed + done, now);
        done += now;
        println!("{done} executions from seed {seed}, {:.0} s, the last ones {tally:?}", start.elapsed().as_secs_f64());
    }
}
