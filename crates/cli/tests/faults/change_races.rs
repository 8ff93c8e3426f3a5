//! Runs two changes of one dataset at once. The result is that of one after the other, in either order, and every version is whole; a
//! change that is refused because the other one came first is run again.

use crate::dataset::{Place, Shards};
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

/// Two changes, and the results of making one after the other.
pub(crate) struct Rivals {
    commands: [&'static [&'static str]; 2],
    place: Place,
    serial: [Outcome; 2],
}

/// The command that makes a clone of the dataset while it is changed.
pub(crate) const CLONE: &[&str] = &["clone", "set", "--out", "mine"];

/// Exit statuses, the contents of the newest version, what the log says of all, and the contents of the clone.
#[derive(Debug, PartialEq)]
struct Outcome {
    codes: [i32; 2],
    newest: String,
    versions: Vec<Value>,
    /// `None` without a clone, or with one whose shards a purge has removed.
    clone: Option<String>,
}

impl Outcome {
    /// Returns whether another outcome has the same versions.
    fn same(&self, other: &Self) -> bool {
        (&self.newest, &self.versions) == (&other.newest, &other.versions)
    }
}

impl Rivals {
    /// Makes the dataset, and runs the commands one after the other.
    pub(crate) fn new(place: Place, shards: Shards, commands: [&'static [&'static str]; 2]) -> Self {
        std::fs::create_dir_all(place.folder()).unwrap();
        place.make(shards);
        place.keep();
        let serial = [[0, 1], [1, 0]].map(|order: [usize; 2]| {
            place.restore();
            let mut codes = [0; 2];
            for which in order {
                codes[which] = code(&place.command(commands[which]).output().unwrap());
            }
            outcome(&place, &commands, codes).unwrap()
        });
        Rivals { commands, place, serial }
    }

    /// Runs both at once, the second one after `delay`. Returns whether one was refused, and what is wrong.
    pub(crate) fn run(&self, delay: Duration) -> (bool, Vec<String>) {
        self.place.restore();
        let start = |which: usize| {
            let mut command = self.place.command(self.commands[which]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let first = start(0);
        thread::sleep(delay);
        let second = start(1);
        let mut outputs = [first, second].map(|process| process.wait_with_output().unwrap());
        let messages = outputs.each_ref().map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
        let mut wrong = vec![];
        let mut any_refused = false;
        for which in 0..2 {
            let is_refused = code(&outputs[which]) == 2 && self.serial.iter().all(|serial| serial.codes[which] != 2);
            if is_refused {
                any_refused = true;
                if !["came first", ".lock", "removed it meanwhile"].iter().any(|text| messages[which].contains(text)) {
                    wrong.push(format!("refused without the reason: {}", messages[which]));
                }
                outputs[which] = self.place.command(self.commands[which]).output().unwrap();
            }
        }
        let found = outcome(&self.place, &self.commands, outputs.each_ref().map(code));
        // Two processes that make the same change at once make it once: neither knows the other's from its own.
        let once = self.commands[0] == self.commands[1];
        let is_one = |found: &Outcome| once && found.codes == [0, 0] && found.same(&self.serial[0]);
        if !found.as_ref().is_ok_and(is_one) && !self.serial.iter().any(|serial| found.as_ref() == Ok(serial)) {
            wrong.push(format!("{found:?} with {messages:?}; one after the other: {:?}", self.serial));
        }
        (any_refused, wrong.into_iter().map(|text| format!("{:?}: {text}", self.commands)).collect())
    }
}

/// Reads all versions.
fn outcome(place: &Place, commands: &[&[&str]; 2], codes: [i32; 2]) -> Result<Outcome, String> {
    let versions = place.log()?;
    for version in &versions {
        place.contents(&format!("set@{}", version["version"]))?;
    }
    let versions = versions.iter().map(|version| {
        let records = &version["splits"][0]["records"];
        json!([version["version"], version["command"], version["tags"], version["purged"], records])
    });
    let clone = commands.contains(&CLONE).then(|| place.contents("mine").ok()).flatten();
    Ok(Outcome { codes, newest: place.contents("set")?, versions: versions.collect(), clone })
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}
