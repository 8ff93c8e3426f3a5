//! Measures candidates in turn, so that a machine whose speed drifts affects all of them, and compares medians over the
//! rounds.
//!
//! Each benchmark is a binary in `src/bin/`: `cargo run --release -p shardtool-benches --bin NAME`. Each benchmark
//! checks the results of the work that it measures.

pub mod photographs;
pub mod records;

use std::fmt;
use std::time::Instant;

/// A candidate of a comparison. A run returns the number of units that it processed (images, records, bytes), does the
/// same work each time, and panics if its result is wrong.
pub struct Candidate<'a> {
    /// Name that is printed.
    pub name: &'a str,
    /// Does one run and returns the number of units.
    pub run: Box<dyn FnMut() -> f64 + 'a>,
    /// Called after each run; not measured.
    pub after: Box<dyn FnMut() + 'a>,
}

impl fmt::Debug for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").finish_non_exhaustive()
    }
}

impl<'a> Candidate<'a> {
    /// Makes a candidate from its name and its work.
    pub fn new(name: &'a str, run: impl FnMut() -> f64 + 'a) -> Self {
        Candidate { name, run: Box::new(run), after: Box::new(|| {}) }
    }

    /// Adds a function that is called after each run and not measured.
    #[must_use]
    pub fn after(self, after: impl FnMut() + 'a) -> Self {
        Candidate { after: Box::new(after), ..self }
    }
}

/// Result of one candidate.
#[derive(Debug)]
pub struct Rate {
    /// Name of the candidate.
    pub name: String,
    /// Units per second, median over the rounds.
    pub median: f64,
    /// Units per second of the slowest and the fastest round.
    pub range: (f64, f64),
    /// Rate divided by that of the first candidate, median of the ratios of each round.
    pub ratio: f64,
}

/// Runs the candidates in turn, `rounds` times after one warm-up round that is not measured.
pub fn compare(rounds: usize, candidates: &mut [Candidate<'_>]) -> Vec<Rate> {
    let start = Instant::now();
    compare_by(move || start.elapsed().as_secs_f64(), rounds, candidates)
}

/// Does the same for single-threaded work, by CPU time of this thread, which other programs on the machine disturb less.
pub fn compare_cpu(rounds: usize, candidates: &mut [Candidate<'_>]) -> Vec<Rate> {
    let clock = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    };
    compare_by(clock, rounds, candidates)
}

fn compare_by(clock: impl Fn() -> f64, rounds: usize, candidates: &mut [Candidate<'_>]) -> Vec<Rate> {
    for c in candidates.iter_mut() {
        (c.run)();
        (c.after)();
    }
    let mut rates = vec![Vec::with_capacity(rounds); candidates.len()];
    for _ in 0..rounds {
        for (c, r) in candidates.iter_mut().zip(&mut rates) {
            let start = clock();
            let units = (c.run)();
            r.push(units / (clock() - start));
            (c.after)();
        }
    }
    let first = rates[0].clone();
    candidates
        .iter()
        .zip(rates)
        .map(|(c, r)| Rate {
            name: c.name.to_owned(),
            ratio: median(r.iter().zip(&first).map(|(a, b)| a / b).collect()),
            range: (r.iter().copied().fold(f64::MAX, f64::min), r.iter().copied().fold(0.0, f64::max)),
            median: median(r),
        })
        .collect()
}

/// Prints a comparison with rates divided by `scale`, in `unit`.
pub fn print(title: &str, unit: &str, scale: f64, rates: &[Rate]) {
    println!("{title}");
    for r in rates {
        println!(
            "  {:<34} {:>10.2} {unit}  ({:.2} to {:.2})  x{:.2}",
            r.name,
            r.median / scale,
            r.range.0 / scale,
            r.range.1 / scale,
            r.ratio
        );
    }
}

/// Returns the median.
///
/// # Panics
/// If `values` is empty.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
