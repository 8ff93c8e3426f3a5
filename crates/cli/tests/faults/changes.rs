//! Lets one call of a command that changes a dataset fail, or kills it. The dataset is what it was, or what it is meant to be, and its
//! earlier versions are what they were; names of new files are random, so that contents are compared, not files.

use crate::dataset::{Contents, Place, Shards};
use crate::tracer::{End, Fault, Run, run};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Commands that change the dataset `set`, which has versions 1 to 4.
pub(crate) const CHANGES: &[&[&str]] = &[
    &["delete", "set", "--where=note=b"],
    &["column", "add", "set", "scores.csv"],
    &["column", "replace", "set", "notes.csv", "--missing=keep"],
    &["column", "drop", "set", "note"],
    &["append", "further", "set", "--jobs=1"],
    &["append", "further", "set", "--jobs=1", "--replace"],
    &["select", "set", "few", "--where=note=b"],
    &["select", "set", "some", "--remove"],
    &["rollback", "set", "1"],
    &["compact", "set", "--jobs=1"],
    &["tag", "set", "paper", "--at=2"],
    &["gc", "set", "--keep=1", "--yes"],
    &["purge", "set", "--yes", "--jobs=1"],
];

/// Versions before the newest one that a change must leave readable, unless it removes or purges them.
const EARLIER: [&str; 3] = ["set@1", "set@2", "set@3"];

/// A change, and the dataset before and after it.
pub(crate) struct Changing {
    arguments: &'static [&'static str],
    work: Place,
    output: PathBuf,
    /// How long it takes.
    took: Duration,
    before: String,
    after: String,
    /// Earlier versions before the change, and after it: only `gc` and `purge` change them.
    earlier: [[Contents; EARLIER.len()]; 2],
}

impl Changing {
    /// Makes the dataset, and runs the command without a fault. Returns `None` if a dataset with such shards refuses it.
    pub(crate) fn new(arguments: &'static [&'static str], shards: Shards, work: Place) -> Option<Self> {
        if shards == Shards::Cloned && arguments[0] == "purge" {
            return None;
        }
        fs::create_dir_all(work.folder()).unwrap();
        let output = work.folder().join("output");
        work.make(shards);
        work.keep();
        let before = work.newest().unwrap();
        let earlier = || EARLIER.map(|version| work.contents(version));
        let earlier_before = earlier();
        assert!(earlier_before.iter().all(Result::is_ok), "{earlier_before:?}");
        let started = Instant::now();
        work.good(arguments);
        let took = started.elapsed();
        let after = work.newest().unwrap();
        let earlier = [earlier_before, earlier()];
        let rewrites = ["gc", "purge"].contains(&arguments[0]);
        assert_eq!(earlier[0] != earlier[1], rewrites, "{arguments:?}: {earlier:?}");
        assert_eq!(before == after, arguments[0] == "gc", "{arguments:?}");
        Some(Changing { arguments, work, output, took, before, after, earlier })
    }

    /// Runs the change with a fault. Returns the call that failed, and what is wrong afterwards; `None` if it made fewer calls.
    pub(crate) fn fail(&self, nth: u64, fault: Fault) -> Option<(&'static str, Vec<String>)> {
        self.work.restore();
        let Run { end, failed } = run(&mut self.command(), Some((nth, fault)), &mut || ());
        let failed = failed?;
        let mut wrong = vec![];
        let is_expected = match end {
            End::Exit(0) => self.now() == Ok(self.after.clone()),
            End::Exit(2) => self.message().contains("error: "),
            End::Signal(libc::SIGKILL) => fault == Fault::Kill,
            _ => false,
        };
        if !is_expected || self.message().contains("panicked") {
            wrong.push(format!("{end:?}: {}", self.message()));
        }
        wrong.extend(self.check_next());
        Some((failed, wrong))
    }

    /// Runs the change, and kills it after `share` of the time that it takes. Returns what is wrong afterwards.
    pub(crate) fn kill(&self, share: f64) -> Vec<String> {
        self.work.restore();
        let mut command = self.work.command(self.arguments);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(self.took.mul_f64(share));
        process.kill().unwrap();
        process.wait().unwrap();
        self.work.settle();
        self.check_next()
    }

    /// Checks what a run has left, that the next one completes, and that `gc` then removes only what no version needs.
    fn check_next(&self) -> Vec<String> {
        let mut wrong = self.check("afterwards");
        let rewrites = ["gc", "purge"].contains(&self.arguments[0]);
        if rewrites || self.now() == Ok(self.before.clone()) {
            match run(&mut self.command(), None, &mut || ()).end {
                End::Exit(0) if self.now() == Ok(self.after.clone()) => {}
                end => wrong.push(format!("the next run: {end:?}: {}", self.message())),
            }
        }
        if rewrites {
            wrong.extend(self.check_rewritten());
        }
        // Removes what the attempts left.
        let gc = self.work.command(&["gc", "set", "--yes"]).output().unwrap();
        if !gc.status.success() {
            wrong.push(format!("gc: {}", String::from_utf8_lossy(&gc.stderr)));
        }
        wrong.extend(self.check("after gc"));
        wrong
    }

    /// Checks that every version is whole, and the newest one is that before the change or after it.
    fn check(&self, when: &str) -> Vec<String> {
        let mut wrong = vec![];
        match self.now() {
            Ok(now) if now == self.before || now == self.after => {}
            now => wrong.push(format!("{when}, the dataset is neither old nor new: {now:?}")),
        }
        for (at, version) in EARLIER.into_iter().enumerate() {
            let found = self.work.contents(version);
            if !self.earlier.iter().any(|expected| same(&found, &expected[at])) {
                wrong.push(format!("{when}, {version} is {found:?}"));
            }
        }
        wrong
    }

    /// Checks that earlier versions are as `gc` or `purge` leaves them, and that a purged key is in no file.
    fn check_rewritten(&self) -> Vec<String> {
        let mut wrong = vec![];
        for (at, version) in EARLIER.into_iter().enumerate() {
            let found = self.work.contents(version);
            if !same(&found, &self.earlier[1][at]) {
                wrong.push(format!("{version} is not what {} leaves: {found:?}", self.arguments[0]));
            }
        }
        if self.arguments[0] == "purge" {
            let files = tree(&self.work.files());
            let has_key = |file: &&PathBuf| fs::read(file).unwrap().windows(9).any(|bytes| bytes == b"cat/0.jpg");
            wrong.extend(files.iter().filter(has_key).map(|file| format!("{} has a purged key", file.display())));
        }
        wrong
    }

    fn now(&self) -> Contents {
        self.work.newest()
    }

    fn command(&self) -> Command {
        let mut command = self.work.command(self.arguments);
        let output = File::create(&self.output).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
        command
    }

    fn message(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }
}

/// Returns whether a version has these contents; or is gone by name, as it should be.
fn same(found: &Contents, expected: &Contents) -> bool {
    match (found, expected) {
        (Err(found), Err(expected)) => [found, expected].iter().all(|message| message.contains("has no version")),
        _ => found == expected,
    }
}

/// Returns the files in a folder and in folders in it.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { tree(&path) } else { vec![path] }).collect()
}
