//! Runs two commands on one dataset at once. The result is that of one after the other, in either order; a command that
//! refuses because of the other one is run again.

use crate::commands::{Neighbours, shardtool};
use crate::sweep::without_locks;
use crate::tree::{Tree, copy, differences, snapshot};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::Duration;

/// Two commands, and the results of running one after the other.
pub(crate) struct Pair {
    commands: [&'static [&'static str]; 2],
    template: PathBuf,
    work: PathBuf,
    /// Exit statuses and files, of both orders.
    serial: [([i32; 2], Tree); 2],
}

impl Pair {
    /// Makes the inputs in `folder`, and runs the commands there one after the other.
    pub(crate) fn new(group: &Neighbours, commands: [&'static [&'static str]; 2], folder: &Path) -> Self {
        let (template, work) = (folder.join("template"), folder.join("work"));
        if !template.exists() {
            fs::create_dir_all(&template).unwrap();
            (group.inputs)(&template);
        }
        let serial = [[0, 1], [1, 0]].map(|order: [usize; 2]| {
            copy(&template, &work).unwrap();
            let mut codes = [0; 2];
            for which in order {
                codes[which] = code(&shardtool(commands[which], &work).output().unwrap());
            }
            (codes, without_locks(snapshot(&work)))
        });
        Pair { commands, template, work, serial }
    }

    /// Runs both at once, the second one after `delay`. Returns whether one refused, and what is wrong.
    pub(crate) fn run(&self, delay: Duration) -> (bool, Vec<String>) {
        copy(&self.template, &self.work).unwrap();
        let start = |which: usize| {
            let mut command = shardtool(self.commands[which], &self.work);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let first = start(0);
        thread::sleep(delay);
        let second = start(1);
        let mut outputs = [first, second].map(|process| process.wait_with_output().unwrap());
        let mut any_refused = false;
        for which in 0..2 {
            let refused = code(&outputs[which]) == 2 && self.serial.iter().all(|(codes, _)| codes[which] != 2);
            if refused || message(&outputs[which]).contains(".lock") {
                any_refused = true;
                outputs[which] = shardtool(self.commands[which], &self.work).output().unwrap();
            }
        }
        let codes = outputs.each_ref().map(code);
        let found = without_locks(snapshot(&self.work));
        if self.serial.iter().any(|(expected, tree)| *expected == codes && *tree == found) {
            return (any_refused, vec![]);
        }
        // `pack --force` removes the old shards. A command that was reading them reports it: its exit status is 1.
        let reads = |which: usize| codes[which] == 1 && self.commands[1 - which].contains(&"--force");
        if (reads(0) || reads(1)) && self.serial.iter().any(|(_, tree)| of_set(tree) == of_set(&found)) {
            return (true, vec![]);
        }
        let serial = self.serial.iter().map(|(codes, tree)| format!("{codes:?} {:?}", differences(tree, &found)));
        let serial: Vec<_> = serial.collect();
        let messages = outputs.each_ref().map(message);
        let wrong = format!("{:?}: {codes:?} with {messages:?}; one after the other: {serial:?}", self.commands);
        (any_refused, vec![wrong])
    }
}

fn of_set(tree: &Tree) -> Tree {
    tree.iter().filter(|(path, _)| path.starts_with("set")).map(|(path, node)| (path.clone(), node.clone())).collect()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
