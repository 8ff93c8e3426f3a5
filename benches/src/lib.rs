//! How every benchmark here measures: candidates take turns, so that a machine whose speed drifts slows them alike, and
//! what is compared is the median over the rounds.
//!
//! Each benchmark is a binary in `src/bin/`: `cargo run --release -p shardtool-benches --bin NAME`. A benchmark checks
//! the answer of what it times: a fast wrong answer is a failed run, not a good figure.

pub mod photographs;

use std::time::Instant;

/// One candidate of a comparison: its name, and one run of its work. A run returns how many units it did (images,
/// records, bytes); it must do the same work each time, and panic when its answer is wrong.
pub struct Candidate<'a> {
    /// Short name, as printed.
    pub name: &'a str,
    /// One run; returns the number of units done.
    pub run: Box<dyn FnMut() -> f64 + 'a>,
    /// What is to be done after a run, while no clock goes.
    pub after: Box<dyn FnMut() + 'a>,
}

impl<'a> Candidate<'a> {
    /// A candidate from its name and one run of its work.
    pub fn new(name: &'a str, run: impl FnMut() -> f64 + 'a) -> Self {
        Candidate { name, run: Box::new(run), after: Box::new(|| {}) }
    }

    /// The same, with something to be done after each run.
    #[must_use]
    pub fn after(self, after: impl FnMut() + 'a) -> Self {
        Candidate { after: Box::new(after), ..self }
    }
}

/// What one candidate achieved.
pub struct Rate {
    /// Name of the candidate.
    pub name: String,
    /// Units per second, median over the rounds.
    pub median: f64,
    /// Units per second, slowest and fastest round.
    pub range: (f64, f64),
    /// This candidate's rate over the first candidate's, median of the rounds' ratios.
    pub ratio: f64,
}

/// Runs the candidates in turn, `rounds` times after one uncounted warm-up.
pub fn compare(rounds: usize, candidates: &mut [Candidate<'_>]) -> Vec<Rate> {
    let start = Instant::now();
    compare_by(move || start.elapsed().as_secs_f64(), rounds, candidates)
}

/// The same for work on this thread alone, by the CPU time that it takes: other jobs on the machine disturb that less.
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

/// Prints a comparison, rates divided by `scale` and named `unit`.
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

/// The median of the values.
///
/// # Panics
/// If there are none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (values[(n - 1) / 2] + values[n / 2]) / 2.0
}
