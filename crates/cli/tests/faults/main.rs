//! Runs every command that writes with a fault in one of its system calls, kills it at any time, or runs two at once. No file
//! is lost or half-written, and the next run completes with the same bytes.
//!
//! `cargo test` tries samples. `scripts/campaign faults` tries every call with every fault, `scripts/campaign kills` and
//! `scripts/campaign races` as many as asked.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

#[path = "../bucket/mod.rs"]
mod bucket;
mod change_races;
mod changes;
mod commands;
mod dataset;
mod races;
mod sweep;
mod tracer;
mod tree;

use change_races::{CLONE, Rivals};
use changes::{CHANGES, Changing};
use commands::{COMMANDS, NEIGHBOURS, Writing};
use dataset::{Place, Shards};
use races::Pair;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use sweep::Subject;
use tracer::Fault;

const FAULTS: [(&str, Fault); 5] = [
    ("EIO", Fault::Error(libc::EIO)),
    ("ENOSPC", Fault::Error(libc::ENOSPC)),
    ("EINTR", Fault::Error(libc::EINTR)),
    ("short", Fault::Short),
    ("kill", Fault::Kill),
];

/// Faults of each kind that a sample tries, of a command and of a change.
const OF_COMMAND: u64 = 3;
const OF_CHANGE: u64 = 1;

/// What was tried, and what was wrong.
#[derive(Default)]
struct Report {
    runs: usize,
    /// Runs in which one command refused because of the other one.
    refused: usize,
    wrong: Vec<String>,
}

impl Report {
    fn add(&mut self, context: &str, wrong: Vec<String>) {
        self.runs += 1;
        self.wrong.extend(wrong.into_iter().map(|text| format!("{context}: {text}")));
    }
}

/// Random numbers, the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Returns the number in a variable of the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Calls `task` for each item, on all cores, with a folder that it has alone. Fails if anything was wrong.
fn on_all_cores<T: Sync>(items: &[T], task: impl Fn(&T, &Path) -> Report + Sync) {
    let (next, report) = (AtomicUsize::new(0), Mutex::new(Report::default()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                // In memory, if there is such a folder: the faults are injected, no disk need be waited for.
                let memory = Path::new("/dev/shm");
                let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
                while let Some((number, item)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    items.get(number).map(|item| (number, item))
                } {
                    let found = task(item, &folder.path().join(number.to_string()));
                    found.wrong.iter().for_each(|text| println!("{text}"));
                    let mut report = report.lock().unwrap();
                    report.runs += found.runs;
                    report.refused += found.refused;
                    report.wrong.extend(found.wrong);
                }
            });
        }
    });
    let report = report.into_inner().unwrap();
    println!("{} runs, {} refused, {} wrong", report.runs, report.refused, report.wrong.len());
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
}

#[test]
fn a_fault_in_any_call_loses_nothing_and_the_next_run_completes() {
    let whole = std::env::var_os("SHARDTOOL_ALL_FAULTS").is_some();
    let only = std::env::var("SHARDTOOL_FAULTS_OF").ok();
    let commands: Vec<_> = COMMANDS.iter().filter(|c| only.as_ref().is_none_or(|only| only == c.name)).collect();
    on_all_cores(&commands, |writing, folder| with_faults(writing, folder, whole));
}

/// Tries every fault of a command, or a sample.
fn with_faults(writing: &Writing, folder: &Path, whole: bool) -> Report {
    let subject = Subject::new(writing, folder);
    each_fault(writing.name, (!whole).then_some(OF_COMMAND), |nth, fault| subject.fail(nth, fault))
}

/// Calls `attempt` with every fault in every call, or with `sample` of each, until the command makes fewer calls.
fn each_fault(
    command: &str,
    sample: Option<u64>,
    mut attempt: impl FnMut(u64, Fault) -> Option<(&'static str, Vec<String>)>,
) -> Report {
    let mut report = Report::default();
    let mut random = Random(command.len() as u64);
    for (name, fault) in FAULTS {
        let mut attempt = |nth: u64| {
            let Some((call, wrong)) = attempt(nth, fault) else { return false };
            report.add(&format!("{command}, {name} in call {nth}, {call}"), wrong);
            true
        };
        let Some(sample) = sample else {
            let mut nth = 0;
            while attempt(nth) {
                nth += 1;
            }
            continue;
        };
        let (mut most, mut left) = (400, sample);
        while left > 0 && most > 0 {
            let nth = random.below(most);
            // Calls past the last one narrow the range.
            if attempt(nth) { left -= 1 } else { most = nth }
        }
    }
    println!("{command}: {} runs", report.runs);
    report
}

/// Returns the changes, of a dataset with its own shards and of a clone. A sample has every second one of the clone.
fn changes(whole: bool) -> Vec<(&'static [&'static str], Shards)> {
    let cloned = CHANGES.iter().enumerate().filter(|(at, _)| whole || at % 2 == 0).map(|(_, change)| *change);
    CHANGES.iter().map(|change| (*change, Shards::Own)).chain(cloned.map(|change| (change, Shards::Cloned))).collect()
}

#[test]
fn a_fault_in_any_call_of_a_change_leaves_the_version_before_or_after_it() {
    let whole = std::env::var_os("SHARDTOOL_ALL_FAULTS").is_some();
    on_all_cores(&changes(whole), |(arguments, shards), folder| {
        let place = Place::in_folder(folder);
        let Some(changing) = Changing::new(arguments, *shards, place) else { return Report::default() };
        let name = format!("{} of {shards:?}", arguments.join(" "));
        each_fault(&name, (!whole).then_some(OF_CHANGE), |nth, fault| changing.fail(nth, fault))
    });
}

#[test]
fn a_kill_at_any_time_of_a_change_leaves_the_version_before_or_after_it() {
    let kills = number("SHARDTOOL_KILLS");
    let in_folders = changes(kills.is_some()).into_iter().map(|(change, shards)| (change, shards, false));
    // A sample has the other half of the changes in a store.
    let stored = CHANGES.iter().enumerate().filter(|(at, _)| kills.is_some() || at % 2 == 1).map(|(_, change)| *change);
    let in_stores = stored.map(|change| (change, Shards::Own, true));
    let changes: Vec<_> = in_folders.chain(in_stores).collect();
    let each = kills.map_or(1, |kills| kills.div_ceil(changes.len() as u64));
    on_all_cores(&changes, |(arguments, shards, in_store), folder| {
        let (mut report, mut random) = (Report::default(), Random(11 * arguments.len() as u64));
        let place = if *in_store { Place::in_store() } else { Place::in_folder(folder) };
        let place_name = if *in_store { "a store" } else { "a folder" };
        let Some(changing) = Changing::new(arguments, *shards, place) else { return report };
        for _ in 0..each {
            let share = random.below(1100) as f64 / 1000.0;
            let context = format!("{arguments:?} of {shards:?} in {place_name}, killed after {share} of its time");
            report.add(&context, changing.kill(share));
        }
        report
    });
}

/// One of this many pairs of changes is tried without a number in `SHARDTOOL_RACES`.
const PAIRS_LEFT_OUT: usize = 17;

#[test]
fn two_changes_at_once_leave_what_one_after_the_other_leaves() {
    let races = number("SHARDTOOL_RACES");
    let pairs = CHANGES.iter().enumerate().flat_map(|(at, first)| CHANGES[at..].iter().map(|second| [*first, *second]));
    let pairs = pairs.chain(CHANGES.iter().map(|change| [CLONE, *change]));
    let places = [(Shards::Own, false), (Shards::Own, true), (Shards::Cloned, false)];
    let mut tried: Vec<_> = pairs.flat_map(|pair| places.map(|(shards, in_store)| (pair, shards, in_store))).collect();
    if races.is_none() {
        let mut at = 0;
        tried.retain(|_| {
            at += 1;
            at % PAIRS_LEFT_OUT == 0
        });
    }
    let each = races.map_or(1, |races| races.div_ceil(tried.len() as u64));
    on_all_cores(&tried, |(commands, shards, in_store), folder| {
        let place = if *in_store { Place::in_store() } else { Place::in_folder(folder) };
        let rivals = Rivals::new(place, *shards, *commands);
        let (mut report, mut random) = (Report::default(), Random(commands[0].len() as u64));
        for _ in 0..each {
            let (refused, wrong) = rivals.run(Duration::from_micros(random.below(12_000)));
            report.refused += usize::from(refused);
            let context = format!("{shards:?} at once{}", if *in_store { " in a store" } else { "" });
            report.add(&context, wrong);
        }
        report
    });
}

#[test]
fn a_kill_at_any_time_loses_nothing_and_the_next_run_completes() {
    let kills = number("SHARDTOOL_KILLS").unwrap_or(57);
    let each = kills.div_ceil(COMMANDS.len() as u64);
    on_all_cores(COMMANDS, |writing, folder| {
        let subject = Subject::new(writing, folder);
        let (mut report, mut random) = (Report::default(), Random(7 * writing.name.len() as u64));
        for _ in 0..each {
            let share = random.below(1100) as f64 / 1000.0;
            report.add(&format!("{}, killed after {share} of its time", writing.name), subject.kill(share));
        }
        report
    });
}

#[test]
fn two_commands_at_once_leave_what_one_after_the_other_leaves() {
    let groups = NEIGHBOURS.iter();
    let pairs: Vec<_> = groups
        .flat_map(|group| {
            let commands = group.commands;
            let second =
                move |first: usize| (first..commands.len()).map(move |second| [commands[first], commands[second]]);
            (0..commands.len()).flat_map(second).map(move |pair| (group, pair))
        })
        .collect();
    let each = number("SHARDTOOL_RACES").map_or(1, |races| races.div_ceil(pairs.len() as u64));
    on_all_cores(&pairs, |(group, commands), folder| {
        let pair = Pair::new(group, *commands, folder);
        let (mut report, mut random) = (Report::default(), Random(commands[0].len() as u64));
        for _ in 0..each {
            let (refused, wrong) = pair.run(Duration::from_micros(random.below(4_000)));
            report.refused += usize::from(refused);
            report.add("at once", wrong);
        }
        report
    });
}
