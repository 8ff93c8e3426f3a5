//! Lets one call of a command that changes a dataset fail, or kills it. The dataset is what it was, or what it is meant to be, and its
//! earlier versions are what they were; names of new files are random, so that contents are compared, not files.

use crate::commands::shardtool;
use crate::tracer::{End, Fault, Run, run};
use crate::tree::copy;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Commands that change the dataset `set`, which has two versions.
pub(crate) const CHANGES: &[&[&str]] = &[
    &["delete", "set", "--where=note=b"],
    &["column", "add", "set", "scores.csv"],
    &["column", "replace", "set", "notes.csv", "--missing=keep"],
    &["column", "drop", "set", "note"],
    &["append", "further", "set", "--jobs=1"],
    &["append", "further", "set", "--jobs=1", "--replace"],
    &["rollback", "set", "1"],
    &["compact", "set", "--jobs=1"],
    &["tag", "set", "paper"],
    &["purge", "set", "--yes", "--jobs=1"],
];

/// A change, and the dataset before and after it.
pub(crate) struct Changing {
    arguments: &'static [&'static str],
    template: PathBuf,
    work: PathBuf,
    output: PathBuf,
    before: String,
    after: String,
    /// Versions 1 and 2 before the change, and after it: only a purge changes them.
    versions: [[String; 2]; 2],
}

impl Changing {
    /// Makes the inputs in `folder`, and runs the command there without a fault.
    pub(crate) fn new(arguments: &'static [&'static str], folder: &Path) -> Self {
        let (template, work, output) = (folder.join("template"), folder.join("work"), folder.join("output"));
        fs::create_dir_all(&template).unwrap();
        changed(&template);
        copy(&template, &work).unwrap();
        let before = newest(&work).unwrap();
        let earlier = || ["set@1", "set@2"].map(|version| contents(&work, version).unwrap());
        let versions = earlier();
        done(shardtool(arguments, &work));
        let after = newest(&work).unwrap();
        assert_ne!(before, after, "{arguments:?}");
        let versions = [versions, earlier()];
        assert_eq!(versions[0] != versions[1], arguments[0] == "purge", "{arguments:?}");
        Changing { arguments, template, work, output, before, after, versions }
    }

    /// Runs the change with a fault. Returns the call that failed, and what is wrong afterwards; `None` if it made fewer calls.
    pub(crate) fn fail(&self, nth: u64, fault: Fault) -> Option<(&'static str, Vec<String>)> {
        copy(&self.template, &self.work).unwrap();
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
        wrong.extend(self.check("afterwards"));
        let is_purge = self.arguments[0] == "purge";
        if is_purge || self.now() == Ok(self.before.clone()) {
            match run(&mut self.command(), None, &mut || ()).end {
                End::Exit(0) if self.now() == Ok(self.after.clone()) => {}
                end => wrong.push(format!("the next run: {end:?}: {}", self.message())),
            }
        }
        if is_purge {
            wrong.extend(self.check_purged());
        }
        // Removes what the attempts left.
        let gc = shardtool(&["gc", "set", "--yes"], &self.work).output().unwrap();
        if !gc.status.success() {
            wrong.push(format!("gc: {}", String::from_utf8_lossy(&gc.stderr)));
        }
        wrong.extend(self.check("after gc"));
        Some((failed, wrong))
    }

    /// Checks that every version is whole, and the newest one is that before the change or after it.
    fn check(&self, when: &str) -> Vec<String> {
        let mut wrong = vec![];
        match self.now() {
            Ok(now) if now == self.before || now == self.after => {}
            now => wrong.push(format!("{when}, the dataset is neither old nor new: {now:?}")),
        }
        for (at, version) in ["set@1", "set@2"].into_iter().enumerate() {
            match contents(&self.work, version) {
                Ok(found) if self.versions.iter().any(|expected| found == expected[at]) => {}
                found => wrong.push(format!("{when}, {version} is {found:?}")),
            }
        }
        wrong
    }

    /// Checks that earlier versions have no purged record, and that its key is in no file.
    fn check_purged(&self) -> Vec<String> {
        let mut wrong = vec![];
        for (at, version) in ["set@1", "set@2"].into_iter().enumerate() {
            if contents(&self.work, version).as_ref() != Ok(&self.versions[1][at]) {
                wrong.push(format!("{version} is not purged"));
            }
        }
        let files = tree(&self.work.join("set"));
        let has_key = |file: &&PathBuf| fs::read(file).unwrap().windows(9).any(|bytes| bytes == b"cat/0.jpg");
        wrong.extend(files.iter().filter(has_key).map(|file| format!("{} has a purged key", file.display())));
        wrong
    }

    fn now(&self) -> Result<String, String> {
        newest(&self.work)
    }

    fn command(&self) -> Command {
        let mut command = shardtool(self.arguments, &self.work);
        let output = File::create(&self.output).unwrap();
        command.stdout(output.try_clone().unwrap()).stderr(output);
        command
    }

    fn message(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }
}

/// Returns the records of a version with their features, and the number of its shards, after a verification; or the message of the
/// command that fails.
fn contents(folder: &Path, dataset: &str) -> Result<String, String> {
    let text = |arguments: &[&str]| {
        let Output { status, stdout, stderr } = shardtool(arguments, folder).output().unwrap();
        match status.success() {
            true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&[stdout, stderr].concat()))),
        }
    };
    text(&["verify", dataset])?;
    let info: serde_json::Value = serde_json::from_str(&text(&["info", dataset, "--json"])?).unwrap();
    let mut listed = vec!["ls".to_owned(), dataset.to_owned(), "--json".to_owned()];
    let names = info["features"].as_array().unwrap().iter().map(|feature| feature["name"].as_str().unwrap());
    listed.extend(names.filter(|name| ["note", "score"].contains(name)).map(|name| format!("--column={name}")));
    let rows = text(&listed.iter().map(String::as_str).collect::<Vec<_>>())?;
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    Ok(format!("{} {} {}", rows["listed"], info["features"], info["splits"][0]["shards"]))
}

/// As [`contents`] of the newest version, with its tags and the number of purged versions.
fn newest(folder: &Path) -> Result<String, String> {
    let log = shardtool(&["log", "set", "--json"], folder).output().unwrap();
    let log = String::from_utf8_lossy(&log.stdout);
    let [tags, purged] = ["paper", "\"purged\": true"].map(|text| log.matches(text).count());
    Ok(format!("{} tags {tags} purged {purged}", contents(folder, "set")?))
}

/// Returns the files in a folder and in folders in it.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { tree(&path) } else { vec![path] }).collect()
}

fn done(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A dataset with a column, of which a record is deleted: its versions are 1, 2 and 3.
fn changed(folder: &Path) {
    crate::commands::set(folder);
    let rows = |value: fn(usize) -> String| -> String {
        let keys = (0..3).flat_map(|n| ["cat", "dog"].map(|class| format!("{class}/{n}.jpg")));
        keys.enumerate().map(|(at, key)| format!("{key},{}\n", value(at))).collect()
    };
    fs::write(folder.join("first.csv"), format!("key,note\n{}", rows(|at| ["a", "b"][at % 2].to_owned()))).unwrap();
    fs::write(folder.join("scores.csv"), format!("key,score\n{}", rows(|at| at.to_string()))).unwrap();
    fs::write(folder.join("notes.csv"), "key,note\ncat/1.jpg,c\n").unwrap();
    fs::create_dir_all(folder.join("further/dog")).unwrap();
    fs::copy(folder.join("photos/dog/0.jpg"), folder.join("further/dog/9.jpg")).unwrap();
    done(shardtool(&["column", "add", "set", "first.csv"], folder));
    fs::write(folder.join("gone.txt"), "cat/0.jpg\n").unwrap();
    done(shardtool(&["delete", "set", "--keys=gone.txt"], folder));
    // Rows of records that are deleted are unknown.
    let scores = fs::read_to_string(folder.join("scores.csv")).unwrap();
    fs::write(folder.join("scores.csv"), scores.replace("cat/0.jpg,0\n", "")).unwrap();
}
